/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers beyond plain arithmetic: division, fields, counting, permutations, the carry flag.
 */
#include "softgpu/jit/op.h"

/* ---- division ----------------------------------------------------------------------------------- */

/*
 * The divisor is neither 0 nor what overflows. CPUs have no vectors of integer division; a quotient
 * of 32 bits is exact in double (softgpu/exec/exec-int.c says why).
 */
static LLVMValueRef quotient(const struct op *o, LLVMValueRef x, LLVMValueRef y)
{
	bool sign = is_signed(o->in->type);
	LLVMTypeRef real = real_type(o, 8), word = int_type(o, 4);
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef v;

	if (!o->vector || o->bytes == 8)
		return sign ? LLVMBuildSDiv(b, x, y, "") : LLVMBuildUDiv(b, x, y, "");
	if (sign)
		v = LLVMBuildFDiv(b, LLVMBuildSIToFP(b, x, real, ""),
				  LLVMBuildSIToFP(b, y, real, ""), "");
	else
		v = LLVMBuildFDiv(b, LLVMBuildUIToFP(b, x, real, ""),
				  LLVMBuildUIToFP(b, y, real, ""), "");
	v = sign ? LLVMBuildFPToSI(b, v, word, "") : LLVMBuildFPToUI(b, v, word, "");
	return o->bytes == 2 ? LLVMBuildTrunc(b, v, int_type(o, 2), "") : v;
}

/* By zero: all ones, and what was divided is left. */
LLVMValueRef op_divide(const struct op *o)
{
	LLVMValueRef x = arg(o, 1), y = arg(o, 2), one = number(o, o->bytes, 1), safe, q;
	LLVMValueRef zero = compare(o, LLVMIntEQ, y, number(o, o->bytes, 0)), minus = NULL;
	LLVMValueRef ones = number(o, o->bytes, UINT64_MAX);
	LLVMBuilderRef b = o->e->b;

	safe = choose(o, zero, one, y);
	if (is_signed(o->in->type)) {
		minus = compare(o, LLVMIntEQ, y, ones);
		safe = choose(o, minus, one, safe);
	}
	q = quotient(o, x, safe);
	if (o->in->op == PTX_OP_REM)
		return choose(o, zero, x, LLVMBuildSub(b, x, LLVMBuildMul(b, q, safe, ""), ""));
	if (minus)
		q = choose(o, minus, LLVMBuildNeg(b, x, ""), q);
	return choose(o, zero, ones, q);
}

/* ---- shifts of two words ------------------------------------------------------------------------ */

LLVMValueRef op_funnel(const struct op *o)
{
	bool left = o->in->mode == PTX_MODE_L;
	LLVMValueRef args[] = { arg(o, 2), arg(o, 1), arg(o, 3) }, v;
	LLVMTypeRef type = int_type(o, 4);

	v = emit_intrinsic(o->e, left ? "llvm.fshl" : "llvm.fshr", &type, 1, args, 3);
	if (o->in->flags & PTX_F_WRAP)
		return v;
	return choose(o, compare(o, LLVMIntUGE, args[2], number(o, 4, 32)), args[left], v);
}

/* ---- counting ----------------------------------------------------------------------------------- */

static LLVMValueRef as_word(const struct op *o, LLVMValueRef v)
{
	return o->bytes == 8 ? LLVMBuildTrunc(o->e->b, v, int_type(o, 4), "") : v;
}

static LLVMValueRef leading_zeros(const struct op *o, LLVMValueRef v)
{
	LLVMTypeRef type = int_type(o, o->bytes);
	LLVMValueRef args[] = { v, emit_int(o->e, o->e->i1, 0) };

	return emit_intrinsic(o->e, "llvm.ctlz", &type, 1, args, 2);
}

/* popc and clz */
LLVMValueRef op_count(const struct op *o)
{
	LLVMTypeRef type = int_type(o, o->bytes);
	LLVMValueRef v = arg(o, 1);

	if (o->in->op == PTX_OP_CLZ)
		return as_word(o, leading_zeros(o, v));
	return as_word(o, emit_intrinsic(o->e, "llvm.ctpop", &type, 1, &v, 1));
}

LLVMValueRef op_reverse(const struct op *o)
{
	LLVMTypeRef type = int_type(o, o->bytes);
	LLVMValueRef v = arg(o, 1);

	return emit_intrinsic(o->e, "llvm.bitreverse", &type, 1, &v, 1);
}

