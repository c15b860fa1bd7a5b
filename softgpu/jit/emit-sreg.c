/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a launch gives its threads: parameters and special registers.
 */
#include "softgpu/jit/access.h"

void emit_param(struct emit *e, const struct jit_insn *in)
{
	LLVMValueRef params =
		emit_fixed(e, e->ptr, e->launch_ptr, e->u->request->layout.launch_params);
	struct access a = { .e = e, .in = in };

	for (uint32_t i = 0; i < in->vec; i++) {
		LLVMTypeRef type = LLVMIntTypeInContext(e->ctx, 8 * in->bytes);
		LLVMValueRef v = emit_fixed(e, type, params, in->imm + (uint64_t)i * in->bytes);

		LLVMSetAlignment(v, 1);
		emit_result(e, in, access_value(&a, i),
			    (struct value){ .is_affine = true,
					    .scalar = access_to_register(&a, v, false) });
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
