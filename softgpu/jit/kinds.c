/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which registers are the same in all lanes, or go up by the same from lane to lane.
 *
 * From the start of the function along all ways, as far as it goes: what a block starts with is what
 * all that lead to it agree upon. All lanes that run together have taken the same ways, so nothing
 * but the values themselves counts as long as they do. Lanes that come together again may differ in
 * what they have written meanwhile; so behind a branch that is not the same for all lanes, at the
 * places where its two ways can meet, what was written on either is taken as different (meet_ways).
 * That part is a guess, too good or too bad: every entry checks it.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/jit/unit.h"

static const struct kind uniform = { KIND_AFFINE, 0 };
static const struct kind varying = { KIND_VARYING, 0 };

/* ---- of an instruction -------------------------------------------------------------------------- */

struct kind kind_of_operand(const struct unit *u, uint32_t operand, const struct kind *state)
{
	return is_const(operand) ? uniform : state[unit_place(u, operand)];
}

static bool is_uniform(struct kind k)
{
	return k.state == KIND_AFFINE && !k.stride;
}

/* Nothing is known yet of what it depends on. */
static struct kind combine(struct kind a, struct kind b, int64_t stride)
{
	if (a.state == KIND_OPEN || b.state == KIND_OPEN)
		return (struct kind){ KIND_OPEN, 0 };
	return (struct kind){ KIND_AFFINE, stride };
}

static struct kind sized(struct kind k, uint8_t type)
{
	if (k.state == KIND_AFFINE && ptx_type_bytes((enum ptx_type)type) == 4)
		k.stride = (int64_t)(int32_t)k.stride;
	return k;
}

/* A factor that is known now. */
static bool known(const struct unit *u, const struct jit_insn *in, uint32_t i, int64_t *ret)
{
	uint32_t bytes = ptx_type_bytes((enum ptx_type)in->type);

	if (!is_const(in->args[i]))
		return false;
	*ret = (int64_t)unit_constant(u, in->args[i], bytes);
	if (bytes == 4)
		*ret = in->mode == PTX_MODE_WIDE && in->type == PTX_U32 ? (int64_t)(uint32_t)*ret
									: (int64_t)(int32_t)*ret;
	return true;
}

static struct kind product(const struct unit *u, const struct jit_insn *in,
			   const struct kind *state)
{
	struct kind a = kind_of_operand(u, in->args[1], state);
	struct kind b = kind_of_operand(u, in->args[2], state);
	int64_t factor;

	if (is_uniform(a) && is_uniform(b))
		return uniform;
	if (a.state == KIND_AFFINE && known(u, in, 2, &factor))
		return (struct kind){ KIND_AFFINE,
				      (int64_t)((uint64_t)a.stride * (uint64_t)factor) };
	if (b.state == KIND_AFFINE && known(u, in, 1, &factor))
		return (struct kind){ KIND_AFFINE,
				      (int64_t)((uint64_t)b.stride * (uint64_t)factor) };
	return a.state == KIND_OPEN || b.state == KIND_OPEN ? (struct kind){ 0 } : varying;
}

static struct kind sum(struct kind a, struct kind b, bool subtract)
{
	if (a.state == KIND_VARYING || b.state == KIND_VARYING)
		return varying;
	return combine(a, b,
		       (int64_t)((uint64_t)a.stride +
				 (subtract ? -(uint64_t)b.stride : (uint64_t)b.stride)));
}

/* Integers of 32 or 64 bits whose strides can be told. */
static struct kind affine_result(const struct unit *u, const struct jit_insn *in,
				 const struct kind *state)
{
	struct kind a = kind_of_operand(u, in->args[1], state);
	uint64_t shift;

	switch (in->op) {
	case PTX_OP_MOV:
	case PTX_OP_CVT:
		return a;
	case PTX_OP_ADD:
	case PTX_OP_SUB:
		return sum(a, kind_of_operand(u, in->args[2], state), in->op == PTX_OP_SUB);
	case PTX_OP_MUL:
		return product(u, in, state);
	case PTX_OP_MAD:
		return sum(product(u, in, state), kind_of_operand(u, in->args[3], state), false);
	case PTX_OP_SHL:
		shift = is_const(in->args[2]) ? unit_constant(u, in->args[2], 4) : UINT64_MAX;
		if (a.state == KIND_AFFINE && shift < 32)
			return (struct kind){ KIND_AFFINE, (int64_t)((uint64_t)a.stride << shift) };
		return a.state == KIND_OPEN ? a : varying;
	default:
		return varying;
	}
}

