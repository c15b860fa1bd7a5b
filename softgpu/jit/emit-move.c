/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an access moves between memory and registers, once its lanes may go where they go.
 */
#include "softgpu/jit/access.h"

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

/* What the lanes have that do not take part; nothing, where these are none that count. */
static LLVMValueRef kept(struct access *a, uint32_t i, LLVMTypeRef type)
{
	if (unit_always(a->e->u, a->in))
		return LLVMGetUndef(type);
	return emit_vector(a->e, access_value(a, i), access_class(a->in));
}

/* Only the lanes that take part; the others keep what they have. */
static LLVMValueRef load_masked(struct access *a, LLVMValueRef at)
{
	LLVMTypeRef type = emit_vector_of(a->e, a->element);
	LLVMValueRef p =
		LLVMBuildBitCast(a->e->b, access_pointer(a, at), LLVMPointerType(type, 0), "");
	LLVMTypeRef types[] = { type, LLVMTypeOf(p) };
	LLVMValueRef args[] = { p, emit_int(a->e, a->e->i32, a->in->bytes), a->lanes,
				kept(a, 0, type) };

	return emit_intrinsic(a->e, "llvm.masked.load", types, 2, args, 4);
}

static void store_masked(struct access *a, LLVMValueRef v, LLVMValueRef at)
{
	LLVMValueRef p = LLVMBuildBitCast(a->e->b, access_pointer(a, at),
					  LLVMPointerType(LLVMTypeOf(v), 0), "");
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
	all = emit_load(a->e, LLVMVectorType(a->element, n * N_LANES), access_pointer(a, at),
			a->in->bytes);

	for (uint32_t i = 0; i < n; i++)
		ret[i] = access_to_register(a, n == 1 ? all : pick_elements(a, all, i), true);
}

void access_load_row(struct access *a, LLVMValueRef at, LLVMValueRef *ret)
{
	load_row(a, at, ret);
	if (a->in->sem > PTX_SEM_WEAK)
		access_charge_poll(a);
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

void access_store_row(struct access *a, LLVMValueRef at)
{
	uint32_t n = a->in->vec;
	LLVMValueRef v[4] = { NULL }, order[4 * N_LANES];

	for (uint32_t i = 0; i < n; i++)
		v[i] = access_to_memory(a,
					emit_vector(a->e, access_value(a, i), access_class(a->in)));
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
	emit_store(a->e, v[0], access_pointer(a, at), a->in->bytes);
}

/* ---- lanes anywhere ------------------------------------------------------------------------------ */

/* Of global memory the distance from a word in the block of the address space where all of them are. */
struct places access_places(struct access *a, LLVMValueRef at)
{
	LLVMTypeRef words = emit_vector_of(a->e, a->e->i32);
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef from;

	if (a->shared)
		return (struct places){
			.base = access_pointer(a, access_wide(a, 0)),
			.at = at,
			.first = LLVMBuildTrunc(b, a->base, a->e->i32, ""),
		};
	from = LLVMBuildAnd(b, a->base, access_wide(a, ~UINT64_C(3)), "");
	return (struct places){
		.base = access_pointer(a, from),
		.at = LLVMBuildTrunc(b, LLVMBuildSub(b, at, emit_splat(a->e, from), ""), words, ""),
		.first = LLVMBuildTrunc(b, LLVMBuildSub(b, a->base, from, ""), a->e->i32, ""),
	};
}

/* To elements of @type, @offset bytes behind. */
static LLVMValueRef pointers(struct access *a, const struct places *p, LLVMTypeRef type,
			     uint64_t offset)
{
	LLVMTypeRef types = emit_vector_of(a->e, LLVMPointerType(type, 0));
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef at = p->at;

	if (p->base) {
		at = LLVMBuildGEP2(b, a->e->i8, emit_at(a->e, p->base, offset), &at, 1, "");
		return LLVMBuildBitCast(b, at, types, "");
	}
	at = LLVMBuildAdd(b, at, emit_int(a->e, LLVMTypeOf(at), offset), "");
	return LLVMBuildIntToPtr(b, at, types, "");
}

/* The CPU gathers words at least: that in which a smaller element is, of which it is a part. */
static LLVMValueRef gather_small(struct access *a, const struct places *p, uint64_t offset)
{
	LLVMTypeRef words = emit_vector_of(a->e, a->e->i32);
	LLVMValueRef three = emit_int(a->e, words, 3), at, by, args[4];
	struct places word = *p;
	LLVMBuilderRef b = a->e->b;
	LLVMTypeRef types[2];

	at = LLVMBuildAdd(b, p->at, emit_int(a->e, words, offset), "");
	by = LLVMBuildShl(b, LLVMBuildAnd(b, at, three, ""), three, "");
	word.at = LLVMBuildAnd(b, at, LLVMBuildNot(b, three, ""), "");
	args[0] = pointers(a, &word, a->e->i32, 0);
	args[1] = emit_int(a->e, a->e->i32, 4);
	args[2] = a->lanes;
	args[3] = LLVMGetUndef(words);
	types[0] = words;
	types[1] = LLVMTypeOf(args[0]);
	at = emit_intrinsic(a->e, "llvm.masked.gather", types, 2, args, 4);
	return LLVMBuildTrunc(b, LLVMBuildLShr(b, at, by, ""), emit_vector_of(a->e, a->element),
			      "");
}

static LLVMValueRef gather(struct access *a, const struct places *p, uint32_t i)
{
	LLVMTypeRef type = emit_vector_of(a->e, a->element);
	uint64_t offset = (uint64_t)i * a->in->bytes;
	LLVMValueRef at, args[4];
	LLVMTypeRef types[2];

	if (p->base && a->in->bytes < 4)
		return gather_small(a, p, offset);
	at = pointers(a, p, a->element, offset);
	types[0] = type;
	types[1] = LLVMTypeOf(at);
	args[0] = at;
	args[1] = emit_int(a->e, a->e->i32, a->in->bytes);
	args[2] = a->lanes;
	args[3] = a->masked ? kept(a, i, type) : LLVMGetUndef(type);
	return emit_intrinsic(a->e, "llvm.masked.gather", types, 2, args, 4);
}

void access_load_lanes(struct access *a, const struct places *p, LLVMValueRef *ret)
{
	for (uint32_t i = 0; i < a->in->vec; i++)
		ret[i] = access_to_register(a, gather(a, p, i), true);
	if (a->in->sem > PTX_SEM_WEAK)
		access_charge_poll(a);
}

void access_store_lanes(struct access *a, const struct places *places)
{
	struct emit *e = a->e;

	for (uint32_t i = 0; i < a->in->vec; i++) {
		LLVMValueRef p = pointers(a, places, a->element, (uint64_t)i * a->in->bytes);
		LLVMValueRef v = access_to_memory(
			a, emit_vector(e, access_value(a, i), access_class(a->in)));
		LLVMTypeRef types[] = { LLVMTypeOf(v), LLVMTypeOf(p) };
		LLVMValueRef args[] = { v, p, emit_int(e, e->i32, a->in->bytes), a->lanes };

		emit_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
	}
}
