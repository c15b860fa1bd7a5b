/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX text in, module out: tokens, errors and the directives of a module.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/parse.h"

/* Longest piece of the text that an error message repeats. */
#define QUOTE_MAX 40

static void stop(struct parser *p, int error)
{
	p->error = error;
	p->lexer.at = p->lexer.end;
	p->token = (struct token){ .kind = TOKEN_END, .line = p->token.line, .text = "" };
}

static void report(struct parser *p, uint32_t line, int error, const char *fmt, va_list ap)
{
	char text[256];

	if (p->error)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	ptx_log_line(p->log, "line %u: %s", line, text);
	stop(p, error);
}

void parse_fail(struct parser *p, uint32_t line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(p, line, PTX_E_INVALID, fmt, ap);
	va_end(ap);
}

void parse_refuse(struct parser *p, uint32_t line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(p, line, PTX_E_UNSUPPORTED, fmt, ap);
	va_end(ap);
}

void parse_no_memory(struct parser *p)
{
	if (!p->error)
		stop(p, -ENOMEM);
}

void parse_unexpected(struct parser *p, const char *wanted)
{
	const struct token *t = &p->token;
	int len = t->len < QUOTE_MAX ? (int)t->len : QUOTE_MAX;

	if (t->kind == TOKEN_END)
		parse_fail(p, t->line, "the text ends where %s should be", wanted);
	else
		parse_fail(p, t->line, "'%s%.*s' where %s should be",
			   t->kind == TOKEN_DOT ? "." : "", len, t->text, wanted);
}

/* Whoever goes on at the end waits for something that will not come. */
void next(struct parser *p)
{
	if (p->token.kind == TOKEN_END)
		parse_unexpected(p, "more");
	else
		lexer_next(&p->lexer, &p->token);
}

