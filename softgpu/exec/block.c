/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block: its warps, its shared memory, its threads' local memory.
 *
 * A block is run by one worker at a time, warp by warp, each for a slice. It
 * can be left at the end of any slice, and another worker may go on with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/exec/block.h"

/* Instructions of threads in a warp's turn: 4,096 of a full warp. */
#define WARP_SLICE (128 * 1024)

/* So often the clock is looked at: some microseconds to some tens of them. */
#define LOOK_AT_CLOCK (32 * 1024)

/* ---- from start to end -------------------------------------------------------------------------- */

static void frame_reset_top(struct frame *f)
{
	for (u32 l = 0; l < LANES; l++)
		f->top[l] = f->code->local_bytes;
}

static void warp_start(struct warp *w)
{
	struct frame *f = w->kernel_frame;

	f->code = w->block->launch->code;
	f->live = w->lanes;
	f->kept = 0;
	/* Only alloca moves it. */
	if (f->code->deep)
		frame_reset_top(f);
	w->frame = f;
	w->base[0] = f->regs;
	w->base[1] = f->code->constants;
	w->pc = f->code->insns;
	w->active = w->lanes;
	w->slice_end = WARP_SLICE;
	w->is_new = true;
	w->alive = w->lanes;
	w->turn = ALL_LANES;
	w->last_turn = 0;
	w->last_led = 0;
	w->sleeping = false;
	w->n_fragments = 1;
	w->current = 0;
	w->fragments[0] = (struct fragment){
		.pc = f->code->insns,
		.frame = f,
		.mask = w->lanes,
	};
}

static struct warp *warp_new(struct block *block, u32 index)
{
	const struct exec_launch *launch = block->launch;
	struct warp *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);
	size_t frame_bytes = sizeof(struct frame) + launch->code->regs_bytes;

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->kernel_frame = aligned_alloc(64, (frame_bytes + 63) / 64 * 64);
	if (!w->kernel_frame) {
		free(w);
		return NULL;
	}
	memset(w->kernel_frame, 0, frame_bytes);
	w->kernel_frame->code = launch->code;
	frame_reset_top(w->kernel_frame);
	w->block = block;
	w->index = index;
	w->services = exec_compiler ? exec_compiler->services : NULL;
	w->local_stride = launch->local_stride;
	w->local_size = launch->local_bytes;
	w->space = launch->space;
	if (block->local)
		w->local = block->local + (size_t)index * LANES * launch->local_stride;
	for (u32 l = 0; l < LANES; l++) {
		u32 thread = index * LANES + l;

		if (thread < launch->n_threads)
			w->lanes |= 1u << l;
		w->tid[0][l] = thread % launch->block[0];
		w->tid[1][l] = thread / launch->block[0] % launch->block[1];
		w->tid[2][l] = thread / launch->block[0] / launch->block[1];
	}
	warp_start(w);
	return w;
}

/* Frames of calls that a fault has left, or an end in the middle. */
static void warp_drop_frames(struct warp *w)
{
	while (w->frames) {
		struct frame *f = w->frames;

		w->frames = f->next;
		free(f);
	}
}

void block_free(struct block *block)
{
	if (!block)
		return;
	for (u32 i = 0; block->warps && i < block->n_warps; i++) {
		if (!block->warps[i])
			continue;
		warp_drop_frames(block->warps[i]);
		free(block->warps[i]->kernel_frame);
		free(block->warps[i]);
	}
	free(block->warps);
	free(block->shared);
	if (block->local_bytes)
		munmap(block->local, block->local_bytes);
	free(block);
}

/* Untouched pages cost nothing: most kernels name more local memory than they use. */
static bool local_map(struct block *block)
{
	const struct exec_launch *launch = block->launch;
	size_t bytes = (size_t)launch->local_stride * LANES * launch->n_warps;
	void *p;

	if (!bytes)
		return true;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return false;
	block->local = p;
	block->local_bytes = bytes;
	return true;
}

