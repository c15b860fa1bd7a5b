/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the parsed form to code: a handler and operands for each instruction.
 *
 * Handlers exist for operands of exactly their type's width. Where a register
 * is wider, a value is narrowed before or widened after the instruction, by
 * instructions that do not count. Immediates become constants, 32 lanes wide.
 */
#include <errno.h>
#include <stdio.h>

#include "softgpu/exec/decode.h"

/* Of one warp: some 64,000 values of 64 bits that are alive at once. */
#define REGISTERS_MAX_BYTES (16u << 20)

/* Hardware's largest blocks have 227 KiB. */
#define SHARED_MAX_BYTES (227u << 10)

const u32 class_bytes[PTX_N_CLASSES] = {
	[PTX_CLASS_H] = 2,
	[PTX_CLASS_W] = 4,
	[PTX_CLASS_D] = 8,
	[PTX_CLASS_Q] = 16,
};

void decode_refuse(struct decoder *d, const char *why)
{
	if (d->error)
		return;
	d->error = image_refuse(d->image, "%s, line %u: %s: %s", d->code->name,
				d->in ? d->in->line : 0,
				d->in ? ptx_op_name((enum ptx_op)d->in->op) : "function", why);
}

/* ---- operands ----------------------------------------------------------------------------------- */

/* What a register takes: a word for 32 predicates, or 32 lanes. */
static u32 register_bytes(u32 cls)
{
	return cls == PTX_CLASS_P ? 4 : LANES * class_bytes[cls];
}

u32 decode_register(const struct decoder *d, u32 cls, u32 index)
{
	return d->class_start[cls] + index * register_bytes(cls);
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

static u32 constant_pred(struct decoder *d, bool value)
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
		return constant_pred(d, o->imm != 0);
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

/* ---- code --------------------------------------------------------------------------------------- */

static void add_shape(struct decoder *d)
{
	u32 n_ops = d->in ? d->in->n_ops : 0, n_dst = d->in ? d->in->n_dst : 0;

	if (!vec_room(d, shapes, 1)) {
		d->error = d->error ? d->error : -ENOMEM;
		return;
	}
	d->shapes[d->n_shapes++] = (struct insn_shape){
		.writes = (u8)((1u << n_dst) - 1),
		.reads = (u8)(((1u << (n_ops < N_OPERANDS ? n_ops : N_OPERANDS)) - 1) &
			      ~((1u << n_dst) - 1)),
	};
	if (d->in)
		decode_describe(d, d->in);
}

struct insn *decode_emit(struct decoder *d, exec_fn *fn)
{
	static struct insn nowhere;
	struct insn *in;

	if (!vec_room(d, insns, 1)) {
		d->error = d->error ? d->error : -ENOMEM;
		return &nowhere;
	}
	in = &d->insns[d->n_insns++];
	*in = (struct insn){ .fn = fn, .guard = d->guard, .guard_xor = d->guard_xor, .weight = 1 };
	if (!fn)
		decode_refuse(d, "there is no such combination of types and modifiers");
	if (exec_compiler)
		add_shape(d);
	return in;
}

/* Most of them are steps from one register to another. */
struct insn *decode_emit_extra(struct decoder *d, exec_fn *fn)
{
	struct insn *in = decode_emit(d, fn);

	in->weight = 0;
	if (d->n_shapes)
		d->shapes[d->n_shapes - 1] = (struct insn_shape){ .reads = 2, .writes = 1 };
	return in;
}

void decode_describe(struct decoder *d, const struct ptx_insn *as)
{
	struct insn_shape *shape;

	if (!d->n_shapes)
		return;
	shape = &d->shapes[d->n_shapes - 1];
	shape->op = as->op;
	shape->type = as->type;
	shape->stype = as->stype;
	shape->cmp = as->cmp;
	shape->round = as->round;
	shape->flags = as->flags;
}

void decode_uses(struct decoder *d, u8 reads, u8 writes)
{
	if (!d->n_shapes)
		return;
	d->shapes[d->n_shapes - 1].reads = reads;
	d->shapes[d->n_shapes - 1].writes = writes;
}

/* ---- plain instructions ------------------------------------------------------------------------- */

/* Bytes of operand @i where they are not those of the type. */
static u32 operand_bytes(const struct ptx_insn *in, u32 i)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)in->type);
	u32 source = ptx_type_bytes((enum ptx_type)in->stype);

	switch (in->op) {
	case PTX_OP_MUL:
	case PTX_OP_MAD:
		return in->mode == PTX_MODE_WIDE && (i == 0 || i == 3) ? 2 * bytes : bytes;
	case PTX_OP_POPC:
	case PTX_OP_CLZ:
	case PTX_OP_BFIND:
		return i == 0 ? 4 : bytes;
	case PTX_OP_SHL:
	case PTX_OP_SHR:
	case PTX_OP_BFE:
		return i >= 2 ? 4 : bytes;
	case PTX_OP_BFI:
		return i >= 3 ? 4 : bytes;
	case PTX_OP_SLCT:
		return i == 3 ? source : bytes;
	case PTX_OP_PACK:
		return i == 0 ? bytes : source;
	case PTX_OP_UNPACK:
		return i == in->n_dst ? bytes : source;
	default:
		return bytes;
	}
}

