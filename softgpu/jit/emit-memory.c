/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and stores.
 *
 * The same checks as the interpreter's (softgpu/exec/access.h), in the order of what is cheap: one
 * address for all lanes; lanes that follow each other in memory; lanes anywhere in one block of the
 * address space, or in the block's shared memory. What none of them covers, and every fault, is the
 * handler's. Only one address for all lanes does not need all of them to take part.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/emit.h"
#include "softgpu/mem/space.h"

/* An access while it is written. */
struct access {
	struct emit *e;
	const struct jit_insn *in;
	bool load, shared;   /* not load: a store or a reduction */
	uint32_t size;	     /* bytes of a lane */
	LLVMTypeRef element; /* in memory */
	struct kind kind;    /* of the address */
	LLVMValueRef base;   /* 64 bits: lane 0's address */
	LLVMValueRef limit;  /* shared: bytes that there are */
	bool masked;	     /* there are instructions that leave lanes out */
	LLVMValueRef lanes;  /* which take part, as a vector of bits; all, where not masked */
};

static LLVMValueRef wide(struct access *a, uint64_t v)
{
	return emit_int(a->e, a->e->i64, v);
}

static LLVMValueRef in_order(struct access *a, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildICmp(a->e->b, p, x, y, "");
}

static uint8_t value_class(const struct jit_insn *in)
{
	return in->bytes <= 2 ? PTX_CLASS_H : in->bytes == 4 ? PTX_CLASS_W : PTX_CLASS_D;
}

/* The addresses as 64 bits, of lane 0 or of all. */
static LLVMValueRef address(struct access *a, bool vector)
{
	bool is_wide = a->in->insn_flags & INSN_WIDE_ADDRESS;
	uint8_t cls = is_wide ? PTX_CLASS_D : PTX_CLASS_W;
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef v = emit_operand(a->e, a->in->args[0], cls, vector);

	v = LLVMBuildAdd(b, v,
			 emit_int(a->e, LLVMTypeOf(v), is_wide ? a->in->imm : (uint32_t)a->in->imm),
			 "");
	if (is_wide)
		return v;
	return LLVMBuildZExt(b, v, vector ? emit_vector_of(a->e, a->e->i64) : a->e->i64, "");
}

/* ---- checks ------------------------------------------------------------------------------------- */

static LLVMValueRef is_aligned(struct access *a, LLVMValueRef bits)
{
	LLVMValueRef low = LLVMBuildAnd(a->e->b, bits, wide(a, a->size - 1), "");

	return in_order(a, LLVMIntEQ, low, wide(a, 0));
}

static LLVMValueRef both(struct access *a, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildAnd(a->e->b, x, y, "");
}

/* Global memory: may the kernel touch the 2 MiB in which this address is? */
static LLVMValueRef is_allowed(struct access *a, LLVMValueRef at, bool read, bool write)
{
	struct emit *e = a->e;
	LLVMValueRef number = LLVMBuildLShr(e->b, at, wide(a, SPACE_BLOCK_SHIFT), "");
	LLVMValueRef inside = in_order(a, LLVMIntULT, number, wide(a, SPACE_N_BLOCKS)), access;
	LLVMValueRef need = emit_int(e, e->i8, (read ? SPACE_READ : 0) | (write ? SPACE_WRITE : 0));

	number = LLVMBuildSelect(e->b, inside, number, wide(a, 0), "");
	access = emit_load(e, e->i8, LLVMBuildGEP2(e->b, e->i8, e->space, &number, 1, ""), 1);
	access = LLVMBuildAnd(e->b, access, need, "");
	return both(a, inside, LLVMBuildICmp(e->b, LLVMIntEQ, access, need, ""));
}

/* From first to last, which are the ends of what the lanes touch, lane's size aside. */
static LLVMValueRef is_range(struct access *a, LLVMValueRef first, LLVMValueRef last, bool read,
			     bool write)
{
	LLVMValueRef differ, fits;

	if (a->shared) {
		fits = in_order(a, LLVMIntULE, LLVMBuildAdd(a->e->b, last, wide(a, a->size), ""),
				a->limit);
		return both(a, in_order(a, LLVMIntULE, first, last), fits);
	}
	differ = LLVMBuildLShr(a->e->b, LLVMBuildXor(a->e->b, first, last, ""),
			       wide(a, SPACE_BLOCK_SHIFT), "");
	return both(a, in_order(a, LLVMIntEQ, differ, wide(a, 0)),
		    is_allowed(a, first, read, write));
}

