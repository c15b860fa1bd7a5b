/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How compiled code is left: with registers where the interpreter looks for them, and the count of
 * instructions.
 */
#include <string.h>

#include "softgpu/jit/emit.h"

/* ---- counting ----------------------------------------------------------------------------------- */

void emit_count_insns(struct emit *e)
{
	LLVMValueRef n, sum;

	if (!e->counted)
		return;
	n = LLVMBuildLoad2(e->b, e->i64, e->n_lanes, "");
	n = LLVMBuildMul(e->b, n, emit_int(e, e->i64, e->counted), "");
	sum = LLVMBuildAdd(e->b, LLVMBuildLoad2(e->b, e->i64, e->executed, ""), n, "");
	LLVMBuildStore(e->b, sum, e->executed);
	e->counted = 0;
}

void emit_count_lanes(struct emit *e, LLVMValueRef n)
{
	LLVMValueRef sum = LLVMBuildAdd(e->b, LLVMBuildLoad2(e->b, e->i64, e->executed, ""), n, "");

	LLVMBuildStore(e->b, sum, e->executed);
}

LLVMValueRef emit_popcount(struct emit *e, LLVMValueRef bits)
{
	LLVMValueRef n = emit_intrinsic(e, "llvm.ctpop", &e->i32, 1, &bits, 1);

	return LLVMBuildZExt(e->b, n, e->i64, "");
}

/* ---- exits -------------------------------------------------------------------------------------- */

/* Puts a register back: its word, or its lanes. */
static void put_back(struct emit *e, uint32_t place, const struct value *v, struct jit_value *ret)
{
	const struct place *p = &e->u->places[place];
	LLVMValueRef bits, to;

	*ret = (struct jit_value){
		.place = p->offset,
		.scalar = place,
		.cls = p->cls,
		.is_affine = v->is_affine,
		.stride = v->stride,
	};
	bits = v->is_affine ? v->scalar : v->vector;
	if (v->raw)
		bits = emit_settled(e, bits);
	if (v->is_affine) {
		to = emit_at(e, e->scalars, 8 * (uint64_t)place);
		emit_store(e, LLVMBuildZExt(e->b, bits, e->i64, ""), to, 8);
		return;
	}
	to = emit_at(e, e->out, p->offset);
	if (p->cls == PTX_CLASS_P)
		emit_store(e, LLVMBuildBitCast(e->b, bits, e->i32, ""), to, 4);
	else
		emit_store(e, bits, to, 64);
}

LLVMValueRef emit_executed(struct emit *e)
{
	return LLVMBuildLoad2(e->b, e->i64, e->executed, "");
}

static void write_return(struct emit *e, LLVMValueRef executed)
{
	emit_store(e, executed, emit_at(e, e->warp, e->u->request->layout.warp_executed), 8);
	LLVMBuildRet(e->b, emit_int(e, e->i32, e->n_exits - 1));
}

void emit_exit(struct emit *e, uint32_t pc, uint32_t entry, const uint64_t *live,
	       LLVMValueRef executed)
{
	struct unit *u = e->u;

	if (!vec_room(e, exits, 1) || !vec_room(e, outs, u->n_places)) {
		e->no_memory = true;
		LLVMBuildUnreachable(e->b);
		return;
	}
	e->exits[e->n_exits++] = (struct jit_exit){ .first = e->n_outs, .pc = pc, .entry = entry };
	FOR_LIVE(u, live, p)
	{
		if (e->values[p].scalar || e->values[p].vector)
			put_back(e, p, &e->values[p], &e->outs[e->n_outs++]);
	}
	e->exits[e->n_exits - 1].n = e->n_outs - e->exits[e->n_exits - 1].first;
	write_return(e, executed);
}

void emit_leave(struct emit *e)
{
	emit_count_insns(e);
	unit_live_before(e->u, e->block, e->at, e->live);
	emit_exit(e, e->at, JIT_NOT_KEPT, e->live, emit_executed(e));
}

void emit_leave_if(struct emit *e, LLVMValueRef cond)
{
	LLVMBasicBlockRef away = emit_new_block(e, "leave"), on = emit_new_block(e, "on");
	uint32_t counted = e->counted;

	LLVMBuildCondBr(e->b, cond, away, on);
	LLVMPositionBuilderAtEnd(e->b, away);
	emit_leave(e);
	e->counted = counted;
	LLVMPositionBuilderAtEnd(e->b, on);
}

/* ---- refuges ------------------------------------------------------------------------------------ */

static bool is_same(const struct value *a, const struct value *b)
{
	return a->scalar == b->scalar && a->vector == b->vector;
}

/* To keep a word is cheap. Vectors there are few of, so they must be those that are wanted anyway. */
static bool holds(const struct emit *e, const struct refuge *r)
{
	FOR_LIVE(e->u, r->live, p)
	{
		if (!r->values[p].is_affine && !is_same(&r->values[p], &e->values[p]))
			return false;
	}
	return r->block != NULL;
}

static void make_refuge(struct emit *e)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
	struct refuge *r = &e->refuge;
	LLVMValueRef executed;

	emit_count_insns(e);
	executed = emit_executed(e);
	unit_live_before(e->u, e->block, e->at, r->live);
	memcpy(r->values, e->values, e->u->n_places * sizeof(*r->values));
	r->block = emit_new_block(e, "refuge");
	LLVMPositionBuilderAtEnd(e->b, r->block);
	emit_exit(e, e->at, JIT_NOT_KEPT, r->live, executed);
	LLVMPositionBuilderAtEnd(e->b, here);
}

void emit_refuse_if(struct emit *e, LLVMValueRef cond)
{
	LLVMBasicBlockRef on;

	if (!holds(e, &e->refuge))
		make_refuge(e);
	on = emit_new_block(e, "on");
	LLVMBuildCondBr(e->b, cond, e->refuge.block, on);
	LLVMPositionBuilderAtEnd(e->b, on);
}

bool emit_may_repeat(const struct emit *e, const struct jit_insn *in)
{
	switch (in->kind) {
	case JIT_PARAM:
	case JIT_SREG:
	case JIT_ACTIVE:
		return true;
	case JIT_PLAIN:
		return form_is_native(e->u, in) && in->op != PTX_OP_MEMBAR &&
		       in->op != PTX_OP_FENCE;
	case JIT_LOAD:
		return form_is_native(e->u, in) && in->sem <= PTX_SEM_WEAK;
	default:
		return false;
	}
}
