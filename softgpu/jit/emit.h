/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a planned unit to LLVM's form of it.
 *
 *	u32 kernel(struct warp *w, u8 *in, u8 *out, u64 *scalars, u32 entry, u32 mask, u32 stop)
 *
 * Registers are read from @in and written to @out, the frame or, for a mask that is not full, a copy
 * of which the caller takes the lanes of the mask. A fragment waits at instruction @stop. The result
 * is the number of an exit.
 */
#ifndef SOFTGPU_JIT_EMIT_H
#define SOFTGPU_JIT_EMIT_H

#include <llvm-c/Core.h>

#include "softgpu/jit/unit.h"
#include "softgpu/ptx/vec.h"

/* A register's value: a scalar that stands for all lanes, or a vector, or both. */
struct value {
	bool is_affine;
	bool raw;     /* f32: its NaNs are not settled yet (emit_settled()) */
	bool flushed; /* f32: there are no denormals */
	int64_t stride;
	LLVMValueRef scalar; /* of lane 0 */
	LLVMValueRef vector;
};

/* Bytes behind an address register that were found to be the kernel's. */
struct range {
	int64_t low, high, anchor; /* anchor + the register is aligned to size */
	uint32_t size;		   /* 0: nothing is known */
	uint8_t space;
	bool read, write;
};

/*
 * Where checks go that fail, which is rare: to an instruction before theirs. From there on the
 * interpreter does again what was done since, which changed nothing but registers.
 */
struct refuge {
	LLVMBasicBlockRef block; /* NULL: none */
	struct value *values;	 /* as they were */
	uint64_t *live;
};

#define N_ROOMS 4

#define NAN_F32 0x7fffffff /* there is one in f32 */

struct emit_piece {
	LLVMBasicBlockRef body;
	LLVMBasicBlockRef exit; /* NULL: nobody leaves at its start */
	LLVMValueRef *phis;	/* by place, of what is alive */
	LLVMValueRef *exit_phis;
};

struct emit {
	struct unit *u;
	LLVMContextRef ctx;
	LLVMModuleRef module;
	LLVMBuilderRef b;
	LLVMValueRef fn;
	LLVMTypeRef i1, i8, i16, i32, i64, ptr;

	/* of the function */
	LLVMValueRef warp, in, out, scalars, entry;
	LLVMValueRef mask, stop, n_lanes, executed; /* variables */
	LLVMValueRef slice_end;
	LLVMValueRef first; /* instruction: variables are made before it */
	LLVMValueRef block_ptr, launch_ptr, space, run;
	LLVMValueRef lanes_64, lanes_32; /* 0, 1, ... 31 */
	LLVMValueRef rooms[N_ROOMS];	 /* a vector each, for who looks at its lanes one by one */
	struct emit_piece *blocks;
	uint64_t *live; /* for a moment */

	/* of the block at hand */
	const struct piece *block;
	uint32_t at; /* instruction */
	struct value *values;
	struct range *ranges; /* by place of the address */
	struct kind *state;
	uint32_t counted; /* instructions since the count was brought up to date */
	struct refuge refuge;

	VEC(struct jit_exit, exits);
	VEC(struct jit_entry, entries);
	VEC(struct jit_value, outs);
	bool can_mask; /* AVX-512: lanes are left out of loads and stores, and roundings chosen */
	bool no_memory;
};

/* Makes the function in e->module; false: no memory. */
bool emit_function(struct emit *e);

/* ---- values -------------------------------------------------------------------------------------- */

LLVMTypeRef emit_type(struct emit *e, uint8_t cls, bool vector);
LLVMTypeRef emit_vector_of(struct emit *e, LLVMTypeRef type);

/* An operand of @cls; the first needs that it is the same in all lanes. */
LLVMValueRef emit_scalar(struct emit *e, uint32_t operand, uint8_t cls);
LLVMValueRef emit_vector(struct emit *e, uint32_t operand, uint8_t cls);
LLVMValueRef emit_operand(struct emit *e, uint32_t operand, uint8_t cls, bool vector);

/*
 * Arithmetic asks of an f32 whether it is NaN, never which: only who looks at its bits needs that a
 * NaN is the one that there is. So most results stay as they come. These are an operand as it came,
 * and bits of which each NaN is NAN_F32.
 */