/* ---- places ------------------------------------------------------------------------------------- */

static LLVMValueRef pointer(struct access *a, LLVMValueRef at)
{
	struct emit *e = a->e;
	LLVMValueRef shared;

	if (!a->shared)
		return LLVMBuildIntToPtr(e->b, at, e->ptr, "");
	shared = emit_fixed(e, e->ptr, e->block_ptr, e->u->request->layout.block_shared);
	return LLVMBuildGEP2(e->b, e->i8, shared, &at, 1, "");
}

/* From what lies in memory to what lies in a register, and back. */
static LLVMValueRef to_register(struct access *a, LLVMValueRef v, bool vector)
{
	LLVMTypeRef type = emit_type(a->e, value_class(a->in), vector);

	if (a->in->bytes != 1)
		return v;
	return ptx_type_kind((enum ptx_type)a->in->type) == 's'
		       ? LLVMBuildSExt(a->e->b, v, type, "")
		       : LLVMBuildZExt(a->e->b, v, type, "");
}

static LLVMValueRef to_memory(struct access *a, LLVMValueRef v)
{
	return a->in->bytes == 1 ? LLVMBuildTrunc(a->e->b, v, emit_vector_of(a->e, a->e->i8), "")
				 : v;
}

static uint32_t value_operand(const struct access *a, uint32_t i)
{
	return a->in->args[1 + i];
}

/* ---- lanes that follow each other ---------------------------------------------------------------- */

/* Lanes' elements one after the other, as they lie: every n-th is of one register. */
static LLVMValueRef pick_elements(struct access *a, LLVMValueRef all, uint32_t first)
{
	LLVMValueRef at[N_LANES];

	for (uint32_t i = 0; i < N_LANES; i++)
		at[i] = emit_int(a->e, a->e->i32, i * a->in->vec + first);
	return LLVMBuildShuffleVector(a->e->b, all, LLVMGetUndef(LLVMTypeOf(all)),
				      LLVMConstVector(at, N_LANES), "");
}

/* Only the lanes that take part; the others keep what they have. */
static LLVMValueRef load_masked(struct access *a, LLVMValueRef at)
{
	LLVMTypeRef type = emit_vector_of(a->e, a->element);
	LLVMValueRef p = LLVMBuildBitCast(a->e->b, pointer(a, at), LLVMPointerType(type, 0), "");
	LLVMTypeRef types[] = { type, LLVMTypeOf(p) };
	LLVMValueRef args[] = { p, emit_int(a->e, a->e->i32, a->in->bytes), a->lanes,
				emit_vector(a->e, value_operand(a, 0), value_class(a->in)) };

	return emit_intrinsic(a->e, "llvm.masked.load", types, 2, args, 4);
}

static void store_masked(struct access *a, LLVMValueRef v, LLVMValueRef at)
{
	LLVMValueRef p =
		LLVMBuildBitCast(a->e->b, pointer(a, at), LLVMPointerType(LLVMTypeOf(v), 0), "");
	LLVMTypeRef types[] = { LLVMTypeOf(v), LLVMTypeOf(p) };
	LLVMValueRef args[] = { v, p, emit_int(a->e, a->e->i32, a->in->bytes), a->lanes };

	emit_intrinsic(a->e, "llvm.masked.store", types, 2, args, 4);
}

static void load_row(struct access *a, LLVMValueRef at, LLVMValueRef *ret)
{
	uint32_t n = a->in->vec;
	LLVMValueRef all;

	if (a->masked) {
		ret[0] = load_masked(a, at);
		return;
	}
	all = emit_load(a->e, LLVMVectorType(a->element, n * N_LANES), pointer(a, at),
			a->in->bytes);

	for (uint32_t i = 0; i < n; i++)
		ret[i] = to_register(a, n == 1 ? all : pick_elements(a, all, i), true);
}

/* Two vectors end to end. */
static LLVMValueRef append(struct access *a, LLVMValueRef x, LLVMValueRef y)
{
	uint32_t n = LLVMGetVectorSize(LLVMTypeOf(x));
	LLVMValueRef at[4 * N_LANES];

	for (uint32_t i = 0; i < 2 * n; i++)
		at[i] = emit_int(a->e, a->e->i32, i);
	return LLVMBuildShuffleVector(a->e->b, x, y, LLVMConstVector(at, 2 * n), "");
}

