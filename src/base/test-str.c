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

int main(void)
{
	test_trim();
	test_names();
	test_numbers();
	test_text();
	test_copy();
	return check_result();
}
