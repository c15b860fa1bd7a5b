/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of instructions that are plain loops over lanes, and of those that are two or three of them.
 */
#include "softgpu/exec/decode.h"

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
	op[4] = reads ? carry : decode_constant_pred(d, false);
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
	if (d->in->flags & PTX_F_SAT && (d->in->type == PTX_F32 || d->in->type == PTX_F64))
		decode_describe_step(d, (enum ptx_type)d->in->type, SHAPE_CLAMP);
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
	if (type == PTX_F32)
		decode_describe_step(d, type, SHAPE_FLUSH);
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

void decode_plain(struct decoder *d)
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

void decode_video(struct decoder *d)
{
	u32 op[4];
	struct insn *in;

	op[0] = decode_result(d, &d->ops[0], 4, false);
	for (u32 i = 1; i < 4; i++)
		op[i] = decode_source(d, &d->ops[i], 4);
	in = decode_emit(d, find_video(d->in));
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
void decode_set(struct decoder *d)
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
void decode_lop3(struct decoder *d)
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
