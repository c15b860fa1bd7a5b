/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions between numbers.
 *
 * The decoder has brought the source to 32 or 64 bits before: s32, u32, s64,
 * u64, f32 or f64. Integers to integers are then a matter of widths, unless
 * they saturate.
 */
#include "softgpu/exec/half.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/octet.h"

/* ---- to f32 and f64 ----------------------------------------------------------------------------- */

/* Rounding is MXCSR's. */
HANDLER1(f32_from_s32, f32, s32, (f32)A)
HANDLER1(f32_from_u32, f32, u32, (f32)A)
HANDLER1(f32_from_s64, f32, s64, (f32)A)
HANDLER1(f32_from_u64, f32, u64, (f32)A)
HANDLER1(f64_from_s32, f64, s32, (f64)A)
HANDLER1(f64_from_u32, f64, u32, (f64)A)
HANDLER1(f64_from_s64, f64, s64, (f64)A)
HANDLER1(f64_from_u64, f64, u64, (f64)A)
HANDLER1(f64_from_f32, f64, f32, (f64)A)
HANDLER1(f32_from_f64, f32, f64, A == A ? (f32)A : float_of_bits(0x7fffffff))

static exec_fn *find_to_float(const struct ptx_insn *in)
{
	bool wide = in->type == PTX_F64;

	switch (in->stype) {
	case PTX_S32:
		return wide ? f64_from_s32 : f32_from_s32;
	case PTX_U32:
		return wide ? f64_from_u32 : f32_from_u32;
	case PTX_S64:
		return wide ? f64_from_s64 : f32_from_s64;
	case PTX_U64:
		return wide ? f64_from_u64 : f32_from_u64;
	case PTX_F32:
		return f64_from_f32;
	default:
		return f32_from_f64;
	}
}

/* ---- to a whole number, as a float -------------------------------------------------------------- */

HANDLER1(rni_f32, f32, f32, A == A ? __builtin_rintf(A) : float_of_bits(0x7fffffff))
HANDLER1(rzi_f32, f32, f32, A == A ? __builtin_truncf(A) : float_of_bits(0x7fffffff))
HANDLER1(rmi_f32, f32, f32, A == A ? __builtin_floorf(A) : float_of_bits(0x7fffffff))
HANDLER1(rpi_f32, f32, f32, A == A ? __builtin_ceilf(A) : float_of_bits(0x7fffffff))
HANDLER1(same_f32, u32, u32, (A & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : A)
HANDLER1(rni_f64, f64, f64, __builtin_rint(A))
HANDLER1(rzi_f64, f64, f64, __builtin_trunc(A))
HANDLER1(rmi_f64, f64, f64, __builtin_floor(A))
HANDLER1(rpi_f64, f64, f64, __builtin_ceil(A))
HANDLER1(same_f64, u64, u64, A)

static exec_fn *find_whole(const struct ptx_insn *in)
{
	bool wide = in->type == PTX_F64;

	switch (in->round) {
	case PTX_RNI:
		return wide ? rni_f64 : rni_f32;
	case PTX_RZI:
		return wide ? rzi_f64 : rzi_f32;
	case PTX_RMI:
		return wide ? rmi_f64 : rmi_f32;
	case PTX_RPI:
		return wide ? rpi_f64 : rpi_f32;
	default:
		return wide ? same_f64 : same_f32;
	}
}

/* ---- floats to integers ------------------------------------------------------------------------- */

/*
 * Out of range is the nearest that there is. NaN is 0, but the lowest bit
 * pattern with the top bit set where a 64-bit type is involved.
 */
#define TO_INT(D, lane, S, suffix, round, low, high, nan)                                          \
	static inline D int_##D##_##S##_##suffix##_lane(f64 v)                                     \
	{                                                                                          \
		v = round(v);                                                                      \
		return v != v		  ? (D)(nan)                                               \
		       : v <= (f64)(low)  ? (D)(low)                                               \
		       : v >= (f64)(high) ? (D)(high)                                              \
					  : (D)v;                                                  \
	}                                                                                          \
	HANDLER1(int_##D##_##S##_##suffix, lane, S, (lane)int_##D##_##S##_##suffix##_lane((f64)A))
#define TO_INT_ROUNDS(D, lane, S, low, high, nan)                                                  \
	TO_INT(D, lane, S, rni, __builtin_rint, low, high, nan)                                    \
	TO_INT(D, lane, S, rzi, __builtin_trunc, low, high, nan)                                   \
	TO_INT(D, lane, S, rmi, __builtin_floor, low, high, nan)                                   \
	TO_INT(D, lane, S, rpi, __builtin_ceil, low, high, nan)                                    \
	static exec_fn *const int_##D##_##S[] = {                                                  \
		int_##D##_##S##_rni,                                                               \
		int_##D##_##S##_rzi,                                                               \
		int_##D##_##S##_rmi,                                                               \
		int_##D##_##S##_rpi,                                                               \
	};
#define TO_INT_TYPES(S, nan8, nan16, nan32)                                                        \
	TO_INT_ROUNDS(u8, u16, S, 0, UINT8_MAX, nan8)                                              \
	TO_INT_ROUNDS(s8, s16, S, INT8_MIN, INT8_MAX, nan8)                                        \
	TO_INT_ROUNDS(u16, u16, S, 0, UINT16_MAX, nan16)                                           \
	TO_INT_ROUNDS(s16, s16, S, INT16_MIN, INT16_MAX, nan16)                                    \
	TO_INT_ROUNDS(u32, u32, S, 0, UINT32_MAX, nan32)                                           \
	TO_INT_ROUNDS(s32, s32, S, INT32_MIN, INT32_MAX, nan32)                                    \
	TO_INT_ROUNDS(u64, u64, S, 0, UINT64_MAX, UINT64_C(1) << 63)                               \
	TO_INT_ROUNDS(s64, s64, S, INT64_MIN, INT64_MAX, INT64_MIN)                                \
	static exec_fn *const *const int_from_##S[PTX_N_TYPES] = {                                 \
		[PTX_U8] = int_u8_##S,	 [PTX_S8] = int_s8_##S,	  [PTX_U16] = int_u16_##S,         \
		[PTX_S16] = int_s16_##S, [PTX_U32] = int_u32_##S, [PTX_S32] = int_s32_##S,         \
		[PTX_U64] = int_u64_##S, [PTX_S64] = int_s64_##S,                                  \
	};
