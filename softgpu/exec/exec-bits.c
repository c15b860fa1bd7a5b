/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bits: logic, shifts, fields, permutations, selections and moves; packed
 * integers of the video instructions too.
 */
#include "softgpu/exec/handlers.h"

/* ---- logic ------------------------------------------------------------------------------------ */

/* clang-format off */
EVERY_WIDTH(WITH2, and, A & B)
EVERY_WIDTH(WITH2, or, A | B)
EVERY_WIDTH(WITH2, xor, A ^ B)
EVERY_WIDTH(WITH1, not, ~A)
/* clang-format on */
EVERY_WIDTH(WITH1, cnot, !A)
EVERY_WIDTH(WITH1, mov, A)
HANDLER1(mov_b128, u128, u128, A)

/* On predicates all lanes are one word. */
#define PREDICATES(name, expr)                                                                     \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		u32 a = predicate(w, in->op[1]), b = predicate(w, in->op[2]);                      \
                                                                                                   \
		(void)b;                                                                           \
		predicate_set(w, in->op[0], mask, expr);                                           \
		return RUN_ON;                                                                     \
	}
PREDICATES(and_pred, a &b)
PREDICATES(or_pred, a | b)
PREDICATES(xor_pred, a ^ b)
PREDICATES(not_pred, ~a)
PREDICATES(mov_pred, a)

/* Bit i of the table is the result where a, b, c are the bits 2, 1, 0 of i. */
static inline u32 lop3_lane(u32 a, u32 b, u32 c, u32 table)
{
	u32 r = 0;

	for (int i = 0; i < 8; i++) {
		u32 term = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);

		r |= term & -(table >> i & 1);
	}
	return r;
}

static int lop3(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]);
	const u32 *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);
	const u32 *c = operand(w, in->op[3]);
	u32 table = *(u32 *)operand(w, in->op[4]);

	SET_LANES(u32, d, lop3_lane(A, B, C, table));
	return RUN_ON;
}

/* ---- shifts ----------------------------------------------------------------------------------- */

/* clang-format off */
#define SHL(T)	 (B < 8 * sizeof(T) ? (T)(A << (B & (8 * sizeof(T) - 1))) : (T)0)
#define SHR_U(T) (B < 8 * sizeof(T) ? (T)(A >> (B & (8 * sizeof(T) - 1))) : (T)0)
#define SHR_S(T) ((T)(A >> (B < 8 * sizeof(T) ? B : 8 * sizeof(T) - 1)))
#define SHIFT(name, T, expr) HANDLER2(name##_##T, T, T, u32, expr)
SHIFT(shl, u16, SHL(u16)) SHIFT(shl, u32, SHL(u32)) SHIFT(shl, u64, SHL(u64)) BY_WIDTH(shl)
SHIFT(shr, u16, SHR_U(u16)) SHIFT(shr, s16, SHR_S(s16)) SHIFT(shr, u32, SHR_U(u32))
SHIFT(shr, s32, SHR_S(s32)) SHIFT(shr, u64, SHR_U(u64)) SHIFT(shr, s64, SHR_S(s64)) BY_SIGN(shr)
/* clang-format on */

/* a is the lower word, b the upper; more than 32 is 32 (clamp) or counts from 0 again (wrap). */
static inline u32 funnel_left(u32 lo, u32 hi, u32 n)
{
	return (u32)((((u64)hi << 32 | lo) << n) >> 32);
}

static inline u32 funnel_right(u32 lo, u32 hi, u32 n)
{
	return (u32)(((u64)hi << 32 | lo) >> n);
}

#define CLAMP32(n) ((n) < 32 ? (n) : 32)
HANDLER3(shf_l_wrap, u32, u32, u32, u32, funnel_left(A, B, C & 31))
HANDLER3(shf_r_wrap, u32, u32, u32, u32, funnel_right(A, B, C & 31))
HANDLER3(shf_l_clamp, u32, u32, u32, u32, funnel_left(A, B, CLAMP32(C)))
HANDLER3(shf_r_clamp, u32, u32, u32, u32, funnel_right(A, B, CLAMP32(C)))

/* ---- counting and fields ---------------------------------------------------------------------- */

static inline u32 reverse32(u32 v)
{
	v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
	v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(v);
}

static inline u64 reverse64(u64 v)
{
	return (u64)reverse32((u32)v) << 32 | reverse32((u32)(v >> 32));
}

