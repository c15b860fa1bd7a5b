/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/arena.h"
#include "softgpu/ptx/names.h"

#define FIRST_BUCKETS 256

bool names_init(struct names *names, struct arena *arena)
{
	*names = (struct names){ .arena = arena, .n_buckets = FIRST_BUCKETS };
	names->buckets = calloc(FIRST_BUCKETS, sizeof(*names->buckets));
	return names->buckets;
}

void names_done(struct names *names)
{
	free(names->buckets);
}

static uint32_t hash_of(const char *text, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 0xff51afd7ed558ccd;
	return (uint32_t)(h >> 32);
}

static bool double_buckets(struct names *names)
{
	uint32_t n = names->n_buckets * 2;
	struct name **buckets = calloc(n, sizeof(*buckets)), *name, *next;

	if (!buckets)
		return false;
	for (uint32_t i = 0; i < names->n_buckets; i++) {
		for (name = names->buckets[i]; name; name = next) {
			next = name->next;
			name->next = buckets[name->hash & (n - 1)];
			buckets[name->hash & (n - 1)] = name;
		}
	}
	free(names->buckets);
	names->buckets = buckets;
	names->n_buckets = n;
	return true;
}

/* "%r12" is the prefix "%r" and 12; "%r012", "%r" and "12" are no names of a range. */
static size_t split_number(const char *text, size_t len, uint32_t *ret_number)
{
	size_t digits = 0;
	uint64_t number = 0;

	while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
		digits++;
	if (digits > 9)
		return 0;
	while (digits > 1 && text[len - digits] == '0')
		digits--;
	if (digits == 0 || digits == len)
		return 0;
	for (size_t i = len - digits; i < len; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	*ret_number = (uint32_t)number;
	return len - digits;
}

static struct name *name_add(struct names *names, const char *text, size_t len, uint32_t hash)
{
	struct name *name = arena_alloc(names->arena, sizeof(*name) + len + 1);

	if (!name)
		return NULL;
	memcpy(name->text, text, len);
	name->len = (uint32_t)len;
	name->hash = hash;
	if (names->n_names >= names->n_buckets && !double_buckets(names))
		return NULL;
	name->next = names->buckets[hash & (names->n_buckets - 1)];
	names->buckets[hash & (names->n_buckets - 1)] = name;
	names->n_names++;
	return name;
}

/* The prefix is a name too, so this calls itself, once per digit at most: 9 times. */
struct name *names_get(struct names *names, const char *text, size_t len)
{
	uint32_t hash = hash_of(text, len), number;
	struct name *name = names->buckets[hash & (names->n_buckets - 1)], *prefix = NULL;
	size_t prefix_len;

	for (; name; name = name->next) {
		if (name->hash == hash && name->len == len && memcmp(name->text, text, len) == 0)
			return name;
	}

	prefix_len = split_number(text, len, &number);
	if (prefix_len) {
		prefix = names_get(names, text, prefix_len);
		if (!prefix)
			return NULL;
	}
	name = name_add(names, text, len, hash);
	if (name && prefix) {
		name->prefix = prefix;
		name->number = number;
	}
	return name;
}

bool names_open(struct names *names)
{
	if (names->depth + 1 >= NAMES_MAX_DEPTH)
		return false;
	names->depth++;
	return true;
}

void names_close(struct names *names)
{
	struct binding *b, *next;

	for (b = names->scopes[names->depth]; b; b = next) {
		next = b->next;
		b->name->binding = b->hidden;
		b->next = names->unused;
		names->unused = b;
	}
	names->scopes[names->depth] = NULL;
	if (names->depth)
		names->depth--;
}

struct binding *names_bind(struct names *names, struct name *name, uint32_t depth, uint32_t line)
{
	struct binding *b = names->unused;

	if (b)
		names->unused = b->next;
	else
		b = arena_alloc(names->arena, sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct binding){
		.depth = depth,
		.line = line,
		.name = name,
		.hidden = name->binding,
		.next = names->scopes[depth],
	};
	name->binding = b;
	names->scopes[depth] = b;
	return b;
}

struct binding *name_range(const struct name *name)
{
	struct binding *b = name->prefix ? name->prefix->binding : NULL;

	return b && b->kind == BIND_RANGE && name->number < b->count ? b : NULL;
}
