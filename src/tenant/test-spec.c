/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "tenant/spec.h"

static const char lab[] = "# limits of the lab\n"
			  "[alice]\n"
			  "match = user:alice\n"
			  "memory.max = 8192M\n"
			  "# until the paper is done\n"
			  "memory.low = 2G\n"
			  "\n"
			  "[device GPU-1]\n"
			  "memory.reserve = 512M\n";

static const struct {
	const char *name;
	const char *bytes;
	unsigned line;
	const char *word;
} refused[] = {
	{ "a section without match", "[a]\nmemory.max = 1G\n", 1, "match" },
	{ "a limit that does not exist", "[a]\nmatch = user:a\nmemory.mx = 1G\n", 3, "memory.mx" },
	{ "a bad size", "[a]\nmatch = user:a\nmemory.max = 1Q\n", 3, "1Q" },
	{ "a bad selector", "[a]\nmatch = alice\n", 2, "alice" },
	{ "a bad name", "[a b]\nmatch = user:a\n", 1, "a b" },
	{ "low above max", "\n[a]\nmatch = user:a\nmemory.max = 1G\nmemory.low = 2G\n", 2,
	  "above" },
	{ "a device by number", "[device 0]\nmemory.reserve = 1G\n", 1, "UUID" },
	{ "a device with a limit", "[device GPU-1]\nmemory.max = 1G\n", 2, "memory.reserve" },
	{ "a bad owner", "[a]\nmatch = user:a\nowner = alice\n", 3, "alice" },
	{ "a bad job", "[a]\nmatch = user:a\njob = 0\n", 3, "number of a job" },
};

static void test_refusals(void)
{
	struct ini_error error;
	struct specs specs;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		memset(&error, 0, sizeof(error));
		check(specs_parse(refused[i].bytes, strlen(refused[i].bytes), &specs, &error) < 0 &&
			      error.line == refused[i].line &&
			      strstr(error.reason, refused[i].word),
		      "specs_parse: refuses %s (%u: %s)", refused[i].name, error.line,
		      error.reason);
	}
}

static void test_editing(void)
{
	_cleanup_(specs_done) struct specs specs = {};
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_free_ char *text = NULL;
	struct limit_setting max = { .id = LIMIT_MEMORY_MAX,
				     .device = "GPU-1",
				     .value = { .number = 1ULL << 30 } };
	struct ini_error error;

	if (!check(specs_parse(lab, strlen(lab), &specs, &error) == 0 && specs.n_tenants == 1 &&
			   specs.n_devices == 1,
		   "specs_parse: a tenant and a device"))
		return;
	ini_parse(lab, strlen(lab), &ini, &error);
	limits_set(&specs.tenants[0].limits, &max);
	limits_unset(&specs.tenants[0].limits, LIMIT_MEMORY_LOW, "");
	spec_write(&ini, &specs.tenants[0]);
	text = ini_print(&ini);
	check(text && str_eq(text, "# limits of the lab\n[alice]\nmatch = user:alice\n"
				   "memory.max = 8192M\nmemory.max@GPU-1 = 1G\n"
				   "# until the paper is done\n\n[device GPU-1]\n"
				   "memory.reserve = 512M\n"),
	      "spec_write: changes what changed and nothing else");
}

int main(void)
{
	test_refusals();
	test_editing();
	return check_result();
}