HANDLER1(popc_32, u32, u32, (u32)__builtin_popcount(A))
HANDLER1(popc_64, u32, u64, (u32)__builtin_popcountll(A))
HANDLER1(clz_32, u32, u32, A ? (u32)__builtin_clz(A) : 32)
HANDLER1(clz_64, u32, u64, A ? (u32)__builtin_clzll(A) : 64)
HANDLER1(brev_32, u32, u32, reverse32(A))
HANDLER1(brev_64, u64, u64, reverse64(A))

/* The highest bit that differs from the sign; all ones if none does. */
static inline u32 find_bit(u64 v, u32 width, bool is_signed, bool shift_amount)
{
	u32 at;

	if (is_signed && v >> (width - 1) & 1)
		v = ~v;
	if (width == 32)
		v = (u32)v;
	if (!v)
		return UINT32_MAX;
	at = 63 - (u32)__builtin_clzll(v);
	return shift_amount ? width - 1 - at : at;
}

HANDLER1(bfind_u32, u32, u32, find_bit(A, 32, false, false))
HANDLER1(bfind_s32, u32, u32, find_bit(A, 32, true, false))
HANDLER1(bfind_u64, u32, u64, find_bit(A, 64, false, false))
HANDLER1(bfind_s64, u32, u64, find_bit(A, 64, true, false))
HANDLER1(bfind_shift_u32, u32, u32, find_bit(A, 32, false, true))
HANDLER1(bfind_shift_s32, u32, u32, find_bit(A, 32, true, true))
HANDLER1(bfind_shift_u64, u32, u64, find_bit(A, 64, false, true))
HANDLER1(bfind_shift_s64, u32, u64, find_bit(A, 64, true, true))

/* The place of the n-th set bit from base on: upwards, downwards if n < 0; n = 0 asks for base. */
static inline u32 find_nth(u32 v, u32 base, s32 n)
{
	s32 step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;

	if (!n)
		return base < 32 && v >> base & 1 ? base : UINT32_MAX;
	for (s64 at = base; at >= 0 && at < 32; at += step) {
		if ((v >> at & 1) && --left == 0)
			return (u32)at;
	}
	return UINT32_MAX;
}

/* clang-format off */
HANDLER3(fns, u32, u32, u32, s32, find_nth(A, B, C < -32 ? -33 : C > 32 ? 33 : C))
/* clang-format on */

/* Bits from pos on, len of them; what is above the value counts as its sign (or as 0). */
static inline u64 extract(u64 v, u32 pos, u32 len, u32 width, bool is_signed)
{
	u32 top = width - 1;
	u64 sign = 0, r;

	pos &= 0xff;
	len &= 0xff;
	if (is_signed && len) {
		u32 at = pos + len - 1 < top ? pos + len - 1 : top;

		sign = v >> at & 1;
	}
	r = pos > top ? 0 : v >> pos;
	if (pos + len > width)
		len = pos > top ? 0 : width - pos;
	if (len < 64)
		r &= (UINT64_C(1) << len) - 1;
	return sign && len < 64 ? r | ~UINT64_C(0) << len : r;
}

HANDLER3(bfe_u32, u32, u32, u32, u32, (u32)extract(A, B, C, 32, false))
HANDLER3(bfe_s32, u32, u32, u32, u32, (u32)extract(A, B, C, 32, true))
HANDLER3(bfe_u64, u64, u64, u32, u32, extract(A, B, C, 64, false))
HANDLER3(bfe_s64, u64, u64, u32, u32, extract(A, B, C, 64, true))

static inline u64 insert(u64 a, u64 into, u32 pos, u32 len, u32 width)
{
	u64 field;

	pos &= 0xff;
	len &= 0xff;
	if (pos >= width || !len)
		return into;
	field = len < 64 ? (UINT64_C(1) << len) - 1 : UINT64_MAX;
	field <<= pos;
	return (into & ~field) | (a << pos & field);
}

#define BFI(name, T)                                                                               \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		const u32 *len = operand(w, in->op[4]), *c = operand(w, in->op[3]);                \
		const T *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);                    \
		T *d = operand(w, in->op[0]);                                                      \
                                                                                                   \
		SET_LANES(T, d, (T)insert(A, B, C, len[l], 8 * sizeof(T)));                        \
		return RUN_ON;                                                                     \
	}
BFI(bfi_32, u32)
BFI(bfi_64, u64)

