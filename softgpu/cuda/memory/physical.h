/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory without an address: what cuMemCreate() makes and cuMemMap() maps.
 *
 * It lives as long as there is a handle to it or a mapping of it, and is charged that long. It is a
 * part of the device's file (softgpu/mem/vram.h), or a file of its own where the program wants to
 * share it: then that file's descriptor is what other processes get. memory_lock guards all of it.
 */
#pragma once

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/mem/share.h"

enum physical_backing {
	PHYSICAL_PART, /* of the device's file */
	PHYSICAL_OWN_FILE,
	PHYSICAL_IMPORT, /* another process's own file */
};

/**
 * struct physical - an allocation
 * @device:	NULL for host memory
 * @owner:	tells others that the own file is ours: share_own()
 */
struct physical {
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	struct device *device;
	uint64_t size;
	unsigned n_handles, n_mappings;

	enum physical_backing backing;
	struct vram_range range;
	int fd, owner;
	struct share_import import;
};

/** physical_find() - NULL if there is no such handle, or not any more */
struct physical *physical_find(CUmemGenericAllocationHandle handle);

/** physical_put() - end it if it has neither handles nor mappings */
void physical_put(struct physical *physical);

/** physical_file() - the file that it is in, to map it, and where there */
int physical_file(const struct physical *physical, uint64_t *ret_offset);
