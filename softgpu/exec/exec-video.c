/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers of 32 bits: two halves or four bytes of a word, each on its own, or the word or one of its
 * parts, with a second operation behind the first.
 *
 * One handler for each of these kinds and one for multiplication, as they are rare. in->imm has the
 * parts that the text names (PTX_VIDEO()), and above them what its types and words say.
 */
#include "softgpu/exec/block.h"

enum video_op {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_AVERAGE,
	VIDEO_DIFFERENCE,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_SET,
};

#define VIDEO_A_SIGNED (UINT64_C(1) << 32)
#define VIDEO_B_SIGNED (UINT64_C(1) << 33)
#define VIDEO_D_SIGNED (UINT64_C(1) << 34)
#define VIDEO_SAT      (UINT64_C(1) << 35)
#define VIDEO_SUM      (UINT64_C(1) << 36)
#define VIDEO_WRAP     (UINT64_C(1) << 37)

/* ---- of any size --------------------------------------------------------------------------------- */

static s64 part_of(u64 v, u32 at, u32 bits, bool is_signed)
{
	u64 part = v >> at & ((UINT64_C(1) << bits) - 1);

	return is_signed && part >> (bits - 1) ? (s64)part - (INT64_C(1) << bits) : (s64)part;
}

static bool compare(u8 cmp, s64 a, s64 b)
{
	switch (cmp) {
	case PTX_CMP_EQ:
		return a == b;
	case PTX_CMP_NE:
		return a != b;
	case PTX_CMP_LT:
		return a < b;
	case PTX_CMP_LE:
		return a <= b;
	case PTX_CMP_GT:
		return a > b;
	default:
		return a >= b;
	}
}

/* A shift by more than 32 is one by 32, or its lowest five bits count. */
static s64 shift_amount(const struct insn *in, s64 b)
{
	return in->imm & VIDEO_WRAP ? b & 31 : b > 32 ? 32 : b;
}

/* in->mode tells what, in->vec how vset compares. */
static s128 combine(const struct insn *in, s64 a, s64 b)
{
	switch ((enum video_op)in->mode) {
	case VIDEO_ADD:
		return a + b;
	case VIDEO_SUB:
		return a - b;
	case VIDEO_AVERAGE:
		/* Halves are rounded away from zero. */
		return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_DIFFERENCE:
		return a > b ? a - b : b - a;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	case VIDEO_SHL:
		return a * ((s128)1 << shift_amount(in, b));
	case VIDEO_SHR:
		return a >> shift_amount(in, b);
	default:
		return compare(in->vec, a, b);
	}
}

static s128 saturate(s128 v, u32 bits, bool is_signed)
{
	s64 low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
	s64 high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;

	return v < low ? low : v > high ? high : v;
}

/* ---- two or four parts --------------------------------------------------------------------------- */

/* The parts of a and b lie side by side; those that are not written are c's. */
static u32 packed_lane(const struct insn *in, u32 a, u32 b, u32 c)
{
	u32 bits = in->bytes * 8, packed = c, sum = c;
	u64 pair = (u64)b << 32 | a;

	for (u32 i = 0; i < 32 / bits; i++) {
		u32 from_a = (PTX_VIDEO_A(in->imm) >> 3 * i & 7) * bits;
		u32 from_b = (PTX_VIDEO_B(in->imm) >> 3 * i & 7) * bits;
		u32 part = ((1u << bits) - 1) << i * bits;
		s128 v = combine(in, part_of(pair, from_a, bits, in->imm & VIDEO_A_SIGNED),
				 part_of(pair, from_b, bits, in->imm & VIDEO_B_SIGNED));

		if (!(PTX_VIDEO_D(in->imm) >> i & 1))
			continue;
		if (in->imm & VIDEO_SAT)
			v = saturate(v, bits, in->imm & VIDEO_D_SIGNED);
		sum += (u32)v;
		packed = (packed & ~part) | ((u32)v << i * bits & part);
	}
	return in->imm & VIDEO_SUM ? sum : packed;
}

/* ---- a word, or a part of it --------------------------------------------------------------------- */

static u32 bits_of_part(u32 part)
{
	return part == PTX_PART_WORD ? 32 : part < PTX_PART_H0 ? 8 : 16;
}

/* Where a part begins. */
static u32 place_of_part(u32 part)
{
	return part == PTX_PART_WORD ? 0
	       : part < PTX_PART_H0  ? 8 * (part - PTX_PART_B0)
				     : 16 * (part - PTX_PART_H0);
}

static s64 named_part(u32 v, u32 part, bool is_signed)
{
	return part_of(v, place_of_part(part), bits_of_part(part), is_signed);
}

/* The manual's second operation: on what is left of the first in 33 bits. */
static s64 join(u8 bop, s64 v, s64 c)
{
	switch (bop) {
	case PTX_BOP_ADD:
		return v + c;
	case PTX_BOP_MIN:
		return v < c ? v : c;
	case PTX_BOP_MAX:
		return v > c ? v : c;
	default:
		return v;
	}
}

