// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a process, pinned for the host.
 *
 * It counts as pinned in the process's status, but not against RLIMIT_MEMLOCK, as little as memory that a
 * device's driver pins on a host; there is a limit for all processes together (max_pinned_mb).
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "cotenant.h"

#define BATCH 512

static int room_make(struct ctn_memory *memory, u32 max)
{
	struct wire_piece *pieces;
	u32 room;

	if (memory->n_pieces < memory->room)
		return 0;
	if (memory->n_pieces >= max)
		return -E2BIG;
	room = clamp_t(u32, 2 * memory->room, 16, max);
	pieces = kvmalloc_array(room, sizeof(*pieces), GFP_KERNEL_ACCOUNT);
	if (!pieces)
		return -ENOMEM;
	if (memory->n_pieces)
		memcpy(pieces, memory->pieces, memory->n_pieces * sizeof(*pieces));
	kvfree(memory->pieces);
	memory->pieces = pieces;
	memory->room = room;
	return 0;
}

/* @first: of what is pinned now; pieces of before are not made longer. */
static int page_add(struct ctn_memory *memory, u32 first, u32 max, struct page *page)
{
	struct wire_piece *last;
	int r;

	if (memory->n_pieces > first) {
		last = &memory->pieces[memory->n_pieces - 1];
		if (last->address + last->size == page_to_phys(page)) {
			last->size += PAGE_SIZE;
			return 0;
		}
	}
	r = room_make(memory, max);
	if (r < 0)
		return r;
	memory->pieces[memory->n_pieces++] = (struct wire_piece){ page_to_phys(page), PAGE_SIZE };
	return 0;
}

static int batch_add(struct ctn_memory *memory, u32 first, u32 max, struct page **pages, int n)
{
	int i, r = 0;

	for (i = 0; i < n && r == 0; i++)
		r = page_add(memory, first, max, pages[i]);
	if (r < 0) {
		/* The one that failed and those behind it are in no piece. */
		unpin_user_pages(pages + i - 1, n - i + 1);
		return r;
	}
	return 0;
}

static void pieces_unpin(struct ctn_memory *memory, u32 first)
{
	u32 i;

	for (i = first; i < memory->n_pieces; i++)
		unpin_user_page_range_dirty_lock(pfn_to_page(PHYS_PFN(memory->pieces[i].address)),
						 memory->pieces[i].size >> PAGE_SHIFT,
						 /* make_dirty= */ true);
	memory->n_pieces = first;
}

static int pages_pin(struct ctn_memory *memory, u32 first, u32 max, u64 address, u64 n_pages)
{
	struct page **pages = kmalloc_array(BATCH, sizeof(*pages), GFP_KERNEL);
	int n, r = 0;

	if (!pages)
		return -ENOMEM;
	while (n_pages && r == 0) {
		n = pin_user_pages_fast(address, min_t(u64, n_pages, BATCH),
					FOLL_WRITE | FOLL_LONGTERM, pages);
		if (n <= 0) {
			r = n ? n : -EFAULT;
			break;
		}
		r = batch_add(memory, first, max, pages, n);
		address += (u64)n * PAGE_SIZE;
		n_pages -= n;
		if (r == 0 && fatal_signal_pending(current))
			r = -EINTR;
		cond_resched();
	}
	kfree(pages);
	return r;
}

static int charge(struct ctn_device *device, u64 n_pages)
{
	s64 max = ctn_max_pinned_mb ? (s64)ctn_max_pinned_mb << (20 - PAGE_SHIFT)
				    : totalram_pages() / 2;

	if (atomic64_add_return(n_pages, &device->counters[COUNTER_PINNED_PAGES]) <= max)
		return 0;
	atomic64_sub(n_pages, &device->counters[COUNTER_PINNED_PAGES]);
	return -EDQUOT;
}

int ctn_memory_pin(struct ctn_device *device, struct ctn_memory *memory, u64 address, u64 size)
{
	u64 n_pages = size >> PAGE_SHIFT;
	u32 first = memory->n_pieces;
	int r;

	if (!size || size > WIRE_MAX_GRANT || address % PAGE_SIZE || size % PAGE_SIZE ||
	    address + size < address)
		return -EINVAL;
	r = charge(device, n_pages);
	if (r < 0)
		return r;
	r = pages_pin(memory, first, device->hello.max_pieces, address, n_pages);
	if (r < 0) {
		pieces_unpin(memory, first);
		atomic64_sub(n_pages, &device->counters[COUNTER_PINNED_PAGES]);
		return r;
	}
	if (!memory->n_pages)
		memory->address = address;
	memory->n_pages += n_pages;
	atomic64_add(n_pages, &current->mm->pinned_vm);
	return 0;
}

void ctn_memory_release(struct ctn_device *device, struct ctn_memory *memory, struct mm_struct *mm,
			bool unpin)
{
	if (unpin)
		pieces_unpin(memory, 0);
	else
		atomic64_add(memory->n_pages, &device->counters[COUNTER_LEAKED_PAGES]);
	if (memory->n_pages) {
		atomic64_sub(memory->n_pages, &device->counters[COUNTER_PINNED_PAGES]);
		atomic64_sub(memory->n_pages, &mm->pinned_vm);
	}
	kvfree(memory->pieces);
	*memory = (struct ctn_memory){ 0 };
}
