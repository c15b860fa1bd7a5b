/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant list: a line per tenant and device that it may use. */
#include "ctl/ctl.h"
#include "ctl/table.h"

#define COMMON_WEIGHT 100

/* A device on which a tenant has neither use nor limits says nothing. */
static bool is_worth_a_line(const json_t *device)
{
	return json_integer_value(json_object_get(device, "memory.current")) > 0 ||
	       json_integer_value(json_object_get(device, "memory.peak")) > 0 ||
	       json_integer_value(json_object_get(device, "memory.low")) > 0 ||
	       json_integer_value(json_object_get(device, "memory.max")) > 0 ||
	       json_number_value(json_object_get(device, "compute.max")) < 100 ||
	       json_integer_value(json_object_get(device, "compute.weight")) != COMMON_WEIGHT;
}

static char *what_waits(const json_t *tenant, const json_t *device)
{
	const json_t *waiting = json_object_get(tenant, "waiting"), *call;
	json_int_t gpu = json_integer_value(json_object_get(device, "gpu"));
	const char *for_what = NULL;
	unsigned n = 0;
	size_t i;

	json_array_foreach(waiting, i, call) {
		if (json_integer_value(json_object_get(call, "gpu")) != gpu)
			continue;
		for_what = json_string_value(json_object_get(call, "for"));
		n++;
	}
	return n ? str_format("%u for %s", n, for_what) : strdup("");
}

/* compute.max where there is one, else a weight that is not everybody's. */
static char *share_of_time(const json_t *device)
{
	double max = json_number_value(json_object_get(device, "compute.max"));
	json_int_t weight = json_integer_value(json_object_get(device, "compute.weight"));

	if (max < 100)
		return str_format("%.4g%%", max);
	return weight != COMMON_WEIGHT ? str_format("weight %lld", (long long)weight) : NULL;
}

static void add_lines(struct table *table, const json_t *tenant)
{
	const json_t *devices = json_object_get(tenant, "devices"), *device;
	bool any = false;
	size_t i;

	json_array_foreach(devices, i, device) {
		if (!is_worth_a_line(device))
			continue;
		any = true;
		table_add(table, cell_text(json_object_get(tenant, "tenant")),
			  cell_text(json_object_get(tenant, "user")),
			  cell_number(json_object_get(device, "gpu")),
			  cell_size(json_object_get(device, "memory.current")),
			  cell_size(json_object_get(device, "memory.low")),
			  cell_size(json_object_get(device, "memory.max")), share_of_time(device),
			  cell_number(json_object_get(device, "refused")),
			  cell_ago(json_object_get(device, "last_active")),
			  what_waits(tenant, device));
	}
	if (!any)
		table_add(table, cell_text(json_object_get(tenant, "tenant")),
			  cell_text(json_object_get(tenant, "user")), NULL, NULL, NULL, NULL, NULL,
			  NULL, NULL, cell_text(json_object_get(tenant, "problem")));
}

int verb_list(const struct ctl *ctl)
{
	_cleanup_(table_done) struct table table = {};
	const char *gpu = ctl_option(ctl, "gpu");
	json_t *reply, *tenant;
	size_t i;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments; to look at one tenant: cotenant show %s",
				 ctl->argv[0]);
	if (ctl_call(ctl, API_TENANTS_LIST, json_pack("{s:s*}", "gpu", gpu), &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	table_begin(&table, "TENANT", "USER", "GPU", "CURRENT", "LOW", "MAX", "COMPUTE", "REFUSED",
		    "ACTIVE", "WAITING", NULL);
	json_array_foreach(json_object_get(reply, "tenants"), i, tenant)
		add_lines(&table, tenant);
	table_print(&table);
	json_decref(reply);
	return 0;
}
