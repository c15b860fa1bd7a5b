/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands as they are written, and what type a register or literal can be used as.
 */
#include <string.h>

#include "softgpu/ptx/parse.h"

struct sreg {
	const char *name;
	uint8_t type;
};

static const struct sreg sregs[PTX_N_SREGS] = {
#define PTX_SREG(e, text, t) [PTX_SREG_##e] = { text, PTX_##t },
#include "softgpu/ptx/ptx-sregs.def"
};

bool types_agree(enum ptx_type declared, enum ptx_type used, bool relaxed)
{
	unsigned int have = ptx_type_bytes(declared), want = ptx_type_bytes(used);
	char kind = ptx_type_kind(declared), use = ptx_type_kind(used);

	if (kind == 'p' || use == 'p')
		return kind == use;
	if (have != want) {
		if (!relaxed || have < want)
			return false;
		/* Only what has no format of its own can be wider than what is put into it. */
		return kind == 'b' || (kind != 'f' && use != 'f');
	}
	if (kind == 'b' || use == 'b')
		return true;
	if (kind == 'f' || use == 'f')
		return declared == used;
	return true;
}

static uint64_t bits_from_float(uint64_t bits, bool is_double, enum ptx_type type)
{
	double d;
	float f;
	uint32_t bits32;

	if (is_double) {
		if (ptx_type_bytes(type) == 8)
			return bits;
		memcpy(&d, &bits, sizeof(d));
		f = (float)d;
		memcpy(&bits32, &f, sizeof(f));
		return bits32;
	}
	if (ptx_type_bytes(type) == 4)
		return bits;
	bits32 = (uint32_t)bits;
	memcpy(&f, &bits32, sizeof(f));
	d = f;
	memcpy(&bits, &d, sizeof(d));
	return bits;
}

bool bits_of(const struct raw *raw, enum ptx_type type, uint64_t *ret)
{
	unsigned int bytes = ptx_type_bytes(type);
	char kind = ptx_type_kind(type);

	if (raw->kind == RAW_INT) {
		if (kind == 'f')
			return false;
		if (kind == 'p')
			*ret = raw->op.imm != 0;
		else
			*ret = bytes < 8 ? raw->op.imm & ((1ull << (8 * bytes)) - 1) : raw->op.imm;
		return true;
	}
	if (raw->kind == RAW_F32 && (type == PTX_F32 || type == PTX_F64 || type == PTX_B32)) {
		*ret = bits_from_float(raw->op.imm, /* is_double= */ false, type);
		return true;
	}
	if (raw->kind == RAW_F64 && (type == PTX_F32 || type == PTX_F64 || type == PTX_B64)) {
		*ret = bits_from_float(raw->op.imm, /* is_double= */ true, type);
		return true;
	}
	return false;
}

/* "%tid.x": two tokens. false: not a special register. */
static bool parse_sreg(struct parser *p, const struct name *name, struct raw *raw)
{
	bool vector = p->token.kind == TOKEN_DOT;

	if (name->text[0] != '%')
		return false;
	for (unsigned int i = 0; i < PTX_N_SREGS; i++) {
		const char *text = sregs[i].name;

		if (strncmp(text, name->text, name->len) != 0)
			continue;
		text += name->len;
		if (vector && (text[0] != '.' || p->token.len != 1 || p->token.text[0] != text[1]))
			continue;
		if (!vector && text[0] != '\0')
			continue;
		if (vector)
			next(p);
		raw->kind = RAW_SREG;
		raw->type = sregs[i].type;
		raw->op = (struct ptx_operand){ .kind = PTX_SREG, .index = i };
		return true;
	}
	return false;
}

/* An element of a vector register: ".x" to ".w", or ".r" to ".a". */
static int parse_element(struct parser *p)
{
	static const char letters[] = "xyzwrgba";
	const char *at;

	if (p->token.kind != TOKEN_DOT || p->token.len != 1)
		return -1;
	at = strchr(letters, p->token.text[0]);
	if (!at)
		return -1;
	next(p);
	return (int)(at - letters) % 4;
}

static void raw_register(struct raw *raw, const struct binding *b, unsigned int element)
{
	raw->kind = RAW_REG;
	raw->type = b->type;
	raw->op =
		(struct ptx_operand){ .kind = PTX_REG, .cls = b->cls, .index = b->index + element };
}

static bool element_room(struct parser *p, unsigned int n)
{
	if (p->n_elements + n <= MAX_ELEMENTS)
		return true;
	parse_fail(p, p->token.line, "too many elements of vectors");
	return false;
}