static void store_row(struct access *a, LLVMValueRef at)
{
	uint32_t n = a->in->vec;
	LLVMValueRef v[4] = { NULL }, order[4 * N_LANES];

	for (uint32_t i = 0; i < n; i++)
		v[i] = to_memory(a, emit_vector(a->e, value_operand(a, i), value_class(a->in)));
	if (a->masked) {
		store_masked(a, v[0], at);
		return;
	}
	if (n == 4) {
		v[0] = append(a, append(a, v[0], v[1]), append(a, v[2], v[3]));
	} else if (n == 2) {
		v[0] = append(a, v[0], v[1]);
	}
	if (n > 1) {
		for (uint32_t i = 0; i < n * N_LANES; i++)
			order[i] = emit_int(a->e, a->e->i32, i % n * N_LANES + i / n);
		v[0] = LLVMBuildShuffleVector(a->e->b, v[0], LLVMGetUndef(LLVMTypeOf(v[0])),
					      LLVMConstVector(order, n * N_LANES), "");
	}
	emit_store(a->e, v[0], pointer(a, at), a->in->bytes);
}

/* ---- lanes anywhere ------------------------------------------------------------------------------ */

static LLVMValueRef pointers(struct access *a, LLVMValueRef at, uint32_t i)
{
	struct emit *e = a->e;
	LLVMTypeRef type = emit_vector_of(e, LLVMPointerType(a->element, 0));
	LLVMValueRef shared, offset = wide(a, (uint64_t)i * a->in->bytes);

	if (a->shared) {
		shared = emit_fixed(e, e->i64, e->block_ptr, e->u->request->layout.block_shared);
		offset = LLVMBuildAdd(e->b, shared, offset, "");
	}
	at = LLVMBuildAdd(e->b, at, emit_splat(e, offset), "");
	return LLVMBuildIntToPtr(e->b, at, type, "");
}

static void load_lanes(struct access *a, LLVMValueRef at, LLVMValueRef *ret)
{
	struct emit *e = a->e;

	for (uint32_t i = 0; i < a->in->vec; i++) {
		LLVMTypeRef type = emit_vector_of(e, a->element);
		LLVMValueRef p = pointers(a, at, i);
		LLVMTypeRef types[] = { type, LLVMTypeOf(p) };
		LLVMValueRef args[] = { p, emit_int(e, e->i32, a->in->bytes), a->lanes,
					LLVMGetUndef(type) };

		if (a->masked)
			args[3] = emit_vector(e, value_operand(a, i), value_class(a->in));

		ret[i] = to_register(a, emit_intrinsic(e, "llvm.masked.gather", types, 2, args, 4),
				     true);
	}
}

static void store_lanes(struct access *a, LLVMValueRef at)
{
	struct emit *e = a->e;

	for (uint32_t i = 0; i < a->in->vec; i++) {
		LLVMValueRef p = pointers(a, at, i);
		LLVMValueRef v =
			to_memory(a, emit_vector(e, value_operand(a, i), value_class(a->in)));
		LLVMTypeRef types[] = { LLVMTypeOf(v), LLVMTypeOf(p) };
		LLVMValueRef args[] = { v, p, emit_int(e, e->i32, a->in->bytes), a->lanes };

		emit_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
	}
}

/* ---- one lane after the other -------------------------------------------------------------------- */

static LLVMValueRef combined(struct access *a, LLVMValueRef x, LLVMValueRef y)
{
	bool sign = ptx_type_kind((enum ptx_type)a->in->type) == 's';
	LLVMBuilderRef b = a->e->b;
	LLVMIntPredicate less = sign ? LLVMIntSLT : LLVMIntULT;

	switch (a->in->bop) {
	case PTX_BOP_ADD:
		return LLVMBuildAdd(b, x, y, "");
	case PTX_BOP_AND:
		return LLVMBuildAnd(b, x, y, "");
	case PTX_BOP_OR:
		return LLVMBuildOr(b, x, y, "");
	case PTX_BOP_XOR:
		return LLVMBuildXor(b, x, y, "");
	case PTX_BOP_MIN:
		return LLVMBuildSelect(b, in_order(a, less, x, y), x, y, "");
	default:
		return LLVMBuildSelect(b, in_order(a, less, x, y), y, x, "");
	}
}

