/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of decoded instructions: registers, constants, addresses of symbols.
 *
 * Handlers exist for operands of exactly their type's width. Where a register
 * is wider, a value is narrowed before or widened after the instruction, by
 * instructions that do not count. Immediates become constants, 32 lanes wide.
 */
#include <errno.h>
#include <stdio.h>

#include "softgpu/exec/decode.h"

/* Hardware's largest blocks have 227 KiB. */
#define SHARED_MAX_BYTES (227u << 10)

const u32 class_bytes[PTX_N_CLASSES] = {
	[PTX_CLASS_H] = 2,
	[PTX_CLASS_W] = 4,
	[PTX_CLASS_D] = 8,
	[PTX_CLASS_Q] = 16,
};

u32 decode_register_bytes(u32 cls)
{
	return cls == PTX_CLASS_P ? 4 : LANES * class_bytes[cls];
}

u32 decode_register(const struct decoder *d, u32 cls, u32 index)
{
	return d->class_start[cls] + index * decode_register_bytes(cls);
}

static u32 class_of(u32 bytes)
{
	switch (lane_bytes(bytes)) {
	case 2:
		return PTX_CLASS_H;
	case 4:
		return PTX_CLASS_W;
	case 8:
		return PTX_CLASS_D;
	default:
		return PTX_CLASS_Q;
	}
}

static u32 take_temp(struct decoder *d, u32 cls)
{
	if (d->n_temps[cls] == N_TEMPS) {
		decode_refuse(d, "too many operands");
		return 0;
	}
	return decode_register(d, cls, d->f->n_regs[cls] + d->n_temps[cls]++);
}

u32 decode_temp(struct decoder *d, u32 bytes)
{
	return take_temp(d, class_of(bytes));
}

u32 decode_temp_pred(struct decoder *d)
{
	return take_temp(d, PTX_CLASS_P);
}

static u32 add_constant(struct decoder *d, const void *bytes, u32 size)
{
	u32 at = d->n_constants, room = (size + 15) / 16 * 16;

	/* The same one again? Code repeats its last few constants most. */
	for (u32 back = room; back <= at && back < 64 * room; back += 16) {
		if (!memcmp(d->constants + at - back, bytes, size))
			return (at - back) | OPERAND_CONST;
	}
	if (!vec_room(d, constants, room)) {
		d->error = d->error ? d->error : -ENOMEM;
		return OPERAND_CONST;
	}
	memset(d->constants + at, 0, room);
	memcpy(d->constants + at, bytes, size);
	d->n_constants += room;
	return at | OPERAND_CONST;
}

u32 decode_constant(struct decoder *d, u64 value, u32 bytes)
{
	u8 lanes[LANES * 16] = { 0 };
	u32 size = lane_bytes(bytes);

	for (u32 l = 0; l < LANES; l++)
		memcpy(lanes + l * size, &value, size < 8 ? size : 8);
	return add_constant(d, lanes, LANES * size);
}

u32 decode_constant_pred(struct decoder *d, bool value)
{
	u32 bits = value ? ALL_LANES : 0;

	return add_constant(d, &bits, sizeof(bits));
}

static enum ptx_type int_type(u32 bytes, bool is_signed)
{
	switch (bytes) {
	case 1:
		return is_signed ? PTX_S8 : PTX_U8;
	case 2:
		return is_signed ? PTX_S16 : PTX_U16;
	case 4:
		return is_signed ? PTX_S32 : PTX_U32;
	default:
		return is_signed ? PTX_S64 : PTX_U64;
	}
}

void decode_describe_width(struct decoder *d, u32 from_bytes, u32 to_bytes, bool is_signed)
{
	decode_describe(d, &(struct ptx_insn){
				   .op = PTX_OP_CVT,
				   .type = (u8)int_type(to_bytes, is_signed),
				   .stype = (u8)int_type(from_bytes, is_signed),
			   });
}

void decode_describe_step(struct decoder *d, enum ptx_type type, u32 what)
{
	decode_describe(d, &(struct ptx_insn){
				   .op = PTX_OP_CVT,
				   .type = (u8)type,
				   .stype = (u8)type,
				   .flags = what,
			   });
}

