/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on 16-bit floats, alone and in pairs.
 *
 * Sums, products and comparisons are made in float and rounded once more:
 * a float has more than twice the bits of a half, so that gives the right
 * result. A fused multiply-add goes through double, for the same reason.
 */
#include "softgpu/exec/approx.h"
#include "softgpu/exec/handlers.h"

#include <math.h>

/* How one format converts; X names it. */
#define FROM_f16  half_to_float
#define TO_f16	  half_from_float
#define FROM_bf16 bfloat_to_float
#define TO_bf16	  bfloat_from_float

/* Each of these is a function of one, two or three floats, in one of the formats. */
#define ONE(name, expr)                                                                            \
	static inline f32 name##_value(f32 a)                                                      \
	{                                                                                          \
		return expr;                                                                       \
	}
#define TWO(name, expr)                                                                            \
	static inline f32 name##_value(f32 a, f32 b)                                               \
	{                                                                                          \
		return expr;                                                                       \
	}

static inline f32 lesser(f32 a, f32 b)
{
	if (a == b)
		return float_of_bits(float_bits(a) | float_bits(b));
	return a != a ? b : b != b || a < b ? a : b;
}

static inline f32 greater(f32 a, f32 b)
{
	if (a == b)
		return float_of_bits(float_bits(a) & float_bits(b));
	return a != a ? b : b != b || a > b ? a : b;
}

static inline f32 signs_joined(f32 r, f32 a, f32 b)
{
	return float_of_bits((float_bits(r) & 0x7fffffff) |
			     ((float_bits(a) ^ float_bits(b)) & 0x80000000));
}

TWO(add, a + b)
TWO(sub, a - b)
TWO(mul, a *b)
TWO(min, lesser(a, b))
TWO(max, greater(a, b))
TWO(min_nan, a != a || b != b ? float_of_bits(0x7fffffff) : lesser(a, b))
TWO(max_nan, a != a || b != b ? float_of_bits(0x7fffffff) : greater(a, b))
TWO(min_xor, signs_joined(lesser(fabsf(a), fabsf(b)), a, b))
TWO(max_xor, signs_joined(greater(fabsf(a), fabsf(b)), a, b))
ONE(ex2, approx_ex2(a))
ONE(tanh, tanhf(a))

/* One rounding only: the sum is exact in double, or so long that its end cannot matter. */
#define FMA_f16(a, b, c)                                                                           \
	half_from_double((f64)half_to_float(a) * half_to_float(b) + half_to_float(c), PTX_RN)
#define FMA_bf16(a, b, c)                                                                          \
	bfloat_from_double(fma_odd(bfloat_to_float(a), bfloat_to_float(b), bfloat_to_float(c)),    \
			   PTX_RN)

/*
 * A bfloat's exponents reach so far that a sum in double is rounded. Rounding
 * it to odd keeps the second rounding right: whoever is between two numbers
 * stays between them.
 */
static inline f64 fma_odd(f32 a, f32 b, f32 c)
{
	f64 p = (f64)a * b, s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
	u64 bits = double_bits(s);

	if (error == 0 || s != s || !isfinite(s) || (bits & 1))
		return s;
	return double_of_bits(bits + ((error > 0) == (s > 0) ? 1 : UINT64_MAX));
}

#define LOW(v)	   ((u16)(v))
#define HIGH(v)	   ((u16)((v) >> 16))
#define JOIN(h, l) ((u32)(u16)(l) | (u32)(u16)(h) << 16)

