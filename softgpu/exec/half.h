/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16-bit floats and their conversions to and from float, with every rounding.
 *
 * NaN becomes 0x7fff in results, as hardware has it.
 */
#ifndef SOFTGPU_EXEC_HALF_H
#define SOFTGPU_EXEC_HALF_H

#include <stdint.h>
#include <string.h>

#include "softgpu/exec/machine.h"

static inline u32 float_bits(f32 f)
{
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline f32 float_of_bits(u32 bits)
{
	f32 f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline u64 double_bits(f64 f)
{
	u64 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline f64 double_of_bits(u64 bits)
{
	f64 f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/*
 * The magic is a float of 2^112: a half's bits, moved to a float's place, are
 * its value times 2^-112, denormals too.
 */
static inline f32 half_to_float(u16 h)
{
	u32 magnitude = (u32)(h & 0x7fff) << 13, sign = (u32)(h & 0x8000) << 16;
	f32 f = float_of_bits(magnitude) * float_of_bits(0x77800000);

	if ((h & 0x7c00) == 0x7c00)
		return float_of_bits(sign | 0x7f800000 | (u32)(h & 0x3ff) << 13);
	return float_of_bits(float_bits(f) | sign);
}

static inline f32 bfloat_to_float(u16 h)
{
	return float_of_bits((u32)h << 16);
}

/* Should a magnitude that is cut off be raised by one? @rest of 2^@cut lies behind the cut. */
static inline u64 round_up(u64 kept, u64 rest, u32 cut, bool negative, enum ptx_round round)
{
	u64 half = UINT64_C(1) << (cut - 1);

	switch (round) {
	case PTX_RZ:
		return 0;
	case PTX_RM:
		return rest && negative;
	case PTX_RP:
		return rest && !negative;
	case PTX_RNA:
		return rest >= half;
	default:
		return rest > half || (rest == half && (kept & 1));
	}
}

/*
 * A double to a float of few bits: @mantissa bits, the exponent's bias and
 * width from @exponent bits. Infinity and NaN have the highest exponent.
 */
static inline u32 narrow_float(f64 v, u32 exponent, u32 mantissa, enum ptx_round round)
{
	u64 bits = double_bits(v), m = bits & ((UINT64_C(1) << 52) - 1), kept, rest;
	u32 sign = (u32)(bits >> 63) << (exponent + mantissa);
	s32 bias = (1 << (exponent - 1)) - 1, e = (s32)(bits >> 52 & 0x7ff) - 1023 + bias;
	u32 infinity = ((1u << exponent) - 1) << mantissa, cut = 52 - mantissa, result;

	if (v != v)
		return (1u << (exponent + mantissa)) - 1;
	if ((bits & INT64_MAX) == 0 || e < -(s32)mantissa - 2)
		e = -(s32)mantissa - 2;
	if ((bits >> 52 & 0x7ff) == 0x7ff)
		return sign | infinity;
	if (bits >> 52 & 0x7ff)
		m |= UINT64_C(1) << 52;
	if (e <= 0) {
		/* Denormal: the exponent stays, the value moves down. */
		cut += (u32)(1 - e);
		e = 0;
	} else {
		m &= (UINT64_C(1) << 52) - 1;
	}
	kept = cut < 64 ? m >> cut : 0;
	rest = cut < 64 ? m & ((UINT64_C(1) << cut) - 1) : m;
	result = ((u32)e << mantissa) + (u32)kept;
	if (rest)
		result += (u32)round_up(kept, rest, cut < 63 ? cut : 63, sign != 0, round);
	if (result >= infinity) {
		/* Too large: infinity, or the largest number where that is nearer to zero. */
		bool away = round == PTX_RM ? sign != 0 : round == PTX_RP ? !sign : round != PTX_RZ;

		result = away ? infinity : infinity - 1;
	}
	return sign | result;
}

static inline u16 half_from_double(f64 v, enum ptx_round round)
{
	return (u16)narrow_float(v, 5, 10, round);
}

static inline u16 bfloat_from_double(f64 v, enum ptx_round round)
{
	return (u16)narrow_float(v, 8, 7, round);
}

static inline u16 half_from_float(f32 f)
{
#ifdef __F16C__
	return f != f ? 0x7fff
		      : (u16)__builtin_ia32_vcvtps2ph((__attribute__((vector_size(16))) float){ f },
						      0)[0];
#else
	return half_from_double(f, PTX_RN);
#endif
}

static inline u16 bfloat_from_float(f32 f)
{
	u32 bits = float_bits(f);

	return f != f ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
