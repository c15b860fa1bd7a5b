/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on f32 and f64.
 *
 * The host's arithmetic is IEEE's, as the device's. Roundings other than to
 * nearest and .ftz are bits of MXCSR, set around a handler by with_control().
 * A result that is NaN is 0x7fffffff in f32. In f64 it is the first operand that is one, made quiet:
 * of two, the host's instruction takes the first, too, but the compiler may have changed their order.
 */
#include <math.h>
#include <xmmintrin.h>

#include "softgpu/exec/approx.h"
#include "softgpu/exec/half.h"
#include "softgpu/exec/handlers.h"

#define NAN_F32 0x7fffffffu

static inline f32 canonical(f32 v)
{
	return v == v ? v : float_of_bits(NAN_F32);
}

static inline f64 first_nan(f64 a, f64 v)
{
	return a == a ? v : double_of_bits(double_bits(a) | UINT64_C(1) << 51);
}

/* ---- add, sub, mul, fma, div, sqrt ------------------------------------------------------------- */

HANDLER2(add_f32, f32, f32, f32, canonical(A + B))
HANDLER2(sub_f32, f32, f32, f32, canonical(A - B))
HANDLER2(mul_f32, f32, f32, f32, canonical(A *B))
HANDLER2(div_f32, f32, f32, f32, canonical(A / B))
HANDLER3(fma_f32, f32, f32, f32, f32, canonical(__builtin_fmaf(A, B, C)))
HANDLER1(rcp_f32, f32, f32, canonical(1.0f / A))
HANDLER1(sqrt_f32, f32, f32, canonical(__builtin_sqrtf(A)))
HANDLER2(add_f64, f64, f64, f64, first_nan(A, A + B))
HANDLER2(sub_f64, f64, f64, f64, first_nan(A, A - B))
HANDLER2(mul_f64, f64, f64, f64, first_nan(A, A *B))
HANDLER2(div_f64, f64, f64, f64, first_nan(A, A / B))
HANDLER3(fma_f64, f64, f64, f64, f64, first_nan(A, first_nan(B, __builtin_fma(A, B, C))))
HANDLER1(rcp_f64, f64, f64, 1.0 / A)
HANDLER1(sqrt_f64, f64, f64, __builtin_sqrt(A))

/* Two floats in 64 bits, as twice as many lanes. */
#define PAIRS(name, n_src, expr)                                                                   \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		f32 *d = operand(w, in->op[0]);                                                    \
		const f32 *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);                  \
		const f32 *c = operand(w, in->op[3]);                                              \
                                                                                                   \
		(void)c;                                                                           \
		FOR_LANES(lane, mask) {                                                            \
			for (u32 l = 2 * lane; l < 2 * lane + 2; l++)                              \
				d[l] = canonical(expr);                                            \
		}                                                                                  \
		return RUN_ON;                                                                     \
	}
PAIRS(add_f32x2, 2, A + B)
PAIRS(sub_f32x2, 2, A - B)
PAIRS(mul_f32x2, 2, A *B)
PAIRS(fma_f32x2, 3, __builtin_fmaf(A, B, C))

/* ---- min, max, neg, abs, copysign: on bits where they can be ------------------------------------ */

HANDLER1(neg_f32, u32, u32, A ^ 0x80000000u)
HANDLER1(abs_f32, u32, u32, A & 0x7fffffffu)
HANDLER1(neg_f64, u64, u64, A ^ UINT64_C(1) << 63)
HANDLER1(abs_f64, u64, u64, A &INT64_MAX)
/* copysign d, a, b: the sign of a on the magnitude of b */
HANDLER2(copysign_f32, u32, u32, u32, (A & 0x80000000u) | (B & 0x7fffffffu))
HANDLER2(copysign_f64, u64, u64, u64, (A & UINT64_C(1) << 63) | (B & INT64_MAX))

/* A number wins over NaN, -0 is below +0. */
static inline f32 min_f32_lane(f32 a, f32 b)
{
	f32 r = a < b ? a : b;

	if (a == b)
		r = float_of_bits(float_bits(a) | float_bits(b));
	return a != a ? canonical(b) : b != b ? a : r;
}

static inline f32 max_f32_lane(f32 a, f32 b)
{
	f32 r = a > b ? a : b;

	if (a == b)
		r = float_of_bits(float_bits(a) & float_bits(b));
	return a != a ? canonical(b) : b != b ? a : r;
}

