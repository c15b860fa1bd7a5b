/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function: entries, blocks, the ways between them, exits.
 *
 *	start --switch--> entry k --> body of its block --> ... --> exit m --> ret m
 *
 * Bodies begin with a phi for each register that is alive, as a scalar or a vector, as the block's
 * kinds say; every way into a block brings values in that form.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/jit/emit.h"

/* ---- ways --------------------------------------------------------------------------------------- */

/* A value in the form that a block wants. */
static struct value as_kind(struct emit *e, uint32_t place, struct kind kind)
{
	struct value v = e->values[place];
	uint8_t cls = e->u->places[place].cls;

	if (kind.state == KIND_AFFINE)
		return (struct value){
			.is_affine = true,
			.stride = kind.stride,
			.scalar = v.raw ? emit_settled(e, v.scalar) : v.scalar,
		};
	if (!v.vector && v.scalar)
		v.vector = emit_spread(e, v.scalar, v.stride, emit_type(e, cls, true));
	if (!v.vector)
		v.vector = LLVMGetUndef(emit_type(e, cls, true));
	return (struct value){ .vector = v.raw ? emit_settled(e, v.vector) : v.vector };
}

static void add_incoming(LLVMValueRef phi, const struct value *v, LLVMBasicBlockRef from)
{
	LLVMValueRef value = v->is_affine ? v->scalar : v->vector;

	LLVMAddIncoming(phi, &value, &from, 1);
}

static LLVMValueRef *make_phis(struct emit *e, const struct piece *b, LLVMBasicBlockRef at)
{
	struct unit *u = e->u;
	LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
	LLVMValueRef *phis = calloc(u->n_places, sizeof(*phis));

	if (!phis) {
		e->no_memory = true;
		return NULL;
	}
	LLVMPositionBuilderAtEnd(e->b, at);
	FOR_LIVE(u, b->live, p)
	{
		bool vector = b->in[p].state != KIND_AFFINE;

		phis[p] = LLVMBuildPhi(e->b, emit_type(e, u->places[p].cls, vector), "");
	}
	if (before)
		LLVMPositionBuilderAtEnd(e->b, before);
	return phis;
}

static bool want_exit(struct emit *e, uint32_t block)
{
	struct emit_piece *eb = &e->blocks[block];

	if (!eb->exit) {
		eb->exit = emit_new_block(e, "exit");
		eb->exit_phis = make_phis(e, &e->u->blocks[block], eb->exit);
	}
	return eb->exit_phis != NULL;
}

/* Whether another fragment waits there, or, going back, the slice is over. */
static LLVMValueRef must_stop(struct emit *e, const struct piece *to)
{
	const struct jit_layout *l = &e->u->request->layout;
	LLVMValueRef c, n, spun;

	c = LLVMBuildICmp(e->b, LLVMIntULE, LLVMBuildLoad2(e->b, e->i32, e->stop, ""),
			  emit_int(e, e->i32, to->enter), "");
	if (to->enter > e->at)
		return c;
	spun = emit_load(e, e->i64, emit_at(e, e->warp, l->warp_spun), 8);
	n = LLVMBuildAdd(e->b, LLVMBuildLoad2(e->b, e->i64, e->executed, ""), spun, "");
	return LLVMBuildOr(e->b, c, LLVMBuildICmp(e->b, LLVMIntUGE, n, e->slice_end, ""), "");
}

static void go_to(struct emit *e, uint32_t number)
{
	const struct piece *to = &e->u->blocks[number];
	struct emit_piece *eb = &e->blocks[number];
	struct unit *u = e->u;
	LLVMBasicBlockRef here;
	bool may_stop = to->joins && want_exit(e, number);
	LLVMValueRef stop = may_stop ? must_stop(e, to) : NULL;

	here = LLVMGetInsertBlock(e->b);
	FOR_LIVE(u, to->live, p)
	{
		struct value v = as_kind(e, p, to->in[p]);

		add_incoming(eb->phis[p], &v, here);
		if (may_stop)
			add_incoming(eb->exit_phis[p], &v, here);
	}
	if (may_stop)
		LLVMBuildCondBr(e->b, stop, eb->exit, eb->body);
	else
		LLVMBuildBr(e->b, eb->body);
}

