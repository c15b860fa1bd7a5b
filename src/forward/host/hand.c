// SPDX-License-Identifier: Apache-2.0
/* Which function executes a command that the table does not describe. */
#include "forward/host/code.h"
#include "forward/host/command.h"
#include "forward/host/driver.h"
#include "forward/host/launch.h"
#include "forward/host/memory.h"

/* WIRE_CLASSIFY: is it an address that the driver knows? Then it is not the guest's own memory. */
static CUresult classify(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t address = reader_word(&reader);
	uint64_t *known = reply_bytes(command, sizeof(*known));

	if (reader.failed || !known)
		return CUDA_ERROR_INVALID_VALUE;
	*known = range_ok(address, 1);
	return CUDA_SUCCESS;
}

CUresult hand_execute(struct command *command)
{
	switch (command->call) {
	case WIRE_CLASSIFY:
		return classify(command);
	case WIRE_PARAMETERS:
		return launch_parameters(command);
	case CALL_ID_cuLaunchKernel:
		return launch_kernel(command);
	case CALL_ID_cuModuleLoadDataEx:
		return code_load_module(command);
	case CALL_ID_cuLibraryLoadData:
		return code_load_library(command);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
