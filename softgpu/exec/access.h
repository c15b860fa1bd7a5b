/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the addresses in a warp's lanes to host memory, checked.
 *
 * The operands of a memory instruction are laid out alike for all: op[0] is
 * the address register, then results, then sources.
 */
#ifndef SOFTGPU_EXEC_ACCESS_H
#define SOFTGPU_EXEC_ACCESS_H

#include "softgpu/exec/block.h"
#include "softgpu/exec/machine.h"
#include "softgpu/mem/space.h"

enum access_shape {
	ACCESS_SCATTERED,  /* p[l] for each lane */
	ACCESS_CONTIGUOUS, /* lane l at base + l * size, all 32 lanes */
	ACCESS_UNIFORM,	   /* all lanes at base */
};

struct access {
	enum access_shape shape;
	u8 *base;
	u8 *p[LANES];
};

/* One generic address: windows first, then what space_ok_in() says. */
static inline u8 *access_lane(struct warp *w, u64 addr, u32 lane, u64 size, bool write)
{
	u64 offset = addr - SHARED_WINDOW;

	if (__builtin_expect(offset < 3 * WINDOW_BYTES, 0)) {
		const struct block *block = w->block;

		if (offset < WINDOW_BYTES && offset + size <= block->shared_size)
			return block->shared + offset;
		offset -= WINDOW_BYTES;
		if (offset < WINDOW_BYTES && offset + size <= w->local_size)
			return w->local + lane * (size_t)w->local_stride + offset;
		offset -= WINDOW_BYTES;
		if (offset < WINDOW_BYTES && offset + size <= block->launch->param_bytes && !write)
			return block->launch->params + offset;
	} else if (space_ok_in(w->space, addr, size, write)) {
		return (u8 *)(uintptr_t)addr;
	}
	exec_fault_address(w, addr, lane, size, write);
}

/* Lanes' addresses as 64 bits; lanes that do not take part get the first one's. */
static inline u64 access_addresses(struct warp *w, const struct insn *in, u32 mask, u64 *a)
{
	u32 first = (u32)__builtin_ctz(mask);
	u64 start;

	if (in->flags & INSN_FRAME_ADDRESS) {
		u64 at = LOCAL_WINDOW + w->frame->local_base + in->imm;

		LANE_LOOP a[l] = at;
	} else if (in->flags & INSN_WIDE_ADDRESS) {
		const u64 *r = operand(w, in->op[0]);

		LANE_LOOP a[l] = r[l] + in->imm;
	} else {
		const u32 *r = operand(w, in->op[0]);

		LANE_LOOP a[l] = (u32)(r[l] + (u32)in->imm);
	}
	start = a[first];
	if (mask != ALL_LANES) {
		const s32 *on = lanes_on(w, mask);

		LANE_LOOP a[l] = on[l] ? a[l] : start;
	}
	return start;
}

/* Bits in which any address differs from the first, and whether they follow each other. */
static inline u64 access_spread(const u64 *a, u64 start, u64 size, u32 mask, bool *ret_contiguous)
{
	u64 spread = 0, gap = 0;

	LANE_LOOP
	{
		spread |= a[l] ^ start;
		gap |= a[l] ^ (start + (u64)l * size);
	}
	*ret_contiguous = !gap && mask == ALL_LANES;
	return spread;
}

/* global, const and generic */
static inline void access_global(struct warp *w, const u64 *a, u64 start, u64 spread, u32 mask,
				 u64 size, bool write, struct access *ret)
{
	u64 block = start >> SPACE_BLOCK_SHIFT;

	ret->base = (u8 *)(uintptr_t)start;
	if (!spread && !write && start < SHARED_WINDOW)
		ret->shape = ACCESS_UNIFORM;
	if (spread >> SPACE_BLOCK_SHIFT == 0 && block < SPACE_N_BLOCKS &&
	    (w->space[block] & (write ? SPACE_WRITE : SPACE_READ))) {
		LANE_LOOP ret->p[l] = (u8 *)(uintptr_t)a[l];
		return;
	}
	FOR_LANES(l, mask)
		ret->p[l] = access_lane(w, a[l], l, size, write);
	/* In a window the lanes' places need not follow each other as their addresses do. */
	if (start >= SHARED_WINDOW)
		ret->shape = ACCESS_SCATTERED;
}

static inline void access_window(struct warp *w, const struct insn *in, const u64 *a, u32 mask,
				 u64 size, bool write, struct access *ret)
{
	u64 window = in->space == PTX_SPACE_SHARED  ? SHARED_WINDOW
		     : in->space == PTX_SPACE_LOCAL ? LOCAL_WINDOW
						    : PARAM_WINDOW;

	if (in->space != PTX_SPACE_SHARED)
		ret->shape = ACCESS_SCATTERED;
	/* A pointer that went through cvta and back may still carry its window. */
	FOR_LANES(l, mask)
		ret->p[l] =
			access_lane(w, a[l] < WINDOW_BYTES ? window + a[l] : a[l], l, size, write);
	ret->base = ret->p[__builtin_ctz(mask)];
}

/* Shared memory without a look at each lane, when all of them are inside. */
static inline bool access_shared(struct warp *w, const u64 *a, u64 start, u64 spread, u64 size,
				 struct access *ret)
{
	u8 *shared = w->block->shared;
	u64 limit = w->block->shared_size;

	/* The highest address is not above start with every differing bit set. */
	if ((start | spread) + size > limit) {
		u64 most = 0;

		LANE_LOOP most = a[l] > most ? a[l] : most;
		if (most >= WINDOW_BYTES || most + size > limit)
			return false;
	}
	LANE_LOOP ret->p[l] = shared + a[l];
	ret->base = shared + start;
	return true;
}

/**
 * access_resolve() - find the memory of an instruction's lanes
 * @size:	bytes of a lane, all elements together, a power of two
 *
 * Faults if a lane may not go there or its address is no multiple of @size.
 */
static inline void access_resolve(struct warp *w, const struct insn *in, u32 mask, u64 size,
				  bool write, struct access *ret)
{
	bool contiguous;
	u64 a[LANES], start, spread;

	start = access_addresses(w, in, mask, a);
	spread = access_spread(a, start, size, mask, &contiguous);
	ret->shape = contiguous ? ACCESS_CONTIGUOUS : ACCESS_SCATTERED;
	if (__builtin_expect((start | spread) & (size - 1), 0))
		exec_fault_misaligned(w, a, mask, size);

	switch (in->space) {
	case PTX_SPACE_SHARED:
		if (access_shared(w, a, start, spread, size, ret))
			return;
		access_window(w, in, a, mask, size, write, ret);
		return;
	case PTX_SPACE_LOCAL:
	case PTX_SPACE_PARAM:
		access_window(w, in, a, mask, size, write, ret);
		return;
	default:
		access_global(w, a, start, spread, mask, size, write, ret);
	}
}

/* Does each lane of a load or store see all its elements at once? Those that others wait for. */
static inline bool access_is_whole(u32 sem, u32 vec, u32 element_bytes)
{
	return sem > PTX_SEM_WEAK && (vec > 1 || element_bytes > 8);
}

/* Polling costs a part of the warp's turn, so that what it waits for gets one. */
static inline void access_charge_poll(struct warp *w)
{
	w->spun += POLL_COST;
}

#endif
