// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns which addresses.
 *
 * Beside the table of access there is one of owners, in two levels because an entry is a pointer:
 * 8,192 leaves of 8,192 blocks. An entry is a range that has the whole block, or, marked by its
 * lowest bit, the slots of a block that several ranges share.
 */
#include "softgpu/mem/space.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/mem/view.h"

#define LEAF_BITS 13
#define LEAF_SIZE (1U << LEAF_BITS)

/* A part of the block is registered host memory: look there. */
#define BLOCK_PARTIAL (1 << 2)

#define ENTRY_SLOTS 1UL

struct space_slots {
	uint64_t addr;
	uint64_t starts[SPACE_N_SLOTS / 64]; /* a bit for each slot where a range begins */
	struct space_range *at[SPACE_N_SLOTS];
};

static uintptr_t *leaves[SPACE_N_BLOCKS / LEAF_SIZE];
static pthread_mutex_t leaves_lock = PTHREAD_MUTEX_INITIALIZER;

/* Registered memory, by address. The lock guards it. */
static pthread_rwlock_t registered_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct space_range **registered;
static size_t n_registered, registered_room;

static uint64_t block_of(uint64_t addr)
{
	return addr >> SPACE_BLOCK_SHIFT;
}

static uintptr_t entry_get(uint64_t block)
{
	uintptr_t *leaf;

	if (block >= SPACE_N_BLOCKS)
		return 0;

	leaf = __atomic_load_n(&leaves[block >> LEAF_BITS], __ATOMIC_ACQUIRE);
	return leaf ? __atomic_load_n(&leaf[block % LEAF_SIZE], __ATOMIC_ACQUIRE) : 0;
}

static int leaf_make(uint64_t block)
{
	uintptr_t **at = &leaves[block >> LEAF_BITS], *leaf;
	int r = 0;

	if (__atomic_load_n(at, __ATOMIC_ACQUIRE))
		return 0;

	pthread_mutex_lock(&leaves_lock);
	if (!*at) {
		leaf = calloc(LEAF_SIZE, sizeof(*leaf));
		if (leaf)
			__atomic_store_n(at, leaf, __ATOMIC_RELEASE);
		else
			r = -ENOMEM;
	}
	pthread_mutex_unlock(&leaves_lock);

	return r;
}

/* The leaves are there. */
static void entries_fill(uint64_t addr, uint64_t span, uintptr_t entry)
{
	uint64_t block = block_of(addr), end = block_of(addr + span);

	for (; block < end; block++)
		__atomic_store_n(&leaves[block >> LEAF_BITS][block % LEAF_SIZE], entry,
				 __ATOMIC_RELEASE);
}

static int leaves_make(uint64_t addr, uint64_t span)
{
	uint64_t block = block_of(addr), end = block_of(addr + span);
	int r;

	for (; block < end; block = (block | (LEAF_SIZE - 1)) + 1) {
		r = leaf_make(block);
		if (r < 0)
			return r;
	}

	return 0;
}

void space_protect(uint64_t addr, uint64_t span, enum space_access access, uint8_t whose)
{
	space_blocks_set(block_of(addr), block_of(span), access, whose);
}

static bool is_whole_blocks(uint64_t addr, uint64_t span)
{
	return (addr | span) % SPACE_BLOCK_SIZE == 0 && span > 0 &&
	       block_of(addr + span) <= SPACE_N_BLOCKS;
}

int space_add(struct space_range *range, uint64_t start, uint64_t span, enum space_access access,
	      uint8_t whose)
{
	int r;

	assert(is_whole_blocks(start, span));

	r = leaves_make(start, span);
	if (r < 0)
		return r;

	entries_fill(start, span, (uintptr_t)range);
	space_protect(start, span, access, whose);
	return 0;
}

void space_remove(uint64_t start, uint64_t span)
{
	space_protect(start, span, SPACE_NONE, SPACE_EVERYONE);
	entries_fill(start, span, /* entry= */ 0);
}

int space_slots_add(uint64_t block_addr, enum space_access access, uint8_t whose,
		    struct space_slots **at)
{
	struct space_slots *slots = *at;
	int r;

	assert(is_whole_blocks(block_addr, SPACE_BLOCK_SIZE));

	r = leaf_make(block_of(block_addr));
	if (r < 0)
		return r;

	if (!slots) {
		slots = calloc(1, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
	}

	slots->addr = block_addr;
	entries_fill(block_addr, SPACE_BLOCK_SIZE, (uintptr_t)slots | ENTRY_SLOTS);
	space_protect(block_addr, SPACE_BLOCK_SIZE, access, whose);

	*at = slots;
	return 0;
}

void space_slots_remove(struct space_slots *slots)
{
	space_protect(slots->addr, SPACE_BLOCK_SIZE, SPACE_NONE, SPACE_EVERYONE);
	entries_fill(slots->addr, SPACE_BLOCK_SIZE, /* entry= */ 0);
}

void space_slot_set(struct space_slots *slots, struct space_range *range)
{
	uint64_t slot = (range->addr - slots->addr) / SPACE_SLOT_SIZE;

	slots->at[slot] = range;
	slots->starts[slot / 64] |= 1ULL << (slot % 64);
}

void space_slot_clear(struct space_slots *slots, struct space_range *range)
{
	uint64_t slot = (range->addr - slots->addr) / SPACE_SLOT_SIZE;

	slots->at[slot] = NULL;
	slots->starts[slot / 64] &= ~(1ULL << (slot % 64));
}

/* The range that begins last at or before @addr. */
static struct space_range *slots_find(const struct space_slots *slots, uint64_t addr)
{
	uint64_t slot = (addr - slots->addr) / SPACE_SLOT_SIZE;
	uint64_t word = slot / 64;
	uint64_t map = slots->starts[word] & (~0ULL >> (63 - slot % 64));

