/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers, variables and their initial values.
 */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/parse.h"

/*
 * Ranges whose prefix ends in a digit cannot be told from others by name; they are spelt out. Compilers write none,
 * so there need not be room for many: one of this size takes 10 MB.
 */
#define MAX_SPELT_RANGE 65536u
#define MAX_SPELT	(4 * MAX_SPELT_RANGE) /* in a module */

enum ptx_class class_of(enum ptx_type type)
{
	if (type == PTX_PRED)
		return PTX_CLASS_P;
	switch (ptx_type_bytes(type)) {
	case 16:
		return PTX_CLASS_Q;
	case 8:
		return PTX_CLASS_D;
	case 4:
		return PTX_CLASS_W;
	default:
		return PTX_CLASS_H;
	}
}

uint32_t register_new(struct parser *p, enum ptx_class cls)
{
	if (p->func->n_regs[cls] >= MAX_REGISTERS) {
		parse_fail(p, p->token.line, "more than %u registers", MAX_REGISTERS);
		return 0;
	}
	return p->func->n_regs[cls]++;
}

enum ptx_type expect_type(struct parser *p)
{
	enum ptx_type type = PTX_TYPE_NONE;

	if (p->token.kind == TOKEN_DOT)
		type = type_find(p->token.text, p->token.len);
	if (type == PTX_TYPE_NONE || type >= PTX_S4)
		parse_unexpected(p, "a type");
	next(p);
	return type;
}

/* ".align N"; 0 where it is not there */
uint32_t parse_align(struct parser *p)
{
	uint32_t line = p->token.line, align;

	if (!take_dot(p, "align"))
		return 0;
	align = expect_u32(p, 1u << 20, ".align");
	if (align == 0 || (align & (align - 1)))
		parse_fail(p, line, ".align %u: not a power of two", align);
	return align;
}

/* A name may be declared once in a scope. */
static bool is_free(struct parser *p, const struct name *name, uint32_t line)
{
	const struct binding *b = name->binding;

	if (!b || b->depth < p->names.depth)
		return true;
	parse_fail(p, line, "'%.40s' is declared twice, first in line %u", name->text, b->line);
	return false;
}

static void declare_register(struct parser *p, struct name *name, enum ptx_type type, uint8_t vec,
			     uint32_t line)
{
	struct binding *b;

	if (!is_free(p, name, line))
		return;
	b = names_bind(&p->names, name, p->names.depth, line);
	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->kind = BIND_REG;
	b->type = type;
	b->vec = vec;
	b->cls = class_of(type);
	b->index = register_new(p, b->cls);
	for (unsigned int i = 1; i < vec; i++)
		register_new(p, b->cls);
}

static void spell_range(struct parser *p, const struct name *prefix, uint32_t count,
			enum ptx_type type, uint8_t vec, uint32_t line)
{
	char text[128];
	struct name *name;
	int len;

	if (count > MAX_SPELT_RANGE || count > MAX_SPELT - p->n_spelt || prefix->len > 100) {
		parse_fail(p, line, ".reg %.40s<%u>: too many", prefix->text, count);
		return;
	}
	p->n_spelt += count;
	for (uint32_t i = 0; i < count && !p->error; i++) {
		len = snprintf(text, sizeof(text), "%s%u", prefix->text, i);
		name = names_get(&p->names, text, (size_t)len);
		if (name)
			declare_register(p, name, type, vec, line);
		else
			parse_no_memory(p);
	}
}

/* "%r<100>": only the prefix is bound */
static void declare_range(struct parser *p, struct name *prefix, enum ptx_type type, uint8_t vec,
			  uint32_t line)
{
	char last = prefix->text[prefix->len - 1];
	uint64_t count = p->token.value;
	struct binding *b;

	/* No expression: the ">" would be part of it. */
	if (p->token.kind != TOKEN_INT || count > UINT32_MAX)
		parse_unexpected(p, "the number of registers");
	next(p);
	expect(p, '>');
	if (p->error)
		return;
	if (last >= '0' && last <= '9') {
		spell_range(p, prefix, (uint32_t)count, type, vec, line);
		return;
	}
	if (!is_free(p, prefix, line))
		return;
	b = names_bind(&p->names, prefix, p->names.depth, line);
	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->kind = BIND_RANGE;
	b->type = type;
	b->vec = vec;
	b->cls = class_of(type);
	b->count = (uint32_t)count;
}

