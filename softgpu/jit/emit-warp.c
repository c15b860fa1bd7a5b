/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lanes of a warp hand each other.
 *
 * Only for all 32 of them, which then are here together: nobody is waited for. Where lanes are
 * missing, or are not named, the interpreter goes on: it knows who waits for whom.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/emit.h"

static LLVMValueRef lanes_of(struct emit *e, uint32_t v)
{
	return emit_int(e, emit_vector_of(e, e->i32), v);
}

/* Whether all are here, and each names all. */
static LLVMValueRef is_everybody(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef named, all = emit_int(e, e->i32, UINT32_MAX);
	struct kind kind;

	if (!(in->insn_flags & INSN_SYNC))
		return emit_is_full(e);
	kind = kind_of_operand(e->u, in->args[5], e->state);
	if (kind.state != KIND_AFFINE || kind.stride) {
		named = LLVMBuildICmp(e->b, LLVMIntEQ, emit_vector(e, in->args[5], PTX_CLASS_W),
				      lanes_of(e, UINT32_MAX), "");
		named = LLVMBuildBitCast(e->b, named, e->i32, "");
	} else {
		named = emit_scalar(e, in->args[5], PTX_CLASS_W);
	}
	return LLVMBuildAnd(e->b, emit_is_full(e), LLVMBuildICmp(e->b, LLVMIntEQ, named, all, ""),
			    "");
}

/* ---- shfl --------------------------------------------------------------------------------------- */

/* From which lane each reads, and whether that one is in its segment: else it reads itself. */
struct source {
	LLVMValueRef lane, inside;
};

static LLVMValueRef and_of(struct emit *e, LLVMValueRef x, uint32_t bits)
{
	return LLVMBuildAnd(e->b, x, lanes_of(e, bits), "");
}

static struct source find_source(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef lane = e->lanes_32,
		     by = and_of(e, emit_vector(e, in->args[3], PTX_CLASS_W), 31);
	LLVMValueRef c = emit_vector(e, in->args[4], PTX_CLASS_W), segment, rest, least, most, from;
	LLVMIntPredicate order = LLVMIntULE;
	struct source ret;

	segment = and_of(e, LLVMBuildLShr(e->b, c, lanes_of(e, 8), ""), 31);
	rest = LLVMBuildNot(e->b, segment, "");
	least = LLVMBuildAnd(e->b, lane, segment, "");
	most = LLVMBuildOr(e->b, least, LLVMBuildAnd(e->b, and_of(e, c, 31), rest, ""), "");
	switch (in->mode) {
	case PTX_MODE_UP:
		from = LLVMBuildSub(e->b, lane, by, "");
		order = LLVMIntSGE;
		break;
	case PTX_MODE_DOWN:
		from = LLVMBuildAdd(e->b, lane, by, "");
		break;
	case PTX_MODE_BFLY:
		from = LLVMBuildXor(e->b, lane, by, "");
		break;
	default:
		from = LLVMBuildOr(e->b, least, LLVMBuildAnd(e->b, by, rest, ""), "");
	}
	ret.inside = LLVMBuildICmp(e->b, order, from, most, "");
	ret.lane = LLVMBuildSelect(e->b, ret.inside, from, lane, "");
	return ret;
}

/* Lanes of a vector in an order that is not known: by way of its place in the frame. */
static LLVMValueRef look_up(struct emit *e, uint32_t operand, LLVMValueRef lane)
{
	LLVMTypeRef type = emit_vector_of(e, e->i32);
	LLVMTypeRef types[] = { type, emit_vector_of(e, LLVMPointerType(e->i32, 0)) };
	LLVMValueRef base, at, args[4];

	base = emit_at(e, e->out, e->u->places[unit_place(e->u, operand)].offset);
	emit_store(e, emit_vector(e, operand, PTX_CLASS_W), base, 64);
	at = LLVMBuildZExt(e->b, lane, emit_vector_of(e, e->i64), "");
	at = LLVMBuildShl(e->b, at, emit_int(e, emit_vector_of(e, e->i64), 2), "");
	base = emit_splat(e, LLVMBuildPtrToInt(e->b, base, e->i64, ""));
	args[0] = LLVMBuildIntToPtr(e->b, LLVMBuildAdd(e->b, base, at, ""), types[1], "");
	args[1] = emit_int(e, e->i32, 4);
	args[2] = emit_int(e, emit_vector_of(e, e->i1), 1);
	args[3] = LLVMGetUndef(type);
	return emit_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
}