/* Extends from bit n - 1; wrap takes n modulo 32, clamp takes anything above as 32. */
static inline u32 extend_from(u32 v, u32 n, bool is_signed)
{
	if (n == 0)
		return 0;
	if (n >= 32)
		return v;
	return is_signed ? (u32)((s32)(v << (32 - n)) >> (32 - n)) : v & ((1u << n) - 1);
}

HANDLER2(szext_wrap_u32, u32, u32, u32, extend_from(A, B & 31, false))
HANDLER2(szext_wrap_s32, u32, u32, u32, extend_from(A, B & 31, true))
HANDLER2(szext_clamp_u32, u32, u32, u32, extend_from(A, B, false))
HANDLER2(szext_clamp_s32, u32, u32, u32, extend_from(A, B, true))

/* b ones from bit a on */
static inline u32 ones_from(u32 a, u32 b)
{
	return a >= 32 ? 0 : (u32)((UINT64_C(1) << (b < 32 ? b : 32)) - 1) << a;
}

HANDLER2(bmsk_clamp, u32, u32, u32, ones_from(A, B))
HANDLER2(bmsk_wrap, u32, u32, u32, ones_from(A & 31, B & 31))

/* ---- permutations ----------------------------------------------------------------------------- */

/* Each nibble of the selector chooses one of the 8 bytes of b:a; its bit 3 spreads the sign. */
static inline u32 permute(u32 a, u32 b, u32 selector)
{
	u64 bytes = (u64)b << 32 | a;
	u32 r = 0;

	for (int i = 0; i < 4; i++) {
		u32 nibble = selector >> (4 * i) & 15;
		u32 byte = (u32)(bytes >> (8 * (nibble & 7))) & 0xff;

		if (nibble & 8)
			byte = byte & 0x80 ? 0xff : 0;
		r |= byte << (8 * i);
	}
	return r;
}

/* The modes with names choose by the selector's two lower bits: these four selectors. */
static const u16 permute_modes[][4] = {
	[PTX_MODE_F4E - PTX_MODE_F4E] = { 0x3210, 0x4321, 0x5432, 0x6543 },
	[PTX_MODE_B4E - PTX_MODE_F4E] = { 0x5670, 0x6701, 0x7012, 0x0123 },
	[PTX_MODE_RC8 - PTX_MODE_F4E] = { 0x0000, 0x1111, 0x2222, 0x3333 },
	[PTX_MODE_ECL - PTX_MODE_F4E] = { 0x3210, 0x3211, 0x3222, 0x3333 },
	[PTX_MODE_ECR - PTX_MODE_F4E] = { 0x0000, 0x1110, 0x2210, 0x3210 },
	[PTX_MODE_RC16 - PTX_MODE_F4E] = { 0x1010, 0x3232, 0x1010, 0x3232 },
};

HANDLER3(prmt, u32, u32, u32, u32, permute(A, B, C))
HANDLER3(prmt_mode, u32, u32, u32, u32,
	 permute(A, B, permute_modes[in->mode - PTX_MODE_F4E][C & 3]))

/* ---- selections ------------------------------------------------------------------------------- */

/* clang-format off */
#define SELP(T)                                                                                    \
	static int selp_##T(struct warp *w, const struct insn *in, u32 mask)                       \
	{                                                                                          \
		u32 p = predicate(w, in->op[3]) ^ (in->flags & INSN_NEG_PRED ? ALL_LANES : 0);     \
		const T *a = operand(w, in->op[1]), *b = operand(w, in->op[2]);                    \
		T *d = operand(w, in->op[0]);                                                      \
                                                                                                   \
		SET_LANES(T, d, p >> l & 1 ? A : B);                                               \
		return RUN_ON;                                                                     \
	}
SELP(u16) SELP(u32) SELP(u64) BY_WIDTH(selp)

