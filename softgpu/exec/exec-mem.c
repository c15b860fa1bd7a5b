/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores, prefetches and asynchronous copies.
 *
 * Ordinary memory is memory: x86 keeps loads in order and stores in order,
 * which is what acquire and release ask for; only fences for sequential
 * consistency need an instruction of their own.
 */
#include "softgpu/exec/access.h"
#include "softgpu/exec/handlers.h"

/* M is what lies in memory, R a lane of the register, which may be wider. */
#define LOAD(name, M, R)                                                                           \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		struct access at;                                                                  \
                                                                                                   \
		access_resolve(w, in, mask, sizeof(M) * in->vec, /* write= */ false, &at);         \
		for (u32 e = 0; e < in->vec; e++) {                                                \
			R *d = operand(w, in->op[1 + e]);                                          \
                                                                                                   \
			if (at.shape == ACCESS_UNIFORM) {                                          \
				M v = ((volatile M *)at.base)[e];                                  \
                                                                                                   \
				SET_LANES(R, d, (R)v);                                             \
			} else if (at.shape == ACCESS_CONTIGUOUS && in->vec == 1) {                \
				const M *m = (const M *)at.base;                                   \
                                                                                                   \
				LANE_LOOP d[l] = (R)m[l];                                          \
			} else {                                                                   \
				FOR_LANES(l, mask)                                                 \
					d[l] = (R)((volatile M *)at.p[l])[e];                      \
			}                                                                          \
		}                                                                                  \
		if (in->sem > PTX_SEM_WEAK)                                                        \
			access_charge_poll(w);                                                     \
		return RUN_ON;                                                                     \
	}

#define STORE(name, M, R)                                                                          \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		struct access at;                                                                  \
                                                                                                   \
		if (in->sem == PTX_SEM_SC)                                                         \
			__atomic_thread_fence(__ATOMIC_SEQ_CST);                                   \
		access_resolve(w, in, mask, sizeof(M) * in->vec, /* write= */ true, &at);          \
		for (u32 e = 0; e < in->vec; e++) {                                                \
			const R *a = operand(w, in->op[1 + e]);                                    \
                                                                                                   \
			if (at.shape == ACCESS_CONTIGUOUS && in->vec == 1) {                       \
				M *m = (M *)at.base;                                               \
                                                                                                   \
				LANE_LOOP m[l] = (M)A;                                             \
			} else {                                                                   \
				FOR_LANES(l, mask)                                                 \
					((volatile M *)at.p[l])[e] = (M)A;                         \
			}                                                                          \
		}                                                                                  \
		return RUN_ON;                                                                     \
	}

LOAD(load_u8, u8, u16)
LOAD(load_s8, s8, u16)
LOAD(load_16, u16, u16)
LOAD(load_32, u32, u32)
LOAD(load_64, u64, u64)
LOAD(load_128, u128, u128)
STORE(store_8, u8, u16)
STORE(store_16, u16, u16)
STORE(store_32, u32, u32)
STORE(store_64, u64, u64)
STORE(store_128, u128, u128)

/*
 * Vectors of strong loads and stores, and words of 128 bits, a lane at once: whoever hands over a
 * flag beside its value looks for both in one access. Elements at a time, another worker could
 * come in between. An aligned access of 16 bytes is one on every x86 with AVX.
 */
#define WHOLE_MAX 32

typedef u64 word_128 __attribute__((vector_size(16)));

#define COPY_ONCE(type, to, from) (*(volatile type *)(to) = *(const volatile type *)(from))

static inline void copy_whole(void *to, const void *from, u32 size)
{
	switch (size) {
	case 2:
		COPY_ONCE(u16, to, from);
		break;
	case 4:
		COPY_ONCE(u32, to, from);
		break;
	case 8:
		COPY_ONCE(u64, to, from);
		break;
	default:
		for (u32 at = 0; at < size; at += 16)
			COPY_ONCE(word_128, (u8 *)to + at, (const u8 *)from + at);
	}
}

