/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which instructions have code of their own; for all others the interpreter's handler is called.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/unit.h"

static bool is_word(uint8_t type)
{
	uint32_t bytes = ptx_type_bytes((enum ptx_type)type);

	return bytes == 2 || bytes == 4 || bytes == 8;
}

static bool is_integer(uint8_t type)
{
	return type != PTX_PRED && ptx_type_kind((enum ptx_type)type) != 'f' && is_word(type) &&
	       type != PTX_U16X2 && type != PTX_S16X2;
}

static bool is_signed(uint8_t type)
{
	return ptx_type_kind((enum ptx_type)type) == 's';
}

static bool is_real(uint8_t type)
{
	return type == PTX_F32 || type == PTX_F64;
}

static bool is_bits(uint8_t type)
{
	return is_integer(type) || is_real(type) || type == PTX_F16 || type == PTX_BF16 ||
	       type == PTX_F16X2 || type == PTX_BF16X2;
}

bool form_carries(const struct jit_insn *in)
{
	return in->op == PTX_OP_ADDC || in->op == PTX_OP_SUBC || in->op == PTX_OP_MADC ||
	       in->flags & PTX_F_CC;
}

static bool native_integer(const struct jit_insn *in)
{
	uint32_t bytes = ptx_type_bytes((enum ptx_type)in->type);

	if (in->flags & (PTX_F_SAT | PTX_F_RELU))
		return false;
	if (form_carries(in))
		return bytes == 4;
	switch (in->op) {
	case PTX_OP_ADD:
	case PTX_OP_SUB:
	case PTX_OP_DIV:
	case PTX_OP_REM:
	case PTX_OP_POPC:
	case PTX_OP_CLZ:
	case PTX_OP_BREV:
	case PTX_OP_BFIND:
	case PTX_OP_BFI:
	case PTX_OP_BMSK:
	case PTX_OP_SHF:
	case PTX_OP_NEG:
	case PTX_OP_MIN:
	case PTX_OP_MAX:
	case PTX_OP_ABS:
	case PTX_OP_AND:
	case PTX_OP_OR:
	case PTX_OP_XOR:
	case PTX_OP_NOT:
	case PTX_OP_SHL:
	case PTX_OP_SHR:
	case PTX_OP_SELP:
	case PTX_OP_SETP:
	case PTX_OP_MOV:
		return true;
	case PTX_OP_MUL:
	case PTX_OP_MAD:
		return true;
	case PTX_OP_PRMT:
		return !in->mode;
	case PTX_OP_LOP3:
		return in->n_reads == 4 && in->n_writes == 1;
	case PTX_OP_BFE:
		return is_const(in->args[2]) && is_const(in->args[3]) && !is_signed(in->type);
	default:
		return false;
	}
}

/* Bits of MXCSR that .ftz asks for. */
#define MXCSR_FLUSH 0x8040

bool form_flushes(const struct jit_insn *in)
{
	return in->control && (in->imm & MXCSR_FLUSH) == MXCSR_FLUSH;
}

bool form_is_upper(const struct jit_insn *in)
{
	return in->type == PTX_F64 && in->flags & PTX_F_APPROX &&
	       (in->op == PTX_OP_RCP || (in->op == PTX_OP_RSQRT && in->flags & PTX_F_FTZ));
}

static bool native_real(const struct jit_insn *in)
{
	bool single = in->type == PTX_F32;

	if (form_is_upper(in))
		return true;

	if (in->flags & (PTX_F_XORSIGN | PTX_F_NAN) || (form_flushes(in) && !single))
		return false;
	switch (in->op) {
	case PTX_OP_DIV:
	case PTX_OP_RCP:
		return single || !(in->flags & PTX_F_APPROX);
	case PTX_OP_RSQRT:
	case PTX_OP_EX2:
	case PTX_OP_LG2:
		return single;
	case PTX_OP_ADD:
	case PTX_OP_SUB:
	case PTX_OP_MUL:
	case PTX_OP_FMA:
	case PTX_OP_MAD:
	case PTX_OP_SQRT:
	case PTX_OP_NEG:
	case PTX_OP_ABS:
	case PTX_OP_MIN:
	case PTX_OP_MAX:
	case PTX_OP_SETP:
	case PTX_OP_SELP:
	case PTX_OP_MOV:
	case PTX_OP_COPYSIGN:
		return true;
	default:
		return false;
	}
}

