/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations, as softgpu/exec/atom.c has them: one lane after the other.
 *
 * Shared memory is the block's alone, and a block is run by one thread at a time: there an atomic
 * operation is one like any other. Elsewhere it is the host's, or tries until nobody else was in
 * between.
 */
#include "softgpu/jit/access.h"
#include "softgpu/jit/op.h"

#define LANES_AT_ONCE 8

/* ---- what becomes of a value ---------------------------------------------------------------------- */

/* Sums of floats, on their bits: as add has them, but of f64 only a first NaN is kept. */
static LLVMValueRef real_sum(struct access *a, LLVMValueRef x, LLVMValueRef y)
{
	const struct op o = { .e = a->e, .in = a->in, .bytes = a->size };
	LLVMValueRef r = as_real(&o, x, a->size), sum;

	sum = LLVMBuildFAdd(a->e->b, r, as_real(&o, y, a->size), "");
	if (a->size == 4)
		return canonical(&o, sum, 4);
	return choose(&o, is_nan(&o, r),
		      LLVMBuildOr(a->e->b, x, number(&o, 8, UINT64_C(1) << 51), ""),
		      as_bits(&o, sum, 8));
}

/* Up to a limit and then from 0 on; or down to 0 and then from the limit on. */
static LLVMValueRef wrapped(struct access *a, LLVMValueRef x, LLVMValueRef limit)
{
	LLVMTypeRef type = LLVMTypeOf(x);
	LLVMValueRef zero = emit_int(a->e, type, 0), one = emit_int(a->e, type, 1), ends;
	LLVMBuilderRef b = a->e->b;

	if (a->in->bop == PTX_BOP_INC)
		return LLVMBuildSelect(b, access_compare(a, LLVMIntUGE, x, limit), zero,
				       LLVMBuildAdd(b, x, one, ""), "");
	ends = LLVMBuildOr(b, access_compare(a, LLVMIntEQ, x, zero),
			   access_compare(a, LLVMIntUGT, x, limit), "");
	return LLVMBuildSelect(b, ends, limit, LLVMBuildSub(b, x, one, ""), "");
}

/* @y and, of cas, @z are the lane's. */
static LLVMValueRef combined(struct access *a, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
	bool sign = ptx_type_kind((enum ptx_type)a->in->type) == 's';
	LLVMBuilderRef b = a->e->b;
	LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;

	switch (a->in->bop) {
	case PTX_BOP_ADD:
		return is_float(a->in->type) ? real_sum(a, x, y) : LLVMBuildAdd(b, x, y, "");
	case PTX_BOP_AND:
		return LLVMBuildAnd(b, x, y, "");
	case PTX_BOP_OR:
		return LLVMBuildOr(b, x, y, "");
	case PTX_BOP_XOR:
		return LLVMBuildXor(b, x, y, "");
	case PTX_BOP_MIN:
		return LLVMBuildSelect(b, access_compare(a, less, x, y), x, y, "");
	case PTX_BOP_MAX:
		return LLVMBuildSelect(b, access_compare(a, less, x, y), y, x, "");
	case PTX_BOP_EXCH:
		return y;
	case PTX_BOP_CAS:
		return LLVMBuildSelect(b, access_compare(a, LLVMIntEQ, x, y), z, x, "");
	default:
		return wrapped(a, x, y);
	}
}

/* ---- of one lane ---------------------------------------------------------------------------------- */

static LLVMValueRef swap(struct access *a, LLVMValueRef p, LLVMValueRef old, LLVMValueRef new)
{
	return LLVMBuildAtomicCmpXchg(a->e->b, p, old, new,
				      LLVMAtomicOrderingSequentiallyConsistent,
				      LLVMAtomicOrderingSequentiallyConsistent, 0);
}

