/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of an access, the same as the interpreter's (softgpu/exec/access.h), and its pointers.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/access.h"
#include "softgpu/mem/space.h"

LLVMValueRef access_extended(struct access *a, LLVMValueRef at)
{
	bool vector = LLVMGetTypeKind(LLVMTypeOf(at)) == LLVMVectorTypeKind;

	return LLVMBuildZExtOrBitCast(a->e->b, at,
				      vector ? emit_vector_of(a->e, a->e->i64) : a->e->i64, "");
}

/* Shared memory's stay words as long as they can: that is half as many vectors. */
LLVMValueRef access_address(struct access *a, bool vector)
{
	bool is_wide = a->in->insn_flags & INSN_WIDE_ADDRESS;
	uint8_t cls = is_wide ? PTX_CLASS_D : PTX_CLASS_W;
	LLVMBuilderRef b = a->e->b;
	LLVMValueRef v = emit_operand(a->e, a->in->args[0], cls, vector);

	v = LLVMBuildAdd(b, v,
			 emit_int(a->e, LLVMTypeOf(v), is_wide ? a->in->imm : (uint32_t)a->in->imm),
			 "");
	return vector && a->shared ? v : access_extended(a, v);
}

/* ---- checks ------------------------------------------------------------------------------------- */

LLVMValueRef access_is_aligned(struct access *a, LLVMValueRef bits)
{
	LLVMValueRef low = LLVMBuildAnd(a->e->b, bits, access_wide(a, a->size - 1), "");

	return access_compare(a, LLVMIntEQ, low, access_wide(a, 0));
}

/* Global memory: may the kernel touch the 2 MiB in which this address is? */
static LLVMValueRef is_allowed(struct access *a, LLVMValueRef at, bool read, bool write)
{
	struct emit *e = a->e;
	LLVMValueRef number = LLVMBuildLShr(e->b, at, access_wide(a, SPACE_BLOCK_SHIFT), "");
	LLVMValueRef inside = access_compare(a, LLVMIntULT, number, access_wide(a, SPACE_N_BLOCKS)),
		     access;
	LLVMValueRef need = emit_int(e, e->i8, (read ? SPACE_READ : 0) | (write ? SPACE_WRITE : 0));

	number = LLVMBuildSelect(e->b, inside, number, access_wide(a, 0), "");
	access = emit_load(e, e->i8, LLVMBuildGEP2(e->b, e->i8, e->space, &number, 1, ""), 1);
	access = LLVMBuildAnd(e->b, access, need, "");
	return access_both(a, inside, LLVMBuildICmp(e->b, LLVMIntEQ, access, need, ""));
}

/* From first to last, which are the ends of what the lanes touch, lane's size aside. */
LLVMValueRef access_is_range(struct access *a, LLVMValueRef first, LLVMValueRef last, bool read,
			     bool write)
{
	LLVMValueRef differ, fits;

	if (a->shared) {
		fits = access_compare(a, LLVMIntULE,
				      LLVMBuildAdd(a->e->b, last, access_wide(a, a->size), ""),
				      a->limit);
		return access_both(a, access_compare(a, LLVMIntULE, first, last), fits);
	}
	differ = LLVMBuildLShr(a->e->b, LLVMBuildXor(a->e->b, first, last, ""),
			       access_wide(a, SPACE_BLOCK_SHIFT), "");
	return access_both(a, access_compare(a, LLVMIntEQ, differ, access_wide(a, 0)),
			   is_allowed(a, first, read, write));
}

LLVMValueRef access_any(struct access *a, LLVMValueRef lanes)
{
	struct emit *e = a->e;

	return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, lanes, e->i32, ""),
			     emit_int(e, e->i32, 0), "");
}

/* No multiples of the size, or in which of the address space's blocks a->base is not. */
static LLVMValueRef is_good_global(struct access *a, LLVMValueRef at)
{
	uint64_t block = UINT64_MAX << SPACE_BLOCK_SHIFT;
	LLVMTypeRef type = LLVMTypeOf(at);
	struct emit *e = a->e;
	LLVMValueRef differ = LLVMBuildXor(e->b, at, emit_splat(e, a->base), ""), away;

	away = LLVMBuildAnd(e->b, differ, emit_int(e, type, block | (a->size - 1)), "");
	away = access_any(a, LLVMBuildICmp(e->b, LLVMIntNE, away, emit_int(e, type, 0), ""));
	return access_both(a, LLVMBuildNot(e->b, away, ""),
			   access_both(a, access_is_aligned(a, a->base),
				       is_allowed(a, a->base, a->load, !a->load)));
}

static LLVMValueRef is_good_shared(struct access *a, LLVMValueRef at)
{
	LLVMTypeRef type = LLVMTypeOf(at), element = LLVMGetElementType(type);
	struct emit *e = a->e;
	LLVMValueRef low = LLVMBuildAnd(e->b, at, emit_int(e, type, a->size - 1), ""), last, bad;

	last = LLVMBuildSub(e->b, a->limit, access_wide(a, a->size), "");
	last = emit_splat(e, LLVMBuildTruncOrBitCast(e->b, last, element, ""));
	bad = LLVMBuildOr(e->b, LLVMBuildICmp(e->b, LLVMIntUGT, at, last, ""),
			  LLVMBuildICmp(e->b, LLVMIntNE, low, emit_int(e, type, 0), ""), "");
	return access_both(a, LLVMBuildNot(e->b, access_any(a, bad), ""),
			   access_compare(a, LLVMIntUGE, a->limit, access_wide(a, a->size)));
}

LLVMValueRef access_is_good(struct access *a, LLVMValueRef at)
{
	return a->shared ? is_good_shared(a, at) : is_good_global(a, at);
}

/* ---- what others may change ------------------------------------------------------------------------ */

void access_charge_poll(struct access *a)
{
	struct emit *e = a->e;
	LLVMValueRef at = emit_at(e, e->warp, e->u->request->layout.warp_spun), spun;

	spun = LLVMBuildAdd(e->b, emit_load(e, e->i64, at, 8), access_wide(a, POLL_COST), "");
	emit_store(e, spun, at, 8);
}

/*
 * x86 keeps loads in order and stores in order; here LLVM has to, too, and must not take what was
 * loaded for what is there.
 */
void access_begin_strong(struct access *a)
{
	bool fence = a->in->kind == JIT_STORE && a->in->sem == PTX_SEM_SC;

	if (a->in->sem > PTX_SEM_WEAK)
		LLVMBuildFence(a->e->b, LLVMAtomicOrderingSequentiallyConsistent,
			       /* singleThread= */ !fence, "");
}

void access_end_strong(struct access *a)
{
	if (a->in->sem > PTX_SEM_WEAK)
		LLVMBuildFence(a->e->b, LLVMAtomicOrderingSequentiallyConsistent,
			       /* singleThread= */ 1, "");
}

/* ---- places ------------------------------------------------------------------------------------- */

LLVMValueRef access_pointer(struct access *a, LLVMValueRef at)
{
	struct emit *e = a->e;
	LLVMValueRef shared;

	if (!a->shared)
		return LLVMBuildIntToPtr(e->b, at, e->ptr, "");
	shared = emit_fixed(e, e->ptr, e->block_ptr, e->u->request->layout.block_shared);
	return LLVMBuildGEP2(e->b, e->i8, shared, &at, 1, "");
}
