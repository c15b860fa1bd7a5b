/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

char *str_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

char *str_format(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

bool str_copy(char *dst, size_t cap, const char *src)
{
	size_t n = strlen(src);
	bool fits = n < cap;

	if (!fits)
		n = cap - 1;
	memcpy(dst, src, n);
	dst[n] = '\0';
	return fits;
}

/* The length of the character in UTF-8 at @s; 0 where there is none, or none that is shown. */
static size_t printable_length(const unsigned char *s)
{
	static const uint32_t least[] = { 0, 0, 0xa0, 0x800, 0x10000 };
	uint32_t value;
	size_t n, i;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc0 || s[0] > 0xf4)
		return 0;
	value = s[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (s[i] & 0x3f);
	}
	if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	return n;
}

char *str_make_printable(char *s)
{
	char *p = s;
	size_t n;

	while (*p) {
		n = printable_length((unsigned char *)p);
		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
	return s;
}

bool str_is_name(const char *s)
{
	size_t i;

	if (*s == '.' || *s == '-')
		return false;
	for (i = 0; s[i]; i++) {
		if (i == 63)
			return false;
		if (!isascii((unsigned char)s[i]) ||
		    (!isalnum((unsigned char)s[i]) && !strchr("-_.@:", s[i])))
			return false;
	}
	return i > 0;
}

int str_parse_u64(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

const char *str_take_u64(const char *s, const char *end, uint64_t *ret)
{
	char digits[21]; /* 2^64 - 1 has 20 */
	size_t len = s ? strspn(s, "0123456789") : 0;
	const char *rest;

	if (len == 0 || len >= sizeof(digits))
		return NULL;
	memcpy(digits, s, len);
	digits[len] = '\0';
	rest = str_after(s + len, end);
	return rest && str_parse_u64(digits, ret) == 0 ? rest : NULL;
}

static bool text_reserve(struct text *t, size_t more)
{
	size_t cap;
	char *p;

	if (t->failed)
		return false;
	if (t->len + more + 1 <= t->cap)
		return true;
	cap = MAX(2 * t->cap, t->len + more + 64);
	p = realloc(t->data, cap);
	if (!p) {
		t->failed = true;
		return false;
	}
	t->data = p;
	t->cap = cap;
	return true;
}

void text_addn(struct text *t, const char *s, size_t n)
{
	if (!text_reserve(t, n))
		return;
	memcpy(t->data + t->len, s, n);
	t->len += n;
	t->data[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_addn(t, s, strlen(s));
}

void text_addf(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !text_reserve(t, n))
		return;
	va_start(ap, fmt);
	t->len += vsnprintf(t->data + t->len, n + 1, fmt, ap);
	va_end(ap);
}

char *text_take(struct text *t)
{
	char *s = NULL;

	text_addn(t, "", 0);
	if (!t->failed)
		s = TAKE_PTR(t->data);
	text_done(t);
	return s;
}

void text_done(struct text *t)
{
	free(t->data);
	memset(t, 0, sizeof(*t));
}