bool at_dot(const struct parser *p, const char *word)
{
	const struct token *t = &p->token;

	return t->kind == TOKEN_DOT && t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

bool take(struct parser *p, char c)
{
	if (!at(p, c))
		return false;
	next(p);
	return true;
}

bool take_dot(struct parser *p, const char *word)
{
	if (!at_dot(p, word))
		return false;
	next(p);
	return true;
}

void expect(struct parser *p, char c)
{
	char wanted[] = { '\'', c, '\'', '\0' };

	if (!take(p, c))
		parse_unexpected(p, wanted);
}

struct name *expect_name(struct parser *p)
{
	struct name *name;

	if (p->token.kind != TOKEN_NAME) {
		parse_unexpected(p, "a name");
		return NULL;
	}
	name = names_get(&p->names, p->token.text, p->token.len);
	if (!name)
		parse_no_memory(p);
	next(p);
	return p->error ? NULL : name;
}

uint32_t expect_u32(struct parser *p, uint32_t max, const char *what)
{
	uint32_t line = p->token.line;
	uint64_t v = parse_value(p).v;

	if (v > max) {
		parse_fail(p, line, "%s: %llu is more than %u", what, (unsigned long long)v, max);
		return 0;
	}
	return (uint32_t)v;
}

/* .loc file line column [, function_name label [+ offset]] [, inlined_at file line column] */
static void skip_loc(struct parser *p)
{
	for (int i = 0; i < 3 && p->token.kind == TOKEN_INT; i++)
		next(p);
	while (take(p, ',')) {
		expect_name(p);
		if (p->token.kind == TOKEN_NAME)
			next(p);
		if (take(p, '+'))
			next(p);
		while (p->token.kind == TOKEN_INT)
			next(p);
	}
}

static void skip_file(struct parser *p)
{
	if (p->token.kind == TOKEN_INT)
		next(p);
	if (p->token.kind != TOKEN_STRING)
		parse_unexpected(p, "the name of a file");
	next(p);
	while (take(p, ','))
		next(p);
}

static void skip_section(struct parser *p)
{
	next(p);
	if (!at(p, '{')) {
		parse_unexpected(p, "'{'");
		return;
	}
	if (!lexer_skip_braces(&p->lexer))
		parse_fail(p, p->token.line, "the section has no end");
	next(p);
}

static void skip_pragma(struct parser *p)
{
	do {
		if (p->token.kind != TOKEN_STRING)
			parse_unexpected(p, "a string");
		next(p);
	} while (take(p, ','));
	expect(p, ';');
}

bool skip_debug(struct parser *p)
{
	if (take_dot(p, "loc"))
		skip_loc(p);
	else if (take_dot(p, "file"))
		skip_file(p);
	else if (take_dot(p, "section"))
		skip_section(p);
	else if (take_dot(p, "pragma"))
		skip_pragma(p);
	else
		return false;
	return true;
}

struct ptx_symbol *symbol_declare(struct parser *p, struct name *name, uint32_t line)
{
	struct binding *b;
	struct ptx_symbol *s;

	if (!name || p->error)
		return NULL;
	b = names_bind(&p->names, name, p->names.depth, line);
	if (!b || !vec_room(p, symbols, 1)) {
		parse_no_memory(p);
		return NULL;
	}
	b->kind = BIND_SYMBOL;
	b->index = p->n_symbols;
	s = &p->symbols[p->n_symbols++];
	*s = (struct ptx_symbol){ .name = name->text, .line = line, .nested = p->func != NULL };
	return s;
}

/* "9.0" is a floating-point literal to the lexer; its digits are in the text. */
static void parse_version(struct parser *p)
{
	uint32_t line = p->token.line;
	unsigned int major = 0, minor = 0;
	char text[8] = "", dot;

	if (!take_dot(p, "version")) {
		parse_unexpected(p, "'.version'");
		return;
	}
	if (p->token.len < sizeof(text))
		memcpy(text, p->token.text, p->token.len);
	if (p->token.kind != TOKEN_F64 || sscanf(text, "%1u%c%2u", &major, &dot, &minor) != 3 ||
	    dot != '.' || minor > 9) {
		parse_fail(p, line, ".version: not a version");
		return;
	}
	if (major < 1)
		parse_fail(p, line, ".version %u.%u: there is no such PTX", major, minor);
	p->module->version = 10 * major + minor;
	next(p);
}

static void parse_target(struct parser *p)
{
	do {
		uint32_t line = p->token.line;
		struct name *name = expect_name(p);
		unsigned int number;

		if (!name)
			return;
		if (sscanf(name->text, "sm_%4u", &number) == 1 ||
		    sscanf(name->text, "compute_%4u", &number) == 1)
			p->module->target = number;
		else if (strcmp(name->text, "debug") && strncmp(name->text, "texmode_", 8) &&
			 strcmp(name->text, "map_f64_to_f32"))
			parse_fail(p, line, ".target: what is '%.40s'?", name->text);
	} while (take(p, ','));
}

static void parse_address_size(struct parser *p)
{
	uint32_t line = p->token.line, bits = expect_u32(p, 64, ".address_size");

	if (bits == 32)
		parse_refuse(p, line, ".address_size 32: addresses have 64 bits here");
	else if (bits != 64)
		parse_fail(p, line, ".address_size: neither 32 nor 64");
}

/* .alias name, aliasee: both are functions, the second is defined in this module */
static void parse_alias(struct parser *p)
{
	uint32_t line = p->token.line;
	struct name *alias = expect_name(p), *of;
	struct binding *a, *b;

	expect(p, ',');
	of = expect_name(p);
	expect(p, ';');
	if (!alias || !of || p->error)
		return;
	a = alias->binding;
	b = of->binding;
	if (!a || !b || a->kind != BIND_SYMBOL || b->kind != BIND_SYMBOL ||
	    !p->symbols[a->index].func || !p->symbols[b->index].func) {
		parse_fail(p, line, ".alias: '%.40s' and '%.40s' are not both functions",
			   alias->text, of->text);
		return;
	}
	if (p->symbols[a->index].func->defined)
		parse_fail(p, line, ".alias: '%.40s' has a body of its own", alias->text);
	p->symbols[a->index].func = p->symbols[b->index].func;
}

static enum ptx_linkage parse_linkage(struct parser *p)
{
	if (take_dot(p, "extern"))
		return PTX_LINK_EXTERN;
	if (take_dot(p, "visible"))
		return PTX_LINK_VISIBLE;
	if (take_dot(p, "weak"))
		return PTX_LINK_WEAK;
	if (take_dot(p, "common"))
		return PTX_LINK_COMMON;
	return PTX_LINK_STATIC;
}

static void parse_module_item(struct parser *p)
{
	enum ptx_linkage linkage;

	if (skip_debug(p) || take(p, ';'))
		return;
	if (take_dot(p, "target")) {
		parse_target(p);
	} else if (take_dot(p, "address_size")) {
		parse_address_size(p);
	} else if (take_dot(p, "alias")) {
		parse_alias(p);
	} else {
		linkage = parse_linkage(p);
		if (at_dot(p, "entry") || at_dot(p, "func"))
			parse_function(p, linkage);
		else if (is_space_word(p))
			parse_variable(p, linkage);
		else if (at_dot(p, "tex") || at_dot(p, "texref") || at_dot(p, "samplerref") ||
			 at_dot(p, "surfref"))
			parse_refuse(p, p->token.line, "textures and surfaces are not run here");
		else
			parse_unexpected(p, "a directive");
	}
}

static void parse_module(struct parser *p)
{
	p->module->addr_size = 64;
	next(p);
	parse_version(p);
	while (!p->error && p->token.kind != TOKEN_END)
		parse_module_item(p);
	if (!p->error && !p->module->target)
		parse_fail(p, p->token.line, "there is no .target");
}

static void module_finish(struct parser *p)
{
	struct ptx_module *m = p->module;

	m->n_symbols = p->n_symbols;
	m->symbols = arena_copy(p->arena, p->symbols, p->n_symbols * sizeof(*p->symbols));
	m->n_protos = p->n_protos;
	m->protos = arena_copy(p->arena, p->protos, p->n_protos * sizeof(*p->protos));
	if (!m->symbols || !m->protos)
		parse_no_memory(p);
}

static void parser_done(struct parser *p)
{
	names_done(&p->names);
	free(p->symbols);
	free(p->protos);
	free(p->insns);
	free(p->operands);
	free(p->tables);
	free(p->matrices);
	free(p->pending);
	free(p->init);
	free(p->relocs);
	free(p);
}

static struct parser *parser_new(const char *text, size_t len, struct ptx_log *log)
{
	struct parser *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->log = log;
	p->arena = arena_new();
	p->module = p->arena ? arena_alloc(p->arena, sizeof(*p->module)) : NULL;
	if (!p->module || !names_init(&p->names, p->arena)) {
		arena_free(p->arena);
		free(p);
		return NULL;
	}
	p->module->arena = p->arena;
	p->token.kind = TOKEN_BAD;
	lexer_init(&p->lexer, text, len);
	return p;
}

int ptx_parse(const char *text, size_t len, struct ptx_log *log, struct ptx_module **ret)
{
	struct parser *p = parser_new(text, len, log);
	int r;

	if (!p)
		return -ENOMEM;
	parse_module(p);
	if (!p->error)
		module_finish(p);

	r = p->error;
	if (r)
		arena_free(p->arena);
	else
		*ret = p->module;
	parser_done(p);
	return r;
}

void ptx_module_free(struct ptx_module *module)
{
	if (module)
		arena_free(module->arena);
}

const struct ptx_symbol *ptx_symbol_find(const struct ptx_module *module, const char *name)
{
	for (uint32_t i = 0; i < module->n_symbols; i++) {
		if (!module->symbols[i].nested && strcmp(module->symbols[i].name, name) == 0)
			return &module->symbols[i];
	}
	return NULL;
}
