/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings: comparing, trimming, building.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/base.h"

#include <stdbool.h>
#include <string.h>

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/**
 * str_after() - the rest of a string behind a prefix
 *
 * Return: the first character behind @prefix, or NULL if @s does not begin with it.
 */
static inline const char *str_after(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/**
 * str_trim() - cut white space off both ends, in place
 *
 * Return: the first character that is left, inside @s.
 */
char *str_trim(char *s);

/**
 * str_format() - printf into fresh memory
 *
 * Return: the text, which the caller frees; NULL when there is no memory.
 */
char *str_format(const char *fmt, ...) PRINTF(1, 2);

/**
 * str_copy() - copy into a fixed array, cut to fit, always terminated
 *
 * Return: whether all of it fitted.
 */
bool str_copy(char *dst, size_t cap, const char *src);

/**
 * str_make_printable() - of what others have named, what a terminal and JSON can take
 *
 * In place: a control character, and each byte that is of no character in UTF-8, becomes '?'.
 *
 * Return: @s
 */
char *str_make_printable(char *s);

/**
 * str_is_name() - may this be a tenant's name?
 *
 * Names stand in section headings, file names, metric labels and cgroup names:
 * 1 to 63 letters, digits, and "-_.@:", not beginning with a dot or a dash.
 */
bool str_is_name(const char *s);

/**
 * str_parse_u64() - a plain decimal number, nothing before or behind it
 *
 * Return: 0, -EINVAL, or -ERANGE.
 */
int str_parse_u64(const char *s, uint64_t *ret);

/**
 * str_take_u64() - the decimal number that a string begins with
 * @s:	may be NULL, so that one call takes what another has left
 * @end:	what has to stand behind the digits; "" for anything
 *
 * Return: the first character behind @end, or NULL if @s does not begin so, or the number is too large.
 */
const char *str_take_u64(const char *s, const char *end, uint64_t *ret);

/**
 * struct text - a string that grows
 * @data:	NULL until something has been added; memory of the text
 * @failed:	an addition found no memory; what is there is then incomplete
 *
 * Additions after a failure do nothing, so one check at the end is enough.
 */
struct text {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

/**
 * text_add() - add a string; text_addn() @n bytes of one, text_addf() what printf would write
 */
void text_add(struct text *t, const char *s);
void text_addn(struct text *t, const char *s, size_t n);
void text_addf(struct text *t, const char *fmt, ...) PRINTF(2, 3);

/**
 * text_take() - end building
 *
 * Return: the text ("" if nothing was added), which the caller frees; NULL if memory ran out.
 */
char *text_take(struct text *t);

/**
 * text_done() - drop what was built
 */
void text_done(struct text *t);

#endif