static void shuffle(struct emit *e, const struct jit_insn *in)
{
	struct source source = find_source(e, in);
	LLVMValueRef v = emit_vector(e, in->args[2], PTX_CLASS_W);

	if (LLVMIsConstant(source.lane))
		v = LLVMBuildShuffleVector(e->b, v, LLVMGetUndef(LLVMTypeOf(v)), source.lane, "");
	else if (!is_const(in->args[2]))
		v = look_up(e, in->args[2], source.lane);
	emit_result(e, in, in->args[0], (struct value){ .vector = v });
	emit_result(e, in, in->args[1], (struct value){ .vector = source.inside });
}

/* ---- vote, redux -------------------------------------------------------------------------------- */

/* One for all. The second result is nobody's. */
static void set_word(struct emit *e, const struct jit_insn *in, LLVMValueRef v)
{
	LLVMValueRef no = emit_int(e, e->i1, 0);

	emit_result(e, in, in->args[0], (struct value){ .is_affine = true, .scalar = v });
	emit_result(e, in, in->args[1], (struct value){ .is_affine = true, .scalar = no });
}

static void vote(struct emit *e, const struct jit_insn *in)
{
	bool uniform = kind_of_operand(e->u, in->args[2], e->state).state == KIND_AFFINE;
	LLVMValueRef yes = emit_operand(e, in->args[2], PTX_CLASS_P, !uniform), all, none, v;

	if (in->insn_flags & INSN_NEG_PRED)
		yes = LLVMBuildNot(e->b, yes, "");
	yes = uniform ? LLVMBuildSExt(e->b, yes, e->i32, "")
		      : LLVMBuildBitCast(e->b, yes, e->i32, "");
	all = LLVMBuildICmp(e->b, LLVMIntEQ, yes, emit_int(e, e->i32, UINT32_MAX), "");
	none = LLVMBuildICmp(e->b, LLVMIntEQ, yes, emit_int(e, e->i32, 0), "");
	switch (in->mode) {
	case PTX_MODE_BALLOT:
		v = yes;
		break;
	case PTX_MODE_ALL:
		v = all;
		break;
	case PTX_MODE_ANY:
		v = LLVMBuildNot(e->b, none, "");
		break;
	default:
		v = LLVMBuildOr(e->b, all, none, "");
	}
	set_word(e, in, v);
}

static void reduce(struct emit *e, const struct jit_insn *in)
{
	bool sign = ptx_type_kind((enum ptx_type)in->type) == 's';
	const char *const names[] = {
		[PTX_BOP_ADD] = "llvm.vector.reduce.add",
		[PTX_BOP_AND] = "llvm.vector.reduce.and",
		[PTX_BOP_OR] = "llvm.vector.reduce.or",
		[PTX_BOP_XOR] = "llvm.vector.reduce.xor",
		[PTX_BOP_MIN] = sign ? "llvm.vector.reduce.smin" : "llvm.vector.reduce.umin",
		[PTX_BOP_MAX] = sign ? "llvm.vector.reduce.smax" : "llvm.vector.reduce.umax",
	};
	LLVMValueRef v = emit_vector(e, in->args[2], PTX_CLASS_W);
	LLVMTypeRef type = LLVMTypeOf(v);

	set_word(e, in, emit_intrinsic(e, names[in->bop], &type, 1, &v, 1));
}

void emit_warp(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef everybody = is_everybody(e, in);

	emit_refuse_if(e, LLVMBuildNot(e->b, everybody, ""));
	if (in->op == PTX_OP_SHFL)
		shuffle(e, in);
	else if (in->op == PTX_OP_VOTE)
		vote(e, in);
	else if (in->op == PTX_OP_REDUX)
		reduce(e, in);
}
