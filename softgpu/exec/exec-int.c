/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer arithmetic and comparisons.
 *
 * Signed overflow wraps, as in PTX; where C would leave it undefined the
 * expressions go through the unsigned type. Division by zero, which PTX
 * leaves open, gives all ones, as hardware does.
 */
#include "softgpu/exec/handlers.h"

/* ---- add, sub, neg, abs, min, max ------------------------------------------------------------- */

EVERY_WIDTH(WITH2, add, A + B)
EVERY_WIDTH(WITH2, sub, A - B)
EVERY_WIDTH(WITH1, neg, 0 - A)
EVERY_SIGN(WITH2, min, A < B ? A : B)
EVERY_SIGN(WITH2, max, A > B ? A : B)
HANDLER1(abs_s16, u16, s16, A < 0 ? -(u16)A : A)
HANDLER1(abs_s32, u32, s32, A < 0 ? -(u32)A : (u32)A)
HANDLER1(abs_s64, u64, s64, A < 0 ? -(u64)A : (u64)A)
static exec_fn *const abs_by_type[PTX_N_TYPES] = {
	[PTX_S16] = abs_s16,
	[PTX_S32] = abs_s32,
	[PTX_S64] = abs_s64,
};
HANDLER2(min_relu_s32, s32, s32, s32, (A < B ? A : B) > 0 ? (A < B ? A : B) : 0)
HANDLER2(max_relu_s32, s32, s32, s32, (A > B ? A : B) > 0 ? (A > B ? A : B) : 0)

static inline s32 clamp_s32(s64 v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (s32)v;
}

HANDLER2(add_sat_s32, s32, s32, s32, clamp_s32((s64)A + B))
HANDLER2(sub_sat_s32, s32, s32, s32, clamp_s32((s64)A - B))

/* Two halves of a word, each on its own. */
/* clang-format off */
#define HALVES(T, op) ((u32)(u16)((T)A op(T) B) | (u32)(u16)((T)(A >> 16) op(T)(B >> 16)) << 16)
#define PICK(T, cmp, x, y) ((T)(x)cmp(T)(y) ? (u16)(x) : (u16)(y))
#define HALVES_PICK(T, cmp) \
	((u32)PICK(T, cmp, A, B) | (u32)PICK(T, cmp, A >> 16, B >> 16) << 16)
HANDLER2(add_x2, u32, u32, u32, HALVES(u16, +))
HANDLER2(sub_x2, u32, u32, u32, HALVES(u16, -))
HANDLER2(min_u16x2, u32, u32, u32, HALVES_PICK(u16, <))
HANDLER2(max_u16x2, u32, u32, u32, HALVES_PICK(u16, >))
HANDLER2(min_s16x2, u32, u32, u32, HALVES_PICK(s16, <))
HANDLER2(max_s16x2, u32, u32, u32, HALVES_PICK(s16, >))
/* clang-format on */

/* Clears the halves that are negative. */
static inline u32 relu_x2(u32 v)
{
	return ((s16)v < 0 ? 0 : v & 0xffff) | ((s32)v < 0 ? 0 : v & 0xffff0000);
}

HANDLER2(min_relu_s16x2, u32, u32, u32, relu_x2(HALVES_PICK(s16, <)))
HANDLER2(max_relu_s16x2, u32, u32, u32, relu_x2(HALVES_PICK(s16, >)))

/* ---- mul, mad --------------------------------------------------------------------------------- */

/* The upper half of a product: W is twice as wide as T. */
#define HIGH(T, W) ((T)((W)((W)A * (W)B) >> (8 * sizeof(T))))
#define MUL_LO(T)  ((T)((u64)A * (u64)B))

