/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is taken, written into an empty one, must read as the same tenants. */
#include "tenant/spec.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct tenant_spec *a, const struct tenant_spec *b)
{
	struct device_limits la, lb;

	assert(str_eq(a->name, b->name) && a->owner == b->owner);
	assert(selector_equal(&a->match, &b->match));
	assert(a->job == b->job);
	assert(!a->freezer == !b->freezer && (!a->freezer || str_eq(a->freezer, b->freezer)));
	assert(a->limits.n_settings == b->limits.n_settings);
	assert(a->limits.n_gpus == b->limits.n_gpus);
	limits_resolve(&a->limits, "GPU-0", 80ULL << 30, &la);
	limits_resolve(&b->limits, "GPU-0", 80ULL << 30, &lb);
	assert(la.memory_max == lb.memory_max && la.memory_low == lb.memory_low);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(specs_done) struct specs specs = {}, again = {};
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_free_ char *text = NULL;
	struct ini_error error;
	size_t i;

	if (specs_parse((const char *)data, size, &specs, &error) < 0)
		return 0;
	for (i = 0; i < specs.n_tenants; i++)
		assert(spec_write(&ini, &specs.tenants[i]) == 0);
	text = ini_print(&ini);
	assert(text && specs_parse(text, strlen(text), &again, &error) == 0);
	assert(again.n_tenants == specs.n_tenants);
	for (i = 0; i < specs.n_tenants; i++)
		check_same(&specs.tenants[i], &again.tenants[i]);
	return 0;
}
