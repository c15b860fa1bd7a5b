/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/lex.h"

/* Longest decimal floating-point literal that is looked at; strtod() wants a NUL. */
#define FLOAT_MAX_CHARS 64

void lexer_init(struct lexer *lexer, const char *text, size_t len)
{
	*lexer = (struct lexer){
		.at = text,
		.end = text + strnlen(text, len),
		.line = 1,
		.line_start = true,
	};
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(int c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static int hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int peek(const struct lexer *lexer, size_t ahead)
{
	return (size_t)(lexer->end - lexer->at) > ahead ? (unsigned char)lexer->at[ahead] : 0;
}

static void skip_line(struct lexer *lexer)
{
	while (lexer->at < lexer->end && *lexer->at != '\n')
		lexer->at++;
}

static void skip_block_comment(struct lexer *lexer)
{
	for (lexer->at += 2; lexer->at < lexer->end; lexer->at++) {
		if (*lexer->at == '\n')
			lexer->line++;
		if (*lexer->at == '*' && peek(lexer, 1) == '/') {
			lexer->at += 2;
			return;
		}
	}
}

/* Lines of "#" are a preprocessor's; lines of "@@" are the DWARF of PTX before 2.0. */
static void skip_blank(struct lexer *lexer)
{
	while (lexer->at < lexer->end) {
		int c = peek(lexer, 0), d = peek(lexer, 1);

		if (c == '\n') {
			lexer->line++;
			lexer->line_start = true;
			lexer->at++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			lexer->at++;
		} else if (c == '/' && d == '/') {
			skip_line(lexer);
		} else if (c == '/' && d == '*') {
			skip_block_comment(lexer);
		} else if (lexer->line_start && (c == '#' || (c == '@' && d == '@'))) {
			skip_line(lexer);
		} else {
			return;
		}
	}
}

static void lex_name(struct lexer *lexer, struct token *t)
{
	t->kind = TOKEN_NAME;
	t->text = lexer->at++;
	while (is_name(peek(lexer, 0)))
		lexer->at++;
	t->len = (size_t)(lexer->at - t->text);
}

static void lex_dot(struct lexer *lexer, struct token *t)
{
	t->kind = TOKEN_DOT;
	t->text = ++lexer->at;
	while (is_name(peek(lexer, 0)) || (peek(lexer, 0) == ':' && peek(lexer, 1) == ':')) {
		if (*lexer->at == ':')
			lexer->at++;
		lexer->at++;
	}
	t->len = (size_t)(lexer->at - t->text);
	if (t->len == 0)
		t->kind = TOKEN_BAD;
}

static void lex_string(struct lexer *lexer, struct token *t)
{
	t->kind = TOKEN_STRING;
	t->text = ++lexer->at;
	while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n') {
		if (*lexer->at == '\\' && lexer->end - lexer->at > 1 && lexer->at[1] != '\n')
			lexer->at++;
		lexer->at++;
	}
	t->len = (size_t)(lexer->at - t->text);
	if (peek(lexer, 0) != '"')
		t->kind = TOKEN_BAD;
	else
		lexer->at++;
}

/* 0f and 8 hexadecimal digits, 0d and 16 of them. */
static void lex_float_bits(struct lexer *lexer, struct token *t, int digits, int kind)
{
	t->kind = kind;
	lexer->at += 2;
	for (int i = 0; i < digits; i++, lexer->at++) {
		int h = hex_value(peek(lexer, 0));

		if (h < 0) {
			t->kind = TOKEN_BAD;
			return;
		}
		t->value = t->value << 4 | (uint64_t)h;
	}
	if (is_name(peek(lexer, 0)))
		t->kind = TOKEN_BAD;
}

static void lex_float(struct lexer *lexer, struct token *t)
{
	size_t len = (size_t)(lexer->end - lexer->at);
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char copy[FLOAT_MAX_CHARS + 1], *end = copy;
	double value = 0;

	if (len > FLOAT_MAX_CHARS)
		len = FLOAT_MAX_CHARS;
	memcpy(copy, lexer->at, len);
	copy[len] = '\0';
	/* The program's own locale may have a decimal comma. */
	if (c_locale) {
		value = strtod_l(copy, &end, c_locale);
		freelocale(c_locale);
	}
	memcpy(&t->value, &value, sizeof(value));
	t->kind = TOKEN_F64;
	lexer->at += end - copy;
	if (end == copy || end == copy + FLOAT_MAX_CHARS || is_name(peek(lexer, 0)))
		t->kind = TOKEN_BAD;
}

static void lex_int(struct lexer *lexer, struct token *t)
{
	unsigned int base = 10;
	int c = peek(lexer, 1) | 0x20, digit;

	if (peek(lexer, 0) == '0' && (c == 'x' || c == 'b')) {
		base = c == 'x' ? 16 : 2;
		lexer->at += 2;
		if (hex_value(peek(lexer, 0)) < 0)
			t->kind = TOKEN_BAD;
	} else if (peek(lexer, 0) == '0') {
		base = 8;
	}

	for (; (digit = hex_value(peek(lexer, 0))) >= 0; lexer->at++) {
		if ((unsigned int)digit >= base ||
		    __builtin_mul_overflow(t->value, base, &t->value) ||
		    __builtin_add_overflow(t->value, (uint64_t)digit, &t->value))
			t->kind = TOKEN_BAD;
	}
	t->is_unsigned = t->value >> 63;
	if ((peek(lexer, 0) | 0x20) == 'u') {
		t->is_unsigned = true;
		lexer->at++;
	}
	if (is_name(peek(lexer, 0)))
		t->kind = TOKEN_BAD;
}

/* What makes digits a decimal floating-point literal: a point, or an exponent. */
static bool is_float(const struct lexer *lexer)
{
	const char *p = lexer->at;

	while (p < lexer->end && is_digit(*p))
		p++;
	return p < lexer->end && (*p == '.' || *p == 'e' || *p == 'E');
}

static void lex_number(struct lexer *lexer, struct token *t)
{
	int c = peek(lexer, 0) == '0' ? peek(lexer, 1) | 0x20 : 0;

	t->kind = TOKEN_INT;
	if (c == 'f')
		lex_float_bits(lexer, t, 8, TOKEN_F32);
	else if (c == 'd')
		lex_float_bits(lexer, t, 16, TOKEN_F64);
	else if (c != 'x' && is_float(lexer))
		lex_float(lexer, t);
	else
		lex_int(lexer, t);
}

static void lex_punctuation(struct lexer *lexer, struct token *t)
{
	static const struct {
		char text[3];
		enum token_kind kind;
	} pairs[] = {
		{ "<<", TOKEN_SHL }, { ">>", TOKEN_SHR }, { "<=", TOKEN_LE },  { ">=", TOKEN_GE },
		{ "==", TOKEN_EQ },  { "!=", TOKEN_NE },  { "&&", TOKEN_AND }, { "||", TOKEN_OR },
	};
	int c = peek(lexer, 0), d = peek(lexer, 1);

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (pairs[i].text[0] == c && pairs[i].text[1] == d) {
			t->kind = pairs[i].kind;
			t->len = 2;
			lexer->at += 2;
			return;
		}
	}
	t->kind = strchr("{}()[],;:|!@+-*/%<>=&^~?", c) ? TOKEN_OF(c) : TOKEN_BAD;
	lexer->at++;
}