/*
 * Between integers without saturation, and between them and floats. What flushes or saturates floats
 * is a step of its own, before or after.
 */
static bool native_cvt(const struct jit_insn *in)
{
	bool to_real = is_real(in->type), from_real = is_real(in->stype);
	bool to_integer = is_integer(in->type) || in->type == PTX_U8 || in->type == PTX_S8;
	uint32_t from = ptx_type_bytes((enum ptx_type)in->stype);

	if (in->flags & (PTX_F_RELU | PTX_F_SATFINITE))
		return false;
	/* Made longer, a float that has been flushed before has nothing left to flush. */
	if (in->control && !(in->imm == MXCSR_FLUSH && in->type == PTX_F64 && in->stype == PTX_F32))
		return false;
	if (to_real)
		return from_real || (from >= 4 && is_integer(in->stype));
	if (from_real)
		return to_integer;
	return to_integer && !(in->flags & PTX_F_SAT) &&
	       ptx_type_kind((enum ptx_type)in->stype) != 'f';
}

static bool native_pred(const struct jit_insn *in)
{
	return in->op == PTX_OP_AND || in->op == PTX_OP_OR || in->op == PTX_OP_XOR ||
	       in->op == PTX_OP_NOT || in->op == PTX_OP_MOV;
}

static bool native_pack(const struct jit_insn *in)
{
	uint32_t part = ptx_type_bytes((enum ptx_type)in->stype);

	return in->vec == 2 && (part == 2 || part == 4);
}

static bool native_plain(const struct jit_insn *in)
{
	switch (in->op) {
	case PTX_OP_NONE:
		return false;
	case PTX_OP_CVT:
		return native_cvt(in);
	case PTX_OP_PACK:
	case PTX_OP_UNPACK:
		return native_pack(in);
	case PTX_OP_MEMBAR:
	case PTX_OP_FENCE:
	case PTX_OP_PREFETCH:
		return true;
	default:
		break;
	}
	if (in->type == PTX_PRED)
		return native_pred(in);
	if (in->op == PTX_OP_MOV || in->op == PTX_OP_SELP)
		return is_bits(in->type);
	return is_real(in->type) ? native_real(in) : is_integer(in->type) && native_integer(in);
}

/* Lanes' local memory is never side by side; smaller pieces would go lane by lane. */
static bool native_memory(const struct jit_insn *in)
{
	uint32_t bytes = in->bytes * in->vec;

	if (in->bytes > 8 || bytes > 32 || in->space == PTX_SPACE_PARAM)
		return false;
	return in->space != PTX_SPACE_LOCAL || in->bytes >= 4;
}

static bool native_atomic(const struct jit_insn *in)
{
	bool real = ptx_type_kind((enum ptx_type)in->type) == 'f';

	if ((in->bytes != 4 && in->bytes != 8) || in->insn_flags & INSN_FRAME_ADDRESS ||
	    in->space == PTX_SPACE_LOCAL || in->space == PTX_SPACE_PARAM)
		return false;
	if (real)
		return is_real(in->type) && in->bop == PTX_BOP_ADD;
	return in->bop >= PTX_BOP_AND && in->bop <= PTX_BOP_CAS;
}

/* Of lanes that all come; a guard says that some may not. */
static bool native_warp(const struct unit *u, const struct jit_insn *in)
{
	if (!unit_always(u, in))
		return false;
	switch (in->op) {
	case PTX_OP_SHFL:
	case PTX_OP_VOTE:
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
		return true;
	case PTX_OP_REDUX:
		return in->type == PTX_U32 || in->type == PTX_S32 || in->type == PTX_B32;
	default:
		return false;
	}
}

bool form_is_native(const struct unit *u, const struct jit_insn *in)
{
	switch (in->kind) {
	case JIT_WARP:
		return native_warp(u, in);
	case JIT_ACTIVE:
		return true;
	case JIT_PLAIN:
		return native_plain(in);
	case JIT_LOAD:
	case JIT_STORE:
		return native_memory(in);
	case JIT_ATOMIC:
		return native_atomic(in);
	case JIT_PARAM:
		return in->bytes <= 8;
	case JIT_SREG:
		return true;
	default:
		return false;
	}
}
