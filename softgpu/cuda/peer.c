// SPDX-License-Identifier: Apache-2.0
/*
 * Access of a context to the memory of other devices. Every pair of devices can have it: they
 * all are the same host's memory.
 */
#include "softgpu/cuda/context.h"

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
	uint64_t bit;

	if (r != CUDA_SUCCESS)
		return r;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx->device == peer->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	bit = 1ull << peer->device->ordinal;
	return atomic_fetch_or(&ctx->peers, bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
						       : CUDA_SUCCESS;
}

CALL(cuCtxDisablePeerAccess, CUcontext peerContext)
{
	struct context *ctx, *peer;
	CUresult r = find_pair(peerContext, &ctx, &peer);
	uint64_t bit;

	if (r != CUDA_SUCCESS)
		return r;
	bit = 1ull << peer->device->ordinal;
	return atomic_fetch_and(&ctx->peers, ~bit) & bit ? CUDA_SUCCESS
							 : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