/* clang-format off */
WITH2(mul_lo, u16, MUL_LO(u16)) WITH2(mul_lo, u32, A * B) WITH2(mul_lo, u64, A * B) BY_WIDTH(mul_lo)
WITH2(mul_hi, u16, HIGH(u16, u32)) WITH2(mul_hi, s16, HIGH(s16, s32))
WITH2(mul_hi, u32, HIGH(u32, u64)) WITH2(mul_hi, s32, HIGH(s32, s64))
WITH2(mul_hi, u64, HIGH(u64, u128)) WITH2(mul_hi, s64, HIGH(s64, s128)) BY_SIGN(mul_hi)
WITH3(mad_lo, u16, (u16)(MUL_LO(u16) + C)) WITH3(mad_lo, u32, A * B + C)
WITH3(mad_lo, u64, A * B + C) BY_WIDTH(mad_lo)
WITH3(mad_hi, u16, (u16)(HIGH(u16, u32) + C))
HANDLER3(mad_hi_s16, u16, s16, s16, u16, (u16)(HIGH(s16, s32) + C))
WITH3(mad_hi, u32, HIGH(u32, u64) + C)
HANDLER3(mad_hi_s32, u32, s32, s32, u32, (u32)HIGH(s32, s64) + C)
WITH3(mad_hi, u64, HIGH(u64, u128) + C)
HANDLER3(mad_hi_s64, u64, s64, s64, u64, (u64)HIGH(s64, s128) + C)
BY_SIGN(mad_hi)
HANDLER3(mad_hi_sat_s32, s32, s32, s32, s32, clamp_s32((s64)HIGH(s32, s64) + C))

HANDLER2(mul_wide_u16, u32, u16, u16, (u32)A *B)
HANDLER2(mul_wide_s16, s32, s16, s16, A *B)
HANDLER2(mul_wide_u32, u64, u32, u32, (u64)A *B)
HANDLER2(mul_wide_s32, s64, s32, s32, (s64)A *B)
HANDLER3(mad_wide_u16, u32, u16, u16, u32, (u32)A *B + C)
HANDLER3(mad_wide_s16, u32, s16, s16, u32, (u32)(A * B) + C)
HANDLER3(mad_wide_u32, u64, u32, u32, u64, (u64)A *B + C)
HANDLER3(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)A * B) + C)
/* clang-format on */

static exec_fn *const mul_wide_by_type[PTX_N_TYPES] = {
	[PTX_U16] = mul_wide_u16,
	[PTX_S16] = mul_wide_s16,
	[PTX_U32] = mul_wide_u32,
	[PTX_S32] = mul_wide_s32,
};
static exec_fn *const mad_wide_by_type[PTX_N_TYPES] = {
	[PTX_U16] = mad_wide_u16,
	[PTX_S16] = mad_wide_s16,
	[PTX_U32] = mad_wide_u32,
	[PTX_S32] = mad_wide_s32,
};

/* Products of 24-bit numbers have 48 bits: the lower 32, or the upper 32. */
static inline u64 mul24_u(u32 a, u32 b)
{
	return (u64)(a & 0xffffff) * (b & 0xffffff);
}

static inline s64 mul24_s(u32 a, u32 b)
{
	return (s64)((s32)(a << 8) >> 8) * ((s32)(b << 8) >> 8);
}

HANDLER2(mul24_lo_u32, u32, u32, u32, (u32)mul24_u(A, B))
HANDLER2(mul24_lo_s32, u32, u32, u32, (u32)mul24_s(A, B))
HANDLER2(mul24_hi_u32, u32, u32, u32, (u32)(mul24_u(A, B) >> 16))
HANDLER2(mul24_hi_s32, u32, u32, u32, (u32)(mul24_s(A, B) >> 16))
HANDLER3(mad24_lo_u32, u32, u32, u32, u32, (u32)mul24_u(A, B) + C)
HANDLER3(mad24_lo_s32, u32, u32, u32, u32, (u32)mul24_s(A, B) + C)
HANDLER3(mad24_hi_u32, u32, u32, u32, u32, (u32)(mul24_u(A, B) >> 16) + C)
HANDLER3(mad24_hi_s32, u32, u32, u32, u32, (u32)(mul24_s(A, B) >> 16) + C)
HANDLER3(mad24_hi_sat_s32, s32, u32, u32, s32, clamp_s32((mul24_s(A, B) >> 16) + C))

/* |a - b| + c */
#define SAD(T, U) (U)((A > B ? (U)A - (U)B : (U)B - (U)A) + C)
HANDLER3(sad_u16, u16, u16, u16, u16, SAD(u16, u16))
HANDLER3(sad_s16, u16, s16, s16, u16, SAD(s16, u16))
HANDLER3(sad_u32, u32, u32, u32, u32, SAD(u32, u32))
HANDLER3(sad_s32, u32, s32, s32, u32, SAD(s32, u32))
HANDLER3(sad_u64, u64, u64, u64, u64, SAD(u64, u64))
HANDLER3(sad_s64, u64, s64, s64, u64, SAD(s64, u64))
BY_SIGN(sad)