/* ".v2", ".v4", ".v8" or nothing */
static uint8_t parse_vec(struct parser *p)
{
	if (take_dot(p, "v2"))
		return 2;
	if (take_dot(p, "v4"))
		return 4;
	return take_dot(p, "v8") ? 8 : 1;
}

void parse_registers(struct parser *p)
{
	enum ptx_type type;
	uint8_t vec;

	parse_align(p);
	vec = parse_vec(p);
	type = expect_type(p);
	do {
		uint32_t line = p->token.line;
		struct name *name = expect_name(p);

		if (!name)
			return;
		if (take(p, '<'))
			declare_range(p, name, type, vec, line);
		else
			declare_register(p, name, type, vec, line);
	} while (take(p, ','));
	expect(p, ';');
}

uint32_t frame_place(struct parser *p, uint64_t size, uint32_t align)
{
	uint64_t at = ((uint64_t)p->frame_top + align - 1) & ~((uint64_t)align - 1);

	if (align > MAX_ALIGN)
		parse_fail(p, p->token.line, ".align %u: at most %u here", align, MAX_ALIGN);
	if (at + size > MAX_FRAME_BYTES)
		parse_fail(p, p->token.line, "local variables and parameters: more than %u bytes",
			   MAX_FRAME_BYTES);
	if (p->error)
		return 0;
	p->frame_top = (uint32_t)(at + size);
	if (p->frame_top > p->func->frame_bytes)
		p->func->frame_bytes = p->frame_top;
	if (align > p->func->frame_align)
		p->func->frame_align = align;
	return (uint32_t)at;
}

/* A variable as it is declared, and how its initial value is laid out. */
struct decl {
	struct name *name;
	uint32_t line;
	uint8_t space, bank;
	bool managed;
	enum ptx_type type;
	uint8_t vec;
	uint32_t align;
	unsigned int n_dims;
	uint64_t dims[MAX_DIMS + 1]; /* the elements of a vector are the last */
	bool open;		     /* the first dimension is "[]" */
	uint64_t size;
};

static const struct {
	const char *word;
	uint8_t space;
} space_words[] = {
	{ "global", PTX_SPACE_GLOBAL }, { "shared", PTX_SPACE_SHARED },
	{ "local", PTX_SPACE_LOCAL },	{ "const", PTX_SPACE_CONST },
	{ "param", PTX_SPACE_PARAM },
};

static uint8_t space_of_token(const struct parser *p)
{
	for (size_t i = 0; i < sizeof(space_words) / sizeof(space_words[0]); i++) {
		if (at_dot(p, space_words[i].word))
			return space_words[i].space;
	}
	return PTX_SPACE_NONE;
}

bool is_space_word(const struct parser *p)
{
	return space_of_token(p) != PTX_SPACE_NONE;
}

static uint64_t max_bytes(uint8_t space)
{
	switch (space) {
	case PTX_SPACE_GLOBAL:
		return MAX_GLOBAL_BYTES;
	case PTX_SPACE_SHARED:
		return MAX_SHARED_BYTES;
	case PTX_SPACE_CONST:
		return MAX_CONST_BYTES;
	default:
		return MAX_FRAME_BYTES;
	}
}

/* What a shape multiplies to, in bytes; elements of the inner dimensions cannot overflow then. */
static void decl_measure(struct parser *p, struct decl *d)
{
	uint64_t size = ptx_type_bytes(d->type);

	for (unsigned int i = 0; i < d->n_dims; i++) {
		if (i == 0 && d->open)
			continue;
		if (__builtin_mul_overflow(size, d->dims[i], &size) || size > max_bytes(d->space)) {
			parse_fail(p, d->line, "'%.40s' is larger than %llu bytes", d->name->text,
				   (unsigned long long)max_bytes(d->space));
			return;
		}
	}
	d->size = d->open ? 0 : size;
}