static bool is_pred_operand(const struct decoder *d, u32 i)
{
	const struct ptx_insn *in = d->in;

	if (in->type == PTX_PRED)
		return true;
	switch (in->op) {
	case PTX_OP_SETP:
		return i < 2 || i == 4;
	case PTX_OP_TESTP:
		return i == 0;
	case PTX_OP_SELP:
		return i == 3;
	default:
		return false;
	}
}

static void fill_operands(struct decoder *d, u32 *op, u8 *flags)
{
	const struct ptx_insn *in = d->in;
	bool is_signed = ptx_type_kind((enum ptx_type)in->type) == 's';

	if (in->n_ops > N_OPERANDS) {
		decode_refuse(d, "too many operands");
		return;
	}
	for (u32 i = 0; i < in->n_ops; i++) {
		const struct ptx_operand *o = &d->ops[i];

		if (is_pred_operand(d, i))
			op[i] = i < in->n_dst ? decode_pred_result(d, o)
					      : decode_pred_source(d, o, flags);
		else if (i < in->n_dst)
			op[i] = decode_result(d, o, operand_bytes(in, i), is_signed);
		else
			op[i] = decode_source(d, o, operand_bytes(in, i));
	}
}

/* The carry flag is a predicate: read by the ...c forms, written by .cc. */
static bool fill_carry(struct decoder *d, u32 *op)
{
	const struct ptx_insn *in = d->in;
	bool reads = in->op == PTX_OP_ADDC || in->op == PTX_OP_SUBC || in->op == PTX_OP_MADC;
	bool writes = in->flags & PTX_F_CC;
	u32 carry;

	if (!reads && !writes)
		return false;
	carry = decode_register(d, PTX_CLASS_P, d->f->carry);
	op[4] = reads ? carry : constant_pred(d, false);
	op[5] = writes ? carry : decode_temp_pred(d);
	return true;
}

exec_fn *decode_handler(const struct ptx_insn *in)
{
	exec_fn *fn = exec_isa->find_bits(in);

	if (!fn)
		fn = exec_isa->find_int(in);
	if (!fn)
		fn = exec_isa->find_float(in);
	return fn ? fn : exec_isa->find_half(in);
}

/* Bits of MXCSR that an instruction on floats asks for; 0 if it is the usual. */
static u32 float_control(const struct ptx_insn *in)
{
	u32 bits = 0;

	switch (in->round) {
	case PTX_RM:
		bits = 0x2000;
		break;
	case PTX_RP:
		bits = 0x4000;
		break;
	case PTX_RZ:
		bits = 0x6000;
		break;
	default:
		break;
	}
	/* Flush results to zero, and take denormal operands as zero. */
	if (in->flags & PTX_F_FTZ)
		bits |= 0x8040;
	return bits;
}

