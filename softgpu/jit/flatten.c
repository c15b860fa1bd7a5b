/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function as a request: decoded code without pointers.
 */
#include <cpuid.h>
#include <stddef.h>
#include <stdlib.h>

#include "softgpu/exec/access.h"
#include "softgpu/exec/isa.h"
#include "softgpu/jit/code.h"
#include "softgpu/ptx/vec.h"

struct flat {
	const struct code *code;
	VEC(u32, operands);
	bool no_memory;
};

static void add_operand(struct flat *f, u32 operand)
{
	if (!vec_room(f, operands, 1)) {
		f->no_memory = true;
		return;
	}
	f->operands[f->n_operands++] = operand;
}

/* ---- what kind of instruction -------------------------------------------------------------------- */

static bool is_plain_sreg(u64 sreg)
{
	return sreg <= PTX_SREG_TID_Z || sreg == PTX_SREG_LANEID ||
	       (sreg >= PTX_SREG_NTID_X && sreg <= PTX_SREG_NTID_Z) ||
	       (sreg >= PTX_SREG_CTAID_X && sreg <= PTX_SREG_CTAID_Z) ||
	       (sreg >= PTX_SREG_NCTAID_X && sreg <= PTX_SREG_NCTAID_Z);
}

/* Special registers and addresses; the mode says that all lanes read the same. */
static bool describe_read(const struct insn *in, struct jit_insn *ret)
{
	ret->kind = JIT_CALL;
	ret->mode = true;
	if (in->fn == read_sreg) {
		if (is_plain_sreg(in->imm))
			ret->kind = JIT_SREG;
		ret->mode = !(in->imm >= PTX_SREG_LANEMASK_EQ && in->imm <= PTX_SREG_LANEMASK_GT);
		return true;
	}
	if (in->fn == read_activemask)
		ret->kind = JIT_ACTIVE;
	return in->fn == read_activemask || in->fn == read_dynamic_shared ||
	       in->fn == read_frame_address;
}

static bool describe_flow(const struct code *code, const struct insn *in, struct jit_insn *ret)
{
	bool leaves = in->fn == flow_ret || in->fn == flow_exit || in->fn == flow_trap;

	ret->mode = in->mode;
	if (in->fn == flow_join) {
		ret->kind = JIT_JOIN;
	} else if (in->fn == flow_enter) {
		ret->kind = JIT_ENTER;
	} else if (in->fn == flow_bra) {
		ret->kind = JIT_BRANCH;
		ret->target = (u32)(in->target - code->insns);
	} else if (in->fn == flow_brx) {
		ret->kind = JIT_STOP;
		ret->mode = JIT_STOP_ANYWHERE;
	} else if (leaves) {
		ret->kind = in->guard & OPERAND_CONST ? JIT_LEAVE : JIT_STOP;
		ret->mode = 0;
	} else if (in->fn == warp_sync && !is_matrix(in)) {
		ret->kind = JIT_WARP;
	} else if (in->fn == flow_call || in->fn == flow_barrier || in->fn == flow_nanosleep ||
		   in->fn == warp_sync || is_sampling(in)) {
		ret->kind = JIT_STOP;
		ret->mode = 0;
	} else {
		return false;
	}
	return true;
}

static void describe(const struct code *code, const struct insn *in, const struct insn_shape *shape,
		     struct jit_insn *ret)
{
	if (describe_flow(code, in, ret) || describe_read(in, ret))
		return;
	ret->mode = in->mode;
	/* Element for element it would be torn; the handler takes a lane's at once. */
	if ((shape->op == PTX_OP_LD || shape->op == PTX_OP_ST) &&
	    access_is_whole(in->sem, in->vec, in->bytes)) {
		ret->kind = JIT_PLAIN;
		return;
	}
	switch (shape->op) {
	case PTX_OP_LD:
	case PTX_OP_LDU:
		ret->kind = shape->flags & SHAPE_KNOWN && in->space == PTX_SPACE_PARAM ? JIT_PARAM
										       : JIT_LOAD;
		break;
	case PTX_OP_ST:
		ret->kind = JIT_STORE;
		break;
	case PTX_OP_ATOM:
	case PTX_OP_RED:
		ret->kind = JIT_ATOMIC;
		break;
	default:
		ret->kind = JIT_PLAIN;
	}
	if (in->fn == is_in_space || in->fn == flow_alloca || in->fn == flow_stacksave ||
	    in->fn == flow_stackrestore) {
		ret->kind = JIT_CALL;
		ret->mode = 0;
	}
}

