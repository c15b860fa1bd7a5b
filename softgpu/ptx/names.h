/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a name means at a place in the text.
 *
 * A name is looked up in one table, once; it then leads straight to its binding in the innermost
 * open scope. `.reg .b32 %r<1000>;` binds the prefix "%r" alone: a register comes into being when
 * it is first mentioned, in the scope of its range.
 */
#ifndef SOFTGPU_PTX_NAMES_H
#define SOFTGPU_PTX_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* Scopes that can be open at once. */
#define NAMES_MAX_DEPTH 256

enum binding_kind {
	BIND_REG,     /* [cls] and [index], or [vec] registers from there on; [type] of each */
	BIND_RANGE,   /* [count] registers of [type], [vec] elements each */
	BIND_SYMBOL,  /* [index] in ptx_module.symbols */
	BIND_FRAME,   /* [offset] in the frame, [size] bytes, [space] local or param */
	BIND_PARAM,   /* [offset] in the kernel's parameter buffer, [size] bytes */
	BIND_LABEL,   /* [index] of an instruction */
	BIND_PROTO,   /* [index] in ptx_module.protos */
	BIND_TABLE,   /* [index] in ptx_function.tables */
	BIND_TARGETS, /* a list of .calltargets */
};

struct binding {
	uint8_t kind;
	uint8_t type;
	uint8_t cls;
	uint8_t vec;
	uint8_t space;
	uint32_t index;
	uint32_t offset;
	uint64_t size;
	uint32_t count;
	uint32_t depth;
	uint32_t line;
	struct name *name;
	struct binding *hidden; /* of the same name, in an outer scope */
	struct binding *next;	/* in the same scope */
};

struct name {
	struct name *next; /* in its bucket */
	uint32_t hash;
	uint32_t len;
	struct binding *binding;
	struct name *prefix; /* "%r" of "%r12", or NULL */
	uint32_t number;     /* 12 */
	char text[];
};

struct names {
	struct arena *arena;
	struct name **buckets;
	uint32_t n_buckets, n_names;
	struct binding *scopes[NAMES_MAX_DEPTH];
	uint32_t depth;
	struct binding *unused;
};

bool names_init(struct names *names, struct arena *arena);
void names_done(struct names *names);

/* names_get() - the name of that text; NULL where there is no memory */
struct name *names_get(struct names *names, const char *text, size_t len);

/* names_open() and names_close() - a scope; false: too many are open */
bool names_open(struct names *names);
void names_close(struct names *names);

/**
 * names_bind() - give a name a meaning
 * @depth:	scope, at most the innermost; no inner one may have the name
 *
 * Return: the binding, of which only name, depth and line are set; NULL where there is no memory.
 * Whether the name is taken in that scope is for the caller to ask.
 */
struct binding *names_bind(struct names *names, struct name *name, uint32_t depth, uint32_t line);

/* name_range() - the range of registers that the name belongs to in the innermost scope, or NULL */
struct binding *name_range(const struct name *name);

#endif
