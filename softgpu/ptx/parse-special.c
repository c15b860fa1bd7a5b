/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no table tells: mov, cvt and a few others whose operands depend on each other, and rules
 * on words that forms cannot express.
 */
#include <string.h>

#include "softgpu/ptx/parse.h"

static void wrong_operands(struct parser *p)
{
	parse_fail(p, p->insn.line, "%s: these are not its operands", insn_name(p));
}

/* The elements that a register is put together from, or taken apart into. */
static enum ptx_type part_type(enum ptx_type type, unsigned int parts)
{
	switch (ptx_type_bytes(type) / parts) {
	case 8:
		return PTX_B64;
	case 4:
		return PTX_B32;
	case 2:
		return PTX_B16;
	case 1:
		return PTX_B8;
	default:
		return PTX_TYPE_NONE;
	}
}

static void parse_pack(struct parser *p, const struct raw *vector, bool pack)
{
	enum ptx_type part = part_type(p->insn.type, vector->count);
	const struct raw *elements = &p->elements[vector->first];

	if (vector->count * ptx_type_bytes(part) != ptx_type_bytes(p->insn.type) ||
	    ptx_type_kind(p->insn.type) != 'b') {
		parse_fail(p, p->insn.line, "%s: %u parts do not make one", insn_name(p),
			   vector->count);
		return;
	}
	p->insn.op = pack ? PTX_OP_PACK : PTX_OP_UNPACK;
	p->insn.stype = p->insn.utype = part;
	if (pack)
		push_result(p, &p->raws[0], p->insn.type, /* relaxed= */ false);
	for (unsigned int i = 0; i < vector->count; i++) {
		if (pack)
			push_source(p, &elements[i], part, /* relaxed= */ false);
		else
			push_result(p, &elements[i], part, /* relaxed= */ false);
	}
	if (!pack)
		push_source(p, &p->raws[1], p->insn.type, /* relaxed= */ false);
}

/* What only mov can read: special registers, and addresses. */
static void push_move_source(struct parser *p, const struct raw *raw)
{
	unsigned int bytes = ptx_type_bytes(p->insn.type), have = ptx_type_bytes(raw->type);

	if (raw->kind == RAW_SREG) {
		if (bytes != have && !(bytes == 2 && have == 4) && raw->op.index != PTX_SREG_GRIDID)
			parse_fail(p, p->insn.line, "%s: the special register has %u bits",
				   insn_name(p), 8 * have);
		push(p, raw->op);
	} else if (raw->kind == RAW_ADDRESS) {
		if ((bytes != 4 && bytes != 8) || ptx_type_kind(p->insn.type) == 'f')
			wrong_operands(p);
		push(p, raw->op);
	} else {
		push_source(p, raw, p->insn.type, /* relaxed= */ false);
	}
}

/* "mov.v2.f32 d, a" does not exist, but "mov d.., {..}" of vectors declared as such does. */
static void parse_mov(struct parser *p)
{
	struct raw *d = &p->raws[0], *a = &p->raws[1];

	if (p->n_raws != 2 || a->pair) {
		wrong_operands(p);
		return;
	}
	if (d->kind == RAW_VECTOR && a->kind != RAW_VECTOR) {
		parse_pack(p, d, /* pack= */ false);
	} else if (a->kind == RAW_VECTOR && d->kind != RAW_VECTOR) {
		parse_pack(p, a, /* pack= */ true);
	} else {
		push_result(p, d, p->insn.type, /* relaxed= */ false);
		push_move_source(p, a);
	}
	insn_emit(p);
}

static bool is_float(enum ptx_type type)
{
	return ptx_type_kind(type) == 'f';
}

/* Which rounding a conversion must have, or must not have. */
static void check_rounding(struct parser *p)
{
	const struct ptx_insn *insn = &p->insn;
	enum ptx_type to = insn->type, from = insn->stype;
	uint64_t words = p->words.present & (W_RND | W_RNA | W_RNDI);
	uint64_t must = 0, may = 0;

	if (to == PTX_TF32)
		must = W_RNA | W_RND;
	else if (is_float(to) && !is_float(from))
		must = W_RND;
	else if (!is_float(to) && is_float(from))
		must = W_RNDI;
	else if (is_float(to) && to == from)
		may = W_RNDI;
	else if (is_float(to) && ptx_type_bytes(to) <= ptx_type_bytes(from))
		must = W_RND;

	if (must && !words)
		parse_fail(p, insn->line, "%s: a rounding is missing", insn_name(p));
	else if (words & ~(must | may))
		parse_fail(p, insn->line, "%s: not with this rounding", insn_name(p));
}