TO_INT_TYPES(f32, 0, 0, 0)
TO_INT_TYPES(f64, 1u << 7, 1u << 15, 1u << 31)

static exec_fn *find_to_int(const struct ptx_insn *in)
{
	exec_fn *const *by_round =
		in->stype == PTX_F32 ? int_from_f32[in->type] : int_from_f64[in->type];
	u32 round = in->round >= PTX_RNI ? in->round - PTX_RNI : PTX_RZI - PTX_RNI;

	return by_round ? by_round[round] : NULL;
}

/* ---- integers that saturate --------------------------------------------------------------------- */

/* clang-format off */
#define SATURATE(D, lane, S, low, high)                                                            \
	HANDLER1(sat_##D##_##S, lane, S,                                                           \
		 (s128)A < (s128)(low) ? (lane)(low) : (s128)A > (s128)(high) ? (lane)(high) : (lane)A)
/* clang-format on */
#define SATURATE_TYPES(S)                                                                          \
	SATURATE(u8, u16, S, 0, UINT8_MAX)                                                         \
	SATURATE(s8, s16, S, INT8_MIN, INT8_MAX)                                                   \
	SATURATE(u16, u16, S, 0, UINT16_MAX)                                                       \
	SATURATE(s16, s16, S, INT16_MIN, INT16_MAX)                                                \
	SATURATE(u32, u32, S, 0, UINT32_MAX)                                                       \
	SATURATE(s32, s32, S, INT32_MIN, INT32_MAX)                                                \
	SATURATE(u64, u64, S, 0, UINT64_MAX)                                                       \
	SATURATE(s64, s64, S, INT64_MIN, INT64_MAX)                                                \
	static exec_fn *const saturate_##S[PTX_N_TYPES] = {                                        \
		[PTX_U8] = sat_u8_##S,	 [PTX_S8] = sat_s8_##S,	  [PTX_U16] = sat_u16_##S,         \
		[PTX_S16] = sat_s16_##S, [PTX_U32] = sat_u32_##S, [PTX_S32] = sat_s32_##S,         \
		[PTX_U64] = sat_u64_##S, [PTX_S64] = sat_s64_##S,                                  \
	};
SATURATE_TYPES(s32)
SATURATE_TYPES(u32)
SATURATE_TYPES(s64)
SATURATE_TYPES(u64)

static exec_fn *find_saturate(const struct ptx_insn *in)
{
	switch (in->stype) {
	case PTX_S32:
		return saturate_s32[in->type];
	case PTX_U32:
		return saturate_u32[in->type];
	case PTX_S64:
		return saturate_s64[in->type];
	default:
		return saturate_u64[in->type];
	}
}

/* ---- to 16-bit floats and tf32 ------------------------------------------------------------------ */

/* satfinite: what is too large is the largest number. */
static inline f64 clamp_finite(f64 v, f64 most, const struct insn *in)
{
	if (!(in->flags & INSN_SATFINITE))
		return v;
	return v > most ? most : v < -most ? -most : v;
}

