/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "tenant/limit.h"

#include <errno.h>

#define GIB (1ULL << 30)

static const struct {
	const char *key;
	const char *value;
	bool good;
} cases[] = {
	{ "memory.max", "4G", true },	       { "memory.max", "50%", true },
	{ "memory.max", "max", true },	       { "memory.max@GPU-1", "4G", true },
	{ "memory.max", "150%", false },       { "memory.max", "much", false },
	{ "memory.max@0", "4G", false },       { "memory.max@", "4G", false },
	{ "memory.maximum", "4G", false },     { "memory", "4G", false },
	{ "memory.wait", "30s", true },	       { "memory.wait", "max", true },
	{ "memory.wait@GPU-1", "30s", false }, { "compute.max", "30", true },
	{ "compute.max", "30%", true },	       { "compute.max", "101", false },
	{ "compute.weight", "100", true },     { "compute.weight", "0", false },
	{ "compute.weight", "10001", false },  { "on-failure", "allow", true },
	{ "on-failure", "ask", false },
};

static bool set(struct limits *l, const char *key, const char *value)
{
	struct limit_setting s = {};
	char reason[LIMIT_REASON_SIZE];

	return limit_key_parse(key, &s.id, s.device, reason) == 0 &&
	       limit_value_parse(s.id, value, &s.value, reason) == 0 && limits_set(l, &s) == 0;
}

static void test_parsing(void)
{
	_cleanup_(limits_done) struct limits l = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		check(set(&l, cases[i].key, cases[i].value) == cases[i].good, "limits: %s = %s %s",
		      cases[i].key, cases[i].value, cases[i].good ? "is taken" : "is refused");
}

static void test_resolving(void)
{
	_cleanup_(limits_done) struct limits l = {};
	char reason[LIMIT_REASON_SIZE];
	struct device_limits d;

	limits_resolve(&l, "GPU-1", 80 * GIB, &d);
	check(d.memory_max == QUANTITY_MAX && d.memory_low == 0 && d.wait_max_ms == 0 &&
		      d.wait_low_ms == 30000 && d.compute_weight == 100 &&
		      d.compute_max_permille == 1000 && d.on_failure == ON_FAILURE_KILL,
	      "limits_resolve: nothing set");
	set(&l, "memory.max", "50%");
	set(&l, "memory.max@GPU-2", "4G");
	set(&l, "memory.wait", "5s");
	limits_resolve(&l, "GPU-1", 80 * GIB, &d);
	check(d.memory_max == 40 * GIB && d.wait_max_ms == 5000 && d.wait_low_ms == 5000,
	      "limits_resolve: half of a device; one wait for both");
	limits_resolve(&l, "GPU-2", 80 * GIB, &d);
	check(d.memory_max == 4 * GIB, "limits_resolve: a device's own value wins");
	check(limits_set_gpus(&l, "GPU-2, GPU-3", reason) == 0 && l.n_gpus == 2,
	      "limits_set_gpus: commas and blanks");
	limits_resolve(&l, "GPU-1", 80 * GIB, &d);
	check(d.memory_max == 0, "limits_resolve: a device that is not named has memory.max 0");
	check(limits_set_gpus(&l, "0", reason) == -EINVAL && l.n_gpus == 2,
	      "limits_set_gpus: an ordinal is refused, the old list stays");
	limits_unset(&l, LIMIT_MEMORY_MAX, "GPU-2");
	limits_resolve(&l, "GPU-2", 80 * GIB, &d);
	check(d.memory_max == 40 * GIB, "limits_unset: the general value holds again");
}

static void test_checking(void)
{
	_cleanup_(limits_done) struct limits l = {};
	char reason[LIMIT_REASON_SIZE] = "";

	set(&l, "memory.max", "4G");
	set(&l, "memory.low", "4G");
	check(limits_check(&l, reason) == 0, "limits_check: low as large as max");
	set(&l, "memory.max@GPU-1", "2G");
	check(limits_check(&l, reason) == -EINVAL && strstr(reason, "memory.low (4G)"),
	      "limits_check: low above max on one device");
	set(&l, "memory.low", "10%");
	check(limits_check(&l, reason) == 0, "limits_check: parts and bytes do not compare");
}

int main(void)
{
	test_parsing();
	test_resolving();
	test_checking();
	return check_result();
}
