// SPDX-License-Identifier: Apache-2.0
/*
 * A device's memory: blocks of 2 MiB from a section of the address space, and what shares blocks.
 *
 * One heap hands out blocks of the section. Each group has another, of slots of 512 bytes in the
 * blocks that its small allocations share. A shared block is a region of that heap. When the last
 * of its allocations goes, the region is one free chunk again and the block goes back to the first.
 */
#include "softgpu/mem/vram.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softgpu/mem/heap.h"
#include "softgpu/mem/section.h"

/* From here on an allocation has blocks of its own. */
#define SMALL_MAX (1ULL << 20)

/* The section becomes accessible in steps of this, so that it stays a handful of mappings. */
#define OPEN_STEP (64ULL << 20)

/* How much freed memory may keep its pages before they go back to the host. */
#define STALE_MAX_BLOCKS 16

/* An allocation that others shared, or several in it, at its block's start. */
struct vram_block {
	struct heap_chunk *chunk;
	struct space_slots *slots;
	uint64_t addr;
	struct vram_group *group;
	struct vram_block *next, *prev; /* in the group's list, or that of spare ones */
};

/**
 * struct vram_group - allocations that meet in blocks; under the lock of @vram
 * @whose:	as in space.h
 * @is_over:	ends with its last block
 */
struct vram_group {
	struct vram *vram;
	uint8_t whose;
	bool is_over;
	struct heap slots;
	struct vram_block *blocks;
};

struct vram {
	enum vram_kind kind;
	struct share_charge charge;
	int fd, owner; /* the file, and what tells that it is ours: share_own() */
	uint64_t base;
	uint64_t n_blocks;

	pthread_mutex_t lock; /* guards what follows */
	struct heap blocks;
	struct vram_group common;
	uint64_t n_open;	    /* blocks from the start that are accessible */
	struct vram_block **shared; /* by block number */
	struct vram_block *spare;
	uint64_t *stale; /* a bit for each free block that may have pages */
	uint64_t n_stale, stale_low, stale_high;
};

static uint64_t block_addr(const struct vram *vram, uint64_t block)
{
	return vram->base + (block << SPACE_BLOCK_SHIFT);
}

/* Pages */

/* Asking is cheap; dropping what is not there walks the page tables: 40 us for 64 MiB. */
static bool pages_exist(const struct vram *vram, uint64_t offset, uint64_t size)
{
	off_t data = lseek(vram->fd, offset, SEEK_DATA);

	return data >= 0 && (uint64_t)data < offset + size;
}

