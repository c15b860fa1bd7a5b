/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the interpreter into compiled code and back.
 *
 * Registers that compiled code holds as one word are looked up in the frame and tried when it is
 * entered, and spread over the lanes when it is left. Neither is done where it is left and entered
 * again at once, as around a barrier: the words stay (frame->kept).
 */
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/jit/code.h"

/* Registers of a fragment while others have theirs in the frame's. */
static _Thread_local struct {
	u8 *bytes;
	u32 size;
	bool in_use; /* by the compiled code that runs */
} scratch;

/*
 * Where lanes part again and again, compiled code is left after a few instructions. To enter it costs
 * as much as the interpreter takes for one or two of them, but where other fragments wait, whose lanes
 * have to stay as they are, for some thirty. So an entry from which a warp did not get that far is
 * passed by for a while, longer each time. Entries that share a place in the warp's memory only make
 * each other slower or faster.
 */
#define WORTH_ALONE  2 /* instructions */
#define WORTH_OTHERS 36
#define MAX_PATIENCE 5 /* 31 are passed by for one that is tried */

bool jit_always;

/* ---- words and lanes ------------------------------------------------------------------------------ */

/* base + lane * stride for the lanes in the mask? */
#define COLLECT(name, T)                                                                           \
	static bool name(const T *lanes, u32 mask, s64 stride, u64 *ret)                           \
	{                                                                                          \
		u32 first = (u32)__builtin_ctz(mask);                                              \
		T base = (T)(lanes[first] - (T)((u64)stride * first)), step = (T)stride,           \
		  differ = 0;                                                                      \
                                                                                                   \
		*ret = base;                                                                       \
		if (mask == ALL_LANES) {                                                           \
			LANE_LOOP differ |= (T)(lanes[l] ^ (T)(base + (T)(step * (T)l)));          \
			return !differ;                                                            \
		}                                                                                  \
		FOR_LANES(l, mask)                                                                 \
			differ |= (T)(lanes[l] ^ (T)(base + (T)(step * (T)l)));                    \
		return !differ;                                                                    \
	}
COLLECT(collect_16, u16)
COLLECT(collect_32, u32)
COLLECT(collect_64, u64)

static bool collect(const u8 *regs, const struct jit_value *v, u32 mask, u64 *ret)
{
	const u8 *at = regs + v->place;
	u32 bits;

	switch (v->cls) {
	case PTX_CLASS_P:
		memcpy(&bits, at, sizeof(bits));
		*ret = (bits & mask) != 0;
		return (bits & mask) == 0 || (bits & mask) == mask;
	case PTX_CLASS_H:
		return collect_16((const u16 *)at, mask, v->stride, ret);
	case PTX_CLASS_W:
		return collect_32((const u32 *)at, mask, v->stride, ret);
	default:
		return collect_64((const u64 *)at, mask, v->stride, ret);
	}
}

static bool collect_all(const struct jit_code *jit, u32 entry, const u8 *regs, u64 *scalars,
			u32 mask)
{
	const struct jit_value *v = jit->values + jit->entries[entry].first;

	for (u32 i = 0; i < jit->entries[entry].n; i++, v++) {
		if (!collect(regs, v, mask, &scalars[v->scalar]))
			return false;
	}
	return true;
}

#define SPREAD(name, T)                                                                            \
	static void name(T *lanes, u32 mask, u64 word, s64 stride)                                 \
	{                                                                                          \
		T base = (T)word, step = (T)stride;                                                \
                                                                                                   \
		if (mask == ALL_LANES) {                                                           \
			LANE_LOOP lanes[l] = (T)(base + (T)(step * (T)l));                         \
			return;                                                                    \
		}                                                                                  \
		FOR_LANES(l, mask)                                                                 \
			lanes[l] = (T)(base + (T)(step * (T)l));                                   \
	}
SPREAD(spread_16, u16)
SPREAD(spread_32, u32)
SPREAD(spread_64, u64)

