/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"

#include <errno.h>

static void test_trim(void)
{
	char both[] = " \t a b \n", none[] = "", blank[] = "   ";

	check(str_eq(str_trim(both), "a b"), "str_trim: both ends");
	check(str_eq(str_trim(none), ""), "str_trim: nothing");
	check(str_eq(str_trim(blank), ""), "str_trim: blanks only");
}

static void test_names(void)
{
	char longest[65];

	memset(longest, 'a', 64);
	longest[64] = '\0';
	check(str_is_name("alice-2.x@node:1"), "str_is_name: every kind of character");
	check(!str_is_name(""), "str_is_name: empty");
	check(!str_is_name(".."), "str_is_name: no way out of a folder");
	check(!str_is_name("-x"), "str_is_name: no option");
	check(!str_is_name("a/b") && !str_is_name("a b") && !str_is_name("a]") &&
		      !str_is_name("\xc3\xa4"),
	      "str_is_name: slashes, blanks, brackets, other bytes");
	check(!str_is_name(longest), "str_is_name: 64 characters");
	longest[63] = '\0';
	check(str_is_name(longest), "str_is_name: 63 characters");
}

static void test_numbers(void)
{
	uint64_t v = 7;

	check(str_parse_u64("18446744073709551615", &v) == 0 && v == UINT64_MAX,
	      "str_parse_u64: the largest");
	check(str_parse_u64("18446744073709551616", &v) == -ERANGE, "str_parse_u64: one more");
	check(str_parse_u64("", &v) == -EINVAL && str_parse_u64("-1", &v) == -EINVAL &&
		      str_parse_u64(" 1", &v) == -EINVAL && str_parse_u64("1x", &v) == -EINVAL,
	      "str_parse_u64: nothing but digits");
}

static void test_taking(void)
{
	const char *rest;
	uint64_t v = 7;

	rest = str_take_u64("4711 8", " ", &v);
	check(rest && str_eq(rest, "8") && v == 4711, "str_take_u64: what is behind its end");
	rest = str_take_u64(rest, "", &v);
	check(rest && !*rest && v == 8, "str_take_u64: to the end of the string");
	check(!str_take_u64("9:", " ", &v) && !str_take_u64("9", " ", &v) && v == 8,
	      "str_take_u64: nothing is written where something else follows");
	check(!str_take_u64("", "", &v) && !str_take_u64("-1", "", &v) &&
		      !str_take_u64(NULL, "", &v),
	      "str_take_u64: digits come first");
	check(!str_take_u64("18446744073709551616 ", " ", &v) &&
		      !str_take_u64("000000000000000000001 ", " ", &v),
	      "str_take_u64: more than fits, and more digits than that has");
}

static void test_text(void)
{
	struct text t = {};
	char *s;
	int i;

	for (i = 0; i < 100; i++)
		text_addf(&t, "%d,", i);
	text_add(&t, "end");
	s = text_take(&t);
	check(s && strlen(s) == 293 && str_eq(s + 290, "end"), "text: grows");
	check(!t.data && t.len == 0, "text_take: leaves nothing behind");
	free(s);
	s = text_take(&t);
	check(s && str_eq(s, ""), "text_take: nothing added is an empty text");
	free(s);
}

static void test_copy(void)
{
	char buf[4];

	check(str_copy(buf, sizeof(buf), "abc") && str_eq(buf, "abc"), "str_copy: fits");
	check(!str_copy(buf, sizeof(buf), "abcd") && str_eq(buf, "abc"), "str_copy: is cut");
	check(str_eq(str_after("user:alice", "user:"), "alice") && !str_after("use", "user:"),
	      "str_after: the rest, or nothing");
}

static const struct {
	const char *name;
	const char *shown;
} foreign[] = {
	{ "", "" },
	{ "python3 (deleted)", "python3 (deleted)" },
	{ "a\nb\x1b[31mc\x7f", "a?b?[31mc?" },
	{ "\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac" },
	{ "\xe6\x97\xa5\xe6\x9c", "\xe6\x97\xa5??" },
	{ "\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7" },
	{ "\xff\xfe", "??" },
	{ "\xc0\xaf", "??" },
	{ "\xc2\x9b[31m", "??[31m" },
	{ "\xe0\x80\xaf", "???" },
	{ "\xed\xa0\x80", "???" },
	{ "\xf4\x90\x80\x80", "????" },
	{ "\xc3", "?" },
};

static void test_printable(void)
{
	char text[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(foreign); i++) {
		str_copy(text, sizeof(text), foreign[i].name);
		check(str_eq(str_make_printable(text), foreign[i].shown),
		      "str_make_printable: foreign name %zu is '%s'", i, text);
	}
}

int main(void)
{
	test_printable();
	test_trim();
	test_names();
	test_numbers();
	test_taking();
	test_text();
	test_copy();
	return check_result();
}
