// SPDX-License-Identifier: Apache-2.0
/*
 * Arrays and mipmapped arrays.
 *
 * Their layout is the driver's secret, so it is the simplest one: rows of elements, layer after
 * layer. Copies read them so, and textures and surfaces (texture.c). Sparse arrays and those that are
 * mapped later are not supported.
 *
 * A level of a mipmapped array is an array without memory of its own. memory_lock guards the life
 * of both.
 */
#include "softgpu/cuda/memory/array.h"

#include <stdlib.h>

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream.h"

/* Rows begin at multiples of this. */
#define ROW_ALIGN 32ULL

/* The largest extents, as cuDeviceGetAttribute() tells them for textures. */
#define EXTENT_1D_MAX 131072
#define EXTENT_2D_MAX 131072
#define EXTENT_3D_MAX 16384
#define N_LAYERS_MAX  2048
#define N_CUBE_FACES  6

#define FLAGS_KNOWN                                                                                \
	(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |                 \
	 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT)
#define FLAGS_UNSUPPORTED                                                                          \
	(CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)

struct array {
	CUarray handle;
	CUDA_ARRAY3D_DESCRIPTOR desc; /* as asked for: a height or depth of 0 stays 0 */
	struct array_layout layout;
	struct memory *memory; /* NULL for a level, which goes with its mipmapped array */
};

struct mipmap {
	CUmipmappedArray handle;
	struct memory *memory;
	unsigned n_levels;
	struct array levels[ARRAY_LEVELS_MAX];
};

/* Bytes of one channel, or of all where the format says how many there are; 0: not supported. */
static size_t format_size(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
		return 4;
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 8;
	default:
		return 0;
	}
}

static size_t element_size(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	bool channels_in_format = desc->Format >= CU_AD_FORMAT_UNORM_INT8X1 &&
				  desc->Format <= CU_AD_FORMAT_SNORM_INT16X4;

	return format_size(desc->Format) * (channels_in_format ? 1 : desc->NumChannels);
}

static bool layers_are_valid(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;

	if (desc->Flags & CUDA_ARRAY3D_CUBEMAP)
		return desc->Width == desc->Height && desc->Depth % N_CUBE_FACES == 0 &&
		       desc->Depth > 0 && desc->Depth <= N_LAYERS_MAX &&
		       (layered || desc->Depth == N_CUBE_FACES);

	return desc->Depth > 0 && desc->Depth <= N_LAYERS_MAX;
}

