/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as scalars and as vectors, loads and stores at fixed places, calls of the interpreter.
 */
#include <string.h>

#include "softgpu/exec/machine.h"
#include "softgpu/jit/emit.h"

/* ---- types and numbers -------------------------------------------------------------------------- */

LLVMTypeRef emit_vector_of(_unused_ struct emit *e, LLVMTypeRef type)
{
	return LLVMVectorType(type, N_LANES);
}

LLVMTypeRef emit_type(struct emit *e, uint8_t cls, bool vector)
{
	LLVMTypeRef type = cls == PTX_CLASS_P	? e->i1
			   : cls == PTX_CLASS_H ? e->i16
			   : cls == PTX_CLASS_W ? e->i32
						: e->i64;

	return vector ? emit_vector_of(e, type) : type;
}

LLVMValueRef emit_int(_unused_ struct emit *e, LLVMTypeRef type, uint64_t v)
{
	LLVMValueRef lanes[N_LANES];

	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return LLVMConstInt(type, v, 0);
	lanes[0] = LLVMConstInt(LLVMGetElementType(type), v, 0);
	for (uint32_t i = 1; i < N_LANES; i++)
		lanes[i] = lanes[0];
	return LLVMConstVector(lanes, N_LANES);
}

LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar)
{
	LLVMTypeRef type = emit_vector_of(e, LLVMTypeOf(scalar));
	LLVMValueRef one;

	if (LLVMIsAConstantInt(scalar))
		return emit_int(e, type, LLVMConstIntGetZExtValue(scalar));
	one = LLVMBuildInsertElement(e->b, LLVMGetUndef(type), scalar, emit_int(e, e->i32, 0), "");
	return LLVMBuildShuffleVector(e->b, one, LLVMGetUndef(type),
				      LLVMConstNull(emit_vector_of(e, e->i32)), "");
}

/* base, base + stride, ... of @type, a vector of integers as wide as the base */
LLVMValueRef emit_spread(struct emit *e, LLVMValueRef base, int64_t stride, LLVMTypeRef type)
{
	LLVMValueRef lanes[N_LANES], all = emit_splat(e, base);

	if (!stride)
		return all;
	for (uint32_t i = 0; i < N_LANES; i++)
		lanes[i] = LLVMConstInt(LLVMGetElementType(type), (uint64_t)stride * i, 0);
	return LLVMBuildAdd(e->b, all, LLVMConstVector(lanes, N_LANES), "");
}

/* ---- operands ----------------------------------------------------------------------------------- */

static LLVMValueRef constant_of(struct emit *e, uint32_t operand, uint8_t cls)
{
	static const uint32_t bytes[] = { 4, 2, 4, 8, 8 };
	uint64_t v = unit_constant(e->u, operand, bytes[cls]);

	return emit_int(e, emit_type(e, cls, false), cls == PTX_CLASS_P ? v & 1 : v);
}

static LLVMValueRef scalar_of(struct emit *e, uint32_t operand, uint8_t cls)
{
	if (is_const(operand))
		return constant_of(e, operand, cls);
	return e->values[unit_place(e->u, operand)].scalar;
}

static LLVMValueRef vector_of(struct emit *e, uint32_t operand, uint8_t cls)
{
	struct value *v;

	if (is_const(operand))
		return emit_splat(e, constant_of(e, operand, cls));
	v = &e->values[unit_place(e->u, operand)];
	if (v->vector)
		return v->vector;
	if (!v->scalar)
		return LLVMGetUndef(emit_type(e, cls, true));
	return emit_spread(e, v->scalar, v->stride, emit_type(e, cls, true));
}

LLVMValueRef emit_raw(struct emit *e, uint32_t operand, bool vector)
{
	return vector ? vector_of(e, operand, PTX_CLASS_W) : scalar_of(e, operand, PTX_CLASS_W);
}

LLVMValueRef emit_settled(struct emit *e, LLVMValueRef bits)
{
	LLVMTypeRef type = LLVMTypeOf(bits), real = LLVMFloatTypeInContext(e->ctx);
	LLVMValueRef v;

	if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
		real = emit_vector_of(e, real);
	v = LLVMBuildBitCast(e->b, bits, real, "");
	return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, v, v, ""),
			       emit_int(e, type, NAN_F32), bits, "");
}

static bool is_raw(const struct emit *e, uint32_t operand)
{
	return !is_const(operand) && e->values[unit_place(e->u, operand)].raw;
}

