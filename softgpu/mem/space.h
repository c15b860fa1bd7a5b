/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of the software GPU in this process: which addresses a kernel may touch, and
 * to whom each belongs.
 *
 * A device address is the host address of the same memory, so one map serves every device. The
 * map is a flat table of one byte for each 2 MiB of the 47 bits that user space has: 64 MiB of
 * address space of which only touched pages exist. Hardware does not protect anything smaller
 * than 2 MiB either, so small allocations that share a block may reach into each other.
 * Host memory that the program registers is the exception: its neighbours in the same 2 MiB are
 * not the device's business and may not even be mapped, so it is known to the byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPACE_BITS	  47
#define SPACE_BLOCK_SHIFT 21
#define SPACE_BLOCK_SIZE  (1ULL << SPACE_BLOCK_SHIFT)
#define SPACE_N_BLOCKS	  (1ULL << (SPACE_BITS - SPACE_BLOCK_SHIFT))

enum space_access {
	SPACE_NONE = 0,
	SPACE_READ = 1 << 0,
	SPACE_WRITE = 1 << 1,
	SPACE_READ_WRITE = SPACE_READ | SPACE_WRITE,
};

/* What each block of 2 MiB may be used for by any device: enum space_access. */
extern uint8_t space_blocks[SPACE_N_BLOCKS];

/*
 * Whose blocks are: they are seen by every device, by one (and by contexts that reach it), or by
 * devices that are named one by one: space_named().
 */
#define SPACE_DEVICES_MAX 32
#define SPACE_EVERYONE	  0
#define SPACE_DEVICE(n)	  ((uint8_t)(1 + (n)))

/** space_named() - devices that may read and those that may write, a bit for each, as one number */
uint8_t space_named(uint64_t readers, uint64_t writers);

/* Several blocks, or a block of which only a part belongs to the device. Not for callers. */
bool space_ok_slowly(const uint8_t *blocks, uint64_t addr, uint64_t size, bool write);

/**
 * space_ok_in() - may a kernel touch these bytes?
 * @blocks:	what it sees: space_blocks, or the table of a view (view.h)
 *
 * Takes no lock: it is asked for every load and store. Memory that is freed meanwhile may give
 * either answer, as on hardware.
 */
static inline bool space_ok_in(const uint8_t *blocks, uint64_t addr, uint64_t size, bool write)
{
	uint64_t first = addr >> SPACE_BLOCK_SHIFT;
	uint64_t last = (addr + size - 1) >> SPACE_BLOCK_SHIFT;
	uint8_t need = write ? SPACE_WRITE : SPACE_READ;

	if (__builtin_expect(first == last && first < SPACE_N_BLOCKS, 1) && (blocks[first] & need))
		return true;

	return space_ok_slowly(blocks, addr, size, write);
}

/** space_ok() - may a kernel on any of the devices? */
static inline bool space_ok(uint64_t addr, uint64_t size, bool write)
{
	return space_ok_in(space_blocks, addr, size, write);
}

/**
 * struct space_range - memory that one call of the program brought into being
 * @addr:	its first byte
 * @size:	bytes, as asked for
 * @kind:	what it is part of; the owner's own numbering, so that it can tell its kinds apart
 *
 * Embedded in whatever its owner keeps about it; lives until it is taken out of the space.
 */
struct space_range {
	uint64_t addr;
	uint64_t size;
	unsigned kind;
};

/**
 * space_add() - let a range have whole blocks
 * @range:	what space_find() answers for an address in @range->size bytes from @range->addr
 * @start:	where the blocks begin: at or before @range->addr
 * @span:	bytes, a multiple of the block size
 * @access:	what kernels may do there
 * @whose:	on which devices
 *
 * Return: 0 or -ENOMEM.
 */
int space_add(struct space_range *range, uint64_t start, uint64_t span, enum space_access access,
	      uint8_t whose);

/** space_remove() - take out what space_add() has put in, by the same numbers */
void space_remove(uint64_t start, uint64_t span);

/** space_protect() - change what kernels may do in whole blocks */
void space_protect(uint64_t addr, uint64_t span, enum space_access access, uint8_t whose);

/* A block that several ranges share. Starts of ranges are multiples of SPACE_SLOT_SIZE. */
struct space_slots;
#define SPACE_SLOT_SIZE 512
#define SPACE_N_SLOTS	(SPACE_BLOCK_SIZE / SPACE_SLOT_SIZE)

/**
 * space_slots_add() - let several ranges share a block
 * @slots:	NULL, or what was removed before, to use again; the caller frees it with free()
 */
int space_slots_add(uint64_t block_addr, enum space_access access, uint8_t whose,
		    struct space_slots **slots);

/** space_slots_remove() - the block is nobody's any more; @slots stays the caller's */
void space_slots_remove(struct space_slots *slots);
/** space_slot_set(), space_slot_clear() - let a range have its part of the block, or not any more */
void space_slot_set(struct space_slots *slots, struct space_range *range);
void space_slot_clear(struct space_slots *slots, struct space_range *range);

/**
 * space_register() - let a range have memory of the program's own, to the byte
 *
 * Return: 0, -EEXIST if it overlaps with a range that is there, or -ENOMEM.
 */
int space_register(struct space_range *range);

/** space_unregister() - take it out again */
void space_unregister(struct space_range *range);

/**
 * space_find() - the range that an address lies in
 *
 * In constant time, except for registered memory (logarithmic). NULL if there is none; the bytes
 * between the end of a range and the end of its last block belong to nobody.
 */
struct space_range *space_find(uint64_t addr);
