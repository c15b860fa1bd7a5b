/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's memory as one process has it: allocation, backing, charge.
 *
 * Memory is handed out in blocks of 2 MiB, which is also what the device is charged. Up to 1 MiB,
 * allocations share blocks, so a thousand small ones cost little more than their sizes, as on
 * hardware. Larger ones have blocks of their own.
 *
 *	section of the address space, several times the device's size
 *	|block|block|block|block|....................................|
 *	 a b c  d-------------d   e
 *	 ^ shared by a, b, c
 *
 * The bytes live in one sparse file in memory (memfd) for each device and process: the offset in
 * the file is the distance from the section's start. So an allocation is only a matter of books,
 * with no system call, and yet another process can map any part of it (share.h). Nothing is
 * backed by RAM before it is touched. Freed blocks are uncharged at once; their pages go back to
 * the host a little later, in bulk, because a system call for each would be most of the cost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/mem/share.h"
#include "softgpu/mem/space.h"

struct heap_chunk;
struct vram;
struct vram_group;

enum {
	VRAM_E_FULL = 1, /* the device, or what this process may have of it, is full */
};

enum vram_kind {
	VRAM_DEVICE, /* shareable, charged */
	VRAM_HOST,   /* private to the process and what it forks, not charged */
	VRAM_LOW,    /* as VRAM_DEVICE, with addresses that fit into 32 bits */
};

/**
 * struct vram_range - one allocation
 * @space:	where it is; @space.kind is the caller's
 * @span:	bytes of address space that it has: a multiple of SPACE_SLOT_SIZE or of the block
 * size
 *
 * The caller's memory, embedded in what it keeps about the allocation. The rest is vram.c's.
 */
struct vram_range {
	struct space_range space;
	uint64_t span;
	struct vram *vram;
	struct heap_chunk *chunk;
	struct vram_block *block; /* the shared block, or NULL */
	enum space_access access;
	bool is_exported; /* set by whoever hands it to share_export() */
};

/**
 * vram_new() - make room for the memory of a device
 * @name:	of the file; whoever gets the file can read it in /proc
 * @size:	bytes of address space at least: what can be charged at most, with room to spare
 * @whose:	which devices see it (space.h)
 * @charge:	copied; ignored for VRAM_HOST
 *
 * Return: 0 or a negative errno.
 */
int vram_new(enum vram_kind kind, const char *name, uint64_t size, uint8_t whose,
	     const struct share_charge *charge, struct vram **ret);

/** vram_free() - once everything in it has been released */
void vram_free(struct vram *vram);

/**
 * vram_alloc() - allocate
 * @size:	bytes, not 0
 * @access:	what kernels may do; SPACE_NONE makes a range that is backing only: it has blocks of
 *		its own, and space_find() does not know it
 * @ret:	filled, except for @space.kind
 *
 * Any thread may call. The start is a multiple of 512, of 2 MiB from 1 MiB on.
 *
 * Return: 0, VRAM_E_FULL or a negative errno.
 */
int vram_alloc(struct vram *vram, uint64_t size, enum space_access access, struct vram_range *ret);

/**
 * vram_group_new() - what shall share blocks with its own kind only
 * @whose:	which devices see it
 *
 * Nothing smaller than a block can be shown to one device and hidden from another, so small
 * allocations that are seen by different devices must not meet in one.
 *
 * Return: 0 or -ENOMEM.
 */
int vram_group_new(struct vram *vram, uint8_t whose, struct vram_group **ret);

/** vram_group_free() - there is no more to come; what is in it lives on. Accepts NULL. */
void vram_group_free(struct vram_group *group);

/** vram_group_show() - other devices see it: the blocks that its small ones share, and new ones */
void vram_group_show(struct vram_group *group, uint8_t whose);

/** vram_common() - the group of all that is in no other */
struct vram_group *vram_common(struct vram *vram);

/** vram_alloc_in() - allocate as vram_alloc() does, in a group */
int vram_alloc_in(struct vram_group *group, uint64_t size, enum space_access access,
		  struct vram_range *ret);

/** vram_release() - free an allocation; its charge is gone when this returns */
void vram_release(struct vram_range *range);

/** vram_file() - the file that backs it, to map parts of it elsewhere; not for VRAM_HOST */
int vram_file(const struct vram *vram);

/** vram_offset() - where a range begins in that file */
uint64_t vram_offset(const struct vram_range *range);

/** vram_contains() - is this address in its section, allocated or not? */
bool vram_contains(const struct vram *vram, uint64_t addr);

/** vram_span() - what an allocation of @size bytes has of address space; 0 if that is no number */
uint64_t vram_span(uint64_t size);
