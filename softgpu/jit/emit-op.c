/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic, comparisons, selections, conversions: the same on scalars and on vectors.
 */
#include "softgpu/jit/op.h"

/* A predicate operand, which may be negated. */
static LLVMValueRef predicate_arg(const struct op *o, uint32_t i)
{
	LLVMValueRef p = emit_operand(o->e, o->in->args[i], PTX_CLASS_P, o->vector);

	return o->in->insn_flags & INSN_NEG_PRED ? LLVMBuildNot(o->e->b, p, "") : p;
}

/* ---- integers ----------------------------------------------------------------------------------- */

static LLVMValueRef product(const struct op *o)
{
	bool sign = is_signed(o->in->type);
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef x = arg(o, 1), y = arg(o, 2), wide;

	if (o->in->mode == PTX_MODE_LO)
		return LLVMBuildMul(b, x, y, "");
	if (o->bytes == 8)
		return op_upper_product(o, x, y);
	wide = LLVMBuildMul(b, extend(o, x, 2 * o->bytes, sign), extend(o, y, 2 * o->bytes, sign),
			    "");
	if (o->in->mode == PTX_MODE_WIDE)
		return wide;
	return LLVMBuildTrunc(b, LLVMBuildLShr(b, wide, number(o, 2 * o->bytes, 8 * o->bytes), ""),
			      int_type(o, o->bytes), "");
}

static LLVMValueRef multiply_add(const struct op *o)
{
	uint32_t bytes = o->in->mode == PTX_MODE_WIDE ? 2 * o->bytes : o->bytes;

	return LLVMBuildAdd(o->e->b, product(o), arg_of(o, 3, bytes), "");
}

/* A number of places to shift by, in the type of what is shifted. */
static LLVMValueRef shift_amount(const struct op *o, LLVMValueRef n)
{
	if (o->bytes == 4)
		return n;
	return o->bytes == 8 ? LLVMBuildZExt(o->e->b, n, int_type(o, 8), "")
			     : LLVMBuildTrunc(o->e->b, n, int_type(o, 2), "");
}

/* Shifts by as many bits as there are, or more, leave nothing, or the sign. */
static LLVMValueRef shift(const struct op *o)
{
	LLVMValueRef v = arg(o, 1), n = arg_of(o, 2, 4), last = number(o, 4, 8 * o->bytes - 1);
	LLVMValueRef inside = compare(o, LLVMIntULE, n, last), by;
	LLVMBuilderRef b = o->e->b;

	if (o->in->op == PTX_OP_SHR && is_signed(o->in->type))
		return LLVMBuildAShr(b, v, shift_amount(o, choose(o, inside, n, last)), "");
	by = shift_amount(o, LLVMBuildAnd(b, n, last, ""));
	v = o->in->op == PTX_OP_SHL ? LLVMBuildShl(b, v, by, "") : LLVMBuildLShr(b, v, by, "");
	return choose(o, inside, v, number(o, o->bytes, 0));
}

static LLVMValueRef pick(const struct op *o)
{
	bool sign = is_signed(o->in->type), max = o->in->op == PTX_OP_MAX;
	LLVMIntPredicate p =
		max ? (sign ? LLVMIntSGT : LLVMIntUGT) : (sign ? LLVMIntSLT : LLVMIntULT);
	LLVMValueRef x = arg(o, 1), y = arg(o, 2);

	return choose(o, compare(o, p, x, y), x, y);
}

static LLVMValueRef magnitude(const struct op *o)
{
	LLVMValueRef v = arg(o, 1);

	return choose(o, compare(o, LLVMIntSLT, v, number(o, o->bytes, 0)),
		      LLVMBuildNeg(o->e->b, v, ""), v);
}