u32 decode_source(struct decoder *d, const struct ptx_operand *o, u32 bytes)
{
	u32 want = lane_bytes(bytes), have, temp;
	struct insn *narrow;

	switch (o->kind) {
	case PTX_REG:
		have = class_bytes[o->cls];
		if (have == want)
			return decode_register(d, o->cls, o->index);
		if (have < want) {
			decode_refuse(d, "a register is narrower than its value");
			return 0;
		}
		temp = decode_temp(d, bytes);
		narrow = decode_emit_extra(d, exec_isa->find_narrow(have, want));
		narrow->op[0] = temp;
		narrow->op[1] = decode_register(d, o->cls, o->index);
		decode_describe_width(d, have, want, false);
		return temp;
	case PTX_IMM:
		return decode_constant(d, o->imm, bytes);
	case PTX_SYM:
		return decode_constant(d, decode_symbol(d, o), bytes);
	case PTX_NONE:
	case PTX_SINK:
		return decode_constant(d, 0, bytes);
	default:
		decode_refuse(d, "an operand of a kind that is not for it");
		return 0;
	}
}

u32 decode_result(struct decoder *d, const struct ptx_operand *o, u32 bytes, bool is_signed)
{
	u32 have, want = lane_bytes(bytes), temp;

	if (o->kind != PTX_REG)
		return decode_temp(d, bytes);
	have = class_bytes[o->cls];
	if (have == want)
		return decode_register(d, o->cls, o->index);
	if (have < want) {
		decode_refuse(d, "a register is narrower than its value");
		return 0;
	}
	temp = decode_temp(d, bytes);
	if (d->n_widenings < 8)
		d->widenings[d->n_widenings++] = (struct widening){
			.from = temp,
			.to = decode_register(d, o->cls, o->index),
			.from_bytes = (u8)want,
			.to_bytes = (u8)have,
			.is_signed = is_signed,
		};
	return temp;
}

void decode_widen(struct decoder *d)
{
	for (u32 i = 0; i < d->n_widenings; i++) {
		const struct widening *w = &d->widenings[i];
		struct insn *in = decode_emit_extra(
			d, exec_isa->find_widen(w->from_bytes, w->to_bytes, w->is_signed));

		in->op[0] = w->to;
		in->op[1] = w->from;
		decode_describe_width(d, w->from_bytes, w->to_bytes, w->is_signed);
	}
	d->n_widenings = 0;
}

u32 decode_pred_source(struct decoder *d, const struct ptx_operand *o, u8 *flags)
{
	if (o->kind == PTX_IMM)
		return decode_constant_pred(d, o->imm != 0);
	if (o->kind != PTX_REG)
		return d->always;
	if (o->neg)
		*flags |= INSN_NEG_PRED;
	return decode_register(d, PTX_CLASS_P, o->index);
}

u32 decode_pred_result(struct decoder *d, const struct ptx_operand *o)
{
	if (o->kind != PTX_REG)
		return decode_temp_pred(d);
	return decode_register(d, PTX_CLASS_P, o->index);
}

/* A shared variable gets its place when the first instruction names it. */
static u64 place_shared(struct decoder *d, struct definition *def)
{
	const struct ptx_var *var = def->symbol->var;

	/* What device functions use has one place in all kernels. */
	if (def->placed && (def->placed_by == 0 || def->placed_by == d->kernel))
		return def->addr;
	if (var->size > SHARED_MAX_BYTES || *d->shared + var->size > SHARED_MAX_BYTES) {
		decode_refuse(d, "more shared memory than there is");
		return 0;
	}
	*d->shared = (*d->shared + var->align - 1) / var->align * var->align;
	def->addr = *d->shared;
	def->placed = true;
	def->placed_by = d->kernel;
	*d->shared += (u32)var->size;
	return def->addr;
}

bool decode_is_dynamic(const struct decoder *d, const struct ptx_operand *o)
{
	const struct ptx_var *var;

	if (o->kind != PTX_SYM)
		return false;
	var = d->module->definitions[o->index]->symbol->var;
	return var && var->space == PTX_SPACE_SHARED && !var->size;
}

u64 decode_symbol(struct decoder *d, const struct ptx_operand *o)
{
	struct definition *def = d->module->definitions[o->index];
	char text[128];

	if (!def->defined) {
		snprintf(text, sizeof(text), "%s is declared and nowhere defined", def->name);
		decode_refuse(d, text);
		return 0;
	}
	if (def->symbol->func)
		return def->function;
	if (def->symbol->var->space == PTX_SPACE_SHARED)
		return place_shared(d, def) + o->imm;
	return def->addr + o->imm;
}