static inline f64 min_f64_lane(f64 a, f64 b)
{
	f64 r = a < b ? a : b;

	if (a == b)
		r = double_of_bits(double_bits(a) | double_bits(b));
	return a != a ? b : b != b ? a : r;
}

static inline f64 max_f64_lane(f64 a, f64 b)
{
	f64 r = a > b ? a : b;

	if (a == b)
		r = double_of_bits(double_bits(a) & double_bits(b));
	return a != a ? b : b != b ? a : r;
}

static inline f32 or_nan(f32 r, f32 a, f32 b)
{
	return a != a || b != b ? float_of_bits(NAN_F32) : r;
}

/* .xorsign.abs: of the magnitudes, with the product's sign */
static inline f32 xor_sign(f32 r, f32 a, f32 b)
{
	u32 sign = (float_bits(a) ^ float_bits(b)) & 0x80000000u;

	return r != r ? r : float_of_bits(sign | float_bits(r));
}

static inline f32 magnitude(f32 v)
{
	return float_of_bits(float_bits(v) & 0x7fffffffu);
}

#define MINMAX_XOR(which) xor_sign(which##_f32_lane(magnitude(A), magnitude(B)), A, B)
HANDLER2(min_f32, f32, f32, f32, min_f32_lane(A, B))
HANDLER2(max_f32, f32, f32, f32, max_f32_lane(A, B))
HANDLER2(min_nan_f32, f32, f32, f32, or_nan(min_f32_lane(A, B), A, B))
HANDLER2(max_nan_f32, f32, f32, f32, or_nan(max_f32_lane(A, B), A, B))
HANDLER2(min_xor_f32, f32, f32, f32, MINMAX_XOR(min))
HANDLER2(max_xor_f32, f32, f32, f32, MINMAX_XOR(max))
HANDLER2(min_nan_xor_f32, f32, f32, f32, or_nan(MINMAX_XOR(min), A, B))
HANDLER2(max_nan_xor_f32, f32, f32, f32, or_nan(MINMAX_XOR(max), A, B))
HANDLER2(min_f64, f64, f64, f64, min_f64_lane(A, B))
HANDLER2(max_f64, f64, f64, f64, max_f64_lane(A, B))

static exec_fn *const minmax_f32[8] = {
	min_f32,     max_f32,	  min_nan_f32,	   max_nan_f32,
	min_xor_f32, max_xor_f32, min_nan_xor_f32, max_nan_xor_f32,
};

/* ---- approximations ----------------------------------------------------------------------------- */

HANDLER1(rcp_approx, f32, f32, canonical(1.0f / A))
HANDLER1(rsqrt_approx, f32, f32, canonical((f32)(1.0 / __builtin_sqrt((f64)A))))
HANDLER1(sin_approx, f32, f32, canonical(sinf(A)))
HANDLER1(cos_approx, f32, f32, canonical(cosf(A)))
HANDLER1(lg2_approx, f32, f32, canonical(approx_lg2(A)))
HANDLER1(ex2_approx, f32, f32, canonical(approx_ex2(A)))
HANDLER1(tanh_approx, f32, f32, canonical(tanhf(A)))
HANDLER1(rsqrt_f64, f64, f64, 1.0 / __builtin_sqrt(A))
/* Only the upper word counts, of what is read and of what is written. */
HANDLER1(rcp_approx_f64, f64, f64, approx_upper(1.0 / approx_upper(A)))
HANDLER1(rsqrt_approx_f64, f64, f64, approx_upper(1.0 / __builtin_sqrt(approx_upper(A))))

/* div.approx is a product with the reciprocal: above 2^126 the reciprocal is 0. */
static inline f32 div_approx_lane(f32 a, f32 b)
{
	f32 size = magnitude(b);

	if (size > 0x1p126f && size < HUGE_VALF)
		return magnitude(a) == HUGE_VALF
			       ? float_of_bits(NAN_F32)
			       : float_of_bits((float_bits(a) ^ float_bits(b)) & 0x80000000u);
	return canonical(a / b);
}

HANDLER2(div_approx, f32, f32, f32, div_approx_lane(A, B))

/* ---- setp, testp -------------------------------------------------------------------------------- */

