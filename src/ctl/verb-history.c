/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant history: what a tenant held, minute by minute or in the last ten. */
#include "ctl/ctl.h"
#include "ctl/table.h"

static char *cell_percent(const json_t *value)
{
	return str_format("%.0f%%", json_number_value(value));
}

static void minutes_table(struct table *table, const json_t *minutes)
{
	const json_t *m;
	char buf[32];
	size_t i;

	table_begin(table, "TIME", "LEAST", "MEAN", "MOST", "BUSY", "UUID", NULL);
	json_array_foreach(minutes, i, m)
		table_add(table, strdup(ctl_clock(json_object_get(m, "time"), buf)),
			  cell_size(json_object_get(m, "least")),
			  cell_size(json_object_get(m, "mean")),
			  cell_size(json_object_get(m, "most")),
			  cell_percent(json_object_get(m, "utilization")),
			  cell_text(json_object_get(m, "UUID")));
}

static void samples_table(struct table *table, const json_t *samples)
{
	const json_t *s;
	size_t i;

	table_begin(table, "AGO", "GPU", "PID", "MEMORY", "BUSY", NULL);
	json_array_foreach(samples, i, s)
		table_add(table,
			  str_format("%.1fs",
				     json_integer_value(json_object_get(s, "ago_ms")) / 1000.0),
			  cell_number(json_object_get(s, "gpu")),
			  cell_number(json_object_get(s, "pid")),
			  cell_size(json_object_get(s, "memory")),
			  cell_percent(json_object_get(s, "utilization")));
}

int verb_history(const struct ctl *ctl)
{
	bool samples = ctl_option(ctl, "samples") != NULL;
	_cleanup_(table_done) struct table table = {};
	json_t *reply, *args;

	if (ctl->argc != 1)
		return ctl_usage(ctl, "say which tenant");
	args = json_pack("{s:s, s:s*}", "tenant", ctl->argv[0], "limit", ctl_option(ctl, "lines"));
	if (ctl_call(ctl, API_HISTORY_SHOW, args, &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	if (samples)
		samples_table(&table, json_object_get(reply, "samples"));
	else
		minutes_table(&table, json_object_get(reply, "minutes"));
	table_print(&table);
	json_decref(reply);
	return 0;
}