#define LOAD_WHOLE(name, M, R)                                                                     \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		_Alignas(16) u8 words[LANES][WHOLE_MAX];                                           \
		u32 size = (u32)sizeof(M) * in->vec;                                               \
		struct access at;                                                                  \
                                                                                                   \
		access_resolve(w, in, mask, size, /* write= */ false, &at);                        \
		FOR_LANES(l, mask)                                                                 \
			copy_whole(words[l], at.p[l], size);                                       \
		for (u32 e = 0; e < in->vec; e++) {                                                \
			R *d = operand(w, in->op[1 + e]);                                          \
                                                                                                   \
			FOR_LANES(l, mask)                                                         \
				d[l] = (R)((const M *)words[l])[e];                                \
		}                                                                                  \
		access_charge_poll(w);                                                             \
		return RUN_ON;                                                                     \
	}

#define STORE_WHOLE(name, M, R)                                                                    \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		_Alignas(16) u8 words[LANES][WHOLE_MAX];                                           \
		u32 size = (u32)sizeof(M) * in->vec;                                               \
		struct access at;                                                                  \
                                                                                                   \
		if (in->sem == PTX_SEM_SC)                                                         \
			__atomic_thread_fence(__ATOMIC_SEQ_CST);                                   \
		access_resolve(w, in, mask, size, /* write= */ true, &at);                         \
		for (u32 e = 0; e < in->vec; e++) {                                                \
			const R *a = operand(w, in->op[1 + e]);                                    \
                                                                                                   \
			FOR_LANES(l, mask)                                                         \
				((M *)words[l])[e] = (M)A;                                         \
		}                                                                                  \
		FOR_LANES(l, mask)                                                                 \
			copy_whole(at.p[l], words[l], size);                                       \
		return RUN_ON;                                                                     \
	}

LOAD_WHOLE(whole_load_u8, u8, u16)
LOAD_WHOLE(whole_load_s8, s8, u16)
LOAD_WHOLE(whole_load_16, u16, u16)
LOAD_WHOLE(whole_load_32, u32, u32)
LOAD_WHOLE(whole_load_64, u64, u64)
LOAD_WHOLE(whole_load_128, u128, u128)
STORE_WHOLE(whole_store_8, u8, u16)
STORE_WHOLE(whole_store_16, u16, u16)
STORE_WHOLE(whole_store_32, u32, u32)
STORE_WHOLE(whole_store_64, u64, u64)
STORE_WHOLE(whole_store_128, u128, u128)

/* A kernel's parameter at a place that the text names: the same for every lane. */
#define LOAD_PARAM(name, M, R)                                                                     \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		const u8 *p = w->block->launch->params + in->imm;                                  \
                                                                                                   \
		for (u32 e = 0; e < in->vec; e++) {                                                \
			R *d = operand(w, in->op[1 + e]);                                          \
			M v;                                                                       \
                                                                                                   \
			memcpy(&v, p + e * sizeof(M), sizeof(M));                                  \
			SET_LANES(R, d, (R)v);                                                     \
		}                                                                                  \
		return RUN_ON;                                                                     \
	}
LOAD_PARAM(param_u8, u8, u16)
LOAD_PARAM(param_s8, s8, u16)
LOAD_PARAM(param_16, u16, u16)
LOAD_PARAM(param_32, u32, u32)
LOAD_PARAM(param_64, u64, u64)
LOAD_PARAM(param_128, u128, u128)

static int fence(_unused_ struct warp *w, _unused_ const struct insn *in, _unused_ u32 mask)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return RUN_ON;
}

static int nothing(_unused_ struct warp *w, _unused_ const struct insn *in, _unused_ u32 mask)
{
	return RUN_ON;
}

