// SPDX-License-Identifier: Apache-2.0
/*
 * Access of a context to the memory of other devices. Every pair of devices can have it: they
 * all are the same host's memory. Kernels need it; copies do not, which hardware would stage
 * through the host.
 */
#include "softgpu/cuda/context.h"
#include "softgpu/mem/view.h"

bool context_reach(struct context *ctx, const struct device *device)
{
	uint64_t bit = 1ull << device->ordinal, before;

	before = atomic_fetch_or(&ctx->peers, bit);
	if (ctx->view)
		space_view_reach(ctx->view, before | bit);
	return !(before & bit);
}

/* With one device there is nothing that it could not see. */
static CUresult view_begin(struct context *ctx)
{
	ctx->view = NULL;
	if (driver.n_devices > 1 && space_view_new((unsigned)ctx->device->ordinal, &ctx->view) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static void view_end(struct context *ctx)
{
	space_view_free(ctx->view);
	ctx->view = NULL;
}

CONTEXT_PART(view, .order = 5, .begin = view_begin, .end = view_end);

CALL(cuDeviceCanAccessPeer, int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	struct device *device, *peer;
	CUresult r = device_find(dev, &device);

	if (r == CUDA_SUCCESS)
		r = device_find(peerDev, &peer);
	if (r != CUDA_SUCCESS)
		return r;
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	*canAccessPeer = device != peer;
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetP2PAttribute, int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
     CUdevice dstDevice)
{
	struct device *device, *peer;
	CUresult r = device_find(srcDevice, &device);

	if (r == CUDA_SUCCESS)
		r = device_find(dstDevice, &peer);
	if (r != CUDA_SUCCESS)
		return r;
	if (device == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The current context and the one that it shall reach, or no longer. */
static CUresult find_pair(CUcontext peer_handle, struct context **ret, struct context **ret_peer)
{
	CUresult r = context_current(ret);

	if (r == CUDA_SUCCESS)
		r = context_find(peer_handle, ret_peer);
	if (r != CUDA_SUCCESS)
		return r;
	return *ret == *ret_peer ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CALL(cuCtxEnablePeerAccess, CUcontext peerContext, unsigned Flags)
{
	struct context *ctx, *peer;
	CUresult r = find_pair(peerContext, &ctx, &peer);

	if (r != CUDA_SUCCESS)
		return r;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx->device == peer->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return context_reach(ctx, peer->device) ? CUDA_SUCCESS
						: CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CALL(cuCtxDisablePeerAccess, CUcontext peerContext)
{
	struct context *ctx, *peer;
	CUresult r = find_pair(peerContext, &ctx, &peer);
	uint64_t bit, before;

	if (r != CUDA_SUCCESS)
		return r;
	bit = 1ull << peer->device->ordinal;
	before = atomic_fetch_and(&ctx->peers, ~bit);
	if (ctx->view)
		space_view_reach(ctx->view, before & ~bit);
	return before & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