static bool extents_are_valid(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	if (desc->Width == 0)
		return false;
	if (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
		return layers_are_valid(desc) && desc->Width <= EXTENT_2D_MAX &&
		       desc->Height <= EXTENT_2D_MAX;
	if (desc->Depth > 0)
		return desc->Height > 0 && desc->Width <= EXTENT_3D_MAX &&
		       desc->Height <= EXTENT_3D_MAX && desc->Depth <= EXTENT_3D_MAX;
	if (desc->Height > 0)
		return desc->Width <= EXTENT_2D_MAX && desc->Height <= EXTENT_2D_MAX;

	return desc->Width <= EXTENT_1D_MAX;
}

static CUresult desc_check(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	unsigned channels = desc->NumChannels;

	if (desc->Flags & FLAGS_UNSUPPORTED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (desc->Flags & ~FLAGS_KNOWN || (channels != 1 && channels != 2 && channels != 4) ||
	    !format_size(desc->Format) || !extents_are_valid(desc))
		return CUDA_ERROR_INVALID_VALUE;

	return CUDA_SUCCESS;
}

static size_t at_least_one(size_t n)
{
	return n ? n : 1;
}

/* Nothing can overflow: 2^17 elements of 16 bytes, 2^17 rows, 2^11 layers. */
static size_t layout_make(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t addr,
			  struct array_layout *ret)
{
	size_t element = element_size(desc), width = desc->Width * element;

	*ret = (struct array_layout){
		.addr = addr,
		.element = element,
		.width = width,
		.height = at_least_one(desc->Height),
		.depth = at_least_one(desc->Depth),
		.pitch = (width + ROW_ALIGN - 1) & ~(ROW_ALIGN - 1),
	};
	ret->slice = ret->pitch * ret->height;
	return ret->slice * ret->depth;
}

static size_t layout_size(const struct array_layout *layout)
{
	return layout->slice * layout->depth;
}

static void array_end(struct memory *memory)
{
	struct array *array = memory->owner;

	pthread_mutex_lock(&memory_lock);
	handle_remove(HANDLE_ARRAY, array->handle);
	pthread_mutex_unlock(&memory_lock);
	memory_free(memory);
	free(array);
}

/* Memory for @bytes that ends by @end, or the context's error, or that of a capture. */
static CUresult backing_new(size_t bytes, void (*end)(struct memory *), void *owner,
			    struct memory **ret)
{
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = memory_begin(&ctx);
	if (r == CUDA_SUCCESS)
		r = memory_new(MEMORY_ARRAY, memory_vram(ctx->device), ctx, ctx->device, bytes,
			       &memory);
	if (r != CUDA_SUCCESS)
		return r;

	memory->end = end;
	memory->owner = owner;
	*ret = memory;
	return CUDA_SUCCESS;
}

static CUresult array_new(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct array *array;
	CUresult r;

	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;

	array->desc = *desc;
	r = backing_new(layout_make(desc, 0, &array->layout), array_end, array, &array->memory);
	if (r != CUDA_SUCCESS) {
		free(array);
		return r;
	}

	array->layout.addr = memory_addr(array->memory);
	array->handle = handle_new(CUarray, HANDLE_ARRAY, array);
	if (!array->handle) {
		array_end(array->memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	*ret = array->handle;
	return CUDA_SUCCESS;
}

/* Structures of all ages have the same names. */
#define DESC_2D(d)                                                                                 \
	((CUDA_ARRAY3D_DESCRIPTOR){ .Width = (d)->Width,                                           \
				    .Height = (d)->Height,                                         \
				    .Format = (d)->Format,                                         \
				    .NumChannels = (d)->NumChannels })
#define DESC_3D(d)                                                                                 \
	((CUDA_ARRAY3D_DESCRIPTOR){ .Width = (d)->Width,                                           \
				    .Height = (d)->Height,                                         \
				    .Depth = (d)->Depth,                                           \
				    .Format = (d)->Format,                                         \
				    .NumChannels = (d)->NumChannels,                               \
				    .Flags = (d)->Flags })

static CUresult array_create(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUresult r;

	r = context_need();
	if (r == CUDA_SUCCESS)
		r = desc_check(desc);
	return r != CUDA_SUCCESS ? r : array_new(ret, desc);
}

#define ARRAY_CREATE(name, type, convert)                                                          \
	CALL(name, CUarray *ret, const type *desc)                                                 \
	{                                                                                          \
		if (!ret || !desc)                                                                 \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		return array_create(ret, &convert(desc));                                          \
	}

ARRAY_CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, DESC_2D)
ARRAY_CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, DESC_2D)
ARRAY_CREATE(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, DESC_3D)
ARRAY_CREATE(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, DESC_3D)

/* A copy of what an array is. */
static CUresult array_look(CUarray handle, struct array *ret)
{
	struct array *array;

	pthread_mutex_lock(&memory_lock);
	array = handle_get(HANDLE_ARRAY, handle);
	if (array)
		*ret = *array;
	pthread_mutex_unlock(&memory_lock);

	return array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult array_layout(CUarray handle, struct array_layout *ret)
{
	struct array array;
	CUresult r;

	r = array_look(handle, &array);
	if (r == CUDA_SUCCESS)
		*ret = array.layout;
	return r;
}

CUresult array_describe(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	struct array array;
	CUresult r;

	r = context_need();
	if (r == CUDA_SUCCESS)
		r = array_look(handle, &array);
	if (r == CUDA_SUCCESS)
		*ret = array.desc;
	return r;
}

#define FILL_2D(d)                                                                                 \
	{                                                                                          \
		.Width = (d).Width, .Height = (d).Height, .Format = (d).Format,                    \
		.NumChannels = (d).NumChannels                                                     \
	}
#define FILL_3D(d)                                                                                 \
	{                                                                                          \
		.Width = (d).Width, .Height = (d).Height, .Depth = (d).Depth,                      \
		.Format = (d).Format, .NumChannels = (d).NumChannels, .Flags = (d).Flags           \
	}

#define ARRAY_DESCRIBE(name, type, fill)                                                           \
	CALL(name, type *ret, CUarray handle)                                                      \
	{                                                                                          \
		CUDA_ARRAY3D_DESCRIPTOR desc;                                                      \
		CUresult r;                                                                        \
                                                                                                   \
		if (!ret)                                                                          \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		r = array_describe(handle, &desc);                                                 \
		if (r == CUDA_SUCCESS)                                                             \
			*ret = (type)fill(desc);                                                   \
		return r;                                                                          \
	}

ARRAY_DESCRIBE(cuArrayGetDescriptor, CUDA_ARRAY_DESCRIPTOR_v1, FILL_2D)
ARRAY_DESCRIBE(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR, FILL_2D)
ARRAY_DESCRIBE(cuArray3DGetDescriptor, CUDA_ARRAY3D_DESCRIPTOR_v1, FILL_3D)
ARRAY_DESCRIBE(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR, FILL_3D)

/* For the calls that end something: the memory, claimed so that nobody else ends it too. */
static CUresult backing_claim(enum handle_kind kind, void *handle, struct memory **ret)
{
	struct memory *memory = NULL;
	struct context *ctx;
	void *object;
	CUresult r;

	r = memory_begin(&ctx);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	object = handle_get(kind, handle);
	if (object)
		memory = kind == HANDLE_ARRAY ? ((struct array *)object)->memory
					      : ((struct mipmap *)object)->memory;
	if (memory && memory->is_freed)
		memory = NULL;
	if (memory)
		memory->is_freed = true;
	pthread_mutex_unlock(&memory_lock);
	if (!memory)
		return CUDA_ERROR_INVALID_HANDLE;

	*ret = memory;
	return CUDA_SUCCESS;
}

static CUresult backing_destroy(enum handle_kind kind, void *handle)
{
	struct memory *memory;
	CUresult r;

	r = backing_claim(kind, handle, &memory);
	return r != CUDA_SUCCESS ? r : memory_release(memory);
}

CALL(cuArrayDestroy, CUarray handle)
{
	return backing_destroy(HANDLE_ARRAY, handle);
}

static CUresult requirements(size_t bytes, CUdevice ordinal, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret)
{
	struct device *device;
	CUresult r;

	r = device_find(ordinal, &device);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	*ret = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = (bytes + SPACE_BLOCK_SIZE - 1) & ~(SPACE_BLOCK_SIZE - 1),
		.alignment = SPACE_BLOCK_SIZE,
	};
	return CUDA_SUCCESS;
}

CALL(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray handle,
     CUdevice device)
{
	struct array array;
	CUresult r;

	r = driver_check();
	if (r == CUDA_SUCCESS)
		r = array_look(handle, &array);
	return r != CUDA_SUCCESS ? r : requirements(layout_size(&array.layout), device, ret);
}

/* Planes belong to formats of video, none of which is supported. */
CALL(cuArrayGetPlane, _unused_ CUarray *ret, CUarray handle, _unused_ unsigned plane)
{
	struct array array;
	CUresult r;

	r = driver_check();
	if (r == CUDA_SUCCESS)
		r = array_look(handle, &array);
	return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
}

/* Mipmapped arrays */

static size_t halved(size_t extent, unsigned level)
{
	return extent ? at_least_one(extent >> level) : 0;
}

static CUDA_ARRAY3D_DESCRIPTOR level_desc(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR smaller = *desc;

	smaller.Width = halved(desc->Width, level);
	smaller.Height = halved(desc->Height, level);
	if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		smaller.Depth = halved(desc->Depth, level);
	return smaller;
}

/* As many as asked for, but at least one and not below a level of 1 by 1 by 1. */
static unsigned n_levels_of(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned asked)
{
	size_t extent = desc->Width > desc->Height ? desc->Width : desc->Height;
	unsigned n_max;

	if (!(desc->Flags & CUDA_ARRAY3D_LAYERED) && desc->Depth > extent)
		extent = desc->Depth;
	n_max = 64 - __builtin_clzll(extent);

	if (asked == 0)
		return 1;
	return asked < n_max ? asked : n_max;
}

static void mipmap_end(struct memory *memory)
{
	struct mipmap *mipmap = memory->owner;

	pthread_mutex_lock(&memory_lock);
	handle_remove(HANDLE_MIPMAPPED_ARRAY, mipmap->handle);
	for (unsigned i = 0; i < mipmap->n_levels; i++)
		handle_remove(HANDLE_ARRAY, mipmap->levels[i].handle);
	pthread_mutex_unlock(&memory_lock);
	memory_free(memory);
	free(mipmap);
}

/* Lays the levels out one after the other. Return: the size of all. */
static size_t levels_make(struct mipmap *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t size = 0;

	for (unsigned i = 0; i < mipmap->n_levels; i++) {
		mipmap->levels[i].desc = level_desc(desc, i);
		size += layout_make(&mipmap->levels[i].desc, size, &mipmap->levels[i].layout);
	}

	return size;
}

static bool mipmap_handles_make(struct mipmap *mipmap)
{
	for (unsigned i = 0; i < mipmap->n_levels; i++) {
		struct array *level = &mipmap->levels[i];

		level->layout.addr += memory_addr(mipmap->memory);
		level->handle = handle_new(CUarray, HANDLE_ARRAY, level);
		if (!level->handle)
			return false;
	}

	mipmap->handle = handle_new(CUmipmappedArray, HANDLE_MIPMAPPED_ARRAY, mipmap);
	return mipmap->handle;
}

CALL(cuMipmappedArrayCreate, CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc,
     unsigned n_levels)
{
	struct mipmap *mipmap;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !desc)
		return CUDA_ERROR_INVALID_VALUE;

	r = desc_check(desc);
	if (r != CUDA_SUCCESS)
		return r;

	mipmap = calloc(1, sizeof(*mipmap));
	if (!mipmap)
		return CUDA_ERROR_OUT_OF_MEMORY;

	mipmap->n_levels = n_levels_of(desc, n_levels);
	r = backing_new(levels_make(mipmap, desc), mipmap_end, mipmap, &mipmap->memory);
	if (r != CUDA_SUCCESS) {
		free(mipmap);
		return r;
	}

	if (!mipmap_handles_make(mipmap)) {
		mipmap_end(mipmap->memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	*ret = mipmap->handle;
	return CUDA_SUCCESS;
}

CALL(cuMipmappedArrayGetLevel, CUarray *ret, CUmipmappedArray handle, unsigned level)
{
	const struct mipmap *mipmap;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	mipmap = handle_get(HANDLE_MIPMAPPED_ARRAY, handle);
	if (!mipmap)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (level >= mipmap->n_levels)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*ret = mipmap->levels[level].handle;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CUresult mipmap_levels(CUmipmappedArray handle, CUarray ret[ARRAY_LEVELS_MAX], unsigned *ret_n)
{
	const struct mipmap *mipmap;

	pthread_mutex_lock(&memory_lock);
	mipmap = handle_get(HANDLE_MIPMAPPED_ARRAY, handle);
	for (unsigned i = 0; mipmap && i < mipmap->n_levels; i++)
		ret[i] = mipmap->levels[i].handle;
	*ret_n = mipmap ? mipmap->n_levels : 0;
	pthread_mutex_unlock(&memory_lock);

	return mipmap ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CALL(cuMipmappedArrayDestroy, CUmipmappedArray handle)
{
	return backing_destroy(HANDLE_MIPMAPPED_ARRAY, handle);
}

CALL(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret,
     CUmipmappedArray handle, CUdevice device)
{
	const struct mipmap *mipmap;
	size_t bytes = 0;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	mipmap = handle_get(HANDLE_MIPMAPPED_ARRAY, handle);
	if (mipmap)
		bytes = memory_size(mipmap->memory);
	pthread_mutex_unlock(&memory_lock);

	return mipmap ? requirements(bytes, device, ret) : CUDA_ERROR_INVALID_HANDLE;
}