/* The terms of the table of which the bits are set. */
static LLVMValueRef look_up_bits(const struct op *o)
{
	uint32_t table = (uint32_t)unit_constant(o->e->u, o->in->args[4], 4);
	LLVMValueRef in[3] = { arg(o, 1), arg(o, 2), arg(o, 3) }, sum = number(o, 4, 0);
	LLVMBuilderRef b = o->e->b;

	for (uint32_t i = 0; i < 8; i++) {
		LLVMValueRef term = NULL;

		if (!(table >> i & 1))
			continue;
		for (uint32_t k = 0; k < 3; k++) {
			LLVMValueRef v = i >> (2 - k) & 1 ? in[k] : LLVMBuildNot(b, in[k], "");

			term = term ? LLVMBuildAnd(b, term, v, "") : v;
		}
		sum = LLVMBuildOr(b, sum, term, "");
	}
	return sum;
}

/* A field at a known place: what is above the value is zero. */
static LLVMValueRef field(const struct op *o)
{
	uint32_t width = 8 * o->bytes,
		 first = (uint32_t)unit_constant(o->e->u, o->in->args[2], 4) & 255;
	uint32_t n = (uint32_t)unit_constant(o->e->u, o->in->args[3], 4) & 255;
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef v;

	if (first >= width || !n)
		return number(o, o->bytes, 0);
	v = LLVMBuildLShr(b, arg(o, 1), number(o, o->bytes, first), "");
	return n >= width ? v : LLVMBuildAnd(b, v, number(o, o->bytes, (UINT64_C(1) << n) - 1), "");
}

static LLVMValueRef bits_op(const struct op *o)
{
	switch (o->in->op) {
	case PTX_OP_SHF:
		return op_funnel(o);
	case PTX_OP_POPC:
	case PTX_OP_CLZ:
		return op_count(o);
	case PTX_OP_BREV:
		return op_reverse(o);
	case PTX_OP_BFIND:
		return op_find_bit(o);
	case PTX_OP_BFI:
		return op_insert(o);
	case PTX_OP_BMSK:
		return op_ones(o);
	case PTX_OP_PRMT:
		return op_permute(o);
	default:
		return field(o);
	}
}

static LLVMValueRef integer_op(const struct op *o)
{
	LLVMBuilderRef b = o->e->b;

	switch (o->in->op) {
	case PTX_OP_ADD:
		return LLVMBuildAdd(b, arg(o, 1), arg(o, 2), "");
	case PTX_OP_SUB:
		return LLVMBuildSub(b, arg(o, 1), arg(o, 2), "");
	case PTX_OP_MUL:
		return product(o);
	case PTX_OP_MAD:
		return multiply_add(o);
	case PTX_OP_NEG:
		return LLVMBuildNeg(b, arg(o, 1), "");
	case PTX_OP_ABS:
		return magnitude(o);
	case PTX_OP_MIN:
	case PTX_OP_MAX:
		return pick(o);
	case PTX_OP_AND:
		return LLVMBuildAnd(b, arg(o, 1), arg(o, 2), "");
	case PTX_OP_OR:
		return LLVMBuildOr(b, arg(o, 1), arg(o, 2), "");
	case PTX_OP_XOR:
		return LLVMBuildXor(b, arg(o, 1), arg(o, 2), "");
	case PTX_OP_NOT:
		return LLVMBuildNot(b, arg(o, 1), "");
	case PTX_OP_SHL:
	case PTX_OP_SHR:
		return shift(o);
	case PTX_OP_DIV:
	case PTX_OP_REM:
		return op_divide(o);
	case PTX_OP_LOP3:
		return look_up_bits(o);
	default:
		return bits_op(o);
	}
}

/* ---- floats ------------------------------------------------------------------------------------- */

/* The first of @n operands that is NaN, made quiet; where none is, what the host makes of its own. */
static LLVMValueRef first_nan(const struct op *o, uint32_t n)
{
	LLVMValueRef v = number(o, 8, NAN_F64), quiet = number(o, 8, UINT64_C(1) << 51);

	for (uint32_t i = n; i > 0; i--)
		v = choose(o, is_nan(o, real_arg(o, i)), LLVMBuildOr(o->e->b, arg(o, i), quiet, ""),
			   v);
	return v;
}

/*
 * LLVM promises nothing of a NaN, not even its sign. There are few of them: none in any lane is one
 * test, and the rest is out of the way.
 */
