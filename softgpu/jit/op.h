/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writing an instruction is made of: operands and numbers, as scalars or as vectors.
 */
#ifndef SOFTGPU_JIT_OP_H
#define SOFTGPU_JIT_OP_H

#include "softgpu/exec/machine.h"
#include "softgpu/jit/emit.h"

#define NAN_F64 (UINT64_C(0xfff8) << 48)

/* An instruction while it is written. */
struct op {
	struct emit *e;
	const struct jit_insn *in;
	bool vector;
	uint32_t bytes; /* of its type */
	bool flushes;	/* f32: form_flushes() */
};

static inline uint8_t class_of_bytes(uint32_t bytes)
{
	return bytes <= 2 ? PTX_CLASS_H : bytes == 4 ? PTX_CLASS_W : PTX_CLASS_D;
}

static inline uint32_t type_bytes(uint8_t type)
{
	return ptx_type_bytes((enum ptx_type)type);
}

static inline bool is_signed(uint8_t type)
{
	return ptx_type_kind((enum ptx_type)type) == 's';
}

static inline bool is_float(uint8_t type)
{
	return ptx_type_kind((enum ptx_type)type) == 'f';
}

static inline LLVMTypeRef int_type(const struct op *o, uint32_t bytes)
{
	return emit_type(o->e, class_of_bytes(bytes), o->vector);
}

static inline LLVMTypeRef real_type(const struct op *o, uint32_t bytes)
{
	LLVMTypeRef t =
		bytes == 4 ? LLVMFloatTypeInContext(o->e->ctx) : LLVMDoubleTypeInContext(o->e->ctx);

	return o->vector ? emit_vector_of(o->e, t) : t;
}

static inline LLVMValueRef arg_of(const struct op *o, uint32_t i, uint32_t bytes)
{
	return emit_operand(o->e, o->in->args[i], class_of_bytes(bytes), o->vector);
}

static inline LLVMValueRef arg(const struct op *o, uint32_t i)
{
	return arg_of(o, i, o->bytes);
}

static inline LLVMValueRef number(const struct op *o, uint32_t bytes, uint64_t v)
{
	return emit_int(o->e, int_type(o, bytes), v);
}

static inline LLVMValueRef as_real(const struct op *o, LLVMValueRef v, uint32_t bytes)
{
	return LLVMBuildBitCast(o->e->b, v, real_type(o, bytes), "");
}

static inline LLVMValueRef real_number(const struct op *o, uint32_t bytes, double v)
{
	LLVMTypeRef type = real_type(o, bytes);

	if (!o->vector)
		return LLVMConstReal(type, v);
	return emit_splat(o->e, LLVMConstReal(LLVMGetElementType(type), v));
}

static inline LLVMValueRef as_bits(const struct op *o, LLVMValueRef v, uint32_t bytes)
{
	return LLVMBuildBitCast(o->e->b, v, int_type(o, bytes), "");
}

static inline LLVMValueRef compare(const struct op *o, LLVMIntPredicate p, LLVMValueRef a,
				   LLVMValueRef b)
{
	return LLVMBuildICmp(o->e->b, p, a, b, "");
}

static inline LLVMValueRef choose(const struct op *o, LLVMValueRef c, LLVMValueRef yes,
				  LLVMValueRef no)
{
	return LLVMBuildSelect(o->e->b, c, yes, no, "");
}

static inline LLVMValueRef extend(const struct op *o, LLVMValueRef v, uint32_t bytes, bool sign)
{
	LLVMTypeRef to = int_type(o, bytes);

	return sign ? LLVMBuildSExt(o->e->b, v, to, "") : LLVMBuildZExt(o->e->b, v, to, "");
}

static inline LLVMValueRef is_nan(const struct op *o, LLVMValueRef v)
{
	return LLVMBuildFCmp(o->e->b, LLVMRealUNO, v, v, "");
}

/* There is one NaN in f32. */
static inline LLVMValueRef canonical(const struct op *o, LLVMValueRef v, uint32_t bytes)
{
	LLVMValueRef bits = as_bits(o, v, bytes);

	return bytes == 4 ? emit_settled(o->e, bits) : bits;
}

/* Bits of an f32: zero in place of a denormal, of the same sign. */
static inline LLVMValueRef flushed(const struct op *o, LLVMValueRef bits)
{
	LLVMValueRef exponent = LLVMBuildAnd(o->e->b, bits, number(o, 4, 0x7f800000), "");
	LLVMValueRef sign = LLVMBuildAnd(o->e->b, bits, number(o, 4, UINT32_C(1) << 31), "");

	return choose(o, compare(o, LLVMIntEQ, exponent, number(o, 4, 0)), sign, bits);
}

static inline bool op_is_flushed(const struct op *o, uint32_t i)
{
	uint32_t operand = o->in->args[i];

	return !is_const(operand) && o->e->values[unit_place(o->e->u, operand)].flushed;
}

/* As a number: which NaN it is need not be asked of it. */
static inline LLVMValueRef real_arg(const struct op *o, uint32_t i)
{
	LLVMValueRef bits = o->bytes == 4 ? emit_raw(o->e, o->in->args[i], o->vector) : arg(o, i);

	return as_real(o, o->flushes && !op_is_flushed(o, i) ? flushed(o, bits) : bits, o->bytes);
}

static inline struct value made(const struct op *o, LLVMValueRef v)
{
	if (o->vector)
		return (struct value){ .vector = v };
	return (struct value){ .is_affine = true, .scalar = v };
}

/* Does it hold in any lane? */
static inline LLVMValueRef any_lane(const struct op *o, LLVMValueRef bits)
{
	if (!o->vector)
		return bits;
	return LLVMBuildICmp(o->e->b, LLVMIntNE, LLVMBuildBitCast(o->e->b, bits, o->e->i32, ""),
			     emit_int(o->e, o->e->i32, 0), "");
}

/* ---- emit-bits.c --------------------------------------------------------------------------------- */

LLVMValueRef op_divide(const struct op *o);
LLVMValueRef op_funnel(const struct op *o);
LLVMValueRef op_count(const struct op *o);
LLVMValueRef op_find_bit(const struct op *o);
LLVMValueRef op_reverse(const struct op *o);
LLVMValueRef op_insert(const struct op *o);
LLVMValueRef op_ones(const struct op *o);
LLVMValueRef op_upper_product(const struct op *o, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef op_permute(const struct op *o);
void op_carry(const struct op *o);

/* ---- emit-approx.c ------------------------------------------------------------------------------- */

LLVMValueRef op_power_of_two(const struct op *o);
LLVMValueRef op_logarithm(const struct op *o);
LLVMValueRef op_upper_reciprocal(const struct op *o); /* also of the root */

/* ---- emit-round.c -------------------------------------------------------------------------------- */

/* Does it round otherwise than to nearest? Then, where the CPU can, this is its value. */
bool op_is_directed(const struct op *o);
LLVMValueRef op_directed(const struct op *o, uint32_t *ret_n);

/* ---- emit-cvt.c ---------------------------------------------------------------------------------- */

LLVMValueRef op_convert(const struct op *o);
void op_check_widening(const struct op *o);

#endif
