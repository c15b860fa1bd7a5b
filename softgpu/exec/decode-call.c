/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of calls, and of what threads do together.
 */
#include <errno.h>

#include "softgpu/exec/decode.h"

/* ---- calls -------------------------------------------------------------------------------------- */

static bool formal_slot(struct decoder *d, const struct ptx_param *p, struct call_slot *ret)
{
	ret->in_reg = p->in_reg;
	ret->size = p->size;
	ret->offset = p->offset;
	if (p->in_reg) {
		if (p->cls == PTX_CLASS_P)
			return false;
		ret->operand = decode_register(d, p->cls, p->reg);
		ret->lane_bytes = class_bytes[p->cls];
		ret->size = class_bytes[p->cls];
	}
	return true;
}

static struct call_slot *formal_slots(struct decoder *d, const struct ptx_param *params, u32 n)
{
	struct call_slot *slots = arena_alloc(d->image->arena, (n + 1) * sizeof(*slots));

	if (!slots) {
		d->error = -ENOMEM;
		return NULL;
	}
	for (u32 i = 0; i < n; i++) {
		if (!formal_slot(d, &params[i], &slots[i]))
			decode_refuse(d, "a predicate cannot be a parameter");
	}
	return slots;
}

int decode_formals(struct decoder *d, const struct ptx_proto *proto)
{
	d->code->n_params = proto->n_params;
	d->code->params = formal_slots(d, proto->params, proto->n_params);
	d->code->n_rets = proto->n_rets;
	d->code->rets = formal_slots(d, proto->rets, proto->n_rets);
	return d->error;
}

/* A value as the caller has it. */
static void actual_slot(struct decoder *d, const struct ptx_operand *o, const struct ptx_param *p,
			struct call_slot *ret)
{
	u32 size = p ? p->size : 8;

	ret->size = size;
	switch (o->kind) {
	case PTX_FRAME:
		ret->offset = (u32)o->imm;
		return;
	case PTX_REG:
		if (o->cls == PTX_CLASS_P)
			break;
		ret->in_reg = true;
		ret->operand = decode_register(d, o->cls, o->index);
		ret->lane_bytes = class_bytes[o->cls];
		ret->size = class_bytes[o->cls];
		return;
	case PTX_IMM:
		ret->in_reg = true;
		ret->operand = decode_constant(d, o->imm, size);
		ret->lane_bytes = lane_bytes(size);
		return;
	case PTX_SINK:
		ret->in_reg = true;
		ret->operand = decode_temp(d, 8);
		ret->lane_bytes = 8;
		ret->size = size < 8 ? size : 8;
		return;
	default:
		break;
	}
	decode_refuse(d, "an argument of a kind that cannot be one");
}

static struct call_slot *actual_slots(struct decoder *d, const struct ptx_operand *ops, u32 n,
				      const struct ptx_param *params, u32 n_params)
{
	struct call_slot *slots = arena_alloc(d->image->arena, (n + 1) * sizeof(*slots));

	if (!slots) {
		d->error = -ENOMEM;
		return NULL;
	}
	for (u32 i = 0; i < n; i++)
		actual_slot(d, &ops[i], i < n_params ? &params[i] : NULL, &slots[i]);
	return slots;
}

static void decode_callee(struct decoder *d, const struct ptx_operand *o, struct call *call)
{
	struct definition *def;

	if (o->kind != PTX_SYM) {
		call->callee = decode_source(d, o, 8);
		d->code->deep = true;
		return;
	}
	def = d->module->definitions[o->index];
	call->builtin = def->defined ? BUILTIN_NONE : def->builtin;
	d->image->uses_heap |= call->builtin >= BUILTIN_MALLOC;
	call->name = def->name;
	if (call->builtin)
		return;
	decode_symbol(d, o);
	call->code = def->code;
	if (!vec_room(d, callees, 1)) {
		d->error = -ENOMEM;
		return;
	}
	d->callees[d->n_callees++] = def->code;
}

static u32 n_builtin_args(u8 builtin)
{
	switch (builtin) {
	case BUILTIN_VPRINTF:
	case BUILTIN_ALIGNED_MALLOC:
		return 2;
	case BUILTIN_ASSERTFAIL:
		return 4;
	case BUILTIN_MALLOC:
	case BUILTIN_FREE:
		return 1;
	default:
		return 0;
	}
}

void decode_call(struct decoder *d)
{
	const struct ptx_proto *proto = &d->module->ptx->protos[d->in->aux];
	struct call *call = arena_alloc(d->image->arena, sizeof(*call));
	u32 n_rets = d->in->n_dst;

	if (!call) {
		d->error = -ENOMEM;
		return;
	}
	decode_callee(d, &d->ops[n_rets], call);
	call->n_rets = n_rets;
	call->rets = actual_slots(d, d->ops, n_rets, proto->rets, proto->n_rets);
	call->n_args = d->in->n_ops - n_rets - 1;
	call->args =
		actual_slots(d, d->ops + n_rets + 1, call->n_args, proto->params, proto->n_params);
	if (call->n_args < n_builtin_args(call->builtin))
		decode_refuse(d, "too few arguments");
	decode_emit(d, flow_call)->call = call;
	decode_uses(d, 0, 0);
}

