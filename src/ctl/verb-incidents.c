/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant incidents, and explain of one: who held more than it asked for, and what was done. */
#include "ctl/ctl.h"
#include "base/quantity.h"
#include "ctl/table.h"

static char *cell_clock(const json_t *seconds)
{
	char buf[32];

	return json_is_null(seconds) ? NULL : strdup(ctl_clock(seconds, buf));
}

static void add_line(struct table *table, const json_t *incident)
{
	table_add(
		table,
		str_format("i%lld", (long long)json_integer_value(json_object_get(incident, "id"))),
		cell_clock(json_object_get(incident, "time")),
		cell_clock(json_object_get(incident, "ended")),
		cell_text(json_object_get(incident, "tenant")),
		cell_size(json_object_get(incident, "request")),
		cell_size(json_object_get(incident, "peak")),
		cell_text(json_object_get(incident, "policy")),
		cell_text(json_object_get(incident, "state")));
}

int verb_incidents(const struct ctl *ctl)
{
	_cleanup_(table_done) struct table table = {};
	json_t *reply, *args, *incident;
	size_t i;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments; to look at one: cotenant explain %s",
				 ctl->argv[0]);
	args = json_pack("{s:s*, s:s*, s:b}", "tenant", ctl_option(ctl, "tenant"), "limit",
			 ctl_option(ctl, "lines"), "open", ctl_option(ctl, "open") != NULL);
	if (ctl_call(ctl, API_INCIDENTS_LIST, args, &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	table_begin(&table, "INCIDENT", "SINCE", "ENDED", "TENANT", "REQUEST", "PEAK", "POLICY",
		    "LAST", NULL);
	json_array_foreach(json_object_get(reply, "incidents"), i, incident)
		add_line(&table, incident);
	table_print(&table);
	json_decref(reply);
	return 0;
}

static const struct {
	const char *reason;
	const char *words;
} reasons[] = {
#define POLICY_REASON(id, name, words) { name, words },
#include "policy/reasons.def"
#undef POLICY_REASON
};

static const char *words_of(const char *reason)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (str_eq(reasons[i].reason, reason))
			return reasons[i].words;
	}
	return reason;
}

static void print_action(const json_t *entry)
{
	const char *result = json_string_value(json_object_get(entry, "result"));
	json_int_t missing = json_integer_value(json_object_get(entry, "missing"));
	char clock[32], used[QUANTITY_TEXT], request[QUANTITY_TEXT], free_text[QUANTITY_TEXT];

	printf("%s  %-8s %s\n", ctl_clock(json_object_get(entry, "time"), clock),
	       json_string_value(json_object_get(entry, "action")),
	       words_of(json_string_value(json_object_get(entry, "reason"))));
	printf("    it held %s and asked for %s; the device had %s free",
	       size_print_short(json_integer_value(json_object_get(entry, "used")), used),
	       size_print_short(json_integer_value(json_object_get(entry, "request")), request),
	       size_print_short(json_integer_value(json_object_get(entry, "free")), free_text));
	if (missing > 0)
		printf(", %s too little", size_print_short(missing, used));
	printf("\n    %s\n", result ? result : "under way");
}

int ctl_explain_incident(const struct ctl *ctl, const char *number)
{
	json_t *incident, *entry;
	char clock[32], request[QUANTITY_TEXT], peak[QUANTITY_TEXT];
	size_t i;

	if (ctl_call(ctl, API_INCIDENTS_SHOW, json_pack("{s:s}", "incident", number), &incident))
		return 1;
	if (ctl->json)
		return ctl_print_json(incident);
	printf("%s asked for %s of %s and held up to %s. Its memory.policy is %s.\n",
	       json_string_value(json_object_get(incident, "tenant")),
	       size_print_short(json_integer_value(json_object_get(incident, "request")), request),
	       json_string_value(json_object_get(incident, "UUID")),
	       size_print_short(json_integer_value(json_object_get(incident, "peak")), peak),
	       json_string_value(json_object_get(incident, "policy")));
	json_array_foreach(json_object_get(incident, "entries"), i, entry)
		print_action(entry);
	if (json_is_null(json_object_get(incident, "ended")))
		printf("It goes on.\n");
	else
		printf("It ended at %s.\n", ctl_clock(json_object_get(incident, "ended"), clock));
	json_decref(incident);
	return 0;
}
