/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/slurm/gres.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>

/* A whole GPU, a part of one, and the part that NVIDIA's MPS hands out. */
static const char *const device_names[] = { "gpu", "shard", "mps" };

bool gres_is_device(const struct gres *gres)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(device_names); i++) {
		if (str_eq(gres->name, device_names[i]))
			return true;
	}
	return false;
}

/* Up to the comma that ends an item: one in "(IDX:0,2)" does not. */
static size_t item_length(const char *s)
{
	const char *p;
	int depth = 0;

	for (p = s; *p && (depth > 0 || *p != ','); p++) {
		depth += *p == '(';
		depth -= *p == ')' && depth > 0;
	}
	return p - s;
}

/* Copies up to a colon; returns what is behind it, or NULL at the end. */
static char *take_word(char *from, char word[GRES_NAME], bool *fits)
{
	size_t len = strcspn(from, ":");

	*fits = len < GRES_NAME;
	if (*fits) {
		memcpy(word, from, len);
		word[len] = '\0';
	}
	return from[len] ? from + len + 1 : NULL;
}

/* "4096", or "4K": Slurm's units are powers of 1024. */
static int parse_count(const char *text, uint64_t *ret)
{
	static const char units[] = "kmgtp";
	const char *rest, *unit;
	uint64_t n;
	int shift = 0;

	rest = str_take_u64(text, "", &n);
	if (!rest)
		return -EINVAL;
	if (*rest) {
		unit = strchr(units, *rest | 0x20);
		if (!unit || rest[1])
			return -EINVAL;
		shift = 10 * (unit - units + 1);
	}
	if (n > UINT64_MAX >> shift)
		return -EINVAL;
	*ret = n << shift;
	return 0;
}

static bool is_count(const char *text)
{
	return *text >= '0' && *text <= '9';
}

/* NAME[:TYPE][:COUNT] */
static int parse_item(char *item, struct gres *ret)
{
	char *rest;
	bool fits;

	item[strcspn(item, "(")] = '\0';
	rest = take_word(item, ret->name, &fits);
	if (!fits || !*ret->name)
		return -EINVAL;
	ret->count = 1;
	if (rest && !is_count(rest)) {
		rest = take_word(rest, ret->type, &fits);
		if (!fits || !*ret->type)
			return -EINVAL;
	}
	return rest ? parse_count(rest, &ret->count) : 0;
}

int gres_next(const char **list, struct gres *ret)
{
	_cleanup_free_ char *copy = NULL;
	struct gres gres = {};
	const char *s = *list, *rest;
	int r;

	if (!*s)
		return 0;
	gres.text = s;
	gres.len = item_length(s);
	copy = strndup(s, gres.len);
	if (!copy)
		return -ENOMEM;
	/* Releases differ in what they write before the name. */
	rest = str_after(copy, "gres:");
	if (!rest)
		rest = str_after(copy, "gres/");
	r = parse_item((char *)(rest ? rest : copy), &gres);
	if (r < 0)
		return r;
	*list = s + gres.len + (s[gres.len] == ',');
	*ret = gres;
	return 1;
}

/* Where a word stands in a list, from 1 on; 0 where it does not. */
static unsigned place_of(const char *list, const char *word)
{
	size_t len;
	unsigned n;

	for (n = 1; *list; n++, list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(word) && strncmp(list, word, len) == 0)
			return n;
	}
	return 0;
}

bool gres_types_are_told(const char *types)
{
	unsigned mps = place_of(types, "mps");

	return !mps || (place_of(types, "gpu") && place_of(types, "gpu") < mps &&
			mps < place_of(types, "shard"));
}

void gres_add_shards(struct text *list, const char *type, uint64_t n)
{
	text_addf(list, "%s" GRES_PREFIX "shard:%s%s%" PRIu64, list->len ? "," : "", type,
		  *type ? ":" : "", n);
}

char *gres_shards(const char *type, uint64_t n)
{
	struct text t = {};

	gres_add_shards(&t, type, n);
	return text_take(&t);
}