LLVMValueRef emit_scalar(struct emit *e, uint32_t operand, uint8_t cls)
{
	LLVMValueRef v = scalar_of(e, operand, cls);

	return is_raw(e, operand) ? emit_settled(e, v) : v;
}

LLVMValueRef emit_vector(struct emit *e, uint32_t operand, uint8_t cls)
{
	LLVMValueRef v = vector_of(e, operand, cls);

	return is_raw(e, operand) ? emit_settled(e, v) : v;
}

LLVMValueRef emit_operand(struct emit *e, uint32_t operand, uint8_t cls, bool vector)
{
	return vector ? emit_vector(e, operand, cls) : emit_scalar(e, operand, cls);
}

/* ---- guards ------------------------------------------------------------------------------------- */

static bool is_uniform_guard(const struct emit *e, const struct jit_insn *in)
{
	return kind_of_operand(e->u, in->guard, e->state).state == KIND_AFFINE;
}

LLVMValueRef emit_mask(struct emit *e)
{
	return LLVMBuildLoad2(e->b, e->i32, e->mask, "");
}

LLVMValueRef emit_is_full(struct emit *e)
{
	return LLVMBuildICmp(e->b, LLVMIntEQ, emit_mask(e), emit_int(e, e->i32, UINT32_MAX), "");
}

LLVMValueRef emit_first_lane(struct emit *e)
{
	LLVMValueRef args[] = { emit_mask(e), emit_int(e, e->i1, /* 0 is no mask: */ 1) };

	return emit_intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2);
}

LLVMValueRef emit_guard_bits(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef bits;

	if (unit_always(e->u, in))
		return emit_mask(e);
	if (is_const(in->guard))
		bits = emit_int(e, e->i32, (uint32_t)unit_constant(e->u, in->guard, 4));
	else if (is_uniform_guard(e, in))
		bits = LLVMBuildSExt(e->b, emit_scalar(e, in->guard, PTX_CLASS_P), e->i32, "");
	else
		bits = LLVMBuildBitCast(e->b, emit_vector(e, in->guard, PTX_CLASS_P), e->i32, "");
	bits = LLVMBuildXor(e->b, bits, emit_int(e, e->i32, in->guard_xor), "");
	return LLVMBuildAnd(e->b, bits, emit_mask(e), "");
}

/* As what a select takes: one bit, or one for each lane. */
static LLVMValueRef guard_choice(struct emit *e, const struct jit_insn *in, bool vector)
{
	LLVMValueRef g = emit_operand(e, in->guard, PTX_CLASS_P, vector);

	return in->guard_xor ? LLVMBuildNot(e->b, g, "") : g;
}

void emit_result(struct emit *e, const struct jit_insn *in, uint32_t operand, struct value v)
{
	uint32_t place = unit_place(e->u, operand);
	struct value *old = &e->values[place];
	uint8_t cls = e->u->places[place].cls;
	bool uniform;

	if (unit_always(e->u, in)) {
		*old = v;
		return;
	}
	uniform = is_uniform_guard(e, in);
	if (v.raw && v.is_affine)
		v.scalar = emit_settled(e, v.scalar);
	else if (v.raw)
		v.vector = emit_settled(e, v.vector);
	if (uniform && v.is_affine && old->is_affine && v.stride == old->stride) {
		v.scalar = LLVMBuildSelect(e->b, guard_choice(e, in, false), v.scalar,
					   emit_scalar(e, operand, cls), "");
		*old = (struct value){ .is_affine = true, .stride = v.stride, .scalar = v.scalar };
		return;
	}
	if (v.is_affine)
		v.vector = emit_spread(e, v.scalar, v.stride, emit_type(e, cls, true));
	v.vector = LLVMBuildSelect(e->b, guard_choice(e, in, !uniform), v.vector,
				   emit_vector(e, operand, cls), "");
	*old = (struct value){ .vector = v.vector };
}

/* ---- memory ------------------------------------------------------------------------------------- */

LLVMValueRef emit_at(struct emit *e, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef at = emit_int(e, e->i64, offset);

	return LLVMBuildGEP2(e->b, e->i8, base, &at, 1, "");
}

static LLVMValueRef typed(struct emit *e, LLVMValueRef ptr, LLVMTypeRef type)
{
	return LLVMBuildBitCast(e->b, ptr, LLVMPointerType(type, 0), "");
}

LLVMValueRef emit_load(struct emit *e, LLVMTypeRef type, LLVMValueRef ptr, uint32_t align)
{
	LLVMValueRef v = LLVMBuildLoad2(e->b, type, typed(e, ptr, type), "");

	LLVMSetAlignment(v, align);
	return v;
}