static void reduce_lanes(struct access *a, LLVMValueRef at)
{
	LLVMValueRef values = emit_vector(a->e, value_operand(a, 1), value_class(a->in));
	LLVMBuilderRef b = a->e->b;

	for (uint32_t i = 0; i < N_LANES; i++) {
		LLVMValueRef lane = emit_int(a->e, a->e->i32, i);
		LLVMValueRef p = pointer(a, LLVMBuildExtractElement(b, at, lane, ""));
		LLVMValueRef old = emit_load(a->e, a->element, p, a->in->bytes);

		emit_store(a->e, combined(a, old, LLVMBuildExtractElement(b, values, lane, "")), p,
			   a->in->bytes);
	}
}

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
	for (uint32_t i = 0; a->load && i < a->in->vec; i++)
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
	a->load ? load_row(a, a->base, v) : store_row(a, a->base);
	close_way(a, w, v);
	LLVMPositionBuilderAtEnd(a->e->b, other);
}

static void way_lanes(struct access *a, struct ways *w, LLVMValueRef at)
{
	LLVMValueRef v[4] = { NULL };

	if (a->load)
		load_lanes(a, at, v);
	else if (a->in->kind == JIT_REDUCE)
		reduce_lanes(a, at);
	else
		store_lanes(a, at);
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
	for (uint32_t i = 0; a->load && i < a->in->vec; i++)
		v[i] = emit_reload(e, value_operand(a, i));
	close_way(a, w, v);
	if (always)
		return;
	LLVMPositionBuilderAtEnd(e->b, none);
	for (uint32_t i = 0; a->load && i < a->in->vec; i++)
		v[i] = emit_vector(e, value_operand(a, i), value_class(a->in));
	close_way(a, w, v);
}

static void join_ways(struct access *a, struct ways *w)
{
	struct emit *e = a->e;

	LLVMPositionBuilderAtEnd(e->b, w->end);
	for (uint32_t i = 0; a->load && i < a->in->vec; i++) {
		LLVMValueRef phi = LLVMBuildPhi(e->b, emit_type(e, value_class(a->in), true), "");

		for (uint32_t k = 0; k < w->n; k++)
			LLVMAddIncoming(phi, &w->v[k][i], &w->from[k], 1);
		e->values[unit_place(e->u, value_operand(a, i))] = (struct value){ .vector = phi };
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
	first = LLVMBuildAdd(e->b, a->base, wide(a, (uint64_t)(r->low - r->anchor)), "");
	last = LLVMBuildAdd(e->b, a->base, wide(a, (uint64_t)(r->high - r->anchor - a->size)), "");
	ok = both(a, is_aligned(a, a->base), is_range(a, first, last, r->read, r->write));
	emit_leave_if(e, LLVMBuildNot(e->b, ok, ""));
}

/* By the interpreter, if only some lanes take part or the place is not an ordinary one. */
static LLVMValueRef guard_uniform(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef ok = both(a, is_aligned(a, a->base),
			       is_range(a, a->base, a->base, true, false)),
		     some, not_all;
	LLVMValueRef nowhere = LLVMBuildPtrToInt(e->b, e->scalars, e->i64, "");

	some = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), "");
	not_all = LLVMBuildICmp(e->b, LLVMIntNE, bits, e->mask, "");
	not_all = LLVMBuildOr(e->b, not_all, LLVMBuildNot(e->b, ok, ""), "");
	emit_leave_if(e, both(a, some, not_all));
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
		emit_leave_if(e, LLVMBuildNot(e->b,
					      both(a, is_aligned(a, base),
						   is_range(a, base, base, true, false)),
					      ""));
	else
		require_range(a);
	for (uint32_t i = 0; i < a->in->vec; i++) {
		LLVMValueRef at = LLVMBuildAdd(e->b, base, wide(a, (uint64_t)i * a->in->bytes), "");

		v[i] = to_register(a, emit_load(e, a->element, pointer(a, at), a->in->bytes),
				   false);
	}
	for (uint32_t i = 0; i < a->in->vec; i++)
		emit_result(e, a->in, value_operand(a, i),
			    (struct value){ .is_affine = true, .scalar = v[i] });
}

/* Lanes that follow each other, whichever take part, without another way. */
static void access_row(struct access *a)
{
	LLVMValueRef v[4] = { NULL };

	require_range(a);
	if (a->load) {
		load_row(a, a->base, v);
		emit_result(a->e, a->in, value_operand(a, 0), (struct value){ .vector = v[0] });
	} else {
		store_row(a, a->base);
	}
}