/* ---- together ----------------------------------------------------------------------------------- */

static const struct ptx_operand *operand_or_none(const struct decoder *d, u32 i)
{
	static const struct ptx_operand none = { .kind = PTX_NONE };

	return i < d->in->n_ops ? &d->ops[i] : &none;
}

void decode_barrier(struct decoder *d)
{
	bool red = d->in->mode == PTX_MODE_RED, popc = d->in->bop == PTX_BOP_POPC;
	u32 first = red ? 1 : 0, id, threads, result, pred;
	struct insn *in;
	u8 flags = 0;

	if (d->in->mode == PTX_MODE_WARP) {
		decode_warp_op(d);
		return;
	}
	id = decode_source(d, operand_or_none(d, first), 4);
	threads = decode_source(d, operand_or_none(d, first + 1), 4);
	result = red && popc ? decode_result(d, &d->ops[0], 4, false)
		 : red	     ? decode_pred_result(d, &d->ops[0])
			     : 0;
	pred = red ? decode_pred_source(d, &d->ops[3], &flags) : 0;
	in = decode_emit(d, flow_barrier);
	in->op[0] = id;
	in->op[1] = threads;
	in->op[2] = result;
	in->op[3] = pred;
	in->mode = d->in->mode;
	in->bop = d->in->bop;
	in->flags = flags;
	decode_uses(d, red ? 0x0b : 0x03, red ? 0x04 : 0);
	decode_widen(d);
}

/*
 * All of them as d, p, a, b, c, members: what an instruction does not have is
 * read as 0 and written to nowhere.
 */
struct warp_shape {
	s8 d, p, a, b, c, members; /* operands of the text, or -1 */
};

static struct warp_shape shape_of(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_SHFL:
		return (struct warp_shape){ 0, 1, 2, 3, 4, 5 };
	case PTX_OP_VOTE:
		return (struct warp_shape){ 0, -1, 1, -1, -1, 2 };
	case PTX_OP_MATCH:
		return in->mode == PTX_MODE_ALL ? (struct warp_shape){ 0, 1, 2, -1, -1, 3 }
						: (struct warp_shape){ 0, -1, 1, -1, -1, 2 };
	case PTX_OP_REDUX:
		return (struct warp_shape){ 0, -1, 1, -1, -1, 2 };
	case PTX_OP_ELECT:
		return (struct warp_shape){ 0, 1, -1, -1, -1, 2 };
	default:
		return (struct warp_shape){ -1, -1, -1, -1, -1, 0 };
	}
}

static u32 warp_source(struct decoder *d, s8 i, u32 bytes)
{
	return i < 0 ? decode_constant(d, 0, bytes)
		     : decode_source(d, operand_or_none(d, (u32)i), bytes);
}

void decode_warp_op(struct decoder *d)
{
	struct warp_shape shape = shape_of(d->in);
	bool vote = d->in->op == PTX_OP_VOTE;
	u32 bytes = d->in->op == PTX_OP_MATCH && ptx_type_bytes((enum ptx_type)d->in->type) == 8
			    ? 8
			    : 4;
	u32 op[N_OPERANDS];
	struct insn *in;
	u8 flags = 0;

	op[0] = vote && d->in->type == PTX_PRED ? decode_pred_result(d, &d->ops[0])
		: shape.d < 0			? decode_temp(d, 4)
						: decode_result(d, &d->ops[0], 4, false);
	op[1] = shape.p < 0 ? decode_temp_pred(d) : decode_pred_result(d, &d->ops[shape.p]);
	op[2] = vote ? decode_pred_source(d, &d->ops[1], &flags) : warp_source(d, shape.a, bytes);
	op[3] = warp_source(d, shape.b, 4);
	op[4] = warp_source(d, shape.c, 4);
	op[5] = warp_source(d, shape.members, 4);
	in = decode_emit(d, warp_sync);
	in->inner = find_warp_op(d->in);
	if (!in->inner)
		decode_refuse(d, "there is no such combination of types and modifiers");
	memcpy(in->op, op, sizeof(op));
	in->flags = flags;
	if (d->in->flags & PTX_F_SYNC || d->in->mode == PTX_MODE_WARP)
		in->flags |= INSN_SYNC;
	in->bytes = vote ? 0 : (u8)bytes;
	in->mode = d->in->mode;
	in->bop = d->in->bop;
	in->imm = d->in->flags;
	decode_uses(d, 0x3c, 0x03);
	decode_widen(d);
}