static u32 merge(u32 v, u32 part, u32 c)
{
	u32 at = place_of_part(part), bits = bits_of_part(part);
	u32 written = bits == 32 ? UINT32_MAX : ((1u << bits) - 1) << at;

	return (v << at & written) | (c & ~written);
}

static u32 scalar_lane(const struct insn *in, u32 a, u32 b, u32 c)
{
	bool is_signed = in->imm & VIDEO_D_SIGNED;
	u32 part = PTX_VIDEO_D(in->imm);
	s128 v = combine(in, named_part(a, PTX_VIDEO_A(in->imm), in->imm & VIDEO_A_SIGNED),
			 named_part(b, PTX_VIDEO_B(in->imm), in->imm & VIDEO_B_SIGNED));

	if (in->imm & VIDEO_SAT)
		v = saturate(v, bits_of_part(part), is_signed);
	v = join(in->bop, part_of((u64)v, 0, 33, /* is_signed= */ true),
		 named_part(c, PTX_PART_WORD, is_signed));
	return merge((u32)v, part, c);
}

/* The result is signed if anything that goes into it is. */
static u32 multiply_lane(const struct insn *in, u32 a, u32 b, u32 c)
{
	bool minus = in->imm & PTX_VIDEO_NEG_PRODUCT, minus_c = in->imm & PTX_VIDEO_NEG_C;
	bool is_signed = minus || minus_c || in->imm & (VIDEO_A_SIGNED | VIDEO_B_SIGNED);
	s128 product = (s128)named_part(a, PTX_VIDEO_A(in->imm), in->imm & VIDEO_A_SIGNED) *
		       named_part(b, PTX_VIDEO_B(in->imm), in->imm & VIDEO_B_SIGNED);
	s128 addend = named_part(c, PTX_PART_WORD, is_signed), v;

	v = (minus ? -product : product) + (minus_c ? -addend : addend) +
	    (in->imm & PTX_VIDEO_PLUS_ONE ? 1 : 0);
	v >>= in->vec;
	return (u32)(in->imm & VIDEO_SAT ? saturate(v, 32, is_signed) : v);
}

/* ---- handlers ------------------------------------------------------------------------------------ */

#define VIDEO_HANDLER(name)                                                                        \
	static int video_##name(struct warp *w, const struct insn *in, u32 mask)                   \
	{                                                                                          \
		const u32 *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);                  \
		const u32 *c = operand(w, in->op[3]);                                              \
		u32 *d = operand(w, in->op[0]);                                                    \
                                                                                                   \
		FOR_LANES(l, mask)                                                                 \
			d[l] = name##_lane(in, a[l], b[l], c[l]);                                  \
		return RUN_ON;                                                                     \
	}
VIDEO_HANDLER(packed)
VIDEO_HANDLER(scalar)
VIDEO_HANDLER(multiply)

static bool is_packed(const struct ptx_insn *in)
{
	return in->op <= PTX_OP_VMAX4 || in->op == PTX_OP_VSET2 || in->op == PTX_OP_VSET4;
}

exec_fn *find_video(const struct ptx_insn *in)
{
	if (is_packed(in))
		return video_packed;
	return in->op == PTX_OP_VMAD ? video_multiply : video_scalar;
}

static enum video_op op_of(const struct ptx_insn *in)
{
	static const u8 scalars[] = { VIDEO_ADD, VIDEO_SUB, VIDEO_DIFFERENCE, VIDEO_MIN,
				      VIDEO_MAX, VIDEO_SHL, VIDEO_SHR };

	if (in->op >= PTX_OP_VADD4 && in->op <= PTX_OP_VMAX4)
		return (enum video_op)(in->op - PTX_OP_VADD4);
	if (in->op <= PTX_OP_VMAX2)
		return (enum video_op)(in->op - PTX_OP_VADD2);
	return in->op <= PTX_OP_VSHR ? (enum video_op)scalars[in->op - PTX_OP_VADD] : VIDEO_SET;
}

void video_describe(const struct ptx_insn *in, struct insn *ret)
{
	bool bytes = (in->op >= PTX_OP_VADD4 && in->op <= PTX_OP_VMAX4) || in->op == PTX_OP_VSET4;

	ret->bytes = bytes ? 1 : 2;
	ret->mode = (u8)op_of(in);
	ret->bop = in->bop;
	ret->vec = in->cmp;
	if (in->op == PTX_OP_VMAD)
		ret->vec = in->mode == PTX_MODE_SHR7 ? 7 : in->mode == PTX_MODE_SHR15 ? 15 : 0;
	ret->imm = in->aux | (in->stype == PTX_S32 ? VIDEO_A_SIGNED : 0) |
		   (in->utype == PTX_S32 ? VIDEO_B_SIGNED : 0) |
		   (in->type == PTX_S32 ? VIDEO_D_SIGNED : 0) |
		   (in->flags & PTX_F_SAT ? VIDEO_SAT : 0) |
		   (in->flags & PTX_F_ACCUM ? VIDEO_SUM : 0) |
		   (in->flags & PTX_F_WRAP ? VIDEO_WRAP : 0);
}
