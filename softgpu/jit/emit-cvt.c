/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between numbers.
 */
#include "softgpu/jit/op.h"

/* ---- integers ------------------------------------------------------------------------------------ */

static LLVMValueRef resize(const struct op *o)
{
	uint32_t from = type_bytes(o->in->stype), to = o->bytes < 2 ? 2 : o->bytes;
	LLVMValueRef v = arg_of(o, 1, from);
	bool sign = is_signed(o->in->stype);

	if (from == 1) {
		LLVMTypeRef byte = o->vector ? emit_vector_of(o->e, o->e->i8) : o->e->i8;

		return extend(o, LLVMBuildTrunc(o->e->b, v, byte, ""), to, sign);
	}
	if (from == to)
		return v;
	return from > to ? LLVMBuildTrunc(o->e->b, v, int_type(o, to), "") : extend(o, v, to, sign);
}

/* ---- steps between floats ------------------------------------------------------------------------ */

/* Denormals to zeros of the same sign; a NaN becomes the one that there is. */
static LLVMValueRef flush(const struct op *o)
{
	LLVMValueRef v = arg(o, 1);

	return choose(o, is_nan(o, as_real(o, v, 4)), number(o, 4, NAN_F32), flushed(o, v));
}

/* Into [0, 1]; NaN is 0. */
static LLVMValueRef clamp(const struct op *o)
{
	LLVMValueRef v = real_arg(o, 1), zero = real_number(o, o->bytes, 0),
		     one = real_number(o, o->bytes, 1);
	LLVMBuilderRef b = o->e->b;

	v = choose(o, LLVMBuildFCmp(b, LLVMRealOGT, v, zero, ""), v, zero);
	v = choose(o, LLVMBuildFCmp(b, LLVMRealOGE, v, one, ""), one, v);
	return as_bits(o, v, o->bytes);
}

static LLVMValueRef whole(const struct op *o, LLVMValueRef v, uint32_t bytes, uint8_t round)
{
	static const char *const names[] = { "llvm.rint", "llvm.trunc", "llvm.floor", "llvm.ceil" };
	LLVMTypeRef type = real_type(o, bytes);

	return emit_intrinsic(o->e, names[round - PTX_RNI], &type, 1, &v, 1);
}

/* Of one type: rounded to a whole number, if at all. */
static LLVMValueRef same_float(const struct op *o)
{
	LLVMValueRef v = real_arg(o, 1);

	if (o->in->round >= PTX_RNI)
		v = whole(o, v, o->bytes, o->in->round);
	return canonical(o, v, o->bytes);
}

static LLVMValueRef to_float(const struct op *o)
{
	uint32_t from = type_bytes(o->in->stype);
	LLVMTypeRef to = real_type(o, o->bytes);
	LLVMValueRef v = arg_of(o, 1, from);
	LLVMBuilderRef b = o->e->b;

	if (!is_float(o->in->stype))
		v = is_signed(o->in->stype) ? LLVMBuildSIToFP(b, v, to, "")
					    : LLVMBuildUIToFP(b, v, to, "");
	else if (o->bytes == 8)
		v = LLVMBuildFPExt(b, as_real(o, v, 4), to, "");
	else
		return canonical(o, LLVMBuildFPTrunc(b, as_real(o, v, 8), to, ""), 4);
	return as_bits(o, v, o->bytes);
}

/* ---- floats to integers -------------------------------------------------------------------------- */

/* The ends of an integer type: what is at or beyond them is they. Of a float's values none is between. */
struct ends {
	double low, high;
	uint64_t low_bits, high_bits;
};

static struct ends ends_of(uint8_t type)
{
	uint32_t bits = 8 * type_bytes(type) - is_signed(type);
	uint64_t high = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

	if (is_signed(type))
		return (struct ends){ -(double)high - (bits < 53), (double)high, ~high, high };
	return (struct ends){ 0, (double)high, 0, high };
}

