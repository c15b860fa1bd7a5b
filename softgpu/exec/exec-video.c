/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed integers: two halves or four bytes of a word, each on its own.
 *
 * One handler for all, as they are rare: in->mode is the opcode's place among
 * them, in->imm the parsed instruction's types and flags.
 */
#include "softgpu/exec/block.h"

enum video_op { VIDEO_ADD, VIDEO_SUB, VIDEO_AVERAGE, VIDEO_DIFFERENCE, VIDEO_MIN, VIDEO_MAX };

#define VIDEO_A_SIGNED 1
#define VIDEO_B_SIGNED 2
#define VIDEO_D_SIGNED 4
#define VIDEO_SAT      8
#define VIDEO_SUM      16

static s32 part_of(u32 v, u32 at, u32 bits, bool is_signed)
{
	u32 part = v >> at & ((1u << bits) - 1);

	return is_signed && part >> (bits - 1) ? (s32)part - (1 << bits) : (s32)part;
}

static s32 combine(enum video_op op, s32 a, s32 b)
{
	switch (op) {
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
	default:
		return a > b ? a : b;
	}
}

static s32 saturate(s32 v, u32 bits, bool is_signed)
{
	s32 low = is_signed ? -(1 << (bits - 1)) : 0;
	s32 high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;

	return v < low ? low : v > high ? high : v;
}

static u32 video_lane(const struct insn *in, u32 a, u32 b, u32 c)
{
	u32 bits = in->bytes * 8, packed = 0, sum = c;

	for (u32 at = 0; at < 32; at += bits) {
		s32 v = combine((enum video_op)in->mode,
				part_of(a, at, bits, in->imm & VIDEO_A_SIGNED),
				part_of(b, at, bits, in->imm & VIDEO_B_SIGNED));

		if (in->imm & VIDEO_SAT)
			v = saturate(v, bits, in->imm & VIDEO_D_SIGNED);
		sum += (u32)v;
		packed |= ((u32)v & ((1u << bits) - 1)) << at;
	}
	return in->imm & VIDEO_SUM ? sum : packed;
}

int video(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);
	const u32 *c = operand(w, in->op[3]);
	u32 *d = operand(w, in->op[0]);

	FOR_LANES(l, mask)
		d[l] = video_lane(in, a[l], b[l], c[l]);
	return RUN_ON;
}

void video_describe(const struct ptx_insn *in, struct insn *ret)
{
	bool bytes = in->op >= PTX_OP_VADD4;

	ret->bytes = bytes ? 1 : 2;
	ret->mode = (u8)(in->op - (bytes ? PTX_OP_VADD4 : PTX_OP_VADD2));
	ret->imm = (in->stype == PTX_S32 ? VIDEO_A_SIGNED : 0) |
		   (in->utype == PTX_S32 ? VIDEO_B_SIGNED : 0) |
		   (in->type == PTX_S32 ? VIDEO_D_SIGNED : 0) |
		   (in->flags & PTX_F_SAT ? VIDEO_SAT : 0) |
		   (in->flags & PTX_F_ACCUM ? VIDEO_SUM : 0);
}
