/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses to memory, and the ways in which each may go.
 *
 * The same checks as the interpreter's (softgpu/exec/access.h), in the order of what is cheap: one
 * address for all lanes; lanes that follow each other in memory; lanes anywhere in one block of the
 * address space, or in the block's shared memory. What none of them covers, and every fault, is the
 * handler's. Only one address for all lanes does not need all of them to take part.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/access.h"

#define LONG_LOOP   16 /* instructions */
#define STEPS_AHEAD 4
#define LINE_BYTES  64

/* ---- ways that meet ------------------------------------------------------------------------------ */

/* The ways in which an access may go, and what each has loaded. */
struct ways {
	LLVMBasicBlockRef end; /* where they meet */
	LLVMBasicBlockRef from[4];
	LLVMValueRef v[4][4]; /* by way, by element */
	uint32_t n;
};

static void close_way(struct access *a, struct ways *w, LLVMValueRef *v)
{
	for (uint32_t i = 0; i < a->n_results; i++)
		w->v[w->n][i] = v[i];
	w->from[w->n++] = LLVMGetInsertBlock(a->e->b);
	LLVMBuildBr(a->e->b, w->end);
}

/* Goes where @cond holds; the builder is left where it does not. */
static void open_way(struct access *a, LLVMValueRef cond, LLVMBasicBlockRef *ret_else)
{
	LLVMBasicBlockRef then = emit_new_block(a->e, "way");

	*ret_else = emit_new_block(a->e, "else");
	LLVMBuildCondBr(a->e->b, cond, then, *ret_else);
	LLVMPositionBuilderAtEnd(a->e->b, then);
}

static void way_row(struct access *a, struct ways *w, LLVMValueRef cond)
{
	LLVMBasicBlockRef other;
	LLVMValueRef v[4] = { NULL };

	open_way(a, cond, &other);
	a->load ? access_load_row(a, a->base, v) : access_store_row(a, a->base);
	close_way(a, w, v);
	LLVMPositionBuilderAtEnd(a->e->b, other);
}

/* Where all take part and nobody wants to know what was there, that is simpler. */
static void way_atomic(struct access *a, struct ways *w, LLVMValueRef at, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMBasicBlockRef some;
	LLVMValueRef v[4] = { NULL };

	if (a->shared && !a->n_results) {
		open_way(a,
			 LLVMBuildICmp(e->b, LLVMIntEQ, bits, emit_int(e, e->i32, UINT32_MAX), ""),
			 &some);
		access_atomic_all(a, at);
		close_way(a, w, v);
		LLVMPositionBuilderAtEnd(e->b, some);
	}
	access_atomic_some(a, at, bits, v);
	close_way(a, w, v);
}

static void way_lanes(struct access *a, struct ways *w, const struct places *p)
{
	LLVMValueRef v[4] = { NULL };

	a->load ? access_load_lanes(a, p, v) : access_store_lanes(a, p);
	close_way(a, w, v);
}

/* The handler, if any lane takes part. */
static void way_handler(struct access *a, struct ways *w, LLVMValueRef bits)
{
	bool always = unit_always(a->e->u, a->in);
	struct emit *e = a->e;
	LLVMBasicBlockRef none;
	LLVMValueRef v[4] = { NULL };

	if (!always)
		open_way(a, LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), ""),
			 &none);
	emit_run(e, a->in, bits);
	for (uint32_t i = 0; i < a->n_results; i++)
		v[i] = emit_reload(e, access_value(a, i));
	close_way(a, w, v);
	if (always)
		return;
	LLVMPositionBuilderAtEnd(e->b, none);
	for (uint32_t i = 0; i < a->n_results; i++)
		v[i] = emit_vector(e, access_value(a, i), access_class(a->in));
	close_way(a, w, v);
}

static void join_ways(struct access *a, struct ways *w)
{
	struct emit *e = a->e;

	LLVMPositionBuilderAtEnd(e->b, w->end);
	for (uint32_t i = 0; i < a->n_results; i++) {
		LLVMValueRef phi = LLVMBuildPhi(e->b, emit_type(e, access_class(a->in), true), "");

		for (uint32_t k = 0; k < w->n; k++)
			LLVMAddIncoming(phi, &w->v[k][i], &w->from[k], 1);
		e->values[unit_place(e->u, access_value(a, i))] = (struct value){ .vector = phi };
	}
}