/* NaN is 0, but the lowest bit pattern with the top bit set where a type of 64 bits is involved. */
static uint64_t integer_of_nan(const struct op *o)
{
	bool wide = o->bytes == 8 || o->in->stype == PTX_F64;
	uint64_t top = UINT64_C(1) << (8 * o->bytes - 1);

	if (o->bytes == 1 && is_signed(o->in->type))
		top = (uint64_t)INT8_MIN;
	return wide ? top : 0;
}

static LLVMValueRef to_integer(const struct op *o)
{
	uint32_t from = type_bytes(o->in->stype), to = o->bytes < 2 ? 2 : o->bytes;
	LLVMValueRef v = as_real(o, arg_of(o, 1, from), from), low, high, inside, r;
	uint8_t round = o->in->round >= PTX_RNI ? o->in->round : PTX_RZI;
	struct ends ends = ends_of(o->in->type);
	LLVMBuilderRef b = o->e->b;

	v = whole(o, v, from, round);
	low = LLVMBuildFCmp(b, LLVMRealOLE, v, real_number(o, from, ends.low), "");
	high = LLVMBuildFCmp(b, LLVMRealOGE, v, real_number(o, from, ends.high), "");
	inside = LLVMBuildNot(b, LLVMBuildOr(b, LLVMBuildOr(b, low, high, ""), is_nan(o, v), ""),
			      "");
	/* What is outside has no value as an integer: not even for a moment. */
	r = choose(o, inside, v, real_number(o, from, 0));
	r = is_signed(o->in->type) ? LLVMBuildFPToSI(b, r, int_type(o, to), "")
				   : LLVMBuildFPToUI(b, r, int_type(o, to), "");
	r = choose(o, inside, r, number(o, to, integer_of_nan(o)));
	r = choose(o, low, number(o, to, ends.low_bits), r);
	return choose(o, high, number(o, to, ends.high_bits), r);
}

/* ---- all ----------------------------------------------------------------------------------------- */

LLVMValueRef op_convert(const struct op *o)
{
	bool to = is_float(o->in->type), from = is_float(o->in->stype);

	if (o->in->flags & SHAPE_FLUSH)
		return flush(o);
	if (o->in->flags & SHAPE_CLAMP)
		return clamp(o);
	if (!to)
		return from ? to_integer(o) : resize(o);
	return o->in->type == o->in->stype ? same_float(o) : to_float(o);
}

/* ---- words that go up from lane to lane ---------------------------------------------------------- */

/*
 * A word that goes up from lane to lane, made wider: only right as long as it does not go past the
 * end of the word. That it did is left to the interpreter.
 */
static void check_wide(const struct op *o, uint32_t i, bool sign)
{
	struct kind k = kind_of_operand(o->e->u, o->in->args[i], o->e->state);
	LLVMValueRef base, last, again;
	struct emit *e = o->e;

	if (!k.stride)
		return;
	base = emit_scalar(e, o->in->args[i], PTX_CLASS_W);
	base = sign ? LLVMBuildSExt(e->b, base, e->i64, "") : LLVMBuildZExt(e->b, base, e->i64, "");
	last = LLVMBuildAdd(e->b, base, emit_int(e, e->i64, (uint64_t)(31 * k.stride)), "");
	again = LLVMBuildTrunc(e->b, last, e->i32, "");
	again = sign ? LLVMBuildSExt(e->b, again, e->i64, "")
		     : LLVMBuildZExt(e->b, again, e->i64, "");
	emit_refuse_if(e, LLVMBuildICmp(e->b, LLVMIntNE, last, again, ""));
}

void op_check_widening(const struct op *o)
{
	const struct jit_insn *in = o->in;

	if (in->op == PTX_OP_CVT && type_bytes(in->stype) == 4 && o->bytes == 8)
		check_wide(o, 1, is_signed(in->stype));
	if ((in->op == PTX_OP_MUL || in->op == PTX_OP_MAD) && in->mode == PTX_MODE_WIDE) {
		check_wide(o, 1, is_signed(in->type));
		check_wide(o, 2, is_signed(in->type));
	}
}
