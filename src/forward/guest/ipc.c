// SPDX-License-Identifier: Apache-2.0
/* Memory and events of other processes: a handle is the host's token, in the first bytes of CUDA's structure. */
#include "forward/guest/call.h"

#include <string.h>

/* Sends words, and takes @size bytes of the answer. */
static CUresult ask(enum call_id id, const uint64_t *words, size_t n_words, void *ret, size_t size)
{
	struct guest_lane *l;
	const uint8_t *data;
	size_t answered;
	void *body;
	CUresult r;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = call_begin(id, n_words * sizeof(words[0]), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, n_words * sizeof(words[0]));
	r = lane_ask(l, &data, &answered);
	if (r == CUDA_SUCCESS && answered >= size)
		memcpy(ret, data, size);
	return lane_error(l, r);
}

CALL(cuIpcGetMemHandle, CUipcMemHandle *ret, CUdeviceptr ptr)
{
	const uint64_t word = ptr;

	return ask(CALL_ID_cuIpcGetMemHandle, &word, 1, ret, sizeof(*ret));
}

CALL(cuIpcGetEventHandle, CUipcEventHandle *ret, CUevent event)
{
	const uint64_t word = POINTER(event);

	return ask(CALL_ID_cuIpcGetEventHandle, &word, 1, ret, sizeof(*ret));
}

static CUresult open_memory(enum call_id id, CUdeviceptr *ret, CUipcMemHandle handle,
			    unsigned flags)
{
	uint64_t words[9] = { 0 };

	memcpy(words, &handle, sizeof(handle));
	words[8] = flags;
	return ask(id, words, 9, ret, sizeof(*ret));
}

CALL(cuIpcOpenMemHandle_v2, CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)
{
	return open_memory(CALL_ID_cuIpcOpenMemHandle_v2, ret, handle, flags);
}

CALL(cuIpcOpenMemHandle, CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)
{
	return open_memory(CALL_ID_cuIpcOpenMemHandle, ret, handle, flags);
}

CALL(cuIpcOpenEventHandle, CUevent *ret, CUipcEventHandle handle)
{
	uint64_t words[9] = { 0 };

	memcpy(words, &handle, sizeof(handle));
	return ask(CALL_ID_cuIpcOpenEventHandle, words, 9, ret, sizeof(*ret));
}
