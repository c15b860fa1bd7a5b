/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels, branches and calls.
 *
 * A branch may name a label of any scope around it, before or after. So each is noted, and looked
 * at when a scope ends: what is bound there has its place, the rest waits for the scope around.
 */
#include <string.h>

#include "softgpu/ptx/parse.h"

void label_define(struct parser *p, struct name *name, uint32_t line)
{
	struct binding *b = name->binding;

	if (b && b->depth == p->names.depth) {
		parse_fail(p, line, "'%.40s' is declared twice, first in line %u", name->text,
			   b->line);
		return;
	}
	b = names_bind(&p->names, name, p->names.depth, line);
	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->kind = BIND_LABEL;
	b->index = p->n_insns;
	p->label_at_end = true;
}

static void await_label(struct parser *p, struct name *name, uint32_t line, uint32_t operand,
			uint32_t *target)
{
	if (p->error)
		return;
	if (!vec_room(p, pending, 1)) {
		parse_no_memory(p);
		return;
	}
	p->pending[p->n_pending++] = (struct pending){
		.name = name,
		.line = line,
		.operand = operand,
		.target = target,
	};
}

void labels_resolve(struct parser *p)
{
	uint32_t first = p->scopes[p->names.depth].pending, kept = first;

	if (p->error)
		return;
	for (uint32_t i = first; i < p->n_pending; i++) {
		struct pending *w = &p->pending[i];
		const struct binding *b = w->name->binding;

		if (!b || b->depth < p->names.depth) {
			p->pending[kept++] = *w;
		} else if (b->kind != BIND_LABEL) {
			parse_fail(p, w->line, "'%.40s' is no label", w->name->text);
			return;
		} else if (w->target) {
			*w->target = b->index;
		} else {
			p->operands[w->operand].index = b->index;
		}
	}
	p->n_pending = kept;
}

/* bra label; */
void parse_branch(struct parser *p)
{
	uint32_t line = p->token.line;
	struct name *label = expect_name(p);

	expect(p, ';');
	if (!label)
		return;
	await_label(p, label, line, p->n_operands, NULL);
	push(p, (struct ptx_operand){ .kind = PTX_LABEL });
	insn_emit(p);
}

/* name: .branchtargets L1, L2; */
void parse_label_list(struct parser *p, struct name *name, bool branches, uint32_t line)
{
	struct binding *b = names_bind(&p->names, name, p->names.depth, line);
	struct {
		VEC(struct name *, labels);
	} list = { 0 };
	uint32_t *targets = NULL;

	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->kind = branches ? BIND_TABLE : BIND_TARGETS;
	b->index = p->n_tables;
	do {
		struct name *label = expect_name(p);

		if (!label)
			break;
		if (!vec_room(&list, labels, 1)) {
			parse_no_memory(p);
			break;
		}
		list.labels[list.n_labels++] = label;
	} while (take(p, ','));
	expect(p, ';');
	if (!p->error && branches) {
		targets = arena_alloc(p->arena, list.n_labels * sizeof(*targets));
		if (!targets || !vec_room(p, tables, 1))
			parse_no_memory(p);
	}
	if (!p->error && branches) {
		p->tables[p->n_tables++] = (struct ptx_table){ list.n_labels, targets };
		for (uint32_t i = 0; i < list.n_labels; i++)
			await_label(p, list.labels[i], line, 0, &targets[i]);
	}
	free(list.labels);
}

/* brx.idx index, table; */
void parse_branch_table(struct parser *p)
{
	struct raw index = { 0 };
	struct name *table;

	if (!(p->words.present & W_IGNORED))
		parse_fail(p, p->insn.line, "%s: brx.idx is meant", insn_name(p));
	parse_operand(p, &index);
	expect(p, ',');
	table = expect_name(p);
	expect(p, ';');
	if (!table)
		return;
	if (!table->binding || table->binding->kind != BIND_TABLE) {
		parse_fail(p, p->insn.line, "'%.40s' is no .branchtargets", table->text);
		return;
	}
	p->insn.aux = table->binding->index;
	push_source(p, &index, PTX_U32, /* relaxed= */ false);
	insn_emit(p);
}

struct call {
	VEC(struct raw, rets);
	VEC(struct raw, args);
	struct raw callee;
	struct name *proto; /* or the .calltargets, which nobody needs */
};