/* ---- kinds of access ----------------------------------------------------------------------------- */

/*
 * What the accesses from here to the end of the block touch by this very address register, as one
 * range of bytes behind it. Those of other sizes or alignments have ranges of their own.
 */
static void look_ahead(const struct access *a, struct range *ret)
{
	const struct emit *e = a->e;
	const struct jit_insn *first = a->in;
	int64_t spread = a->kind.stride * (N_LANES - 1);

	*ret = (struct range){
		.low = (int64_t)first->imm,
		.high = (int64_t)first->imm + spread + a->size,
		.read = a->load,
		.write = !a->load,
	};
	for (uint32_t i = e->at; i < e->block->end; i++) {
		const struct jit_insn *in = &e->u->insns[i];
		uint32_t size = in->bytes * in->vec;
		int64_t imm = (int64_t)in->imm, end = imm + spread + size;

		if ((in->kind == JIT_LOAD || in->kind == JIT_STORE) &&
		    in->args[0] == first->args[0] && form_is_native(e->u, in) &&
		    unit_always(e->u, in) && in->space == first->space && size <= a->size &&
		    (imm - (int64_t)first->imm) % size == 0 && imm == (int32_t)imm) {
			ret->low = imm < ret->low ? imm : ret->low;
			ret->high = end > ret->high ? end : ret->high;
			ret->write |= in->kind == JIT_STORE;
			ret->read |= in->kind == JIT_LOAD;
		}
		for (uint32_t k = 0; k < in->n_writes; k++) {
			if (e->u->operands[in->operands + in->n_reads + k] == first->args[0])
				return;
		}
	}
}

static bool is_covered(const struct access *a, const struct range *r)
{
	int64_t imm = (int64_t)a->in->imm;

	return r->size && imm >= r->low &&
	       imm + a->kind.stride * (N_LANES - 1) + a->size <= r->high &&
	       (a->load ? r->read : r->write) && a->in->space == r->space && a->size <= r->size &&
	       (imm - r->anchor) % a->size == 0;
}

/* Goes on only where the lanes may go, for this access and those like it that follow. */
static void require_range(struct access *a)
{
	struct emit *e = a->e;
	struct range *r = &e->ranges[unit_place(e->u, a->in->args[0])];
	LLVMValueRef first, last, ok;

	if (is_covered(a, r))
		return;
	look_ahead(a, r);
	r->anchor = (int64_t)a->in->imm;
	r->space = a->in->space;
	r->size = a->size;
	first = LLVMBuildAdd(e->b, a->base, access_wide(a, (uint64_t)(r->low - r->anchor)), "");
	last = LLVMBuildAdd(e->b, a->base,
			    access_wide(a, (uint64_t)(r->high - r->anchor - a->size)), "");
	ok = access_both(a, access_is_aligned(a, a->base),
			 access_is_range(a, first, last, r->read, r->write));
	emit_refuse_if(e, LLVMBuildNot(e->b, ok, ""));
}

/* By the interpreter, if only some lanes take part or the place is not an ordinary one. */
static LLVMValueRef guard_uniform(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef ok = access_both(a, access_is_aligned(a, a->base),
				      access_is_range(a, a->base, a->base, true, false)),
		     some, not_all;
	LLVMValueRef nowhere = LLVMBuildPtrToInt(e->b, e->scalars, e->i64, "");

	some = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), "");
	not_all = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_mask(e), "");
	not_all = LLVMBuildOr(e->b, not_all, LLVMBuildNot(e->b, ok, ""), "");
	emit_leave_if(e, access_both(a, some, not_all));
	/* For no lane at all something is read that is there, and not used. */
	if (a->shared) {
		LLVMValueRef shared =
			emit_fixed(e, e->i64, e->block_ptr, e->u->request->layout.block_shared);

		nowhere = LLVMBuildSub(e->b, nowhere, shared, "");
	}
	return LLVMBuildSelect(e->b, some, a->base, nowhere, "");
}

