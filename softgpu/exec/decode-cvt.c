/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of cvt: the source is first brought to one of six types (s32, u32,
 * s64, u64, f32, f64), then to the type of the result. Only the last of these
 * steps counts as an instruction.
 */
#include "softgpu/exec/decode.h"

static bool is_half(u8 type)
{
	return type == PTX_F16 || type == PTX_BF16;
}

static bool is_float(u8 type)
{
	return ptx_type_kind((enum ptx_type)type) == 'f';
}

static bool is_signed(u8 type)
{
	return ptx_type_kind((enum ptx_type)type) == 's';
}

/* A step to a temporary: @fn of one operand. */
static u32 emit_step(struct decoder *d, exec_fn *fn, u32 source, u32 bytes)
{
	u32 temp = decode_temp(d, bytes);
	struct insn *in = decode_emit_extra(d, fn);

	in->op[0] = temp;
	in->op[1] = source;
	return temp;
}

/* 8 bits to 16, in the register that they are in, then 16 to 32. */
static u32 widen_to_32(struct decoder *d, u32 source, u8 type)
{
	bool sign = is_signed(type);

	if (ptx_type_bytes((enum ptx_type)type) == 1) {
		source = emit_step(d, exec_isa->find_widen(1, 2, sign), source, 2);
		decode_describe_width(d, 1, 2, sign);
	}
	source = emit_step(d, exec_isa->find_widen(2, 4, sign), source, 4);
	decode_describe_width(d, 2, 4, sign);
	return source;
}

static u32 decode_cvt_source(struct decoder *d, struct ptx_insn *step)
{
	const struct ptx_insn *in = d->in;
	u32 bytes = ptx_type_bytes((enum ptx_type)in->stype);
	u32 source = decode_source(d, &d->ops[1], bytes);

	if (is_half(in->stype)) {
		source = emit_step(d, exec_isa->find_cvt(in), source, 4);
		step->stype = PTX_F32;
	} else if (bytes < 4) {
		source = widen_to_32(d, source, in->stype);
		step->stype = is_signed(in->stype) ? PTX_S32 : PTX_U32;
	}
	if (step->stype == PTX_F32 && in->flags & PTX_F_FTZ)
		source = decode_flush(d, PTX_F32, source);
	return source;
}

/* Integers without saturation: cut off, or extended by the source's sign. */
static exec_fn *find_width(_unused_ const struct decoder *d, const struct ptx_insn *step)
{
	u32 from = ptx_type_bytes((enum ptx_type)step->stype);
	u32 to = lane_bytes(ptx_type_bytes((enum ptx_type)step->type));
	struct ptx_insn mov = { .op = PTX_OP_MOV, .type = step->stype };

	if (from == to)
		return exec_isa->find_bits(&mov);
	return from > to ? exec_isa->find_narrow(from, to)
			 : exec_isa->find_widen(from, to, is_signed(step->stype));
}

/* Halves rounded to whole numbers, saturated or cut at 0 are so as floats, which loses nothing. */
static u32 prepare_half(struct decoder *d, struct ptx_insn *step, u32 source)
{
	struct ptx_insn whole = *step;

	if (step->stype != PTX_F32)
		return source;
	whole.type = PTX_F32;
	if (step->round >= PTX_RNI) {
		source = emit_step(d, exec_isa->find_cvt(&whole), source, 4);
		step->round = PTX_RN;
	}
	return source;
}

static void emit_final(struct decoder *d, const struct ptx_insn *step, u32 source)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)step->type);
	u32 result = decode_result(d, &d->ops[0], bytes, is_signed(step->type));
	bool integers = !is_float(step->type) && !is_float(step->stype);
	struct insn *in;
	exec_fn *fn;

	fn = integers && !(step->flags & PTX_F_SAT) ? find_width(d, step)
						    : exec_isa->find_cvt(step);
	in = decode_emit(d, fn);
	in->op[0] = result;
	in->op[1] = source;
	in->mode = step->round;
	decode_describe(d, step);
	decode_uses(d, 2, 1);
	if (step->flags & PTX_F_SATFINITE)
		in->flags |= INSN_SATFINITE;
	if (!is_half(step->type) && step->round < PTX_RNI)
		decode_wrap_float(d, in);
	if (is_float(step->type))
		decode_clamp(d, result);
	/* What is above 8 bits in a 16-bit register has to be the value's extension. */
	if (bytes == 1) {
		in = decode_emit_extra(d, exec_isa->find_widen(1, 2, is_signed(step->type)));
		in->op[0] = in->op[1] = result;
		decode_describe_width(d, 1, 2, is_signed(step->type));
	}
	decode_widen(d);
}

/* Do two values lie in one register? */
static bool is_pair(u8 type)
{
	return type == PTX_F16X2 || type == PTX_BF16X2 || type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

static u32 decode_pair_result(struct decoder *d)
{
	return decode_result(d, &d->ops[0], ptx_type_bytes((enum ptx_type)d->in->type), false);
}

/* Two floats to two of fewer bits: the first to the upper one. */
static void decode_cvt_pair(struct decoder *d)
{
	u32 upper = decode_source(d, &d->ops[1], 4), lower = decode_source(d, &d->ops[2], 4);
	u32 result = decode_pair_result(d);
	struct insn *in = decode_emit(d, exec_isa->find_cvt(d->in));

	in->op[0] = result;
	in->op[1] = upper;
	in->op[2] = lower;
	decode_uses(d, 6, 1);
	in->mode = d->in->round;
	if (d->in->flags & PTX_F_SATFINITE)
		in->flags |= INSN_SATFINITE;
	decode_clamp(d, result);
}

static void decode_cvt_pairs(struct decoder *d)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)d->in->stype);
	u32 source = decode_source(d, &d->ops[1], bytes), result = decode_pair_result(d);
	struct insn *in = decode_emit(d, exec_isa->find_cvt(d->in));

	in->op[0] = result;
	in->op[1] = source;
	decode_uses(d, 2, 1);
	decode_clamp(d, result);
}

void decode_cvt(struct decoder *d)
{
	struct ptx_insn step = *d->in;
	u32 source;

	if (is_pair(d->in->type)) {
		is_pair(d->in->stype) ? decode_cvt_pairs(d) : decode_cvt_pair(d);
		return;
	}
	source = decode_cvt_source(d, &step);
	/* f32 to f32 that neither rounds nor saturates still flushes and quiets NaN. */
	if (is_half(step.type))
		source = prepare_half(d, &step, source);
	emit_final(d, &step, source);
}