/* ---- what it reads and writes --------------------------------------------------------------------- */

static void add_slots(struct flat *f, const struct call_slot *slots, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		if (slots[i].in_reg)
			add_operand(f, slots[i].operand);
	}
}

static void add_fragment(struct flat *f, const struct fragment_shape *shape)
{
	for (u32 i = 0; i < shape->n_regs; i++)
		add_operand(f, shape->regs[i]);
}

/* The lanes' shares of matrices. Loads and stores have one, d, which only the handler tells apart. */
static void add_matrix_reads(struct flat *f, const struct insn *in)
{
	add_fragment(f, &in->matrix->a);
	add_fragment(f, &in->matrix->b);
	add_fragment(f, &in->matrix->c);
	if (!matrix_writes(in))
		add_fragment(f, &in->matrix->d);
}

static void add_list(struct flat *f, const u32 *operands, u32 n)
{
	for (u32 i = 0; i < n; i++)
		add_operand(f, operands[i]);
}

static void add_sampling_reads(struct flat *f, const struct sampling *s)
{
	add_operand(f, s->object);
	add_list(f, s->coords, s->n_coords);
	if (s->mode == PTX_MODE_LEVEL)
		add_operand(f, s->level);
	add_list(f, s->dx, s->n_derivatives);
	add_list(f, s->dy, s->n_derivatives);
	if (s->op == PTX_OP_SUST)
		add_list(f, s->values, s->n_values);
}

static void add_uses(struct flat *f, const struct insn *in, const struct insn_shape *shape,
		     struct jit_insn *ret)
{
	u32 start = f->n_operands;

	ret->operands = start;
	for (u32 i = 0; i < N_OPERANDS; i++) {
		if (shape->reads >> i & 1)
			add_operand(f, in->op[i]);
	}
	if (in->fn == flow_call) {
		add_slots(f, in->call->args, in->call->n_args);
		if (!in->call->code && !in->call->builtin)
			add_operand(f, in->call->callee);
	}
	if (in->fn == flow_ret)
		add_slots(f, f->code->rets, f->code->n_rets);
	if (is_matrix(in))
		add_matrix_reads(f, in);
	if (is_sampling(in))
		add_sampling_reads(f, in->sampling);
	ret->n_reads = (u8)(f->n_operands - start);
	if (f->n_operands - start > UINT8_MAX)
		f->no_memory = true;
	start = f->n_operands;
	for (u32 i = 0; i < N_OPERANDS; i++) {
		if (shape->writes >> i & 1)
			add_operand(f, in->op[i]);
	}
	if (in->fn == flow_call)
		add_slots(f, in->call->rets, in->call->n_rets);
	if (is_matrix(in) && matrix_writes(in))
		add_fragment(f, &in->matrix->d);
	if (is_sampling(in) && in->sampling->op != PTX_OP_SUST)
		add_list(f, in->sampling->values, in->sampling->n_values);
	ret->n_writes = (u8)(f->n_operands - start);
}