static bool add_argument(struct parser *p, struct raw **list, uint32_t *n, uint32_t *cap)
{
	if (*n >= *cap && !vec_grow((void **)list, cap, *n + 1, sizeof(**list))) {
		parse_no_memory(p);
		return false;
	}
	(*list)[*n] = (struct raw){ 0 };
	if (at(p, '{') || at(p, '['))
		parse_unexpected(p, "an argument");
	parse_operand(p, &(*list)[*n]);
	++*n;
	return !p->error;
}

/* "( .. , .. )", after the "(" */
static void parse_arguments(struct parser *p, struct raw **list, uint32_t *n, uint32_t *cap)
{
	if (take(p, ')'))
		return;
	do {
		p->n_elements = 0;
		if (!add_argument(p, list, n, cap))
			return;
	} while (take(p, ','));
	expect(p, ')');
}

static void push_argument(struct parser *p, const struct raw *raw, const struct ptx_param *param,
			  bool result)
{
	/* A parameter of open size ("[]") takes what is given, as vprintf does. */
	if (raw->kind == RAW_ADDRESS && raw->op.kind == PTX_FRAME) {
		if (param->in_reg || (param->size && raw->room != param->size))
			parse_fail(p, p->insn.line,
				   "call: '%.40s' is of another size than the "
				   "parameter",
				   raw->name->text);
		push(p, raw->op);
	} else if (raw->kind == RAW_SINK && result) {
		push(p, raw->op);
	} else if (param->size != ptx_type_bytes(param->type)) {
		parse_fail(p, p->insn.line, "call: a parameter in memory is given as a .param");
	} else if (result) {
		push_result(p, raw, param->type, /* relaxed= */ false);
	} else {
		push_source(p, raw, param->type, /* relaxed= */ false);
	}
}

/* Who is called, and as what: an index in parser.protos, or UINT32_MAX after an error. */
static uint32_t callee_proto(struct parser *p, const struct call *call)
{
	const struct raw *callee = &call->callee;

	if (callee->kind == RAW_ADDRESS && callee->op.kind == PTX_SYM) {
		const struct ptx_symbol *s = &p->symbols[callee->op.index];

		if (s->func && !s->func->kernel && s->func->proto != UINT32_MAX)
			return s->func->proto;
	} else if (callee->kind == RAW_REG && callee->op.cls == PTX_CLASS_D) {
		if (call->proto && call->proto->binding && call->proto->binding->kind == BIND_PROTO)
			return call->proto->binding->index;
		if (!p->error)
			parse_fail(p, p->insn.line, "call: an indirect one needs a .callprototype");
		return UINT32_MAX;
	}
	if (!p->error)
		parse_fail(p, p->insn.line, "call: '%.40s' is no device function",
			   callee->name ? callee->name->text : "?");
	return UINT32_MAX;
}

static void push_call(struct parser *p, const struct call *call, const struct ptx_proto *proto)
{
	if (call->n_rets != proto->n_rets || call->n_args != proto->n_params) {
		parse_fail(p, p->insn.line, "call: %u results and %u arguments, not %u and %u",
			   call->n_rets, call->n_args, proto->n_rets, proto->n_params);
		return;
	}
	if (call->n_rets > UINT8_MAX)
		parse_fail(p, p->insn.line, "call: more than %u results", UINT8_MAX);
	for (uint32_t i = 0; i < call->n_rets; i++)
		push_argument(p, &call->rets[i], &proto->rets[i], /* result= */ true);
	push(p, call->callee.op);
	for (uint32_t i = 0; i < call->n_args; i++)
		push_argument(p, &call->args[i], &proto->params[i], /* result= */ false);
	p->insn.n_dst = (uint8_t)call->n_rets;
	insn_emit(p);
}

/* call [(results),] callee [, (arguments)] [, prototype]; */
static void parse_call_parts(struct parser *p, struct call *call)
{
	uint32_t proto;

	p->n_elements = 0;
	if (take(p, '(')) {
		parse_arguments(p, &call->rets, &call->n_rets, &call->cap_rets);
		expect(p, ',');
	}
	if (p->token.kind != TOKEN_NAME)
		parse_unexpected(p, "the name of a function");
	parse_operand(p, &call->callee);
	while (take(p, ',')) {
		if (take(p, '('))
			parse_arguments(p, &call->args, &call->n_args, &call->cap_args);
		else
			call->proto = expect_name(p);
	}
	proto = callee_proto(p, call);
	expect(p, ';');
	if (p->error)
		return;
	p->insn.aux = proto;
	push_call(p, call, &p->protos[proto]);
}

void parse_call(struct parser *p)
{
	struct call call = { 0 };

	parse_call_parts(p, &call);
	free(call.rets);
	free(call.args);
}