static void write_block_exit(struct emit *e, uint32_t number)
{
	const struct piece *b = &e->u->blocks[number];
	struct emit_piece *eb = &e->blocks[number];
	struct unit *u = e->u;

	if (!eb->exit)
		return;
	LLVMPositionBuilderAtEnd(e->b, eb->exit);
	memset(e->values, 0, u->n_places * sizeof(*e->values));
	FOR_LIVE(u, b->live, p)
	{
		if (b->in[p].state == KIND_AFFINE)
			e->values[p] = (struct value){ .is_affine = true,
						       .stride = b->in[p].stride,
						       .scalar = eb->exit_phis[p] };
		else
			e->values[p].vector = eb->exit_phis[p];
	}
	emit_exit(e, b->first, (uint32_t)u->insns[b->enter].imm, b->live, emit_executed(e));
}

/* ---- ends of blocks ----------------------------------------------------------------------------- */

/* Do lanes that go there, past others, leave no register behind that anybody reads? */
static bool may_part(const struct emit *e)
{
	const struct piece *to = &e->u->blocks[e->block->target];

	for (uint32_t i = 0; i < e->u->n_words; i++) {
		if (to->live[i])
			return false;
	}
	return to->joins && to->first > e->at;
}

/*
 * The lanes in @bits, if they are some and not all, wait at the branch's target for the others, with
 * which compiled code goes on until it comes there.
 */
static void part(struct emit *e, const struct jit_insn *in, LLVMValueRef bits, LLVMValueRef cond)
{
	LLVMBasicBlockRef apart = emit_new_block(e, "apart"),
			  together = emit_new_block(e, "together");
	LLVMValueRef n, mask, stop, to = emit_int(e, e->i32, e->u->blocks[e->block->target].first);

	LLVMBuildCondBr(e->b, cond, apart, together);
	LLVMPositionBuilderAtEnd(e->b, apart);
	n = LLVMBuildMul(e->b, emit_popcount(e, bits), emit_int(e, e->i64, in->weight), "");
	emit_count_lanes(e, n);
	emit_run_bare(e, bits);
	mask = LLVMBuildAnd(e->b, emit_mask(e), LLVMBuildNot(e->b, bits, ""), "");
	LLVMBuildStore(e->b, mask, e->mask);
	LLVMBuildStore(e->b, emit_popcount(e, mask), e->n_lanes);
	stop = LLVMBuildLoad2(e->b, e->i32, e->stop, "");
	stop = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntULT, stop, to, ""), stop, to, "");
	LLVMBuildStore(e->b, stop, e->stop);
	go_to(e, e->block->next);
	LLVMPositionBuilderAtEnd(e->b, together);
}

/* Some lanes may go another way: only all or none stay in compiled code. */
static void end_branch(struct emit *e)
{
	const struct jit_insn *in = &e->u->insns[e->at];
	LLVMBasicBlockRef taken, not_taken;
	LLVMValueRef bits, some, differ;

	emit_count_insns(e);
	if (unit_always(e->u, in)) {
		e->counted = in->weight;
		emit_count_insns(e);
		go_to(e, e->block->target);
		return;
	}
	bits = emit_guard_bits(e, in);
	some = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), "");
	if (kind_of_operand(e->u, in->guard, e->state).state != KIND_AFFINE) {
		differ = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_mask(e), "");
		differ = LLVMBuildAnd(e->b, some, differ, "");
		if (may_part(e))
			part(e, in, bits, differ);
		else
			emit_leave_if(e, differ);
	}
	taken = emit_new_block(e, "taken");
	not_taken = emit_new_block(e, "past");
	LLVMBuildCondBr(e->b, some, taken, not_taken);
	LLVMPositionBuilderAtEnd(e->b, taken);
	e->counted = in->weight;
	emit_count_insns(e);
	go_to(e, e->block->target);
	LLVMPositionBuilderAtEnd(e->b, not_taken);
	go_to(e, e->block->next);
}

/* A barrier that reads no register: what follows can take the values as they are left. */
static bool is_simple_barrier(const struct unit *u, const struct jit_insn *in)
{
	if ((in->op != PTX_OP_BAR && in->op != PTX_OP_BARRIER) || in->n_writes ||
	    !unit_always(u, in))
		return false;
	for (uint32_t i = 0; i < in->n_reads; i++) {
		if (!is_const(u->operands[in->operands + i]))
			return false;
	}
	return true;
}

static void leave_kept(struct emit *e)
{
	const struct piece *next = &e->u->blocks[e->block->next];
	struct unit *u = e->u;

	emit_count_insns(e);
	FOR_LIVE(u, next->live, p)
	e->values[p] = as_kind(e, p, next->in[p]);
	emit_exit(e, e->at, (uint32_t)u->insns[next->enter].imm, next->live, emit_executed(e));
}

