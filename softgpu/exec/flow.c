/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes that go different ways.
 *
 * A branch that some lanes take and others do not makes two fragments of one.
 * The fragment that is furthest behind runs: the one in the deepest call, of
 * those the one at the lowest place in the code. So lanes that left a loop
 * early wait behind it for the rest, and meet them there. No analysis is
 * needed for that, only that code is laid out in about the order in which it
 * runs, as compilers do.
 *
 * Alone this would let a lane spin for ever on a lock that a lane further on
 * holds. So when a slice ends and others were ready, the next slice is the
 * forced turn of one of them, each in turn: threads always make progress.
 */
#include "softgpu/exec/block.h"
#include "softgpu/exec/isa.h"

static void fragment_save(struct warp *w)
{
	struct fragment *f = &w->fragments[w->current];

	f->pc = w->pc;
	f->frame = w->frame;
	f->mask = w->active;
}

static void fragment_load(struct warp *w, u32 index)
{
	struct fragment *f = &w->fragments[index];

	w->current = index;
	w->pc = f->pc;
	w->frame = f->frame;
	w->active = f->mask;
	w->base[0] = f->frame->regs;
	w->base[1] = f->frame->code->constants;
}

/* The last one takes the place of the one that goes. */
static void fragment_remove(struct warp *w, u32 index)
{
	u32 last = --w->n_fragments;

	if (index == last)
		return;
	w->fragments[index] = w->fragments[last];
	if (w->current == last)
		w->current = index;
}

void fragment_add(struct warp *w, u32 mask, const struct insn *pc, struct frame *frame)
{
	struct fragment *f;

	for (u32 i = 0; i < w->n_fragments; i++) {
		f = &w->fragments[i];
		if (i != w->current && f->state == FRAGMENT_READY && f->pc == pc &&
		    f->frame == frame) {
			f->mask |= mask;
			return;
		}
	}
	f = &w->fragments[w->n_fragments++];
	*f = (struct fragment){ .pc = pc, .frame = frame, .mask = mask };
}

static bool behind(const struct fragment *a, const struct fragment *b)
{
	if (a->frame != b->frame && a->frame->depth != b->frame->depth)
		return a->frame->depth > b->frame->depth;
	return a->pc < b->pc;
}

/* The fragment that should run; false if none is ready. */
static bool fragment_choose(struct warp *w, u32 *ret_index)
{
	struct fragment *best = NULL;

	for (u32 i = 0; i < w->n_fragments; i++) {
		struct fragment *f = &w->fragments[i];

		if (f->state != FRAGMENT_READY || !(f->mask & w->turn))
			continue;
		if (!best || behind(f, best))
			best = f;
	}
	if (!best)
		return false;
	*ret_index = (u32)(best - w->fragments);
	return true;
}

/* Takes in whoever is ready at the same place. */
static void fragment_merge(struct warp *w)
{
	struct fragment *mine = &w->fragments[w->current];

	for (u32 i = w->n_fragments; i-- > 0;) {
		struct fragment *f = &w->fragments[i];

		if (i == w->current || f->state != FRAGMENT_READY || f->pc != mine->pc ||
		    f->frame != mine->frame)
			continue;
		mine->mask |= f->mask;
		fragment_remove(w, i);
		mine = &w->fragments[w->current];
	}
	w->active = mine->mask;
}

/*
 * Both of the above in one pass, as this is what divergent code does most. If
 * another fragment is to run, nobody else is where it is: they would have met.
 */
int warp_meet(struct warp *w)
{
	struct fragment *mine, *best;

	if (w->n_fragments == 1)
		return RUN_ON;
	fragment_save(w);
	mine = best = &w->fragments[w->current];
	for (struct fragment *f = w->fragments; f < w->fragments + w->n_fragments; f++) {
		if (f == mine || f->state != FRAGMENT_READY)
			continue;
		if (f->pc == mine->pc && f->frame == mine->frame) {
			fragment_merge(w);
			return warp_meet(w);
		}
		if (f->mask & w->turn && behind(f, best))
			best = f;
	}
	if (best != mine)
		fragment_load(w, (u32)(best - w->fragments));
	return RUN_ON;
}

int warp_split(struct warp *w, u32 mask, const struct insn *target)
{
	if (mask == w->active) {
		w->pc = target;
	} else {
		w->active &= ~mask;
		fragment_add(w, mask, target, w->frame);
	}
	if (w->executed + w->spun >= w->slice_end) {
		fragment_save(w);
		return RUN_SWITCH;
	}
	return warp_meet(w);
}

void warp_keep(struct warp *w, u32 mask, const struct insn *rest)
{
	u32 others = w->active & ~mask;

	if (!others)
		return;
	w->active = mask;
	fragment_add(w, others, rest, w->frame);
}

int warp_wait(struct warp *w, u32 mask, enum fragment_state state, const struct insn *in)
{
	struct fragment *f;

	warp_keep(w, mask, w->pc);
	fragment_save(w);
	f = &w->fragments[w->current];
	f->state = (u8)state;
	f->wait = in;
	return RUN_SWITCH;
}