static void raw_from_register(struct parser *p, struct raw *raw, const struct binding *b)
{
	int element;

	if (b->vec == 1) {
		raw_register(raw, b, 0);
		return;
	}
	element = parse_element(p);
	if (element >= b->vec) {
		parse_fail(p, p->token.line, "'%.40s' has %u elements", b->name->text, b->vec);
	} else if (element >= 0) {
		raw_register(raw, b, (unsigned int)element);
	} else if (element_room(p, b->vec)) {
		raw->kind = RAW_VECTOR;
		raw->first = (uint8_t)p->n_elements;
		raw->count = b->vec;
		for (unsigned int i = 0; i < b->vec; i++)
			raw_register(&p->elements[p->n_elements++], b, i);
	}
}

/* A register of a range comes into being when it is first mentioned. */
static struct binding *range_register(struct parser *p, struct name *name,
				      const struct binding *range)
{
	struct binding *b = names_bind(&p->names, name, range->depth, range->line);

	if (!b) {
		parse_no_memory(p);
		return NULL;
	}
	b->kind = BIND_REG;
	b->type = range->type;
	b->vec = range->vec;
	b->cls = range->cls;
	b->index = register_new(p, range->cls);
	for (unsigned int i = 1; i < range->vec; i++)
		register_new(p, range->cls);
	return b;
}

static const struct binding *find_binding(struct parser *p, struct name *name)
{
	struct binding *b = name->binding, *range = name_range(name);

	if (range && (!b || b->depth < range->depth))
		return range_register(p, name, range);
	return b;
}

static void raw_from_symbol(struct parser *p, struct raw *raw, const struct binding *b)
{
	const struct ptx_symbol *s = &p->symbols[b->index];

	raw->kind = RAW_ADDRESS;
	raw->space = s->var ? s->var->space : PTX_SPACE_NONE;
	raw->unit = s->var ? (uint8_t)ptx_type_bytes(s->var->type) : 0;
	raw->op = (struct ptx_operand){ .kind = PTX_SYM, .index = b->index };
	raw->room = UINT64_MAX;
}

static void raw_from_name(struct parser *p, struct raw *raw)
{
	struct name *name = expect_name(p);
	const struct binding *b;

	if (!name)
		return;
	raw->name = name;
	raw->kind = RAW_NAME;
	if (name->len == 1 && name->text[0] == '_') {
		raw->kind = RAW_SINK;
		raw->op.kind = PTX_SINK;
		return;
	}
	b = find_binding(p, name);
	if (!b) {
		parse_sreg(p, name, raw);
		return;
	}
	switch (b->kind) {
	case BIND_REG:
		raw_from_register(p, raw, b);
		break;
	case BIND_SYMBOL:
		raw_from_symbol(p, raw, b);
		break;
	case BIND_FRAME:
	case BIND_PARAM:
		raw->kind = RAW_ADDRESS;
		raw->space = b->space;
		raw->room = b->size;
		raw->unit = (uint8_t)ptx_type_bytes(b->type);
		raw->op.kind = b->kind == BIND_FRAME ? PTX_FRAME : PTX_PARAM;
		raw->op.imm = b->offset;
		break;
	}
}

/* What is left of the variable is told in [room]. */
static void address_move(struct parser *p, struct raw *raw, uint64_t offset)
{
	raw->op.imm += offset;
	if (raw->kind == RAW_ADDRESS && raw->op.kind != PTX_SYM) {
		if (offset > raw->room)
			parse_fail(p, p->token.line, "an offset outside of '%.40s'",
				   raw->name->text);
		raw->room -= offset;
	}
}

/* "+ 4" and its like after an address */
static void parse_offset(struct parser *p, struct raw *raw)
{
	if (at(p, '+') || at(p, '-'))
		address_move(p, raw, parse_value(p).v);
}

/* "[3]" after an array, which is counted in elements where "+ 12" is in bytes */
static void parse_index(struct parser *p, struct raw *raw)
{
	if (!raw->unit || !take(p, '['))
		return;
	raw->indexed = true;
	address_move(p, raw, parse_value(p).v * raw->unit);
	expect(p, ']');
}

