// SPDX-License-Identifier: Apache-2.0
/*
 * Texture and surface objects.
 *
 * A kernel is given the handle and nothing else, and looks it up at every access (softgpu/exec). It may
 * still run when the program ends the object, so an object's memory is never given back: what has
 * ended is used again for the next one.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/core.h"
#include "softgpu/cuda/memory/array.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/exec/texture.h"

#define FLAGS_KNOWN                                                                                \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |                 \
	 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

/* What cuDeviceGetAttribute() tells of linear memory under a texture. */
#define ALIGNMENT	512
#define PITCH_ALIGNMENT 32
#define LINE_MAX	(1u << 28)
#define WIDTH_MAX	131072
#define HEIGHT_MAX	65000

struct object {
	struct exec_texture texture; /* first: what kernels find */
	unsigned long long handle;
	enum handle_kind kind;
	struct context *ctx;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampling;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
	struct object *next; /* of those that are, or of those that have ended */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two lists */
static struct object *objects, *ended;

static const struct exec_texture *find_texture(uint64_t handle)
{
	return handle_get(HANDLE_TEXTURE, handle);
}

static const struct exec_texture *find_surface(uint64_t handle)
{
	return handle_get(HANDLE_SURFACE, handle);
}

/* ---- formats ------------------------------------------------------------------------------------ */

/* Each of a channel; those whose name counts channels have them themselves. */
static const struct {
	CUarray_format format;
	uint8_t exec, n_channels;
} formats[] = {
	{ CU_AD_FORMAT_UNSIGNED_INT8, EXEC_FORMAT_U8, 0 },
	{ CU_AD_FORMAT_UNSIGNED_INT16, EXEC_FORMAT_U16, 0 },
	{ CU_AD_FORMAT_UNSIGNED_INT32, EXEC_FORMAT_U32, 0 },
	{ CU_AD_FORMAT_SIGNED_INT8, EXEC_FORMAT_S8, 0 },
	{ CU_AD_FORMAT_SIGNED_INT16, EXEC_FORMAT_S16, 0 },
	{ CU_AD_FORMAT_SIGNED_INT32, EXEC_FORMAT_S32, 0 },
	{ CU_AD_FORMAT_HALF, EXEC_FORMAT_F16, 0 },
	{ CU_AD_FORMAT_FLOAT, EXEC_FORMAT_F32, 0 },
	{ CU_AD_FORMAT_UNORM_INT8X1, EXEC_FORMAT_U8, 1 },
	{ CU_AD_FORMAT_UNORM_INT8X2, EXEC_FORMAT_U8, 2 },
	{ CU_AD_FORMAT_UNORM_INT8X4, EXEC_FORMAT_U8, 4 },
	{ CU_AD_FORMAT_UNORM_INT16X1, EXEC_FORMAT_U16, 1 },
	{ CU_AD_FORMAT_UNORM_INT16X2, EXEC_FORMAT_U16, 2 },
	{ CU_AD_FORMAT_UNORM_INT16X4, EXEC_FORMAT_U16, 4 },
	{ CU_AD_FORMAT_SNORM_INT8X1, EXEC_FORMAT_S8, 1 },
	{ CU_AD_FORMAT_SNORM_INT8X2, EXEC_FORMAT_S8, 2 },
	{ CU_AD_FORMAT_SNORM_INT8X4, EXEC_FORMAT_S8, 4 },
	{ CU_AD_FORMAT_SNORM_INT16X1, EXEC_FORMAT_S16, 1 },
	{ CU_AD_FORMAT_SNORM_INT16X2, EXEC_FORMAT_S16, 2 },
	{ CU_AD_FORMAT_SNORM_INT16X4, EXEC_FORMAT_S16, 4 },
};

/* Sets format, channels and whether its elements are floats already. */
static CUresult set_format(struct exec_texture *t, CUarray_format format, unsigned n_channels)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].format != format)
			continue;
		if (n_channels != 1 && n_channels != 2 && n_channels != 4)
			return CUDA_ERROR_INVALID_VALUE;
		t->format = formats[i].exec;
		t->n_channels = formats[i].n_channels ?: (uint8_t)n_channels;
		t->is_float = formats[i].n_channels || format == CU_AD_FORMAT_HALF ||
			      format == CU_AD_FORMAT_FLOAT;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static uint32_t element_bytes(const struct exec_texture *t)
{
	return t->n_channels * exec_format_bytes(t->format);
}