void decode_wrap_float(struct decoder *d, struct insn *in)
{
	enum ptx_type type = (enum ptx_type)d->in->type;
	u32 control = float_control(d->in);

	if (!control || (type != PTX_F32 && type != PTX_F64 && type != PTX_F32X2))
		return;
	in->inner = in->fn;
	in->fn = exec_isa->with_control;
	in->imm = control;
}

/* .sat and .relu are a second look at the result. */
void decode_clamp(struct decoder *d, u32 result)
{
	exec_fn *clamp = exec_isa->find_float_clamp(d->in);
	struct insn *in;

	if (!clamp)
		clamp = exec_isa->find_half_clamp(d->in);
	if (!clamp)
		return;
	in = decode_emit_extra(d, clamp);
	in->op[0] = in->op[1] = result;
}

/* Halves are computed in float, where they are not denormal; and what does not compute does not flush. */
static bool needs_flush(const struct ptx_insn *in)
{
	if (!(in->flags & PTX_F_FTZ) || !exec_isa->find_flush((enum ptx_type)in->type))
		return false;
	if (in->type != PTX_F32)
		return true;
	return in->op == PTX_OP_MIN || in->op == PTX_OP_MAX || in->op == PTX_OP_NEG ||
	       in->op == PTX_OP_ABS;
}

static void emit_flush(struct decoder *d, enum ptx_type type, u32 to, u32 from)
{
	struct insn *in = decode_emit_extra(d, exec_isa->find_flush(type));

	in->op[0] = to;
	in->op[1] = from;
}

u32 decode_flush(struct decoder *d, enum ptx_type type, u32 source)
{
	u32 temp = decode_temp(d, ptx_type_bytes(type));

	emit_flush(d, type, temp, source);
	return temp;
}

static void flush_operands(struct decoder *d, u32 *op)
{
	if (!needs_flush(d->in))
		return;
	for (u32 i = d->in->n_dst; i < d->in->n_ops; i++) {
		if (!is_pred_operand(d, i))
			op[i] = decode_flush(d, (enum ptx_type)d->in->type, op[i]);
	}
}

/* An f32's result is flushed by the host. */
static void flush_result(struct decoder *d, u32 result)
{
	if (needs_flush(d->in) && d->in->type != PTX_F32 && d->in->op != PTX_OP_SETP)
		emit_flush(d, (enum ptx_type)d->in->type, result, result);
}

static void decode_plain(struct decoder *d)
{
	u32 op[N_OPERANDS] = { 0 };
	struct insn *in;
	bool has_carry;
	u8 flags = 0;

	fill_operands(d, op, &flags);
	flush_operands(d, op);
	has_carry = fill_carry(d, op);
	in = decode_emit(d, decode_handler(d->in));
	if (has_carry)
		decode_uses(d, d->in->n_ops == 4 ? 0x1e : 0x16, 0x21);
	memcpy(in->op, op, sizeof(op));
	in->flags = flags;
	/* Comparisons of halves are one handler for all. */
	in->mode = d->in->op == PTX_OP_SETP ? d->in->cmp : d->in->mode;
	in->bop = d->in->bop;
	if (d->in->op == PTX_OP_PACK || d->in->op == PTX_OP_UNPACK) {
		in->vec = (u8)(d->in->n_ops - 1);
		in->bytes = (u8)ptx_type_bytes((enum ptx_type)d->in->stype);
	}
	decode_wrap_float(d, in);
	flush_result(d, op[0]);
	decode_clamp(d, op[0]);
	decode_widen(d);
}