static void flatten_insn(struct flat *f, u32 i, struct jit_insn *ret)
{
	const struct insn *in = &f->code->insns[i];
	const struct insn_shape *shape = &f->code->shapes[i];

	*ret = (struct jit_insn){
		.weight = in->weight,
		.op = shape->op,
		.type = shape->type,
		.stype = shape->stype,
		.cmp = shape->cmp,
		.round = shape->round,
		.bop = in->bop,
		.sem = in->sem,
		.flags = shape->flags,
		.guard = in->guard,
		.guard_xor = in->guard_xor,
		/* Where a matrix or a texture's operands are described is an address of this process. */
		.imm = is_matrix(in) || is_sampling(in) ? 0 : in->imm,
		.space = in->space,
		.bytes = in->bytes,
		.vec = in->vec,
		.insn_flags = in->flags,
		.control = in->fn == exec_isa->with_control,
	};
	for (u32 k = 0; k < N_OPERANDS; k++)
		ret->args[k] = in->op[k];
	describe(f->code, in, shape, ret);
	add_uses(f, in, shape, ret);
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static const struct jit_layout layout = {
	.warp_executed = offsetof(struct warp, executed),
	.warp_spun = offsetof(struct warp, spun),
	.warp_slice_end = offsetof(struct warp, slice_end),
	.warp_block = offsetof(struct warp, block),
	.warp_services = offsetof(struct warp, services),
	.warp_tid = offsetof(struct warp, tid),
	.block_shared = offsetof(struct block, shared),
	.block_shared_size = offsetof(struct block, shared_size),
	.block_ctaid = offsetof(struct block, ctaid),
	.block_launch = offsetof(struct block, launch),
	.launch_params = offsetof(struct exec_launch, params),
	.launch_grid = offsetof(struct exec_launch, grid),
	.launch_block = offsetof(struct exec_launch, block),
	.warp_space = offsetof(struct warp, space),
	.warp_frame = offsetof(struct warp, frame),
	.frame_local_base = offsetof(struct frame, local_base),
	.warp_local = offsetof(struct warp, local),
	.warp_local_stride = offsetof(struct warp, local_stride),
	.warp_local_size = offsetof(struct warp, local_size),
	.services_run = offsetof(struct exec_services, run),
};

static void describe_cpu(u32 cpu[8])
{
	u32 a = 0, b = 0, c = 0, d = 0;

	__get_cpuid(1, &a, &b, &c, &d);
	cpu[0] = a;
	cpu[1] = c;
	cpu[2] = d;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		cpu[3] = b;
		cpu[4] = c;
		cpu[5] = d;
	}
	/* Not the bit that says whether this very thread uses XSAVE, which is all there is of states. */
	if (__get_cpuid_count(13, 0, &a, &b, &c, &d))
		cpu[6] = a;
}

struct jit_request *jit_flatten(const struct code *code, bool rows)
{
	struct flat f = { .code = code };
	struct jit_insn *insns = calloc(code->n_insns + 1, sizeof(*insns));
	size_t insn_bytes = code->n_insns * sizeof(*insns), size;
	struct jit_request *r = NULL;
	u8 *at;

	for (u32 i = 0; insns && i < code->n_insns; i++)
		flatten_insn(&f, i, &insns[i]);
	/* Constants are read in whole registers, and 512 bytes is the widest. */
	size = sizeof(*r) + insn_bytes + f.n_operands * sizeof(u32) + code->n_constants + 512;
	if (insns && !f.no_memory)
		r = calloc(1, size);
	if (r) {
		*r = (struct jit_request){
			.magic = JIT_MAGIC,
			.version = JIT_VERSION,
			.size = (u32)size,
			.n_insns = code->n_insns,
			.n_operands = f.n_operands,
			.constant_bytes = code->n_constants + 512,
			.n_enters = code->n_enters,
			.rows = rows,
			.layout = layout,
		};
		memcpy(r->class_start, code->class_start, sizeof(r->class_start));
		memcpy(r->class_count, code->class_count, sizeof(r->class_count));
		describe_cpu(r->cpu);
		at = (u8 *)(r + 1);
		memcpy(at, insns, insn_bytes);
		at += insn_bytes;
		if (f.n_operands)
			memcpy(at, f.operands, f.n_operands * sizeof(u32));
		at += f.n_operands * sizeof(u32);
		memcpy(at, code->constants, code->n_constants);
	}
	free(insns);
	free(f.operands);
	return r;
}
