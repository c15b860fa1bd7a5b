/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant ps: a line per process and device. */
#include "ctl/ctl.h"
#include "ctl/table.h"

static char *tenants_of(const json_t *process)
{
	const json_t *tenant;
	struct text text = {};
	size_t i;

	json_array_foreach(json_object_get(process, "tenants"), i, tenant)
		text_addf(&text, "%s%s", i ? "," : "", json_string_value(tenant));
	return text.len ? text_take(&text) : strdup("unowned");
}

/* The narrowest of what is known: a container, a batch job, a machine. */
static char *place_of(const json_t *process)
{
	const char *container = json_string_value(json_object_get(process, "container"));
	const char *runtime = json_string_value(json_object_get(process, "runtime"));
	const char *machine = json_string_value(json_object_get(process, "machine"));
	const char *step = json_string_value(json_object_get(process, "step"));
	json_int_t job = json_integer_value(json_object_get(process, "job"));

	if (container)
		return str_format("%s %.12s", runtime, container);
	if (job)
		return str_format("job %lld.%s", (long long)job, step ? step : "-");
	return machine ? str_format("machine %s", machine) : NULL;
}

int verb_ps(const struct ctl *ctl)
{
	_cleanup_(table_done) struct table table = {};
	json_t *reply, *process;
	size_t i;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments");
	if (ctl_call(ctl, API_PROCESSES_LIST, json_pack("{s:s*}", "gpu", ctl_option(ctl, "gpu")),
		     &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	table_begin(&table, "GPU", "PID", "USER", "MEMORY", "COMMAND", "TENANT", "WHERE", NULL);
	json_array_foreach(json_object_get(reply, "processes"), i, process)
		table_add(&table, cell_number(json_object_get(process, "gpu")),
			  cell_number(json_object_get(process, "pid")),
			  cell_text(json_object_get(process, "user")),
			  cell_size(json_object_get(process, "memory")),
			  cell_text(json_object_get(process, "command")), tenants_of(process),
			  place_of(process));
	table_print(&table);
	json_decref(reply);
	return 0;
}