static bool has_strides(const struct jit_insn *in)
{
	uint32_t bytes = ptx_type_bytes((enum ptx_type)in->type);
	bool integer = ptx_type_kind((enum ptx_type)in->type) != 'f' && (bytes == 4 || bytes == 8);

	if (!integer || in->control || in->flags & (PTX_F_SAT | PTX_F_CC))
		return false;
	switch (in->op) {
	case PTX_OP_CVT:
		/* Only what keeps or extends a whole word. */
		return ptx_type_kind((enum ptx_type)in->stype) != 'f' &&
		       ptx_type_bytes((enum ptx_type)in->stype) >= 4;
	case PTX_OP_MUL:
	case PTX_OP_MAD:
		return in->mode == PTX_MODE_LO || (in->mode == PTX_MODE_WIDE && bytes == 4);
	case PTX_OP_MOV:
	case PTX_OP_ADD:
	case PTX_OP_SUB:
	case PTX_OP_SHL:
		return true;
	default:
		return false;
	}
}

static struct kind sreg_result(const struct unit *u, const struct jit_insn *in)
{
	bool rows = u->request->rows;

	switch (in->imm) {
	case PTX_SREG_TID_X:
		return rows ? (struct kind){ KIND_AFFINE, 1 } : varying;
	case PTX_SREG_TID_Y:
	case PTX_SREG_TID_Z:
		return rows ? uniform : varying;
	case PTX_SREG_LANEID:
		return (struct kind){ KIND_AFFINE, 1 };
	default:
		return uniform;
	}
}

static struct kind plain_result(const struct unit *u, const struct jit_insn *in,
				const struct kind *state)
{
	const uint32_t *operand = u->operands + in->operands;
	bool open = false, same = true;

	if (!form_is_native(u, in))
		return varying;
	for (uint32_t i = 0; i < in->n_reads; i++) {
		struct kind k = kind_of_operand(u, operand[i], state);

		open |= k.state == KIND_OPEN;
		same &= k.state == KIND_OPEN || is_uniform(k);
	}
	if (same)
		return open ? (struct kind){ 0 } : uniform;
	if (!has_strides(in))
		return varying;
	return in->mode == PTX_MODE_WIDE && in->op != PTX_OP_MOV
		       ? affine_result(u, in, state)
		       : sized(affine_result(u, in, state), in->type);
}

/* What all have come to together. */
static struct kind warp_result(const struct unit *u, const struct jit_insn *in)
{
	return form_is_native(u, in) && (in->op == PTX_OP_VOTE || in->op == PTX_OP_REDUX) ? uniform
											  : varying;
}

struct kind kind_of_result(const struct unit *u, const struct jit_insn *in,
			   const struct kind *state)
{
	struct kind address;

	switch (in->kind) {
	case JIT_PLAIN:
		return plain_result(u, in, state);
	case JIT_PARAM:
		return uniform;
	case JIT_SREG:
		return sreg_result(u, in);
	case JIT_LOAD:
		/* Of local memory each lane has its own. */
		if (!form_is_native(u, in) || in->space == PTX_SPACE_LOCAL)
			return varying;
		address = kind_of_operand(u, in->args[0], state);
		return address.state == KIND_OPEN || is_uniform(address) ? address : varying;
	case JIT_WARP:
		return warp_result(u, in);
	case JIT_ACTIVE:
		return uniform;
	case JIT_CALL:
		return in->mode ? uniform : varying;
	default:
		return varying;
	}
}