/* Up to the "]". */
static void parse_memory(struct parser *p, struct raw *raw)
{
	uint32_t line = p->token.line;

	if (p->token.kind == TOKEN_NAME) {
		raw_from_name(p, raw);
		parse_offset(p, raw);
	} else {
		raw->kind = RAW_INT;
		raw->op = (struct ptx_operand){ .kind = PTX_IMM, .imm = parse_value(p).v };
	}
	if (raw->kind == RAW_REG && raw->op.cls != PTX_CLASS_W && raw->op.cls != PTX_CLASS_D)
		parse_fail(p, line, "an address is in a register of 32 or 64 bits");
	else if (raw->kind == RAW_NAME && !p->error)
		parse_fail(p, line, "'%.40s' is not declared", raw->name->text);
	else if (raw->kind != RAW_REG && raw->kind != RAW_ADDRESS && raw->kind != RAW_INT)
		parse_fail(p, line, "not an address");
	raw->kind = RAW_MEM;
	raw->op.mem = true;
	expect(p, ']');
	/* "[x].unified" is a promise of no effect. */
	take_dot(p, "unified");
}

static void parse_vector(struct parser *p, struct raw *raw)
{
	struct raw element;

	raw->kind = RAW_VECTOR;
	raw->first = (uint8_t)p->n_elements;
	do {
		element = (struct raw){ 0 };
		if (at(p, '{') || at(p, '['))
			parse_unexpected(p, "an element of a vector");
		parse_operand(p, &element);
		if (element.kind == RAW_VECTOR)
			parse_fail(p, p->token.line, "a vector in a vector");
		if (p->error || !element_room(p, 1))
			return;
		p->elements[p->n_elements++] = element;
		raw->count++;
	} while (take(p, ','));
	expect(p, '}');
}

static void parse_literal(struct parser *p, struct raw *raw)
{
	bool negative = false;

	if (at(p, '-') || at(p, '+')) {
		struct lexer ahead = p->lexer;
		struct token number;

		lexer_next(&ahead, &number);
		if (number.kind == TOKEN_F32 || number.kind == TOKEN_F64) {
			negative = at(p, '-');
			next(p);
		}
	}
	if (p->token.kind == TOKEN_F32 || p->token.kind == TOKEN_F64) {
		bool is_double = p->token.kind == TOKEN_F64;

		raw->kind = is_double ? RAW_F64 : RAW_F32;
		raw->op.imm = p->token.value;
		if (negative)
			raw->op.imm ^= is_double ? 1ull << 63 : 1ull << 31;
		next(p);
	} else {
		raw->kind = RAW_INT;
		raw->op.imm = parse_value(p).v;
	}
	raw->op.kind = PTX_IMM;
}

static bool at_name(const struct parser *p)
{
	return p->token.kind == TOKEN_NAME &&
	       !(p->token.len == 7 && !memcmp(p->token.text, "WARP_SZ", 7));
}

/* "!" is the negation of a predicate, or of a number in a constant expression */
static bool at_negation(const struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token t;

	if (!at(p, '!'))
		return false;
	lexer_next(&ahead, &t);
	return t.kind == TOKEN_NAME;
}

void parse_operand(struct parser *p, struct raw *raw)
{
	if (at_negation(p)) {
		raw->neg = true;
		next(p);
	}
	if (at_name(p)) {
		raw_from_name(p, raw);
		if (raw->kind == RAW_ADDRESS) {
			parse_index(p, raw);
			parse_offset(p, raw);
		}
	} else if (take(p, '{')) {
		parse_vector(p, raw);
	} else if (take(p, '[')) {
		parse_memory(p, raw);
	} else {
		parse_literal(p, raw);
	}
	raw->op.neg = raw->neg;
}

/* "-%r1", of vmad alone */
static bool take_minus(struct parser *p)
{
	struct lexer ahead = p->lexer;
	struct token t;

	if (p->insn.op != PTX_OP_VMAD || !at(p, '-'))
		return false;
	lexer_next(&ahead, &t);
	return t.kind == TOKEN_NAME && take(p, '-');
}

void parse_operands(struct parser *p)
{
	bool pair = false;

	p->n_raws = p->n_elements = 0;
	if (take(p, ';'))
		return;
	do {
		struct raw *raw = &p->raws[p->n_raws];

		if (p->n_raws == MAX_OPERANDS) {
			parse_fail(p, p->token.line, "more than %u operands", MAX_OPERANDS);
			return;
		}
		*raw = (struct raw){ .pair = pair, .minus = take_minus(p) };
		parse_operand(p, raw);
		if (is_video(p->insn.op))
			parse_parts(p, raw);
		p->n_raws++;
		pair = at(p, '|');
	} while (!p->error && (take(p, '|') || take(p, ',')));
	expect(p, ';');
}
