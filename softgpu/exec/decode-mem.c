/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of what touches memory or names an address.
 */
#include "softgpu/exec/decode.h"

bool decode_address(struct decoder *d, struct insn *t, const struct ptx_operand *o)
{
	t->space = d->in->space;
	t->imm = o->imm;
	switch (o->kind) {
	case PTX_REG:
		t->op[0] = decode_register(d, o->cls, o->index);
		if (o->cls == PTX_CLASS_D)
			t->flags |= INSN_WIDE_ADDRESS;
		else if (o->cls != PTX_CLASS_W)
			decode_refuse(d, "an address needs 32 or 64 bits");
		return false;
	case PTX_FRAME:
		t->flags |= INSN_FRAME_ADDRESS;
		t->space = PTX_SPACE_LOCAL;
		return false;
	case PTX_SYM:
		if (decode_is_dynamic(d, o)) {
			struct insn *in;

			t->op[0] = decode_temp(d, 4);
			in = decode_emit_extra(d, read_dynamic_shared);
			decode_uses(d, 0, 1);
			in->op[0] = t->op[0];
			in->bytes = 4;
			return false;
		}
		t->imm = decode_symbol(d, o);
		break;
	case PTX_PARAM:
	case PTX_IMM:
		break;
	default:
		decode_refuse(d, "no address");
	}
	t->op[0] = decode_constant(d, 0, 8);
	t->flags |= INSN_WIDE_ADDRESS;
	return o->kind == PTX_PARAM;
}

static void emit_memory(struct decoder *d, exec_fn *fn, const struct insn *t)
{
	struct insn *in = decode_emit(d, fn);

	memcpy(in->op, t->op, sizeof(in->op));
	in->imm = t->imm;
	in->space = t->space;
	in->flags = t->flags;
	in->vec = t->vec;
	in->bytes = t->bytes;
	in->mode = t->mode;
	in->sem = d->in->sem;
	in->bop = d->in->bop;
}

static void describe_memory(struct decoder *d, const struct insn *t, bool load, bool known)
{
	struct ptx_insn as = *d->in;
	u8 values = (u8)(((1u << t->vec) - 1) << 1),
	   address = t->flags & INSN_FRAME_ADDRESS ? 0 : 1;

	if (known)
		as.flags |= SHAPE_KNOWN;
	decode_describe(d, &as);
	decode_uses(d, load ? address : values | address, load ? values : 0);
}

/* Up to four elements at a time; the eight of newer PTX are two times four. */
void decode_memory(struct decoder *d)
{
	const struct ptx_insn *in = d->in;
	bool load = in->op != PTX_OP_ST;
	bool is_signed = ptx_type_kind((enum ptx_type)in->type) == 's';
	u32 bytes = ptx_type_bytes((enum ptx_type)in->type), vec = in->vec ? in->vec : 1;
	const struct ptx_operand *values = load ? d->ops : d->ops + 1;
	const struct ptx_operand *address = load ? d->ops + vec : d->ops;

	for (u32 first = 0; first < vec; first += 4) {
		u32 n = vec - first < 4 ? vec - first : 4;
		struct insn t = { .vec = (u8)n, .bytes = (u8)bytes };
		bool known = decode_address(d, &t, address);

		t.imm += first * bytes;
		for (u32 i = 0; i < n; i++)
			t.op[1 + i] = load ? decode_result(d, &values[first + i], bytes, is_signed)
					   : decode_source(d, &values[first + i], bytes);
		emit_memory(d, exec_isa->find_mem(in, known), &t);
		describe_memory(d, &t, load, known);
	}
	decode_widen(d);
}

/* A vector of atomic operations is as many operations: only each element is atomic. */
void decode_atom(struct decoder *d)
{
	const struct ptx_insn *in = d->in;
	u32 bytes = ptx_type_bytes((enum ptx_type)in->type), vec = in->vec ? in->vec : 1;
	bool is_signed = ptx_type_kind((enum ptx_type)in->type) == 's', red = in->op == PTX_OP_RED;
	const struct ptx_operand *address = red ? d->ops : d->ops + vec;
	static const struct ptx_operand nothing = { .kind = PTX_SINK };

	for (u32 i = 0; i < vec; i++) {
		struct insn t = { .vec = 1, .bytes = (u8)bytes };

		decode_address(d, &t, address);
		t.imm += i * bytes;
		t.op[1] = decode_result(d, red ? &nothing : &d->ops[i], bytes, is_signed);
		t.op[2] = decode_source(d, &address[1 + i], bytes);
		if (in->bop == PTX_BOP_CAS)
			t.op[3] = decode_source(d, &address[2], bytes);
		emit_memory(d, find_atom(in), &t);
		decode_uses(d,
			    (in->bop == PTX_BOP_CAS ? 0x0c : 0x04) |
				    (t.flags & INSN_FRAME_ADDRESS ? 0 : 1),
			    2);
	}
	decode_widen(d);
}