static LLVMValueRef settle_nans(const struct op *o, LLVMValueRef v, uint32_t n)
{
	LLVMBasicBlockRef from[2], slow = emit_new_block(o->e, "nan"),
				   on = emit_new_block(o->e, "on");
	LLVMValueRef bits = as_bits(o, v, 8), nan = is_nan(o, v), any = any_lane(o, nan), both[2],
		     phi;
	LLVMBuilderRef b = o->e->b;

	from[0] = LLVMGetInsertBlock(b);
	both[0] = bits;
	LLVMBuildCondBr(b, any, slow, on);
	LLVMPositionBuilderAtEnd(b, slow);
	from[1] = slow;
	both[1] = choose(o, nan, first_nan(o, n), bits);
	LLVMBuildBr(b, on);
	LLVMPositionBuilderAtEnd(b, on);
	phi = LLVMBuildPhi(b, int_type(o, 8), "");
	LLVMAddIncoming(phi, both, from, 2);
	return phi;
}

static LLVMValueRef call_real(const struct op *o, const char *name, uint32_t n)
{
	LLVMTypeRef type = real_type(o, o->bytes);
	LLVMValueRef args[3];

	for (uint32_t i = 0; i < n; i++)
		args[i] = real_arg(o, 1 + i);
	return emit_intrinsic(o->e, name, &type, 1, args, n);
}

/* The result as the interpreter makes it. */
static LLVMValueRef run_handler(const struct op *o)
{
	struct emit *e = o->e;
	LLVMValueRef v;

	emit_run(e, o->in, emit_guard_bits(e, o->in));
	v = emit_reload(e, o->in->args[0]);
	return o->vector ? v : LLVMBuildExtractElement(e->b, v, emit_first_lane(e), "");
}

static LLVMValueRef reciprocal(const struct op *o)
{
	LLVMValueRef one = number(o, o->bytes, o->bytes == 4 ? 0x3f800000 : UINT64_C(1023) << 52);

	return LLVMBuildFDiv(o->e->b, as_real(o, one, o->bytes), real_arg(o, 1), "");
}

/* A number wins over NaN, -0 is below +0. */
static LLVMValueRef real_pick(const struct op *o)
{
	bool max = o->in->op == PTX_OP_MAX;
	LLVMValueRef x = arg(o, 1), y = arg(o, 2), a = real_arg(o, 1), b = real_arg(o, 2), r;
	LLVMBuilderRef build = o->e->b;

	r = choose(o, LLVMBuildFCmp(build, max ? LLVMRealOGT : LLVMRealOLT, a, b, ""), x, y);
	r = choose(o, LLVMBuildFCmp(build, LLVMRealOEQ, a, b, ""),
		   max ? LLVMBuildAnd(build, x, y, "") : LLVMBuildOr(build, x, y, ""), r);
	r = choose(o, is_nan(o, b), x, r);
	return choose(o, is_nan(o, a), canonical(o, b, o->bytes), r);
}

/* The sign of the first on the magnitude of the second. */
static LLVMValueRef copy_sign(const struct op *o)
{
	uint64_t sign = UINT64_C(1) << (8 * o->bytes - 1);
	LLVMBuilderRef b = o->e->b;

	return LLVMBuildOr(b, LLVMBuildAnd(b, arg(o, 1), number(o, o->bytes, sign), ""),
			   LLVMBuildAnd(b, arg(o, 2), number(o, o->bytes, sign - 1), ""), "");
}

/* div.approx is a product with the reciprocal: above 2^126 the reciprocal is 0. */
static LLVMValueRef divide_roughly(const struct op *o)
{
	LLVMValueRef x = arg(o, 1), y = arg(o, 2), infinity = number(o, 4, 0x7f800000), size, zero;
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef big, endless, v;

	size = LLVMBuildAnd(b, y, number(o, 4, INT32_MAX), "");
	big = LLVMBuildAnd(b, compare(o, LLVMIntUGT, size, number(o, 4, 0x7e800000)),
			   compare(o, LLVMIntULT, size, infinity), "");
	endless = compare(o, LLVMIntEQ, LLVMBuildAnd(b, x, number(o, 4, INT32_MAX), ""), infinity);
	zero = LLVMBuildAnd(b, LLVMBuildXor(b, x, y, ""), number(o, 4, UINT32_C(1) << 31), "");
	v = LLVMBuildFDiv(b, real_arg(o, 1), real_arg(o, 2), "");
	return as_real(
		o,
		choose(o, big, choose(o, endless, number(o, 4, NAN_F32), zero), as_bits(o, v, 4)),
		4);
}

