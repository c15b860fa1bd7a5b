/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads and bodies of functions.
 */
#include <string.h>

#include "softgpu/ptx/parse.h"
#include "softgpu/ptx/share.h"

/* Parameters of one list while they are read. */
struct params {
	VEC(struct ptx_param, items);
	VEC(struct name *, names);
};

/* What ".ptr" says of a pointer is of no use here. */
static void skip_pointer_note(struct parser *p)
{
	if (!take_dot(p, "ptr"))
		return;
	if (is_space_word(p))
		next(p);
	parse_align(p);
}

static void refuse_opaque(struct parser *p)
{
	if (at_dot(p, "texref") || at_dot(p, "samplerref") || at_dot(p, "surfref"))
		parse_refuse(p, p->token.line, "textures and surfaces are not run here");
}

/* "[16]", "[]" or nothing: bytes of the parameter */
static uint32_t parse_param_size(struct parser *p, unsigned int bytes)
{
	uint64_t size;

	if (!take(p, '['))
		return bytes;
	if (take(p, ']'))
		return 0;
	size = (uint64_t)bytes * expect_u32(p, MAX_FRAME_BYTES, "size of a parameter");
	expect(p, ']');
	if (size > MAX_FRAME_BYTES)
		parse_fail(p, p->token.line, "a parameter of more than %u bytes", MAX_FRAME_BYTES);
	return (uint32_t)size;
}

/* ".param .align 8 .b8 name[16]", ".param .u64 .ptr .global name", ".reg .f32 name" */
static void parse_param(struct parser *p, struct params *list)
{
	struct ptx_param param = { 0 };
	struct name *name;

	if (take_dot(p, "reg"))
		param.in_reg = true;
	else if (!take_dot(p, "param"))
		parse_unexpected(p, "'.param'");
	param.align = parse_align(p);
	refuse_opaque(p);
	param.type = expect_type(p);
	skip_pointer_note(p);
	if (!param.align)
		param.align = parse_align(p);
	name = expect_name(p);
	if (p->error)
		return;
	param.name = name->text;
	param.size = parse_param_size(p, ptx_type_bytes(param.type));
	if (!param.align)
		param.align = ptx_type_bytes(param.type);
	if (param.align > MAX_ALIGN)
		parse_fail(p, p->token.line, ".align %u: at most %u here", param.align, MAX_ALIGN);
	if (param.in_reg)
		param.cls = class_of(param.type);
	else if (param.type == PTX_PRED)
		parse_fail(p, p->token.line, "a predicate cannot be a .param");

	if (list->n_items == MAX_PARAMS) {
		parse_fail(p, p->token.line, "more than %u parameters", MAX_PARAMS);
	} else if (!vec_room(list, items, 1) || !vec_room(list, names, 1)) {
		parse_no_memory(p);
	} else {
		list->names[list->n_names++] = name;
		list->items[list->n_items++] = param;
	}
}

/* "( .. , .. )" or nothing */
static void parse_params(struct parser *p, struct params *list)
{
	if (!take(p, '(') || take(p, ')'))
		return;
	do {
		parse_param(p, list);
	} while (take(p, ','));
	expect(p, ')');
}

static struct ptx_param *params_keep(struct parser *p, const struct params *list)
{
	struct ptx_param *kept;

	kept = arena_copy(p->arena, list->items, list->n_items * sizeof(*list->items));
	if (!kept)
		parse_no_memory(p);
	return kept;
}

static void take_three(struct parser *p, uint32_t three[3], const char *what)
{
	for (int i = 0; i < 3; i++)
		three[i] = 1;
	for (int i = 0; i < 3; i++) {
		three[i] = expect_u32(p, 1u << 20, what);
		if (!take(p, ','))
			return;
	}
}

/* Directives that say how fast or how large: of no meaning here. */
static bool skip_tuning(struct parser *p)
{
	static const char *const words[] = {
		"maxnctapersm", "maxclusterrank",	"explicitcluster",
		"abi_preserve", "abi_preserve_control", "unique",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!take_dot(p, words[i]))
			continue;
		while (p->token.kind == TOKEN_INT || at(p, ','))
			next(p);
		return true;
	}
	return false;
}

