/* SPDX-License-Identifier: Apache-2.0 */
/* What copies have to know of arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cuda/cuda_abi.h"

/**
 * struct array_layout - where an array's elements are
 * @addr:	of element (0, 0, 0)
 * @element:	bytes of one
 * @width:	bytes of a row that hold elements
 * @pitch:	from row to row
 * @slice:	from layer to layer
 */
struct array_layout {
	uint64_t addr;
	size_t element;
	size_t width, height, depth;
	size_t pitch, slice;
};

/** array_layout() - CUDA_ERROR_INVALID_HANDLE if there is no such array */
CUresult array_layout(CUarray handle, struct array_layout *ret);

/** array_describe() - how it was asked for; like cuArray3DGetDescriptor() */
CUresult array_describe(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *ret);

/* The most levels that a mipmapped array has. */
#define ARRAY_LEVELS_MAX 18

/**
 * mipmap_levels() - the arrays that are its levels
 *
 * CUDA_ERROR_INVALID_HANDLE if there is no such mipmapped array.
 */
CUresult mipmap_levels(CUmipmappedArray handle, CUarray ret[ARRAY_LEVELS_MAX], unsigned *ret_n);
