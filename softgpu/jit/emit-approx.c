/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Powers of two, logarithms and reciprocals of doubles, step by step as softgpu/exec/approx.h has
 * them: then each step is rounded as it is there.
 */
#include "softgpu/jit/op.h"

/* c[0] + t * (c[1] + t * (... + t * c[n - 1])) */
static LLVMValueRef polynomial(const struct op *o, LLVMValueRef t, const double *c, uint32_t n)
{
	LLVMValueRef v = real_number(o, 8, c[n - 1]);

	for (uint32_t i = n - 1; i-- > 0;) {
		v = LLVMBuildFMul(o->e->b, t, v, "");
		v = LLVMBuildFAdd(o->e->b, real_number(o, 8, c[i]), v, "");
	}
	return v;
}

static LLVMValueRef real_compare(const struct op *o, LLVMRealPredicate p, LLVMValueRef x, double y,
				 uint32_t bytes)
{
	return LLVMBuildFCmp(o->e->b, p, x, real_number(o, bytes, y), "");
}

LLVMValueRef op_power_of_two(const struct op *o)
{
	static const double terms[] = { 1,	  1,	     1.0 / 2,	1.0 / 6,
					1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040 };
	LLVMValueRef x = real_arg(o, 1), v, whole, t, scale;
	LLVMBuilderRef b = o->e->b;

	v = LLVMBuildFPExt(b, x, real_type(o, 8), "");
	v = choose(o, real_compare(o, LLVMRealOGT, x, -160, 4), v, real_number(o, 8, -160));
	v = choose(o, real_compare(o, LLVMRealOGT, x, 160, 4), real_number(o, 8, 160), v);
	whole = choose(o, real_compare(o, LLVMRealOLT, v, 0, 8),
		       LLVMBuildFSub(b, v, real_number(o, 8, 0.5), ""),
		       LLVMBuildFAdd(b, v, real_number(o, 8, 0.5), ""));
	whole = LLVMBuildFPToSI(b, whole, int_type(o, 4), "");
	t = LLVMBuildFSub(b, v, LLVMBuildSIToFP(b, whole, real_type(o, 8), ""), "");
	t = LLVMBuildFMul(b, t, real_number(o, 8, 0.693147180559945309), "");
	scale = extend(o, LLVMBuildAdd(b, whole, number(o, 4, 1023), ""), 8, false);
	scale = as_real(o, LLVMBuildShl(b, scale, number(o, 8, 52), ""), 8);
	v = polynomial(o, t, terms, sizeof(terms) / sizeof(*terms));
	v = LLVMBuildFPTrunc(b, LLVMBuildFMul(b, v, scale, ""), real_type(o, 4), "");
	return choose(o, is_nan(o, x), x, v);
}

/* Of x in double: a mantissa near 1, and its exponent. */
static LLVMValueRef take_apart(const struct op *o, LLVMValueRef x, LLVMValueRef *ret_exponent)
{
	LLVMValueRef bits = as_bits(o, LLVMBuildFPExt(o->e->b, x, real_type(o, 8), ""), 8), m, big;
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef exponent;

	exponent =
		LLVMBuildTrunc(b, LLVMBuildLShr(b, bits, number(o, 8, 52), ""), int_type(o, 4), "");
	exponent = LLVMBuildAnd(b, exponent, number(o, 4, 0x7ff), "");
	exponent = LLVMBuildSub(b, exponent, number(o, 4, 1023), "");
	m = LLVMBuildAnd(b, bits, number(o, 8, (UINT64_C(1) << 52) - 1), "");
	m = as_real(o, LLVMBuildOr(b, m, number(o, 8, UINT64_C(1023) << 52), ""), 8);
	big = real_compare(o, LLVMRealOGT, m, 1.41421356237, 8);
	*ret_exponent = LLVMBuildAdd(b, exponent, LLVMBuildZExt(b, big, int_type(o, 4), ""), "");
	return choose(o, big, LLVMBuildFMul(b, m, real_number(o, 8, 0.5), ""), m);
}

LLVMValueRef op_logarithm(const struct op *o)
{
	static const double terms[] = { 1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11 };
	LLVMValueRef x = real_arg(o, 1), one = real_number(o, 8, 1), exponent, m, s, v, infinity;
	LLVMBuilderRef b = o->e->b;

	m = take_apart(o, x, &exponent);
	s = LLVMBuildFDiv(b, LLVMBuildFSub(b, m, one, ""), LLVMBuildFAdd(b, m, one, ""), "");
	v = polynomial(o, LLVMBuildFMul(b, s, s, ""), terms, sizeof(terms) / sizeof(*terms));
	v = LLVMBuildFMul(b, real_number(o, 8, 2.885390081777926815), v, "");
	s = LLVMBuildFMul(b, s, v, "");
	v = LLVMBuildFAdd(b, LLVMBuildSIToFP(b, exponent, real_type(o, 8), ""), s, "");
	v = LLVMBuildFPTrunc(b, v, real_type(o, 4), "");
	infinity = as_real(o, number(o, 4, 0x7f800000), 4);
	v = choose(o, LLVMBuildFCmp(b, LLVMRealOEQ, x, infinity, ""), x, v);
	v = choose(o, real_compare(o, LLVMRealOGT, x, 0, 4), v,
		   as_real(o, number(o, 4, NAN_F32), 4));
	return choose(o, real_compare(o, LLVMRealOEQ, x, 0, 4),
		      as_real(o, number(o, 4, 0xff800000), 4), v);
}

/* Of a double the upper word only; and with @flushes zeros in place of denormals, of the same sign. */
static LLVMValueRef upper(const struct op *o, LLVMValueRef v, bool flushes)
{
	LLVMValueRef bits = as_bits(o, v, 8), exponent, sign;
	LLVMBuilderRef b = o->e->b;

	if (flushes) {
		exponent = LLVMBuildAnd(b, bits, number(o, 8, UINT64_C(0x7ff) << 52), "");
		sign = LLVMBuildAnd(b, bits, number(o, 8, UINT64_C(1) << 63), "");
		bits = choose(o, compare(o, LLVMIntEQ, exponent, number(o, 8, 0)), sign, bits);
	}
	bits = LLVMBuildAnd(b, bits, number(o, 8, UINT64_C(0xffffffff) << 32), "");
	/* NaN must not turn into infinity. */
	return choose(o, is_nan(o, v), number(o, 8, UINT64_C(0x7fffffff) << 32), bits);
}

LLVMValueRef op_upper_reciprocal(const struct op *o)
{
	bool flushes = form_flushes(o->in);
	LLVMTypeRef type = real_type(o, 8);
	LLVMValueRef v = as_real(o, upper(o, real_arg(o, 1), flushes), 8);

	if (o->in->op == PTX_OP_RSQRT)
		v = emit_intrinsic(o->e, "llvm.sqrt", &type, 1, &v, 1);
	v = LLVMBuildFDiv(o->e->b, real_number(o, 8, 1), v, "");
	return upper(o, v, flushes);
}
