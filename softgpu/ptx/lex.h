/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of PTX text.
 *
 * A word after a dot is one token (".global", ".L2::128B"), whether it is a directive, a modifier
 * or the element of a vector. Numbers are values already. After an error there is only the end.
 */
#ifndef SOFTGPU_PTX_LEX_H
#define SOFTGPU_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,   /* add, %r1, $L__BB0_2, _ */
	TOKEN_DOT,    /* .global; text and len are without the dot */
	TOKEN_INT,    /* value */
	TOKEN_F32,    /* 0f3F800000: value has the bits */
	TOKEN_F64,    /* 1.0, 0d...: value has the bits */
	TOKEN_STRING, /* text and len are without the quotes */
	TOKEN_SHL,    /* << */
	TOKEN_SHR,    /* >> */
	TOKEN_LE,
	TOKEN_GE,
	TOKEN_EQ,
	TOKEN_NE,
	TOKEN_AND,
	TOKEN_OR,   /* of constant expressions */
	TOKEN_BAD,  /* no token of PTX begins so */
	TOKEN_CHAR, /* + this: the character itself */
};

#define TOKEN_OF(c) ((enum token_kind)(TOKEN_CHAR + (c)))

struct token {
	int kind;
	uint32_t line;
	bool is_unsigned; /* an integer that ends in U, or has bit 63 set */
	const char *text;
	size_t len;
	uint64_t value;
};

struct lexer {
	const char *at, *end;
	uint32_t line;
	bool line_start;
};

void lexer_init(struct lexer *lexer, const char *text, size_t len);
void lexer_next(struct lexer *lexer, struct token *ret);

/* lexer_skip_braces() - go on after the "}" that closes an open "{"; false: there is none */
bool lexer_skip_braces(struct lexer *lexer);

#endif
