/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads wait for each other: the sixteen barriers of a block, and
 * operations of a warp's lanes that come at different times.
 */
#include "softgpu/exec/block.h"

/* ---- barriers of a block ----------------------------------------------------------------------- */

/*
 * Threads of a warp that have arrived. Numbers of threads that a program names
 * are multiples of the warp's size, so a warp of which nobody is missing
 * counts in full, with lanes that have ended or never were.
 */
static u32 warp_arrivals(const struct warp *w, u32 id)
{
	u32 arrived = w->barrier_arrived[id];

	if (arrived && (arrived | ~w->alive) == ALL_LANES)
		return LANES;
	return (u32)__builtin_popcount(arrived);
}

static bool barrier_complete(const struct block *block, u32 id)
{
	u32 expected = block->barriers[id].expected, n = 0;

	for (u32 i = 0; i < block->n_warps; i++) {
		const struct warp *w = block->warps[i];

		if (!expected && (w->alive & ~w->barrier_arrived[id]))
			return false;
		n += warp_arrivals(w, id);
	}
	return n >= expected;
}

/* What bar.red gives to everybody who waited. */
static void barrier_result(_unused_ struct warp *w, const struct fragment *f,
			   const struct barrier *barrier)
{
	const struct insn *in = f->wait;
	bool value = in->bop == PTX_BOP_AND ? !barrier->n_false : barrier->n_true > 0;
	u32 *d = (u32 *)(f->frame->regs + in->op[2]);

	if (in->bop == PTX_BOP_POPC) {
		FOR_LANES(l, f->mask)
			d[l] = barrier->n_true;
	} else {
		*d = value ? *d | f->mask : *d & ~f->mask;
	}
}

static void barrier_release(struct block *block, u32 id)
{
	struct barrier *barrier = &block->barriers[id];

	for (u32 i = 0; i < block->n_warps; i++) {
		struct warp *w = block->warps[i];

		w->barrier_arrived[id] = 0;
		for (u32 k = 0; k < w->n_fragments; k++) {
			struct fragment *f = &w->fragments[k];

			if (f->state != FRAGMENT_BARRIER || f->barrier != id)
				continue;
			if (f->wait->mode == PTX_MODE_RED)
				barrier_result(w, f, barrier);
			f->state = FRAGMENT_READY;
		}
	}
	*barrier = (struct barrier){ 0 };
	block->barriers_used &= ~(1u << id);
}

void block_check_barriers(struct block *block)
{
	for (u32 used = block->barriers_used; used; used &= used - 1) {
		u32 id = (u32)__builtin_ctz(used);

		if (barrier_complete(block, id))
			barrier_release(block, id);
	}
}

/* op[0] barrier, op[1] threads (0: all), op[2] result and op[3] predicate of red. */
int flow_barrier(struct warp *w, const struct insn *in, u32 mask)
{
	u32 first = (u32)__builtin_ctz(mask), id = ((u32 *)operand(w, in->op[0]))[first];
	u32 expected = ((u32 *)operand(w, in->op[1]))[first];
	struct block *block = w->block;
	struct barrier *barrier;

	if (id >= N_BARRIERS)
		exec_fault(w, first, EXEC_FAULT_TRAP, "barrier %u of %u", id, N_BARRIERS);
	barrier = &block->barriers[id];
	block->barriers_used |= 1u << id;
	barrier->expected = expected;
	w->barrier_arrived[id] |= mask;
	if (in->mode == PTX_MODE_RED) {
		u32 p = predicate(w, in->op[3]) ^ (in->flags & INSN_NEG_PRED ? ALL_LANES : 0);

		barrier->n_true += (u32)__builtin_popcount(mask & p);
		barrier->n_false += (u32)__builtin_popcount(mask & ~p);
	}
	if (in->mode != PTX_MODE_ARRIVE) {
		warp_wait(w, mask, FRAGMENT_BARRIER, in);
		w->fragments[w->current].barrier = (u8)id;
	}
	if (barrier_complete(block, id)) {
		barrier_release(block, id);
		return in->mode == PTX_MODE_ARRIVE ? RUN_ON : warp_meet(w);
	}
	return in->mode == PTX_MODE_ARRIVE ? RUN_ON : RUN_SWITCH;
}