LLVMValueRef emit_raw(struct emit *e, uint32_t operand, bool vector);
LLVMValueRef emit_settled(struct emit *e, LLVMValueRef bits);

LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar);
LLVMValueRef emit_int(struct emit *e, LLVMTypeRef type, uint64_t v);
LLVMValueRef emit_spread(struct emit *e, LLVMValueRef base, int64_t stride, LLVMTypeRef type);

/* The lanes that are here. */
LLVMValueRef emit_mask(struct emit *e);
LLVMValueRef emit_is_full(struct emit *e);

/* The first of them, as an index. */
LLVMValueRef emit_first_lane(struct emit *e);

/* The guard: bits of the lanes in the mask that take part. */
LLVMValueRef emit_guard_bits(struct emit *e, const struct jit_insn *in);

/* Sets a result, under the guard of the instruction. */
void emit_result(struct emit *e, const struct jit_insn *in, uint32_t operand, struct value v);

/* ---- memory and places ---------------------------------------------------------------------------- */

LLVMValueRef emit_at(struct emit *e, LLVMValueRef base, uint64_t offset);
LLVMValueRef emit_load(struct emit *e, LLVMTypeRef type, LLVMValueRef ptr, uint32_t align);
LLVMValueRef emit_fixed(struct emit *e, LLVMTypeRef type, LLVMValueRef base, uint64_t offset);
void emit_store(struct emit *e, LLVMValueRef value, LLVMValueRef ptr, uint32_t align);
LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, uint32_t n_types,
			    LLVMValueRef *args, uint32_t n_args);
/* A variable of 64 bits, which is 0 whenever compiled code is entered. */
LLVMValueRef emit_variable(struct emit *e);
LLVMBasicBlockRef emit_new_block(struct emit *e, const char *name);

/* ---- leaving: emit-leave.c ------------------------------------------------------------------------- */

/* The registers of a set that compiled code has. */
#define FOR_LIVE(u, set, p)                                                                        \
	for (uint32_t p = 0; p < (u)->n_places; p++)                                               \
		if (set_has(set, p) && (u)->places[p].cls != PTX_CLASS_Q)

/* Instructions since the last time are counted; those of lanes that are told apart. */
void emit_count_insns(struct emit *e);
void emit_count_lanes(struct emit *e, LLVMValueRef n);
LLVMValueRef emit_popcount(struct emit *e, LLVMValueRef bits);
LLVMValueRef emit_executed(struct emit *e);

/*
 * Ends the block at hand with an exit to instruction @pc that puts back what is alive in @live. Those
 * that come back to @entry at once, or JIT_NOT_KEPT, find it there.
 */
void emit_exit(struct emit *e, uint32_t pc, uint32_t entry, const uint64_t *live,
	       LLVMValueRef executed);

/* The same at this instruction. */
void emit_leave(struct emit *e);

/* May an instruction be done again, after what was done since? */
bool emit_may_repeat(const struct emit *e, const struct jit_insn *in);

/* Goes on in the interpreter at this instruction, if @cond; code goes on where it does not hold. */
void emit_leave_if(struct emit *e, LLVMValueRef cond);

/* The same for what is rare: perhaps at an instruction before this one. */
void emit_refuse_if(struct emit *e, LLVMValueRef cond);

/* Calls the interpreter's handler for the lanes in @bits; results are in the frame then. */
void emit_run(struct emit *e, const struct jit_insn *in, LLVMValueRef bits);

/* The same of an instruction of which it reads no register. */
void emit_run_bare(struct emit *e, LLVMValueRef bits);

LLVMValueRef emit_reload(struct emit *e, uint32_t operand);

/* ---- instructions --------------------------------------------------------------------------------- */

void emit_plain(struct emit *e, const struct jit_insn *in);  /* emit-op.c */
void emit_memory(struct emit *e, const struct jit_insn *in); /* emit-memory.c */
void emit_param(struct emit *e, const struct jit_insn *in);  /* emit-sreg.c */
void emit_sreg(struct emit *e, const struct jit_insn *in);
void emit_warp(struct emit *e, const struct jit_insn *in); /* emit-warp.c */

#endif