static LLVMValueRef reduce(struct access *a, const char *name, LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	return emit_intrinsic(a->e, name, &type, 1, &v, 1);
}

/* Lanes that take no part have the address of the first that does. */
static LLVMValueRef addresses(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef at = address(a, true), first;

	if (!a->masked) {
		a->base = LLVMBuildExtractElement(e->b, at, emit_int(e, e->i32, 0), "");
		return at;
	}
	first = emit_intrinsic(e, "llvm.cttz", &e->i32, 1,
			       (LLVMValueRef[]){ bits, emit_int(e, e->i1, 0) }, 2);
	first = LLVMBuildAnd(e->b, first, emit_int(e, e->i32, N_LANES - 1), "");
	a->base = LLVMBuildExtractElement(e->b, at, first, "");
	return LLVMBuildSelect(e->b, a->lanes, at, emit_splat(e, a->base), "");
}

/* They may follow each other all the same. */
static void try_row(struct access *a, struct ways *w, LLVMValueRef all, LLVMValueRef at)
{
	LLVMValueRef row = emit_spread(a->e, a->base, a->size, LLVMTypeOf(at)), gap, last, ok;

	gap = reduce(a, "llvm.vector.reduce.or", LLVMBuildXor(a->e->b, at, row, ""));
	last = LLVMBuildAdd(a->e->b, a->base, wide(a, (N_LANES - 1) * (uint64_t)a->size), "");
	ok = both(a, is_aligned(a, a->base), is_range(a, a->base, last, a->load, !a->load));
	way_row(a, w, both(a, all, both(a, in_order(a, LLVMIntEQ, gap, wide(a, 0)), ok)));
}

/* Lanes whose addresses are known one by one only. */
static void access_lanes(struct access *a, struct ways *w, LLVMValueRef all, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef at = addresses(a, bits), spread, most, ok;
	LLVMBasicBlockRef other, good = emit_new_block(e, "lanes");

	if (a->in->kind != JIT_REDUCE)
		try_row(a, w, all, at);
	if (a->masked)
		all = LLVMBuildICmp(e->b, LLVMIntNE, bits, emit_int(e, e->i32, 0), "");
	open_way(a, all, &other);
	spread = reduce(a, "llvm.vector.reduce.or",
			LLVMBuildXor(e->b, at, emit_splat(e, a->base), ""));
	ok = is_aligned(a, LLVMBuildOr(e->b, spread, a->base, ""));
	if (a->shared) {
		most = reduce(a, "llvm.vector.reduce.umax", at);
		ok = both(a, ok, is_range(a, wide(a, 0), most, a->load, !a->load));
	} else {
		most = LLVMBuildXor(e->b, a->base, spread, "");
		ok = both(a, ok, is_range(a, a->base, most, a->load, !a->load));
	}
	LLVMBuildCondBr(e->b, ok, good, other);
	LLVMPositionBuilderAtEnd(e->b, good);
	way_lanes(a, w, at);
	LLVMPositionBuilderAtEnd(e->b, other);
}

void emit_memory(struct emit *e, const struct jit_insn *in)
{
	struct access a = {
		.e = e,
		.in = in,
		.load = in->kind == JIT_LOAD,
		.shared = in->space == PTX_SPACE_SHARED,
		.size = in->bytes * in->vec,
		.element = LLVMIntTypeInContext(e->ctx, 8 * in->bytes),
		.kind = kind_of_operand(e->u, in->args[0], e->state),
	};
	struct ways ways = { 0 };
	LLVMValueRef bits = emit_guard_bits(e, in), all, last, ok;
	bool is_row;

	if (a.shared)
		a.limit = LLVMBuildZExt(e->b,
					emit_fixed(e, e->i32, e->block_ptr,
						   e->u->request->layout.block_shared_size),
					e->i64, "");
	if (a.kind.state == KIND_AFFINE)
		a.base = address(&a, false);
	if (a.load && a.kind.state == KIND_AFFINE && !a.kind.stride) {
		load_uniform(&a, bits);
		return;
	}
	a.masked = e->can_mask && in->vec == 1 && in->bytes >= 4 && in->kind != JIT_REDUCE;
	a.lanes = a.masked ? LLVMBuildBitCast(e->b, bits, emit_vector_of(e, e->i1), "")
			   : emit_int(e, emit_vector_of(e, e->i1), 1);
	is_row = a.kind.state == KIND_AFFINE && a.kind.stride == a.size && in->kind != JIT_REDUCE;
	if (is_row && a.masked && unit_always(e->u, in)) {
		access_row(&a);
		return;
	}
	ways.end = emit_new_block(e, "end");
	all = LLVMBuildICmp(e->b, LLVMIntEQ, bits, emit_int(e, e->i32, UINT32_MAX), "");
	if (is_row) {
		last = LLVMBuildAdd(e->b, a.base, wide(&a, (N_LANES - 1) * (uint64_t)a.size), "");
		ok = both(&a, is_aligned(&a, a.base), is_range(&a, a.base, last, a.load, !a.load));
		way_row(&a, &ways, a.masked ? ok : both(&a, all, ok));
	} else {
		access_lanes(&a, &ways, all, bits);
	}
	way_handler(&a, &ways, bits);
	join_ways(&a, &ways);
}