static void end_stop(struct emit *e)
{
	const struct jit_insn *in = &e->u->insns[e->at];
	LLVMBasicBlockRef away, on;

	if (is_simple_barrier(e->u, in) && e->block->next != NO_BLOCK &&
	    e->block->tail == e->at + 1) {
		leave_kept(e);
		return;
	}
	if (is_const(in->guard) || e->block->next == NO_BLOCK) {
		emit_leave(e);
		return;
	}
	/* For no lane at all: past it. */
	emit_count_insns(e);
	away = emit_new_block(e, "stop");
	on = emit_new_block(e, "past");
	LLVMBuildCondBr(
		e->b,
		LLVMBuildICmp(e->b, LLVMIntNE, emit_guard_bits(e, in), emit_int(e, e->i32, 0), ""),
		away, on);
	LLVMPositionBuilderAtEnd(e->b, away);
	emit_leave(e);
	LLVMPositionBuilderAtEnd(e->b, on);
	go_to(e, e->block->next);
}

static void end_block(struct emit *e)
{
	e->at = e->block->end;
	switch (e->block->ends) {
	case END_BRANCH:
		end_branch(e);
		break;
	case END_STOP:
	case END_LEAVE:
		if (e->at < e->u->request->n_insns) {
			end_stop(e);
			break;
		}
		/* Past the last: the interpreter's business. */
		e->at--;
		emit_leave(e);
		break;
	default:
		emit_count_insns(e);
		e->at = e->block->end - 1;
		go_to(e, e->block->next);
	}
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static void emit_call(struct emit *e, const struct jit_insn *in)
{
	const uint32_t *written = e->u->operands + in->operands + in->n_reads;
	LLVMValueRef bits = emit_guard_bits(e, in);

	emit_run(e, in, bits);
	for (uint32_t i = 0; i < in->n_writes; i++) {
		uint32_t place = unit_place(e->u, written[i]);
		uint8_t cls = e->u->places[place].cls;

		if (cls == PTX_CLASS_Q)
			continue;
		/* The handler has left lanes alone that do not take part. */
		e->values[place] = (struct value){ .vector = emit_reload(e, written[i]) };
	}
}

static void emit_insn(struct emit *e, const struct jit_insn *in)
{
	bool native = form_is_native(e->u, in);

	switch (in->kind) {
	case JIT_PARAM:
		native ? emit_param(e, in) : emit_call(e, in);
		break;
	case JIT_SREG:
		emit_sreg(e, in);
		break;
	case JIT_WARP:
		emit_warp(e, in);
		break;
	case JIT_ACTIVE:
		emit_result(e, in, in->args[0],
			    (struct value){ .is_affine = true, .scalar = emit_guard_bits(e, in) });
		break;
	case JIT_LOAD:
	case JIT_STORE:
	case JIT_ATOMIC:
		native ? emit_memory(e, in) : emit_call(e, in);
		break;
	case JIT_PLAIN:
		native ? emit_plain(e, in) : emit_call(e, in);
		break;
	default:
		emit_call(e, in);
	}
}

/* A result is a scalar where the block's kinds count on it. */
static void settle(struct emit *e, const struct jit_insn *in)
{
	const uint32_t *written = e->u->operands + in->operands + in->n_reads;

	kind_step(e->u, in, e->state);
	for (uint32_t i = 0; i < in->n_writes; i++) {
		uint32_t place = unit_place(e->u, written[i]);
		struct value *v = &e->values[place];

		e->ranges[place].size = 0;
		if (e->state[place].state != KIND_AFFINE || v->is_affine)
			continue;
		*v = (struct value){
			.is_affine = true,
			.raw = v->raw,
			.scalar = LLVMBuildExtractElement(e->b, v->vector, emit_first_lane(e), ""),
		};
	}
}

/* What a guarded instruction counts is the lanes that take part. */
static void emit_counted(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef n = NULL;

	if (in->weight && !unit_always(e->u, in))
		n = emit_popcount(e, emit_guard_bits(e, in));
	emit_insn(e, in);
	if (!emit_may_repeat(e, in))
		e->refuge.block = NULL;
	if (n)
		emit_count_lanes(e, n);
	else
		e->counted += in->weight;
	settle(e, in);
}

static void emit_body(struct emit *e, uint32_t number)
{
	const struct piece *b = &e->u->blocks[number];
	struct emit_piece *eb = &e->blocks[number];
	struct unit *u = e->u;

	e->block = b;
	e->counted = 0;
	e->refuge.block = NULL;
	memset(e->values, 0, u->n_places * sizeof(*e->values));
	memset(e->ranges, 0, u->n_places * sizeof(*e->ranges));
	memcpy(e->state, b->in, u->n_places * sizeof(*e->state));
	LLVMPositionBuilderAtEnd(e->b, eb->body);
	FOR_LIVE(u, b->live, p)
	{
		if (b->in[p].state == KIND_AFFINE)
			e->values[p] = (struct value){ .is_affine = true,
						       .stride = b->in[p].stride,
						       .scalar = eb->phis[p] };
		else
			e->values[p].vector = eb->phis[p];
	}
	for (e->at = b->enter + 1; e->at < b->end; e->at++)
		emit_counted(e, &u->insns[e->at]);
	end_block(e);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static LLVMValueRef load_in(struct emit *e, uint32_t place, bool affine)
{
	const struct place *p = &e->u->places[place];
	LLVMValueRef v;

	if (affine) {
		v = emit_load(e, e->i64, emit_at(e, e->scalars, 8 * (uint64_t)place), 8);
		return LLVMBuildTrunc(e->b, v, emit_type(e, p->cls, false), "");
	}
	if (p->cls == PTX_CLASS_P) {
		v = emit_load(e, e->i32, emit_at(e, e->in, p->offset), 4);
		return LLVMBuildBitCast(e->b, v, emit_type(e, p->cls, true), "");
	}
	return emit_load(e, emit_type(e, p->cls, true), emit_at(e, e->in, p->offset), 64);
}

static void emit_entry(struct emit *e, uint32_t number, LLVMValueRef choice)
{
	const struct piece *b = &e->u->blocks[number];
	LLVMBasicBlockRef at = emit_new_block(e, "entry");
	struct unit *u = e->u;
	uint64_t entry = u->insns[b->enter].imm;

	e->entries[entry].first = e->n_outs;
	if (!vec_room(e, outs, u->n_places)) {
		e->no_memory = true;
		return;
	}
	LLVMPositionBuilderAtEnd(e->b, at);
	FOR_LIVE(u, b->live, p)
	{
		bool affine = b->in[p].state == KIND_AFFINE;
		struct value v = { .is_affine = affine };

		if (affine) {
			v.scalar = load_in(e, p, true);
			e->outs[e->n_outs++] = (struct jit_value){
				.place = u->places[p].offset,
				.scalar = p,
				.cls = u->places[p].cls,
				.is_affine = 1,
				.stride = b->in[p].stride,
			};
		} else {
			v.vector = load_in(e, p, false);
		}
		add_incoming(e->blocks[number].phis[p], &v, at);
	}
	e->entries[entry].n = e->n_outs - e->entries[entry].first;
	LLVMBuildBr(e->b, e->blocks[number].body);
	LLVMAddCase(choice, emit_int(e, e->i32, entry), at);
}

/* ---- the function ------------------------------------------------------------------------------- */

/* A variable, which is @v where compiled code is entered. */
static LLVMValueRef variable_of(struct emit *e, LLVMValueRef v)
{
	LLVMValueRef variable = LLVMBuildAlloca(e->b, LLVMTypeOf(v), "");

	LLVMBuildStore(e->b, v, variable);
	return variable;
}

static void emit_start(struct emit *e)
{
	const struct jit_layout *l = &e->u->request->layout;
	LLVMValueRef services, lanes[2][N_LANES];

	for (unsigned int i = 0; i < N_LANES; i++) {
		lanes[0][i] = emit_int(e, e->i32, i);
		lanes[1][i] = emit_int(e, e->i64, i);
	}
	e->lanes_32 = LLVMConstVector(lanes[0], N_LANES);
	e->lanes_64 = LLVMConstVector(lanes[1], N_LANES);
	e->executed = LLVMBuildAlloca(e->b, e->i64, "executed");
	e->first = e->executed;
	for (unsigned int i = 0; i < N_ROOMS; i++)
		e->rooms[i] = LLVMBuildArrayAlloca(e->b, e->i64, emit_int(e, e->i32, N_LANES), "");
	LLVMBuildStore(e->b, emit_load(e, e->i64, emit_at(e, e->warp, l->warp_executed), 8),
		       e->executed);
	e->slice_end = emit_load(e, e->i64, emit_at(e, e->warp, l->warp_slice_end), 8);
	e->block_ptr = emit_fixed(e, e->ptr, e->warp, l->warp_block);
	e->launch_ptr = emit_fixed(e, e->ptr, e->block_ptr, l->block_launch);
	services = emit_fixed(e, e->ptr, e->warp, l->warp_services);
	e->space = emit_fixed(e, e->ptr, e->warp, l->warp_space);
	e->run = emit_fixed(e, e->ptr, services, l->services_run);
	e->n_lanes = variable_of(e, emit_popcount(e, e->mask));
	e->mask = variable_of(e, e->mask);
	e->stop = variable_of(e, e->stop);
}

static void emit_declare(struct emit *e)
{
	LLVMTypeRef types[] = { e->ptr, e->ptr, e->ptr, e->ptr, e->i32, e->i32, e->i32 };
	LLVMValueRef *args[] = { &e->warp,  &e->in,   &e->out, &e->scalars,
				 &e->entry, &e->mask, &e->stop };
	unsigned int kind = LLVMGetEnumAttributeKindForName("nounwind", 8);

	e->fn = LLVMAddFunction(e->module, JIT_SYMBOL, LLVMFunctionType(e->i32, types, 7, 0));
	LLVMAddAttributeAtIndex(e->fn, LLVMAttributeFunctionIndex,
				LLVMCreateEnumAttribute(e->ctx, kind, 0));
	for (unsigned int i = 0; i < 7; i++)
		*args[i] = LLVMGetParam(e->fn, i);
}

static bool emit_prepare(struct emit *e)
{
	struct unit *u = e->u;

	e->i1 = LLVMInt1TypeInContext(e->ctx);
	e->i8 = LLVMInt8TypeInContext(e->ctx);
	e->i16 = LLVMInt16TypeInContext(e->ctx);
	e->i32 = LLVMInt32TypeInContext(e->ctx);
	e->i64 = LLVMInt64TypeInContext(e->ctx);
	e->ptr = LLVMPointerType(e->i8, 0);
	e->blocks = calloc(u->n_blocks, sizeof(*e->blocks));
	e->values = calloc(u->n_places + 1, sizeof(*e->values));
	e->ranges = calloc(u->n_places + 1, sizeof(*e->ranges));
	e->state = calloc(u->n_places + 1, sizeof(*e->state));
	e->live = calloc(u->n_words, sizeof(*e->live));
	e->refuge.values = calloc(u->n_places + 1, sizeof(*e->refuge.values));
	e->refuge.live = calloc(u->n_words, sizeof(*e->refuge.live));
	if (!vec_room(e, entries, u->request->n_enters + 1))
		return false;
	e->n_entries = u->request->n_enters;
	memset(e->entries, 0, (e->n_entries + 1) * sizeof(*e->entries));
	return e->blocks && e->values && e->ranges && e->state && e->live && e->refuge.values &&
	       e->refuge.live;
}

bool emit_function(struct emit *e)
{
	LLVMBasicBlockRef start, nowhere;
	LLVMValueRef choice;
	bool ok;

	if (!emit_prepare(e))
		return false;
	emit_declare(e);
	start = emit_new_block(e, "start");
	nowhere = emit_new_block(e, "nowhere");
	LLVMPositionBuilderAtEnd(e->b, nowhere);
	LLVMBuildUnreachable(e->b);
	LLVMPositionBuilderAtEnd(e->b, start);
	emit_start(e);
	choice = LLVMBuildSwitch(e->b, e->entry, nowhere, e->u->n_blocks);
	for (uint32_t b = 0; b < e->u->n_blocks && !e->no_memory; b++) {
		e->blocks[b].body = emit_new_block(e, "body");
		e->blocks[b].phis = make_phis(e, &e->u->blocks[b], e->blocks[b].body);
	}
	for (uint32_t b = 0; b < e->u->n_blocks && !e->no_memory; b++)
		emit_body(e, b);
	for (uint32_t b = 0; b < e->u->n_blocks && !e->no_memory; b++)
		write_block_exit(e, b);
	for (uint32_t b = 0; b < e->u->n_blocks && !e->no_memory; b++)
		emit_entry(e, b, choice);
	ok = !e->no_memory;
	for (uint32_t b = 0; b < e->u->n_blocks; b++) {
		free(e->blocks[b].phis);
		free(e->blocks[b].exit_phis);
	}
	free(e->blocks);
	free(e->values);
	free(e->ranges);
	free(e->state);
	free(e->live);
	free(e->refuge.values);
	free(e->refuge.live);
	return ok;
}