static void parse_dims(struct parser *p, struct decl *d)
{
	d->n_dims = 0;
	d->open = false;
	while (take(p, '[')) {
		if (d->n_dims == MAX_DIMS) {
			parse_fail(p, d->line, "'%.40s' has more than %u dimensions", d->name->text,
				   MAX_DIMS);
			return;
		}
		if (at(p, ']') && d->n_dims == 0)
			d->open = true;
		else
			d->dims[d->n_dims] = parse_value(p).v;
		d->n_dims++;
		expect(p, ']');
	}
	if (d->vec > 1)
		d->dims[d->n_dims++] = d->vec;
	decl_measure(p, d);
}

/* Makes the initial value reach that far; what is not written is zero. */
static uint8_t *init_reach(struct parser *p, uint64_t offset, unsigned int bytes)
{
	if (offset + bytes > MAX_INIT_BYTES - p->init_bytes) {
		parse_fail(p, p->token.line, "initial values of more than %llu bytes",
			   (unsigned long long)MAX_INIT_BYTES);
		return NULL;
	}
	if (offset + bytes > p->n_init) {
		if (!vec_room(p, init, (uint32_t)(offset + bytes) - p->n_init)) {
			parse_no_memory(p);
			return NULL;
		}
		memset(p->init + p->n_init, 0, offset + bytes - p->n_init);
		p->n_init = (uint32_t)(offset + bytes);
	}
	return p->init + offset;
}

/* "sym", "sym + 4", "generic(sym) + 4"; the masks of "0xFF00(sym)" choose a byte of the address */
static void init_address(struct parser *p, const struct decl *d, uint64_t offset, uint8_t shift,
			 bool generic)
{
	uint32_t line = p->token.line;
	struct name *name = expect_name(p);
	unsigned int bytes = ptx_type_bytes(d->type);
	struct ptx_reloc *reloc;

	if (!name)
		return;
	if (!name->binding || name->binding->kind != BIND_SYMBOL) {
		parse_fail(p, line, "'%.40s' is neither a variable nor a function", name->text);
		return;
	}
	if (bytes > 8 || ptx_type_kind(d->type) == 'f') {
		parse_fail(p, line, "the address of '%.40s' does not fit the type", name->text);
		return;
	}
	if (!vec_room(p, relocs, 1)) {
		parse_no_memory(p);
		return;
	}
	reloc = &p->relocs[p->n_relocs++];
	*reloc = (struct ptx_reloc){
		.offset = offset,
		.symbol = name->binding->index,
		.bytes = (uint8_t)bytes,
		.shift = shift,
		.generic = generic,
	};
	init_reach(p, offset, bytes);
}

/* What follows an address: its addend. */
static void init_addend(struct parser *p)
{
	uint64_t addend;

	if (!at(p, '+') && !at(p, '-'))
		return;
	addend = parse_value(p).v;
	if (!p->error && p->n_relocs)
		p->relocs[p->n_relocs - 1].addend += (int64_t)addend;
}

static void init_named(struct parser *p, const struct decl *d, uint64_t offset)
{
	bool generic = p->token.len == 7 && !memcmp(p->token.text, "generic", 7);

	if (generic) {
		next(p);
		expect(p, '(');
	}
	init_address(p, d, offset, /* shift= */ 0, generic);
	init_addend(p);
	if (generic) {
		expect(p, ')');
		init_addend(p);
	}
}

static void init_number(struct parser *p, const struct decl *d, uint64_t offset)
{
	unsigned int bytes = ptx_type_bytes(d->type);
	uint32_t line = p->token.line;
	struct raw raw = { 0 };
	uint64_t bits;
	uint8_t *to;

	parse_operand(p, &raw);
	if (p->error)
		return;
	/* mask(sym): the number was a mask of eight ones */
	if (raw.kind == RAW_INT && take(p, '(')) {
		uint8_t shift = raw.op.imm ? (uint8_t)__builtin_ctzll(raw.op.imm) : 0;

		if (raw.op.imm >> shift != 0xff)
			parse_fail(p, line, "a mask of an address is eight bits");
		if (p->token.kind == TOKEN_NAME && p->token.len == 7 &&
		    !memcmp(p->token.text, "generic", 7)) {
			next(p);
			expect(p, '(');
			init_address(p, d, offset, shift, /* generic= */ true);
			expect(p, ')');
		} else {
			init_address(p, d, offset, shift, /* generic= */ false);
		}
		init_addend(p);
		expect(p, ')');
		return;
	}
	if (!bits_of(&raw, d->type, &bits)) {
		parse_fail(p, line, "not a value of type .%s", ptx_type_name(d->type));
		return;
	}
	to = init_reach(p, offset, bytes);
	if (to)
		memcpy(to, &bits, bytes < 8 ? bytes : 8);
}