static void decode_video(struct decoder *d)
{
	u32 op[4];
	struct insn *in;

	op[0] = decode_result(d, &d->ops[0], 4, false);
	for (u32 i = 1; i < 4; i++)
		op[i] = decode_source(d, &d->ops[i], 4);
	in = decode_emit(d, video);
	memcpy(in->op, op, sizeof(op));
	decode_uses(d, 0x0e, 1);
	video_describe(d->in, in);
	decode_widen(d);
}

/* d->in is the selp that says how wide. */
static void emit_select(struct decoder *d, u32 to, u32 yes, u32 no, u32 p)
{
	struct insn *out = decode_emit_extra(d, decode_handler(d->in));

	out->op[0] = to;
	out->op[1] = yes;
	out->op[2] = no;
	out->op[3] = p;
	decode_describe(d, d->in);
	decode_uses(d, 0x0e, 1);
}

/* Each half of the result for itself: p is what the lower halves gave, q the upper ones. */
static void select_halves(struct decoder *d, u32 to, u32 yes, u32 p, u32 q)
{
	u32 if_p = decode_temp(d, 4), if_not = decode_temp(d, 4);

	emit_select(d, if_p, decode_constant(d, yes | yes << 16, 4), decode_constant(d, yes, 4), q);
	emit_select(d, if_not, decode_constant(d, yes << 16, 4), decode_constant(d, 0, 4), q);
	emit_select(d, to, if_p, if_not, p);
}

/* What set gives for true: all bits of an integer, or one; for a pair, in each half. */
static u64 set_true(enum ptx_type type, bool is_pair)
{
	switch (type) {
	case PTX_F32:
		return 0x3f800000;
	case PTX_F16:
	case PTX_F16X2:
		return 0x3c00;
	case PTX_BF16:
	case PTX_BF16X2:
		return 0x3f80;
	default:
		return is_pair ? 0xffff : UINT64_MAX;
	}
}

/* set is setp and a selection between two constants; lop3 with a predicate ends in a comparison. */
static void decode_set(struct decoder *d)
{
	const struct ptx_insn *in = d->in;
	enum ptx_type type = (enum ptx_type)in->type;
	struct ptx_insn compare = *in, select = *in;
	u32 a, b, c, p = decode_temp_pred(d), q = decode_temp_pred(d);
	u32 bytes = ptx_type_bytes((enum ptx_type)in->stype);
	bool is_pair = in->stype == PTX_F16X2 || in->stype == PTX_BF16X2;
	u64 yes = set_true(type, is_pair);
	struct insn *out;
	u8 flags = 0;

	compare.op = PTX_OP_SETP;
	compare.type = in->stype;
	a = decode_source(d, &d->ops[1], bytes);
	b = decode_source(d, &d->ops[2], bytes);
	c = decode_pred_source(d, &d->ops[3], &flags);
	d->in = &compare;
	out = decode_emit(d, decode_handler(d->in));
	out->op[0] = p;
	out->op[1] = q;
	out->op[2] = a;
	out->op[3] = b;
	out->op[4] = c;
	out->flags = flags;
	out->bop = in->bop;
	out->mode = in->cmp;
	decode_uses(d, 0x1c, 3);
	decode_wrap_float(d, out);

	select.op = PTX_OP_SELP;
	if (is_pair)
		select.type = PTX_B32;
	d->in = &select;
	bytes = ptx_type_bytes(type);
	a = decode_result(d, &d->ops[0], bytes, ptx_type_kind(type) == 's');
	if (is_pair)
		select_halves(d, a, (u32)yes, p, q);
	else
		emit_select(d, a, decode_constant(d, yes, bytes), decode_constant(d, 0, bytes), p);
	decode_widen(d);
	d->in = in;
}

