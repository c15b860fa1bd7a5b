// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of devices, and the limits that cgroups have of it.
 */
#include "softgpu/nvml/nvml.h"

#include <unistd.h>

/* The window through which the CPU reaches device memory; nobody maps it. */
#define BAR1_BYTES (128ull << 30)

CALL(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct state_memory now;
	unsigned dev;
	nvmlReturn_t r = device_check(device, memory, &dev);

	if (r != NVML_SUCCESS)
		return r;
	state_look(nvml.state, dev);
	state_memory(nvml.state, dev, &now);
	*memory = (nvmlMemory_t){
		.total = now.total_bytes,
		.free = now.free_bytes,
		.used = now.used_bytes,
	};
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	struct state_memory now;
	unsigned dev;
	nvmlReturn_t r = device_check(device, memory, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	state_look(nvml.state, dev);
	state_memory(nvml.state, dev, &now);
	memory->total = now.total_bytes;
	memory->reserved = 0;
	memory->free = now.free_bytes;
	memory->used = now.used_bytes;
	return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetBAR1MemoryInfo, nvmlBAR1Memory_t,
       ((nvmlBAR1Memory_t){ .bar1Total = BAR1_BYTES, .bar1Free = BAR1_BYTES }))

static nvmlReturn_t limit_error(int r)
{
	switch (r) {
	case 0:
		return NVML_SUCCESS;
	case STATE_E_BUSY:
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	default:
		return NVML_ERROR_OPERATING_SYSTEM;
	}
}

CALL(nvmlDeviceSetMemoryLimits_v1, nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits)
{
	unsigned dev;
	uint64_t total;
	nvmlReturn_t r = device_check(device, limits, &dev);

	if (r != NVML_SUCCESS)
		return r;
	total = device_properties(dev).memory_bytes;
	if (!limits->nameSpace || limits->softLimit > limits->hardLimit ||
	    limits->softLimit > total ||
	    (limits->hardLimit > total && limits->hardLimit != UINT64_MAX))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (geteuid() != 0)
		return NVML_ERROR_NO_PERMISSION;
	return limit_error(state_limit_set(nvml.state, dev, limits->nameSpace, limits->softLimit,
					   limits->hardLimit));
}

CALL(nvmlDeviceGetMemoryLimits_v1, nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits)
{
	struct state_limit now;
	unsigned dev;
	nvmlReturn_t r = device_check(device, limits, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (!limits->nameSpace)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = limit_error(state_limit_get(nvml.state, dev, limits->nameSpace, &now));
	if (r != NVML_SUCCESS)
		return r;
	limits->softLimit = now.soft_bytes;
	limits->hardLimit = now.hard_bytes;
	limits->currentUsed = now.used_bytes;
	return NVML_SUCCESS;
}