/*
 * cp.async: op[0] is the destination in shared memory, op[1] the source, its
 * offset in op[2], op[3] how many bytes to read; the rest is zeros. A lane that
 * reads nothing may point anywhere. Done at once, so that waiting for a group
 * is nothing.
 */
static int copy_async(struct warp *w, const struct insn *in, u32 mask)
{
	struct insn from = *in;
	struct access to, src;
	const u32 *n = operand(w, in->op[3]);
	u32 reading = 0;

	FOR_LANES(l, mask)
		reading |= (u32)(n[l] != 0) << l;
	access_resolve(w, in, mask, in->bytes, /* write= */ true, &to);
	from.op[0] = in->op[1];
	memcpy(&from.imm, operand(w, in->op[2]), sizeof(from.imm));
	from.space = PTX_SPACE_GLOBAL;
	from.flags = in->mode ? in->flags | INSN_WIDE_ADDRESS : in->flags & ~INSN_WIDE_ADDRESS;
	if (reading)
		access_resolve(w, &from, reading, in->bytes, /* write= */ false, &src);
	FOR_LANES(l, mask) {
		u32 size = n[l] < in->bytes ? n[l] : in->bytes;

		if (size)
			memcpy(to.p[l], src.p[l], size);
		memset(to.p[l] + size, 0, in->bytes - size);
	}
	return RUN_ON;
}

static exec_fn *find_load(const struct ptx_insn *in, bool absolute_param)
{
	switch (ptx_type_bytes(in->type)) {
	case 1:
		if (in->type == PTX_S8)
			return absolute_param ? param_s8 : load_s8;
		return absolute_param ? param_u8 : load_u8;
	case 2:
		return absolute_param ? param_16 : load_16;
	case 4:
		return absolute_param ? param_32 : load_32;
	case 8:
		return absolute_param ? param_64 : load_64;
	default:
		return absolute_param ? param_128 : load_128;
	}
}

static exec_fn *find_store(const struct ptx_insn *in)
{
	switch (ptx_type_bytes(in->type)) {
	case 1:
		return store_8;
	case 2:
		return store_16;
	case 4:
		return store_32;
	case 8:
		return store_64;
	default:
		return store_128;
	}
}

static exec_fn *find_whole_load(const struct ptx_insn *in)
{
	switch (ptx_type_bytes(in->type)) {
	case 1:
		return in->type == PTX_S8 ? whole_load_s8 : whole_load_u8;
	case 2:
		return whole_load_16;
	case 4:
		return whole_load_32;
	case 8:
		return whole_load_64;
	default:
		return whole_load_128;
	}
}

static exec_fn *find_whole_store(const struct ptx_insn *in)
{
	switch (ptx_type_bytes(in->type)) {
	case 1:
		return whole_store_8;
	case 2:
		return whole_store_16;
	case 4:
		return whole_store_32;
	case 8:
		return whole_store_64;
	default:
		return whole_store_128;
	}
}

exec_fn *PER_ISA(find_mem)(const struct ptx_insn *in, bool absolute)
{
	bool whole = access_is_whole(in->sem, in->vec, ptx_type_bytes(in->type));

	switch (in->op) {
	case PTX_OP_LD:
	case PTX_OP_LDU:
		return whole ? find_whole_load(in)
			     : find_load(in, absolute && in->space == PTX_SPACE_PARAM);
	case PTX_OP_ST:
		return whole ? find_whole_store(in) : find_store(in);
	case PTX_OP_MEMBAR:
	case PTX_OP_FENCE:
		return fence;
	case PTX_OP_CP_ASYNC:
		return in->mode ? nothing : copy_async;
	case PTX_OP_PREFETCH:
	case PTX_OP_PREFETCHU:
	case PTX_OP_APPLYPRIORITY:
	case PTX_OP_DISCARD:
	case PTX_OP_GRIDDEPCONTROL:
	case PTX_OP_SETMAXNREG:
	case PTX_OP_PMEVENT:
		return nothing;
	default:
		return NULL;
	}
}