void lexer_next(struct lexer *lexer, struct token *ret)
{
	int c;

	skip_blank(lexer);
	*ret = (struct token){
		.kind = TOKEN_END, .line = lexer->line, .text = lexer->at, .len = 1
	};
	if (lexer->at >= lexer->end) {
		ret->len = 0;
		return;
	}
	lexer->line_start = false;
	c = peek(lexer, 0);
	if (is_letter(c) || c == '_' || c == '$' || (c == '%' && is_name(peek(lexer, 1)))) {
		lex_name(lexer, ret);
	} else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)) && peek(lexer, 2) != 'd')) {
		/* ".5", but not ".2d" of textures */
		lex_number(lexer, ret);
		ret->len = (size_t)(lexer->at - ret->text);
	} else if (c == '.') {
		lex_dot(lexer, ret);
	} else if (c == '"') {
		lex_string(lexer, ret);
	} else {
		lex_punctuation(lexer, ret);
	}
}

bool lexer_skip_braces(struct lexer *lexer)
{
	struct token t;
	unsigned int depth = 1;

	do {
		lexer_next(lexer, &t);
		if (t.kind == TOKEN_OF('{'))
			depth++;
		else if (t.kind == TOKEN_OF('}'))
			depth--;
		else if (t.kind == TOKEN_END)
			return false;
	} while (depth > 0);
	return true;
}
