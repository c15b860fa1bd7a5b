// SPDX-License-Identifier: Apache-2.0
/* Attributes of pools, and which devices may reach their memory. */
#include "softgpu/cuda/memory/pool.h"

/* The field of an attribute that is a switch, or NULL. */
static int *reuse_field(struct pool *pool, CUmemPool_attribute attribute)
{
	if (attribute < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	    attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		return NULL;
	return &pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
}

/* The field of a 64-bit attribute, or NULL. */
static uint64_t *attribute_field(struct pool *pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

/* The pool, where it has the attribute and there is something at @value. */
static CUresult attribute_find(CUmemoryPool handle, CUmemPool_attribute attribute,
			       const void *value, struct pool **ret)
{
	CUresult r = pool_find(handle, ret);

	if (r != CUDA_SUCCESS)
		return r;
	if (!value || (!reuse_field(*ret, attribute) && !attribute_field(*ret, attribute)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CALL(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *ret)
{
	struct pool *pool;
	CUresult r = attribute_find(handle, attribute, ret, &pool);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&memory_lock);
	if (reuse_field(pool, attribute))
		*(int *)ret = *reuse_field(pool, attribute);
	else
		*(cuuint64_t *)ret = *attribute_field(pool, attribute);
	pthread_mutex_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

/* High-water marks can only be reset, which means to what is now. */
static CUresult attribute_set(struct pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		pool_unsettle(pool);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->reserved_high = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CALL(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct pool *pool;
	CUresult r = attribute_find(handle, attribute, value, &pool);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&memory_lock);
	if (reuse_field(pool, attribute))
		*reuse_field(pool, attribute) = *(int *)value != 0;
	else
		r = attribute_set(pool, attribute, *(cuuint64_t *)value);
	pthread_mutex_unlock(&memory_lock);
	return r;
}

/* Access of other devices */

static CUresult pool_device(const CUmemLocation *location, struct device **ret)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;

	return device_find(location->id, ret);
}

static CUresult access_check(const struct pool *pool, const CUmemAccessDesc *desc, size_t count)
{
	struct device *device;
	CUresult r;

	for (size_t i = 0; i < count; i++) {
		r = pool_device(&desc[i].location, &device);
		if (r != CUDA_SUCCESS)
			return r;
		if (!access_flags_are_valid(desc[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
		/* The device that has the memory cannot be locked out. */
		if (device == pool->device && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

CALL(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc *desc, size_t count)
{
	struct device *device;
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!desc && count > 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = access_check(pool, desc, count);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	for (size_t i = 0; i < count; i++)
		if (pool_device(&desc[i].location, &device) == CUDA_SUCCESS)
			access_set(&pool->access, 1ULL << device->ordinal, desc[i].flags);
	pool_show(pool);
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

CALL(cuMemPoolGetAccess, CUmemAccess_flags *ret, CUmemoryPool handle, CUmemLocation *location)
{
	struct device *device;
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !location)
		return CUDA_ERROR_INVALID_VALUE;

	r = pool_device(location, &device);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	*ret = access_get(&pool->access, 1ULL << device->ordinal);
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}