#define F16_MAX	  65504.0
#define BF16_MAX  0x1.fep127
#define TO_F16(v) half_from_double(clamp_finite((f64)(v), F16_MAX, in), (enum ptx_round)in->mode)
#define TO_BF16(v)                                                                                 \
	bfloat_from_double(clamp_finite((f64)(v), BF16_MAX, in), (enum ptx_round)in->mode)

#define TO_HALVES(S)                                                                               \
	HANDLER1(f16_from_##S, u16, S, TO_F16(A))                                                  \
	HANDLER1(bf16_from_##S, u16, S, TO_BF16(A))
TO_HALVES(s32)
TO_HALVES(u32)
TO_HALVES(s64)
TO_HALVES(u64)
TO_HALVES(f32)
TO_HALVES(f64)
/* The common one, by the instruction for it where there is one. */
HANDLER1(f16_from_f32_nearest, u16, f32, half_from_float(A))
HANDLER2(f16x2_from_f32, u32, f32, f32, (u32)TO_F16(A) << 16 | TO_F16(B))
HANDLER2(bf16x2_from_f32, u32, f32, f32, (u32)TO_BF16(A) << 16 | TO_BF16(B))
HANDLER1(tf32_from_f32, u32, f32, narrow_float((f64)A, 8, 10, (enum ptx_round)in->mode) << 13)

static exec_fn *find_to_half(const struct ptx_insn *in)
{
	bool half = in->type == PTX_F16;

	switch (in->stype) {
	case PTX_S32:
		return half ? f16_from_s32 : bf16_from_s32;
	case PTX_U32:
		return half ? f16_from_u32 : bf16_from_u32;
	case PTX_S64:
		return half ? f16_from_s64 : bf16_from_s64;
	case PTX_U64:
		return half ? f16_from_u64 : bf16_from_u64;
	case PTX_F64:
		return half ? f16_from_f64 : bf16_from_f64;
	default:
		if (half && in->round == PTX_RN && !(in->flags & PTX_F_SATFINITE))
			return f16_from_f32_nearest;
		return half ? f16_from_f32 : bf16_from_f32;
	}
}

/* ---- from 16-bit floats ------------------------------------------------------------------------- */

HANDLER1(f32_from_f16, f32, u16, half_to_float(A))
HANDLER1(f32_from_bf16, f32, u16, bfloat_to_float(A))

static exec_fn *find_from_half(const struct ptx_insn *in)
{
	return in->stype == PTX_F16 ? f32_from_f16 : f32_from_bf16;
}

/* ---- two floats of 8 bits ----------------------------------------------------------------------- */

#define UPPER_HALF(v) half_to_float((u16)((v) >> 16))
#define LOWER_HALF(v) half_to_float((u16)(v))

#define OCTETS(kind)                                                                               \
	HANDLER2(kind##x2_from_f32, u16, f32, f32,                                                 \
		 (u16)(kind##_from_float(A) << 8 | kind##_from_float(B)))                          \
	HANDLER1(kind##x2_from_f16x2, u16, u32,                                                    \
		 (u16)(kind##_from_float(UPPER_HALF(A)) << 8 | kind##_from_float(LOWER_HALF(A))))  \
	HANDLER1(f16x2_from_##kind##x2, u32, u16,                                                  \
		 (u32)kind##_to_half((u8)(A >> 8)) << 16 | kind##_to_half((u8)A))
OCTETS(e4m3)
OCTETS(e5m2)

static exec_fn *find_octets(const struct ptx_insn *in)
{
	if (in->type == PTX_F16X2)
		return in->stype == PTX_E4M3X2 ? f16x2_from_e4m3x2 : f16x2_from_e5m2x2;
	if (in->stype == PTX_F16X2)
		return in->type == PTX_E4M3X2 ? e4m3x2_from_f16x2 : e5m2x2_from_f16x2;
	return in->type == PTX_E4M3X2 ? e4m3x2_from_f32 : e5m2x2_from_f32;
}

static bool is_octets(u8 type)
{
	return type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

exec_fn *PER_ISA(find_cvt)(const struct ptx_insn *in)
{
	bool to_float = ptx_type_kind((enum ptx_type)in->type) == 'f';
	bool from_float = ptx_type_kind((enum ptx_type)in->stype) == 'f';

	if (is_octets(in->type) || is_octets(in->stype))
		return find_octets(in);
	if (in->stype == PTX_F16 || in->stype == PTX_BF16)
		return find_from_half(in);
	switch (in->type) {
	case PTX_F16:
	case PTX_BF16:
		return find_to_half(in);
	case PTX_F16X2:
		return f16x2_from_f32;
	case PTX_BF16X2:
		return bf16x2_from_f32;
	case PTX_TF32:
		return tf32_from_f32;
	default:
		break;
	}
	if (!to_float)
		return from_float ? find_to_int(in) : find_saturate(in);
	return in->type == in->stype ? find_whole(in) : find_to_float(in);
}
