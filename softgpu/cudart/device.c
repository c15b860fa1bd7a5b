// SPDX-License-Identifier: Apache-2.0
/* What a device is like, its limits, its peers. */
#include <string.h>

#include "softgpu/cudart/runtime.h"

static int attribute_of(CUdevice_attribute attribute, int device)
{
	int value = 0;

	driver.cuDeviceGetAttribute(&value, attribute, device);
	return value;
}

#define KEEP(...) __VA_ARGS__
#define DROP(...)
/* The call's name is itself a macro. */
#define EXPANDED_CALL(name, ...) RUNTIME_CALL(name, __VA_ARGS__)

#define PROPERTIES	properties_11
#define PROPERTIES_CALL cudaGetDeviceProperties_11
#define ALL		KEEP
#define BEFORE_13	KEEP
#define ONLY_12		DROP
#define SINCE_12	DROP
#define SINCE_13	DROP
#include "softgpu/cudart/properties.h"

#define PROPERTIES	properties_12
#define PROPERTIES_CALL cudaGetDeviceProperties_12
#define ALL		KEEP
#define BEFORE_13	KEEP
#define ONLY_12		KEEP
#define SINCE_12	KEEP
#define SINCE_13	DROP
#include "softgpu/cudart/properties.h"

#define PROPERTIES	properties_13
#define PROPERTIES_CALL cudaGetDeviceProperties_13
#define ALL		KEEP
#define BEFORE_13	DROP
#define ONLY_12		DROP
#define SINCE_12	KEEP
#define SINCE_13	KEEP
#include "softgpu/cudart/properties.h"

RUNTIME_CALL(cudaDeviceGetAttribute, int *value, CUdevice_attribute attribute, int device)
{
	/* cudaDeviceAttr has the driver's numbers. */
	return runtime_ready() ?: told(driver.cuDeviceGetAttribute(value, attribute, device));
}

RUNTIME_CALL(cudaDeviceGetPCIBusId, char *id, int size_bytes, int device)
{
	return runtime_ready() ?: told(driver.cuDeviceGetPCIBusId(id, size_bytes, device));
}

RUNTIME_CALL(cudaDeviceGetByPCIBusId, int *device, const char *id)
{
	return runtime_ready() ?: told(driver.cuDeviceGetByPCIBusId(device, id));
}

RUNTIME_CALL(cudaDeviceCanAccessPeer, int *can, int device, int peer)
{
	return runtime_ready() ?: told(driver.cuDeviceCanAccessPeer(can, device, peer));
}

RUNTIME_CALL(cudaDeviceGetP2PAttribute, int *value, CUdevice_P2PAttribute attribute, int from,
	     int to)
{
	return runtime_ready() ?: told(driver.cuDeviceGetP2PAttribute(value, attribute, from, to));
}

RUNTIME_CALL(cudaDeviceEnablePeerAccess, int peer, unsigned flags)
{
	CUcontext context;

	/* The driver calls the context invalid, but the program has named a device. */
	if (peer == runtime_device())
		return failed(cudaErrorInvalidDevice);
	return in_context() ?: primary_context(peer, &context) ?:
		       told(driver.cuCtxEnablePeerAccess(context, flags));
}

RUNTIME_CALL(cudaDeviceDisablePeerAccess, int peer)
{
	CUcontext context;

	return in_context() ?: primary_context(peer, &context) ?:
		       told(driver.cuCtxDisablePeerAccess(context));
}

RUNTIME_CALL(cudaDeviceGetLimit, size_t *value, CUlimit limit)
{
	return in_context() ?: told(driver.cuCtxGetLimit(value, limit));
}

RUNTIME_CALL(cudaDeviceSetLimit, CUlimit limit, size_t value)
{
	return in_context() ?: told(driver.cuCtxSetLimit(limit, value));
}

RUNTIME_CALL(cudaDeviceGetCacheConfig, CUfunc_cache *config)
{
	return in_context() ?: told(driver.cuCtxGetCacheConfig(config));
}

RUNTIME_CALL(cudaDeviceSetCacheConfig, CUfunc_cache config)
{
	return in_context() ?: told(driver.cuCtxSetCacheConfig(config));
}

/* Shared memory banks are four bytes wide on every device since 5.0: reads so, sets nothing. */
RUNTIME_CALL(cudaDeviceGetSharedMemConfig, int *config)
{
	if (!config)
		return failed(cudaErrorInvalidValue);
	*config = 1;
	return in_context();
}

RUNTIME_CALL(cudaDeviceSetSharedMemConfig, _unused_ int config)
{
	return in_context();
}

/* The oldest names, of threads where there are devices now. */
PASSED_ON(cudaThreadGetLimit, cuCtxGetLimit, (size_t * value, CUlimit limit), (value, limit))
PASSED_ON(cudaThreadSetLimit, cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value))
PASSED_ON(cudaThreadGetCacheConfig, cuCtxGetCacheConfig, (CUfunc_cache * config), (config))
PASSED_ON(cudaThreadSetCacheConfig, cuCtxSetCacheConfig, (CUfunc_cache config), (config))

/* Devices without double precision are gone: nothing to convert. */
RUNTIME_CALL(cudaSetDoubleForDevice, _unused_ double *value)
{
	return cudaSuccess;
}

RUNTIME_CALL(cudaSetDoubleForHost, _unused_ double *value)
{
	return cudaSuccess;
}

RUNTIME_CALL(cudaCtxResetPersistingL2Cache, void)
{
	return in_context() ?: told(driver.cuCtxResetPersistingL2Cache());
}

RUNTIME_CALL(cudaDeviceGetGraphMemAttribute, int device, CUgraphMem_attribute attribute,
	     void *value)
{
	return in_context() ?: told(driver.cuDeviceGetGraphMemAttribute(device, attribute, value));
}

RUNTIME_CALL(cudaDeviceSetGraphMemAttribute, int device, CUgraphMem_attribute attribute,
	     void *value)
{
	return in_context() ?: told(driver.cuDeviceSetGraphMemAttribute(device, attribute, value));
}

RUNTIME_CALL(cudaDeviceGraphMemTrim, int device)
{
	return in_context() ?: told(driver.cuDeviceGraphMemTrim(device));
}

RUNTIME_CALL(cudaProfilerStart, void)
{
	return in_context() ?: told(driver.cuProfilerStart());
}

RUNTIME_CALL(cudaProfilerStop, void)
{
	return in_context() ?: told(driver.cuProfilerStop());
}
