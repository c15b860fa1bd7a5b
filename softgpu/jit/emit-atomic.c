/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic operations: one lane after the other.
 */
#include "softgpu/jit/access.h"

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
		return LLVMBuildSelect(b, access_compare(a, less, x, y), x, y, "");
	default:
		return LLVMBuildSelect(b, access_compare(a, less, x, y), y, x, "");
	}
}

void access_reduce_lanes(struct access *a, LLVMValueRef at)
{
	LLVMValueRef values = emit_vector(a->e, access_value(a, 1), access_class(a->in));
	LLVMBuilderRef b = a->e->b;

	for (uint32_t i = 0; i < N_LANES; i++) {
		LLVMValueRef lane = emit_int(a->e, a->e->i32, i);
		LLVMValueRef p = access_pointer(a, LLVMBuildExtractElement(b, at, lane, ""));
		LLVMValueRef old = emit_load(a->e, a->element, p, a->in->bytes);

		emit_store(a->e, combined(a, old, LLVMBuildExtractElement(b, values, lane, "")), p,
			   a->in->bytes);
	}
}