static void spread(u8 *regs, const struct jit_value *v, u32 mask, u64 word)
{
	u8 *at = regs + v->place;
	u32 bits;

	switch (v->cls) {
	case PTX_CLASS_P:
		memcpy(&bits, at, sizeof(bits));
		bits = word & 1 ? bits | mask : bits & ~mask;
		memcpy(at, &bits, sizeof(bits));
		break;
	case PTX_CLASS_H:
		spread_16((u16 *)at, mask, word, v->stride);
		break;
	case PTX_CLASS_W:
		spread_32((u32 *)at, mask, word, v->stride);
		break;
	default:
		spread_64((u64 *)at, mask, word, v->stride);
	}
}

/* The mask's lanes of a register, from the scratch to the frame. */
static void take_lanes(u8 *regs, u32 place, u8 cls, u32 mask)
{
	u8 *to = regs + place;
	const u8 *from = scratch.bytes + place;
	u32 bytes = 1u << cls, old, new;

	if (cls == PTX_CLASS_P) {
		memcpy(&old, to, 4);
		memcpy(&new, from, 4);
		old = (old & ~mask) | (new &mask);
		memcpy(to, &old, 4);
		return;
	}
	FOR_LANES(l, mask)
		memcpy(to + l * bytes, from + l * bytes, bytes);
}

static void put_back(const struct jit_code *jit, const struct jit_exit *x, u8 *regs,
		     const u64 *scalars, u32 mask, bool alone)
{
	const struct jit_value *v = jit->values + x->first;

	for (u32 i = 0; i < x->n; i++, v++) {
		if (v->is_affine)
			spread(regs, v, mask, scalars[v->scalar]);
		else if (!alone)
			take_lanes(regs, v->place, v->cls, mask);
	}
}

/* ---- handlers that compiled code calls ------------------------------------------------------------- */

static u8 class_of_place(const struct code *code, u32 place)
{
	static const u32 bytes[] = { 4, 64, 128, 256, 512 };

	for (u8 c = 0; c < PTX_N_CLASSES; c++) {
		if (place - code->class_start[c] < code->class_count[c] * bytes[c])
			return c;
	}
	return PTX_CLASS_Q;
}

static void take_operand(struct frame *frame, u32 operand, u32 mask)
{
	u8 cls = operand & OPERAND_CONST ? PTX_CLASS_Q : class_of_place(frame->code, operand);

	if (cls != PTX_CLASS_Q)
		take_lanes(frame->regs, operand, cls, mask);
}

/* What compiled code has handed over lies in the scratch if the frame is not the fragment's alone. */
static void take_operands(struct warp *w, u32 index)
{
	const struct insn *in = &w->frame->code->insns[index];
	const struct insn_shape *shape = &w->frame->code->shapes[index];
	u32 used = shape->reads | (in->guard & OPERAND_CONST ? 0 : shape->writes);

	for (u32 i = 0; i < N_OPERANDS; i++) {
		if (used >> i & 1)
			take_operand(w->frame, in->op[i], w->active);
	}
}

/* Lanes that wait for the others where a branch leads, and read no register there. */
static void part(struct warp *w, const struct insn *in, u32 mask)
{
	w->active &= ~mask;
	fragment_add(w, mask, in->target, w->frame);
}

static void run(struct warp *w, u32 index, u32 mask)
{
	const struct insn *in = &w->frame->code->insns[index];

	if (!mask)
		return;
	if (in->fn == flow_bra) {
		part(w, in, mask);
		return;
	}
	if (scratch.in_use)
		take_operands(w, index);
	in->fn(w, in, mask);
}

const struct exec_services jit_services = { .run = run };

/* ---- in and out ------------------------------------------------------------------------------------ */

static bool want_scratch(u32 size)
{
	u8 *bytes;

	if (scratch.size >= size)
		return true;
	bytes = aligned_alloc(64, (size + 63) / 64 * 64);
	if (!bytes)
		return false;
	free(scratch.bytes);
	scratch.bytes = bytes;
	scratch.size = size;
	return true;
}

/* The first instruction at which another fragment of this frame waits. */
static u32 first_other(const struct warp *w)
{
	u32 first = UINT32_MAX;

	if (w->turn != ALL_LANES)
		return 0;
	for (u32 i = 0; i < w->n_fragments; i++) {
		const struct fragment *f = &w->fragments[i];
		u64 at;

		if (i == w->current || f->state != FRAGMENT_READY || f->frame != w->frame)
			continue;
		at = (u64)(f->pc - w->frame->code->insns);
		if (at < first)
			first = (u32)at;
	}
	return first;
}

