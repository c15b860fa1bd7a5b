/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant expressions: C's operators on 64-bit integers, with C's priorities. An operation on an
 * unsigned operand is unsigned.
 */
#include "softgpu/ptx/parse.h"

struct operation {
	int token;
	int priority;
};

static const struct operation operations[] = {
	{ TOKEN_OR, 1 },       { TOKEN_AND, 2 },      { TOKEN_OF('|'), 3 }, { TOKEN_OF('^'), 4 },
	{ TOKEN_OF('&'), 5 },  { TOKEN_EQ, 6 },	      { TOKEN_NE, 6 },	    { TOKEN_OF('<'), 7 },
	{ TOKEN_OF('>'), 7 },  { TOKEN_LE, 7 },	      { TOKEN_GE, 7 },	    { TOKEN_SHL, 8 },
	{ TOKEN_SHR, 8 },      { TOKEN_OF('+'), 9 },  { TOKEN_OF('-'), 9 }, { TOKEN_OF('*'), 10 },
	{ TOKEN_OF('/'), 10 }, { TOKEN_OF('%'), 10 },
};

static int priority_of(int token)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (operations[i].token == token)
			return operations[i].priority;
	}
	return 0;
}

static uint64_t divide(struct parser *p, uint32_t line, struct value a, struct value b, bool rest)
{
	if (b.v == 0) {
		parse_fail(p, line, "division by zero");
		return 0;
	}
	if (a.is_unsigned || b.is_unsigned)
		return rest ? a.v % b.v : a.v / b.v;
	/* What overflows in C: the smallest number by -1. */
	if (b.v == UINT64_MAX)
		return rest ? 0 : -a.v;
	return rest ? (uint64_t)((int64_t)a.v % (int64_t)b.v)
		    : (uint64_t)((int64_t)a.v / (int64_t)b.v);
}

static uint64_t shift(struct value a, uint64_t by, bool left)
{
	if (left)
		return by > 63 ? 0 : a.v << by;
	if (a.is_unsigned)
		return by > 63 ? 0 : a.v >> by;
	return (uint64_t)((int64_t)a.v >> (by > 63 ? 63 : by));
}

static bool less(struct value a, struct value b)
{
	return a.is_unsigned || b.is_unsigned ? a.v < b.v : (int64_t)a.v < (int64_t)b.v;
}

static struct value operate(struct parser *p, uint32_t line, int op, struct value a, struct value b)
{
	struct value r = { .is_unsigned = a.is_unsigned || b.is_unsigned };

	switch (op) {
	case TOKEN_OR:
		return (struct value){ .v = a.v || b.v };
	case TOKEN_AND:
		return (struct value){ .v = a.v && b.v };
	case TOKEN_EQ:
		return (struct value){ .v = a.v == b.v };
	case TOKEN_NE:
		return (struct value){ .v = a.v != b.v };
	case TOKEN_OF('<'):
		return (struct value){ .v = less(a, b) };
	case TOKEN_OF('>'):
		return (struct value){ .v = less(b, a) };
	case TOKEN_LE:
		return (struct value){ .v = !less(b, a) };
	case TOKEN_GE:
		return (struct value){ .v = !less(a, b) };
	case TOKEN_OF('|'):
		r.v = a.v | b.v;
		break;
	case TOKEN_OF('^'):
		r.v = a.v ^ b.v;
		break;
	case TOKEN_OF('&'):
		r.v = a.v & b.v;
		break;
	case TOKEN_OF('+'):
		r.v = a.v + b.v;
		break;
	case TOKEN_OF('-'):
		r.v = a.v - b.v;
		break;
	case TOKEN_OF('*'):
		r.v = a.v * b.v;
		break;
	case TOKEN_OF('/'):
		r.v = divide(p, line, a, b, /* rest= */ false);
		break;
	case TOKEN_OF('%'):
		r.v = divide(p, line, a, b, /* rest= */ true);
		break;
	default:
		r.v = shift(a, b.v, op == TOKEN_SHL);
		r.is_unsigned = a.is_unsigned;
	}
	return r;
}

static struct value parse_choice(struct parser *p, unsigned int depth);
static struct value parse_cast(struct parser *p, unsigned int depth);

static struct value parse_unary(struct parser *p, unsigned int depth)
{
	struct value r = { 0 };

	if (depth > MAX_EXPR_DEPTH) {
		parse_fail(p, p->token.line, "the expression is nested too deeply");
	} else if (p->token.kind == TOKEN_INT) {
		r = (struct value){ p->token.value, p->token.is_unsigned };
		next(p);
	} else if (take(p, '-')) {
		r = parse_unary(p, depth + 1);
		r.v = -r.v;
	} else if (take(p, '+')) {
		r = parse_unary(p, depth + 1);
	} else if (take(p, '~')) {
		r = parse_unary(p, depth + 1);
		r.v = ~r.v;
	} else if (take(p, '!')) {
		r = (struct value){ .v = !parse_unary(p, depth + 1).v };
	} else if (take(p, '(')) {
		if (p->token.kind == TOKEN_DOT)
			return parse_cast(p, depth);
		r = parse_choice(p, depth + 1);
		expect(p, ')');
	} else if (p->token.kind == TOKEN_NAME && p->token.len == 7 &&
		   !__builtin_memcmp(p->token.text, "WARP_SZ", 7)) {
		r.v = 32;
		next(p);
	} else {
		parse_unexpected(p, "a constant");
	}
	return r;
}

/* "(.s64) x" or "(.u64) x", after the "(" */
static struct value parse_cast(struct parser *p, unsigned int depth)
{
	bool is_unsigned = at_dot(p, "u64");
	struct value r;

	if (!is_unsigned && !at_dot(p, "s64"))
		parse_unexpected(p, "'.s64' or '.u64'");
	next(p);
	expect(p, ')');
	r = parse_unary(p, depth + 1);
	r.is_unsigned = is_unsigned;
	return r;
}

static struct value parse_binary(struct parser *p, int above, unsigned int depth)
{
	struct value a = parse_unary(p, depth + 1);
	int priority;

	while (!p->error && (priority = priority_of(p->token.kind)) > above) {
		struct token op = p->token;

		next(p);
		a = operate(p, op.line, op.kind, a, parse_binary(p, priority, depth + 1));
	}
	return a;
}

static struct value parse_choice(struct parser *p, unsigned int depth)
{
	struct value c = parse_binary(p, 0, depth), a, b;

	if (!take(p, '?'))
		return c;
	a = parse_choice(p, depth + 1);
	expect(p, ':');
	b = parse_choice(p, depth + 1);
	return c.v ? a : b;
}

struct value parse_value(struct parser *p)
{
	return parse_choice(p, 0);
}