/* In double, and rounded once more, as the interpreter has it. */
static LLVMValueRef reciprocal_root(const struct op *o)
{
	LLVMTypeRef wide = real_type(o, 8);
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef v = LLVMBuildFPExt(b, real_arg(o, 1), wide, "");

	v = emit_intrinsic(o->e, "llvm.sqrt", &wide, 1, &v, 1);
	v = LLVMBuildFDiv(b, real_number(o, 8, 1), v, "");
	return LLVMBuildFPTrunc(b, v, real_type(o, 4), "");
}

static LLVMValueRef real_value(const struct op *o, uint32_t *ret_n)
{
	LLVMBuilderRef b = o->e->b;

	if (op_is_directed(o))
		return op_directed(o, ret_n);
	*ret_n = 2;
	switch (o->in->op) {
	case PTX_OP_ADD:
		return LLVMBuildFAdd(b, real_arg(o, 1), real_arg(o, 2), "");
	case PTX_OP_SUB:
		return LLVMBuildFSub(b, real_arg(o, 1), real_arg(o, 2), "");
	case PTX_OP_MUL:
		return LLVMBuildFMul(b, real_arg(o, 1), real_arg(o, 2), "");
	case PTX_OP_DIV:
		return o->in->flags & PTX_F_APPROX
			       ? divide_roughly(o)
			       : LLVMBuildFDiv(b, real_arg(o, 1), real_arg(o, 2), "");
	default:
		break;
	}
	*ret_n = 1;
	switch (o->in->op) {
	case PTX_OP_RCP:
		return reciprocal(o);
	case PTX_OP_SQRT:
		return call_real(o, "llvm.sqrt", 1);
	case PTX_OP_RSQRT:
		return reciprocal_root(o);
	case PTX_OP_EX2:
		return op_power_of_two(o);
	case PTX_OP_LG2:
		return op_logarithm(o);
	default:
		*ret_n = 3;
		return call_real(o, "llvm.fma", 3);
	}
}

/*
 * What the host makes of a tiny result under .ftz: it looks before it rounds to a denormal. A denormal
 * is tiny; so may be what has been rounded up to the least normal number, of which only the
 * interpreter can tell.
 */
static LLVMValueRef settle_tiny(const struct op *o, LLVMValueRef bits)
{
	LLVMValueRef size = LLVMBuildAnd(o->e->b, bits, number(o, 4, INT32_MAX), "");
	LLVMValueRef least = compare(o, LLVMIntEQ, size, number(o, 4, 0x00800000));

	if (o->vector) {
		least = LLVMBuildBitCast(o->e->b, least, o->e->i32, "");
		least = LLVMBuildAnd(o->e->b, least, emit_guard_bits(o->e, o->in), "");
		least = LLVMBuildICmp(o->e->b, LLVMIntNE, least, emit_int(o->e, o->e->i32, 0), "");
	}
	emit_refuse_if(o->e, least);
	return flushed(o, bits);
}

static LLVMValueRef real_op(const struct op *o)
{
	uint64_t sign = UINT64_C(1) << (8 * o->bytes - 1);
	LLVMBuilderRef b = o->e->b;
	LLVMValueRef v;
	uint32_t n;

	switch (o->in->op) {
	case PTX_OP_NEG:
		return LLVMBuildXor(b, arg(o, 1), number(o, o->bytes, sign), "");
	case PTX_OP_ABS:
		return LLVMBuildAnd(b, arg(o, 1), number(o, o->bytes, sign - 1), "");
	case PTX_OP_COPYSIGN:
		return copy_sign(o);
	case PTX_OP_MIN:
	case PTX_OP_MAX:
		return real_pick(o);
	default:
		break;
	}
	if (form_is_upper(o->in))
		return op_upper_reciprocal(o);
	if (op_is_directed(o) && !o->e->can_mask)
		return run_handler(o);
	v = real_value(o, &n);
	if (o->bytes == 8)
		return settle_nans(o, v, n);
	v = as_bits(o, v, 4);
	return o->flushes ? settle_tiny(o, v) : v;
}

