/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's state, shared by the files that decode.
 */
#ifndef SOFTGPU_EXEC_DECODE_H
#define SOFTGPU_EXEC_DECODE_H

#include "softgpu/exec/block.h"
#include "softgpu/exec/image.h"
#include "softgpu/ptx/vec.h"

/* Registers of each class that the decoder itself may use within an instruction. */
#define N_TEMPS 10

/* A result that has to be widened into its register after the instruction. */
struct widening {
	u32 from, to; /* operands */
	u8 from_bytes, to_bytes;
	bool is_signed;
};

struct decoder {
	struct exec_image *image;
	const struct image_module *module;
	const struct ptx_function *f;
	struct code *code;
	u32 kernel;  /* its number, or 0 */
	u32 *shared; /* where the next shared variable goes */
	int error;   /* the first; from then on nothing is done any more */

	u32 class_start[PTX_N_CLASSES];
	u32 n_temps[PTX_N_CLASSES]; /* taken by the instruction at hand */
	u32 always;		    /* the constant predicate that is true */

	const struct ptx_insn *in; /* the instruction at hand */
	const struct ptx_operand *ops;
	u32 guard, guard_xor;
	struct widening widenings[8];
	u32 n_widenings;

	VEC(struct insn, insns);
	VEC(struct insn_shape, shapes); /* as many, where somebody compiles */
	bool ended_piece;		/* what comes next can be entered by compiled code */
	VEC(u8, constants);
	VEC(struct code *, callees);
	u32 *place; /* per parsed instruction: where its code starts */
	bool *leader;
};

/* ---- operands ----------------------------------------------------------------------------------- */

/* Bytes of a lane in a register for a value of so many: 8-bit values lie in 16 bits. */
static inline u32 lane_bytes(u32 bytes)
{
	return bytes < 2 ? 2 : bytes;
}

extern const u32 class_bytes[PTX_N_CLASSES];

/* What a register takes: a word for 32 predicates, or 32 lanes. */
u32 decode_register_bytes(u32 cls);

/* The register of the text. */
u32 decode_register(const struct decoder *d, u32 cls, u32 index);
/* a register for @bytes, until the next instruction */
u32 decode_temp(struct decoder *d, u32 bytes);
u32 decode_temp_pred(struct decoder *d);
u32 decode_constant(struct decoder *d, u64 value, u32 bytes);
u32 decode_constant_pred(struct decoder *d, bool value);
u32 decode_source(struct decoder *d, const struct ptx_operand *o, u32 bytes);
u32 decode_result(struct decoder *d, const struct ptx_operand *o, u32 bytes, bool is_signed);
u32 decode_pred_source(struct decoder *d, const struct ptx_operand *o, u8 *flags);
u32 decode_pred_result(struct decoder *d, const struct ptx_operand *o);

/* Is it dynamic shared memory, whose place is known at launch? */
bool decode_is_dynamic(const struct decoder *d, const struct ptx_operand *o);

/* The address of a symbol in its state space, as a value. */
u64 decode_symbol(struct decoder *d, const struct ptx_operand *o);

/* ---- code --------------------------------------------------------------------------------------- */

/* Appends an instruction under the guard of the one at hand. It is never NULL. */
struct insn *decode_emit(struct decoder *d, exec_fn *fn);

/* One that the text does not have: it does not count. */
struct insn *decode_emit_extra(struct decoder *d, exec_fn *fn);

/* What the last instruction means, where that is not what the text has there. */
void decode_describe(struct decoder *d, const struct ptx_insn *as);

/* The last instruction is a cvt between integers of these widths. */
void decode_describe_width(struct decoder *d, u32 from_bytes, u32 to_bytes, bool is_signed);

/* The last instruction is a step between floats of one type: SHAPE_FLUSH or SHAPE_CLAMP. */
void decode_describe_step(struct decoder *d, enum ptx_type type, u32 what);

/* The operands that it reads and writes, where those are not in order. */
void decode_uses(struct decoder *d, u8 reads, u8 writes);

/* The handler of an instruction that is a plain lane loop. */
exec_fn *decode_handler(const struct ptx_insn *in);

/* Lets an instruction on floats run with its rounding and flushing. */
void decode_wrap_float(struct decoder *d, struct insn *in);

/* .sat and .relu are a second look at the result. */
void decode_clamp(struct decoder *d, u32 result);

/* Denormals to zeros, for .ftz; the register with the result. */
u32 decode_flush(struct decoder *d, enum ptx_type type, u32 source);

/* Puts results into registers wider than them. */
void decode_widen(struct decoder *d);

void decode_refuse(struct decoder *d, const char *why);

/* ---- plain lane loops, and what is made of several (decode-plain.c) ------------------------------ */

void decode_plain(struct decoder *d);
void decode_video(struct decoder *d);
void decode_set(struct decoder *d);
void decode_lop3(struct decoder *d);

/* ---- instructions that are not plain lane loops -------------------------------------------------- */

void decode_memory(struct decoder *d);

/* Fills op[0], imm, flags and space of a memory operand; whether the place is known now. */
bool decode_address(struct decoder *d, struct insn *t, const struct ptx_operand *o);
void decode_matrix(struct decoder *d);
void decode_texture(struct decoder *d);
void decode_atom(struct decoder *d);
void decode_copy_async(struct decoder *d);
void decode_mbarrier(struct decoder *d);
void decode_call(struct decoder *d);
void decode_barrier(struct decoder *d);
void decode_warp_op(struct decoder *d);
void decode_mov(struct decoder *d);
void decode_cvta(struct decoder *d);
void decode_cvt(struct decoder *d);
int decode_formals(struct decoder *d, const struct ptx_proto *proto);

#endif