/* Tries until nobody else was in between. */
static LLVMValueRef try_on(struct access *a, LLVMValueRef p, LLVMValueRef y)
{
	struct emit *e = a->e;
	LLVMBasicBlockRef from = LLVMGetInsertBlock(e->b), again = emit_new_block(e, "again"),
			  done = emit_new_block(e, "done");
	LLVMValueRef first = LLVMBuildLoad2(e->b, a->element, p, ""), old, pair, seen;

	LLVMSetAlignment(first, a->size);
	LLVMSetVolatile(first, 1);
	LLVMBuildBr(e->b, again);
	LLVMPositionBuilderAtEnd(e->b, again);
	old = LLVMBuildPhi(e->b, a->element, "");
	pair = swap(a, p, old, combined(a, old, y, NULL));
	seen = LLVMBuildExtractValue(e->b, pair, 0, "");
	LLVMBuildCondBr(e->b, LLVMBuildExtractValue(e->b, pair, 1, ""), done, again);
	LLVMAddIncoming(old, &first, &from, 1);
	LLVMAddIncoming(old, &seen, &again, 1);
	LLVMPositionBuilderAtEnd(e->b, done);
	return seen;
}

/* The host's operation; false if it has none. */
static bool find_operation(const struct jit_insn *in, LLVMAtomicRMWBinOp *ret)
{
	bool sign = ptx_type_kind((enum ptx_type)in->type) == 's';
	static const LLVMAtomicRMWBinOp operations[] = {
		[PTX_BOP_ADD] = LLVMAtomicRMWBinOpAdd,	 [PTX_BOP_AND] = LLVMAtomicRMWBinOpAnd,
		[PTX_BOP_OR] = LLVMAtomicRMWBinOpOr,	 [PTX_BOP_XOR] = LLVMAtomicRMWBinOpXor,
		[PTX_BOP_EXCH] = LLVMAtomicRMWBinOpXchg,
	};

	if (is_float(in->type) || in->bop == PTX_BOP_INC || in->bop == PTX_BOP_DEC)
		return false;
	if (in->bop == PTX_BOP_MIN)
		*ret = sign ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
	else if (in->bop == PTX_BOP_MAX)
		*ret = sign ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
	else
		*ret = operations[in->bop];
	return true;
}

static LLVMValueRef one_lane(struct access *a, LLVMValueRef at, LLVMValueRef y, LLVMValueRef z)
{
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef p = LLVMBuildBitCast(b, access_pointer(a, access_extended(a, at)),
					  LLVMPointerType(a->element, 0), ""),
		     old;
	LLVMAtomicRMWBinOp operation;

	if (a->shared) {
		old = emit_load(a->e, a->element, p, a->size);
		emit_store(a->e, combined(a, old, y, z), p, a->size);
		return old;
	}
	if (a->in->bop == PTX_BOP_CAS)
		return LLVMBuildExtractValue(b, swap(a, p, y, z), 0, "");
	if (!find_operation(a->in, &operation))
		return try_on(a, p, y);
	return LLVMBuildAtomicRMW(b, operation, p, y, LLVMAtomicOrderingSequentiallyConsistent, 0);
}

/* ---- of the lanes --------------------------------------------------------------------------------- */

/* An operand while lanes are looked at one by one: in a room, or the same for all. */
struct each {
	LLVMTypeRef type;
	LLVMValueRef room, same;
};

static struct each each_of(struct access *a, uint32_t room, LLVMValueRef vector)
{
	struct emit *e = a->e;

	emit_store(e, vector, e->rooms[room], 8);
	return (struct each){ .type = LLVMGetElementType(LLVMTypeOf(vector)),
			      .room = e->rooms[room] };
}

static struct each each_source(struct access *a, uint32_t i)
{
	struct kind kind = kind_of_operand(a->e->u, a->in->args[i], a->e->state);

	if (kind.state == KIND_AFFINE && !kind.stride)
		return (struct each){
			.same = emit_scalar(a->e, a->in->args[i], access_class(a->in)),
		};
	return each_of(a, i, emit_vector(a->e, a->in->args[i], access_class(a->in)));
}

static LLVMValueRef place_in(struct access *a, const struct each *s, LLVMValueRef lane)
{
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef first = LLVMBuildBitCast(b, s->room, LLVMPointerType(s->type, 0), "");

	return LLVMBuildGEP2(b, s->type, first, &lane, 1, "");
}