/* Are its NaNs as they came? Of moves those are that come so. */
static bool is_raw(const struct op *o)
{
	const struct emit *e = o->e;

	if (o->bytes != 4)
		return false;
	switch (o->in->op) {
	case PTX_OP_MOV:
		return !is_const(o->in->args[1]) && e->values[unit_place(e->u, o->in->args[1])].raw;
	case PTX_OP_NEG:
	case PTX_OP_ABS:
	case PTX_OP_COPYSIGN:
	case PTX_OP_MIN:
	case PTX_OP_MAX:
	case PTX_OP_SELP:
	case PTX_OP_CVT:
	case PTX_OP_PACK:
		return false;
	default:
		return o->in->type == PTX_F32;
	}
}

/* ---- comparisons -------------------------------------------------------------------------------- */

static LLVMIntPredicate integer_predicate(const struct jit_insn *in)
{
	bool sign = is_signed(in->type);

	switch (in->cmp) {
	case PTX_CMP_EQ:
		return LLVMIntEQ;
	case PTX_CMP_NE:
		return LLVMIntNE;
	case PTX_CMP_LT:
		return sign ? LLVMIntSLT : LLVMIntULT;
	case PTX_CMP_LE:
		return sign ? LLVMIntSLE : LLVMIntULE;
	case PTX_CMP_GT:
		return sign ? LLVMIntSGT : LLVMIntUGT;
	case PTX_CMP_GE:
		return sign ? LLVMIntSGE : LLVMIntUGE;
	case PTX_CMP_LO:
		return LLVMIntULT;
	case PTX_CMP_LS:
		return LLVMIntULE;
	case PTX_CMP_HI:
		return LLVMIntUGT;
	default:
		return LLVMIntUGE;
	}
}

static LLVMRealPredicate real_predicate(const struct jit_insn *in)
{
	static const LLVMRealPredicate predicates[] = {
		[PTX_CMP_EQ] = LLVMRealOEQ,  [PTX_CMP_NE] = LLVMRealONE,
		[PTX_CMP_LT] = LLVMRealOLT,  [PTX_CMP_LE] = LLVMRealOLE,
		[PTX_CMP_GT] = LLVMRealOGT,  [PTX_CMP_GE] = LLVMRealOGE,
		[PTX_CMP_EQU] = LLVMRealUEQ, [PTX_CMP_NEU] = LLVMRealUNE,
		[PTX_CMP_LTU] = LLVMRealULT, [PTX_CMP_LEU] = LLVMRealULE,
		[PTX_CMP_GTU] = LLVMRealUGT, [PTX_CMP_GEU] = LLVMRealUGE,
		[PTX_CMP_NUM] = LLVMRealORD, [PTX_CMP_NAN] = LLVMRealUNO,
	};

	return in->cmp < sizeof(predicates) / sizeof(predicates[0]) ? predicates[in->cmp]
								    : LLVMRealPredicateFalse;
}

static LLVMValueRef join(const struct op *o, LLVMValueRef a, LLVMValueRef b)
{
	switch (o->in->bop) {
	case PTX_BOP_AND:
		return LLVMBuildAnd(o->e->b, a, b, "");
	case PTX_BOP_OR:
		return LLVMBuildOr(o->e->b, a, b, "");
	default:
		return LLVMBuildXor(o->e->b, a, b, "");
	}
}

static void set_predicate(const struct op *o)
{
	LLVMValueRef p, q, c;

	if (is_float(o->in->type))
		p = LLVMBuildFCmp(o->e->b, real_predicate(o->in), real_arg(o, 2), real_arg(o, 3),
				  "");
	else
		p = compare(o, integer_predicate(o->in), arg(o, 2), arg(o, 3));
	q = LLVMBuildNot(o->e->b, p, "");
	if (o->in->bop) {
		c = predicate_arg(o, 4);
		p = join(o, p, c);
		q = join(o, q, c);
	}
	emit_result(o->e, o->in, o->in->args[1], made(o, q));
	emit_result(o->e, o->in, o->in->args[0], made(o, p));
}