struct block *block_new(struct exec_launch *launch)
{
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->launch = launch;
	block->n_warps = launch->n_warps;
	block->shared_size = launch->shared_bytes;
	block->warps = calloc(block->n_warps, sizeof(struct warp *));
	/* Vector loads never read past what they are asked for, but it need not be empty. */
	block->shared = aligned_alloc(64, (block->shared_size + 127) / 64 * 64);
	if (!block->warps || !block->shared || !local_map(block))
		goto no_memory;
	for (u32 i = 0; i < block->n_warps; i++) {
		block->warps[i] = warp_new(block, i);
		if (!block->warps[i])
			goto no_memory;
	}
	return block;

no_memory:
	block_free(block);
	return NULL;
}

/* Nobody waits any more. */
static void block_forget_barriers(struct block *block)
{
	memset(block->barriers, 0, sizeof(block->barriers));
	for (u32 i = 0; i < block->n_warps; i++)
		memset(block->warps[i]->barrier_arrived, 0,
		       sizeof(block->warps[i]->barrier_arrived));
	block->barriers_used = 0;
}

/* Division of 32 bits is much faster than that of 64, and nearly all grids allow it. */
static void place_block(struct block *block, u64 index)
{
	const u32 *grid = block->launch->grid;

	if (index <= UINT32_MAX) {
		block->ctaid[0] = (u32)index % grid[0];
		block->ctaid[1] = (u32)index / grid[0] % grid[1];
		block->ctaid[2] = (u32)index / grid[0] / grid[1];
	} else {
		block->ctaid[0] = (u32)(index % grid[0]);
		block->ctaid[1] = (u32)(index / grid[0] % grid[1]);
		block->ctaid[2] = (u32)(index / grid[0] / grid[1]);
	}
}

void block_start(struct block *block, u64 index)
{
	block->index = index;
	place_block(block, index);
	block->n_alive = block->n_warps;
	block->turn = 0;
	block->wake_ns = 0;
	/* Threads that end leave none behind; a fault does. */
	if (block->barriers_used)
		block_forget_barriers(block);
	block->fresh = true;
}

/* ---- faults ------------------------------------------------------------------------------------- */

static _Thread_local struct fault {
	jmp_buf away;
	int code;
	char message[160];
} * this_fault;

void exec_fault(struct warp *w, u32 lane, int code, const char *format, ...)
{
	struct fault *fault = this_fault;
	const struct block *block = w->block;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(fault->message, sizeof(fault->message), format, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(fault->message))
		snprintf(fault->message + n, sizeof(fault->message) - (size_t)n,
			 " in %s, block (%u,%u,%u) thread (%u,%u,%u)", w->frame->code->name,
			 block->ctaid[0], block->ctaid[1], block->ctaid[2], w->tid[0][lane],
			 w->tid[1][lane], w->tid[2][lane]);
	fault->code = code;
	longjmp(fault->away, 1);
}

void exec_fault_address(struct warp *w, u64 addr, u32 lane, u64 size, bool write)
{
	exec_fault(w, lane, EXEC_FAULT_ADDRESS, "%s of %llu bytes at 0x%llx",
		   write ? "store" : "load", (unsigned long long)size, (unsigned long long)addr);
}

void exec_fault_misaligned(struct warp *w, const u64 *addresses, u32 mask, u64 size)
{
	FOR_LANES(l, mask) {
		if (addresses[l] & (size - 1))
			exec_fault(w, l, EXEC_FAULT_MISALIGNED, "%llu bytes at misaligned 0x%llx",
				   (unsigned long long)size, (unsigned long long)addresses[l]);
	}
	exec_fault(w, (u32)__builtin_ctz(mask), EXEC_FAULT_MISALIGNED, "misaligned address");
}

/* ---- running ------------------------------------------------------------------------------------ */

static u64 first_wake(const struct block *block)
{
	u64 first = UINT64_MAX;

	for (u32 i = 0; i < block->n_warps; i++) {
		const struct warp *w = block->warps[i];

		for (u32 k = 0; w->sleeping && k < w->n_fragments; k++) {
			if (w->fragments[k].state == FRAGMENT_SLEEP &&
			    w->fragments[k].wake_ns < first)
				first = w->fragments[k].wake_ns;
		}
	}
	return first;
}