/* d|q = (lop3 of a, b, c) != 0, joined with p */
static void decode_lop3(struct decoder *d)
{
	struct ptx_insn compare = *d->in;
	const struct ptx_insn *in = d->in;
	u32 op[5], result;
	struct insn *out;
	u8 flags = 0;

	result = decode_result(d, &d->ops[0], 4, false);
	for (u32 i = 0; i < 4; i++)
		op[i] = decode_source(d, &d->ops[2 + i], 4);
	out = decode_emit(d, exec_isa->find_bits(in));
	out->op[0] = result;
	memcpy(&out->op[1], op, 4 * sizeof(*op));
	decode_uses(d, 0x1e, 1);

	compare.op = PTX_OP_SETP;
	compare.cmp = PTX_CMP_NE;
	d->in = &compare;
	out = decode_emit_extra(d, decode_handler(d->in));
	out->op[0] = decode_pred_result(d, &d->ops[1]);
	out->op[1] = decode_temp_pred(d);
	out->op[2] = result;
	out->op[3] = decode_constant(d, 0, 4);
	out->op[4] = decode_pred_source(d, &d->ops[6], &flags);
	out->flags = flags;
	out->bop = in->bop;
	decode_uses(d, 0x1c, 3);
	d->in = in;
}

/* ---- branches ----------------------------------------------------------------------------------- */

/* Targets are numbers of parsed instructions until all are decoded. */
static void decode_branch(struct decoder *d)
{
	decode_emit(d, flow_bra)->imm = d->ops[0].index;
	decode_uses(d, 0, 0);
}

static void decode_branch_table(struct decoder *d)
{
	u32 index = decode_source(d, &d->ops[0], 4);
	struct insn *in = decode_emit(d, flow_brx);

	in->op[0] = index;
	in->imm = d->in->aux;
	decode_uses(d, 1, 0);
}

static void mark_leaders(struct decoder *d)
{
	const struct ptx_function *f = d->f;

	for (u32 i = 0; i < f->n_insns; i++) {
		const struct ptx_insn *in = &f->insns[i];

		if (in->op == PTX_OP_BRA)
			d->leader[ptx_operands(f, in)[0].index] = true;
	}
	for (u32 t = 0; t < f->n_tables; t++) {
		for (u32 i = 0; i < f->tables[t].n; i++)
			d->leader[f->tables[t].targets[i]] = true;
	}
}

static const struct branch_table *resolve_table(struct decoder *d, const struct insn *insns,
						u32 number)
{
	const struct ptx_table *t = &d->f->tables[number];
	struct branch_table *table;

	table = arena_alloc(d->image->arena, sizeof(*table) + t->n * sizeof(table->targets[0]));
	if (!table) {
		d->error = -ENOMEM;
		return NULL;
	}
	table->n = t->n;
	for (u32 i = 0; i < t->n; i++)
		table->targets[i] = insns + d->place[t->targets[i]];
	return table;
}

static void resolve_branches(struct decoder *d, struct insn *insns)
{
	for (u32 i = 0; i < d->n_insns; i++) {
		if (insns[i].fn == flow_bra)
			insns[i].target = insns + d->place[insns[i].imm];
		else if (insns[i].fn == flow_brx)
			insns[i].table = resolve_table(d, insns, (u32)insns[i].imm);
	}
}

/* ---- functions ---------------------------------------------------------------------------------- */

/* Lanes may come apart or wait in it. */
static bool ends_piece(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_BRA:
	case PTX_OP_BRX:
	case PTX_OP_CALL:
	case PTX_OP_RET:
	case PTX_OP_EXIT:
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
	case PTX_OP_SHFL:
	case PTX_OP_VOTE:
	case PTX_OP_MATCH:
	case PTX_OP_REDUX:
	case PTX_OP_ELECT:
	case PTX_OP_NANOSLEEP:
	case PTX_OP_MMA ... PTX_OP_SUQ:
		return true;
	default:
		return false;
	}
}