/* ---- parameters and special registers ------------------------------------------------------------ */

void emit_param(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef params =
		emit_fixed(e, e->ptr, e->launch_ptr, e->u->request->layout.launch_params);
	struct access a = { .e = e, .in = in };

	for (uint32_t i = 0; i < in->vec; i++) {
		LLVMTypeRef type = LLVMIntTypeInContext(e->ctx, 8 * in->bytes);
		LLVMValueRef v = emit_fixed(e, type, params, in->imm + (uint64_t)i * in->bytes);

		LLVMSetAlignment(v, 1);
		emit_result(
			e, in, value_operand(&a, i),
			(struct value){ .is_affine = true, .scalar = to_register(&a, v, false) });
	}
}

static LLVMValueRef sreg_word(struct emit *e, uint64_t sreg)
{
	const struct jit_layout *l = &e->u->request->layout;

	switch (sreg) {
	case PTX_SREG_CTAID_X:
	case PTX_SREG_CTAID_Y:
	case PTX_SREG_CTAID_Z:
		return emit_fixed(e, e->i32, e->block_ptr,
				  l->block_ctaid + 4 * (sreg - PTX_SREG_CTAID_X));
	case PTX_SREG_NTID_X:
	case PTX_SREG_NTID_Y:
	case PTX_SREG_NTID_Z:
		return emit_fixed(e, e->i32, e->launch_ptr,
				  l->launch_block + 4 * (sreg - PTX_SREG_NTID_X));
	case PTX_SREG_NCTAID_X:
	case PTX_SREG_NCTAID_Y:
	case PTX_SREG_NCTAID_Z:
		return emit_fixed(e, e->i32, e->launch_ptr,
				  l->launch_grid + 4 * (sreg - PTX_SREG_NCTAID_X));
	case PTX_SREG_LANEID:
		return emit_int(e, e->i32, 0);
	default:
		return emit_fixed(e, e->i32, e->warp,
				  l->warp_tid + 4 * N_LANES * (sreg - PTX_SREG_TID_X));
	}
}

static LLVMValueRef sized(struct emit *e, LLVMValueRef v, uint32_t bytes, bool vector)
{
	LLVMTypeRef type = emit_type(e,
				     bytes == 2	  ? PTX_CLASS_H
				     : bytes == 4 ? PTX_CLASS_W
						  : PTX_CLASS_D,
				     vector);

	return bytes == 4   ? v
	       : bytes == 2 ? LLVMBuildTrunc(e->b, v, type, "")
			    : LLVMBuildZExt(e->b, v, type, "");
}

void emit_sreg(struct emit *e, const struct jit_insn *in)
{
	struct kind kind = kind_of_result(e->u, in, e->state);
	LLVMValueRef v;

	if (kind.state == KIND_AFFINE) {
		v = sized(e, sreg_word(e, in->imm), in->bytes, false);
		emit_result(
			e, in, in->args[0],
			(struct value){ .is_affine = true, .stride = kind.stride, .scalar = v });
		return;
	}
	v = emit_fixed(e, emit_vector_of(e, e->i32), e->warp,
		       e->u->request->layout.warp_tid + 4 * N_LANES * (in->imm - PTX_SREG_TID_X));
	emit_result(e, in, in->args[0], (struct value){ .vector = sized(e, v, in->bytes, true) });
}
