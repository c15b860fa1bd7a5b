// SPDX-License-Identifier: Apache-2.0
/*
 * What an address is. The host's driver knows; of managed memory, which it takes for registered host memory,
 * the guest says what it is for the program.
 */
#include "forward/guest/call.h"
#include "forward/guest/memory.h"

#include <string.h>

/* Bytes of an attribute's value; 0 where there is no such attribute. */
static size_t attribute_size(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return sizeof(unsigned);
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return sizeof(uint64_t);
	default:
		return 0;
	}
}

static void say_managed(CUpointer_attribute attribute, void *data)
{
	unsigned value;

	if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
		value = 1;
	else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
		value = CU_MEMORYTYPE_DEVICE;
	else
		return;
	memcpy(data, &value, sizeof(value));
}

CALL(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	const uint64_t words[] = { (uint32_t)attribute, ptr };
	size_t size = attribute_size(attribute), answered;
	const uint8_t *answer;
	struct guest_lane *l;
	struct memory memory;
	void *body;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!data || !size)
		return CUDA_ERROR_INVALID_VALUE;
	r = call_begin(CALL_ID_cuPointerGetAttribute, sizeof(words), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	r = lane_ask(l, &answer, &answered);
	if (r == CUDA_SUCCESS && answered >= size)
		memcpy(data, answer, size);
	if (r == CUDA_SUCCESS && memory_find(ptr, &memory) && memory.kind == MEMORY_MANAGED)
		say_managed(attribute, data);
	return lane_error(l, r);
}

/* Of an address that nobody knows each attribute has the value that says so. */
CALL(cuPointerGetAttributes, unsigned n, CUpointer_attribute *attributes, void **data,
     CUdeviceptr ptr)
{
	static const int no_device = CU_DEVICE_INVALID;
	CUresult r = session_check();
	unsigned i;

	if (r != CUDA_SUCCESS)
		return r;
	if (n == 0 || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++) {
		if (!data[i] || !attribute_size(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
		r = cuPointerGetAttribute(data[i], attributes[i], ptr);
		if (r == DEVICE_LOST)
			return r;
		if (r == CUDA_SUCCESS)
			continue;
		memset(data[i], 0, attribute_size(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			memcpy(data[i], &no_device, sizeof(no_device));
	}
	return CUDA_SUCCESS;
}
