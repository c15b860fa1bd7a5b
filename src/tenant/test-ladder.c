/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/ladder.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

static void test_text(void)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{ "warn", true },
		{ "suspend", true },
		{ "evict", true },
		{ "kill", true },
		{ "warn-kill", true },
		{ "suspend-evict", true },
		{ "kill-warn", false },
		{ "evict-", false },
		{ "-evict", false },
		{ "", false },
		{ "warn-suspend-kill", false },
		{ "Warn", false },
		{ "kil", false },
		{ "killed", false },
	};
	char buf[LADDER_TEXT];
	struct ladder ladder;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool good = ladder_parse(cases[i].text, &ladder) == 0;

		check(good == cases[i].good, "ladder_parse: '%s'", cases[i].text);
		if (good)
			check(str_eq(ladder_print(ladder, buf), cases[i].text),
			      "ladder_print: '%s'", cases[i].text);
	}
}

static void test_steps(void)
{
	struct ladder kill = { LADDER_KILL, LADDER_KILL }, warn = { LADDER_WARN, LADDER_WARN };
	struct ladder all = { LADDER_WARN, LADDER_KILL };

	check(ladder_next(kill, LADDER_WARN) == LADDER_KILL, "ladder_next: to the first step");
	check(ladder_next(warn, LADDER_WARN) == N_LADDER_STEPS, "ladder_next: a warning alone");
	check(ladder_next(all, LADDER_WARN) == LADDER_SUSPEND, "ladder_next: one by one");
	check(ladder_next(all, LADDER_KILL) == N_LADDER_STEPS, "ladder_next: the end");
}

int main(void)
{
	test_text();
	test_steps();
	return check_result();
}