#define SLCT(suffix, T)                                                                            \
	HANDLER3(slct_s32_##suffix, T, T, T, s32, C >= 0 ? A : B)                                  \
	HANDLER3(slct_f32_##suffix, T, T, T, f32, C >= 0 ? A : B)
SLCT(u16, u16)
SLCT(u32, u32)
SLCT(u64, u64)
BY_WIDTH(slct_s32)
BY_WIDTH(slct_f32)
/* clang-format on */

/* Types of floats as those of bits: a selection or a move does not care. */
static enum ptx_type bits_of(enum ptx_type type)
{
	switch (ptx_type_bytes(type)) {
	case 2:
		return PTX_B16;
	case 8:
		return PTX_B64;
	default:
		return PTX_B32;
	}
}

/* ---- pack and unpack: mov with braces --------------------------------------------------------- */

/* in->vec parts of in->bytes each; the whole is a register of vec * bytes. */
static int pack(struct warp *w, const struct insn *in, u32 mask)
{
	u32 n = in->vec, bytes = in->bytes, lane_bytes = bytes == 1 ? 2 : bytes;
	u8 *d = operand(w, in->op[0]);

	/* Lane by lane through a buffer, as the result may be wider than any integer. */
	FOR_LANES(l, mask) {
		u8 whole[16];

		for (u32 i = 0; i < n; i++)
			memcpy(whole + i * bytes, (u8 *)operand(w, in->op[1 + i]) + l * lane_bytes,
			       bytes);
		memcpy(d + l * n * bytes, whole, n * bytes);
	}
	return RUN_ON;
}

static int unpack(struct warp *w, const struct insn *in, u32 mask)
{
	u32 n = in->vec, bytes = in->bytes, lane_bytes = bytes == 1 ? 2 : bytes;
	const u8 *a = operand(w, in->op[n]);

	FOR_LANES(l, mask) {
		u8 whole[16];

		memcpy(whole, a + l * n * bytes, n * bytes);
		for (u32 i = 0; i < n; i++)
			memcpy((u8 *)operand(w, in->op[i]) + l * lane_bytes, whole + i * bytes,
			       bytes);
	}
	return RUN_ON;
}

/* The pairs that programs are full of: two halves of 32 bits, two words of 64. */
HANDLER2(pack_2x16, u32, u16, u16, A | (u32)B << 16)
HANDLER2(pack_2x32, u64, u32, u32, A | (u64)B << 32)

#define UNPACK2(name, T, W)                                                                        \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		T *lo = operand(w, in->op[0]), *hi = operand(w, in->op[1]);                        \
		W a[LANES];                                                                        \
                                                                                                   \
		memcpy(a, operand(w, in->op[2]), sizeof(a));                                       \
		SET_LANES(T, lo, (T)A);                                                            \
		SET_LANES(T, hi, (T)(A >> (8 * sizeof(T))));                                       \
		return RUN_ON;                                                                     \
	}
UNPACK2(unpack_2x16, u16, u32)
UNPACK2(unpack_2x32, u32, u64)

static exec_fn *find_pack(const struct ptx_insn *in)
{
	u32 bytes = ptx_type_bytes(in->stype), n = in->n_ops - 1u;
	bool is_pack = in->op == PTX_OP_PACK;

	if (n == 2 && bytes == 2)
		return is_pack ? pack_2x16 : unpack_2x16;
	if (n == 2 && bytes == 4)
		return is_pack ? pack_2x32 : unpack_2x32;
	return is_pack ? pack : unpack;
}

/* ---- widths ----------------------------------------------------------------------------------- */

/*
 * The decoder puts these between an instruction and a register that is wider
 * than its type: (width of the register, type).
 */
HANDLER1(narrow_32_16, u16, u32, (u16)A)
HANDLER1(narrow_64_16, u16, u64, (u16)A)
HANDLER1(narrow_64_32, u32, u64, (u32)A)
HANDLER1(zero_32_16, u32, u16, A)
HANDLER1(zero_64_16, u64, u16, A)
HANDLER1(zero_64_32, u64, u32, A)
HANDLER1(sign_32_16, u32, s16, (u32)A)
HANDLER1(sign_64_16, u64, s16, (u64)A)
HANDLER1(sign_64_32, u64, s32, (u64)A)
HANDLER1(zero_16_8, u16, u16, A & 0xff)
HANDLER1(sign_16_8, u16, u16, (u16)(s8)A)

exec_fn *PER_ISA(find_narrow)(u32 from_bytes, u32 to_bytes)
{
	if (to_bytes == 4)
		return narrow_64_32;
	return from_bytes == 4 ? narrow_32_16 : narrow_64_16;
}

exec_fn *PER_ISA(find_widen)(u32 from_bytes, u32 to_bytes, bool is_signed)
{
	if (from_bytes == 1)
		return is_signed ? sign_16_8 : zero_16_8;
	if (from_bytes == 4)
		return is_signed ? sign_64_32 : zero_64_32;
	if (to_bytes == 4)
		return is_signed ? sign_32_16 : zero_32_16;
	return is_signed ? sign_64_16 : zero_64_16;
}

/* ---- which handler ---------------------------------------------------------------------------- */

static exec_fn *find_logic(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_AND:
		return in->type == PTX_PRED ? and_pred : and_by_type[in->type];
	case PTX_OP_OR:
		return in->type == PTX_PRED ? or_pred : or_by_type[in->type];
	case PTX_OP_XOR:
		return in->type == PTX_PRED ? xor_pred : xor_by_type[in->type];
	default:
		return in->type == PTX_PRED ? not_pred : not_by_type[in->type];
	}
}