/* The highest bit that differs from the sign, or how far to shift for it; all ones if there is none. */
LLVMValueRef op_find_bit(const struct op *o)
{
	LLVMValueRef v = arg(o, 1), last = number(o, o->bytes, 8 * o->bytes - 1), n, none;
	LLVMBuilderRef b = o->e->b;

	if (is_signed(o->in->type))
		v = LLVMBuildXor(b, v, LLVMBuildAShr(b, v, last, ""), "");
	none = compare(o, LLVMIntEQ, v, number(o, o->bytes, 0));
	n = leading_zeros(o, v);
	if (!(o->in->flags & PTX_F_SHIFTAMT))
		n = LLVMBuildSub(b, last, n, "");
	return choose(o, none, number(o, 4, UINT32_MAX), as_word(o, n));
}

/* ---- fields ------------------------------------------------------------------------------------- */

static LLVMValueRef low_byte(const struct op *o, uint32_t i)
{
	LLVMValueRef v = LLVMBuildAnd(o->e->b, arg_of(o, i, 4), number(o, 4, 255), "");

	return o->bytes == 8 ? extend(o, v, 8, false) : v;
}

/* @n ones, all of them if that is more than there are bits. */
static LLVMValueRef ones_below(const struct op *o, LLVMValueRef n)
{
	LLVMValueRef last = number(o, o->bytes, 8 * o->bytes - 1), one = number(o, o->bytes, 1), v;
	LLVMBuilderRef b = o->e->b;

	v = LLVMBuildShl(b, one, LLVMBuildAnd(b, n, last, ""), "");
	return choose(o, compare(o, LLVMIntUGT, n, last), number(o, o->bytes, UINT64_MAX),
		      LLVMBuildSub(b, v, one, ""));
}

LLVMValueRef op_insert(const struct op *o)
{
	LLVMValueRef into = arg(o, 2), last = number(o, o->bytes, 8 * o->bytes - 1), at, field, v;
	LLVMValueRef first = low_byte(o, 3);
	LLVMBuilderRef b = o->e->b;

	at = LLVMBuildAnd(b, first, last, "");
	field = LLVMBuildShl(b, ones_below(o, low_byte(o, 4)), at, "");
	v = LLVMBuildAnd(b, LLVMBuildShl(b, arg(o, 1), at, ""), field, "");
	v = LLVMBuildOr(b, v, LLVMBuildAnd(b, into, LLVMBuildNot(b, field, ""), ""), "");
	return choose(o, compare(o, LLVMIntUGT, first, last), into, v);
}

/* bmsk: as many ones from a place on */
LLVMValueRef op_ones(const struct op *o)
{
	LLVMValueRef first = arg(o, 1), n = arg(o, 2), last = number(o, 4, 31), v;
	LLVMBuilderRef b = o->e->b;

	if (o->in->flags & PTX_F_WRAP)
		n = LLVMBuildAnd(b, n, last, "");
	v = LLVMBuildShl(b, ones_below(o, n), LLVMBuildAnd(b, first, last, ""), "");
	if (o->in->flags & PTX_F_WRAP)
		return v;
	return choose(o, compare(o, LLVMIntUGT, first, last), number(o, 4, 0), v);
}

/* A byte of eight by a selector that is known, with its sign in all bits where that is asked for. */
static LLVMValueRef known_byte(const struct op *o, const LLVMValueRef in[2], uint32_t nibble)
{
	LLVMValueRef v = in[nibble >> 2 & 1];
	uint32_t byte = nibble & 3;
	LLVMBuilderRef b = o->e->b;

	if (!(nibble & 8))
		return LLVMBuildLShr(b, v, number(o, 4, 8 * byte), "");
	v = LLVMBuildShl(b, v, number(o, 4, 24 - 8 * byte), "");
	return LLVMBuildAShr(b, v, number(o, 4, 31), "");
}

/* The same by the lowest four bits of what each lane has. */
static LLVMValueRef chosen_byte(const struct op *o, const LLVMValueRef in[2], LLVMValueRef selector)
{
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef bit[2], v, by;

	for (uint32_t i = 0; i < 2; i++) {
		bit[i] = LLVMBuildAnd(b, selector, number(o, 4, 4u << i), "");
		bit[i] = compare(o, LLVMIntNE, bit[i], number(o, 4, 0));
	}
	by = LLVMBuildShl(b, LLVMBuildAnd(b, selector, number(o, 4, 3), ""), number(o, 4, 3), "");
	v = LLVMBuildLShr(b, choose(o, bit[0], in[1], in[0]), by, "");
	by = LLVMBuildShl(b, v, number(o, 4, 24), "");
	return choose(o, bit[1], LLVMBuildAShr(b, by, number(o, 4, 31), ""), v);
}