static void decode_one(struct decoder *d)
{
	switch (d->in->op) {
	case PTX_OP_LD:
	case PTX_OP_LDU:
	case PTX_OP_ST:
		decode_memory(d);
		break;
	case PTX_OP_ATOM:
	case PTX_OP_RED:
		decode_atom(d);
		break;
	case PTX_OP_CP_ASYNC:
		decode_copy_async(d);
		break;
	case PTX_OP_PREFETCH:
	case PTX_OP_PREFETCHU:
	case PTX_OP_APPLYPRIORITY:
	case PTX_OP_DISCARD:
	case PTX_OP_GRIDDEPCONTROL:
	case PTX_OP_SETMAXNREG:
	case PTX_OP_PMEVENT:
	case PTX_OP_MEMBAR:
	case PTX_OP_FENCE:
		decode_emit(d, exec_isa->find_mem(d->in, false));
		decode_uses(d, 0, 0);
		break;
	case PTX_OP_BRA:
		decode_branch(d);
		break;
	case PTX_OP_BRX:
		decode_branch_table(d);
		break;
	case PTX_OP_CALL:
		decode_call(d);
		break;
	case PTX_OP_RET:
		decode_emit(d, flow_ret);
		decode_uses(d, 0, 0);
		break;
	case PTX_OP_EXIT:
		decode_emit(d, flow_exit);
		decode_uses(d, 0, 0);
		break;
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
		decode_emit(d, flow_trap);
		decode_uses(d, 0, 0);
		break;
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
		decode_barrier(d);
		break;
	case PTX_OP_SHFL:
	case PTX_OP_VOTE:
	case PTX_OP_MATCH:
	case PTX_OP_REDUX:
	case PTX_OP_ELECT:
		decode_warp_op(d);
		break;
	case PTX_OP_MMA ... PTX_OP_MOVMATRIX:
		decode_matrix(d);
		break;
	case PTX_OP_TEX ... PTX_OP_SUQ:
		decode_texture(d);
		break;
	case PTX_OP_ACTIVEMASK:
	case PTX_OP_NANOSLEEP:
	case PTX_OP_ALLOCA:
	case PTX_OP_STACKSAVE:
	case PTX_OP_STACKRESTORE:
	case PTX_OP_MOV:
		decode_mov(d);
		break;
	case PTX_OP_CVTA:
	case PTX_OP_ISSPACEP:
		decode_cvta(d);
		break;
	case PTX_OP_CVT:
		decode_cvt(d);
		break;
	case PTX_OP_SET:
		decode_set(d);
		break;
	case PTX_OP_VADD2 ... PTX_OP_VMAX4:
		decode_video(d);
		break;
	case PTX_OP_LOP3:
		if (d->in->n_ops > 5)
			decode_lop3(d);
		else
			decode_plain(d);
		break;
	default:
		decode_plain(d);
	}
}

/* A place at which compiled code may take over. */
static void emit_enter(struct decoder *d)
{
	d->guard = d->always;
	d->guard_xor = 0;
	decode_emit_extra(d, flow_enter)->imm = d->code->n_enters++;
	decode_uses(d, 0, 0);
	d->ended_piece = false;
}

static void decode_insn(struct decoder *d, u32 i)
{
	d->in = &d->f->insns[i];
	d->ops = ptx_operands(d->f, d->in);
	memset(d->n_temps, 0, sizeof(d->n_temps));
	if (d->leader[i]) {
		d->guard = d->always;
		d->guard_xor = 0;
		decode_emit_extra(d, flow_join);
		decode_uses(d, 0, 0);
	}
	/* A branch comes in behind the join: it has looked for others itself. */
	d->place[i] = d->n_insns;
	if (exec_compiler && (i == 0 || d->leader[i] || d->ended_piece))
		emit_enter(d);
	d->guard = d->always;
	d->guard_xor = 0;
	if (d->in->guard != PTX_NO_GUARD) {
		d->guard = decode_register(d, PTX_CLASS_P, d->in->guard);
		d->guard_xor = d->in->flags & PTX_F_GUARD_NEG ? ALL_LANES : 0;
	}
	decode_one(d);
	d->ended_piece = ends_piece(d->in);
}