static void parse_cvt(struct parser *p)
{
	enum ptx_type to = p->insn.type, from = p->insn.stype;

	if (p->n_raws != 2 || p->raws[1].pair) {
		wrong_operands(p);
		return;
	}
	if (from == PTX_TF32 || (to == PTX_TF32 && from != PTX_F32))
		parse_fail(p, p->insn.line, "%s: tf32 is made of f32 alone", insn_name(p));
	if (p->words.present & W_FTZ && !is_float(to) && !is_float(from))
		parse_fail(p, p->insn.line, "%s: .ftz is for floats", insn_name(p));
	check_rounding(p);
	push_result(p, &p->raws[0], to, /* relaxed= */ true);
	push_source(p, &p->raws[1], from, /* relaxed= */ true);
	insn_emit(p);
}

/* Two floats into one packed pair: the first becomes the upper half. */
static void parse_cvt_pair(struct parser *p)
{
	if (p->n_raws != 3) {
		wrong_operands(p);
		return;
	}
	push_result(p, &p->raws[0], p->insn.type, /* relaxed= */ false);
	push_source(p, &p->raws[1], p->insn.stype, /* relaxed= */ false);
	push_source(p, &p->raws[2], p->insn.stype, /* relaxed= */ false);
	insn_emit(p);
}

/* One packed pair into another kind of pair. */
static void parse_cvt_pairs(struct parser *p)
{
	if (p->n_raws != 2 || p->raws[1].pair) {
		wrong_operands(p);
		return;
	}
	push_result(p, &p->raws[0], p->insn.type, /* relaxed= */ false);
	push_source(p, &p->raws[1], p->insn.stype, /* relaxed= */ false);
	insn_emit(p);
}

/* cvta.space d, variable: the address moves to a register first */
static void parse_cvta(struct parser *p)
{
	struct raw *a = &p->raws[1];
	struct ptx_insn insn = p->insn;
	struct ptx_operand reg;

	if (p->n_raws != 2 || a->pair) {
		wrong_operands(p);
		return;
	}
	if (a->kind != RAW_ADDRESS) {
		push_result(p, &p->raws[0], insn.type, /* relaxed= */ false);
		push_source(p, a, insn.type, /* relaxed= */ false);
	} else {
		if (insn.flags & PTX_F_TO || (a->space && a->space != insn.space)) {
			wrong_operands(p);
			return;
		}
		reg = (struct ptx_operand){
			.kind = PTX_REG,
			.cls = class_of(insn.type),
			.index = register_new(p, class_of(insn.type)),
		};
		p->insn.op = PTX_OP_MOV;
		p->insn.space = PTX_SPACE_NONE;
		p->insn.n_dst = 1;
		push(p, reg);
		push(p, a->op);
		insn_emit(p);

		p->insn = insn;
		p->insn.first = p->n_operands;
		push_result(p, &p->raws[0], insn.type, /* relaxed= */ false);
		push(p, reg);
	}
	/* In the frame there is no state space of its own for parameters. */
	if (p->insn.space == PTX_SPACE_PARAM && !p->func->kernel)
		p->insn.space = PTX_SPACE_LOCAL;
	insn_emit(p);
}

/* bar.red d, barrier [, threads], [!]p */
static void parse_bar_red(struct parser *p)
{
	unsigned int last = p->n_raws - 1;

	if (p->n_raws < 3 || p->n_raws > 4) {
		wrong_operands(p);
		return;
	}
	push_result(p, &p->raws[0], p->insn.type, /* relaxed= */ false);
	push_source(p, &p->raws[1], PTX_U32, /* relaxed= */ false);
	if (last == 3)
		push_source(p, &p->raws[2], PTX_U32, /* relaxed= */ false);
	else
		push_none(p);
	push_source(p, &p->raws[last], PTX_PRED, /* relaxed= */ false);
	insn_emit(p);
}

/* cp.async [to], [from], size [, size that is read, or whether nothing is] [, policy] */
static void parse_copy(struct parser *p)
{
	bool policy = p->words.present & W_POLICY;
	unsigned int n = p->n_raws - policy;
	bool is_pred = n == 4 && p->raws[3].kind == RAW_REG && p->raws[3].type == PTX_PRED;
	uint64_t bytes = n > 2 ? p->raws[2].op.imm : 0;

	if (p->n_raws < 3 || n < 3 || n > 4 || p->raws[0].kind != RAW_MEM ||
	    p->raws[1].kind != RAW_MEM || p->raws[2].kind != RAW_INT ||
	    (bytes != 4 && bytes != 8 && bytes != 16)) {
		wrong_operands(p);
		return;
	}
	p->insn.space = PTX_SPACE_SHARED;
	push_mem(p, &p->raws[0]);
	p->insn.space = PTX_SPACE_GLOBAL;
	push_mem(p, &p->raws[1]);
	p->insn.space = PTX_SPACE_SHARED;
	push(p, p->raws[2].op);
	if (n == 4)
		push_source(p, &p->raws[3], is_pred ? PTX_PRED : PTX_U32, /* relaxed= */ false);
	else
		push_none(p);
	insn_emit(p);
}

