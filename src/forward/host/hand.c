// SPDX-License-Identifier: Apache-2.0
/* Which function executes a command that the table does not describe. */
#include "base/base.h"
#include "forward/host/callback.h"
#include "forward/host/code.h"
#include "forward/host/command.h"
#include "forward/host/copy.h"
#include "forward/host/driver.h"
#include "forward/host/graph-node.h"
#include "forward/host/graph.h"
#include "forward/host/handle.h"
#include "forward/host/ipc.h"
#include "forward/host/launch.h"
#include "forward/host/link.h"
#include "forward/host/memory.h"
#include "forward/host/nvml.h"
#include "forward/host/texture.h"
#include "forward/host/user-object.h"
#include "forward/host/variable.h"

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

/*
 * cuPointerGetAttribute: 16 bytes hold every attribute's value. Objects get their names: the driver looks at the
 * attribute's lower half alone, so what it answers is judged by that.
 */
static CUresult pointer_attribute(struct command *command)
{
	struct reader reader = command_reader(command);
	uint32_t attribute = (uint32_t)reader_word(&reader);
	uint64_t address = reader_word(&reader);
	uint64_t *value = reply_bytes(command, 2 * sizeof(*value));
	CUresult r;

	if (reader.failed || !value)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuPointerGetAttribute, POINTER(value), attribute, address);
	if (r == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
		*value = handle_put(HANDLE_CONTEXT, *value);
	else if (r == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE)
		*value = handle_put(HANDLE_POOL, *value);
	return r;
}

typedef CUresult (*execute_fn)(struct command *command);

static const execute_fn own[] = {
	[WIRE_CLASSIFY - WIRE_PAD] = classify,
	[WIRE_PARAMETERS - WIRE_PAD] = launch_parameters,
	[WIRE_NVML - WIRE_PAD] = nvml_execute,
	[WIRE_PIN - WIRE_PAD] = pin_execute,
	[WIRE_UNPIN - WIRE_PAD] = pin_execute,
	[WIRE_CALLBACK_DONE - WIRE_PAD] = callback_done,
	[WIRE_READ_MANAGED - WIRE_PAD] = variable_read,
	[WIRE_WRITE_MANAGED - WIRE_PAD] = variable_write,
	[WIRE_LINK_IMAGE - WIRE_PAD] = link_image,
};

static const execute_fn by_call[CALL_N] = {
	[CALL_ID_cuLaunchKernel] = launch_kernel,
	[CALL_ID_cuLaunchKernel_ptsz] = launch_kernel,
	[CALL_ID_cuLaunchHostFunc] = callback_launch,
	[CALL_ID_cuLaunchHostFunc_ptsz] = callback_launch,
	[CALL_ID_cuStreamAddCallback] = callback_launch,
	[CALL_ID_cuStreamAddCallback_ptsz] = callback_launch,
	[CALL_ID_cuModuleLoadDataEx] = code_load_module,
	[CALL_ID_cuLibraryLoadData] = code_load_library,
	[CALL_ID_cuLinkCreate_v2] = link_create,
	[CALL_ID_cuLinkAddData_v2] = link_add,
	[CALL_ID_cuLinkComplete] = link_complete,
	[CALL_ID_cuLinkDestroy] = link_destroy,
	[CALL_ID_cuPointerGetAttribute] = pointer_attribute,
	[CALL_ID_cuMemcpy3D_v2] = copy_execute,
	[CALL_ID_cuMemcpy3D_v2_ptds] = copy_execute,
	[CALL_ID_cuMemcpy3DAsync_v2] = copy_execute,
	[CALL_ID_cuMemcpy3DAsync_v2_ptsz] = copy_execute,
	[CALL_ID_cuMemcpy3DPeer] = copy_peer_execute,
	[CALL_ID_cuMemcpy3DPeer_ptds] = copy_peer_execute,
	[CALL_ID_cuMemcpy3DPeerAsync] = copy_peer_execute,
	[CALL_ID_cuMemcpy3DPeerAsync_ptsz] = copy_peer_execute,
	[CALL_ID_cuIpcGetMemHandle] = ipc_execute,
	[CALL_ID_cuIpcOpenMemHandle] = ipc_execute,
	[CALL_ID_cuIpcOpenMemHandle_v2] = ipc_execute,
	[CALL_ID_cuIpcGetEventHandle] = ipc_execute,
	[CALL_ID_cuIpcOpenEventHandle] = ipc_execute,
	[CALL_ID_cuGraphAddKernelNode_v2] = graph_add_kernel,
	[CALL_ID_cuGraphExecKernelNodeSetParams_v2] = graph_set_kernel,
	[CALL_ID_cuGraphKernelNodeSetParams_v2] = graph_set_kernel,
	[CALL_ID_cuGraphKernelNodeGetParams_v2] = graph_get_kernel,
	[CALL_ID_cuGraphMemcpyNodeSetParams] = graph_set_copy,
	[CALL_ID_cuGraphExecMemcpyNodeSetParams] = graph_set_copy,
	[CALL_ID_cuGraphHostNodeSetParams] = graph_set_host,
	[CALL_ID_cuGraphExecHostNodeSetParams] = graph_set_host,
	[CALL_ID_cuStreamGetCaptureInfo_v2] = graph_capture_info,
	[CALL_ID_cuStreamGetCaptureInfo_v2_ptsz] = graph_capture_info,
	[CALL_ID_cuUserObjectCreate] = user_object_create,
	[CALL_ID_cuGraphAddMemcpyNode] = graph_add_copy,
	[CALL_ID_cuGraphAddMemsetNode] = graph_add_fill,
	[CALL_ID_cuGraphAddMemAllocNode] = graph_add_alloc,
	[CALL_ID_cuGraphAddHostNode] = graph_add_host,
	[CALL_ID_cuGraphExecUpdate_v2] = graph_update,
};