/* A cluster is one block here. */
static void parse_cluster(struct parser *p)
{
	uint32_t line = p->token.line, blocks[3];

	take_three(p, blocks, ".reqnctapercluster");
	if (blocks[0] > 1 || blocks[1] > 1 || blocks[2] > 1)
		parse_refuse(p, line, ".reqnctapercluster: clusters of blocks are not run here");
}

/* What stands between the head and the body, or the ";". */
static void parse_tuning(struct parser *p, struct ptx_function *f, struct ptx_proto *proto)
{
	while (!p->error && p->token.kind == TOKEN_DOT) {
		if (skip_debug(p) || skip_tuning(p))
			continue;
		if (take_dot(p, "maxntid"))
			take_three(p, f->max_ntid, ".maxntid");
		else if (take_dot(p, "reqntid"))
			take_three(p, f->req_ntid, ".reqntid");
		else if (take_dot(p, "reqnctapercluster"))
			parse_cluster(p);
		else if (take_dot(p, "minnctapersm"))
			f->min_cta_per_sm = expect_u32(p, 1u << 20, ".minnctapersm");
		else if (take_dot(p, "maxnreg"))
			f->max_regs = expect_u32(p, 1u << 20, ".maxnreg");
		else if (take_dot(p, "noreturn"))
			proto->noreturn = true;
		else
			parse_unexpected(p, "the body of the function");
	}
}

/* Offsets of a kernel's parameters in its buffer. */
static void place_kernel_params(struct parser *p, struct ptx_proto *proto, uint32_t line)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < proto->n_params; i++) {
		struct ptx_param *param = &proto->params[i];

		if (param->in_reg)
			parse_fail(p, line, "the parameters of kernels are .param");
		at = (at + param->align - 1) & ~((uint64_t)param->align - 1);
		param->offset = (uint32_t)at;
		at += param->size;
		if (at > MAX_PARAM_BYTES) {
			parse_fail(p, line, "parameters of more than %u bytes", MAX_PARAM_BYTES);
			return;
		}
	}
	proto->param_bytes = (uint32_t)at;
}

static uint32_t proto_add(struct parser *p, const struct ptx_proto *proto)
{
	if (!vec_room(p, protos, 1)) {
		parse_no_memory(p);
		return 0;
	}
	p->protos[p->n_protos] = *proto;
	return p->n_protos++;
}

static void bind_param(struct parser *p, struct name *name, struct ptx_param *param, uint32_t line)
{
	struct binding *b;

	if (name->binding && name->binding->depth == p->names.depth) {
		parse_fail(p, line, "two parameters are called '%.40s'", name->text);
		return;
	}
	b = names_bind(&p->names, name, p->names.depth, line);
	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->type = param->type;
	b->size = param->size;
	b->vec = 1;
	b->space = PTX_SPACE_PARAM;
	if (p->func->kernel) {
		b->kind = BIND_PARAM;
		b->offset = param->offset;
	} else if (param->in_reg) {
		b->kind = BIND_REG;
		b->cls = param->cls;
		b->index = param->reg = register_new(p, param->cls);
	} else {
		b->kind = BIND_FRAME;
		b->offset = param->offset = frame_place(p, param->size, param->align);
	}
}

static void scope_open(struct parser *p)
{
	if (!names_open(&p->names)) {
		parse_fail(p, p->token.line, "more than %u scopes in each other", NAMES_MAX_DEPTH);
		return;
	}
	p->scopes[p->names.depth].pending = p->n_pending;
	p->scopes[p->names.depth].frame_top = p->frame_top;
}

static void scope_close(struct parser *p)
{
	labels_resolve(p);
	/* What was in the frame for this scope alone makes room for the next. */
	p->frame_top = p->scopes[p->names.depth].frame_top;
	names_close(&p->names);
}

/* "name :" begins a label, or a prototype or a list of labels */
static void parse_labelled(struct parser *p, const struct token *label)
{
	struct name *name = names_get(&p->names, label->text, label->len);

	if (!name)
		parse_no_memory(p);
	next(p);
	if (p->error)
		return;
	if (take_dot(p, "callprototype")) {
		uint32_t proto = parse_proto(p);
		struct binding *b = names_bind(&p->names, name, p->names.depth, label->line);

		if (!b) {
			parse_no_memory(p);
			return;
		}
		b->kind = BIND_PROTO;
		b->index = proto;
	} else if (take_dot(p, "branchtargets")) {
		parse_label_list(p, name, /* branches= */ true, label->line);
	} else if (take_dot(p, "calltargets")) {
		parse_label_list(p, name, /* branches= */ false, label->line);
	} else {
		label_define(p, name, label->line);
	}
}

