/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations: those of the host, as other blocks, other kernels and
 * other processes may work on the same memory. Lanes go one after the other.
 */
#include "softgpu/exec/access.h"
#include "softgpu/exec/half.h"

/* op[0] address, op[1] the old value, op[2] b, op[3] c. Of red nobody reads op[1]. */
#define ATOM(name, T, make)                                                                        \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		T *d = operand(w, in->op[1]);                                                      \
		const T *b = operand(w, in->op[2]);                                                \
		struct access at;                                                                  \
                                                                                                   \
		access_resolve(w, in, mask, sizeof(T), /* write= */ true, &at);                    \
		FOR_LANES(l, mask) {                                                               \
			T *p = (T *)at.p[l];                                                       \
			T v = b[l];                                                                \
                                                                                                   \
			d[l] = make;                                                               \
		}                                                                                  \
		access_charge_poll(w);                                                             \
		return RUN_ON;                                                                     \
	}
ATOM(atom_add_u32, u32, __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_add_u64, u64, __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_and_u32, u32, __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_and_u64, u64, __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_or_u32, u32, __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_or_u64, u64, __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_xor_u32, u32, __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_xor_u64, u64, __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_exch_u32, u32, __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))
ATOM(atom_exch_u64, u64, __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))

/* What the host has no instruction for: try until nobody else was in between. */
#define ATOM_LOOP(name, T, expr)                                                                   \
	static inline T name##_one(T *p, T b)                                                      \
	{                                                                                          \
		T old = __atomic_load_n(p, __ATOMIC_RELAXED), a, next;                             \
                                                                                                   \
		do {                                                                               \
			a = old;                                                                   \
			next = (T)(expr);                                                          \
		} while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST,      \
						      __ATOMIC_RELAXED));                          \
		return old;                                                                        \
	}                                                                                          \
	ATOM(name, T, name##_one(p, v))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
ATOM_LOOP(atom_min_u32, u32, MIN(a, b))
ATOM_LOOP(atom_min_s32, s32, MIN(a, b))
ATOM_LOOP(atom_min_u64, u64, MIN(a, b))
ATOM_LOOP(atom_min_s64, s64, MIN(a, b))
ATOM_LOOP(atom_max_u32, u32, MAX(a, b))
ATOM_LOOP(atom_max_s32, s32, MAX(a, b))
ATOM_LOOP(atom_max_u64, u64, MAX(a, b))
ATOM_LOOP(atom_max_s64, s64, MAX(a, b))
ATOM_LOOP(atom_inc_u32, u32, a >= b ? 0 : a + 1)
ATOM_LOOP(atom_dec_u32, u32, a == 0 || a > b ? b : a - 1)

/* Sums of floats, on their bits. */
static inline u32 sum_f32(u32 a, u32 b)
{
	f32 x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&a, &x, sizeof(a));
	return x != x ? 0x7fffffff : a;
}

static inline u64 sum_f64(u64 a, u64 b)
{
	f64 x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	/* The first NaN, as add.f64 has it. */
	if (x != x)
		return a | UINT64_C(1) << 51;
	x += y;
	memcpy(&a, &x, sizeof(a));
	return a;
}

static inline u16 sum_f16(u16 a, u16 b)
{
	return half_from_float(half_to_float(a) + half_to_float(b));
}

static inline u16 sum_bf16(u16 a, u16 b)
{
	return bfloat_from_float(bfloat_to_float(a) + bfloat_to_float(b));
}

#define TWICE(sum, a, b)                                                                           \
	(sum((u16)(a), (u16)(b)) | (u32)sum((u16)((a) >> 16), (u16)((b) >> 16)) << 16)
ATOM_LOOP(atom_add_f32, u32, sum_f32(a, b))
ATOM_LOOP(atom_add_f64, u64, sum_f64(a, b))
ATOM_LOOP(atom_add_f16, u16, sum_f16(a, b))
ATOM_LOOP(atom_add_bf16, u16, sum_bf16(a, b))
ATOM_LOOP(atom_add_f16x2, u32, TWICE(sum_f16, a, b))
ATOM_LOOP(atom_add_bf16x2, u32, TWICE(sum_bf16, a, b))