#define UNORDERED (A != A || B != B)
#define COMPARES(T)                                                                                \
	COMPARE(eq_##T, T, A == B)                                                                 \
	COMPARE(ne_##T, T, A != B && !UNORDERED)                                                   \
	COMPARE(lt_##T, T, A < B)                                                                  \
	COMPARE(le_##T, T, A <= B)                                                                 \
	COMPARE(gt_##T, T, A > B)                                                                  \
	COMPARE(ge_##T, T, A >= B)                                                                 \
	COMPARE(equ_##T, T, A == B || UNORDERED)                                                   \
	COMPARE(neu_##T, T, A != B)                                                                \
	COMPARE(ltu_##T, T, !(A >= B))                                                             \
	COMPARE(leu_##T, T, !(A > B))                                                              \
	COMPARE(gtu_##T, T, !(A <= B))                                                             \
	COMPARE(geu_##T, T, !(A < B))                                                              \
	COMPARE(num_##T, T, !UNORDERED)                                                            \
	COMPARE(nan_##T, T, UNORDERED)                                                             \
	static exec_fn *const compare_##T[] = {                                                    \
		[PTX_CMP_EQ] = eq_##T,	 [PTX_CMP_NE] = ne_##T,	  [PTX_CMP_LT] = lt_##T,           \
		[PTX_CMP_LE] = le_##T,	 [PTX_CMP_GT] = gt_##T,	  [PTX_CMP_GE] = ge_##T,           \
		[PTX_CMP_EQU] = equ_##T, [PTX_CMP_NEU] = neu_##T, [PTX_CMP_LTU] = ltu_##T,         \
		[PTX_CMP_LEU] = leu_##T, [PTX_CMP_GTU] = gtu_##T, [PTX_CMP_GEU] = geu_##T,         \
		[PTX_CMP_NUM] = num_##T, [PTX_CMP_NAN] = nan_##T,                                  \
	};
COMPARES(f32)
COMPARES(f64)

/* testp: by class, of the magnitude's bits */
#define TESTS(T, U, highest, lowest)                                                               \
	static int testp_##T(struct warp *w, const struct insn *in, u32 mask)                      \
	{                                                                                          \
		const U *a = operand(w, in->op[1]);                                                \
		u32 bits = 0;                                                                      \
                                                                                                   \
		FOR_LANES(l, mask)                                                                 \
			bits |= (u32)has_class(A << 1 >> 1, highest, lowest, in->mode) << l;       \
		predicate_set(w, in->op[0], mask, bits);                                           \
		return RUN_ON;                                                                     \
	}

static inline bool has_class(u64 magnitude, u64 infinity, u64 least_normal, u8 class)
{
	switch (class) {
	case PTX_MODE_FINITE:
		return magnitude < infinity;
	case PTX_MODE_INFINITE:
		return magnitude == infinity;
	case PTX_MODE_NUMBER:
		return magnitude <= infinity;
	case PTX_MODE_NOTANUMBER:
		return magnitude > infinity;
	case PTX_MODE_NORMAL:
		return magnitude >= least_normal && magnitude < infinity;
	default:
		return magnitude && magnitude < least_normal;
	}
}
TESTS(f32, u32, 0x7f800000, 0x00800000)
TESTS(f64, u64, UINT64_C(0x7ff) << 52, UINT64_C(1) << 52)

/* ---- around them -------------------------------------------------------------------------------- */

/* Runs a handler with rounding and flushing of its own. */
int PER_ISA(with_control)(struct warp *w, const struct insn *in, u32 mask)
{
	u32 before = _mm_getcsr();
	int r;

	_mm_setcsr(0x1f80 | (u32)in->imm);
	r = in->inner(w, in, mask);
	_mm_setcsr(before);
	return r;
}

/* .sat: into [0, 1], NaN is 0 */
HANDLER1(saturate_f32, f32, f32, A >= 1 ? 1 : A > 0 ? A : 0)
HANDLER1(saturate_f64, f64, f64, A >= 1 ? 1 : A > 0 ? A : 0)

exec_fn *PER_ISA(find_float_clamp)(const struct ptx_insn *in)
{
	if (!(in->flags & PTX_F_SAT))
		return NULL;
	return in->type == PTX_F32 ? saturate_f32 : in->type == PTX_F64 ? saturate_f64 : NULL;
}

/* Denormals to zeros of the same sign, before what does not compute. */
HANDLER1(flush_f32, u32, u32,
	 (A & 0x7fffffffu) > 0x7f800000u ? NAN_F32
	 : A & 0x7f800000u		 ? A
					 : A & 0x80000000u)

/* A half without exponent bits is a denormal. */
/* clang-format off */
#define FLUSH_HALF(v) ((v) & 0x7c00 ? (v) : (v) & 0x8000)
/* clang-format on */
HANDLER1(flush_f16, u16, u16, FLUSH_HALF(A))
HANDLER1(flush_f16x2, u32, u32, FLUSH_HALF(A & 0xffff) | FLUSH_HALF(A >> 16) << 16)

exec_fn *PER_ISA(find_flush)(enum ptx_type type)
{
	switch (type) {
	case PTX_F32:
		return flush_f32;
	case PTX_F16:
		return flush_f16;
	case PTX_F16X2:
		return flush_f16x2;
	default:
		return NULL;
	}
}

/* ---- which handler ------------------------------------------------------------------------------ */

static exec_fn *find_f32x2(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_ADD:
		return add_f32x2;
	case PTX_OP_SUB:
		return sub_f32x2;
	case PTX_OP_MUL:
		return mul_f32x2;
	case PTX_OP_FMA:
		return fma_f32x2;
	default:
		return NULL;
	}
}

static exec_fn *find_f32_function(const struct ptx_insn *in)
{
	/* Without a rounding the old forms of PTX 1.x are approximate, too. */
	bool exact = in->round != PTX_ROUND_NONE;

	switch (in->op) {
	case PTX_OP_DIV:
		return in->flags & PTX_F_APPROX ? div_approx : div_f32;
	case PTX_OP_RCP:
		return exact ? rcp_f32 : rcp_approx;
	case PTX_OP_SQRT:
		return sqrt_f32;
	case PTX_OP_RSQRT:
		return rsqrt_approx;
	case PTX_OP_SIN:
		return sin_approx;
	case PTX_OP_COS:
		return cos_approx;
	case PTX_OP_LG2:
		return lg2_approx;
	case PTX_OP_EX2:
		return ex2_approx;
	case PTX_OP_TANH:
		return tanh_approx;
	default:
		return NULL;
	}
}

static exec_fn *find_f32(const struct ptx_insn *in)
{
	bool max = in->op == PTX_OP_MAX;

	switch (in->op) {
	case PTX_OP_ADD:
		return add_f32;
	case PTX_OP_SUB:
		return sub_f32;
	case PTX_OP_MUL:
		return mul_f32;
	case PTX_OP_FMA:
	case PTX_OP_MAD:
		return fma_f32;
	case PTX_OP_NEG:
		return neg_f32;
	case PTX_OP_ABS:
		return abs_f32;
	case PTX_OP_MIN:
	case PTX_OP_MAX:
		return minmax_f32[max + 2 * !!(in->flags & PTX_F_NAN) +
				  4 * !!(in->flags & PTX_F_XORSIGN)];
	case PTX_OP_COPYSIGN:
		return copysign_f32;
	case PTX_OP_SETP:
		return compare_f32[in->cmp];
	case PTX_OP_TESTP:
		return testp_f32;
	default:
		return find_f32_function(in);
	}
}

static exec_fn *find_f64(const struct ptx_insn *in)
{
	bool approx = in->flags & PTX_F_APPROX;

	switch (in->op) {
	case PTX_OP_ADD:
		return add_f64;
	case PTX_OP_SUB:
		return sub_f64;
	case PTX_OP_MUL:
		return mul_f64;
	case PTX_OP_FMA:
	case PTX_OP_MAD:
		return fma_f64;
	case PTX_OP_DIV:
		return div_f64;
	case PTX_OP_RCP:
		return approx ? rcp_approx_f64 : rcp_f64;
	case PTX_OP_SQRT:
		return sqrt_f64;
	case PTX_OP_RSQRT:
		return in->flags & PTX_F_FTZ ? rsqrt_approx_f64 : rsqrt_f64;
	case PTX_OP_NEG:
		return neg_f64;
	case PTX_OP_ABS:
		return abs_f64;
	case PTX_OP_MIN:
		return min_f64;
	case PTX_OP_MAX:
		return max_f64;
	case PTX_OP_COPYSIGN:
		return copysign_f64;
	case PTX_OP_SETP:
		return compare_f64[in->cmp];
	case PTX_OP_TESTP:
		return testp_f64;
	default:
		return NULL;
	}
}

exec_fn *PER_ISA(find_float)(const struct ptx_insn *in)
{
	switch (in->type) {
	case PTX_F32:
		return find_f32(in);
	case PTX_F64:
		return find_f64(in);
	case PTX_F32X2:
		return find_f32x2(in);
	default:
		return NULL;
	}
}