/* ---- lanes of a warp --------------------------------------------------------------------------- */

/* What the lanes bring: predicate bits, or words of 4 or 8 bytes, and two words more. */
static void sync_bring(struct warp *w, const struct insn *in, u32 mask)
{
	const u8 *a = operand(w, in->op[2]);
	const u32 *b = operand(w, in->op[3]), *c = operand(w, in->op[4]);

	if (!in->bytes) {
		u32 p = predicate(w, in->op[2]) ^ (in->flags & INSN_NEG_PRED ? ALL_LANES : 0);

		FOR_LANES(l, mask)
			w->exchange_a[l] = p >> l & 1;
		return;
	}
	FOR_LANES(l, mask) {
		u64 v = 0;

		memcpy(&v, a + l * in->bytes, in->bytes);
		w->exchange_a[l] = v;
		w->exchange_b[l] = b[l];
		w->exchange_c[l] = c[l];
	}
}

/*
 * Has the fragment come for the same? What is carried out once for all lanes has to be one and the same
 * instruction, as its operands are those of all.
 */
static bool waits_with(const struct fragment *f, const struct insn *in, u32 members)
{
	return f->state == FRAGMENT_WARP_SYNC && f->members == members &&
	       f->wait->inner == in->inner && (f->wait == in || !(in->flags & INSN_TOGETHER));
}

/* Lets the lanes that wait for @members take what they came for, if all are there. */
static bool sync_finish(struct warp *w, const struct insn *in, u32 members)
{
	bool together = in->flags & INSN_TOGETHER;
	u8 *base = w->base[0];
	u32 there = 0;

	for (u32 i = 0; i < w->n_fragments; i++) {
		if (waits_with(&w->fragments[i], in, members))
			there |= w->fragments[i].mask;
	}
	if (members & w->alive & ~there)
		return false;

	w->members = there;
	if (together)
		in->inner(w, in, there);
	for (u32 i = 0; i < w->n_fragments; i++) {
		struct fragment *f = &w->fragments[i];

		if (!waits_with(f, in, members))
			continue;
		w->base[0] = f->frame->regs;
		if (!together)
			f->wait->inner(w, f->wait, f->mask);
		f->state = FRAGMENT_READY;
	}
	w->base[0] = base;
	return true;
}

void warp_check_sync(struct warp *w)
{
	for (u32 i = 0; i < w->n_fragments; i++) {
		struct fragment *f = &w->fragments[i];

		if (f->state == FRAGMENT_WARP_SYNC)
			sync_finish(w, f->wait, f->members);
	}
}

/*
 * The first half of what lanes do together: come, and wait for the others.
 * in->inner is the second half. Lanes that name different members are groups
 * of their own and go one after the other.
 */
int warp_sync(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *named = operand(w, in->op[5]);
	u32 members = named[__builtin_ctz(mask)], same = 0;

	if (!(in->flags & INSN_SYNC)) {
		members = mask;
		same = mask;
	} else {
		FOR_LANES(l, mask)
			same |= (u32)(named[l] == members) << l;
	}
	if (same != mask) {
		w->executed -= (u32)__builtin_popcount(mask & ~same);
		w->active &= ~(mask & ~same);
		fragment_add(w, mask & ~same, in, w->frame);
		mask = same;
	}
	if (!(in->flags & INSN_TOGETHER))
		sync_bring(w, in, mask);
	if (!(members & w->alive & ~mask)) {
		w->members = mask;
		in->inner(w, in, mask);
		return warp_meet(w);
	}
	warp_wait(w, mask, FRAGMENT_WARP_SYNC, in);
	w->fragments[w->current].members = members;
	return sync_finish(w, in, members) ? warp_meet(w) : RUN_SWITCH;
}
