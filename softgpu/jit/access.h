/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An access to memory while it is written: where its lanes go, and whether they may.
 */
#ifndef SOFTGPU_JIT_ACCESS_H
#define SOFTGPU_JIT_ACCESS_H

#include "softgpu/jit/emit.h"

struct access {
	struct emit *e;
	const struct jit_insn *in;
	bool load, shared;   /* not load: a store or an atomic operation */
	bool atomic;	     /* lanes one after the other */
	uint32_t n_results;  /* registers that come out */
	uint32_t size;	     /* bytes of a lane */
	LLVMTypeRef element; /* in memory */
	struct kind kind;    /* of the address */
	LLVMValueRef base;   /* 64 bits: lane 0's address */
	LLVMValueRef limit;  /* shared: bytes that there are */
	bool masked;	     /* there are instructions that leave lanes out */
	LLVMValueRef lanes;  /* which take part, as a vector of bits; all, where not masked */
};

/* Lanes' places: distances of 32 bits, as half as many instructions gather by them; or of 64. */
struct places {
	LLVMValueRef base;  /* a pointer; NULL: what is in @at are addresses */
	LLVMValueRef at;    /* a vector */
	LLVMValueRef first; /* of 32 bits: the first lane's distance */
};

static inline LLVMValueRef access_wide(struct access *a, uint64_t v)
{
	return emit_int(a->e, a->e->i64, v);
}

static inline LLVMValueRef access_compare(struct access *a, LLVMIntPredicate p, LLVMValueRef x,
					  LLVMValueRef y)
{
	return LLVMBuildICmp(a->e->b, p, x, y, "");
}

static inline uint8_t access_class(const struct jit_insn *in)
{
	return in->bytes <= 2 ? PTX_CLASS_H : in->bytes == 4 ? PTX_CLASS_W : PTX_CLASS_D;
}

static inline LLVMValueRef access_both(struct access *a, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildAnd(a->e->b, x, y, "");
}

/* From what lies in memory to what lies in a register, and back. */
static inline LLVMValueRef access_to_register(struct access *a, LLVMValueRef v, bool vector)
{
	LLVMTypeRef type = emit_type(a->e, access_class(a->in), vector);

	if (a->in->bytes != 1)
		return v;
	return ptx_type_kind((enum ptx_type)a->in->type) == 's'
		       ? LLVMBuildSExt(a->e->b, v, type, "")
		       : LLVMBuildZExt(a->e->b, v, type, "");
}

static inline LLVMValueRef access_to_memory(struct access *a, LLVMValueRef v)
{
	return a->in->bytes == 1 ? LLVMBuildTrunc(a->e->b, v, emit_vector_of(a->e, a->e->i8), "")
				 : v;
}

static inline uint32_t access_value(const struct access *a, uint32_t i)
{
	return a->in->args[1 + i];
}
/* ---- emit-access.c: checks and places --------------------------------------------------------------- */

/* Lane 0's address as 64 bits; of all lanes as wide as shared memory's addresses come. */
LLVMValueRef access_address(struct access *a, bool vector);
LLVMValueRef access_extended(struct access *a, LLVMValueRef at);

LLVMValueRef access_is_aligned(struct access *a, LLVMValueRef bits);

/* From first to last, which are the ends of what the lanes touch, lane's size aside. */
LLVMValueRef access_is_range(struct access *a, LLVMValueRef first, LLVMValueRef last, bool read,
			     bool write);

/* Whether all lanes of a vector of addresses may go where they go. */
LLVMValueRef access_is_good(struct access *a, LLVMValueRef at);

/* Whether a condition holds in any lane. */
LLVMValueRef access_any(struct access *a, LLVMValueRef lanes);

/* Around volatile, relaxed and acquiring loads, and such stores; nothing around others. */
void access_begin_strong(struct access *a);
void access_end_strong(struct access *a);

/* As softgpu/exec/access.h has it. */
void access_charge_poll(struct access *a);

LLVMValueRef access_pointer(struct access *a, LLVMValueRef at);

/* ---- emit-move.c: between memory and registers ------------------------------------------------------- */

/* Lanes that follow each other from @at on; @ret has room for each element. */
void access_load_row(struct access *a, LLVMValueRef at, LLVMValueRef *ret);
void access_store_row(struct access *a, LLVMValueRef at);

/* Lanes anywhere; of addresses that access_is_good() has found good. */
struct places access_places(struct access *a, LLVMValueRef at);
void access_load_lanes(struct access *a, const struct places *p, LLVMValueRef *ret);
void access_store_lanes(struct access *a, const struct places *p);

/* ---- emit-local.c ----------------------------------------------------------------------------------- */

/* Local memory, of which each lane has its own. */
void access_local(struct access *a, LLVMValueRef bits);

/* ---- emit-atomic.c ---------------------------------------------------------------------------------- */

/* Lane after lane; what was there before goes to @ret where there are results. */
void access_atomic_all(struct access *a, LLVMValueRef at);
void access_atomic_some(struct access *a, LLVMValueRef at, LLVMValueRef bits, LLVMValueRef *ret);

#endif