typedef CUresult (*call_fn)(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

static bool batch_operation_ok(const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return range_ok(op->waitValue.address, sizeof(uint32_t));
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return range_ok(op->waitValue.address, sizeof(uint64_t));
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return true;
	default:
		return false;
	}
}

/* A list of waits and writes: each has to be about the session's memory. */
static CUresult batch_execute(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const CUstreamBatchMemOpParams *ops = (const CUstreamBatchMemOpParams *)words[2];
	uint32_t i, n = (uint32_t)words[1];

	if (n && !ops)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++)
		if (!batch_operation_ok(&ops[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return driver_call(id, words);
}

static const call_fn looked_at[CALL_N] = {
	[CALL_ID_cuStreamBatchMemOp] = batch_execute,
	[CALL_ID_cuStreamBatchMemOp_ptsz] = batch_execute,
	[CALL_ID_cuStreamBatchMemOp_v2] = batch_execute,
	[CALL_ID_cuStreamBatchMemOp_v2_ptsz] = batch_execute,
	[CALL_ID_cuGraphKernelNodeGetAttribute] = graph_kernel_attribute,
	[CALL_ID_cuGraphKernelNodeSetAttribute] = graph_kernel_attribute,
	[CALL_ID_cuGraphMemcpyNodeGetParams] = graph_get_copy,
	[CALL_ID_cuGraphMemsetNodeSetParams] = graph_set_fill,
	[CALL_ID_cuGraphExecMemsetNodeSetParams] = graph_set_fill,
	[CALL_ID_cuGraphHostNodeGetParams] = graph_get_host,
	[CALL_ID_cuGraphMemAllocNodeGetParams] = graph_get_alloc,
	[CALL_ID_cuLibraryGetManaged] = variable_look_up,
	[CALL_ID_cuLibraryUnload] = variable_unload,
	[CALL_ID_cuTexObjectCreate] = texture_create,
	[CALL_ID_cuTexObjectDestroy] = texture_destroy,
	[CALL_ID_cuTexObjectGetResourceDesc] = texture_describe,
	[CALL_ID_cuTexObjectGetResourceViewDesc] = texture_describe,
	[CALL_ID_cuTexObjectGetTextureDesc] = texture_describe,
	[CALL_ID_cuSurfObjectCreate] = texture_create,
	[CALL_ID_cuSurfObjectDestroy] = texture_destroy,
	[CALL_ID_cuSurfObjectGetResourceDesc] = texture_describe,
};

CUresult hand_call(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	return looked_at[id] ? looked_at[id](id, words) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_execute(struct command *command)
{
	execute_fn execute = NULL;

	if (command->call < CALL_N)
		execute = by_call[command->call];
	else if (command->call >= WIRE_PAD && command->call - WIRE_PAD < ARRAY_SIZE(own))
		execute = own[command->call - WIRE_PAD];
	return execute ? execute(command) : CUDA_ERROR_NOT_SUPPORTED;
}