/* Where the interpreter goes on, and with what. */
static void leave(struct warp *w, const struct jit_code *jit, const struct jit_exit *x, bool alone)
{
	struct frame *frame = w->frame;
	u64 *scalars = (u64 *)(frame->regs + frame->code->scalars);

	w->pc = frame->code->insns + x->pc;
	/* Some lanes may have been left behind meanwhile, which need nothing of the frame. */
	if (alone && w->n_fragments == 1 && x->entry != JIT_NOT_KEPT)
		frame->kept = x->entry + 1;
	else
		put_back(jit, x, frame->regs, scalars, w->active, alone);
}

static bool is_passed_by(struct warp_entry *entry)
{
	if (!entry->pass_by || jit_always)
		return false;
	entry->pass_by--;
	return true;
}

/* Compiled code has carried out @n instructions for each lane. */
static void judge(struct warp_entry *entry, u64 n, bool alone)
{
	if (n >= (alone ? WORTH_ALONE : WORTH_OTHERS)) {
		entry->patience = 0;
		return;
	}
	if (entry->patience < MAX_PATIENCE)
		entry->patience++;
	entry->pass_by = (u8)((1u << entry->patience) - 1);
}

/* Runs it from an entry that has its values. */
static void run_from(struct warp *w, const struct jit_code *jit, u32 entry, bool alone)
{
	struct frame *frame = w->frame;
	u64 *scalars = (u64 *)(frame->regs + frame->code->scalars);
	u32 stop = alone ? UINT32_MAX : first_other(w), exit;

	frame->kept = 0;
	scratch.in_use = !alone;
	exit = jit->fn(w, frame->regs, alone ? frame->regs : scratch.bytes, scalars, entry,
		       w->active, stop);
	leave(w, jit, &jit->exits[exit], alone);
}

int jit_enter(struct warp *w, const struct insn *in, const struct jit_code *jit)
{
	struct frame *frame = w->frame;
	u64 *scalars = (u64 *)(frame->regs + frame->code->scalars), before = w->executed;
	u32 entry = (u32)in->imm, n_lanes = (u32)__builtin_popcount(w->active);
	struct warp_entry *tried = &w->entries[((uintptr_t)jit / 64 + entry) % WARP_ENTRIES];
	bool alone = w->n_fragments == 1;

	if (!alone && !want_scratch(frame->code->regs_bytes))
		return RUN_ON;
	/* Values that were kept cost nothing, and are nowhere else. */
	if (frame->kept == entry + 1) {
		run_from(w, jit, entry, alone);
	} else if (is_passed_by(tried)) {
		return RUN_ON;
	} else if (!collect_all(jit, entry, frame->regs, scalars, w->active)) {
		judge(tried, 0, alone);
		return RUN_ON;
	} else {
		run_from(w, jit, entry, alone);
		judge(tried, (w->executed - before) / n_lanes, alone);
	}
	return w->executed + w->spun >= w->slice_end ? warp_pause(w) : RUN_ON;
}

/* ---- from start to end ---------------------------------------------------------------------------- */

/* Are all lanes at the same place? Those that were left behind wait there. */
static bool are_together(const struct warp *w, const struct jit_exit *x)
{
	return w->n_fragments == 1 ||
	       (w->n_fragments == 2 && w->fragments[1].pc == w->frame->code->insns + x->pc);
}

bool jit_pass(struct warp *w, const struct jit_code *jit)
{
	u8 *regs = w->frame->regs;
	u32 exit;

	if (!jit->from_start)
		return false;
	scratch.in_use = false;
	exit = jit->fn(w, regs, regs, (u64 *)(regs + w->frame->code->scalars), /* entry= */ 0,
		       w->active, /* stop= */ UINT32_MAX);
	if (jit->ends[exit] && are_together(w, &jit->exits[exit])) {
		w->executed += (u64)__builtin_popcount(w->lanes) * jit->ends[exit];
		return true;
	}
	leave(w, jit, &jit->exits[exit], /* alone= */ true);
	w->fragments[0].pc = w->pc;
	w->fragments[0].mask = w->active;
	return false;
}