#define CAS(name, T)                                                                               \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		T *d = operand(w, in->op[1]);                                                      \
		const T *b = operand(w, in->op[2]), *c = operand(w, in->op[3]);                    \
		struct access at;                                                                  \
                                                                                                   \
		access_resolve(w, in, mask, sizeof(T), /* write= */ true, &at);                    \
		FOR_LANES(l, mask) {                                                               \
			T old = b[l];                                                              \
                                                                                                   \
			__atomic_compare_exchange_n((T *)at.p[l], &old, c[l], false,               \
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
			d[l] = old;                                                                \
		}                                                                                  \
		access_charge_poll(w);                                                             \
		return RUN_ON;                                                                     \
	}
CAS(atom_cas_u16, u16)
CAS(atom_cas_u32, u32)
CAS(atom_cas_u64, u64)

/* 16 bytes: every x86-64 but the first few has the instruction, but compilers go to a library. */
static u128 swap_u128(u128 *p, u128 old, u128 next)
{
	u64 low = (u64)old, high = (u64)(old >> 64);

	__asm__ volatile("lock cmpxchg16b %2"
			 : "+a"(low), "+d"(high), "+m"(*p)
			 : "b"((u64)next), "c"((u64)(next >> 64))
			 : "cc", "memory");
	return (u128)high << 64 | low;
}

static u128 exchange_u128(u128 *p, u128 next)
{
	u128 old = *(volatile u128 *)p, seen;

	while ((seen = swap_u128(p, old, next)) != old)
		old = seen;
	return old;
}
ATOM(atom_exch_u128, u128, exchange_u128(p, v))

static int atom_cas_u128(struct warp *w, const struct insn *in, u32 mask)
{
	u128 *d = operand(w, in->op[1]);
	const u128 *b = operand(w, in->op[2]), *c = operand(w, in->op[3]);
	struct access at;

	access_resolve(w, in, mask, sizeof(u128), /* write= */ true, &at);
	FOR_LANES(l, mask)
		d[l] = swap_u128((u128 *)at.p[l], b[l], c[l]);
	access_charge_poll(w);
	return RUN_ON;
}

/* ---- which handler ----------------------------------------------------------------------------- */

static exec_fn *find_atom_add(enum ptx_type type)
{
	switch (type) {
	case PTX_F32:
		return atom_add_f32;
	case PTX_F64:
		return atom_add_f64;
	case PTX_F16:
		return atom_add_f16;
	case PTX_BF16:
		return atom_add_bf16;
	case PTX_F16X2:
		return atom_add_f16x2;
	case PTX_BF16X2:
		return atom_add_bf16x2;
	default:
		return ptx_type_bytes(type) == 8 ? atom_add_u64 : atom_add_u32;
	}
}

static exec_fn *find_atom_exch(enum ptx_type type, bool cas)
{
	switch (ptx_type_bytes(type)) {
	case 2:
		return cas ? atom_cas_u16 : NULL;
	case 4:
		return cas ? atom_cas_u32 : atom_exch_u32;
	case 8:
		return cas ? atom_cas_u64 : atom_exch_u64;
	default:
		return cas ? atom_cas_u128 : atom_exch_u128;
	}
}

exec_fn *find_atom(const struct ptx_insn *in)
{
	bool wide = ptx_type_bytes(in->type) == 8, is_signed = ptx_type_kind(in->type) == 's';

	switch (in->bop) {
	case PTX_BOP_ADD:
		return find_atom_add(in->type);
	case PTX_BOP_AND:
		return wide ? atom_and_u64 : atom_and_u32;
	case PTX_BOP_OR:
		return wide ? atom_or_u64 : atom_or_u32;
	case PTX_BOP_XOR:
		return wide ? atom_xor_u64 : atom_xor_u32;
	case PTX_BOP_MIN:
		if (is_signed)
			return wide ? atom_min_s64 : atom_min_s32;
		return wide ? atom_min_u64 : atom_min_u32;
	case PTX_BOP_MAX:
		if (is_signed)
			return wide ? atom_max_s64 : atom_max_s32;
		return wide ? atom_max_u64 : atom_max_u32;
	case PTX_BOP_INC:
		return atom_inc_u32;
	case PTX_BOP_DEC:
		return atom_dec_u32;
	case PTX_BOP_EXCH:
	case PTX_BOP_CAS:
		return find_atom_exch(in->type, in->bop == PTX_BOP_CAS);
	default:
		return NULL;
	}
}