/* ---- putting together and taking apart ----------------------------------------------------------- */

static LLVMValueRef pack(const struct op *o)
{
	uint32_t part = type_bytes(o->in->stype);
	LLVMValueRef lo = extend(o, arg_of(o, 1, part), 2 * part, false);
	LLVMValueRef hi = extend(o, arg_of(o, 2, part), 2 * part, false);

	return LLVMBuildOr(o->e->b, lo,
			   LLVMBuildShl(o->e->b, hi, number(o, 2 * part, 8 * part), ""), "");
}

static void unpack(const struct op *o)
{
	uint32_t part = type_bytes(o->in->stype);
	LLVMValueRef v = arg_of(o, 2, 2 * part), hi;
	LLVMBuilderRef b = o->e->b;

	hi = LLVMBuildLShr(b, v, number(o, 2 * part, 8 * part), "");
	emit_result(o->e, o->in, o->in->args[0],
		    made(o, LLVMBuildTrunc(b, v, int_type(o, part), "")));
	emit_result(o->e, o->in, o->in->args[1],
		    made(o, LLVMBuildTrunc(b, hi, int_type(o, part), "")));
}

/* ---- predicates --------------------------------------------------------------------------------- */

static LLVMValueRef predicate_op(const struct op *o)
{
	LLVMValueRef a = emit_operand(o->e, o->in->args[1], PTX_CLASS_P, o->vector), b;

	if (o->in->op == PTX_OP_MOV)
		return a;
	if (o->in->op == PTX_OP_NOT)
		return LLVMBuildNot(o->e->b, a, "");
	b = emit_operand(o->e, o->in->args[2], PTX_CLASS_P, o->vector);
	return o->in->op == PTX_OP_AND	? LLVMBuildAnd(o->e->b, a, b, "")
	       : o->in->op == PTX_OP_OR ? LLVMBuildOr(o->e->b, a, b, "")
					: LLVMBuildXor(o->e->b, a, b, "");
}

/* ---- all ---------------------------------------------------------------------------------------- */

static LLVMValueRef one_result(const struct op *o)
{
	switch (o->in->op) {
	case PTX_OP_CVT:
		return op_convert(o);
	case PTX_OP_PACK:
		return pack(o);
	default:
		break;
	}
	if (o->in->type == PTX_PRED)
		return predicate_op(o);
	if (o->in->op == PTX_OP_MOV)
		return is_raw(o) ? emit_raw(o->e, o->in->args[1], o->vector) : arg(o, 1);
	if (o->in->op == PTX_OP_SELP)
		return choose(o, predicate_arg(o, 3), arg(o, 1), arg(o, 2));
	return is_float(o->in->type) ? real_op(o) : integer_op(o);
}

void emit_plain(struct emit *e, const struct jit_insn *in)
{
	struct kind kind = kind_of_result(e->u, in, e->state);
	struct op o = {
		.e = e,
		.in = in,
		.vector = kind.state != KIND_AFFINE,
		.bytes = in->type == PTX_PRED ? 4 : type_bytes(in->type),
		.flushes = in->type == PTX_F32 && form_flushes(in),
	};
	struct value v;

	switch (in->op) {
	case PTX_OP_MEMBAR:
	case PTX_OP_FENCE:
		LLVMBuildFence(e->b, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
		return;
	case PTX_OP_PREFETCH:
		return;
	case PTX_OP_SETP:
		set_predicate(&o);
		return;
	case PTX_OP_UNPACK:
		unpack(&o);
		return;
	default:
		break;
	}
	if (form_carries(in)) {
		op_carry(&o);
		return;
	}
	if (kind.stride)
		op_check_widening(&o);
	v = made(&o, one_result(&o));
	v.stride = kind.stride;
	v.raw = is_raw(&o);
	v.flushed = v.raw && (o.flushes || (in->op == PTX_OP_MOV && op_is_flushed(&o, 1)));
	emit_result(e, in, in->args[0], v);
}