static struct kind agree(struct kind a, struct kind b)
{
	if (a.state == KIND_OPEN)
		return b;
	if (b.state == KIND_OPEN)
		return a;
	return a.state == KIND_AFFINE && b.state == KIND_AFFINE && a.stride == b.stride ? a
											: varying;
}

void kind_step(const struct unit *u, const struct jit_insn *in, struct kind *state)
{
	const uint32_t *written = u->operands + in->operands + in->n_reads;
	struct kind result = kind_of_result(u, in, state);
	struct kind guard = kind_of_operand(u, in->guard, state);
	bool always = unit_always(u, in);

	for (uint32_t i = 0; i < in->n_writes; i++) {
		uint32_t at = unit_place(u, written[i]);
		uint8_t cls = u->places[at].cls;
		struct kind k = result;

		if (k.state == KIND_AFFINE &&
		    (cls == PTX_CLASS_Q ||
		     (k.stride && (cls == PTX_CLASS_P || cls == PTX_CLASS_H))))
			k = varying;
		if (!always)
			k = guard.state == KIND_VARYING ? varying : agree(state[at], k);
		state[at] = k;
	}
}

/* ---- where ways meet ---------------------------------------------------------------------------- */

/* Blocks that can be reached from @from, not through @stop. */
static void reach(const struct unit *u, uint32_t from, uint64_t *set, uint32_t *stack)
{
	uint32_t n = 0;

	if (from == NO_BLOCK || set_has(set, from))
		return;
	set_add(set, from);
	stack[n++] = from;
	while (n) {
		const struct piece *b = &u->blocks[stack[--n]];
		uint32_t to[2] = { b->target,
				   b->ends == END_BRANCH && unit_always(u, &u->insns[b->end])
					   ? NO_BLOCK
					   : b->next };

		for (uint32_t i = 0; i < 2; i++) {
			if (to[i] == NO_BLOCK || set_has(set, to[i]))
				continue;
			set_add(set, to[i]);
			stack[n++] = to[i];
		}
	}
}

struct ways {
	uint64_t *taken, *not_taken; /* blocks */
	uint64_t *written;	     /* places */
	uint32_t *stack;
};

static void add_written(const struct unit *u, const struct piece *b, uint64_t *written)
{
	for (uint32_t i = b->first; i < b->tail; i++) {
		const struct jit_insn *in = &u->insns[i];

		for (uint32_t k = 0; k < in->n_writes; k++)
			set_add(written,
				unit_place(u, u->operands[in->operands + in->n_reads + k]));
	}
}

static bool enters_from_outside(const struct unit *u, const struct ways *w, uint32_t block,
				uint32_t branch)
{
	for (uint32_t p = 0; p < u->n_blocks; p++) {
		const struct piece *b = &u->blocks[p];
		bool leads = b->target == block || b->next == block;

		if (leads && (p == branch || set_has(w->taken, p) != set_has(w->not_taken, p)))
			return true;
	}
	return false;
}

/* Behind a branch that lanes take differently; whether anything changed. */
static bool meet_ways(struct unit *u, uint32_t branch, struct ways *w)
{
	const struct piece *b = &u->blocks[branch];
	uint32_t words = u->n_blocks / 64 + 1;
	bool changed = false;

	memset(w->taken, 0, words * sizeof(uint64_t));
	memset(w->not_taken, 0, words * sizeof(uint64_t));
	memset(w->written, 0, u->n_words * sizeof(uint64_t));
	reach(u, b->target, w->taken, w->stack);
	reach(u, b->next, w->not_taken, w->stack);
	for (uint32_t i = 0; i < u->n_blocks; i++) {
		/*
		 * What both reach is written after they have met, or in a loop around. Of the
		 * branch's own block lanes have written the same, unless they come to it again.
		 */
		if (set_has(w->taken, i) != set_has(w->not_taken, i) ||
		    (i == branch && set_has(w->taken, i)))
			add_written(u, &u->blocks[i], w->written);
	}
	for (uint32_t i = 0; i < u->n_blocks; i++) {
		if (!set_has(w->taken, i) || !set_has(w->not_taken, i) ||
		    !enters_from_outside(u, w, i, branch))
			continue;
		for (uint32_t p = 0; p < u->n_places; p++) {
			if (!set_has(w->written, p) || u->blocks[i].in[p].state != KIND_AFFINE)
				continue;
			u->blocks[i].in[p] = varying;
			changed = true;
		}
	}
	return changed;
}