/* What never changes while the code runs. */
LLVMValueRef emit_fixed(struct emit *e, LLVMTypeRef type, LLVMValueRef base, uint64_t offset)
{
	LLVMValueRef v = emit_load(e, type, emit_at(e, base, offset), 4);
	unsigned int kind = LLVMGetMDKindIDInContext(e->ctx, "invariant.load", 14);

	LLVMSetMetadata(v, kind,
			LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, NULL, 0)));
	return v;
}

void emit_store(struct emit *e, LLVMValueRef value, LLVMValueRef ptr, uint32_t align)
{
	LLVMSetAlignment(LLVMBuildStore(e->b, value, typed(e, ptr, LLVMTypeOf(value))), align);
}

LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef *types, uint32_t n_types,
			    LLVMValueRef *args, uint32_t n_args)
{
	unsigned int id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->module, id, types, n_types);

	return LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->ctx, id, types, n_types), fn, args,
			      n_args, "");
}

LLVMValueRef emit_variable(struct emit *e)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
	LLVMValueRef v;

	LLVMPositionBuilderBefore(e->b, e->first);
	v = LLVMBuildAlloca(e->b, e->i64, "");
	LLVMBuildStore(e->b, emit_int(e, e->i64, 0), v);
	LLVMPositionBuilderAtEnd(e->b, here);
	return v;
}

LLVMBasicBlockRef emit_new_block(struct emit *e, const char *name)
{
	return LLVMAppendBasicBlockInContext(e->ctx, e->fn, name);
}

/* ---- the interpreter's handlers ------------------------------------------------------------------ */

static void hand_over(struct emit *e, uint32_t operand)
{
	uint32_t place;
	uint8_t cls;
	LLVMValueRef v, to;

	if (is_const(operand))
		return;
	place = unit_place(e->u, operand);
	cls = e->u->places[place].cls;
	if (cls == PTX_CLASS_Q || (!e->values[place].vector && !e->values[place].scalar))
		return;
	v = emit_vector(e, operand, cls);
	to = emit_at(e, e->out, e->u->places[place].offset);
	if (cls == PTX_CLASS_P)
		emit_store(e, LLVMBuildBitCast(e->b, v, e->i32, ""), to, 4);
	else
		emit_store(e, v, to, 64);
}

void emit_run_bare(struct emit *e, LLVMValueRef bits)
{
	LLVMTypeRef types[] = { e->ptr, e->i32, e->i32 };
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->ctx), types, 3, 0);
	LLVMValueRef args[] = { e->warp, emit_int(e, e->i32, e->at), bits };

	LLVMBuildCall2(e->b, type, typed(e, e->run, type), args, 3, "");
}

/* What a handler that faults does not return to count: all up to its instruction, as the interpreter. */
static void count_before(struct emit *e, const struct jit_insn *in, LLVMValueRef bits)
{
	LLVMValueRef n = LLVMBuildLoad2(e->b, e->i64, e->n_lanes, ""), here;

	n = LLVMBuildMul(e->b, n, emit_int(e, e->i64, e->counted), "");
	here = emit_intrinsic(e, "llvm.ctpop", &e->i32, 1, &bits, 1);
	here = LLVMBuildMul(e->b, LLVMBuildZExt(e->b, here, e->i64, ""),
			    emit_int(e, e->i64, in->weight), "");
	n = LLVMBuildAdd(e->b, LLVMBuildAdd(e->b, n, here, ""),
			 LLVMBuildLoad2(e->b, e->i64, e->executed, ""), "");
	emit_store(e, n, emit_at(e, e->warp, e->u->request->layout.warp_executed), 8);
}

void emit_run(struct emit *e, const struct jit_insn *in, LLVMValueRef bits)
{
	uint32_t n = in->n_reads + (unit_always(e->u, in) ? 0u : in->n_writes);

	for (uint32_t i = 0; i < n; i++)
		hand_over(e, e->u->operands[in->operands + i]);
	count_before(e, in, bits);
	emit_run_bare(e, bits);
}

LLVMValueRef emit_reload(struct emit *e, uint32_t operand)
{
	const struct place *p = &e->u->places[unit_place(e->u, operand)];
	LLVMValueRef v;

	if (p->cls != PTX_CLASS_P)
		return emit_load(e, emit_type(e, p->cls, true), emit_at(e, e->in, p->offset), 64);
	v = emit_load(e, e->i32, emit_at(e, e->in, p->offset), 4);
	return LLVMBuildBitCast(e->b, v, emit_type(e, p->cls, true), "");
}
