/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver knows of each piece of memory that programs can address.
 *
 * A struct memory is one allocation, mapping or registration, found by any address in it. It is of
 * a kind, and the file that has the calls of that kind makes and ends it. Most belong to a context
 * and end with it; what is of no context (pools, virtual memory) outlives it.
 *
 * One lock, memory_lock, guards every list and the life of every struct memory in this process.
 * It is never held while waiting for a stream.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/cuda/core.h"
#include "softgpu/mem/vram.h"

enum memory_kind {
	MEMORY_DEVICE = 1,  /* cuMemAlloc */
	MEMORY_INTERNAL,    /* the driver's own: globals of modules, workspaces */
	MEMORY_ARRAY,	    /* behind an array, which has no address for programs */
	MEMORY_POOL,	    /* cuMemAllocAsync, memory nodes of graphs */
	MEMORY_MANAGED,	    /* cuMemAllocManaged */
	MEMORY_HOST,	    /* cuMemHostAlloc */
	MEMORY_REGISTERED,  /* cuMemHostRegister */
	MEMORY_VIRTUAL,	    /* cuMemMap */
	MEMORY_IMPORT,	    /* cuIpcOpenMemHandle */
	MEMORY_POOL_IMPORT, /* cuMemPoolImportPointer */
};

/**
 * struct memory - a piece of memory
 * @range:	where; @range.space.kind is its enum memory_kind. Only kinds that vram.h allocates
 *		use more than @range.space
 * @id:		CU_POINTER_ATTRIBUTE_BUFFER_ID
 * @device:	where it is; for host memory, that of the context it was made in
 * @ctx:	whose it is, or NULL
 * @flags:	as the call that made it took them
 * @end:	called when its context ends; takes it out of the space and frees it
 * @owner:	what the file of its kind keeps about it
 */
struct memory {
	struct vram_range range;
	uint64_t id;
	struct device *device;
	struct context *ctx;
	CUcontext ctx_handle;
	unsigned flags;
	bool sync_memops;
	bool is_freed; /* a call has freed it, it only waits for work to end */
	void (*end)(struct memory *memory);
	void *owner;
	struct memory *next, *prev; /* in the context's list */
};

extern pthread_mutex_t memory_lock;

static inline enum memory_kind memory_kind(const struct memory *memory)
{
	return (enum memory_kind)memory->range.space.kind;
}

static inline uint64_t memory_addr(const struct memory *memory)
{
	return memory->range.space.addr;
}

static inline uint64_t memory_size(const struct memory *memory)
{
	return memory->range.space.size;
}

/** memory_find() - what an address belongs to, or NULL; the caller has memory_lock */
static inline struct memory *memory_find(uint64_t addr)
{
	/* The range is the first member of the first member. */
	return (struct memory *)space_find(addr);
}

/** memory_charge() - how a device is charged */
struct share_charge memory_charge(struct device *device);

/** memory_charge_inherited() - how it is charged with memory that its maker has left behind: see share_inherit() */
struct share_charge memory_charge_inherited(struct device *device);

/** memory_device_of_index() - the device with this place in the shared state; NULL: not visible */
struct device *memory_device_of_index(unsigned index);

/**
 * memory_file_device() - whose memory a file that came from somewhere is
 * @name:	what its name begins with; then come "-" and the device's index, -1 for the host
 * @ret:	NULL for the host
 *
 * Return: false if it has another name, or its device is not visible here.
 */
bool memory_file_device(int fd, const char *name, struct device **ret);

/* Names of files: the memory of a device, and a shareable allocation's own file. */
#define MEMORY_FILE   "softgpu-memory"
#define PHYSICAL_FILE "softgpu-physical"

/** memory_error() - what a program is told for an answer or fault of softgpu/mem */
CUresult memory_error(int r);

/*
 * The memory of a device, its part with addresses below 4 GiB, and the host's: made when first
 * asked for, NULL if that fails.
 */
struct vram *memory_vram(struct device *device);
struct vram *memory_vram_low(struct device *device);
struct vram *memory_vram_host(void);

/**
 * memory_new() - allocate
 * @vram:	from where; NULL is out of memory
 * @ctx:	whose it is; NULL: nobody's, it has to be freed by a call
 * @device:	for @device
 * @bytes:	not 0
 *
 * CUDA_ERROR_OUT_OF_MEMORY if the device, the limit or the host is full.
 */
CUresult memory_new(enum memory_kind kind, struct vram *vram, struct context *ctx,
		    struct device *device, uint64_t bytes, struct memory **ret);

/** memory_new_in() - the same, from a group of what a device has; NULL is out of memory */
CUresult memory_new_in(enum memory_kind kind, struct vram_group *group, struct context *ctx,
		       struct device *device, uint64_t bytes, struct memory **ret);

/**
 * memory_reclaim() - give back to a device what nobody uses: what pools keep
 *
 * For who finds it full. Return: whether there was anything.
 */
bool memory_reclaim(const struct device *device);

/** memory_free() - undo memory_new(); the caller has taken care that nothing uses it any more */
void memory_free(struct memory *memory);

/**
 * memory_enter() - fill in what every kind has and let the context end it
 *
 * For memory that does not come from memory_new(). The caller has memory_lock, as for
 * memory_leave(), which takes it from its context again.
 */
void memory_enter(struct memory *memory, enum memory_kind kind, struct context *ctx,
		  struct device *device);
void memory_leave(struct memory *memory);

/**
 * memory_claim() - find memory in order to free it
 * @addr:	must be where it begins
 * @kinds:	a bit (1 << kind) for each kind that will do
 *
 * Of several calls that free the same memory, one gets it. NULL for all others.
 */
struct memory *memory_claim(uint64_t addr, unsigned kinds);

/** memory_begin() - may this thread allocate and free now, and in which context? */
CUresult memory_begin(struct context **ret);

/**
 * memory_release() - free claimed memory once the work of its context is done
 *
 * Calls that free wait for what may still use the memory. Should that fail, the memory is gone
 * all the same. Return: how the work ended.
 */
CUresult memory_release(struct memory *memory);

/*
 * The driver's own memory, by address: what a module's globals are put into.
 * CUDA_ERROR_OUT_OF_MEMORY as for a program.
 */
CUresult memory_internal_new(struct context *ctx, uint64_t bytes, CUdeviceptr *ret);
void memory_internal_free(CUdeviceptr addr);

/**
 * memory_check() - is all of this memory known and open to the device?
 *
 * For the arguments of copies and sets. Memory of the host that no call made known is not.
 */
bool memory_check(uint64_t addr, uint64_t bytes);

/** memory_is_pageable() - is this host memory that no call made known, the program's own? */
bool memory_is_pageable(uint64_t addr);

/** memory_is_reserved() - is this address space of cuMemAddressReserve()? With memory_lock. */
bool memory_is_reserved(uint64_t addr, uint64_t bytes);