/* One address for all lanes. */
static void load_uniform(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef v[4] = { NULL }, base = a->base;

	if (!unit_always(e->u, a->in))
		base = guard_uniform(a, bits);
	else if (is_const(a->in->args[0]))
		emit_refuse_if(
			e, LLVMBuildNot(e->b,
					access_both(a, access_is_aligned(a, base),
						    access_is_range(a, base, base, true, false)),
					""));
	else
		require_range(a);
	for (uint32_t i = 0; i < a->in->vec; i++) {
		LLVMValueRef at =
			LLVMBuildAdd(e->b, base, access_wide(a, (uint64_t)i * a->in->bytes), "");

		v[i] = access_to_register(
			a, emit_load(e, a->element, access_pointer(a, at), a->in->bytes), false);
	}
	if (a->in->sem > PTX_SEM_WEAK)
		access_charge_poll(a);
	for (uint32_t i = 0; i < a->in->vec; i++)
		emit_result(e, a->in, access_value(a, i),
			    (struct value){ .is_affine = true, .scalar = v[i] });
}

/*
 * Is the block part of a loop that is long? In the text a loop goes from its target to the branch.
 * Of a short one the CPU has several rounds under way by itself.
 */
static bool is_in_long_loop(const struct emit *e)
{
	const struct unit *u = e->u;
	uint32_t here = (uint32_t)(e->block - u->blocks);

	for (uint32_t b = here; b < u->n_blocks; b++) {
		const struct piece *end = &u->blocks[b];

		if (end->ends == END_BRANCH && end->target <= here)
			return end->end - u->blocks[end->target].first >= LONG_LOOP;
	}
	return false;
}

/*
 * A warp that strides through memory touches another page with each step, which the CPU does not
 * foresee. The step is what lies between this time and the last one.
 */
static void prefetch_row(struct access *a)
{
	struct emit *e = a->e;
	LLVMValueRef last = emit_variable(e), step, ahead, args[4];
	LLVMTypeRef type = e->ptr;

	step = LLVMBuildSub(e->b, a->base, LLVMBuildLoad2(e->b, e->i64, last, ""), "");
	LLVMBuildStore(e->b, a->base, last);
	step = LLVMBuildMul(e->b, step, access_wide(a, STEPS_AHEAD), "");
	ahead = LLVMBuildAdd(e->b, a->base, step, "");
	args[1] = emit_int(e, e->i32, /* read */ 0);
	args[2] = emit_int(e, e->i32, /* keep it near */ 3);
	args[3] = emit_int(e, e->i32, /* data */ 1);
	for (uint32_t at = 0; at < N_LANES * a->size; at += LINE_BYTES) {
		args[0] = LLVMBuildAdd(e->b, ahead, access_wide(a, at), "");
		args[0] = LLVMBuildIntToPtr(e->b, args[0], e->ptr, "");
		emit_intrinsic(e, "llvm.prefetch", &type, 1, args, 4);
	}
}

/* Lanes that follow each other, whichever take part, without another way. */
static void access_row(struct access *a)
{
	LLVMValueRef v[4] = { NULL };

	require_range(a);
	if (a->load && !a->shared && is_in_long_loop(a->e))
		prefetch_row(a);
	if (a->load) {
		access_load_row(a, a->base, v);
		emit_result(a->e, a->in, access_value(a, 0), (struct value){ .vector = v[0] });
	} else {
		access_store_row(a, a->base);
	}
}

/* Lanes that take no part have the address of the first that does. */
static LLVMValueRef addresses(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef at = access_address(a, true), first = emit_int(e, e->i32, 0);

	if (a->masked) {
		first = emit_intrinsic(e, "llvm.cttz", &e->i32, 1,
				       (LLVMValueRef[]){ bits, emit_int(e, e->i1, 0) }, 2);
		first = LLVMBuildAnd(e->b, first, emit_int(e, e->i32, N_LANES - 1), "");
	}
	first = LLVMBuildExtractElement(e->b, at, first, "");
	a->base = access_extended(a, first);
	return a->masked ? LLVMBuildSelect(e->b, a->lanes, at, emit_splat(e, first), "") : at;
}

/* They may follow each other all the same. */
static LLVMValueRef is_row(struct access *a, const struct places *p)
{
	LLVMValueRef row = emit_spread(a->e, p->first, a->size, LLVMTypeOf(p->at));
	LLVMValueRef differ = LLVMBuildICmp(a->e->b, LLVMIntNE, p->at, row, "");

	return LLVMBuildNot(a->e->b, access_any(a, differ), "");
}

