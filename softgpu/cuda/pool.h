/* SPDX-License-Identifier: Apache-2.0 */
/* What pointer attributes have to know of pools. */
#pragma once

#include "src/cuda/cuda_abi.h"

struct memory;

/** pool_of() - the pool that memory of kind MEMORY_POOL or MEMORY_POOL_IMPORT came from, or NULL */
CUmemoryPool pool_of(const struct memory *memory);
