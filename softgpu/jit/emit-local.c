/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory. Each lane has a piece of its own, at equal distances:
 *
 *	warp->local | lane 0 | lane 1 | ... | lane 31 |	each of local_stride bytes, local_size of them in use
 *
 * So the same place is another address in each lane, which all 32 of them have.
 */
#include "softgpu/exec/machine.h"
#include "softgpu/jit/access.h"

static const struct jit_layout *layout_of(const struct access *a)
{
	return &a->e->u->request->layout;
}

static LLVMValueRef warp_word(struct access *a, uint32_t offset)
{
	struct emit *e = a->e;

	return LLVMBuildZExt(e->b, emit_fixed(e, e->i32, e->warp, offset), e->i64, "");
}

/* Where in a piece: for all lanes, or one by one. An address may have come with its window. */
static LLVMValueRef offset_of(struct access *a)
{
	bool vector = a->kind.state != KIND_AFFINE || a->kind.stride;
	struct emit *e = a->e;
	LLVMValueRef v, frame, window;

	if (a->in->insn_flags & INSN_FRAME_ADDRESS) {
		frame = emit_fixed(e, e->ptr, e->warp, layout_of(a)->warp_frame);
		v = emit_fixed(e, e->i32, frame, layout_of(a)->frame_local_base);
		return LLVMBuildAdd(e->b, LLVMBuildZExt(e->b, v, e->i64, ""),
				    access_wide(a, a->in->imm), "");
	}
	v = access_address(a, vector);
	window = emit_int(e, LLVMTypeOf(v), LOCAL_WINDOW);
	return LLVMBuildSelect(e->b, access_compare(a, LLVMIntUGE, v, window),
			       LLVMBuildSub(e->b, v, window, ""), v, "");
}

static bool is_vector(LLVMValueRef v)
{
	return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

/* Inside the piece, and a multiple of the size? */
static LLVMValueRef is_good(struct access *a, LLVMValueRef offset)
{
	LLVMValueRef size = warp_word(a, layout_of(a)->warp_local_size), last, low, bad;
	LLVMTypeRef type = LLVMTypeOf(offset);
	struct emit *e = a->e;

	last = LLVMBuildSub(e->b, size, access_wide(a, a->size), "");
	if (is_vector(offset))
		last = emit_splat(e, last);
	low = LLVMBuildAnd(e->b, offset, emit_int(e, type, a->size - 1), "");
	bad = LLVMBuildOr(e->b, access_compare(a, LLVMIntUGT, offset, last),
			  access_compare(a, LLVMIntNE, low, emit_int(e, type, 0)), "");
	if (is_vector(offset))
		bad = access_any(a, bad);
	return access_both(a, LLVMBuildNot(e->b, bad, ""),
			   access_compare(a, LLVMIntUGE, size, access_wide(a, a->size)));
}

/* Addresses in this process. */
static struct places places(struct access *a, LLVMValueRef offset)
{
	struct emit *e = a->e;
	LLVMValueRef first = emit_fixed(e, e->i64, e->warp, layout_of(a)->warp_local), pieces;

	if (!is_vector(offset)) {
		first = LLVMBuildAdd(e->b, first, offset, "");
		offset = NULL;
	}
	pieces = emit_splat(e, warp_word(a, layout_of(a)->warp_local_stride));
	pieces = LLVMBuildMul(e->b, pieces, e->lanes_64, "");
	pieces = LLVMBuildAdd(e->b, pieces, emit_splat(e, first), "");
	if (offset)
		pieces = LLVMBuildAdd(e->b, pieces, offset, "");
	return (struct places){ .at = pieces };
}

void access_local(struct access *a, LLVMValueRef bits)
{
	struct emit *e = a->e;
	LLVMValueRef offset = offset_of(a), on, v[4] = { NULL };
	struct places p;

	on = LLVMBuildBitCast(e->b, bits, emit_vector_of(e, e->i1), "");
	if (is_vector(offset))
		offset = LLVMBuildSelect(e->b, on, offset, emit_int(e, LLVMTypeOf(offset), 0), "");
	emit_refuse_if(e, LLVMBuildNot(e->b, is_good(a, offset), ""));
	if (!a->load) {
		a->lanes = on;
		p = places(a, offset);
		access_store_lanes(a, &p);
		return;
	}
	/* Lanes that take no part have something there, too. */
	a->lanes = emit_int(e, emit_vector_of(e, e->i1), 1);
	p = places(a, offset);
	access_load_lanes(a, &p, v);
	for (uint32_t i = 0; i < a->in->vec; i++)
		emit_result(e, a->in, access_value(a, i), (struct value){ .vector = v[i] });
}
