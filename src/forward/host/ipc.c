// SPDX-License-Identifier: Apache-2.0
#include "forward/host/ipc.h"

#include "forward/host/ask.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"

#include <string.h>

_Static_assert(sizeof(CUipcMemHandle) == sizeof(((struct wire_message *)NULL)->data) &&
		       sizeof(CUipcEventHandle) == sizeof(CUipcMemHandle),
	       "a handle fits into a message");

/* Turns what is in @data into what the broker answers. @kind keeps memory and events apart. */
static int ask(enum wire_message_type type, enum call_id kind, void *data)
{
	struct wire_message message = { .type = type, .id = kind };
	int r;

	memcpy(message.data, data, sizeof(message.data));
	r = broker_ask(&message);
	memcpy(data, message.data, sizeof(message.data));
	return r;
}

static CUresult give(struct command *command, uint64_t object)
{
	void *handle = reply_bytes(command, sizeof(CUipcMemHandle));
	CUresult r;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	r = driver_call(command->call,
			(const uint64_t[CALL_N_ARGUMENTS_MAX]){ POINTER(handle), object });
	if (r == CUDA_SUCCESS && ask(WIRE_IPC_PUT, command->call, handle) < 0)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

/* A handle is passed by value, 64 bytes on the stack: the one form that is not words in registers. */
static CUresult open_memory(struct command *command, CUipcMemHandle *handle, unsigned flags)
{
	CUresult (*entry)(CUdeviceptr *, CUipcMemHandle, unsigned);
	CUdeviceptr *address = reply_bytes(command, sizeof(*address));

	entry = (__typeof__(entry))driver_entry(command->call);
	if (!entry || !address)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (ask(WIRE_IPC_GET, CALL_ID_cuIpcGetMemHandle, handle) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	return entry(address, *handle, flags);
}

static CUresult open_event(struct command *command, CUipcEventHandle *handle)
{
	CUresult (*entry)(CUevent *, CUipcEventHandle);
	uint64_t *name = reply_bytes(command, sizeof(*name));
	CUevent event = NULL;
	CUresult r;

	entry = (__typeof__(entry))driver_entry(command->call);
	if (!entry || !name)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (ask(WIRE_IPC_GET, CALL_ID_cuIpcGetEventHandle, handle) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = entry(&event, *handle);
	*name = handle_put(HANDLE_EVENT, POINTER(event));
	return r;
}

CUresult ipc_execute(struct command *command)
{
	struct reader reader = command_reader(command);
	CUipcEventHandle event_handle;
	CUipcMemHandle handle;
	const void *from;
	uint64_t word;

	switch (command->call) {
	case CALL_ID_cuIpcGetMemHandle:
		word = reader_word(&reader);
		return reader.failed ? CUDA_ERROR_INVALID_VALUE : give(command, word);
	case CALL_ID_cuIpcGetEventHandle:
		word = reader_handle(&reader, HANDLE_EVENT);
		return reader.failed ? CUDA_ERROR_INVALID_HANDLE : give(command, word);
	default:
		break;
	}
	from = reader_bytes(&reader, sizeof(handle));
	word = reader_word(&reader);
	if (reader.failed)
		return CUDA_ERROR_INVALID_VALUE;
	if (command->call == CALL_ID_cuIpcOpenEventHandle) {
		memcpy(&event_handle, from, sizeof(event_handle));
		return open_event(command, &event_handle);
	}
	memcpy(&handle, from, sizeof(handle));
	return open_memory(command, &handle, (unsigned)word);
}
