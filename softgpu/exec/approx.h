/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that PTX calls approximate: within the error that it allows, and
 * exact where it says so (powers of two, zeros, infinities).
 */
#ifndef SOFTGPU_EXEC_APPROX_H
#define SOFTGPU_EXEC_APPROX_H

#include "softgpu/exec/half.h"

/*
 * 2^x: the integer part goes to the exponent, the rest through a polynomial
 * in double, good for 2^-26 on [-1/2, 1/2].
 */
static inline f32 approx_ex2(f32 x)
{
	f64 v = x > 160 ? 160 : x > -160 ? (f64)x : -160;
	s64 whole = (s64)(v < 0 ? v - 0.5 : v + 0.5);
	f64 t = (v - (f64)whole) * 0.693147180559945309;
	f64 p = 1 + t * (1 + t * (1.0 / 2 +
				  t * (1.0 / 6 +
				       t * (1.0 / 24 + t * (1.0 / 120 +
							    t * (1.0 / 720 + t * (1.0 / 5040)))))));

	if (x != x)
		return x;
	return (f32)(p * double_of_bits((u64)(whole + 1023) << 52));
}

/*
 * log2 x: the exponent and, of a mantissa m near 1, the series of
 * 2 atanh((m - 1) / (m + 1)).
 */
static inline f32 approx_lg2(f32 x)
{
	u64 bits = double_bits((f64)x);
	s64 exponent = (s64)(bits >> 52 & 0x7ff) - 1023;
	f64 m = double_of_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52), s, s2;

	if (!(x > 0))
		return x == 0 ? -__builtin_inff() : float_of_bits(0x7fffffff);
	if (x == __builtin_inff())
		return x;
	if (m > 1.41421356237) {
		m *= 0.5;
		exponent++;
	}
	s = (m - 1) / (m + 1);
	s2 = s * s;
	s *= 2.885390081777926815 *
	     (1 +
	      s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 * (1.0 / 9 + s2 * (1.0 / 11))))));
	return (f32)((f64)exponent + s);
}

/* A double without its lower word. */
static inline f64 approx_upper(f64 v)
{
	u64 bits = double_bits(v);

	/* NaN must not turn into infinity. */
	return v != v ? double_of_bits(UINT64_C(0x7fffffff) << 32)
		      : double_of_bits(bits >> 32 << 32);
}

#endif