/* op[0] address, op[1] result, op[2] a count, a state or a parity. */
void decode_mbarrier(struct decoder *d)
{
	const struct ptx_insn *in = d->in;
	bool waits = in->mode == PTX_MODE_TEST_WAIT || in->mode == PTX_MODE_TRY_WAIT ||
		     in->mode == PTX_MODE_PARITY_WAIT;
	bool counts = in->mode == PTX_MODE_PENDING_COUNT;
	bool of_state = counts || in->mode == PTX_MODE_TEST_WAIT || in->mode == PTX_MODE_TRY_WAIT;
	const struct ptx_operand *rest = d->ops + in->n_dst + !counts;
	struct insn t = { .vec = 1, .bytes = 8 };

	if (counts)
		t.op[0] = decode_constant(d, 0, 8);
	else
		decode_address(d, &t, &d->ops[in->n_dst]);
	t.op[1] = waits	      ? decode_pred_result(d, &d->ops[0])
		  : in->n_dst ? decode_result(d, &d->ops[0], counts ? 4 : 8, false)
			      : decode_temp(d, 8);
	t.op[2] = in->mode == PTX_MODE_INVAL ? decode_constant(d, 0, 4)
					     : decode_source(d, rest, of_state ? 8 : 4);
	emit_memory(d, find_mbarrier((enum ptx_mode)in->mode), &t);
	decode_uses(d, 4 | (t.flags & INSN_FRAME_ADDRESS ? 0 : 1), 2);
	decode_widen(d);
}

/* How many bytes are read: a number, or none where a predicate says so; the rest is zeros. */
static u32 copied_bytes(struct decoder *d, const struct ptx_operand *o, u32 bytes)
{
	const struct ptx_insn select = { .op = PTX_OP_SELP, .type = PTX_B32, .stype = PTX_B32 };
	u32 temp, pred;
	struct insn *in;
	u8 flags = 0;

	if (o->kind == PTX_NONE)
		return decode_constant(d, bytes, 4);
	if (o->kind != PTX_REG || o->cls != PTX_CLASS_P)
		return decode_source(d, o, 4);
	temp = decode_temp(d, 4);
	pred = decode_pred_source(d, o, &flags);
	in = decode_emit_extra(d, decode_handler(&select));
	in->op[0] = temp;
	in->op[1] = decode_constant(d, 0, 4);
	in->op[2] = decode_constant(d, bytes, 4);
	in->op[3] = pred;
	in->flags = flags;
	decode_describe(d, &select);
	decode_uses(d, 0x0e, 1);
	return temp;
}

void decode_copy_async(struct decoder *d)
{
	struct insn to = { 0 }, from = { 0 };

	if (d->in->mode) {
		decode_emit(d, exec_isa->find_mem(d->in, false));
		decode_uses(d, 0, 0);
		return;
	}
	decode_address(d, &to, &d->ops[0]);
	decode_address(d, &from, &d->ops[1]);
	to.bytes = (u8)d->ops[2].imm;
	if (to.bytes != 4 && to.bytes != 8 && to.bytes != 16)
		decode_refuse(d, "copies 4, 8 or 16 bytes");
	to.space = PTX_SPACE_SHARED;
	to.mode = from.flags & INSN_WIDE_ADDRESS;
	to.op[1] = from.op[0];
	to.op[2] = decode_constant(d, from.imm, 8);
	to.op[3] = copied_bytes(d, &d->ops[3], to.bytes);
	emit_memory(d, exec_isa->find_mem(d->in, false), &to);
	decode_uses(d, to.flags & INSN_FRAME_ADDRESS ? 0x0a : 0x0b, 0);
}

/* ---- addresses as values ------------------------------------------------------------------------ */

static void emit_read(struct decoder *d, exec_fn *fn, u64 imm)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)d->in->type);
	u32 result = decode_result(d, &d->ops[0], bytes, false);
	struct insn *in = decode_emit(d, fn);

	in->op[0] = result;
	in->op[1] = decode_constant(d, 0, 8);
	in->imm = imm;
	in->bytes = (u8)bytes;
	decode_uses(d, 0, 1);
	decode_widen(d);
}

static void emit_mov(struct decoder *d, u32 from)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)d->in->type);
	u32 result = decode_result(d, &d->ops[0], bytes, false);
	struct insn *in;

	in = decode_emit(d, exec_isa->find_bits(d->in));
	in->op[0] = result;
	in->op[1] = from;
	decode_uses(d, 2, 1);
	decode_widen(d);
}