static void parse_statement(struct parser *p)
{
	struct token first = p->token;

	if (skip_debug(p) || take(p, ';'))
		return;
	if (take_dot(p, "reg")) {
		parse_registers(p);
	} else if (at_dot(p, "maxnreg") || at_dot(p, "maxntid")) {
		parse_unexpected(p, "an instruction");
	} else if (first.kind == TOKEN_DOT && is_space_word(p)) {
		parse_variable(p, PTX_LINK_STATIC);
	} else if (take(p, '@')) {
		parse_guarded(p);
	} else if (first.kind == TOKEN_NAME) {
		next(p);
		if (at(p, ':'))
			parse_labelled(p, &first);
		else
			parse_instruction(p, &first);
	} else {
		parse_unexpected(p, "an instruction");
	}
}

static bool falls_through(const struct parser *p)
{
	const struct ptx_insn *last;

	if (p->n_insns == 0 || p->label_at_end)
		return true;
	last = &p->insns[p->n_insns - 1];
	if (last->guard != PTX_NO_GUARD)
		return true;
	return last->op != PTX_OP_RET && last->op != PTX_OP_EXIT && last->op != PTX_OP_BRA &&
	       last->op != PTX_OP_BRX && last->op != PTX_OP_TRAP;
}

/* Statements up to the "}" of the function; scopes within are counted, not recursed into. */
static void parse_body(struct parser *p)
{
	uint32_t outside = p->names.depth;

	expect(p, '{');
	while (!p->error) {
		if (take(p, '{')) {
			scope_open(p);
		} else if (at(p, '}')) {
			if (p->names.depth == outside)
				break;
			next(p);
			scope_close(p);
		} else {
			parse_statement(p);
		}
	}
	if (falls_through(p)) {
		p->insn = (struct ptx_insn){
			.op = PTX_OP_RET,
			.guard = PTX_NO_GUARD,
			.vec = 1,
			.line = p->token.line,
			.first = p->n_operands,
		};
		insn_emit(p);
	}
}

static void body_keep(struct parser *p)
{
	struct ptx_function *f = p->func;

	f->n_insns = p->n_insns;
	f->insns = arena_copy(p->arena, p->insns, p->n_insns * sizeof(*p->insns));
	f->n_operands = p->n_operands;
	f->operands = arena_copy(p->arena, p->operands, p->n_operands * sizeof(*p->operands));
	f->n_tables = p->n_tables;
	f->tables = arena_copy(p->arena, p->tables, p->n_tables * sizeof(*p->tables));
	f->n_matrices = p->n_matrices;
	f->matrices = arena_copy(p->arena, p->matrices, p->n_matrices * sizeof(*p->matrices));
	f->defined = true;
	if (!f->insns || !f->operands || !f->tables || !f->matrices ||
	    registers_share(f, &p->protos[f->proto]) < 0)
		parse_no_memory(p);
}

/* A function's head as it is read. */
struct head {
	struct params params, rets;
	struct name *name;
	uint32_t line;
};

static void head_done(struct head *head)
{
	free(head->params.items);
	free(head->params.names);
	free(head->rets.items);
	free(head->rets.names);
}

static void parse_defined(struct parser *p, struct ptx_function *f, struct head *head)
{
	p->func = f;
	p->func_name = head->name->text;
	p->n_insns = p->n_operands = p->n_tables = p->n_matrices = p->n_pending = 0;
	p->frame_top = 0;
	p->label_at_end = false;
	f->carry = UINT32_MAX;
	f->frame_align = 16;

	scope_open(p);
	for (uint32_t i = 0; i < head->rets.n_items && !p->error; i++)
		bind_param(p, head->rets.names[i], &p->protos[f->proto].rets[i], head->line);
	for (uint32_t i = 0; i < head->params.n_items && !p->error; i++)
		bind_param(p, head->params.names[i], &p->protos[f->proto].params[i], head->line);
	parse_body(p);
	if (!p->error) {
		expect(p, '}');
		scope_close(p);
		if (!p->error && p->n_pending)
			parse_fail(p, p->pending[0].line, "there is no label '%.40s'",
				   p->pending[0].name->text);
		if (!p->error)
			body_keep(p);
	}
	p->func = NULL;
}