/* prmt: a byte at a time. */
LLVMValueRef op_permute(const struct op *o)
{
	const LLVMValueRef in[2] = { arg(o, 1), arg(o, 2) };
	LLVMValueRef all = number(o, 4, 0), selector = arg(o, 3), v;
	bool known = is_const(o->in->args[3]);
	LLVMBuilderRef b = o->e->b;

	for (uint32_t i = 0; i < 4; i++) {
		if (known)
			v = known_byte(o, in,
				       (uint32_t)unit_constant(o->e->u, o->in->args[3], 4) >>
						       (4 * i) &
					       15);
		else
			v = chosen_byte(o, in, LLVMBuildLShr(b, selector, number(o, 4, 4 * i), ""));
		v = LLVMBuildAnd(b, v, number(o, 4, 255), "");
		all = LLVMBuildOr(b, all, LLVMBuildShl(b, v, number(o, 4, 8 * i), ""), "");
	}
	return all;
}

/* ---- products ----------------------------------------------------------------------------------- */

/*
 * The upper 64 bits of a product, from four products of words:
 *
 *	x * y = xh yh 2^64 + (xh yl + xl yh) 2^32 + xl yl
 *
 * A negative factor is 2^64 less than its bits say, so the other is taken off the upper half.
 */
LLVMValueRef op_upper_product(const struct op *o, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef half = number(o, 8, 32), low = number(o, 8, UINT32_MAX), zero, v, carry, more;
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef xl = LLVMBuildAnd(b, x, low, ""), xh = LLVMBuildLShr(b, x, half, "");
	LLVMValueRef yl = LLVMBuildAnd(b, y, low, ""), yh = LLVMBuildLShr(b, y, half, "");

	carry = LLVMBuildLShr(b, LLVMBuildMul(b, xl, yl, ""), half, "");
	carry = LLVMBuildAdd(b, carry, LLVMBuildMul(b, xh, yl, ""), "");
	more = LLVMBuildAdd(b, LLVMBuildAnd(b, carry, low, ""), LLVMBuildMul(b, xl, yh, ""), "");
	v = LLVMBuildAdd(b, LLVMBuildMul(b, xh, yh, ""), LLVMBuildLShr(b, carry, half, ""), "");
	v = LLVMBuildAdd(b, v, LLVMBuildLShr(b, more, half, ""), "");
	if (!is_signed(o->in->type))
		return v;
	zero = number(o, 8, 0);
	v = LLVMBuildSub(b, v, choose(o, compare(o, LLVMIntSLT, x, zero), y, zero), "");
	return LLVMBuildSub(b, v, choose(o, compare(o, LLVMIntSLT, y, zero), x, zero), "");
}

/* ---- the carry flag ------------------------------------------------------------------------------ */

/* Half of a product, as 64 bits. */
static LLVMValueRef half_product(const struct op *o)
{
	bool sign = is_signed(o->in->type);
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef v =
		LLVMBuildMul(b, extend(o, arg(o, 1), 8, sign), extend(o, arg(o, 2), 8, sign), "");

	if (o->in->mode == PTX_MODE_LO)
		return LLVMBuildAnd(b, v, number(o, 8, UINT32_MAX), "");
	return LLVMBuildLShr(b, v, number(o, 8, 32), "");
}

/* Words, in 64 bits: the flag comes in as operand 4 and is bit 32 of what comes out. */
void op_carry(const struct op *o)
{
	bool mad = o->in->op == PTX_OP_MAD || o->in->op == PTX_OP_MADC;
	bool sub = o->in->op == PTX_OP_SUB || o->in->op == PTX_OP_SUBC;
	LLVMValueRef carry = emit_operand(o->e, o->in->args[4], PTX_CLASS_P, o->vector), x, y, v;
	LLVMBuilderRef b = o->e->b;

	carry = LLVMBuildZExt(b, carry, int_type(o, 8), "");
	x = mad ? half_product(o) : extend(o, arg(o, 1), 8, false);
	y = extend(o, arg(o, mad ? 3 : 2), 8, false);
	if (sub)
		v = LLVMBuildSub(b, LLVMBuildSub(b, x, y, ""), carry, "");
	else
		v = LLVMBuildAdd(b, LLVMBuildAdd(b, x, y, ""), carry, "");
	carry = LLVMBuildAnd(b, v, number(o, 8, UINT64_C(1) << 32), "");
	carry = compare(o, LLVMIntNE, carry, number(o, 8, 0));
	emit_result(o->e, o->in, o->in->args[0], made(o, LLVMBuildTrunc(b, v, int_type(o, 4), "")));
	emit_result(o->e, o->in, o->in->args[5], made(o, carry));
}