/* Should it fail, the pages stay with the host, which is no error of the program's. */
static void pages_drop(struct vram *vram, uint64_t block, uint64_t n)
{
	uint64_t offset = block << SPACE_BLOCK_SHIFT, size = n << SPACE_BLOCK_SHIFT;

	if (vram->kind == VRAM_HOST)
		(void)madvise((void *)block_addr(vram, block), size, MADV_DONTNEED);
	else if (pages_exist(vram, offset, size))
		(void)fallocate(vram->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
}

static bool stale_test(const struct vram *vram, uint64_t block)
{
	return vram->stale[block / 64] >> (block % 64) & 1;
}

/* Marks or unmarks whole words where it can: 80 GiB are 640 words. */
static void stale_set(struct vram *vram, uint64_t block, uint64_t n, bool on)
{
	uint64_t end = block + n, word, mask;

	for (; block < end; block = (block | 63) + 1) {
		word = block / 64;
		mask = ~0ULL << (block % 64);
		if (end / 64 == word)
			mask &= ~(~0ULL << (end % 64));

		vram->n_stale -= __builtin_popcountll(vram->stale[word] & mask);
		if (on) {
			vram->stale[word] |= mask;
			vram->n_stale += __builtin_popcountll(mask);
		} else {
			vram->stale[word] &= ~mask;
		}
	}
}

static void stale_flush(struct vram *vram)
{
	uint64_t block = vram->stale_low, first;

	while (block < vram->stale_high) {
		if (!vram->stale[block / 64]) {
			block = (block | 63) + 1;
			continue;
		}
		if (!stale_test(vram, block)) {
			block++;
			continue;
		}

		for (first = block; block < vram->stale_high && stale_test(vram, block); block++)
			;
		pages_drop(vram, first, block - first);
		stale_set(vram, first, block - first, /* on= */ false);
	}

	vram->stale_low = vram->n_blocks;
	vram->stale_high = 0;
}

static void stale_add(struct vram *vram, uint64_t block, uint64_t n)
{
	stale_set(vram, block, n, /* on= */ true);
	if (block < vram->stale_low)
		vram->stale_low = block;
	if (block + n > vram->stale_high)
		vram->stale_high = block + n;

	if (vram->n_stale > STALE_MAX_BLOCKS)
		stale_flush(vram);
}

/* Blocks; the caller has the lock */

static int blocks_open(struct vram *vram, uint64_t n)
{
	const uint64_t step = OPEN_STEP >> SPACE_BLOCK_SHIFT;

	if (n <= vram->n_open)
		return 0;

	n = (n + step - 1) / step * step;
	if (n > vram->n_blocks)
		n = vram->n_blocks;
	if (mprotect((void *)block_addr(vram, vram->n_open),
		     (n - vram->n_open) << SPACE_BLOCK_SHIFT, PROT_READ | PROT_WRITE) < 0)
		return -errno;

	vram->n_open = n;
	return 0;
}

static int blocks_charge(struct vram *vram, uint64_t n)
{
	if (vram->kind == VRAM_HOST)
		return 0;

	return vram->charge.take(vram->charge.arg, n << SPACE_BLOCK_SHIFT) ? VRAM_E_FULL : 0;
}

static void blocks_uncharge(struct vram *vram, uint64_t n)
{
	if (vram->kind != VRAM_HOST)
		vram->charge.give(vram->charge.arg, n << SPACE_BLOCK_SHIFT);
}

static int blocks_alloc(struct vram *vram, uint64_t n, struct heap_chunk **ret)
{
	struct heap_chunk *chunk;
	int r;

	r = blocks_charge(vram, n);
	if (r)
		return r;

	r = heap_alloc(&vram->blocks, n, &chunk);
	if (r) {
		blocks_uncharge(vram, n);
		return r == HEAP_E_FULL ? VRAM_E_FULL : r;
	}

	r = blocks_open(vram, chunk->start + n);
	if (r < 0) {
		heap_free(&vram->blocks, chunk);
		blocks_uncharge(vram, n);
		return r;
	}

	stale_set(vram, chunk->start, n, /* on= */ false);
	*ret = chunk;
	return 0;
}

static void blocks_free(struct vram *vram, struct heap_chunk *chunk)
{
	uint64_t start = chunk->start, n = chunk->n;

	heap_free(&vram->blocks, chunk);
	stale_add(vram, start, n);
	blocks_uncharge(vram, n);
}

/* Shared blocks; the caller has the lock */

static void shared_spare(struct vram *vram, struct vram_block *block)
{
	block->next = vram->spare;
	vram->spare = block;
}

static void shared_free(struct vram *vram, struct vram_block *block)
{
	vram->shared[block->chunk->start] = NULL;
	blocks_free(vram, block->chunk);
	shared_spare(vram, block);
}

static struct vram_block *shared_new(struct vram *vram)
{
	struct vram_block *block = vram->spare;

	if (!block)
		return calloc(1, sizeof(*block));

	vram->spare = block->next;
	return block;
}

static void group_enter(struct vram_group *group, struct vram_block *block)
{
	block->group = group;
	block->prev = NULL;
	block->next = group->blocks;
	if (block->next)
		block->next->prev = block;
	group->blocks = block;
}

static void group_leave(struct vram_group *group, struct vram_block *block)
{
	if (block->next)
		block->next->prev = block->prev;
	if (block->prev)
		block->prev->next = block->next;
	else
		group->blocks = block->next;
}

static void group_end_if_over(struct vram_group *group)
{
	if (!group->is_over || group->blocks)
		return;
	heap_done(&group->slots);
	free(group);
}

/* Puts a block more into the heap of slots. */
static int shared_add(struct vram *vram, struct vram_group *group)
{
	struct vram_block *block = shared_new(vram);
	int r;

	if (!block)
		return -ENOMEM;

	r = blocks_alloc(vram, 1, &block->chunk);
	if (r) {
		shared_spare(vram, block);
		return r;
	}

	block->addr = block_addr(vram, block->chunk->start);
	vram->shared[block->chunk->start] = block;
	r = space_slots_add(block->addr, SPACE_READ_WRITE, group->whose, &block->slots);
	if (r < 0) {
		shared_free(vram, block);
		return r;
	}

	r = heap_add(&group->slots, block->addr / SPACE_SLOT_SIZE, SPACE_N_SLOTS);
	if (r < 0) {
		space_slots_remove(block->slots);
		shared_free(vram, block);
		return r;
	}

	group_enter(group, block);
	return 0;
}

static int small_alloc(struct vram *vram, struct vram_group *group, struct vram_range *range)
{
	uint64_t n = (range->space.size + SPACE_SLOT_SIZE - 1) / SPACE_SLOT_SIZE;
	int r;

	r = heap_alloc(&group->slots, n, &range->chunk);
	if (r == HEAP_E_FULL) {
		r = shared_add(vram, group);
		if (r)
			return r;
		r = heap_alloc(&group->slots, n, &range->chunk);
	}
	if (r)
		return r;

	range->span = n * SPACE_SLOT_SIZE;
	range->space.addr = range->chunk->start * SPACE_SLOT_SIZE;
	range->block = vram->shared[(range->space.addr - vram->base) >> SPACE_BLOCK_SHIFT];
	space_slot_set(range->block->slots, &range->space);
	return 0;
}

static void small_free(struct vram *vram, struct heap_chunk *chunk, struct vram_block *block)
{
	struct vram_group *group = block->group;

	chunk = heap_free(&group->slots, chunk);
	if (!heap_chunk_is_region(chunk))
		return;

	heap_remove(&group->slots, chunk);
	space_slots_remove(block->slots);
	group_leave(group, block);
	shared_free(vram, block);
	group_end_if_over(group);
}

static int large_alloc(struct vram *vram, uint8_t whose, struct vram_range *range)
{
	uint64_t n = (range->space.size - 1) / SPACE_BLOCK_SIZE + 1;
	int r;

	if (n > vram->n_blocks)
		return VRAM_E_FULL;

	r = blocks_alloc(vram, n, &range->chunk);
	if (r)
		return r;

	range->block = NULL;
	range->span = n << SPACE_BLOCK_SHIFT;
	range->space.addr = block_addr(vram, range->chunk->start);
	if (range->access == SPACE_NONE)
		return 0;

	r = space_add(&range->space, range->space.addr, range->span, range->access, whose);
	if (r < 0)
		blocks_free(vram, range->chunk);
	return r;
}

int vram_alloc_in(struct vram_group *group, uint64_t size, enum space_access access,
		  struct vram_range *ret)
{
	struct vram *vram = group->vram;
	struct vram_range *range = ret;
	int r;

	assert(size > 0);

	range->vram = vram;
	range->access = access;
	range->space.size = size;
	range->is_exported = false;

	pthread_mutex_lock(&vram->lock);
	if (size <= SMALL_MAX && access != SPACE_NONE)
		r = small_alloc(vram, group, range);
	else
		r = large_alloc(vram, group->whose, range);
	pthread_mutex_unlock(&vram->lock);

	return r;
}

int vram_alloc(struct vram *vram, uint64_t size, enum space_access access, struct vram_range *ret)
{
	return vram_alloc_in(&vram->common, size, access, ret);
}

struct vram_group *vram_common(struct vram *vram)
{
	return &vram->common;
}

int vram_group_new(struct vram *vram, uint8_t whose, struct vram_group **ret)
{
	struct vram_group *group = calloc(1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	group->vram = vram;
	group->whose = whose;
	*ret = group;
	return 0;
}

void vram_group_free(struct vram_group *group)
{
	struct vram *vram;

	if (!group)
		return;
	vram = group->vram;
	pthread_mutex_lock(&vram->lock);
	group->is_over = true;
	group_end_if_over(group);
	pthread_mutex_unlock(&vram->lock);
}

void vram_group_show(struct vram_group *group, uint8_t whose)
{
	pthread_mutex_lock(&group->vram->lock);
	group->whose = whose;
	for (const struct vram_block *block = group->blocks; block; block = block->next)
		space_protect(block->addr, SPACE_BLOCK_SIZE, SPACE_READ_WRITE, whose);
	pthread_mutex_unlock(&group->vram->lock);
}

static void range_free(struct vram *vram, struct heap_chunk *chunk, struct vram_block *block)
{
	if (block)
		small_free(vram, chunk, block);
	else
		blocks_free(vram, chunk);
}

/* What is left of an exported allocation that was freed while another process has it open. */
struct remains {
	struct vram *vram;
	struct heap_chunk *chunk;
	struct vram_block *block;
};

static void remains_free(void *arg)
{
	struct remains *remains = arg;
	struct vram *vram = remains->vram;

	pthread_mutex_lock(&vram->lock);
	range_free(vram, remains->chunk, remains->block);
	pthread_mutex_unlock(&vram->lock);
	free(remains);
}

/* Return: true if @range must stay allocated for now. */
static bool range_keep(struct vram_range *range)
{
	struct remains *remains;

	if (!range->is_exported ||
	    !share_unexport(vram_file(range->vram), vram_offset(range), range->span))
		return false;

	/*
	 * Without memory for the books it is never given back. That is a leak of the device's
	 * memory, but the other way round somebody else's data would be overwritten.
	 */
	remains = malloc(sizeof(*remains));
	if (remains) {
		*remains = (struct remains){ range->vram, range->chunk, range->block };
		share_keep(vram_file(range->vram), vram_offset(range), range->span, remains_free,
			   remains);
	}

	return true;
}

void vram_release(struct vram_range *range)
{
	struct vram *vram = range->vram;

	pthread_mutex_lock(&vram->lock);
	if (range->block)
		space_slot_clear(range->block->slots, &range->space);
	else if (range->access != SPACE_NONE)
		space_remove(range->space.addr, range->span);

	if (!range_keep(range))
		range_free(vram, range->chunk, range->block);
	pthread_mutex_unlock(&vram->lock);
}

int vram_file(const struct vram *vram)
{
	return vram->fd;
}

uint64_t vram_offset(const struct vram_range *range)
{
	return range->space.addr - range->vram->base;
}

bool vram_contains(const struct vram *vram, uint64_t addr)
{
	return addr - vram->base < vram->n_blocks << SPACE_BLOCK_SHIFT;
}

uint64_t vram_span(uint64_t size)
{
	uint64_t unit = size <= SMALL_MAX ? SPACE_SLOT_SIZE : SPACE_BLOCK_SIZE;

	return (size + unit - 1) & ~(unit - 1);
}

/* Setting up */

static int file_make(const char *name, uint64_t size)
{
	struct rlimit limit;
	int fd, r;

	/* Beyond this the kernel would not only refuse, but send SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
		return -EFBIG;

	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;

	if (ftruncate(fd, size) < 0) {
		r = -errno;
		close(fd);
		return r;
	}

	return fd;
}

static int books_make(struct vram *vram)
{
	vram->stale = calloc((vram->n_blocks + 63) / 64, sizeof(*vram->stale));
	vram->shared = calloc(vram->n_blocks, sizeof(*vram->shared));
	if (!vram->stale || !vram->shared)
		return -ENOMEM;

	vram->stale_low = vram->n_blocks;
	return heap_add(&vram->blocks, 0, vram->n_blocks);
}

int vram_new(enum vram_kind kind, const char *name, uint64_t size, uint8_t whose,
	     const struct share_charge *charge, struct vram **ret)
{
	struct vram *vram;
	int r;

	vram = calloc(1, sizeof(*vram));
	if (!vram)
		return -ENOMEM;

	vram->kind = kind;
	vram->common = (struct vram_group){ .vram = vram, .whose = whose };
	vram->fd = vram->owner = -1;
	vram->n_blocks = (size + SPACE_BLOCK_SIZE - 1) / SPACE_BLOCK_SIZE;
	size = vram->n_blocks * SPACE_BLOCK_SIZE;
	pthread_mutex_init(&vram->lock, NULL);

	if (kind != VRAM_HOST) {
		vram->charge = *charge;
		r = file_make(name, size);
		if (r < 0)
			goto out;
		vram->fd = r;
		r = share_own(vram->fd, &vram->owner);
		if (r < 0)
			goto out;
	}

	r = section_reserve(/* hint= */ 0, size, SPACE_BLOCK_SIZE,
			    kind == VRAM_LOW ? SECTION_LOW : 0, &vram->base);
	if (r < 0)
		goto out;

	if (kind != VRAM_HOST) {
		r = section_map(vram->base, size, vram->fd, /* offset= */ 0,
				/* accessible= */ false);
		if (r < 0)
			goto out;
	}

	r = books_make(vram);
	if (r < 0)
		goto out;

	*ret = vram;
	return 0;
out:
	vram_free(vram);
	return r;
}

void vram_free(struct vram *vram)
{
	struct vram_block *block;

	if (!vram)
		return;

	while ((block = vram->spare)) {
		vram->spare = block->next;
		free(block->slots);
		free(block);
	}
	heap_done(&vram->blocks);
	heap_done(&vram->common.slots);

	if (vram->base)
		section_free(vram->base, vram->n_blocks << SPACE_BLOCK_SHIFT);
	if (vram->owner >= 0)
		close(vram->owner);
	if (vram->fd >= 0)
		close(vram->fd);
	pthread_mutex_destroy(&vram->lock);
	free(vram->stale);
	free(vram->shared);
	free(vram);
}
