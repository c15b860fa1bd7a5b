/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/contact-line.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

static void test_whole(void)
{
	struct contact_line said;

	if (!check(contact_line_parse("4711 300000 head:6817,fe80::1:6818 3 7", &said) == 0,
		   "contact line: is read"))
		return;
	check(said.asked_ms == 4711 && said.timeout_ms == 300000 &&
		      said.controllers_len == strlen("head:6817,fe80::1:6818") &&
		      str_after(said.controllers, "head:6817,fe80::1:6818 ") &&
		      str_eq(said.kept, "3 7"),
	      "contact line: what it says");
	check(contact_line_parse("1 0 -", &said) == 0 && said.timeout_ms == 0 && !*said.kept,
	      "contact line: without controllers and jobs");
}

static void test_refused(void)
{
	static const char *const lines[] = {
		"",
		" ",
		"1",
		"1 2",
		"1 2 ",
		"1 2  3",
		"-1 2 head:1",
		"1 +2 head:1",
		"1 2 head:1 3 seven",
		"1 2 head:1 -3",
		"1 2 he\tad:1",
		"1 2 head:\xc3\xa4",
		"1 65535001 head:1",
		"18446744073709551616 2 head:1",
		"000000000000000000001 2 head:1",
	};
	struct contact_line said;
	char *line;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		check(contact_line_parse(lines[i], &said) == -EINVAL, "contact line: '%s' is none",
		      lines[i]);
	line = str_format("1 2 head:1 %0*d", CONTACT_LINE_SIZE, 3);
	check(contact_line_parse(line, &said) == -EINVAL, "contact line: nor is one without end");
	free(line);
}

int main(void)
{
	test_whole();
	test_refused();
	return check_result();
}