/* Lanes whose addresses are known one by one only. */
static void access_lanes(struct access *a, struct ways *w, LLVMValueRef all, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMBasicBlockRef other, good = emit_new_block(e, "lanes");
	LLVMValueRef at = addresses(a, bits), any = all;
	struct places p;

	if (a->masked)
		any = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), "");
	open_way(a, any, &other);
	LLVMBuildCondBr(e->b, access_is_good(a, at), good, other);
	LLVMPositionBuilderAtEnd(e->b, good);
	if (a->atomic) {
		way_atomic(a, w, at, bits);
	} else {
		p = access_places(a, at);
		way_row(a, w, access_both(a, all, is_row(a, &p)));
		way_lanes(a, w, &p);
	}
	LLVMPositionBuilderAtEnd(e->b, other);
}

/* Is the old value that an atomic operation gives wanted by anybody? */
static bool is_wanted(struct emit *e, const struct jit_insn *in)
{
	uint32_t place = unit_place(e->u, in->args[1]);

	unit_live_before(e->u, e->block, e->at + 1, e->live);
	return set_has(e->live, place);
}

static uint32_t count_results(struct emit *e, const struct jit_insn *in)
{
	if (in->kind == JIT_LOAD)
		return in->vec;
	return in->kind == JIT_ATOMIC && is_wanted(e, in);
}

/* Memory that lanes share. */
static void access_common(struct access *a, LLVMValueRef bits)
{
	LLVMValueRef all, last, ok;
	struct ways ways = { 0 };
	struct emit *e = a->e;
	bool is_row;

	if (a->shared)
		a->limit = LLVMBuildZExt(e->b,
					 emit_fixed(e, e->i32, e->block_ptr,
						    e->u->request->layout.block_shared_size),
					 e->i64, "");
	if (a->kind.state == KIND_AFFINE)
		a->base = access_address(a, false);
	if (a->load && a->kind.state == KIND_AFFINE && !a->kind.stride) {
		load_uniform(a, bits);
		return;
	}
	a->masked = a->atomic || (e->can_mask && a->in->vec == 1 && a->in->bytes >= 4);
	a->lanes = a->masked ? LLVMBuildBitCast(e->b, bits, emit_vector_of(e, e->i1), "")
			     : emit_int(e, emit_vector_of(e, e->i1), 1);
	is_row = a->kind.state == KIND_AFFINE && a->kind.stride == a->size && !a->atomic;
	if (is_row && a->masked && unit_always(e->u, a->in)) {
		access_row(a);
		return;
	}
	ways.end = emit_new_block(e, "end");
	all = LLVMBuildICmp(e->b, LLVMIntEQ, bits, emit_int(e, e->i32, UINT32_MAX), "");
	if (is_row) {
		last = LLVMBuildAdd(e->b, a->base,
				    access_wide(a, (N_LANES - 1) * (uint64_t)a->size), "");
		ok = access_both(a, access_is_aligned(a, a->base),
				 access_is_range(a, a->base, last, a->load, !a->load));
		way_row(a, &ways, a->masked ? ok : access_both(a, all, ok));
	} else {
		access_lanes(a, &ways, all, bits);
	}
	way_handler(a, &ways, bits);
	join_ways(a, &ways);
}

void emit_memory(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef bits = emit_guard_bits(e, in);
	struct access a = {
		.e = e,
		.in = in,
		.load = in->kind == JIT_LOAD,
		.shared = in->space == PTX_SPACE_SHARED,
		.atomic = in->kind == JIT_ATOMIC,
		.n_results = count_results(e, in),
		.size = in->bytes * in->vec,
		.element = LLVMIntTypeInContext(e->ctx, 8 * in->bytes),
	};

	if (!(in->insn_flags & INSN_FRAME_ADDRESS))
		a.kind = kind_of_operand(e->u, in->args[0], e->state);
	access_begin_strong(&a);
	if (in->space == PTX_SPACE_LOCAL)
		access_local(&a, bits);
	else
		access_common(&a, bits);
	access_end_strong(&a);
}