/* cp.async.wait_group N; the others have no operands */
static void parse_groups(struct parser *p)
{
	unsigned int wanted = p->insn.mode == PTX_MODE_WAIT_GROUP;

	if (p->insn.mode == PTX_MODE_ARRIVE || p->n_raws != wanted ||
	    (wanted && p->raws[0].kind != RAW_INT)) {
		wrong_operands(p);
		return;
	}
	if (wanted)
		push(p, p->raws[0].op);
	insn_emit(p);
}

/* ---- barriers in shared memory ------------------------------------------------------------------ */

static bool counts_fit(const struct parser *p, unsigned int least, unsigned int most)
{
	return p->n_raws >= least && p->n_raws <= most;
}

/* "[state,] [address] [, count]" */
static void parse_arrival(struct parser *p)
{
	bool no_complete = p->words.present & W_IGNORED;

	if (!counts_fit(p, no_complete ? 3 : 2, 3)) {
		wrong_operands(p);
		return;
	}
	push_result(p, &p->raws[0], PTX_B64, /* relaxed= */ false);
	push_mem(p, &p->raws[1]);
	if (p->n_raws == 3)
		push_source(p, &p->raws[2], PTX_U32, /* relaxed= */ false);
	else
		push(p, (struct ptx_operand){ .kind = PTX_IMM, .imm = 1 });
}

/* "p, [address], state or parity [, how long to wait at most]" */
static void parse_waiting(struct parser *p)
{
	bool parity = p->words.present & W_OTHER, hint = p->n_raws == 4;

	if (!counts_fit(p, 3, p->insn.mode == PTX_MODE_TRY_WAIT ? 4 : 3)) {
		wrong_operands(p);
		return;
	}
	push_result(p, &p->raws[0], PTX_PRED, /* relaxed= */ false);
	push_mem(p, &p->raws[1]);
	push_source(p, &p->raws[2], parity ? PTX_U32 : PTX_B64, /* relaxed= */ false);
	if (hint)
		push_source(p, &p->raws[3], PTX_U32, /* relaxed= */ false);
	if (parity)
		p->insn.mode = PTX_MODE_PARITY_WAIT;
}

/* What begins, ends and reads one. */
static void parse_barrier_object(struct parser *p)
{
	bool init = p->insn.mode == PTX_MODE_INIT, count = p->insn.mode == PTX_MODE_PENDING_COUNT;

	if (p->n_raws != (init || count ? 2 : 1)) {
		wrong_operands(p);
		return;
	}
	if (count) {
		push_result(p, &p->raws[0], PTX_U32, /* relaxed= */ false);
		push_source(p, &p->raws[1], PTX_B64, /* relaxed= */ false);
		return;
	}
	push_mem(p, &p->raws[0]);
	if (init)
		push_source(p, &p->raws[1], PTX_U32, /* relaxed= */ false);
}

/* Which words go with which: an order and a scope with those that arrive and wait. */
static bool barrier_words_fit(const struct parser *p, bool arrives, bool waits)
{
	uint64_t words = p->words.present;

	return !(words & (W_ST_ORDER | W(ACQUIRE) | W_SCOPE) && !arrives && !waits) &&
	       !(words & W_IGNORED && !arrives) && !(words & W_OTHER && !waits);
}

static void parse_mbarrier(struct parser *p)
{
	enum ptx_mode mode = (enum ptx_mode)p->insn.mode;
	bool arrives = mode == PTX_MODE_ARRIVE || mode == PTX_MODE_ARRIVE_DROP;
	bool waits = mode == PTX_MODE_TEST_WAIT || mode == PTX_MODE_TRY_WAIT;

	if (!barrier_words_fit(p, arrives, waits))
		parse_fail(p, p->insn.line, "%s: these types and modifiers do not go together",
			   insn_name(p));
	if (arrives)
		parse_arrival(p);
	else if (waits)
		parse_waiting(p);
	else
		parse_barrier_object(p);
	insn_emit(p);
}

/*
 * cp.async.mbarrier.arrive [a]: when this thread's copies are done, it arrives. Copies are done at once,
 * so it arrives now; without .noinc it was not counted before, and comes and goes.
 */
static void parse_copied(struct parser *p)
{
	if (p->insn.mode != PTX_MODE_ARRIVE || p->n_raws != 1) {
		wrong_operands(p);
		return;
	}
	p->insn.op = PTX_OP_MBARRIER;
	p->insn.n_dst = 1;
	push(p, (struct ptx_operand){ .kind = PTX_SINK });
	push_mem(p, &p->raws[0]);
	push(p, (struct ptx_operand){ .kind = PTX_IMM, .imm = p->words.present & W_OTHER ? 1 : 0 });
	insn_emit(p);
}

