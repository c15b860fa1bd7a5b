/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls, returns and the end of threads; the stack in local memory.
 *
 * Lanes that call together share a frame: registers of their own, and a piece
 * of each lane's local memory above the caller's. They may return one by one;
 * the last one frees the frame.
 */
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/image.h"

/* What a warp's frames may hold in all: recursion ends here if not at the local memory's end. */
#define FRAMES_MAX_BYTES (64u << 20)

static u32 align_up(u32 v, u32 align)
{
	return (v + align - 1) & ~(align - 1);
}

static void frame_free(struct warp *w, struct frame *frame)
{
	*frame->link = frame->next;
	if (frame->next)
		frame->next->link = frame->link;
	w->frame_bytes -= frame->size;
	free(frame);
}

/* Lanes leave a frame for good. */
static void frame_drop(struct warp *w, struct frame *frame, u32 mask)
{
	frame->live &= ~mask;
	if (!frame->live && frame->call)
		frame_free(w, frame);
}

static struct frame *frame_push(struct warp *w, const struct call *call, const struct code *code,
				u32 mask)
{
	u32 size = (u32)sizeof(struct frame) + code->regs_bytes, lane = (u32)__builtin_ctz(mask);
	struct frame *frame;
	u32 base = 0;

	FOR_LANES(l, mask)
		base = w->frame->top[l] > base ? w->frame->top[l] : base;
	base = align_up(base, code->local_align);
	if (code->local_bytes > w->local_size || base > w->local_size - code->local_bytes ||
	    w->frame_bytes + size > FRAMES_MAX_BYTES)
		exec_fault(w, lane, EXEC_FAULT_STACK, "stack overflow in %s", code->name);

	size = align_up(size, 64);
	frame = aligned_alloc(64, size);
	if (!frame)
		exec_fault(w, lane, EXEC_FAULT_MEMORY, "no memory for a call of %s", code->name);
	/* Registers without a value read as zero, as they do in a kernel. */
	memset(frame, 0, size);
	frame->parent = w->frame;
	frame->code = code;
	frame->call = call;
	frame->ret = w->pc;
	frame->live = mask;
	frame->depth = w->frame->depth + 1;
	frame->local_base = base;
	frame->size = size;
	for (int l = 0; l < LANES; l++)
		frame->top[l] = base + code->local_bytes;
	frame->next = w->frames;
	frame->link = &w->frames;
	if (frame->next)
		frame->next->link = &frame->next;
	w->frames = frame;
	w->frame_bytes += size;
	return frame;
}

/* Where a lane of a slot is. */
static u8 *slot_lane(struct warp *w, struct frame *frame, const struct call_slot *slot, u32 lane)
{
	u8 *area;

	if (!slot->in_reg)
		return w->local + lane * (size_t)w->local_stride + frame->local_base + slot->offset;
	area = slot->operand & OPERAND_CONST ? frame->code->constants : frame->regs;
	return area + (slot->operand & ~OPERAND_CONST) + lane * slot->lane_bytes;
}

static void slots_copy(struct warp *w, struct frame *from, const struct call_slot *src,
		       struct frame *to, const struct call_slot *dst, u32 n, u32 mask)
{
	for (u32 i = 0; i < n; i++) {
		u32 size = src[i].size < dst[i].size ? src[i].size : dst[i].size;

		FOR_LANES(l, mask)
			memcpy(slot_lane(w, to, &dst[i], l), slot_lane(w, from, &src[i], l), size);
	}
}

static u64 slot_value(struct warp *w, const struct call_slot *slot, u32 lane)
{
	u64 v = 0;

	memcpy(&v, slot_lane(w, w->frame, slot, lane), slot->size < 8 ? slot->size : 8);
	return v;
}

/* ---- functions that the driver has ------------------------------------------------------------- */

static void fault_assert(struct warp *w, const struct call *call, u32 lane)
{
	char text[3][64];

	for (int i = 0; i < 3; i++)
		print_string(w, lane,
			     slot_value(w,
					&call->args[i == 0   ? 0
						    : i == 1 ? 1
							     : 3],
					lane),
			     text[i], sizeof(text[i]));
	print_add(w->block->launch,
		  "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
		  text[1], (u32)slot_value(w, &call->args[2], lane), text[2], w->block->ctaid[0],
		  w->block->ctaid[1], w->block->ctaid[2], w->tid[0][lane], w->tid[1][lane],
		  w->tid[2][lane], text[0]);
	exec_fault(w, lane, EXEC_FAULT_ASSERT, "assertion %s failed", text[0]);
}

static void free_lane(struct warp *w, u64 addr, u32 lane)
{
	if (addr && !heap_give(w->block->launch->heap, addr))
		exec_fault(w, lane, EXEC_FAULT_TRAP, "free of 0x%llx, which malloc did not give",
			   (unsigned long long)addr);
}

/* What the function gives back to a lane. */
static u64 builtin_lane(struct warp *w, const struct call *call, u32 lane)
{
	u64 first = slot_value(w, &call->args[0], lane);

	switch (call->builtin) {
	case BUILTIN_ASSERTFAIL:
		fault_assert(w, call, lane);
		return 0;
	case BUILTIN_MALLOC:
		return heap_take(w->block->launch->heap, first, 1);
	case BUILTIN_ALIGNED_MALLOC:
		return heap_take(w->block->launch->heap, first,
				 slot_value(w, &call->args[1], lane));
	case BUILTIN_FREE:
		free_lane(w, first, lane);
		return 0;
	default:
		return print_format(w, lane, first, slot_value(w, &call->args[1], lane));
	}
}

