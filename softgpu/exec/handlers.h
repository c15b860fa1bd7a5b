/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Macros that make handlers, and the tables that find them by type.
 *
 * A handler's expression speaks of its operands' lanes as A, B and C.
 */
#ifndef SOFTGPU_EXEC_HANDLERS_H
#define SOFTGPU_EXEC_HANDLERS_H

#include "softgpu/exec/machine.h"

#define A a[l]
#define B b[l]
#define C c[l]

/* d, a, b, c have types TD, TA, TB, TC; results that are not there have no lane loop. */
#define HANDLER3(name, TD, TA, TB, TC, expr)                                                       \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		TD *d = operand(w, in->op[0]);                                                     \
		const TA *a = operand(w, in->op[1]);                                               \
		const TB *b = operand(w, in->op[2]);                                               \
		const TC *c = operand(w, in->op[3]);                                               \
                                                                                                   \
		SET_LANES(TD, d, expr);                                                            \
		return RUN_ON;                                                                     \
	}
#define HANDLER2(name, TD, TA, TB, expr)                                                           \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		TD *d = operand(w, in->op[0]);                                                     \
		const TA *a = operand(w, in->op[1]);                                               \
		const TB *b = operand(w, in->op[2]);                                               \
                                                                                                   \
		SET_LANES(TD, d, expr);                                                            \
		return RUN_ON;                                                                     \
	}
#define HANDLER1(name, TD, TA, expr)                                                               \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		TD *d = operand(w, in->op[0]);                                                     \
		const TA *a = operand(w, in->op[1]);                                               \
                                                                                                   \
		SET_LANES(TD, d, expr);                                                            \
		return RUN_ON;                                                                     \
	}

/* Tables by enum ptx_type: where only the width matters, and where the sign does. */
#define BY_WIDTH(name)                                                                             \
	static exec_fn *const name##_by_type[PTX_N_TYPES] = {                                      \
		[PTX_B16] = name##_u16, [PTX_U16] = name##_u16, [PTX_S16] = name##_u16,            \
		[PTX_B32] = name##_u32, [PTX_U32] = name##_u32, [PTX_S32] = name##_u32,            \
		[PTX_B64] = name##_u64, [PTX_U64] = name##_u64, [PTX_S64] = name##_u64,            \
	};
#define BY_SIGN(name)                                                                              \
	static exec_fn *const name##_by_type[PTX_N_TYPES] = {                                      \
		[PTX_B16] = name##_u16, [PTX_U16] = name##_u16, [PTX_S16] = name##_s16,            \
		[PTX_B32] = name##_u32, [PTX_U32] = name##_u32, [PTX_S32] = name##_s32,            \
		[PTX_B64] = name##_u64, [PTX_U64] = name##_u64, [PTX_S64] = name##_s64,            \
	};

/* All operands of one type; @make is WITH1, WITH2 or WITH3. */
#define WITH1(name, T, expr) HANDLER1(name##_##T, T, T, expr)
#define WITH2(name, T, expr) HANDLER2(name##_##T, T, T, T, expr)
#define WITH3(name, T, expr) HANDLER3(name##_##T, T, T, T, T, expr)
#define EVERY_WIDTH(make, name, expr)                                                              \
	make(name, u16, expr) make(name, u32, expr) make(name, u64, expr) BY_WIDTH(name)
#define EVERY_SIGN(make, name, expr)                                                               \
	make(name, u16, expr) make(name, s16, expr) make(name, u32, expr) make(name, s32, expr)    \
		make(name, u64, expr) make(name, s64, expr) BY_SIGN(name)

/*
 * A comparison's result: p and q of setp, joined with c as the instruction
 * says. Without a word to join by, c is not looked at.
 */
static inline int set_predicates(struct warp *w, const struct insn *in, u32 mask, u32 bits)
{
	u32 p = bits, q = ~bits;

	if (in->bop) {
		u32 c = predicate(w, in->op[4]);

		if (in->flags & INSN_NEG_PRED)
			c = ~c;
		p = in->bop == PTX_BOP_AND ? p & c : in->bop == PTX_BOP_OR ? p | c : p ^ c;
		q = in->bop == PTX_BOP_AND ? q & c : in->bop == PTX_BOP_OR ? q | c : q ^ c;
	}
	predicate_set(w, in->op[1], mask, q);
	predicate_set(w, in->op[0], mask, p);
	return RUN_ON;
}

#define COMPARE(name, T, expr)                                                                     \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		const T *a = operand(w, in->op[2]), *b = operand(w, in->op[3]);                    \
		s8 t[LANES];                                                                       \
                                                                                                   \
		LANE_LOOP t[l] = (expr) ? -1 : 0;                                                  \
		return set_predicates(w, in, mask, lanes_pack(t));                                 \
	}

/*
 * What each file of handlers gives: the handler of a parsed instruction, or
 * NULL if it is not in that file. Types are those of the instruction.
 */
exec_fn *PER_ISA(find_int)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_bits)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_float)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_half)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_cvt)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_mem)(const struct ptx_insn *in, bool absolute);

/* Between registers and narrower types (decode.c). */
exec_fn *PER_ISA(find_narrow)(u32 from_bytes, u32 to_bytes);
exec_fn *PER_ISA(find_widen)(u32 from_bytes, u32 to_bytes, bool is_signed);
exec_fn *PER_ISA(find_float_clamp)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_half_clamp)(const struct ptx_insn *in);
exec_fn *PER_ISA(find_flush)(enum ptx_type type);
exec_fn PER_ISA(with_control);
void PER_ISA(warp_loop)(struct warp *w);

#endif