/* The function of that name if it was declared before, else a new one. */
static struct ptx_symbol *function_symbol(struct parser *p, const struct head *head,
					  enum ptx_linkage linkage)
{
	struct binding *b = head->name->binding;
	struct ptx_symbol *s;

	if (b) {
		s = b->kind == BIND_SYMBOL ? &p->symbols[b->index] : NULL;
		if (!s || !s->func) {
			parse_fail(p, head->line, "'%.40s' is declared twice, first in line %u",
				   head->name->text, b->line);
			return NULL;
		}
		if (s->linkage == PTX_LINK_EXTERN || s->linkage == PTX_LINK_STATIC)
			s->linkage = linkage == PTX_LINK_EXTERN ? s->linkage : linkage;
		return s;
	}
	s = symbol_declare(p, head->name, head->line);
	if (!s)
		return NULL;
	s->linkage = linkage;
	s->func = arena_alloc(p->arena, sizeof(*s->func));
	if (!s->func) {
		parse_no_memory(p);
		return NULL;
	}
	s->func->proto = UINT32_MAX;
	return s;
}

static void check_redeclared(struct parser *p, const struct ptx_function *f,
			     const struct ptx_proto *proto, const struct head *head, bool kernel)
{
	const struct ptx_proto *before;

	if (f->proto == UINT32_MAX)
		return;
	before = &p->protos[f->proto];
	if (f->kernel != kernel || before->n_params != proto->n_params ||
	    before->n_rets != proto->n_rets)
		parse_fail(p, head->line, "'%.40s' was declared with other parameters",
			   head->name->text);
}

static void parse_function_head(struct parser *p, struct head *head, struct ptx_proto *proto,
				bool kernel)
{
	if (!kernel && at(p, '('))
		parse_params(p, &head->rets);
	head->line = p->token.line;
	head->name = expect_name(p);
	parse_params(p, &head->params);
	if (p->error)
		return;
	*proto = (struct ptx_proto){
		.n_params = head->params.n_items,
		.n_rets = head->rets.n_items,
		.params = params_keep(p, &head->params),
		.rets = params_keep(p, &head->rets),
	};
	if (kernel && !p->error)
		place_kernel_params(p, proto, head->line);
}

static void parse_function_rest(struct parser *p, struct head *head, enum ptx_linkage linkage,
				bool kernel)
{
	struct ptx_function tuning = { 0 }, *f;
	struct ptx_proto proto = { 0 };
	struct ptx_symbol *s;

	parse_function_head(p, head, &proto, kernel);
	parse_tuning(p, &tuning, &proto);
	if (p->error)
		return;
	s = function_symbol(p, head, linkage);
	if (!s)
		return;
	f = s->func;
	check_redeclared(p, f, &proto, head, kernel);
	if (!at(p, '{')) {
		expect(p, ';');
		if (f->proto == UINT32_MAX)
			f->proto = proto_add(p, &proto);
		f->kernel = kernel;
		return;
	}
	if (f->defined) {
		parse_fail(p, head->line, "'%.40s' has a body already", head->name->text);
		return;
	}
	if (linkage == PTX_LINK_EXTERN)
		parse_fail(p, head->line, "'%.40s' is .extern, yet has a body", head->name->text);
	if (s->linkage == PTX_LINK_EXTERN)
		s->linkage = linkage;
	*f = tuning;
	f->kernel = kernel;
	f->proto = proto_add(p, &proto);
	if (!p->error)
		parse_defined(p, f, head);
}

void parse_function(struct parser *p, enum ptx_linkage linkage)
{
	bool kernel = at_dot(p, "entry");
	struct head head = { 0 };

	next(p);
	parse_function_rest(p, &head, linkage, kernel);
	head_done(&head);
}

/* ".callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);" */
uint32_t parse_proto(struct parser *p)
{
	struct ptx_function unused = { 0 };
	struct ptx_proto proto = { 0 };
	struct head head = { 0 };
	uint32_t index = 0;

	parse_function_head(p, &head, &proto, /* kernel= */ false);
	parse_tuning(p, &unused, &proto);
	expect(p, ';');
	if (!p->error)
		index = proto_add(p, &proto);
	head_done(&head);
	return index;
}