/* ---- div, rem --------------------------------------------------------------------------------- */

/*
 * A 32-bit quotient is exact in double: its distance to the next integer is
 * at least 2^-32 of it, far more than a double's rounding.
 */
static inline u32 div_u32_lane(u32 a, u32 b)
{
	return b ? (u32)(s64)((f64)a / (f64)b) : UINT32_MAX;
}

static inline s32 div_s32_lane(s32 a, s32 b)
{
	return b ? (s32)(s64)((f64)a / (f64)b) : -1;
}

/* clang-format off */
#define DIV_U(T) (B ? (T)(A / B) : (T)~(T)0)
#define DIV_S(T) (!B ? (T)-1 : B == -1 ? (T)(0 - (u64)A) : (T)(A / B))
#define REM_U(T) (B ? (T)(A % B) : A)
#define REM_S(T) (!B ? A : B == -1 ? (T)0 : (T)(A % B))

WITH2(div, u16, DIV_U(u16)) WITH2(div, s16, DIV_S(s16))
WITH2(div, u32, div_u32_lane(A, B)) WITH2(div, s32, div_s32_lane(A, B))
WITH2(div, u64, DIV_U(u64)) WITH2(div, s64, DIV_S(s64)) BY_SIGN(div)
WITH2(rem, u16, REM_U(u16)) WITH2(rem, s16, REM_S(s16))
WITH2(rem, u32, REM_U(u32)) WITH2(rem, s32, REM_S(s32))
WITH2(rem, u64, REM_U(u64)) WITH2(rem, s64, REM_S(s64)) BY_SIGN(rem)
/* clang-format on */

/* ---- the carry flag --------------------------------------------------------------------------- */

/*
 * d = a + b + carry and the new carry, for add, sub (as a + ~b + 1: there the
 * flag is the borrow) and mad. The carry comes in as op[4] and goes out to
 * op[5]; either may be a predicate that nobody reads.
 */
#define CARRY_CHAIN(name, T, W, n_src, x, y, is_sub)                                               \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		T *d = operand(w, in->op[0]);                                                      \
		u32 carry = predicate(w, in->op[4]), out = 0;                                      \
                                                                                                   \
		FOR_LANES(l, mask) {                                                               \
			const T *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);            \
			const T *c = operand(w, in->op[3]);                                        \
			W in_ = carry >> l & 1;                                                    \
			W sum = (is_sub) ? (W)(x) - (W)(y)-in_ : (W)(x) + (W)(y) + in_;            \
                                                                                                   \
			(void)c;                                                                   \
			d[l] = (T)sum;                                                             \
			out |= (u32)(sum >> (8 * sizeof(T)) & 1) << l;                             \
		}                                                                                  \
		predicate_set(w, in->op[5], mask, out);                                            \
		return RUN_ON;                                                                     \
	}

/* clang-format off */
CARRY_CHAIN(addc_u32, u32, u64, 2, A, B, false)
CARRY_CHAIN(addc_u64, u64, u128, 2, A, B, false)
CARRY_CHAIN(subc_u32, u32, u64, 2, A, B, true)
CARRY_CHAIN(subc_u64, u64, u128, 2, A, B, true)
CARRY_CHAIN(madc_lo_u32, u32, u64, 3, (u32)(A * B), C, false)
CARRY_CHAIN(madc_lo_u64, u64, u128, 3, (u64)(A * B), C, false)
CARRY_CHAIN(madc_hi_u32, u32, u64, 3, HIGH(u32, u64), C, false)
CARRY_CHAIN(madc_hi_u64, u64, u128, 3, HIGH(u64, u128), C, false)
CARRY_CHAIN(madc_hi_s32, u32, u64, 3, (u32)(((s64)(s32)A * (s32)B) >> 32), C, false)
CARRY_CHAIN(madc_hi_s64, u64, u128, 3, (u64)(((s128)(s64)A * (s64)B) >> 64), C, false)
/* clang-format on */

/* ---- dot products ----------------------------------------------------------------------------- */

static inline s64 byte_of(u32 v, int i, bool is_signed)
{
	return is_signed ? (s64)(s8)(v >> (8 * i)) : (s64)(u8)(v >> (8 * i));
}

static inline u32 dp4a_lane(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	s64 sum = c;

	for (int i = 0; i < 4; i++)
		sum += byte_of(a, i, sa) * byte_of(b, i, sb);
	return (u32)sum;
}

