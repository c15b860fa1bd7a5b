/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant show: all about one tenant. */
#include "ctl/ctl.h"
#include "ctl/table.h"

static void print_field(const json_t *tenant, const char *field, const char *label)
{
	const char *s = json_string_value(json_object_get(tenant, field));

	if (s)
		printf("%-10s %s\n", label, s);
}

static void print_limits(const json_t *limits, const char *label)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)limits, key, value)
		printf("%-10s %s = %s\n", label, key, json_string_value(value));
}

static void print_devices(const json_t *devices)
{
	_cleanup_(table_done) struct table table = {};
	const json_t *d;
	size_t i;

	table_begin(&table, "GPU", "CURRENT", "PEAK", "ALLOCATED", "OVERHEAD", "LOW", "MAX",
		    "REFUSED", "HELD", "UUID", NULL);
	json_array_foreach(devices, i, d)
		table_add(&table, cell_number(json_object_get(d, "gpu")),
			  cell_size(json_object_get(d, "memory.current")),
			  cell_size(json_object_get(d, "memory.peak")),
			  cell_size(json_object_get(d, "memory.allocated")),
			  cell_size(json_object_get(d, "memory.overhead")),
			  cell_size(json_object_get(d, "memory.low")),
			  cell_size(json_object_get(d, "memory.max")),
			  cell_number(json_object_get(d, "refused")),
			  cell_number(json_object_get(d, "held")),
			  cell_text(json_object_get(d, "UUID")));
	table_print(&table);
}

static char *cell_seconds(const json_t *usec)
{
	return json_is_integer(usec) ? str_format("%.3f", json_integer_value(usec) / 1e6) : NULL;
}

static void print_compute(const json_t *devices)
{
	_cleanup_(table_done) struct table table = {};
	const json_t *d;
	size_t i;

	putchar('\n');
	table_begin(&table, "GPU", "WEIGHT", "MAX %", "USED S", "THROTTLED S", "TIMES", NULL);
	json_array_foreach(devices, i, d) {
		const json_t *stat = json_object_get(d, "compute.stat");

		table_add(&table, cell_number(json_object_get(d, "gpu")),
			  cell_number(json_object_get(d, "compute.weight")),
			  str_format("%.4g", json_number_value(json_object_get(d, "compute.max"))),
			  cell_seconds(json_object_get(stat, "usage_usec")),
			  cell_seconds(json_object_get(stat, "throttled_usec")),
			  cell_number(json_object_get(stat, "nr_throttled")));
	}
	table_print(&table);
}

static void print_processes(const json_t *processes)
{
	_cleanup_(table_done) struct table table = {};
	const json_t *p;
	size_t i;

	if (json_array_size(processes) == 0)
		return;
	putchar('\n');
	table_begin(&table, "PID", "USER", "ALLOCATED", "OVERHEAD", "COMMAND", NULL);
	json_array_foreach(processes, i, p)
		table_add(&table, cell_number(json_object_get(p, "pid")),
			  cell_text(json_object_get(p, "user")),
			  cell_size(json_object_get(p, "memory.allocated")),
			  cell_size(json_object_get(p, "memory.overhead")),
			  cell_text(json_object_get(p, "command")));
	table_print(&table);
}

static void print_waiting(const json_t *waiting)
{
	_cleanup_(table_done) struct table table = {};
	const json_t *w;
	size_t i;

	if (json_array_size(waiting) == 0)
		return;
	printf("\nwaiting:\n");
	table_begin(&table, "PID", "CALL", "SIZE", "GPU", "MS", "FOR", NULL);
	json_array_foreach(waiting, i, w)
		table_add(&table, cell_number(json_object_get(w, "pid")),
			  cell_text(json_object_get(w, "call")),
			  cell_size(json_object_get(w, "size")),
			  cell_number(json_object_get(w, "gpu")),
			  cell_number(json_object_get(w, "since_ms")),
			  cell_text(json_object_get(w, "for")));
	table_print(&table);
}

static void print_tenant(const json_t *t)
{
	print_field(t, "tenant", "tenant");
	print_field(t, "match", "match");
	print_field(t, "user", "user");
	print_field(t, "template", "limits of");
	print_field(t, "file", "file");
	print_field(t, "problem", "problem");
	print_limits(json_object_get(t, "limits"), "limit");
	print_limits(json_object_get(t, "lowered"), "lowered");
	putchar('\n');
	print_devices(json_object_get(t, "devices"));
	print_compute(json_object_get(t, "devices"));
	print_processes(json_object_get(t, "processes"));
	print_waiting(json_object_get(t, "waiting"));
}

int verb_show(const struct ctl *ctl)
{
	json_t *reply;

	if (ctl->argc != 1)
		return ctl_usage(ctl, "say which tenant");
	if (ctl_call(ctl, API_TENANTS_SHOW, json_pack("{s:s}", "tenant", ctl->argv[0]), &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	print_tenant(reply);
	json_decref(reply);
	return 0;
}
