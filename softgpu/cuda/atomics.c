// SPDX-License-Identifier: Apache-2.0
/*
 * Which atomic operations reach beyond a device's own memory. All memory is the host's and they
 * are the host's own instructions, so host and peers have the same, those of 32 and 64 bits.
 */
#include "softgpu/cuda/core.h"

static unsigned capabilities_of(CUatomicOperation operation)
{
	const unsigned sizes = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;

	switch (operation) {
	case CU_ATOMIC_OPERATION_INTEGER_ADD:
	case CU_ATOMIC_OPERATION_INTEGER_MIN:
	case CU_ATOMIC_OPERATION_INTEGER_MAX:
		return CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED |
		       CU_ATOMIC_CAPABILITY_REDUCTION | sizes;
	case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
	case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:
		return CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION |
		       CU_ATOMIC_CAPABILITY_SCALAR_32;
	case CU_ATOMIC_OPERATION_AND:
	case CU_ATOMIC_OPERATION_OR:
	case CU_ATOMIC_OPERATION_XOR:
	case CU_ATOMIC_OPERATION_FLOAT_ADD:
		return CU_ATOMIC_CAPABILITY_REDUCTION | sizes;
	case CU_ATOMIC_OPERATION_EXCHANGE:
	case CU_ATOMIC_OPERATION_CAS:
		return sizes;
	default:
		return 0;
	}
}

static CUresult tell(unsigned *capabilities, const CUatomicOperation *operations, unsigned count)
{
	unsigned i;

	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (operations[i] >= CU_ATOMIC_OPERATION_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++)
		capabilities[i] = capabilities_of(operations[i]);
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetHostAtomicCapabilities, unsigned *capabilities, const CUatomicOperation *operations,
     unsigned count, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	return r == CUDA_SUCCESS ? tell(capabilities, operations, count) : r;
}

CALL(cuDeviceGetP2PAtomicCapabilities, unsigned *capabilities, const CUatomicOperation *operations,
     unsigned count, CUdevice srcDevice, CUdevice dstDevice)
{
	struct device *device, *peer;
	CUresult r = device_find(srcDevice, &device);

	if (r == CUDA_SUCCESS)
		r = device_find(dstDevice, &peer);
	if (r != CUDA_SUCCESS)
		return r;
	return device == peer ? CUDA_ERROR_INVALID_DEVICE : tell(capabilities, operations, count);
}
