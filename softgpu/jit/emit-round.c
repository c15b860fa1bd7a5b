/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic that rounds down, up or to zero. AVX-512 has instructions that say how they round,
 * others go by a register of the thread's: without the former it is left to the interpreter.
 */
#include <stdio.h>

#include "softgpu/jit/op.h"

#define VECTOR_BYTES 64
#define ROUND_QUIET  8 /* beside how: without exceptions */

/* Bits of MXCSR that say how, as the instructions have them. */
static uint32_t how_of(const struct jit_insn *in)
{
	return in->control ? (uint32_t)in->imm >> 13 & 3 : 0;
}

bool op_is_directed(const struct op *o)
{
	return how_of(o->in) != 0;
}

/* The intrinsic's name and how many operands it has. */
static uint32_t find_intrinsic(const struct op *o, char *ret_name, size_t size)
{
	const char *name, *type = o->bytes == 4 ? "ps" : "pd";
	uint32_t n = 2;

	switch (o->in->op) {
	case PTX_OP_ADD:
		name = "add";
		break;
	case PTX_OP_SUB:
		name = "sub";
		break;
	case PTX_OP_MUL:
		name = "mul";
		break;
	case PTX_OP_DIV:
	case PTX_OP_RCP:
		name = "div";
		break;
	case PTX_OP_SQRT:
		name = "sqrt";
		n = 1;
		break;
	default:
		name = "vfmadd";
		n = 3;
	}
	snprintf(ret_name, size, "llvm.x86.avx512.%s.%s.512", name, type);
	return n;
}

/* Elements from @first on, as many as one instruction takes; a scalar is the first of them. */
static LLVMValueRef part_of(const struct op *o, LLVMValueRef v, uint32_t first)
{
	uint32_t n = VECTOR_BYTES / o->bytes;
	LLVMValueRef at[N_LANES];

	if (!o->vector) {
		LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), n);

		return LLVMBuildInsertElement(o->e->b, LLVMConstNull(type), v,
					      emit_int(o->e, o->e->i32, 0), "");
	}
	for (uint32_t i = 0; i < n; i++)
		at[i] = emit_int(o->e, o->e->i32, first + i);
	return LLVMBuildShuffleVector(o->e->b, v, LLVMGetUndef(LLVMTypeOf(v)),
				      LLVMConstVector(at, n), "");
}

/* Parts end to end, pair by pair. */
static LLVMValueRef joined(const struct op *o, LLVMValueRef *parts, uint32_t n)
{
	LLVMValueRef at[N_LANES];

	for (; n > 1; n /= 2) {
		uint32_t size = LLVMGetVectorSize(LLVMTypeOf(parts[0]));

		for (uint32_t i = 0; i < 2 * size; i++)
			at[i] = emit_int(o->e, o->e->i32, i);
		for (uint32_t i = 0; i < n / 2; i++)
			parts[i] = LLVMBuildShuffleVector(o->e->b, parts[2 * i], parts[2 * i + 1],
							  LLVMConstVector(at, 2 * size), "");
	}
	return parts[0];
}

LLVMValueRef op_directed(const struct op *o, uint32_t *ret_n)
{
	uint32_t step = VECTOR_BYTES / o->bytes, n_parts = o->vector ? N_LANES / step : 1, n;
	LLVMValueRef in[3] = { NULL }, args[4], parts[N_LANES * 8 / VECTOR_BYTES];
	char name[48];

	n = find_intrinsic(o, name, sizeof(name));
	*ret_n = o->in->op == PTX_OP_RCP ? 1 : n;
	for (uint32_t i = 0; i < *ret_n; i++)
		in[i] = real_arg(o, 1 + i);
	if (o->in->op == PTX_OP_RCP) {
		in[1] = in[0];
		in[0] = real_number(o, o->bytes, 1);
	}
	for (uint32_t i = 0; i < n_parts; i++) {
		for (uint32_t k = 0; k < n; k++)
			args[k] = part_of(o, in[k], i * step);
		args[n] = emit_int(o->e, o->e->i32, how_of(o->in) | ROUND_QUIET);
		parts[i] = emit_intrinsic(o->e, name, NULL, 0, args, n + 1);
	}
	if (o->vector)
		return joined(o, parts, n_parts);
	return LLVMBuildExtractElement(o->e->b, parts[0], emit_int(o->e, o->e->i32, 0), "");
}