	while (!map) {
		if (word == 0)
			return NULL;
		map = slots->starts[--word];
	}

	return slots->at[word * 64 + 63 - __builtin_clzll(map)];
}

/* Where in the sorted list the first range is that ends after @addr. */
static size_t registered_place(uint64_t addr)
{
	size_t low = 0, high = n_registered, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (registered[middle]->addr + registered[middle]->size <= addr)
			low = middle + 1;
		else
			high = middle;
	}

	return low;
}

static struct space_range *registered_find(uint64_t addr)
{
	size_t i = registered_place(addr);

	return i < n_registered && registered[i]->addr <= addr ? registered[i] : NULL;
}

static bool overlaps(const struct space_range *range, uint64_t start, uint64_t end)
{
	return range->addr < end && start < range->addr + range->size;
}

/* How far from @addr registered memory goes on without a hole; 0 if there is none. */
static uint64_t registered_reach(uint64_t addr)
{
	size_t i = registered_place(addr);
	uint64_t end = addr;

	for (; i < n_registered && registered[i]->addr <= end; i++)
		end = registered[i]->addr + registered[i]->size;

	return end - addr;
}

/* Says for each block of @range what of it is registered now. */
static void registered_mark(const struct space_range *range)
{
	uint64_t block = block_of(range->addr);
	uint64_t last = block_of(range->addr + range->size - 1);

	for (; block <= last; block++) {
		uint64_t start = block << SPACE_BLOCK_SHIFT;
		size_t i = registered_place(start);
		uint8_t access = SPACE_READ_WRITE;

		if (i == n_registered || !overlaps(registered[i], start, start + SPACE_BLOCK_SIZE))
			access = SPACE_NONE;
		else if (registered_reach(start) < SPACE_BLOCK_SIZE)
			access = BLOCK_PARTIAL;
		space_blocks_set(block, 1, access, SPACE_EVERYONE);
	}
}

static int registered_insert(struct space_range *range)
{
	size_t i = registered_place(range->addr), room;
	struct space_range **grown;

	if (i < n_registered && overlaps(registered[i], range->addr, range->addr + range->size))
		return -EEXIST;

	if (n_registered == registered_room) {
		room = registered_room ? 2 * registered_room : 16;
		grown = reallocarray(registered, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		registered = grown;
		registered_room = room;
	}

	memmove(&registered[i + 1], &registered[i], (n_registered - i) * sizeof(*registered));
	registered[i] = range;
	n_registered++;
	return 0;
}

int space_register(struct space_range *range)
{
	int r;

	assert(range->size > 0 && block_of(range->addr + range->size - 1) < SPACE_N_BLOCKS);

	pthread_rwlock_wrlock(&registered_lock);
	r = registered_insert(range);
	if (r == 0)
		registered_mark(range);
	pthread_rwlock_unlock(&registered_lock);

	return r;
}

void space_unregister(struct space_range *range)
{
	size_t i;

	pthread_rwlock_wrlock(&registered_lock);
	i = registered_place(range->addr);
	assert(i < n_registered && registered[i] == range);
	n_registered--;
	memmove(&registered[i], &registered[i + 1], (n_registered - i) * sizeof(*registered));
	registered_mark(range);
	pthread_rwlock_unlock(&registered_lock);
}

struct space_range *space_find(uint64_t addr)
{
	uintptr_t entry = entry_get(block_of(addr));
	struct space_range *range;

	if (entry & ENTRY_SLOTS) {
		range = slots_find((struct space_slots *)(entry & ~ENTRY_SLOTS), addr);
	} else if (entry) {
		range = (struct space_range *)entry;
	} else {
		pthread_rwlock_rdlock(&registered_lock);
		range = registered_find(addr);
		pthread_rwlock_unlock(&registered_lock);
	}

	return range && addr - range->addr < range->size ? range : NULL;
}

static bool registered_covers(uint64_t addr, uint64_t size)
{
	bool covers;

	pthread_rwlock_rdlock(&registered_lock);
	covers = registered_reach(addr) >= size;
	pthread_rwlock_unlock(&registered_lock);

	return covers;
}

bool space_ok_slowly(const uint8_t *blocks, uint64_t addr, uint64_t size, bool write)
{
	uint8_t need = write ? SPACE_WRITE : SPACE_READ;
	uint64_t end = addr + size, part;

	if (size == 0)
		return true;
	if (end < addr || block_of(end - 1) >= SPACE_N_BLOCKS)
		return false;

	for (; addr < end; addr += part) {
		part = SPACE_BLOCK_SIZE - addr % SPACE_BLOCK_SIZE;
		if (part > end - addr)
			part = end - addr;

		if (blocks[block_of(addr)] & need)
			continue;
		if (!(blocks[block_of(addr)] & BLOCK_PARTIAL) || !registered_covers(addr, part))
			return false;
	}

	return true;
}