/* ---- resources ---------------------------------------------------------------------------------- */

static CUresult set_array(struct exec_texture *t, CUarray array, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct array_layout layout;
	CUresult r;

	r = array_describe(array, &desc);
	if (r == CUDA_SUCCESS)
		r = array_layout(array, &layout);
	if (r == CUDA_SUCCESS)
		r = set_format(t, desc.Format, desc.NumChannels);
	if (r != CUDA_SUCCESS)
		return r;

	t->is_layered = desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	t->n_levels = level + 1;
	t->levels[level] = (struct exec_texels){
		.addr = layout.addr,
		.pitch = layout.pitch,
		.slice = layout.slice,
		.width = (uint32_t)desc.Width,
		.height = (uint32_t)layout.height,
		.depth = (uint32_t)layout.depth,
	};
	return CUDA_SUCCESS;
}

static CUresult set_mipmap(struct exec_texture *t, CUmipmappedArray mipmap)
{
	CUarray levels[ARRAY_LEVELS_MAX];
	unsigned n = 0;
	CUresult r;

	r = mipmap_levels(mipmap, levels, &n);
	for (unsigned i = 0; r == CUDA_SUCCESS && i < n; i++)
		r = set_array(t, levels[i], i);
	return r;
}

static CUresult set_linear(struct exec_texture *t, const CUDA_RESOURCE_DESC *desc)
{
	size_t n;
	CUresult r;

	r = set_format(t, desc->res.linear.format, desc->res.linear.numChannels);
	if (r != CUDA_SUCCESS)
		return r;
	n = desc->res.linear.sizeInBytes / element_bytes(t);
	if (n == 0 || n > LINE_MAX || desc->res.linear.devPtr % ALIGNMENT ||
	    !memory_check(desc->res.linear.devPtr, desc->res.linear.sizeInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	t->is_buffer = true;
	t->n_levels = 1;
	t->levels[0] = (struct exec_texels){
		.addr = desc->res.linear.devPtr,
		.width = (uint32_t)n,
		.height = 1,
		.depth = 1,
	};
	return CUDA_SUCCESS;
}

static CUresult set_pitch(struct exec_texture *t, const CUDA_RESOURCE_DESC *desc)
{
	size_t width = desc->res.pitch2D.width, height = desc->res.pitch2D.height;
	size_t pitch = desc->res.pitch2D.pitchInBytes;
	CUdeviceptr addr = desc->res.pitch2D.devPtr;
	CUresult r;

	r = set_format(t, desc->res.pitch2D.format, desc->res.pitch2D.numChannels);
	if (r != CUDA_SUCCESS)
		return r;
	if (width == 0 || width > WIDTH_MAX || height == 0 || height > HEIGHT_MAX ||
	    addr % ALIGNMENT || pitch % PITCH_ALIGNMENT || width * element_bytes(t) > pitch ||
	    !memory_check(addr, (height - 1) * pitch + width * element_bytes(t)))
		return CUDA_ERROR_INVALID_VALUE;
	t->n_levels = 1;
	t->levels[0] = (struct exec_texels){
		.addr = addr,
		.pitch = pitch,
		.slice = pitch * height,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.depth = 1,
	};
	return CUDA_SUCCESS;
}

static CUresult set_resource(struct exec_texture *t, const CUDA_RESOURCE_DESC *desc)
{
	if (desc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return set_array(t, desc->res.array.hArray, 0);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return set_mipmap(t, desc->res.mipmap.hMipmappedArray);
	case CU_RESOURCE_TYPE_LINEAR:
		return set_linear(t, desc);
	case CU_RESOURCE_TYPE_PITCH2D:
		return set_pitch(t, desc);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---- views -------------------------------------------------------------------------------------- */

/* Another format of the same size. Compressed ones are not there. */
static CUresult view_format(struct exec_texture *t, CUresourceViewFormat format)
{
	static const CUarray_format kinds[] = {
		CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
		CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
		CU_AD_FORMAT_HALF,	     CU_AD_FORMAT_FLOAT,
	};
	uint32_t bytes = element_bytes(t);
	CUresult r;

	if (format == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_SUCCESS;
	if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32)
		return format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ? CUDA_ERROR_NOT_SUPPORTED
								 : CUDA_ERROR_INVALID_VALUE;
	r = set_format(t, kinds[(format - 1) / 3], 1u << (format - 1) % 3);
	return r == CUDA_SUCCESS && element_bytes(t) != bytes ? CUDA_ERROR_INVALID_VALUE : r;
}

/* A part of the levels and of the layers. */
static CUresult view_part(struct exec_texture *t, const CUDA_RESOURCE_VIEW_DESC *view)
{
	unsigned n_levels = view->lastMipmapLevel - view->firstMipmapLevel + 1;

	if (view->lastMipmapLevel >= t->n_levels ||
	    view->firstMipmapLevel > view->lastMipmapLevel || view->lastLayer < view->firstLayer ||
	    (view->lastLayer && (!t->is_layered || view->lastLayer >= t->levels[0].depth)))
		return CUDA_ERROR_INVALID_VALUE;
	memmove(t->levels, t->levels + view->firstMipmapLevel, n_levels * sizeof(t->levels[0]));
	t->n_levels = n_levels;
	for (unsigned i = 0; t->is_layered && i < n_levels; i++) {
		t->levels[i].addr += view->firstLayer * t->levels[i].slice;
		t->levels[i].depth = view->lastLayer - view->firstLayer + 1;
	}
	return CUDA_SUCCESS;
}

/* ---- sampling ----------------------------------------------------------------------------------- */

static bool mode_is_valid(const CUDA_TEXTURE_DESC *desc)
{
	for (int i = 0; i < 3; i++) {
		if (desc->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return false;
	}
	return desc->filterMode <= CU_TR_FILTER_MODE_LINEAR &&
	       desc->mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR && !(desc->flags & ~FLAGS_KNOWN);
}

static CUresult set_sampling(struct exec_texture *t, const CUDA_TEXTURE_DESC *desc)
{
	bool small = exec_format_bytes(t->format) < 4 && t->format != EXEC_FORMAT_F16;

	if (!mode_is_valid(desc))
		return CUDA_ERROR_INVALID_VALUE;
	/* Integers of 8 and 16 bits become floats, unless they are asked for as they are. */
	if (small && !(desc->flags & CU_TRSF_READ_AS_INTEGER))
		t->is_float = true;
	t->linear = desc->filterMode == CU_TR_FILTER_MODE_LINEAR;
	t->linear_levels = desc->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	if ((t->linear || t->linear_levels) && !t->is_float)
		return CUDA_ERROR_INVALID_VALUE;
	t->normalized = desc->flags & CU_TRSF_NORMALIZED_COORDINATES;
	t->is_srgb = desc->flags & CU_TRSF_SRGB && t->format == EXEC_FORMAT_U8;
	t->bias = desc->mipmapLevelBias;
	t->least_level = desc->minMipmapLevelClamp;
	t->most_level = desc->maxMipmapLevelClamp;
	for (int i = 0; i < 3; i++)
		t->address[i] = (uint8_t)desc->addressMode[i];
	memcpy(t->border, desc->borderColor, sizeof(t->border));
	/* A line is read at its elements, and what is outside of it is zero. */
	if (t->is_buffer)
		t->linear = t->normalized = false;
	return CUDA_SUCCESS;
}

/* ---- objects ------------------------------------------------------------------------------------ */

/* One that has ended, or a new one; under the lock. */
static struct object *object_take(void)
{
	struct object *o = ended;

	if (o)
		ended = o->next;
	else
		o = malloc(sizeof(*o));
	return o;
}

static CUresult object_new(const struct object *like, unsigned long long *ret)
{
	struct object *o;

	exec_find_texture = find_texture;
	exec_find_surface = find_surface;
	pthread_mutex_lock(&lock);
	o = object_take();
	if (o) {
		*o = *like;
		o->handle = handle_new_(o->kind, o);
		o->next = o->handle ? objects : ended;
		*(o->handle ? &objects : &ended) = o;
	}
	pthread_mutex_unlock(&lock);
	if (!o || !o->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = o->handle;
	return CUDA_SUCCESS;
}

/* Ends those that @which says, or one of a handle. Under the lock. Return: whether there was any. */
static bool objects_end(const struct context *ctx, enum handle_kind kind, unsigned long long handle)
{
	bool any = false;

	for (struct object **at = &objects, *o; (o = *at);) {
		if (ctx ? o->ctx != ctx : o->kind != kind || o->handle != handle) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		handle_remove_(o->kind, o->handle);
		o->next = ended;
		ended = o;
		any = true;
	}
	return any;
}

static CUresult object_end(enum handle_kind kind, unsigned long long handle)
{
	struct context *ctx;
	CUresult r;
	bool any;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	any = objects_end(NULL, kind, handle);
	pthread_mutex_unlock(&lock);
	return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void context_objects_end(struct context *ctx)
{
	pthread_mutex_lock(&lock);
	objects_end(ctx, HANDLE_TEXTURE, 0);
	pthread_mutex_unlock(&lock);
}
CONTEXT_PART(textures, .order = 15, .end = context_objects_end);

/* A copy of an object, whoever ends it meanwhile. */
static CUresult object_look(enum handle_kind kind, unsigned long long handle, struct object *ret)
{
	const struct object *o;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	o = handle_get(kind, handle);
	if (o)
		*ret = *o;
	pthread_mutex_unlock(&lock);
	return o ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuTexObjectCreate, CUtexObject *ret, const CUDA_RESOURCE_DESC *resource,
     const CUDA_TEXTURE_DESC *sampling, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct object o = { .kind = HANDLE_TEXTURE, .has_view = view };
	CUresult r;

	r = context_current(&o.ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !resource || !sampling)
		return CUDA_ERROR_INVALID_VALUE;
	r = set_resource(&o.texture, resource);
	/* Views are of arrays. */
	if (r == CUDA_SUCCESS && view)
		r = resource->resType > CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
			    ? CUDA_ERROR_INVALID_VALUE
			    : view_format(&o.texture, view->format);
	if (r == CUDA_SUCCESS && view)
		r = view_part(&o.texture, view);
	if (r == CUDA_SUCCESS)
		r = set_sampling(&o.texture, sampling);
	if (r != CUDA_SUCCESS)
		return r;
	o.resource = *resource;
	o.sampling = *sampling;
	if (view)
		o.view = *view;
	return object_new(&o, ret);
}

CALL(cuTexObjectDestroy, CUtexObject texture)
{
	return object_end(HANDLE_TEXTURE, texture);
}

CALL(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC *ret, CUtexObject texture)
{
	struct object o;

	return TELL(object_look(HANDLE_TEXTURE, texture, &o), ret, o.resource);
}

CALL(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC *ret, CUtexObject texture)
{
	struct object o;

	return TELL(object_look(HANDLE_TEXTURE, texture, &o), ret, o.sampling);
}

CALL(cuTexObjectGetResourceViewDesc, CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject texture)
{
	struct object o;
	CUresult r;

	r = object_look(HANDLE_TEXTURE, texture, &o);
	if (r == CUDA_SUCCESS && !o.has_view)
		r = CUDA_ERROR_INVALID_VALUE;
	return TELL(r, ret, o.view);
}

CALL(cuSurfObjectCreate, CUsurfObject *ret, const CUDA_RESOURCE_DESC *resource)
{
	struct object o = { .kind = HANDLE_SURFACE };
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUresult r;

	r = context_current(&o.ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !resource || resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	r = array_describe(resource->res.array.hArray, &desc);
	if (r == CUDA_SUCCESS && !(desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = set_resource(&o.texture, resource);
	if (r != CUDA_SUCCESS)
		return r;
	o.resource = *resource;
	return object_new(&o, ret);
}

CALL(cuSurfObjectDestroy, CUsurfObject surface)
{
	return object_end(HANDLE_SURFACE, surface);
}

CALL(cuSurfObjectGetResourceDesc, CUDA_RESOURCE_DESC *ret, CUsurfObject surface)
{
	struct object o;

	return TELL(object_look(HANDLE_SURFACE, surface, &o), ret, o.resource);
}
