/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floats of 8 bits.
 *
 *		sign, exponent, mantissa	highest exponent		largest number
 *	e5m2	1, 5 and 2 bits			infinity and NaN		57344
 *	e4m3	1, 4 and 3 bits			numbers; NaN is all ones	448
 *
 * They are made rounded to nearest and saturated: infinity becomes the largest number, NaN stays NaN,
 * the one that has all bits set but the sign.
 */
#ifndef SOFTGPU_EXEC_OCTET_H
#define SOFTGPU_EXEC_OCTET_H

#include "softgpu/exec/half.h"

#define E5M2_MAX  57344.0
#define E4M3_MAX  448.0
#define OCTET_NAN 0x7f

static inline f64 octet_saturate(f64 v, f64 most)
{
	return v > most ? most : v < -most ? -most : v;
}

static inline u8 e5m2_from_float(f32 v)
{
	return (u8)narrow_float(octet_saturate((f64)v, E5M2_MAX), 5, 2, PTX_RN);
}

/*
 * Through a float whose exponent has a bit more and is biased by 8 more, so that the highest one of
 * e4m3 is an ordinary one.
 */
static inline u8 e4m3_from_float(f32 v)
{
	u32 bits = narrow_float(octet_saturate((f64)v, E4M3_MAX) * 0x1p-8, 5, 3, PTX_RN);

	return v != v ? OCTET_NAN : (u8)((bits & 0x7f) | (bits >> 1 & 0x80));
}

/* The upper half of an f16. */
static inline u16 e5m2_to_half(u8 octet)
{
	return (octet & 0x7f) > 0x7c ? 0x7fff : (u16)(octet << 8);
}

/* As an f16 its exponent is biased by 8 too little. */
static inline u16 e4m3_to_half(u8 octet)
{
	f32 magnitude = half_to_float((u16)((octet & 0x7f) << 7)) * 0x1p8f;

	if ((octet & 0x7f) == OCTET_NAN)
		return 0x7fff;
	return (u16)(half_from_double((f64)magnitude, PTX_RN) | (octet & 0x80) << 8);
}

#endif