static void decode_mov_value(struct decoder *d)
{
	const struct ptx_operand *from = &d->ops[1];
	u32 bytes = ptx_type_bytes((enum ptx_type)d->in->type);
	struct insn *in;
	u8 flags = 0;
	u32 p;

	if (d->in->type == PTX_PRED) {
		p = decode_pred_source(d, from, &flags);
		in = decode_emit(d, exec_isa->find_bits(d->in));
		in->op[0] = decode_pred_result(d, &d->ops[0]);
		/* %is_explicit_cluster, the only one of its kind, is false. */
		in->op[1] = from->kind == PTX_SREG ? decode_constant(d, 0, 4) : p;
		in->op[2] = in->op[1];
		decode_uses(d, 2, 1);
		return;
	}
	switch (from->kind) {
	case PTX_SREG:
		emit_read(d, read_sreg, from->index);
		return;
	case PTX_FRAME:
		emit_read(d, read_frame_address, from->imm);
		return;
	case PTX_PARAM:
		emit_mov(d, decode_constant(d, from->imm, bytes));
		return;
	default:
		if (decode_is_dynamic(d, from))
			emit_read(d, read_dynamic_shared, from->imm);
		else
			emit_mov(d, decode_source(d, from, bytes));
	}
}

static void emit_stack(struct decoder *d, exec_fn *fn)
{
	u32 bytes = ptx_type_bytes((enum ptx_type)d->in->type), op[2];
	struct insn *in;

	for (u32 i = 0; i < 2; i++)
		op[i] = i >= d->in->n_ops  ? 0
			: i < d->in->n_dst ? decode_result(d, &d->ops[i], bytes, false)
					   : decode_source(d, &d->ops[i], bytes);
	in = decode_emit(d, fn);
	memcpy(in->op, op, sizeof(op));
	in->bytes = (u8)bytes;
	decode_uses(d, d->in->n_dst ? (d->in->n_ops > 1 ? 2 : 0) : 1, d->in->n_dst ? 1 : 0);
	decode_widen(d);
}

void decode_mov(struct decoder *d)
{
	u32 ns;

	switch (d->in->op) {
	case PTX_OP_ACTIVEMASK:
		emit_read(d, read_activemask, 0);
		break;
	case PTX_OP_NANOSLEEP:
		ns = decode_source(d, &d->ops[0], 4);
		decode_emit(d, flow_nanosleep)->op[0] = ns;
		decode_uses(d, 1, 0);
		break;
	case PTX_OP_ALLOCA:
		d->code->deep = true;
		emit_stack(d, flow_alloca);
		break;
	case PTX_OP_STACKSAVE:
		emit_stack(d, flow_stacksave);
		break;
	case PTX_OP_STACKRESTORE:
		emit_stack(d, flow_stackrestore);
		break;
	default:
		decode_mov_value(d);
	}
}

static u64 window_of(u8 space)
{
	switch (space) {
	case PTX_SPACE_SHARED:
		return SHARED_WINDOW;
	case PTX_SPACE_LOCAL:
		return LOCAL_WINDOW;
	case PTX_SPACE_PARAM:
		return PARAM_WINDOW;
	default:
		return 0;
	}
}

/* A space's address and its generic one differ by where the space's window is. */
void decode_cvta(struct decoder *d)
{
	u64 window = window_of(d->in->space);
	u32 bytes = d->ops[1].kind == PTX_REG ? class_bytes[d->ops[1].cls] : 8;
	struct ptx_insn add = { .op = PTX_OP_ADD, .type = PTX_U64 };
	u32 from, to;
	struct insn *in;

	if (bytes != 8 || (d->in->op == PTX_OP_CVTA && d->in->type != PTX_U64)) {
		decode_refuse(d, "generic addresses have 64 bits here");
		return;
	}
	from = decode_source(d, &d->ops[1], 8);
	if (d->in->op == PTX_OP_ISSPACEP) {
		in = decode_emit(d, is_in_space);
		in->op[0] = decode_pred_result(d, &d->ops[0]);
		in->op[1] = from;
		in->space = d->in->space;
		decode_uses(d, 2, 1);
		return;
	}
	to = decode_result(d, &d->ops[0], 8, false);
	in = decode_emit(d, exec_isa->find_int(&add));
	in->op[0] = to;
	in->op[1] = from;
	in->op[2] = decode_constant(d, d->in->flags & PTX_F_TO ? -window : window, 8);
	decode_describe(d, &add);
	decode_uses(d, 6, 1);
}
