/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the parsed form to code: which instruction is decoded where, branches, and functions as a
 * whole.
 */
#include <errno.h>
#include <stdio.h>

#include "softgpu/exec/decode.h"

/* Of one warp: some 64,000 values of 64 bits that are alive at once. */
#define REGISTERS_MAX_BYTES (16u << 20)

void decode_refuse(struct decoder *d, const char *why)
{
	if (d->error)
		return;
	d->error = image_refuse(d->image, "%s, line %u: %s: %s", d->code->name,
				d->in ? d->in->line : 0,
				d->in ? ptx_op_name((enum ptx_op)d->in->op) : "function", why);
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

/* One that neither reads nor writes a register. */
static void emit_bare(struct decoder *d, exec_fn *fn)
{
	decode_emit(d, fn);
	decode_uses(d, 0, 0);
}

/* Return: is it about memory, or the order of accesses to it? */
static bool decode_access(struct decoder *d)
{
	switch (d->in->op) {
	case PTX_OP_LD:
	case PTX_OP_LDU:
	case PTX_OP_ST:
		decode_memory(d);
		return true;
	case PTX_OP_ATOM:
	case PTX_OP_RED:
		decode_atom(d);
		return true;
	case PTX_OP_CP_ASYNC:
		decode_copy_async(d);
		return true;
	case PTX_OP_MBARRIER:
		decode_mbarrier(d);
		return true;
	case PTX_OP_PREFETCH:
	case PTX_OP_PREFETCHU:
	case PTX_OP_APPLYPRIORITY:
	case PTX_OP_DISCARD:
	case PTX_OP_GRIDDEPCONTROL:
	case PTX_OP_SETMAXNREG:
	case PTX_OP_PMEVENT:
	case PTX_OP_MEMBAR:
	case PTX_OP_FENCE:
		emit_bare(d, exec_isa->find_mem(d->in, false));
		return true;
	default:
		return false;
	}
}

/* Return: does it decide what threads do next, or wait for others? */
static bool decode_flow(struct decoder *d)
{
	switch (d->in->op) {
	case PTX_OP_BRA:
		decode_branch(d);
		return true;
	case PTX_OP_BRX:
		decode_branch_table(d);
		return true;
	case PTX_OP_CALL:
		decode_call(d);
		return true;
	case PTX_OP_RET:
		emit_bare(d, flow_ret);
		return true;
	case PTX_OP_EXIT:
		emit_bare(d, flow_exit);
		return true;
	case PTX_OP_TRAP:
	case PTX_OP_BRKPT:
		emit_bare(d, flow_trap);
		return true;
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
		decode_barrier(d);
		return true;
	case PTX_OP_SHFL:
	case PTX_OP_VOTE:
	case PTX_OP_MATCH:
	case PTX_OP_REDUX:
	case PTX_OP_ELECT:
		decode_warp_op(d);
		return true;
	default:
		return false;
	}
}

static void decode_one(struct decoder *d)
{
	if (decode_access(d) || decode_flow(d))
		return;
	switch (d->in->op) {
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
	case PTX_OP_VADD ... PTX_OP_VSET4:
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
		end += ((u64)d->f->n_regs[order[i]] + N_TEMPS) * decode_register_bytes(order[i]);
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
	d->always = decode_constant_pred(d, true);
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