/* Two halves of a by two bytes of b, the lower or the upper ones. */
static inline u32 dp2a_lane(u32 a, u32 b, u32 c, bool sa, bool sb, int first)
{
	s64 sum = c;

	for (int i = 0; i < 2; i++) {
		s64 half = sa ? (s64)(s16)(a >> (16 * i)) : (s64)(u16)(a >> (16 * i));

		sum += half * byte_of(b, first + i, sb);
	}
	return (u32)sum;
}

#define DOT(suffix, sa, sb)                                                                        \
	HANDLER3(dp4a_##suffix, u32, u32, u32, u32, dp4a_lane(A, B, C, sa, sb))                    \
	HANDLER3(dp2a_lo_##suffix, u32, u32, u32, u32, dp2a_lane(A, B, C, sa, sb, 0))              \
	HANDLER3(dp2a_hi_##suffix, u32, u32, u32, u32, dp2a_lane(A, B, C, sa, sb, 2))
DOT(uu, false, false)
DOT(us, false, true)
DOT(su, true, false)
DOT(ss, true, true)

static exec_fn *const dot_by_signs[3][4] = {
	{ dp4a_uu, dp4a_us, dp4a_su, dp4a_ss },
	{ dp2a_lo_uu, dp2a_lo_us, dp2a_lo_su, dp2a_lo_ss },
	{ dp2a_hi_uu, dp2a_hi_us, dp2a_hi_su, dp2a_hi_ss },
};

/* ---- setp ------------------------------------------------------------------------------------- */

#define COMPARE_SIGNS(cmp, op)                                                                     \
	COMPARE(cmp##_u16, u16, A op B)                                                            \
	COMPARE(cmp##_s16, s16, A op B)                                                            \
	COMPARE(cmp##_u32, u32, A op B)                                                            \
	COMPARE(cmp##_s32, s32, A op B)                                                            \
	COMPARE(cmp##_u64, u64, A op B)                                                            \
	COMPARE(cmp##_s64, s64, A op B)                                                            \
	BY_SIGN(cmp)
COMPARE_SIGNS(lt, <)
COMPARE_SIGNS(le, <=)
COMPARE_SIGNS(gt, >)
COMPARE_SIGNS(ge, >=)
COMPARE(eq_u16, u16, A == B)
COMPARE(eq_u32, u32, A == B)
COMPARE(eq_u64, u64, A == B)
BY_WIDTH(eq)
COMPARE(ne_u16, u16, A != B)
COMPARE(ne_u32, u32, A != B)
COMPARE(ne_u64, u64, A != B)
BY_WIDTH(ne)

/* lo, ls, hi and hs compare as unsigned whatever the type says. */
static enum ptx_type unsigned_of(enum ptx_type type)
{
	switch (ptx_type_bytes(type)) {
	case 2:
		return PTX_U16;
	case 4:
		return PTX_U32;
	default:
		return PTX_U64;
	}
}

static exec_fn *find_compare(const struct ptx_insn *in)
{
	switch (in->cmp) {
	case PTX_CMP_EQ:
		return eq_by_type[in->type];
	case PTX_CMP_NE:
		return ne_by_type[in->type];
	case PTX_CMP_LT:
		return lt_by_type[in->type];
	case PTX_CMP_LE:
		return le_by_type[in->type];
	case PTX_CMP_GT:
		return gt_by_type[in->type];
	case PTX_CMP_GE:
		return ge_by_type[in->type];
	case PTX_CMP_LO:
		return lt_by_type[unsigned_of(in->type)];
	case PTX_CMP_LS:
		return le_by_type[unsigned_of(in->type)];
	case PTX_CMP_HI:
		return gt_by_type[unsigned_of(in->type)];
	case PTX_CMP_HS:
		return ge_by_type[unsigned_of(in->type)];
	default:
		return NULL;
	}
}

/* ---- which handler ---------------------------------------------------------------------------- */

static exec_fn *find_carry(const struct ptx_insn *in)
{
	bool wide = ptx_type_bytes(in->type) == 8, is_signed = ptx_type_kind(in->type) == 's';

	switch (in->op) {
	case PTX_OP_ADD:
	case PTX_OP_ADDC:
		return wide ? addc_u64 : addc_u32;
	case PTX_OP_SUB:
	case PTX_OP_SUBC:
		return wide ? subc_u64 : subc_u32;
	default:
		if (in->mode == PTX_MODE_LO)
			return wide ? madc_lo_u64 : madc_lo_u32;
		if (is_signed)
			return wide ? madc_hi_s64 : madc_hi_s32;
		return wide ? madc_hi_u64 : madc_hi_u32;
	}
}

static exec_fn *find_multiply(const struct ptx_insn *in)
{
	bool mad = in->op == PTX_OP_MAD;

	switch (in->mode) {
	case PTX_MODE_LO:
		return mad ? mad_lo_by_type[in->type] : mul_lo_by_type[in->type];
	case PTX_MODE_WIDE:
		return mad ? mad_wide_by_type[in->type] : mul_wide_by_type[in->type];
	case PTX_MODE_HI:
		if (in->flags & PTX_F_SAT)
			return mad_hi_sat_s32;
		return mad ? mad_hi_by_type[in->type] : mul_hi_by_type[in->type];
	default:
		return NULL;
	}
}

static exec_fn *find_multiply24(const struct ptx_insn *in)
{
	bool is_signed = in->type == PTX_S32, lo = in->mode == PTX_MODE_LO;

	if (in->op == PTX_OP_MUL24) {
		if (lo)
			return is_signed ? mul24_lo_s32 : mul24_lo_u32;
		return is_signed ? mul24_hi_s32 : mul24_hi_u32;
	}
	if (in->flags & PTX_F_SAT)
		return mad24_hi_sat_s32;
	if (lo)
		return is_signed ? mad24_lo_s32 : mad24_lo_u32;
	return is_signed ? mad24_hi_s32 : mad24_hi_u32;
}

static exec_fn *find_minmax(const struct ptx_insn *in)
{
	bool min = in->op == PTX_OP_MIN;

	if (in->type == PTX_U16X2)
		return min ? min_u16x2 : max_u16x2;
	if (in->type == PTX_S16X2) {
		if (in->flags & PTX_F_RELU)
			return min ? min_relu_s16x2 : max_relu_s16x2;
		return min ? min_s16x2 : max_s16x2;
	}
	if (in->flags & PTX_F_RELU)
		return min ? min_relu_s32 : max_relu_s32;
	return min ? min_by_type[in->type] : max_by_type[in->type];
}

static exec_fn *find_sum(const struct ptx_insn *in)
{
	bool add = in->op == PTX_OP_ADD;

	if (in->type == PTX_U16X2 || in->type == PTX_S16X2)
		return add ? add_x2 : sub_x2;
	if (in->flags & PTX_F_SAT)
		return add ? add_sat_s32 : sub_sat_s32;
	return add ? add_by_type[in->type] : sub_by_type[in->type];
}

exec_fn *PER_ISA(find_int)(const struct ptx_insn *in)
{
	if (ptx_type_kind(in->type) == 'f' || in->type == PTX_PRED)
		return NULL;

	switch (in->op) {
	case PTX_OP_ADD:
	case PTX_OP_SUB:
		return in->flags & PTX_F_CC ? find_carry(in) : find_sum(in);
	case PTX_OP_ADDC:
	case PTX_OP_SUBC:
	case PTX_OP_MADC:
		return find_carry(in);
	case PTX_OP_MUL:
		return find_multiply(in);
	case PTX_OP_MAD:
		return in->flags & PTX_F_CC ? find_carry(in) : find_multiply(in);
	case PTX_OP_MUL24:
	case PTX_OP_MAD24:
		return find_multiply24(in);
	case PTX_OP_SAD:
		return sad_by_type[in->type];
	case PTX_OP_DIV:
		return div_by_type[in->type];
	case PTX_OP_REM:
		return rem_by_type[in->type];
	case PTX_OP_NEG:
		return neg_by_type[in->type];
	case PTX_OP_ABS:
		return abs_by_type[in->type];
	case PTX_OP_MIN:
	case PTX_OP_MAX:
		return find_minmax(in);
	case PTX_OP_SETP:
		return find_compare(in);
	case PTX_OP_DP4A:
	case PTX_OP_DP2A:
		return dot_by_signs[in->op == PTX_OP_DP4A     ? 0
				    : in->mode == PTX_MODE_LO ? 1
							      : 2]
				   [2 * (in->type == PTX_S32) + (in->stype == PTX_S32)];
	default:
		return NULL;
	}
}
