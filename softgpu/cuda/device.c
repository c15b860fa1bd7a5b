// SPDX-License-Identifier: Apache-2.0
/* Calls about devices: which there are and what they are like. attribute.c has the attributes. */
#include <stdio.h>
#include <string.h>

#include "softgpu/cuda/core.h"

CUresult device_find(CUdevice ordinal, struct device **ret)
{
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (ordinal < 0 || (unsigned)ordinal >= driver.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = &driver.devices[ordinal];
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetCount, int *count)
{
	return TELL(driver_check(), count, (int)driver.n_devices);
}

CALL(cuDeviceGet, CUdevice *device, int ordinal)
{
	struct device *found;

	return TELL(device_find(ordinal, &found), device, found->ordinal);
}

CALL(cuDeviceGetName, char *name, int len, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", device->config.name);
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetUuid, CUuuid *uuid, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(uuid->bytes, device->config.uuid, sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

/* The second form names instances of a partitioned device; ours are never partitioned. */
CALL(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice dev)
{
	return impl_cuDeviceGetUuid(uuid, dev);
}

/* A locally unique identifier is Windows' name for a device. */
CALL(cuDeviceGetLuid, _unused_ char *luid, _unused_ unsigned *deviceNodeMask, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	return r == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : r;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, CUdevice dev)
{
	struct device *device;

	return TELL(device_find(dev, &device), bytes, device->config.memory_bytes);
}

CALL(cuDeviceTotalMem, unsigned *bytes, CUdevice dev)
{
	size_t total;

	return TELL(impl_cuDeviceTotalMem_v2(&total, dev), bytes,
		    total > UINT32_MAX ? UINT32_MAX : (unsigned)total);
}

CALL(cuDeviceComputeCapability, int *major, int *minor, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = (int)device->config.compute_major;
	*minor = (int)device->config.compute_minor;
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetAttribute, int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);
	int value;

	if (r != CUDA_SUCCESS)
		return r;
	value = device_attribute(device, attrib);
	if (!pi || value == DEVICE_ATTRIBUTE_UNKNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = value;
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetProperties, CUdevprop *prop, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);
	int i;

	if (r != CUDA_SUCCESS)
		return r;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
#define ATTRIBUTE(name) device_attribute(device, CU_DEVICE_ATTRIBUTE_##name)
	prop->maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK);
	for (i = 0; i < 3; i++) {
		prop->maxThreadsDim[i] =
			device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
		prop->maxGridSize[i] =
			device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
	}
	prop->sharedMemPerBlock = ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK);
	prop->totalConstantMemory = ATTRIBUTE(TOTAL_CONSTANT_MEMORY);
	prop->SIMDWidth = ATTRIBUTE(WARP_SIZE);
	prop->memPitch = ATTRIBUTE(MAX_PITCH);
	prop->regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK);
	prop->clockRate = ATTRIBUTE(CLOCK_RATE);
	prop->textureAlign = ATTRIBUTE(TEXTURE_ALIGNMENT);
#undef ATTRIBUTE
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetPCIBusId, char *pciBusId, int len, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);
	int n;

	if (r != CUDA_SUCCESS)
		return r;
	if (!pciBusId || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	n = snprintf(pciBusId, (size_t)len, "%04X:%02X:%02X.0", device->config.pci_domain,
		     device->config.pci_bus, device->config.pci_device);
	return n < len ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* "domain:bus:device.function", with the domain and the function left out or not. */
static bool parse_pci(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
	unsigned function = 0;
	int end = 0;

	if (sscanf(text, "%8x:%2x:%2x%n", domain, bus, device, &end) != 3) {
		*domain = 0;
		end = 0;
		if (sscanf(text, "%2x:%2x%n", bus, device, &end) != 2)
			return false;
	}
	text += end;
	if (*text == '.') {
		if (sscanf(text, ".%1x%n", &function, &end) != 1)
			return false;
		text += end;
	}
	return !*text && function == 0;
}

CALL(cuDeviceGetByPCIBusId, CUdevice *dev, const char *pciBusId)
{
	unsigned domain, bus, place, i;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!dev || !pciBusId || !parse_pci(pciBusId, &domain, &bus, &place))
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < driver.n_devices; i++) {
		const struct softgpu_device_config *config = &driver.devices[i].config;

		if (config->pci_domain == domain && config->pci_bus == bus &&
		    config->pci_device == place) {
			*dev = driver.devices[i].ordinal;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CALL(cuDeviceGetTexture1DLinearMaxWidth, size_t *maxWidthInElements, _unused_ CUarray_format format,
     unsigned numChannels, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!maxWidthInElements || (numChannels != 1 && numChannels != 2 && numChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	*maxWidthInElements = (size_t)device_attribute(
		device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
	return CUDA_SUCCESS;
}

/* A share of the multiprocessors is what the real driver gives to clients of MPS only. */
CALL(cuDeviceGetExecAffinitySupport, int *pi, CUexecAffinityType type, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!pi || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;
	return CUDA_SUCCESS;
}