static void init_element(struct parser *p, const struct decl *d, uint64_t index)
{
	uint64_t offset = index * ptx_type_bytes(d->type);

	if (p->token.kind == TOKEN_NAME &&
	    !(p->token.len == 7 && !memcmp(p->token.text, "WARP_SZ", 7)))
		init_named(p, d, offset);
	else
		init_number(p, d, offset);
}

/* Elements below a dimension: 1 for the last. */
static uint64_t stride_of(const struct decl *d, unsigned int level)
{
	uint64_t stride = 1;

	for (unsigned int i = level + 1; i < d->n_dims; i++)
		stride *= d->dims[i];
	return stride;
}

/*
 * "{..}" at a level of the shape, the elements from @first on. Items without braces of their own
 * fill the levels below one element after another, as in C. Returns how many items of the level
 * there were.
 */
static uint64_t init_braces(struct parser *p, const struct decl *d, unsigned int level,
			    uint64_t first)
{
	uint64_t stride = stride_of(d, level), at_element = 0, limit;
	bool open = level == 0 && d->open;

	if (stride == 0)
		parse_fail(p, d->line, "'%.40s' has no elements", d->name->text);
	limit = open ? MAX_INIT_BYTES : d->dims[level] * stride;
	while (!p->error && !at(p, '}')) {
		if (at_element >= limit) {
			parse_fail(p, p->token.line, "'%.40s': more values than elements",
				   d->name->text);
		} else if (take(p, '{')) {
			if (level + 1 >= d->n_dims) {
				parse_fail(p, p->token.line, "'%.40s': more braces than dimensions",
					   d->name->text);
				break;
			}
			at_element = (at_element + stride - 1) / stride * stride;
			init_braces(p, d, level + 1, first + at_element);
			at_element += stride;
		} else {
			init_element(p, d, first + at_element);
			at_element++;
		}
		if (!take(p, ','))
			break;
	}
	expect(p, '}');
	return stride ? (at_element + stride - 1) / stride : 0;
}

static void parse_init(struct parser *p, struct decl *d)
{
	uint64_t n;

	if (d->space != PTX_SPACE_GLOBAL && d->space != PTX_SPACE_CONST) {
		parse_fail(p, d->line, "'%.40s': only .global and .const have initial values",
			   d->name->text);
		return;
	}
	if (d->n_dims == 0) {
		init_element(p, d, 0);
		return;
	}
	expect(p, '{');
	if (!d->open && d->size == 0) {
		expect(p, '}');
		return;
	}
	n = init_braces(p, d, 0, 0);
	if (d->open && !p->error) {
		d->open = false;
		d->dims[0] = n;
		decl_measure(p, d);
	}
}

static void var_fill(struct parser *p, const struct decl *d, struct ptx_var *var)
{
	var->space = d->space;
	var->type = d->type;
	var->bank = d->bank;
	var->managed = d->managed;
	var->size = d->size;
	var->align = d->align ? d->align : ptx_type_bytes(d->type) * d->vec;
	var->n_init = p->n_init;
	p->init_bytes += p->n_init;
	if (p->n_init)
		var->init = arena_copy(p->arena, p->init, p->n_init);
	var->n_relocs = p->n_relocs;
	var->relocs = arena_copy(p->arena, p->relocs, p->n_relocs * sizeof(*p->relocs));
	if ((p->n_init && !var->init) || !var->relocs)
		parse_no_memory(p);
}

static void count_const(struct parser *p, const struct decl *d)
{
	if (d->space != PTX_SPACE_CONST)
		return;
	p->const_bytes[d->bank] += d->size;
	if (p->const_bytes[d->bank] > MAX_CONST_BYTES)
		parse_fail(p, d->line, "constant bank %u: more than %u bytes", d->bank,
			   MAX_CONST_BYTES);
}