int warp_leave(struct warp *w, u32 mask)
{
	w->active &= ~mask;
	if (w->active)
		return warp_meet(w);
	fragment_remove(w, w->current);
	return RUN_SWITCH;
}

/* Who runs in the coming slice: everybody, or one fragment whose turn it is. */
static void choose_turn(struct warp *w)
{
	u32 first = UINT32_MAX, next = UINT32_MAX, n = 0;
	u32 turn = ALL_LANES;

	for (u32 i = 0; i < w->n_fragments; i++) {
		u32 lane = (u32)__builtin_ctz(w->fragments[i].mask);

		if (w->fragments[i].state != FRAGMENT_READY)
			continue;
		n++;
		first = lane < first ? lane : first;
		if (lane > w->last_turn && lane < next)
			next = lane;
	}
	if (n > 1 && w->turn == ALL_LANES) {
		w->last_turn = next != UINT32_MAX ? next : first;
		for (u32 i = 0; i < w->n_fragments; i++) {
			if (w->fragments[i].mask >> w->last_turn & 1)
				turn = w->fragments[i].mask;
		}
	}
	w->turn = turn;
}

static void wake_sleepers(struct warp *w)
{
	u64 now = exec_now_ns();

	w->sleeping = false;
	for (u32 i = 0; i < w->n_fragments; i++) {
		struct fragment *f = &w->fragments[i];

		if (f->state == FRAGMENT_SLEEP && f->wake_ns <= now)
			f->state = FRAGMENT_READY;
		w->sleeping |= f->state == FRAGMENT_SLEEP;
	}
}

void warp_run(struct warp *w, u64 slice)
{
	u32 index;

	w->slice_end = w->executed + w->spun + slice;
	/* The usual case: all lanes are together and ready. */
	if (w->n_fragments == 1 && w->fragments[0].state == FRAGMENT_READY) {
		w->turn = ALL_LANES;
		fragment_load(w, 0);
		exec_isa->warp_loop(w);
		if (!w->n_fragments)
			return;
	}
	if (w->sleeping)
		wake_sleepers(w);
	choose_turn(w);
	while (w->executed + w->spun < w->slice_end) {
		if (fragment_choose(w, &index)) {
			fragment_load(w, index);
			fragment_merge(w);
			exec_isa->warp_loop(w);
			continue;
		}
		if (w->turn == ALL_LANES)
			break;
		/* Whose turn it was waits or has ended: back to the usual order. */
		w->turn = ALL_LANES;
	}
}

/* ---- instructions ----------------------------------------------------------------------------- */

int flow_join(struct warp *w, _unused_ const struct insn *in, _unused_ u32 mask)
{
	return warp_meet(w);
}

int warp_pause(struct warp *w)
{
	fragment_save(w);
	return RUN_SWITCH;
}

/* Compiled code does what it can from here on, and leaves w->pc where the interpreter goes on. */
int flow_enter(struct warp *w, const struct insn *in, _unused_ u32 mask)
{
	const struct jit_code *jit = compiled_code(w->frame->code, w->block->launch->rows);

	return jit ? exec_compiler->enter(w, in, jit) : RUN_ON;
}

int flow_bra(struct warp *w, const struct insn *in, u32 mask)
{
	return warp_split(w, mask, in->target);
}

/*
 * Lanes with the same index go together; the others come back to this instruction. So may those
 * that went, before them, and would be first again: each time another lane says which group it is.
 */
int flow_brx(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *index = operand(w, in->op[0]);
	u32 later = mask & ~((2u << w->last_led) - 1);
	u32 first = (u32)__builtin_ctz(later ? later : mask), same = 0;

	w->last_led = first;
	if (index[first] >= in->table->n)
		exec_fault(w, first, EXEC_FAULT_PC, "branch table index %u of %u", index[first],
			   in->table->n);
	FOR_LANES(l, mask)
		same |= (u32)(index[l] == index[first]) << l;
	if (same != mask) {
		u32 rest = mask & ~same;

		w->executed -= (u32)__builtin_popcount(rest);
		w->active &= ~rest;
		fragment_add(w, rest, in, w->frame);
	}
	return warp_split(w, same, in->table->targets[index[first]]);
}

int flow_nanosleep(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *ns = operand(w, in->op[0]);
	u32 longest = 0;
	int r;

	FOR_LANES(l, mask)
		longest = ns[l] > longest ? ns[l] : longest;
	/* Hardware sleeps a millisecond at most. */
	if (longest > 1000000)
		longest = 1000000;
	r = warp_wait(w, mask, FRAGMENT_SLEEP, in);
	w->fragments[w->current].wake_ns = exec_now_ns() + longest;
	w->sleeping = true;
	return r;
}

int flow_trap(struct warp *w, _unused_ const struct insn *in, u32 mask)
{
	exec_fault(w, (u32)__builtin_ctz(mask), EXEC_FAULT_TRAP, "trap");
}
