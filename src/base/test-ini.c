/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/ini.h"

static const char example[] = "# the lab\n"
			      "\n"
			      "[alice]\n"
			      "match = user:alice\n"
			      "memory.max=8G\n"
			      "\n"
			      "# bob has a deadline\n"
			      "[bob]\n"
			      "  memory.max = 4G\n";

static const struct {
	const char *name;
	const char *bytes;
	unsigned line;
} refused[] = {
	{ "an entry before any section", "a = b\n", 1 },
	{ "a section that does not end", "[a]\nx = 1\n[b\n", 3 },
	{ "a section without a name", "[ ]\n", 1 },
	{ "a section twice", "[a]\n[b]\n[a]\n", 3 },
	{ "an entry twice", "[a]\nx = 1\n\nx = 2\n", 4 },
	{ "a line that is nothing", "[a]\nmemory.max 4G\n", 2 },
	{ "a value without a name", "[a]\n= 4G\n", 2 },
};

static void test_refusals(void)
{
	struct ini_error error;
	struct ini ini;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		memset(&error, 0, sizeof(error));
		check(ini_parse(refused[i].bytes, strlen(refused[i].bytes), &ini, &error) < 0 &&
			      error.line == refused[i].line && error.reason[0],
		      "ini_parse: refuses %s", refused[i].name);
	}
	check(ini_parse("[a]\nx = \0y\n", 11, &ini, &error) < 0 && error.line == 2,
	      "ini_parse: refuses a NUL byte");
}

static bool prints(const struct ini *ini, const char *expected)
{
	_cleanup_free_ char *s = ini_print(ini);

	if (s && str_eq(s, expected))
		return true;
	printf("printed:\n%s", s ? s : "nothing");
	return false;
}

static void test_edits(void)
{
	_cleanup_(ini_done) struct ini ini = {};
	struct ini_error error;

	if (!check(ini_parse(example, strlen(example), &ini, &error) == 0, "ini_parse: example"))
		return;
	check(prints(&ini, example), "ini_print: as it was read");
	ini_set(&ini, "alice", "memory.max", "9G");
	ini_set(&ini, "alice", "memory.low", "1G");
	check(prints(&ini, "# the lab\n\n[alice]\nmatch = user:alice\nmemory.max = 9G\n"
			   "memory.low = 1G\n\n# bob has a deadline\n[bob]\n  memory.max = 4G\n"),
	      "ini_set: one line changes, one is added to its section");
	ini_unset(&ini, "alice", "memory.low");
	ini_set(&ini, "carol", "memory.max", "1G");
	check(prints(&ini, "# the lab\n\n[alice]\nmatch = user:alice\nmemory.max = 9G\n"
			   "\n# bob has a deadline\n[bob]\n  memory.max = 4G\n\n[carol]\n"
			   "memory.max = 1G\n"),
	      "ini_set: a new section at the end");
	check(ini_remove_section(&ini, "alice") && !ini_remove_section(&ini, "alice"),
	      "ini_remove_section: tells whether there was one");
	check(prints(&ini, "# the lab\n\n# bob has a deadline\n[bob]\n  memory.max = 4G\n\n"
			   "[carol]\nmemory.max = 1G\n"),
	      "ini_remove_section: the next heading's comment stays");
}

static void test_reading(void)
{
	static const char bytes[] = "[ a b ]\r\n x.y = a = b \r\n;no";
	_cleanup_(ini_done) struct ini ini = {};
	struct ini_error error;

	check(ini_parse(bytes, strlen(bytes), &ini, &error) == 0 && ini.n_lines == 3 &&
		      str_eq(ini.lines[0].name, "a b") && str_eq(ini.lines[1].name, "x.y") &&
		      str_eq(ini.lines[1].value, "a = b"),
	      "ini_parse: blanks, CR, '=' in a value, no newline at the end");
}

int main(void)
{
	test_refusals();
	test_reading();
	test_edits();
	return check_result();
}