/* Compiled code keeps what is the same in all lanes in one word for each register. */
static void layout_scalars(struct decoder *d, u64 *end)
{
	u32 n = 0;

	for (u32 cls = 0; cls < PTX_N_CLASSES; cls++) {
		d->code->class_start[cls] = d->class_start[cls];
		d->code->class_count[cls] = d->f->n_regs[cls] + N_TEMPS;
		n += d->code->class_count[cls];
	}
	*end = (*end + 63) / 64 * 64;
	d->code->scalars = (u32)*end;
	if (exec_compiler)
		*end += n * (u64)sizeof(u64);
}

/* The widest first, so that each register is aligned to its lanes. */
static int layout_registers(struct decoder *d)
{
	static const u8 order[] = { PTX_CLASS_Q, PTX_CLASS_D, PTX_CLASS_W, PTX_CLASS_H,
				    PTX_CLASS_P };
	u64 end = 0;

	for (u32 i = 0; i < sizeof(order); i++) {
		d->class_start[order[i]] = (u32)end;
		end += ((u64)d->f->n_regs[order[i]] + N_TEMPS) * register_bytes(order[i]);
		if (end > REGISTERS_MAX_BYTES)
			return image_refuse(d->image, "%s: too many registers", d->code->name);
	}
	layout_scalars(d, &end);
	d->code->regs_bytes = (u32)(end + 63) / 64 * 64;
	d->code->n_words = d->f->n_regs[PTX_CLASS_W] + 2 * d->f->n_regs[PTX_CLASS_D];
	return 0;
}

static int finish_code(struct decoder *d)
{
	struct arena *arena = d->image->arena;
	struct code *code = d->code;

	/* A last instruction that falls through would run into nothing. */
	d->guard = d->always;
	d->guard_xor = 0;
	decode_emit_extra(d, flow_trap);
	decode_uses(d, 0, 0);
	if (d->error)
		return d->error;

	code->insns = arena_copy(arena, d->insns, d->n_insns * sizeof(*d->insns));
	code->n_insns = d->n_insns;
	code->n_constants = d->n_constants;
	if (d->n_shapes)
		code->shapes = arena_copy(arena, d->shapes, d->n_shapes * sizeof(*d->shapes));
	code->constants = arena_copy(arena, d->constants, d->n_constants);
	code->callees = arena_copy(arena, d->callees, d->n_callees * sizeof(*d->callees));
	code->n_callees = d->n_callees;
	if (!code->insns || !code->constants || !code->callees)
		return -ENOMEM;
	resolve_branches(d, code->insns);
	return d->error;
}

static int decode_body(struct decoder *d)
{
	const struct ptx_function *f = d->f;
	int r;

	d->place = calloc(f->n_insns + 1, sizeof(*d->place));
	d->leader = calloc(f->n_insns + 1, sizeof(*d->leader));
	if (!d->place || !d->leader)
		return -ENOMEM;
	d->always = constant_pred(d, true);
	d->code->local_bytes = f->frame_bytes;
	d->code->local_align = f->frame_align > 16 ? f->frame_align : 16;
	mark_leaders(d);
	r = layout_registers(d);
	if (r)
		return r;
	r = f->kernel ? 0 : decode_formals(d, &d->module->ptx->protos[f->proto]);
	if (r)
		return r;
	for (u32 i = 0; i < f->n_insns && !d->error; i++)
		decode_insn(d, i);
	return finish_code(d);
}

int decode_function(struct exec_image *image, const struct image_module *module,
		    const struct ptx_function *f, struct code *code, u32 kernel, u32 *shared)
{
	struct decoder d = {
		.image = image,
		.module = module,
		.f = f,
		.code = code,
		.kernel = kernel,
		.shared = shared,
	};
	int r;

	r = decode_body(&d);
	free(d.insns);
	free(d.shapes);
	free(d.constants);
	free(d.callees);
	free(d.place);
	free(d.leader);
	return r;
}