/* A cache policy is a number that nobody looks at. */
static void parse_policy(struct parser *p)
{
	if (p->n_raws < 1 || p->n_raws > 2) {
		wrong_operands(p);
		return;
	}
	p->insn.op = PTX_OP_MOV;
	push_result(p, &p->raws[0], PTX_B64, /* relaxed= */ false);
	push(p, (struct ptx_operand){ .kind = PTX_IMM });
	insn_emit(p);
}

static const struct {
	const char *shape;
	void (*parse)(struct parser *p);
} specials[] = {
	{ "!mov", parse_mov },	       { "!cvt", parse_cvt },	    { "!cvt2", parse_cvt_pair },
	{ "!cvta", parse_cvta },       { "!video", parse_video },   { "!bar.red", parse_bar_red },
	{ "!copy", parse_copy },       { "!groups", parse_groups }, { "!policy", parse_policy },
	{ "!copied", parse_copied },   { "!vset", parse_vset },	    { "!mbarrier", parse_mbarrier },
	{ "!pairs", parse_cvt_pairs },
};

void parse_special(struct parser *p, const struct form *form)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (strcmp(specials[i].shape, form->shape) == 0) {
			specials[i].parse(p);
			return;
		}
	}
}

/* Comparisons: bits know equality alone, signed numbers have no lo and hi, integers no NaN. */
static bool comparison_fits(enum ptx_cmp cmp, enum ptx_type type)
{
	switch (ptx_type_kind(type)) {
	case 'b':
		return cmp == PTX_CMP_EQ || cmp == PTX_CMP_NE;
	case 's':
		return cmp <= PTX_CMP_GE;
	case 'u':
		return cmp <= PTX_CMP_HS;
	default:
		return cmp <= PTX_CMP_GE || cmp > PTX_CMP_HS;
	}
}

static void check_comparison(struct parser *p)
{
	bool has_bool = p->words.present & W_BOOL;
	unsigned int last = p->n_raws;
	bool given;

	if (!comparison_fits(p->insn.cmp, p->insn.stype))
		parse_fail(p, p->insn.line, "%s: .%s is not compared so", insn_name(p),
			   ptx_type_name(p->insn.stype));
	/* The predicate that the Boolean operation takes comes with it, and only with it. */
	given = last - (last > 1 && p->raws[1].pair) > 3;
	if (given != has_bool)
		parse_fail(p, p->insn.line,
			   has_bool ? "%s: the predicate is missing"
				    : "%s: the Boolean operation is missing",
			   insn_name(p));
}

static bool may_hold_space(const struct parser *p)
{
	uint8_t space = p->insn.space;

	switch (p->insn.op) {
	case PTX_OP_ST:
		return space != PTX_SPACE_CONST;
	case PTX_OP_ATOM:
	case PTX_OP_RED:
		return space == PTX_SPACE_NONE || space == PTX_SPACE_GLOBAL ||
		       space == PTX_SPACE_SHARED;
	case PTX_OP_LD:
		return !(p->insn.flags & PTX_F_NC) || space == PTX_SPACE_GLOBAL;
	case PTX_OP_LDU:
		return space == PTX_SPACE_NONE || space == PTX_SPACE_GLOBAL;
	case PTX_OP_MBARRIER:
		return space == PTX_SPACE_NONE || space == PTX_SPACE_SHARED;
	default:
		return true;
	}
}

static void check_memory(struct parser *p)
{
	unsigned int bytes = ptx_type_bytes(p->insn.type) * p->insn.vec;
	unsigned int most = p->insn.op == PTX_OP_LDU || p->insn.type == PTX_B128 ? 16 : 32;

	if (!may_hold_space(p))
		parse_fail(p, p->insn.line, "%s: not in this state space", insn_name(p));
	if (bytes > most)
		parse_fail(p, p->insn.line, "%s: at most %u bytes at once", insn_name(p), most);
	if (p->insn.op == PTX_OP_LDU)
		p->insn.flags |= PTX_F_NC;
	if (p->words.present & W_MMIO)
		p->insn.sem = PTX_SEM_MMIO;
}

void check_words(struct parser *p)
{
	switch (p->insn.op) {
	case PTX_OP_SET:
	case PTX_OP_SETP:
		check_comparison(p);
		break;
	case PTX_OP_LD:
	case PTX_OP_LDU:
	case PTX_OP_ST:
	case PTX_OP_ATOM:
	case PTX_OP_RED:
	case PTX_OP_MBARRIER:
		check_memory(p);
		break;
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
		if (p->insn.mode == PTX_MODE_NONE)
			p->insn.mode = PTX_MODE_SYNC;
		break;
	default:
		break;
	}
}
