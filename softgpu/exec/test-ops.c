/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of arithmetic, one line each: the instruction, the types of its
 * operands, and what the host says the result is. Operands are random, or
 * from a list of numbers at which things go wrong.
 */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/half.h"
#include "softgpu/exec/isa.h"
#include "softgpu/exec/test-kit.h"

#define N_THREADS (4 * 112) /* four blocks, of which each has a warp that is not full */

typedef u16 f16; /* their bits */

/* ---- what the host says ------------------------------------------------------------------------- */

/* With another rounding. The value must not be computed before or kept from elsewhere. */
#define ROUNDED(how, T, expr)                                                                      \
	({                                                                                         \
		volatile T v_;                                                                     \
		fesetround(how);                                                                   \
		v_ = (expr);                                                                       \
		fesetround(FE_TONEAREST);                                                          \
		v_;                                                                                \
	})

static f32 hide(f32 v)
{
	volatile f32 h = v;

	return h;
}

static f64 hide64(f64 v)
{
	volatile f64 h = v;

	return h;
}

static f32 ftz(f32 v)
{
	return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v;
}

static f32 sat(f32 v)
{
	return v >= 1 ? 1 : v > 0 ? v : 0;
}

/* -0 is less than +0, and a number wins over NaN. */
static f64 lesser(f64 a, f64 b)
{
	return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static f64 greater(f64 a, f64 b)
{
	return -lesser(-a, -b);
}

static f64 clamp(f64 v, f64 low, f64 high)
{
	return v != v ? 0 : v < low ? low : v > high ? high : v;
}

static s64 clamp_int(s64 v, s64 low, s64 high)
{
	return v < low ? low : v > high ? high : v;
}

static s32 bit_search(u64 v, int width, bool sign)
{
	if (sign && v >> (width - 1) & 1)
		v = ~v & (width == 64 ? UINT64_MAX : UINT32_MAX);
	for (int i = width - 1; i >= 0; i--) {
		if (v >> i & 1)
			return i;
	}
	return -1;
}

static u64 reversed(u64 v, int width)
{
	u64 r = 0;

	for (int i = 0; i < width; i++)
		r |= (v >> i & 1) << (width - 1 - i);
	return r;
}

static u32 lop3_of(u32 a, u32 b, u32 c, u32 table)
{
	u32 r = 0;

	for (int i = 0; i < 32; i++)
		r |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
	return r;
}

static u32 prmt_of(u32 a, u32 b, u32 s)
{
	u8 bytes[8], r[4];
	u32 v;

	memcpy(bytes, &a, 4);
	memcpy(bytes + 4, &b, 4);
	for (int i = 0; i < 4; i++) {
		u8 byte = bytes[s >> (4 * i) & 7];

		r[i] = s >> (4 * i) & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
	}
	memcpy(&v, r, 4);
	return v;
}

/* As the manual of PTX has it, bit by bit. */
static u64 bfe_of(u64 a, u32 pos, u32 len, int width, bool sign)
{
	int msb = width - 1;
	u64 r = 0, s = 0;

	pos &= 255;
	len &= 255;
	if (sign && len)
		s = a >> (pos + len - 1 < (u32)msb ? (int)(pos + len - 1) : msb) & 1;
	for (u32 i = 0; i <= (u32)msb; i++) {
		u64 bit = i < len && pos + i <= (u32)msb ? a >> (pos + i) & 1 : s;

		r |= bit << i;
	}
	return r;
}

static u64 bfi_of(u64 a, u64 b, u32 pos, u32 len, int width)
{
	pos &= 255;
	len &= 255;
	for (u32 i = 0; i < len && pos + i < (u32)width; i++) {
		b &= ~(UINT64_C(1) << (pos + i));
		b |= (a >> i & 1) << (pos + i);
	}
	return b;
}

/* A half of a number: the nearest of all halves, the even one of two. */
static f16 nearest_half(f64 v)
{
	f64 best = INFINITY, size = fabs(v);
	u32 found = 0x7c00;

	if (v != v)
		return 0x7fff;
	if (size < 65520) {
		for (u32 h = 0; h < 0x7c00; h++) {
			f64 distance = fabs((f64)half_to_float((u16)h) - size);

			if (distance < best || (distance == best && !(h & 1))) {
				best = distance;
				found = h;
			}
		}
	}
	return (f16)(found | (signbit(v) ? 0x8000 : 0));
}

static f16 half_ftz(f16 h)
{
	return h & 0x7c00 ? h : h & 0x8000;
}

#define H(x) ((f64)half_to_float(x))

/* clang-format off */
/* ---- the table ---------------------------------------------------------------------------------- */

/*
 * OP(text, D, TA, TB, TC, result): the text computes %d from %a, %b
 * and %c; %p, %q are predicates, %t and %u 32 and 64 bits for in between.
 * NEAR() allows the result some units in the last place.
 */
#define INTEGERS                                                                                   \
	OP("add.s16 %d, %a, %b", u16, u16, u16, u16, (u16)(a + b))                                 \
	OP("add.u32 %d, %a, %b", u32, u32, u32, u32, a + b)                                        \
	OP("add.s64 %d, %a, %b", u64, u64, u64, u64, a + b)                                        \
	OP("add.u32 %d, %a, -7", u32, u32, u32, u32, a - 7)                                        \
	OP("add.sat.s32 %d, %a, %b", s32, s32, s32, s32, (s32)clamp_int((s64)a + b, INT32_MIN, INT32_MAX)) \
	OP("sub.sat.s32 %d, %a, %b", s32, s32, s32, s32, (s32)clamp_int((s64)a - b, INT32_MIN, INT32_MAX)) \
	OP("sub.u32 %d, %a, %b", u32, u32, u32, u32, a - b)                                        \
	OP("sub.s64 %d, %a, %b", u64, u64, u64, u64, a - b)                                        \
	OP("mul.lo.s16 %d, %a, %b", u16, u16, u16, u16, (u16)((u32)a * b))                         \
	OP("mul.lo.u32 %d, %a, %b", u32, u32, u32, u32, a * b)                                     \
	OP("mul.lo.s64 %d, %a, %b", u64, u64, u64, u64, a * b)                                     \
	OP("mul.hi.u16 %d, %a, %b", u16, u16, u16, u16, (u16)((u32)a * b >> 16))                   \
	OP("mul.hi.s16 %d, %a, %b", s16, s16, s16, s16, (s16)(a * b >> 16))                        \
	OP("mul.hi.u32 %d, %a, %b", u32, u32, u32, u32, (u32)((u64)a * b >> 32))                   \
	OP("mul.hi.s32 %d, %a, %b", s32, s32, s32, s32, (s32)((s64)a * b >> 32))                   \
	OP("mul.hi.u64 %d, %a, %b", u64, u64, u64, u64, (u64)((u128)a * b >> 64))                  \
	OP("mul.hi.s64 %d, %a, %b", s64, s64, s64, s64, (s64)((s128)a * b >> 64))                  \
	OP("mul.wide.u16 %d, %a, %b", u32, u16, u16, u16, (u32)a * b)                              \
	OP("mul.wide.s16 %d, %a, %b", s32, s16, s16, s16, a * b)                                   \
	OP("mul.wide.u32 %d, %a, %b", u64, u32, u32, u32, (u64)a * b)                              \
	OP("mul.wide.s32 %d, %a, %b", s64, s32, s32, s32, (s64)a * b)                              \
	OP("mad.lo.s32 %d, %a, %b, %c", u32, u32, u32, u32, a * b + c)                             \
	OP("mad.lo.u64 %d, %a, %b, %c", u64, u64, u64, u64, a * b + c)                             \
	OP("mad.hi.s32 %d, %a, %b, %c", u32, s32, s32, u32, (u32)((s64)a * b >> 32) + c)           \
	OP("mad.hi.u32 %d, %a, %b, %c", u32, u32, u32, u32, (u32)((u64)a * b >> 32) + c)           \
	OP("mad.hi.sat.s32 %d, %a, %b, %c", s32, s32, s32, s32,                                    \
	   (s32)clamp_int(((s64)a * b >> 32) + c, INT32_MIN, INT32_MAX))                           \
	OP("mad.wide.u16 %d, %a, %b, %c", u32, u16, u16, u32, (u32)a * b + c)                      \
	OP("mad.wide.s32 %d, %a, %b, %c", u64, s32, s32, u64, (u64)((s64)a * b) + c)               \
	OP("mul24.lo.s32 %d, %a, %b", u32, s32, s32, s32,                                          \
	   (u32)((s64)((s32)((u32)a << 8) >> 8) * ((s32)((u32)b << 8) >> 8)))                      \
	OP("mul24.hi.u32 %d, %a, %b", u32, u32, u32, u32,                                          \
	   (u32)((u64)(a & 0xffffff) * (b & 0xffffff) >> 16))                                      \
	OP("mad24.lo.u32 %d, %a, %b, %c", u32, u32, u32, u32, (a & 0xffffff) * (b & 0xffffff) + c) \
	OP("sad.u32 %d, %a, %b, %c", u32, u32, u32, u32, (a > b ? a - b : b - a) + c)              \
	OP("sad.s32 %d, %a, %b, %c", u32, s32, s32, u32, (u32)(a > b ? (s64)a - b : (s64)b - a) + c) \
	OP("div.u32 %d, %a, %b", u32, u32, u32, u32, b ? a / b : UINT32_MAX)                       \
	OP("div.s32 %d, %a, %b", s32, s32, s32, s32, b ? (s32)((s64)a / b) : -1)                   \
	OP("div.u64 %d, %a, %b", u64, u64, u64, u64, b ? a / b : UINT64_MAX)                       \
	OP("div.s64 %d, %a, %b", s64, s64, s64, s64, b ? (s64)((s128)a / b) : -1)                  \
	OP("div.s16 %d, %a, %b", s16, s16, s16, s16, b ? (s16)(a / b) : -1)                        \
	OP("rem.u32 %d, %a, %b", u32, u32, u32, u32, b ? a % b : a)                                \
	OP("rem.s32 %d, %a, %b", s32, s32, s32, s32, b ? (s32)((s64)a % b) : a)                    \
	OP("rem.s64 %d, %a, %b", s64, s64, s64, s64, b ? (s64)((s128)a % b) : a)                   \
	OP("abs.s32 %d, %a", u32, s32, s32, s32, a < 0 ? 0 - (u32)a : (u32)a)                      \
	OP("abs.s64 %d, %a", u64, s64, s64, s64, a < 0 ? 0 - (u64)a : (u64)a)                      \
	OP("neg.s32 %d, %a", u32, u32, u32, u32, 0 - a)                                            \
	OP("neg.s16 %d, %a", u16, u16, u16, u16, (u16)-a)                                          \
	OP("min.s32 %d, %a, %b", s32, s32, s32, s32, a < b ? a : b)                                \
	OP("max.u32 %d, %a, %b", u32, u32, u32, u32, a > b ? a : b)                                \
	OP("min.u64 %d, %a, %b", u64, u64, u64, u64, a < b ? a : b)                                \
	OP("max.s64 %d, %a, %b", s64, s64, s64, s64, a > b ? a : b)                                \
	OP("min.s16 %d, %a, %b", s16, s16, s16, s16, a < b ? a : b)                                \
	OP("max.relu.s32 %d, %a, %b", s32, s32, s32, s32, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0) \
	OP("add.cc.u32 %t, %a, %b; addc.u32 %d, %c, 0", u32, u32, u32, u32,                        \
	   c + (u32)(((u64)a + b) >> 32))                                                          \
	OP("sub.cc.u32 %t, %a, %b; subc.u32 %d, %c, 0", u32, u32, u32, u32, c - (a < b))           \
	OP("mad.lo.cc.u32 %t, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0", u32, u32, u32, u32,          \
	   (u32)(((u64)a * b + c) >> 32))                                                          \
	OP("add.cc.u64 %u, %a, %b; addc.cc.u64 %u, %c, %c; addc.u64 %d, 0, 0", u64, u64, u64, u64, \
	   (u64)(((u128)c + c + (u64)(((u128)a + b) >> 64)) >> 64))                                \
	OP("dp4a.u32.u32 %d, %a, %b, %c", u32, u32, u32, u32,                                      \
	   c + (a & 255) * (b & 255) + (a >> 8 & 255) * (b >> 8 & 255) +                           \
		   (a >> 16 & 255) * (b >> 16 & 255) + (a >> 24) * (b >> 24))                      \
	OP("dp2a.lo.s32.u32 %d, %a, %b, %c", u32, u32, u32, u32,                                   \
	   c + (u32)((s16)a * (s32)(b & 255)) + (u32)((s16)(a >> 16) * (s32)(b >> 8 & 255)))

#define BITS                                                                                       \
	OP("and.b32 %d, %a, %b", u32, u32, u32, u32, a & b)                                        \
	OP("or.b64 %d, %a, %b", u64, u64, u64, u64, a | b)                                         \
	OP("xor.b16 %d, %a, %b", u16, u16, u16, u16, a ^ b)                                        \
	OP("not.b32 %d, %a", u32, u32, u32, u32, ~a)                                               \
	OP("cnot.b32 %d, %a", u32, u32, u32, u32, !a)                                              \
	OP("lop3.b32 %d, %a, %b, %c, 0x6a", u32, u32, u32, u32, lop3_of(a, b, c, 0x6a))            \
	OP("shl.b32 %d, %a, %b", u32, u32, u32, u32, b > 31 ? 0 : a << b)                          \
	OP("shl.b64 %d, %a, %b", u64, u64, u32, u32, b > 63 ? 0 : a << b)                          \
	OP("shl.b16 %d, %a, %b", u16, u16, u32, u32, b > 15 ? 0 : (u16)(a << b))                   \
	OP("shr.u32 %d, %a, %b", u32, u32, u32, u32, b > 31 ? 0 : a >> b)                          \
	OP("shr.s32 %d, %a, %b", s32, s32, u32, u32, a >> (b > 31 ? 31 : b))                       \
	OP("shr.s64 %d, %a, %b", s64, s64, u32, u32, a >> (b > 63 ? 63 : b))                       \
	OP("shr.u16 %d, %a, %b", u16, u16, u32, u32, b > 15 ? 0 : (u16)(a >> b))                   \
	OP("shf.l.wrap.b32 %d, %a, %b, %c", u32, u32, u32, u32,                                    \
	   (u32)((((u64)b << 32 | a) << (c & 31)) >> 32))                                          \
	OP("shf.r.clamp.b32 %d, %a, %b, %c", u32, u32, u32, u32,                                   \
	   (u32)(((u64)b << 32 | a) >> (c > 32 ? 32 : c)))                                         \
	OP("popc.b32 %d, %a", u32, u32, u32, u32, (u32)__builtin_popcount(a))                      \
	OP("popc.b64 %d, %a", u32, u64, u64, u64, (u32)__builtin_popcountll(a))                    \
	OP("clz.b32 %d, %a", u32, u32, u32, u32, (u32)(31 - bit_search(a, 32, false)))             \
	OP("clz.b64 %d, %a", u32, u64, u64, u64, (u32)(63 - bit_search(a, 64, false)))             \
	OP("brev.b32 %d, %a", u32, u32, u32, u32, (u32)reversed(a, 32))                            \
	OP("brev.b64 %d, %a", u64, u64, u64, u64, reversed(a, 64))                                 \
	OP("bfind.u32 %d, %a", s32, u32, u32, u32, bit_search(a, 32, false))                       \
	OP("bfind.s64 %d, %a", s32, u64, u64, u64, bit_search(a, 64, true))                        \
	OP("bfind.shiftamt.u32 %d, %a", s32, u32, u32, u32, a ? 31 - bit_search(a, 32, false) : -1) \
	OP("bfe.u32 %d, %a, %b, %c", u32, u32, u32, u32, (u32)bfe_of(a, b, c, 32, false))          \
	OP("bfe.s32 %d, %a, %b, %c", u32, u32, u32, u32, (u32)bfe_of(a, b, c, 32, true))           \
	OP("bfe.u64 %d, %a, %b, %c", u64, u64, u32, u32, bfe_of(a, b, c, 64, false))               \
	OP("bfe.s64 %d, %a, %b, %c", u64, u64, u32, u32, bfe_of(a, b, c, 64, true))                \
	OP("bfi.b32 %d, %a, %a, %b, %c", u32, u32, u32, u32, (u32)bfi_of(a, a, b, c, 32))          \
	OP("bfi.b64 %d, %a, %a, %b, %c", u64, u64, u32, u32, bfi_of(a, a, b, c, 64))               \
	OP("bmsk.clamp.b32 %d, %a, %b", u32, u32, u32, u32,                                        \
	   a > 31 ? 0 : (u32)((((UINT64_C(1) << (b > 32 ? 32 : b)) - 1) << a)))                    \
	OP("prmt.b32 %d, %a, %b, %c", u32, u32, u32, u32, prmt_of(a, b, c))                        \
	OP("prmt.b32.rc8 %d, %a, %b, %c", u32, u32, u32, u32, (a >> (8 * (c & 3)) & 255) * 0x01010101) \
	OP("prmt.b32.b4e %d, %a, %b, %c", u32, u32, u32, u32,                                      \
	   prmt_of(a, b, (u16[]){ 0x5670, 0x6701, 0x7012, 0x0123 }[c & 3]))                        \
	OP("mov.b64 %u, {%a, %b}; mov.b64 {%t, %d}, %u", u32, u32, u32, u32, b)                    \
	OP("mov.b64 %d, {%a, %b}", u64, u32, u32, u32, a | (u64)b << 32)                           \
	OP("mov.b32 %d, {%a, %b}", u32, u16, u16, u16, a | (u32)b << 16)                           \
	OP("mov.b64 %d, {%a, %b, %c, %a}", u64, u16, u16, u16,                                     \
	   a | (u64)b << 16 | (u64)c << 32 | (u64)a << 48)                                         \
	OP("setp.ne.s32 %p, %c, 0; selp.b32 %d, %a, %b, %p", u32, u32, u32, u32, c ? a : b)        \
	OP("slct.u32.s32 %d, %a, %b, %c", u32, u32, u32, s32, c >= 0 ? a : b)                      \
	OP("slct.u64.f32 %d, %a, %b, %c", u64, u64, u64, f32, c >= 0 ? a : b)                      \
	OP("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c", u32, u32, u32, u32,                         \
	   c + (u32)abs((int)(a & 255) - (int)(b & 255)) +                                         \
		   (u32)abs((int)(a >> 8 & 255) - (int)(b >> 8 & 255)) +                           \
		   (u32)abs((int)(a >> 16 & 255) - (int)(b >> 16 & 255)) +                         \
		   (u32)abs((int)(a >> 24) - (int)(b >> 24)))                                      \
	OP("vadd2.s32.s32.s32.sat %d, %a, %b, %c", u32, u32, u32, u32,                             \
	   (u16)clamp_int((s16)a + (s16)b, -32768, 32767) |                                        \
		   (u32)clamp_int((s16)(a >> 16) + (s16)(b >> 16), -32768, 32767) << 16)

/* The bytes and halves of a word, with and without sign. */
#define UB(v, i) ((s64)((v) >> 8 * (i) & 255))
#define SB(v, i) ((s64)(s8)((v) >> 8 * (i)))
#define UH(v, i) ((s64)((v) >> 16 * (i) & 0xffff))
#define SH(v, i) ((s64)(s16)((v) >> 16 * (i)))
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define MINUS(a, b) ((s64)(a) - (s64)(b))
#define SAT_S32(v) ((u32)clamp_int(v, INT32_MIN, INT32_MAX))
#define SAT_U32(v) ((u32)clamp_int(v, 0, UINT32_MAX))
#define VIDEO                                                                                      \
	OP("vadd.s32.u32.s32.sat %d, %a, %b", u32, u32, s32, u32, SAT_S32((s64)a + b))             \
	OP("vadd.u32.u32.u32.sat.add %d, %a, %b, %c", u32, u32, u32, u32, SAT_U32((s64)a + b) + c) \
	OP("vadd.s32.s32.s32.min %d, %a.b1, %b.h1, %c", u32, u32, u32, s32,                        \
	   (u32)LESS(SB(a, 1) + SH(b, 1), c))                                                      \
	OP("vsub.s32.u32.u32.sat %d.b2, %a.b3, %b.b0, %c", u32, u32, u32, u32,                     \
	   (c & 0xff00ffff) | ((u32)clamp_int(UB(a, 3) - UB(b, 0), -128, 127) & 255) << 16)        \
	OP("vsub.u32.s32.u32 %d.h0, %a.h1, %b, %c", u32, u32, u32, u32,                            \
	   (c & 0xffff0000) | ((u32)(SH(a, 1) - b) & 0xffff))                                      \
	OP("vabsdiff.u32.s32.s32.max %d, %a, %b, %c", u32, s32, s32, u32,                          \
	   (u32)MORE(llabs(MINUS(a, b)), c))                                                       \
	OP("vmin.s32.s32.u32 %d, %a, %b", u32, s32, u32, u32, (u32)LESS((s64)a, (s64)b))           \
	OP("vmax.u32.s32.u32.sat %d.h1, %a, %b.b3, %c", u32, s32, u32, u32,                        \
	   (c & 0xffff) | (u32)clamp_int(MORE(a, UB(b, 3)), 0, 65535) << 16)                       \
	OP("vshl.u32.u32.u32.clamp %d, %a, %b", u32, u32, u32, u32, b > 31 ? 0 : a << b)           \
	OP("vshl.s32.s32.u32.sat.wrap %d, %a, %b", u32, s32, u32, u32,                             \
	   SAT_S32((s64)a * (INT64_C(1) << (b & 31))))                                             \
	OP("vshr.s32.s32.u32.clamp.add %d, %a, %b, %c", u32, s32, u32, u32,                        \
	   (u32)((s64)a >> LESS(b, 32)) + c)                                                       \
	OP("vshr.u32.u32.u32.wrap %d.b0, %a.h1, %b.b1, %c", u32, u32, u32, u32,                    \
	   (c & ~255u) | (UH(a, 1) >> (UB(b, 1) & 31) & 255))                                      \
	OP("vmad.u32.u32.u32 %d, %a, %b, %c", u32, u32, u32, u32, a * b + c)                       \
	OP("vmad.u32.u32.u32.sat.shr7 %d, %a, %b.b1, %c", u32, u32, u32, u32,                      \
	   SAT_U32((s64)(((u64)a * (u64)UB(b, 1) + c) >> 7)))                                      \
	OP("vmad.s32.s32.u32.sat.shr15 %d, %a, -%b.h0, %c", u32, s32, u32, s32,                    \
	   SAT_S32((c - a * UH(b, 0)) >> 15))                                                      \
	OP("vmad.s32.u32.u32.sat %d, %a.h0, %b.h0, -%c", u32, u32, u32, s32,                       \
	   SAT_S32(UH(a, 0) * UH(b, 0) - c))                                                       \
	OP("vmad.u32.u32.u32.po.shr7 %d, %a.b0, %b.b0, %c", u32, u32, u32, u32,                    \
	   (u32)((UB(a, 0) * UB(b, 0) + c + 1) >> 7))                                              \
	OP("vset.u32.s32.lt %d, %a, %b", u32, u32, s32, u32, MINUS(a, b) < 0)                      \
	OP("vset.s32.s32.ge.add %d, %a.b0, %b.b3, %c", u32, u32, u32, u32,                         \
	   c + (SB(a, 0) >= SB(b, 3)))                                                             \
	OP("vset.u32.u32.ne %d.b1, %a, %b, %c", u32, u32, u32, u32,                                \
	   (c & ~0xff00u) | (u32)(a != b) << 8)                                                    \
	OP("vset2.s32.u32.le %d, %a, %b, %c", u32, u32, u32, u32,                                  \
	   (SH(a, 0) <= UH(b, 0)) | (u32)(SH(a, 1) <= UH(b, 1)) << 16)                             \
	OP("vset4.u32.u32.gt.add %d.b20, %a.b7654, %b, %c", u32, u32, u32, u32,                    \
	   c + 0 * a + 0 * b)                                                                      \
	OP("vset4.u32.u32.eq.add %d, %a.b0123, %b.b4567, %c", u32, u32, u32, u32,                  \
	   c + (UB(a, 0) == UB(b, 0)) + (UB(a, 1) == UB(b, 1)) + (UB(a, 2) == UB(b, 2)) +          \
		   (UB(a, 3) == UB(b, 3)))                                                         \
	OP("vsub2.s32.s32.s32.sat %d.h1, %a.h20, %b.h31, %c", u32, u32, u32, u32,                  \
	   (c & 0xffff) | (u32)clamp_int(SH(b, 0) - SH(b, 1), -32768, 32767) << 16)                \
	OP("vadd4.u32.u32.s32 %d.b30, %a, %b.b7004, %c", u32, u32, u32, u32,                       \
	   (c & 0x00ffff00) | ((u32)(UB(a, 0) + SB(b, 0)) & 255) |                                 \
		   (u32)(UB(a, 3) + SB(b, 3)) << 24)

#define SETP(text, T, expr)                                                                        \
	OP("setp." text " %p, %a, %b; selp.b32 %d, 1, 0, %p", u32, T, T, T, (u32)(expr))
#define COMPARISONS                                                                                \
	SETP("eq.s32", s32, a == b) SETP("ne.u16", u16, a != b) SETP("lt.s32", s32, a < b)         \
	SETP("le.u32", u32, a <= b) SETP("gt.s64", s64, a > b) SETP("ge.u64", u64, a >= b)         \
	SETP("lo.u32", u32, a < b) SETP("hs.u32", u32, a >= b) SETP("lt.s16", s16, a < b)          \
	SETP("gt.u16", u16, a > b) SETP("eq.b64", u64, a == b) SETP("lt.f32", f32, a < b)          \
	SETP("eq.f32", f32, a == b) SETP("ne.f32", f32, a < b || a > b) SETP("neu.f32", f32, a != b) \
	SETP("gtu.f32", f32, !(a <= b)) SETP("num.f32", f32, !isnan(a) && !isnan(b))               \
	SETP("nan.f64", f64, isnan(a) || isnan(b)) SETP("le.f64", f64, a <= b)                     \
	SETP("geu.f64", f64, !(a < b)) SETP("lt.ftz.f32", f32, ftz(a) < ftz(b))                    \
	SETP("eq.ftz.f32", f32, ftz(a) == ftz(b)) SETP("lt.f16", f16, H(a) < H(b))                 \
	OP("setp.lt.s32 %q, %a, %c; setp.gt.and.s32 %p, %a, %b, !%q; selp.b32 %d, 1, 0, %p", u32,  \
	   s32, s32, s32, a > b && !(a < c))                                                       \
	OP("setp.lt.s32 %q, %a, %c; setp.gt.or.s32 %p|%q, %a, %b, %q; selp.b32 %t, 1, 0, %p; "     \
	   "selp.b32 %d, 2, 0, %q; or.b32 %d, %d, %t",                                             \
	   u32, s32, s32, s32, (u32)(a > b || a < c) | (u32)(!(a > b) || a < c) << 1)              \
	OP("setp.lt.s32 %q, %a, %c; setp.gt.s32 %p, %a, %b; xor.pred %p, %p, %q; not.pred %p, %p; " \
	   "selp.b32 %d, 1, 0, %p",                                                                \
	   u32, s32, s32, s32, (a > b) == (a < c))                                                 \
	OP("set.lt.u32.s32 %d, %a, %b", u32, s32, s32, s32, a < b ? UINT32_MAX : 0)                \
	OP("set.ge.f32.f32 %d, %a, %b", f32, f32, f32, f32, a >= b ? 1 : 0)                        \
	OP("set.eq.f16.f16 %d, %a, %b", f16, f16, f16, f16, H(a) == H(b) ? 0x3c00 : 0)             \
	OP("set.gt.f16x2.f16x2 %d, %a, %b", u32, u32, u32, u32,                                    \
	   (H((u16)a) > H((u16)b) ? 0x3c00 : 0) | (H(a >> 16) > H(b >> 16) ? 0x3c000000 : 0))      \
	OP("set.le.u32.f16x2 %d, %a, %b", u32, u32, u32, u32,                                      \
	   (H((u16)a) <= H((u16)b) ? 0xffff : 0) | (H(a >> 16) <= H(b >> 16) ? 0xffff0000 : 0))    \
	OP("testp.subnormal.f32 %p, %a; selp.b32 %d, 1, 0, %p", u32, f32, f32, f32,                \
	   fpclassify(a) == FP_SUBNORMAL)                                                          \
	OP("testp.normal.f64 %p, %a; selp.b32 %d, 1, 0, %p", u32, f64, f64, f64,                   \
	   fpclassify(a) == FP_NORMAL)                                                             \
	OP("lop3.or.b32 %d|%p, %a, %b, %c, 0x80, %q; @!%p mov.u32 %d, 7", u32, u32, u32, u32,      \
	   a & b & c ? a & b & c : 7)

#define FLOATS                                                                                     \
	OP("add.f32 %d, %a, %b", f32, f32, f32, f32, a + b)                                        \
	OP("add.rz.f32 %d, %a, %b", f32, f32, f32, f32, ROUNDED(FE_TOWARDZERO, f32, hide(a) + hide(b))) \
	OP("add.rm.f64 %d, %a, %b", f64, f64, f64, f64, ROUNDED(FE_DOWNWARD, f64, hide64(a) + hide64(b))) \
	OP("add.ftz.f32 %d, %a, %b", f32, f32, f32, f32, ftz(ftz(a) + ftz(b)))                     \
	OP("add.sat.f32 %d, %a, %b", f32, f32, f32, f32, sat(a + b))                               \
	OP("sub.f32 %d, %a, %b", f32, f32, f32, f32, a - b)                                        \
	OP("sub.rp.f32 %d, %a, %b", f32, f32, f32, f32, ROUNDED(FE_UPWARD, f32, hide(a) - hide(b))) \
	OP("sub.f64 %d, %a, %b", f64, f64, f64, f64, a - b)                                        \
	OP("mul.f32 %d, %a, %b", f32, f32, f32, f32, a * b)                                        \
	OP("mul.rp.f32 %d, %a, %b", f32, f32, f32, f32, ROUNDED(FE_UPWARD, f32, hide(a) * hide(b))) \
	OP("mul.ftz.sat.f32 %d, %a, %b", f32, f32, f32, f32, sat(ftz(ftz(a) * ftz(b))))            \
	OP("mul.f64 %d, %a, %b", f64, f64, f64, f64, a * b)                                        \
	OP("fma.rn.f32 %d, %a, %b, %c", f32, f32, f32, f32, fmaf(a, b, c))                         \
	OP("fma.rm.f32 %d, %a, %b, %c", f32, f32, f32, f32,                                        \
	   ROUNDED(FE_DOWNWARD, f32, fmaf(hide(a), hide(b), hide(c))))                             \
	OP("fma.rn.f64 %d, %a, %b, %c", f64, f64, f64, f64, fma(a, b, c))                          \
	OP("mad.rn.f32 %d, %a, %b, %c", f32, f32, f32, f32, fmaf(a, b, c))                         \
	OP("div.rn.f32 %d, %a, %b", f32, f32, f32, f32, a / b)                                     \
	OP("div.rz.f32 %d, %a, %b", f32, f32, f32, f32, ROUNDED(FE_TOWARDZERO, f32, hide(a) / hide(b))) \
	OP("div.rn.f64 %d, %a, %b", f64, f64, f64, f64, a / b)                                     \
	OP("rcp.rn.f32 %d, %a", f32, f32, f32, f32, 1 / a)                                         \
	OP("rcp.rn.f64 %d, %a", f64, f64, f64, f64, 1 / a)                                         \
	OP("sqrt.rn.f32 %d, %a", f32, f32, f32, f32, sqrtf(a))                                     \
	OP("sqrt.rp.f64 %d, %a", f64, f64, f64, f64, ROUNDED(FE_UPWARD, f64, sqrt(hide64(a))))     \
	OP("neg.f32 %d, %a", u32, u32, u32, u32, a ^ 0x80000000)                                   \
	OP("abs.f64 %d, %a", u64, u64, u64, u64, a & INT64_MAX)                                    \
	OP("abs.ftz.f32 %d, %a", f32, f32, f32, f32, isnan(a) ? a : ftz(fabsf(a)))                 \
	OP("min.f32 %d, %a, %b", f32, f32, f32, f32, (f32)lesser(a, b))    \
	OP("max.f32 %d, %a, %b", f32, f32, f32, f32, (f32)greater(a, b))    \
	OP("min.NaN.f32 %d, %a, %b", f32, f32, f32, f32, isnan(a) || isnan(b) ? NAN : (f32)lesser(a, b)) \
	OP("max.ftz.f32 %d, %a, %b", f32, f32, f32, f32, (f32)greater(ftz(a), ftz(b))) \
	OP("max.f64 %d, %a, %b", f64, f64, f64, f64, greater(a, b)) \
	OP("copysign.f32 %d, %a, %b", u32, u32, u32, u32, (a & 0x80000000) | (b & INT32_MAX))      \
	NEAR(1, "rcp.approx.f32 %d, %a", f32, 1 / a)                                               \
	NEAR(2, "div.approx.f32 %d, %b, %a", f32,                                                  \
	     fabsf(a) > 0x1p126f && !isinf(a) ? (isinf(b) ? NAN : 0 * copysignf(1, a) * copysignf(1, b)) : b / a) \
	NEAR(2, "div.full.f32 %d, %b, %a", f32, b / a)                                             \
	NEAR(1, "sqrt.approx.f32 %d, %a", f32, sqrtf(a))                                           \
	NEAR(1, "rsqrt.approx.f32 %d, %a", f32, (f32)(1 / sqrt((f64)a)))                           \
	NEAR(2, "ex2.approx.f32 %d, %a", f32, exp2f(a))                                            \
	NEAR(2, "lg2.approx.f32 %d, %a", f32, log2f(a))                                            \
	NEAR(2, "sin.approx.f32 %d, %a", f32, sinf(a))                                             \
	NEAR(2, "cos.approx.f32 %d, %a", f32, cosf(a))                                             \
	NEAR(2, "tanh.approx.f32 %d, %a", f32, tanhf(a))

#define HALVES                                                                                     \
	OP("add.f16 %d, %a, %b", f16, f16, f16, f16, nearest_half(H(a) + H(b)))                    \
	OP("mul.rn.f16 %d, %a, %b", f16, f16, f16, f16, nearest_half(H(a) * H(b)))                 \
	OP("fma.rn.f16 %d, %a, %b, %c", f16, f16, f16, f16, nearest_half(fma(H(a), H(b), H(c))))   \
	OP("add.f16x2 %d, %a, %b", u32, u32, u32, u32,                                             \
	   nearest_half(H((u16)a) + H((u16)b)) |                                                   \
		   (u32)nearest_half(H((u16)(a >> 16)) + H((u16)(b >> 16))) << 16)                 \
	OP("cvt.rn.f16.f32 %d, %a", f16, f32, f32, f32, nearest_half(a))                           \
	OP("cvt.rz.f16.f32 %d, %a", f16, f32, f32, f32, half_from_double(a, PTX_RZ))               \
	OP("cvt.rn.f16.s32 %d, %a", f16, s32, s32, s32, nearest_half(a))                           \
	OP("cvt.f32.f16 %d, %a", f32, f16, f16, f16, (f32)H(a))                                    \
	OP("cvt.rzi.s32.f16 %d, %a", s32, f16, f16, f16, (s32)clamp(trunc(H(a)), INT32_MIN, INT32_MAX)) \
	OP("cvt.rmi.f16.f16 %d, %a", f16, f16, f16, f16, nearest_half(floor(H(a))))                \
	OP("cvt.rn.bf16.f32 %d, %a", u16, f32, f32, f32, bfloat_from_double(a, PTX_RN))            \
	OP("cvt.rn.f16x2.f32 %d, %a, %b", u32, f32, f32, f32, nearest_half(b) | (u32)nearest_half(a) << 16) \
	OP("mul.ftz.f16 %d, %a, %b", f16, f16, f16, f16,                                           \
	   half_ftz(nearest_half(H(half_ftz(a)) * H(half_ftz(b)))))                                \
	OP("neg.f16 %d, %a", u16, u16, u16, u16, a ^ 0x8000)

#define CVT_INT(text, D, S, low, high, round)                                                      \
	OP("cvt." text " %d, %a", D, S, S, S, (D)clamp(round((f64)a), low, high))
#define CONVERSIONS                                                                                \
	OP("cvt.s64.s32 %d, %a", s64, s32, s32, s32, a)                                            \
	OP("cvt.u64.u32 %d, %a", u64, u32, u32, u32, a)                                            \
	OP("cvt.u32.u64 %d, %a", u32, u64, u64, u64, (u32)a)                                       \
	OP("cvt.s32.s8 %d, %a", s32, u32, u32, u32, (s8)a)                                         \
	OP("cvt.u32.u8 %d, %a", u32, u16, u16, u16, (u8)a)                                         \
	OP("cvt.u8.u32 %d, %a", u32, u32, u32, u32, (u8)a)                                         \
	OP("cvt.s8.s32 %d, %a", s32, u32, u32, u32, (s8)a)                                         \
	OP("cvt.s16.s8 %d, %a", s16, u16, u16, u16, (s8)a)                                         \
	OP("cvt.s64.s8 %d, %a", s64, u64, u64, u64, (s8)a)                                         \
	OP("cvt.sat.u8.s32 %d, %a", u32, s32, s32, s32, (u32)clamp_int(a, 0, 255))                 \
	OP("cvt.sat.s16.s64 %d, %a", s16, s64, s64, s64, (s16)clamp_int(a, -32768, 32767))         \
	OP("cvt.sat.u32.s32 %d, %a", u32, s32, s32, s32, (u32)clamp_int(a, 0, UINT32_MAX))         \
	OP("cvt.rn.f32.s32 %d, %a", f32, s32, s32, s32, (f32)a)                                    \
	OP("cvt.rz.f32.u32 %d, %a", f32, u32, u32, u32, ROUNDED(FE_TOWARDZERO, f32, (f32)(f64)a))  \
	OP("cvt.rn.f32.u64 %d, %a", f32, u64, u64, u64, (f32)a)                                    \
	OP("cvt.rn.f64.s64 %d, %a", f64, s64, s64, s64, (f64)a)                                    \
	OP("cvt.rn.f32.u16 %d, %a", f32, u16, u16, u16, (f32)a)                                    \
	OP("cvt.rn.f64.s32 %d, %a", f64, s32, s32, s32, (f64)a)                                    \
	OP("cvt.f64.f32 %d, %a", f64, f32, f32, f32, (f64)a)                                       \
	OP("cvt.rn.f32.f64 %d, %a", f32, f64, f64, f64, (f32)a)                                    \
	OP("cvt.rm.f32.f64 %d, %a", f32, f64, f64, f64, ROUNDED(FE_DOWNWARD, f32, (f32)hide64(a))) \
	OP("cvt.rni.f32.f32 %d, %a", f32, f32, f32, f32, rintf(a))                                 \
	OP("cvt.rmi.f32.f32 %d, %a", f32, f32, f32, f32, floorf(a))                                \
	OP("cvt.rpi.f64.f64 %d, %a", f64, f64, f64, f64, ceil(a))                                  \
	OP("cvt.rzi.f64.f64 %d, %a", f64, f64, f64, f64, trunc(a))                                 \
	OP("cvt.sat.f32.f32 %d, %a", f32, f32, f32, f32, sat(a))                                   \
	CVT_INT("rzi.s32.f32", s32, f32, INT32_MIN, INT32_MAX, trunc)                              \
	CVT_INT("rzi.u32.f32", u32, f32, 0, UINT32_MAX, trunc)                                     \
	CVT_INT("rni.s32.f32", s32, f32, INT32_MIN, INT32_MAX, rint)                               \
	CVT_INT("rmi.s32.f32", s32, f32, INT32_MIN, INT32_MAX, floor)                              \
	CVT_INT("rpi.s16.f32", s16, f32, INT16_MIN, INT16_MAX, ceil)                               \
	OP("cvt.rzi.s32.f64 %d, %a", s32, f64, f64, f64,                                           \
	   isnan(a) ? INT32_MIN : (s32)clamp(trunc(a), INT32_MIN, INT32_MAX))                      \
	OP("cvt.rzi.u8.f32 %d, %a", u32, f32, f32, f32, (u32)clamp(trunc((f64)a), 0, 255))         \
	OP("cvt.rzi.s64.f64 %d, %a", s64, f64, f64, f64,                                           \
	   isnan(a) || a <= -0x1p63 ? INT64_MIN : a >= 0x1p63 ? INT64_MAX : (s64)a)                \
	OP("cvt.rzi.u64.f32 %d, %a", u64, f32, f32, f32,                                           \
	   isnan(a) ? UINT64_C(1) << 63 : a <= 0 ? 0 : a >= 0x1p64f ? UINT64_MAX : (u64)a)
/* clang-format on */

/* ---- one function and one entry for each line --------------------------------------------------- */

struct op {
	const char *text;
	const char *types[4]; /* of d, a, b, c */
	u8 bytes[4];
	u32 ulps;
	u64 (*expected)(u64 a, u64 b, u64 c);
};

static struct op ops[512];
static u32 n_ops;

#define NAME_(what, n) what##_##n
#define NAME(what, n)  NAME_(what, n)
#define DEFINE(n, text_, ulps_, D, TA, TB, TC, result)                                             \
	static u64 NAME(expected, n)(u64 a_, u64 b_, u64 c_)                                       \
	{                                                                                          \
		TA a;                                                                              \
		TB b;                                                                              \
		TC c;                                                                              \
		D d;                                                                               \
		u64 bits = 0;                                                                      \
                                                                                                   \
		memcpy(&a, &a_, sizeof(a));                                                        \
		memcpy(&b, &b_, sizeof(b));                                                        \
		memcpy(&c, &c_, sizeof(c));                                                        \
		(void)a, (void)b, (void)c;                                                         \
		d = (D)(result);                                                                   \
		memcpy(&bits, &d, sizeof(d));                                                      \
		return bits;                                                                       \
	}                                                                                          \
	__attribute__((constructor)) static void NAME(enter, n)(void)                              \
	{                                                                                          \
		ops[n_ops++] = (struct op){                                                        \
			.text = text_,                                                             \
			.types = { #D, #TA, #TB, #TC },                                            \
			.bytes = { sizeof(D), sizeof(TA), sizeof(TB), sizeof(TC) },                \
			.ulps = ulps_,                                                             \
			.expected = NAME(expected, n),                                             \
		};                                                                                 \
	}
#define OP(text, D, TA, TB, TC, result) DEFINE(__COUNTER__, text, 0, D, TA, TB, TC, result)
#define NEAR(ulps, text, T, result)	DEFINE(__COUNTER__, text, ulps, T, T, T, T, result)
INTEGERS
BITS VIDEO COMPARISONS FLOATS HALVES CONVERSIONS

	/* ---- operands ----------------------------------------------------------------------------------- */

	static u64 seed = 1;

static u64 any_bits(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

static u64 any_f32(void)
{
	static const u32 edges[] = {
		0,	    0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
		0x7fc00000, 0x7f800001, 1,	    0x80000001, 0x007fffff, 0x00800000,
		0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3fc00000, 0x40200000, 0x4f000000,
		0x4f800000, 0xcf000000, 0x5f000000, 0x477ff000, 0x33000000,
	};

	switch (any_bits() % 4) {
	case 0:
		return edges[any_bits() % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return (u32)any_bits();
	default:
		/* between 2^-16 and 2^15 */
		return ((u32)any_bits() & 0x807fffff) | (111 + (u32)(any_bits() % 32)) << 23;
	}
}

static u64 any_f64(void)
{
	static const u64 edges[] = {
		0,
		1,
		UINT64_C(0x7ff0000000000000),
		UINT64_C(0x7ff8000000000000),
		UINT64_C(0x8000000000000000),
		UINT64_C(0x41dfffffffc00000),
		UINT64_C(0x41e0000000000000),
		UINT64_C(0xc1e0000000200000),
		UINT64_C(0x43e0000000000000),
		UINT64_C(0x3fe0000000000000),
		UINT64_C(0x47efffffefffffff),
		UINT64_C(0x0010000000000000),
		UINT64_C(0xffefffffffffffff),
	};

	switch (any_bits() % 4) {
	case 0:
		return edges[any_bits() % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return any_bits();
	default:
		return double_bits((f64)float_of_bits((u32)any_f32()) * 1.000000123);
	}
}

static u64 any_int(void)
{
	switch (any_bits() % 5) {
	case 0:
		return any_bits() % 3 - 1;
	case 1:
		return UINT64_C(1) << (any_bits() % 64);
	case 2:
		return (UINT64_C(1) << (any_bits() % 64)) - 1;
	case 3:
		return any_bits() % 80;
	default:
		return any_bits();
	}
}

static u64 any_value(const char *type)
{
	if (!strcmp(type, "f32"))
		return any_f32();
	if (!strcmp(type, "f64"))
		return any_f64();
	return any_int();
}

/* ---- running ------------------------------------------------------------------------------------ */

static void write_kernel(char *text, size_t size, const struct op *op)
{
	u32 bits[4];

	for (int i = 0; i < 4; i++)
		bits[i] = 8 * op->bytes[i];
	snprintf(
		text, size,
		".visible .entry op(.param .u64 in, .param .u64 out)\n{\n"
		".reg .pred %%p, %%q; .reg .b32 %%t, %%i, %%n; .reg .b64 %%u, %%x, %%y;\n"
		".reg .b%u %%d; .reg .b%u %%a; .reg .b%u %%b; .reg .b%u %%c;\n"
		"mov.u32 %%i, %%ctaid.x; mov.u32 %%n, %%ntid.x; mov.u32 %%t, %%tid.x;\n"
		"mad.lo.u32 %%i, %%i, %%n, %%t; setp.ne.s32 %%q, %%i, %%i;\n"
		"ld.param.u64 %%x, [in]; mad.wide.u32 %%x, %%i, 24, %%x;\n"
		"ld.global.b%u %%a, [%%x]; ld.global.b%u %%b, [%%x+8]; ld.global.b%u %%c, [%%x+16];\n"
		"%s;\n"
		"ld.param.u64 %%y, [out]; mad.wide.u32 %%y, %%i, 8, %%y;\n"
		"st.global.b%u [%%y], %%d;\nret;\n}\n",
		bits[0], bits[1], bits[2], bits[3], bits[1], bits[2], bits[3], op->text, bits[0]);
}

static bool is_nan(u64 v, const char *type)
{
	return !strcmp(type, "f32")   ? isnan(float_of_bits((u32)v))
	       : !strcmp(type, "f64") ? isnan(double_of_bits(v))
				      : false;
}

static bool is_right(const struct op *op, u64 got, u64 want)
{
	/* There is one NaN in f32; in f64 any will do. */
	if (is_nan(want, op->types[0]))
		return !strcmp(op->types[0], "f32") ? (u32)got == 0x7fffffff
						    : is_nan(got, op->types[0]);
	if (op->ulps && (got ^ want) >> 31 == 0)
		return (u64)llabs((s64)got - (s64)want) <= op->ulps;
	return got == want;
}

static void test_op(const struct op *op, const char *isa)
{
	u64(*in)[3] = kit_alloc(N_THREADS * sizeof(*in)), *out = kit_alloc(N_THREADS * 8);
	struct exec_image *image;
	struct exec_progress p;
	char text[2048];
	u32 n_wrong = 0;

	for (u32 i = 0; i < N_THREADS; i++) {
		for (int k = 0; k < 3; k++)
			in[i][k] = any_value(op->types[1 + k]);
	}
	write_kernel(text, sizeof(text), op);
	image = kit_image(text);
	p = kit_run(&(struct kit_run){
		.image = image,
		.grid = 4,
		.block = N_THREADS / 4,
		.params = { (u64)(uintptr_t)in, (u64)(uintptr_t)out },
	});
	for (u32 i = 0; i < N_THREADS; i++) {
		u64 want = op->expected(in[i][0], in[i][1], in[i][2]);

		if (is_right(op, out[i], want))
			continue;
		if (!n_wrong++)
			printf("%s: a 0x%llx b 0x%llx c 0x%llx gives 0x%llx, not 0x%llx\n",
			       op->text, (unsigned long long)in[i][0], (unsigned long long)in[i][1],
			       (unsigned long long)in[i][2], (unsigned long long)out[i],
			       (unsigned long long)want);
	}
	kit_check(p.done && !p.fault && !n_wrong, "%s: %s", isa, op->text);
	exec_image_free(image);
	kit_reset();
}

int main(void)
{
	kit_init();
	for (u32 i = 0; i < n_ops; i++)
		test_op(&ops[i], "this CPU");
	/* Compiled code does not choose between handlers. */
	if (exec_compiler)
		return kit_result();
	exec_use_base_isa();
	for (u32 i = 0; i < n_ops; i++)
		test_op(&ops[i], "any CPU");
	return kit_result();
}
