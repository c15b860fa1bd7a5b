/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that are programs on the driver: its calls, and a context on a fresh state.
 *
 * Each test has a folder of its own for the shared state, so that it sees a device that nobody
 * else uses.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-dir.h"

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *ret, int ordinal);
CUresult cuCtxCreate_v2(CUcontext *ret, unsigned int flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxSynchronize(void);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr addr);
CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr addr, CUstream stream);
CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned int flags);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t n);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream);

CUresult cuModuleLoad(CUmodule *ret, const char *path);
CUresult cuModuleLoadData(CUmodule *ret, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned int n, CUjit_option *options,
			    void **values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name);
CUresult cuModuleGetFunctionCount(unsigned int *ret, CUmodule module);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *bytes, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *ret, const void *image, CUjit_option *jit_options,
			   void **jit_values, unsigned int n_jit_options, CUlibraryOption *options,
			   void **values, unsigned int n_options);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *ret, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *ret, CUkernel kernel);
CUresult cuKernelGetName(const char **ret, CUkernel kernel);
CUresult cuKernelGetAttribute(int *ret, CUfunction_attribute attribute, CUkernel kernel,
			      CUdevice device);
CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *ret);
CUresult cuLinkAddData_v2(CUlinkState link, CUjitInputType type, void *data, size_t bytes,
			  const char *name, unsigned int n, CUjit_option *options, void **values);
CUresult cuLinkComplete(CUlinkState link, void **ret, size_t *ret_bytes);
CUresult cuLinkDestroy(CUlinkState link);
CUresult cuFuncGetAttribute(int *ret, CUfunction_attribute attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes);
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuParamSetSize(CUfunction function, unsigned int bytes);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
				   void **params);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, CUfunction function, int threads,
						     size_t shared_bytes);

CUresult cuStreamCreate(CUstream *ret, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned int flags, int priority);
CUresult cuStreamGetPriority(CUstream stream, int *ret);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *arg, unsigned int flags);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				 unsigned int flags);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
			       unsigned int flags);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *ret);
CUresult cuStreamGetId(CUstream stream, unsigned long long *ret);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *ret);
CUresult cuEventCreate(CUevent *ret, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ret, CUevent begin, CUevent end);
CUresult cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle handle);

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *ret);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuGraphCreate(CUgraph *ret, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphDestroyNode(CUgraphNode node);
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t n);
CUresult cuGraphClone(CUgraph *ret, CUgraph graph);
CUresult cuGraphNodeFindInClone(CUgraphNode *ret, CUgraphNode node, CUgraph clone);
CUresult cuGraphAddNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			   const CUgraphEdgeData *data, size_t n_after, CUgraphNodeParams *params);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
				 size_t n_after, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *ret);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			      size_t n_after, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx);
CUresult cuGraphAddMemcpyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			      size_t n_after, const CUDA_MEMCPY3D *params, CUcontext ctx);
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_MEMCPY3D *params, CUcontext ctx);
CUresult cuGraphAddHostNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			    size_t n_after, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphAddChildGraphNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
				  size_t n_after, CUgraph child);
CUresult cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			     size_t n_after);
CUresult cuGraphAddEventRecordNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
				   size_t n_after, CUevent event);
CUresult cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
				size_t n_after, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddMemFreeNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
			       size_t n_after, CUdeviceptr addr);
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *data, size_t n);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *data, size_t *n);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *ret);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);
CUresult cuUserObjectCreate(CUuserObject *ret, void *thing, CUhostFn destroy, unsigned int n,
			    unsigned int flags);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int n);
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int n,
				 unsigned int flags);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *ret);

/* Whether a call answers as it should; says what it answered if not. */
static inline void expect(CUresult want, CUresult got, const char *what)
{
	if (got != want)
		printf("# %s: %d instead of %d\n", what, got, want);
	check(got == want, what);
}

/* For what a test rests on. */
static inline void need(CUresult got, const char *what)
{
	if (got == CUDA_SUCCESS)
		return;
	printf("not ok '%s': %d\n", what, got);
	exit(1);
}

#define NEED(call) need(call, #call)

static char test_dir[64];

static inline void test_end(void)
{
	if (test_dir_remove(test_dir) != 0)
		printf("# cannot remove %s\n", test_dir);
}

/* A context on device 0, current. */
static inline CUcontext test_begin(void)
{
	CUcontext ctx;
	CUdevice device;

	setvbuf(stdout, NULL, _IOLBF, 0);
	strcpy(test_dir, "/tmp/softgpu-test-XXXXXX");
	if (!mkdtemp(test_dir))
		exit(1);
	setenv("SOFTGPU_DIR", test_dir, 1);
	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuCtxCreate_v2(&ctx, 0, device));
	return ctx;
}

/* Is it asleep, as /proc has it? */
static inline bool test_is_asleep(pid_t tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		exit(1);
	fclose(f);
	return state == 'S';
}

/*
 * Waits until a thread waits in a call: it is asleep at each of so many looks, while @n_calls, which it
 * counts, stays the same and is not 0. So it does not wait for a lock on the way there. Return: @n_calls.
 */
static inline int test_wait_until_asleep(const _Atomic pid_t *tid, const _Atomic int *n_calls)
{
	const int n_looks = 20;
	int n = 0;

	for (int looks = 0; looks < n_looks; looks++) {
		n = *n_calls;
		usleep(1000);
		if (n == 0 || n != *n_calls || !test_is_asleep(*tid))
			looks = 0;
	}
	return n;
}

static inline CUfunction test_function(CUmodule module, const char *name)
{
	CUfunction function;

	need(cuModuleGetFunction(&function, module, name), name);
	return function;
}