#define HALF1(name, X)                                                                             \
	static inline u16 name##_##X##_lane(u16 a)                                                 \
	{                                                                                          \
		return TO_##X(name##_value(FROM_##X(a)));                                          \
	}                                                                                          \
	HANDLER1(name##_##X, u16, u16, name##_##X##_lane(A))                                       \
	HANDLER1(name##_##X##x2, u32, u32,                                                         \
		 JOIN(name##_##X##_lane(HIGH(A)), name##_##X##_lane(LOW(A))))
#define HALF2(name, X)                                                                             \
	static inline u16 name##_##X##_lane(u16 a, u16 b)                                          \
	{                                                                                          \
		return TO_##X(name##_value(FROM_##X(a), FROM_##X(b)));                             \
	}                                                                                          \
	HANDLER2(name##_##X, u16, u16, u16, name##_##X##_lane(A, B))                               \
	HANDLER2(name##_##X##x2, u32, u32, u32,                                                    \
		 JOIN(name##_##X##_lane(HIGH(A), HIGH(B)), name##_##X##_lane(LOW(A), LOW(B))))
#define HALF3(name, X)                                                                             \
	HANDLER3(fma_##X, u16, u16, u16, u16, FMA_##X(A, B, C))                                    \
	HANDLER3(fma_##X##x2, u32, u32, u32, u32,                                                  \
		 JOIN(FMA_##X(HIGH(A), HIGH(B), HIGH(C)), FMA_##X(LOW(A), LOW(B), LOW(C))))

#define FORMAT(X)                                                                                  \
	HALF2(add, X)                                                                              \
	HALF2(sub, X)                                                                              \
	HALF2(mul, X)                                                                              \
	HALF2(min, X)                                                                              \
	HALF2(max, X)                                                                              \
	HALF2(min_nan, X)                                                                          \
	HALF2(max_nan, X)                                                                          \
	HALF2(min_xor, X)                                                                          \
	HALF2(max_xor, X)                                                                          \
	HALF1(ex2, X)                                                                              \
	HALF1(tanh, X)                                                                             \
	HALF3(fma, X)
FORMAT(f16)
FORMAT(bf16)

/* The sign is in the same bit in both formats. */
HANDLER1(neg_half, u16, u16, A ^ 0x8000)
HANDLER1(abs_half, u16, u16, A & 0x7fff)
HANDLER1(neg_halves, u32, u32, A ^ 0x80008000)
HANDLER1(abs_halves, u32, u32, A & 0x7fff7fff)

/* ---- comparisons -------------------------------------------------------------------------------- */

static inline bool compare_floats(f32 a, f32 b, u8 cmp)
{
	bool unordered = a != a || b != b;

	switch (cmp) {
	case PTX_CMP_EQ:
		return a == b;
	case PTX_CMP_NE:
		return a != b && !unordered;
	case PTX_CMP_LT:
		return a < b;
	case PTX_CMP_LE:
		return a <= b;
	case PTX_CMP_GT:
		return a > b;
	case PTX_CMP_GE:
		return a >= b;
	case PTX_CMP_EQU:
		return a == b || unordered;
	case PTX_CMP_NEU:
		return a != b;
	case PTX_CMP_LTU:
		return !(a >= b);
	case PTX_CMP_LEU:
		return !(a > b);
	case PTX_CMP_GTU:
		return !(a <= b);
	case PTX_CMP_GEU:
		return !(a < b);
	case PTX_CMP_NUM:
		return !unordered;
	default:
		return unordered;
	}
}

/* in->mode is the comparison. */
#define HALF_COMPARE(X)                                                                            \
	COMPARE(compare_##X, u16, compare_floats(FROM_##X(A), FROM_##X(B), in->mode))
HALF_COMPARE(f16)
HALF_COMPARE(bf16)

/* Of pairs, p is for the lower halves and q for the upper ones, both joined with c. */
#define HALVES_COMPARE(X)                                                                          \
	static int compare_##X##x2(struct warp *w, const struct insn *in, u32 mask)                \
	{                                                                                          \
		const u32 *a = operand(w, in->op[2]), *b = operand(w, in->op[3]);                  \
		u32 p = 0, q = 0;                                                                  \
                                                                                                   \
		FOR_LANES(l, mask) {                                                               \
			p |= (u32)compare_floats(FROM_##X(LOW(A)), FROM_##X(LOW(B)), in->mode)     \
			     << l;                                                                 \
			q |= (u32)compare_floats(FROM_##X(HIGH(A)), FROM_##X(HIGH(B)), in->mode)   \
			     << l;                                                                 \
		}                                                                                  \
		return set_pair(w, in, mask, p, q);                                                \
	}
static int set_pair(struct warp *w, const struct insn *in, u32 mask, u32 p, u32 q)
{
	u32 c = predicate(w, in->op[4]) ^ (in->flags & INSN_NEG_PRED ? ALL_LANES : 0);

	switch (in->bop) {
	case PTX_BOP_AND:
		p &= c;
		q &= c;
		break;
	case PTX_BOP_OR:
		p |= c;
		q |= c;
		break;
	case PTX_BOP_XOR:
		p ^= c;
		q ^= c;
		break;
	default:
		break;
	}
	predicate_set(w, in->op[1], mask, q);
	predicate_set(w, in->op[0], mask, p);
	return RUN_ON;
}
HALVES_COMPARE(f16)
HALVES_COMPARE(bf16)

/* ---- .sat and .relu ----------------------------------------------------------------------------- */

static inline u16 saturate_half(u16 h)
{
	/* Negative or NaN is 0; above one is one. */
	if (h & 0x8000 || h > 0x7c00)
		return 0;
	return h > 0x3c00 ? 0x3c00 : h;
}

static inline u16 relu_half(u16 h, u16 infinity)
{
	/* NaN stays NaN. */
	return (h & 0x7fff) > infinity ? 0x7fff : h & 0x8000 ? 0 : h;
}

HANDLER1(saturate_f16, u16, u16, saturate_half(A))
HANDLER1(saturate_f16x2, u32, u32, JOIN(saturate_half(HIGH(A)), saturate_half(LOW(A))))
HANDLER1(relu_f16, u16, u16, relu_half(A, 0x7c00))
HANDLER1(relu_bf16, u16, u16, relu_half(A, 0x7f80))
HANDLER1(relu_f16x2, u32, u32, JOIN(relu_half(HIGH(A), 0x7c00), relu_half(LOW(A), 0x7c00)))
HANDLER1(relu_bf16x2, u32, u32, JOIN(relu_half(HIGH(A), 0x7f80), relu_half(LOW(A), 0x7f80)))

/* Of two floats of 8 bits, of which no NaN has a sign. */
HANDLER1(relu_octets, u16, u16, (u16)(A & ~((A >> 7 & 0x0101) * 0xff)))

exec_fn *PER_ISA(find_half_clamp)(const struct ptx_insn *in)
{
	bool relu = in->flags & PTX_F_RELU;

	if (!relu && !(in->flags & PTX_F_SAT))
		return NULL;
	switch (in->type) {
	case PTX_F16:
		return relu ? relu_f16 : saturate_f16;
	case PTX_F16X2:
		return relu ? relu_f16x2 : saturate_f16x2;
	case PTX_BF16:
		return relu ? relu_bf16 : NULL;
	case PTX_BF16X2:
		return relu ? relu_bf16x2 : NULL;
	case PTX_E4M3X2:
	case PTX_E5M2X2:
		return relu ? relu_octets : NULL;
	default:
		return NULL;
	}
}

/* ---- which handler ------------------------------------------------------------------------------ */

/* clang-format off */
#define FOUR(name) { name##_f16, name##_f16x2, name##_bf16, name##_bf16x2 }
static exec_fn *const minmax[6][4] = {
	FOUR(min), FOUR(max), FOUR(min_nan), FOUR(max_nan), FOUR(min_xor), FOUR(max_xor),
};
static exec_fn *const arithmetic[][4] = {
	FOUR(add), FOUR(sub), FOUR(mul), FOUR(fma), FOUR(ex2), FOUR(tanh), FOUR(compare),
	{ neg_half, neg_halves, neg_half, neg_halves },
	{ abs_half, abs_halves, abs_half, abs_halves },
};
/* clang-format on */

static int row_of(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_ADD:
		return 0;
	case PTX_OP_SUB:
		return 1;
	case PTX_OP_MUL:
		return 2;
	case PTX_OP_FMA:
		return 3;
	case PTX_OP_EX2:
		return 4;
	case PTX_OP_TANH:
		return 5;
	case PTX_OP_SETP:
		return 6;
	case PTX_OP_NEG:
		return 7;
	case PTX_OP_ABS:
		return 8;
	default:
		return -1;
	}
}

exec_fn *PER_ISA(find_half)(const struct ptx_insn *in)
{
	int column = in->type == PTX_F16      ? 0
		     : in->type == PTX_F16X2  ? 1
		     : in->type == PTX_BF16   ? 2
		     : in->type == PTX_BF16X2 ? 3
					      : -1;
	int row = row_of(in);

	if (column < 0 || in->flags & PTX_F_OOB)
		return NULL;
	if (in->op == PTX_OP_MIN || in->op == PTX_OP_MAX)
		return minmax[(in->op == PTX_OP_MAX) + (in->flags & PTX_F_XORSIGN ? 4
							: in->flags & PTX_F_NAN	  ? 2
										  : 0)][column];
	return row < 0 ? NULL : arithmetic[row][column];
}