/* ---- of a function ------------------------------------------------------------------------------ */

static bool flow_into(struct unit *u, uint32_t block, const struct kind *state)
{
	struct kind *in;
	bool changed = false;

	if (block == NO_BLOCK)
		return false;
	in = u->blocks[block].in;
	changed = !u->blocks[block].reached;
	u->blocks[block].reached = true;
	for (uint32_t p = 0; p < u->n_places; p++) {
		struct kind k = agree(in[p], state[p]);

		changed |= k.state != in[p].state;
		in[p] = k;
	}
	return changed;
}

static bool flow_block(struct unit *u, uint32_t number, struct kind *state)
{
	const struct piece *b = &u->blocks[number];
	bool changed = false;

	memcpy(state, b->in, u->n_places * sizeof(*state));
	for (uint32_t i = b->first; i < b->end; i++)
		kind_step(u, &u->insns[i], state);
	changed |= flow_into(u, b->target, state);
	if (b->ends == END_BRANCH && unit_always(u, &u->insns[b->end]))
		return changed;
	for (uint32_t i = b->end; i < b->tail; i++)
		kind_step(u, &u->insns[i], state);
	return flow_into(u, b->next, state) || changed;
}

static bool is_divergent(const struct unit *u, const struct piece *b, struct kind *state)
{
	if (b->ends != END_BRANCH || !b->reached || is_const(u->insns[b->end].guard))
		return false;
	memcpy(state, b->in, u->n_places * sizeof(*state));
	for (uint32_t i = b->first; i < b->end; i++)
		kind_step(u, &u->insns[i], state);
	return kind_of_operand(u, u->insns[b->end].guard, state).state == KIND_VARYING;
}

static void flow_all(struct unit *u, struct kind *state, struct ways *w)
{
	bool changed = true, again = true;

	while (again) {
		while (changed) {
			changed = false;
			for (uint32_t b = 0; b < u->n_blocks; b++) {
				if (u->blocks[b].reached)
					changed |= flow_block(u, b, state);
			}
		}
		again = false;
		for (uint32_t b = 0; b < u->n_blocks; b++) {
			if (is_divergent(u, &u->blocks[b], state))
				again |= meet_ways(u, b, w);
		}
		changed = again;
	}
}

/* The start, and blocks that only the interpreter comes to: of their registers nothing is known. */
static void open_ways(struct unit *u, const struct ways *w)
{
	reach(u, 0, w->taken, w->stack);
	for (uint32_t b = 0; b < u->n_blocks; b++) {
		if (b && set_has(w->taken, b))
			continue;
		u->blocks[b].reached = true;
		for (uint32_t p = 0; p < u->n_places; p++)
			u->blocks[b].in[p] = varying;
	}
}

bool unit_kinds(struct unit *u)
{
	uint32_t words = u->n_blocks / 64 + 1;
	struct kind *state = calloc(u->n_places + 1, sizeof(*state));
	struct ways w = {
		.taken = calloc(words, sizeof(uint64_t)),
		.not_taken = calloc(words, sizeof(uint64_t)),
		.written = calloc(u->n_words, sizeof(uint64_t)),
		.stack = calloc(u->n_blocks + 1, sizeof(uint32_t)),
	};
	bool ok = state && w.taken && w.not_taken && w.written && w.stack;

	for (uint32_t b = 0; b < u->n_blocks && ok; b++) {
		u->blocks[b].in = calloc(u->n_places + 1, sizeof(*state));
		ok = u->blocks[b].in != NULL;
	}
	if (ok) {
		open_ways(u, &w);
		flow_all(u, state, &w);
	}
	free(state);
	free(w.taken);
	free(w.not_taken);
	free(w.written);
	free(w.stack);
	return ok;
}