static LLVMValueRef lane_of(struct access *a, const struct each *s, LLVMValueRef lane)
{
	if (s->same)
		return s->same;
	return LLVMBuildLoad2(a->e->b, s->type, place_in(a, s, lane), "");
}

/* All lanes, some at a time: as quick as all in one go, and much less code. */
void access_atomic_all(struct access *a, LLVMValueRef at)
{
	struct each place = each_of(a, 0, at), y = each_source(a, 2), z = y;
	LLVMBasicBlockRef from, some = emit_new_block(a->e, "some"),
				done = emit_new_block(a->e, "done");
	LLVMValueRef first, next, start = emit_int(a->e, a->e->i64, 0);
	LLVMBuilderRef b = a->e->b;

	if (a->in->bop == PTX_BOP_CAS)
		z = each_source(a, 3);
	from = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, some);
	LLVMPositionBuilderAtEnd(b, some);
	first = LLVMBuildPhi(b, a->e->i64, "");
	LLVMAddIncoming(first, &start, &from, 1);
	for (uint32_t i = 0; i < LANES_AT_ONCE; i++) {
		LLVMValueRef lane = LLVMBuildAdd(b, first, emit_int(a->e, a->e->i64, i), "");

		one_lane(a, lane_of(a, &place, lane), lane_of(a, &y, lane), lane_of(a, &z, lane));
	}
	next = LLVMBuildAdd(b, first, emit_int(a->e, a->e->i64, LANES_AT_ONCE), "");
	from = LLVMGetInsertBlock(b);
	LLVMAddIncoming(first, &next, &from, 1);
	LLVMBuildCondBr(b,
			LLVMBuildICmp(b, LLVMIntNE, next, emit_int(a->e, a->e->i64, N_LANES), ""),
			some, done);
	LLVMPositionBuilderAtEnd(b, done);
}

void access_atomic_some(struct access *a, LLVMValueRef at, LLVMValueRef bits, LLVMValueRef *ret)
{
	struct each place = each_of(a, 0, at), y = each_source(a, 2), z = y, old = {};
	LLVMBasicBlockRef from, each = emit_new_block(a->e, "each"),
				done = emit_new_block(a->e, "done");
	LLVMValueRef left, lane, rest, v, one = emit_int(a->e, a->e->i32, 1);
	struct emit *e = a->e;

	if (a->in->bop == PTX_BOP_CAS)
		z = each_source(a, 3);
	if (a->n_results)
		old = each_of(a, 1, emit_vector(e, access_value(a, 0), access_class(a->in)));
	from = LLVMGetInsertBlock(e->b);
	LLVMBuildBr(e->b, each);
	LLVMPositionBuilderAtEnd(e->b, each);
	left = LLVMBuildPhi(e->b, e->i32, "");
	LLVMAddIncoming(left, &bits, &from, 1);
	lane = emit_intrinsic(e, "llvm.cttz", &e->i32, 1,
			      (LLVMValueRef[]){ left, emit_int(e, e->i1, 1) }, 2);
	lane = LLVMBuildZExt(e->b, lane, e->i64, "");
	v = one_lane(a, lane_of(a, &place, lane), lane_of(a, &y, lane), lane_of(a, &z, lane));
	if (a->n_results)
		LLVMBuildStore(e->b, v, place_in(a, &old, lane));
	rest = LLVMBuildAnd(e->b, left, LLVMBuildSub(e->b, left, one, ""), "");
	from = LLVMGetInsertBlock(e->b);
	LLVMAddIncoming(left, &rest, &from, 1);
	LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, rest, emit_int(e, e->i32, 0), ""),
			each, done);
	LLVMPositionBuilderAtEnd(e->b, done);
	if (!a->n_results)
		return;
	ret[0] = emit_load(e, emit_vector_of(e, a->element), old.room, 8);
	/* Who asks for the old value may be polling. */
	access_charge_poll(a);
}