/* The symbol of an earlier declaration that this one goes with: `.extern` first, then the body. */
static struct ptx_symbol *declared_before(struct parser *p, const struct decl *d,
					  enum ptx_linkage linkage)
{
	struct binding *b = d->name->binding;
	struct ptx_symbol *s;

	if (!b || b->depth != p->names.depth || b->kind != BIND_SYMBOL)
		return NULL;
	s = &p->symbols[b->index];
	if (!s->var || s->var->space != d->space)
		return NULL;
	if (s->linkage == PTX_LINK_EXTERN || linkage == PTX_LINK_EXTERN)
		return s;
	return NULL;
}

static void declare_module_variable(struct parser *p, struct decl *d, enum ptx_linkage linkage)
{
	struct ptx_symbol *s = declared_before(p, d, linkage);

	p->n_init = p->n_relocs = 0;
	if (!s) {
		if (!is_free(p, d->name, d->line))
			return;
		s = symbol_declare(p, d->name, d->line);
		if (!s)
			return;
		s->linkage = linkage;
		s->var = arena_alloc(p->arena, sizeof(*s->var));
		if (!s->var) {
			parse_no_memory(p);
			return;
		}
	} else if (s->linkage != PTX_LINK_EXTERN) {
		return;
	}
	if (take(p, '=')) {
		if (linkage == PTX_LINK_EXTERN)
			parse_fail(p, d->line, "'%.40s' is .extern, yet has an initial value",
				   d->name->text);
		/* An initial value names symbols, never declares any: s stays where it is. */
		parse_init(p, d);
	}
	s->linkage = linkage;
	count_const(p, d);
	if (!p->error)
		var_fill(p, d, s->var);
}

/* .local, and the .param variables of calls */
static void declare_frame_variable(struct parser *p, const struct decl *d)
{
	uint32_t align = d->align ? d->align : ptx_type_bytes(d->type) * d->vec;
	struct binding *b;

	if (!p->func) {
		parse_fail(p, d->line, "'%.40s': .local and .param belong into functions",
			   d->name->text);
		return;
	}
	if (!is_free(p, d->name, d->line))
		return;
	b = names_bind(&p->names, d->name, p->names.depth, d->line);
	if (!b) {
		parse_no_memory(p);
		return;
	}
	b->kind = BIND_FRAME;
	b->space = d->space;
	b->type = d->type;
	b->size = d->size;
	b->offset = frame_place(p, d->size, align);
}

/* ".attribute(.managed)" and others, which are of no effect */
static bool parse_attributes(struct parser *p)
{
	bool managed = false;

	if (!take_dot(p, "attribute"))
		return false;
	expect(p, '(');
	while (!p->error && !at(p, ')')) {
		if (at_dot(p, "managed"))
			managed = true;
		next(p);
	}
	expect(p, ')');
	return managed;
}

static uint8_t parse_bank(struct parser *p)
{
	uint8_t bank;

	if (!take(p, '['))
		return 0;
	bank = (uint8_t)expect_u32(p, 10, "constant bank");
	expect(p, ']');
	return bank;
}

void parse_variable(struct parser *p, enum ptx_linkage linkage)
{
	struct decl d = { .space = space_of_token(p) };

	next(p);
	if (d.space == PTX_SPACE_CONST)
		d.bank = parse_bank(p);
	d.managed = parse_attributes(p);
	d.align = parse_align(p);
	d.vec = parse_vec(p);
	if (!d.align)
		d.align = parse_align(p);
	if (at_dot(p, "texref") || at_dot(p, "samplerref") || at_dot(p, "surfref")) {
		parse_refuse(p, p->token.line, "textures and surfaces are not run here");
		return;
	}
	d.type = expect_type(p);
	if (d.type == PTX_PRED)
		parse_fail(p, p->token.line, "predicates are registers, not variables");
	do {
		d.line = p->token.line;
		d.name = expect_name(p);
		if (!d.name || d.type == PTX_TYPE_NONE)
			return;
		parse_dims(p, &d);
		if (p->error)
			return;
		if (d.space == PTX_SPACE_LOCAL || d.space == PTX_SPACE_PARAM)
			declare_frame_variable(p, &d);
		else
			declare_module_variable(p, &d, linkage);
	} while (take(p, ','));
	expect(p, ';');
}
