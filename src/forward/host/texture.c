// SPDX-License-Identifier: Apache-2.0
/* What a description names is looked up here; the sizes and the formats in it are the driver's to judge. */
#include "forward/host/texture.h"

#include "base/base.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/memory.h"

#include <string.h>

#define MAX_CHANNELS 4

/* Textures and surfaces may have the same numbers. */
static enum handle_kind kind_of(enum call_id id)
{
	switch (id) {
	case CALL_ID_cuSurfObjectCreate:
	case CALL_ID_cuSurfObjectDestroy:
	case CALL_ID_cuSurfObjectGetResourceDesc:
		return HANDLE_SURFACE;
	default:
		return HANDLE_TEXTURE;
	}
}

/* At most: of formats that count their channels themselves none has wider ones. */
static unsigned channel_size(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

/* Rows of memory. Of the last one there need not be more than its elements. */
static bool rows_ok(const CUDA_RESOURCE_DESC *desc)
{
	unsigned n_channels = desc->res.pitch2D.numChannels;
	unsigned __int128 pitch = desc->res.pitch2D.pitchInBytes, reach;

	if (desc->res.pitch2D.height == 0 || n_channels > MAX_CHANNELS)
		return false;
	reach = (unsigned __int128)desc->res.pitch2D.width * n_channels *
		channel_size(desc->res.pitch2D.format);
	reach = (desc->res.pitch2D.height - 1) * pitch + MIN(reach, pitch);
	return reach <= UINT64_MAX && range_ok(desc->res.pitch2D.devPtr, (uint64_t)reach);
}

static bool resource_take(CUDA_RESOURCE_DESC *desc)
{
	uint64_t object;

	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (handle_get(HANDLE_ARRAY, POINTER(desc->res.array.hArray), &object) < 0)
			return false;
		desc->res.array.hArray = (CUarray)object;
		return true;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (handle_get(HANDLE_MIPMAPPED_ARRAY, POINTER(desc->res.mipmap.hMipmappedArray),
			       &object) < 0)
			return false;
		desc->res.mipmap.hMipmappedArray = (CUmipmappedArray)object;
		return true;
	case CU_RESOURCE_TYPE_LINEAR:
		return range_ok(desc->res.linear.devPtr, desc->res.linear.sizeInBytes);
	case CU_RESOURCE_TYPE_PITCH2D:
		return rows_ok(desc);
	default:
		return false;
	}
}

/* The guest's names in place of the driver's objects. */
static void resource_name(CUDA_RESOURCE_DESC *desc)
{
	if (desc->resType == CU_RESOURCE_TYPE_ARRAY)
		desc->res.array.hArray =
			(CUarray)handle_put(HANDLE_ARRAY, POINTER(desc->res.array.hArray));
	else if (desc->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		desc->res.mipmap.hMipmappedArray = (CUmipmappedArray)handle_put(
			HANDLE_MIPMAPPED_ARRAY, POINTER(desc->res.mipmap.hMipmappedArray));
}

static CUresult driver_destroy(enum handle_kind kind, uint64_t object)
{
	return kind == HANDLE_TEXTURE ? DRIVER(cuTexObjectDestroy, object)
				      : DRIVER(cuSurfObjectDestroy, object);
}

/* The object's place, its resource; for a texture then how it is read, and the view. */
CUresult texture_create(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const CUDA_RESOURCE_DESC *asked = (const CUDA_RESOURCE_DESC *)words[1];
	const uint64_t *object = (const uint64_t *)words[0];
	uint64_t own[CALL_N_ARGUMENTS_MAX];
	CUDA_RESOURCE_DESC resource;
	CUresult r;

	if (!object || !asked)
		return CUDA_ERROR_INVALID_VALUE;
	resource = *asked;
	if (!resource_take(&resource))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(own, words, sizeof(own));
	own[1] = POINTER(&resource);
	r = driver_call(id, own);
	if (r != CUDA_SUCCESS || handle_put(kind_of(id), *object))
		return r;
	driver_destroy(kind_of(id), *object);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult texture_destroy(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	enum handle_kind kind = kind_of(id);
	uint64_t name = handle_find(kind, words[0]);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	handle_drop(name);
	return driver_destroy(kind, words[0]);
}

/* Where to, and of which object. */
CUresult texture_describe(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	CUresult r;

	if (!words[0] || !handle_find(kind_of(id), words[1]))
		return CUDA_ERROR_INVALID_VALUE;
	r = driver_call(id, words);
	if (r == CUDA_SUCCESS &&
	    (id == CALL_ID_cuTexObjectGetResourceDesc || id == CALL_ID_cuSurfObjectGetResourceDesc))
		resource_name((CUDA_RESOURCE_DESC *)words[0]);
	return r;
}
