// SPDX-License-Identifier: Apache-2.0
/*
 * Two devices: what kernels of one may touch of the other's memory, by kind of memory, and that
 * copies need no leave. Whoever touches what he may not has failed, so each try has a context of
 * its own.
 */
#include <pthread.h>

#include "softgpu/cuda/test-driver.h"

CUresult cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
		      size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned int flags);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device);
CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool,
				 CUstream stream);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t n);
CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags);
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemMap(CUdeviceptr addr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags);
CUresult cuMemSetAccess(CUdeviceptr addr, size_t size, const CUmemAccessDesc *desc, size_t n);

#define BLOCK (2ull << 20)

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry put(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b64 %d; ld.param.u64 %d, [at]; st.global.u32 [%d], 7; ret;\n"
			  "}\n";

/* Contexts of devices 0 and 1, the latter current. */
static CUcontext ctx[2];

static CUresult put_in(CUcontext of, CUdeviceptr at)
{
	void *params[] = { &at };
	CUmodule module;
	CUresult r;

	NEED(cuCtxSetCurrent(of));
	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuLaunchKernel(test_function(module, "put"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	r = cuCtxSynchronize();
	cuCtxSetCurrent(ctx[1]);
	return r;
}

/* Whether a kernel of device 0 may write there, from a context that has leave or none. */
static CUresult put_from(CUdeviceptr at, bool has_leave)
{
	CUcontext fresh;
	CUresult r;

	NEED(cuCtxCreate_v2(&fresh, 0, 0));
	if (has_leave)
		NEED(cuCtxEnablePeerAccess(ctx[1], 0));
	r = put_in(fresh, at);
	NEED(cuCtxDestroy_v2(fresh));
	NEED(cuCtxSetCurrent(ctx[1]));
	return r;
}

static CUresult put(CUdeviceptr at)
{
	return put_from(at, /* has_leave= */ false);
}

static void test_linear(void)
{
	unsigned int value = 0;
	CUdeviceptr here, there;
	int can = 0;

	NEED(cuDeviceCanAccessPeer(&can, 0, 1));
	check(can == 1, "devices can reach each other");
	NEED(cuMemAlloc_v2(&there, BLOCK));
	NEED(cuCtxSetCurrent(ctx[0]));
	NEED(cuMemAlloc_v2(&here, BLOCK));
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(there), "a kernel cannot without leave");

	NEED(cuMemsetD32_v2(here, 5, 1));
	expect(CUDA_SUCCESS, cuMemcpyDtoD_v2(there, here, 4), "a copy can");
	NEED(cuMemcpyDtoH_v2(&value, there, 4));
	check(value == 5, "with its result");
	expect(CUDA_SUCCESS, cuMemcpyPeer(here, ctx[0], there, ctx[1], 4),
	       "one between contexts, too");

	NEED(cuCtxSetCurrent(ctx[0]));
	NEED(cuCtxEnablePeerAccess(ctx[1], 0));
	expect(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(ctx[1], 0),
	       "leave is given once");
	expect(CUDA_SUCCESS, put_in(ctx[0], there), "a kernel with leave can");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(there), "which is one context's alone");
	NEED(cuMemAlloc_v2(&there, BLOCK));
	expect(CUDA_SUCCESS, put_in(ctx[0], there), "also to what is allocated later");
	expect(CUDA_SUCCESS, put_in(ctx[1], there), "the device itself always can");

	NEED(cuCtxSetCurrent(ctx[0]));
	NEED(cuCtxDisablePeerAccess(ctx[1]));
	expect(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(ctx[1]),
	       "and is taken once");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put_in(ctx[0], there), "then it cannot any more");
	NEED(cuCtxDestroy_v2(ctx[0]));
	NEED(cuCtxSetCurrent(ctx[1]));
}

static void test_shared_kinds(void)
{
	CUdeviceptr managed;
	void *host;

	NEED(cuMemHostAlloc(&host, 4096, 0));
	expect(CUDA_SUCCESS, put((CUdeviceptr)(uintptr_t)host), "pinned memory is everybody's");
	NEED(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	expect(CUDA_SUCCESS, put(managed), "so is managed memory");
}

static CUmemAccessDesc access_of(CUdevice device, CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
}

static void test_pool(void)
{
	CUmemAccessDesc read_write = access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
	};
	CUdeviceptr small, large, later, apart, other;
	CUmemoryPool pool, other_pool;

	NEED(cuDeviceGetDefaultMemPool(&pool, 1));
	NEED(cuMemPoolCreate(&other_pool, &props));
	NEED(cuMemAllocFromPoolAsync(&other, 4096, other_pool, NULL));
	NEED(cuMemAlloc_v2(&apart, 4096));
	NEED(cuMemAllocAsync(&small, 4096, NULL));
	NEED(cuMemAllocAsync(&large, 2 * BLOCK, NULL));
	NEED(cuCtxSynchronize());
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(small), "a pool's memory is its device's");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(large), "small or large");
	NEED(cuMemPoolSetAccess(pool, &read_write, 1));
	NEED(cuMemAllocAsync(&later, 2 * BLOCK, NULL));
	NEED(cuCtxSynchronize());
	expect(CUDA_SUCCESS, put(small), "unless the pool gives access");
	expect(CUDA_SUCCESS, put(large), "to what there is");
	expect(CUDA_SUCCESS, put(later), "and what comes");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(apart), "but not to memory of no pool");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(other), "nor to that of another");
	read_write.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	NEED(cuMemPoolSetAccess(pool, &read_write, 1));
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(later), "and takes it away again");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(small), "be it small");
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put_from(small, /* has_leave= */ true),
	       "whatever leave a context has");
}

static void test_virtual(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
	};
	CUmemAccessDesc own = access_of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAccessDesc other = access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	NEED(cuMemAddressReserve(&at, BLOCK, 0, 0, 0));
	NEED(cuMemCreate(&handle, BLOCK, &prop, 0));
	NEED(cuMemMap(at, BLOCK, 0, handle, 0));
	NEED(cuMemSetAccess(at, BLOCK, &own, 1));
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(at), "virtual memory is whose it was given");
	NEED(cuMemSetAccess(at, BLOCK, &other, 1));
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, put(at), "who may read may not write");
	expect(CUDA_SUCCESS, put_in(ctx[1], at), "though another may");
	other.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	NEED(cuMemSetAccess(at, BLOCK, &other, 1));
	expect(CUDA_SUCCESS, put(at), "until it is said so");
}

int main(void)
{
	setenv("SOFTGPU_DEVICES", "2", 1);
	ctx[0] = test_begin();
	NEED(cuCtxCreate_v2(&ctx[1], 0, 1));
	test_linear();
	test_shared_kinds();
	test_pool();
	test_virtual();
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx[1]), "the context ends");
	test_end();
	return n_failed > 0;
}