static exec_fn *find_bit_search(const struct ptx_insn *in)
{
	bool wide = ptx_type_bytes(in->type) == 8, is_signed = ptx_type_kind(in->type) == 's';

	if (in->flags & PTX_F_SHIFTAMT) {
		if (is_signed)
			return wide ? bfind_shift_s64 : bfind_shift_s32;
		return wide ? bfind_shift_u64 : bfind_shift_u32;
	}
	if (is_signed)
		return wide ? bfind_s64 : bfind_s32;
	return wide ? bfind_u64 : bfind_u32;
}

static exec_fn *find_field(const struct ptx_insn *in)
{
	bool wide = ptx_type_bytes(in->type) == 8, is_signed = ptx_type_kind(in->type) == 's';
	bool wrap = in->flags & PTX_F_WRAP;

	switch (in->op) {
	case PTX_OP_BFE:
		if (is_signed)
			return wide ? bfe_s64 : bfe_s32;
		return wide ? bfe_u64 : bfe_u32;
	case PTX_OP_BFI:
		return wide ? bfi_64 : bfi_32;
	case PTX_OP_SZEXT:
		if (is_signed)
			return wrap ? szext_wrap_s32 : szext_clamp_s32;
		return wrap ? szext_wrap_u32 : szext_clamp_u32;
	default:
		return wrap ? bmsk_wrap : bmsk_clamp;
	}
}

static exec_fn *find_shift(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_SHL:
		return shl_by_type[in->type];
	case PTX_OP_SHR:
		return shr_by_type[in->type];
	default:
		if (in->mode == PTX_MODE_L)
			return in->flags & PTX_F_WRAP ? shf_l_wrap : shf_l_clamp;
		return in->flags & PTX_F_WRAP ? shf_r_wrap : shf_r_clamp;
	}
}

static exec_fn *find_mov(const struct ptx_insn *in)
{
	if (in->type == PTX_PRED)
		return mov_pred;
	return in->type == PTX_B128 ? mov_b128 : mov_by_type[bits_of(in->type)];
}

exec_fn *PER_ISA(find_bits)(const struct ptx_insn *in)
{
	bool wide = ptx_type_bytes(in->type) == 8;

	switch (in->op) {
	case PTX_OP_AND:
	case PTX_OP_OR:
	case PTX_OP_XOR:
	case PTX_OP_NOT:
		return find_logic(in);
	case PTX_OP_CNOT:
		return cnot_by_type[in->type];
	case PTX_OP_LOP3:
		return lop3;
	case PTX_OP_SHL:
	case PTX_OP_SHR:
	case PTX_OP_SHF:
		return find_shift(in);
	case PTX_OP_POPC:
		return wide ? popc_64 : popc_32;
	case PTX_OP_CLZ:
		return wide ? clz_64 : clz_32;
	case PTX_OP_BREV:
		return wide ? brev_64 : brev_32;
	case PTX_OP_BFIND:
		return find_bit_search(in);
	case PTX_OP_FNS:
		return fns;
	case PTX_OP_BFE:
	case PTX_OP_BFI:
	case PTX_OP_SZEXT:
	case PTX_OP_BMSK:
		return find_field(in);
	case PTX_OP_PRMT:
		return in->mode ? prmt_mode : prmt;
	case PTX_OP_SELP:
		return selp_by_type[bits_of(in->type)];
	case PTX_OP_SLCT:
		return in->stype == PTX_F32 ? slct_f32_by_type[bits_of(in->type)]
					    : slct_s32_by_type[bits_of(in->type)];
	case PTX_OP_MOV:
		return find_mov(in);
	case PTX_OP_PACK:
	case PTX_OP_UNPACK:
		return find_pack(in);
	default:
		return NULL;
	}
}