/* What a warp has done since the last time. */
static void take_progress(struct warp *w, struct block_progress *ret)
{
	ret->executed += w->executed;
	ret->spun += w->spun;
	w->executed = 0;
	w->spun = 0;
}

/* A turn of one warp; whether it ran at all. */
static bool run_warp(struct warp *w, struct block_progress *ret)
{
	bool any;

	if (!w->n_fragments)
		return false;
	warp_run(w, WARP_SLICE);
	any = w->executed != 0;
	take_progress(w, ret);
	return any;
}

static void warp_renew(struct warp *w)
{
	if (!w->is_new)
		warp_start(w);
}

/*
 * Warps of most kernels go from start to end in compiled code, and are then as they were: one after
 * the other, until one has more to do. Returns how many have ended, and that the next is under way.
 */
static u32 pass_warps(struct block *block, const struct jit_code *jit, struct block_progress *ret,
		      bool *ret_under_way)
{
	bool ended = true;
	u32 n = 0;

	while (ended && n < block->n_warps && ret->executed + ret->spun < LOOK_AT_CLOCK) {
		struct warp *w = block->warps[n];

		warp_renew(w);
		ended = exec_compiler->pass(w, jit);
		w->is_new = ended && w->n_fragments == 1;
		take_progress(w, ret);
		n += ended;
	}
	*ret_under_way = !ended;
	return n;
}

/* What is not done with that is the interpreter's, and sees that the others have ended. */
static void run_fresh(struct block *block, struct block_progress *ret)
{
	const struct jit_code *jit = compiled_code(block->launch->code, block->launch->rows);
	bool under_way = false;
	u32 n_ended = jit ? pass_warps(block, jit, ret, &under_way) : 0;

	block->fresh = false;
	block->n_alive -= n_ended;
	if (!block->n_alive)
		return;
	block->turn = n_ended;
	for (u32 i = 0; i < block->n_warps; i++) {
		struct warp *w = block->warps[i];

		if (i < n_ended) {
			w->n_fragments = 0;
			w->alive = 0;
		} else if (i > n_ended || !under_way) {
			warp_renew(w);
		}
		w->is_new = false;
	}
}

static void run_warps(struct block *block, struct block_progress *ret, u64 budget, u64 deadline_ns)
{
	u64 look = LOOK_AT_CLOCK;
	bool any = true;

	/* A round in which no warp ran at all ends it: they wait for something outside. */
	while (any && block->n_alive && ret->executed + ret->spun < budget) {
		any = false;
		for (u32 i = 0; i < block->n_warps; i++) {
			any |= run_warp(block->warps[block->turn], ret);
			block->turn = block->turn + 1 < block->n_warps ? block->turn + 1 : 0;
			if (!deadline_ns || ret->executed + ret->spun < look)
				continue;
			/* Whoever is late here is first in the next slice. */
			look = ret->executed + ret->spun + LOOK_AT_CLOCK;
			if (exec_now_ns() >= deadline_ns)
				return;
		}
	}
	ret->waits = !any;
}

void block_run(struct block *block, u64 budget, u64 deadline_ns, struct block_progress *ret)
{
	struct fault fault;

	*ret = (struct block_progress){ 0 };
	fault.code = EXEC_FAULT_NONE;
	this_fault = &fault;
	if (!setjmp(fault.away)) {
		if (block->fresh)
			run_fresh(block, ret);
		run_warps(block, ret, budget, deadline_ns);
	} else {
		for (u32 i = 0; i < block->n_warps; i++)
			ret->executed += block->warps[i]->executed;
		ret->fault = fault.code;
		memcpy(ret->message, fault.message, sizeof(ret->message));
		return;
	}
	ret->ended = !block->n_alive;
	if (ret->waits && !ret->ended)
		block->wake_ns = first_wake(block);
}