static int call_builtin(struct warp *w, const struct call *call, u32 mask)
{
	if (call->builtin == BUILTIN_NESTED)
		exec_fault(w, (u32)__builtin_ctz(mask), EXEC_FAULT_TRAP,
			   "call of %s: kernels launch no kernels here", call->name);
	FOR_LANES(l, mask) {
		u64 v = builtin_lane(w, call, l);

		if (call->n_rets)
			memcpy(slot_lane(w, w->frame, &call->rets[0], l), &v,
			       call->rets[0].size < 8 ? call->rets[0].size : 8);
	}
	return RUN_ON;
}

/* ---- instructions ------------------------------------------------------------------------------ */

/* Lanes that call the same function go in; the others come back to this instruction. */
static u32 same_callee(struct warp *w, const struct insn *in, u32 mask, const struct code **ret)
{
	const u64 *callee = operand(w, in->call->callee);
	u32 first = (u32)__builtin_ctz(mask), same = 0;

	*ret = image_function(w->block->launch->kernel->image, callee[first]);
	if (!*ret)
		exec_fault(w, first, EXEC_FAULT_PC, "call to 0x%llx, which is no function",
			   (unsigned long long)callee[first]);
	FOR_LANES(l, mask)
		same |= (u32)(callee[l] == callee[first]) << l;
	if (same != mask) {
		w->executed -= (u32)__builtin_popcount(mask & ~same);
		w->active &= ~(mask & ~same);
		fragment_add(w, mask & ~same, in, w->frame);
	}
	return same;
}

int flow_call(struct warp *w, const struct insn *in, u32 mask)
{
	const struct call *call = in->call;
	const struct code *code = call->code;
	struct frame *frame;

	if (call->builtin)
		return call_builtin(w, call, mask);
	if (!code)
		mask = same_callee(w, in, mask, &code);
	if (call->n_args < code->n_params || call->n_rets > code->n_rets)
		exec_fault(w, (u32)__builtin_ctz(mask), EXEC_FAULT_PC,
			   "call of %s with other parameters than it has", code->name);

	frame = frame_push(w, call, code, mask);
	warp_keep(w, mask, w->pc);
	slots_copy(w, w->frame, call->args, frame, code->params, code->n_params, mask);
	w->frame = frame;
	w->base[0] = frame->regs;
	w->base[1] = code->constants;
	w->pc = code->insns;
	return warp_meet(w);
}

int flow_exit(struct warp *w, _unused_ const struct insn *in, u32 mask)
{
	for (struct frame *f = w->frame, *parent; f; f = parent) {
		parent = f->parent;
		frame_drop(w, f, mask);
	}
	w->alive &= ~mask;
	if (!w->alive)
		w->block->n_alive--;
	else
		warp_check_sync(w);
	if (w->block->barriers_used)
		block_check_barriers(w->block);
	return warp_leave(w, mask);
}

int flow_ret(struct warp *w, const struct insn *in, u32 mask)
{
	struct frame *frame = w->frame, *parent = frame->parent;
	const struct insn *ret = frame->ret;

	if (!frame->call)
		return flow_exit(w, in, mask);

	slots_copy(w, frame, frame->code->rets, parent, frame->call->rets, frame->call->n_rets,
		   mask);
	frame_drop(w, frame, mask);
	if (mask != w->active) {
		fragment_add(w, mask, ret, parent);
		return warp_leave(w, mask);
	}
	w->frame = parent;
	w->base[0] = parent->regs;
	w->base[1] = parent->code->constants;
	w->pc = ret;
	return warp_meet(w);
}

/* ---- the stack --------------------------------------------------------------------------------- */

static void store_address(struct warp *w, const struct insn *in, u32 lane, u64 v)
{
	memcpy((u8 *)operand(w, in->op[0]) + lane * in->bytes, &v, in->bytes);
}

static u64 load_size(struct warp *w, const struct insn *in, u32 op, u32 lane)
{
	u64 v = 0;

	memcpy(&v, (u8 *)operand(w, op) + lane * in->bytes, in->bytes);
	return v;
}

/* Memory until the function returns. Every piece has the greatest alignment that can be asked for. */
int flow_alloca(struct warp *w, const struct insn *in, u32 mask)
{
	FOR_LANES(l, mask) {
		u64 size = load_size(w, in, in->op[1], l);
		u32 at = align_up(w->frame->top[l], 128);

		if (at > w->local_size || size > w->local_size - at)
			exec_fault(w, l, EXEC_FAULT_STACK, "stack overflow in alloca");
		w->frame->top[l] = at + (u32)size;
		store_address(w, in, l, at);
	}
	return RUN_ON;
}

int flow_stacksave(struct warp *w, const struct insn *in, u32 mask)
{
	FOR_LANES(l, mask)
		store_address(w, in, l, w->frame->top[l]);
	return RUN_ON;
}

int flow_stackrestore(struct warp *w, const struct insn *in, u32 mask)
{
	FOR_LANES(l, mask) {
		u64 top = load_size(w, in, in->op[0], l);
		u32 lowest = w->frame->local_base + w->frame->code->local_bytes;

		if (top < lowest || top > w->frame->top[l])
			exec_fault(w, l, EXEC_FAULT_STACK, "stackrestore to what is no stack");
		w->frame->top[l] = (u32)top;
	}
	return RUN_ON;
}
