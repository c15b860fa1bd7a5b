// SPDX-License-Identifier: Apache-2.0
/*
 * The linker: PTX goes in piece by piece, one image comes out.
 *
 * The image holds the text of all pieces (fatbin_link()), so it can be kept in a file and loaded
 * by another process. Whether they fit together is found out here all the same: completing links
 * them once, for the log.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/code/module.h"

struct link {
	CUlinkState handle;
	struct device *device;
	struct jit jit;
	struct fatbin_ptx *ptx;
	size_t n_ptx;
	void *image; /* once complete; lives until the link is destroyed */
};

static void link_free(struct link *link)
{
	for (size_t i = 0; i < link->n_ptx; i++)
		free(link->ptx[i].text);
	free(link->ptx);
	free(link->image);
	free(link);
}

static CUresult link_find(CUlinkState handle, struct link **ret)
{
	return FIND(handle_get(HANDLE_LINK, handle), CUDA_ERROR_INVALID_HANDLE, ret);
}

/* Moves the PTX of @image to the end of the link's. */
static CUresult link_take(struct link *link, struct fatbin_image *image)
{
	struct fatbin_ptx *ptx;

	ptx = realloc(link->ptx, (link->n_ptx + image->n_ptx) * sizeof(*ptx));
	if (!ptx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(ptx + link->n_ptx, image->ptx, image->n_ptx * sizeof(*ptx));
	link->ptx = ptx;
	link->n_ptx += image->n_ptx;
	image->n_ptx = 0;
	return CUDA_SUCCESS;
}

static CUresult link_add(struct link *link, const struct fatbin_span *span)
{
	struct fatbin_reach reach = fatbin_reach_span(span);
	struct fatbin_image *image;
	struct code *code;
	CUresult r;

	r = image_read(span->addr, &reach, link->device, &link->jit, &image);
	if (r != CUDA_SUCCESS)
		return r;
	/* What is wrong with a piece is said when it is added. */
	r = code_new(image, &link->jit, &code);
	if (r == CUDA_SUCCESS) {
		code_free(code);
		r = link_take(link, image);
	}
	fatbin_image_free(image);
	return r;
}

static CUresult link_input_check(CUjitInputType type)
{
	switch (type) {
	case CU_JIT_INPUT_CUBIN: /* of this linker's own: a fat binary */
	case CU_JIT_INPUT_PTX:
	case CU_JIT_INPUT_FATBINARY:
		return CUDA_SUCCESS;
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
	case CU_JIT_INPUT_NVVM:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CALL(cuLinkCreate_v2, unsigned int n_options, CUjit_option *options, void **values,
     CUlinkState *ret)
{
	struct context *ctx;
	struct link *link;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	link = calloc(1, sizeof(*link));
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->device = ctx->device;
	r = jit_begin(&link->jit, n_options, options, values);
	if (r == CUDA_SUCCESS) {
		link->handle = handle_new(CUlinkState, HANDLE_LINK, link);
		if (!link->handle)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		link_free(link);
		return r;
	}
	*ret = link->handle;
	return CUDA_SUCCESS;
}

CALL(cuLinkCreate, unsigned int n_options, CUjit_option *options, void **values, CUlinkState *ret)
{
	return impl_cuLinkCreate_v2(n_options, options, values, ret);
}

CALL(cuLinkAddData_v2, CUlinkState handle, CUjitInputType type, void *data, size_t size,
     _unused_ const char *name, _unused_ unsigned int n_options, _unused_ CUjit_option *options,
     _unused_ void **values)
{
	struct fatbin_span span = { data, size };
	struct link *link;
	CUresult r = link_find(handle, &link);

	if (r != CUDA_SUCCESS)
		return r;
	if (!data || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = link_input_check(type);
	if (r != CUDA_SUCCESS)
		return r;
	r = link_add(link, &span);
	jit_end(&link->jit);
	return r;
}

CALL(cuLinkAddData, CUlinkState handle, CUjitInputType type, void *data, size_t size,
     const char *name, unsigned int n_options, CUjit_option *options, void **values)
{
	return impl_cuLinkAddData_v2(handle, type, data, size, name, n_options, options, values);
}

CALL(cuLinkAddFile_v2, CUlinkState handle, CUjitInputType type, const char *path,
     _unused_ unsigned int n_options, _unused_ CUjit_option *options, _unused_ void **values)
{
	struct fatbin_span file;
	struct link *link;
	CUresult r = link_find(handle, &link);

	if (r != CUDA_SUCCESS)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	r = link_input_check(type);
	if (r == CUDA_SUCCESS)
		r = image_file_read(path, &file);
	if (r != CUDA_SUCCESS)
		return r;
	r = link_add(link, &file);
	jit_end(&link->jit);
	free((void *)file.addr);
	return r;
}

CALL(cuLinkAddFile, CUlinkState handle, CUjitInputType type, const char *path,
     unsigned int n_options, CUjit_option *options, void **values)
{
	return impl_cuLinkAddFile_v2(handle, type, path, n_options, options, values);
}

/* Links all pieces for nothing but the log. */
static CUresult link_check(struct link *link)
{
	struct fatbin_image all = { .ptx = link->ptx, .n_ptx = link->n_ptx };
	struct exec_image *image;
	struct code *code;
	CUresult r = code_new(&all, &link->jit, &code);

	if (r != CUDA_SUCCESS)
		return r;
	r = code_place_nowhere(code, &link->jit, &image);
	if (r == CUDA_SUCCESS)
		exec_image_free(image);
	code_free(code);
	return r;
}

CALL(cuLinkComplete, CUlinkState handle, void **ret_image, size_t *ret_size)
{
	struct link *link;
	size_t size;
	CUresult r = link_find(handle, &link);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_image || link->n_ptx == 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = link_check(link);
	jit_end(&link->jit);
	if (r != CUDA_SUCCESS)
		return r;
	free(link->image);
	link->image = NULL;
	if (fatbin_link(link->ptx, link->n_ptx, &link->image, &size) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_image = link->image;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

CALL(cuLinkDestroy, CUlinkState handle)
{
	struct link *link;
	CUresult r = FIND(handle_remove(HANDLE_LINK, handle), CUDA_ERROR_INVALID_HANDLE, &link);

	if (r == CUDA_SUCCESS)
		link_free(link);
	return r;
}
