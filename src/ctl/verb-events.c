/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant events, explain: what happened, and what it means. */
#include "ctl/ctl.h"

static void print_event(const json_t *event)
{
	const char *tenant = json_string_value(json_object_get(event, "tenant"));
	char clock[32];

	printf("%6lld  %s  %-14s %-16s %s\n",
	       (long long)json_integer_value(json_object_get(event, "id")),
	       ctl_clock(json_object_get(event, "time"), clock),
	       json_string_value(json_object_get(event, "kind")), tenant ? tenant : "-",
	       json_string_value(json_object_get(event, "text")));
}

/* One object per line, so that a reader need not wait for an end that does not come. */
static void print_events(const struct ctl *ctl, const json_t *events, json_int_t *last)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event) {
		if (ctl->json) {
			json_dumpf(event, stdout, JSON_COMPACT);
			putchar('\n');
		} else {
			print_event(event);
		}
		*last = json_integer_value(json_object_get(event, "id"));
	}
	fflush(stdout);
}

int verb_events(const struct ctl *ctl)
{
	bool follow = ctl_option(ctl, "follow") != NULL;
	const char *after = ctl_option(ctl, "after");
	json_t *reply, *args;
	json_int_t last = 0;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments");
	args = json_pack("{s:s*, s:s*, s:s*}", "tenant", ctl_option(ctl, "tenant"), "after", after,
			 "limit", ctl_option(ctl, "lines"));
	if (ctl_call(ctl, API_EVENTS_LIST, args, &reply))
		return 1;
	print_events(ctl, json_object_get(reply, "events"), &last);
	json_decref(reply);
	while (follow) {
		args = json_pack("{s:s*, s:I, s:s}", "tenant", ctl_option(ctl, "tenant"), "after",
				 last, "wait", "30s");
		if (ctl_call(ctl, API_EVENTS_LIST, args, &reply))
			return 1;
		print_events(ctl, json_object_get(reply, "events"), &last);
		json_decref(reply);
	}
	return 0;
}

static void print_words(const json_t *event, const char *label, const char *field)
{
	const char *s = json_string_value(json_object_get(event, field));

	if (s)
		printf("\n%s:\n  %s\n", label, s);
}

int verb_explain(const struct ctl *ctl)
{
	json_t *event;

	if (ctl->argc != 1)
		return ctl_usage(ctl, "say which event, by its number, or which incident: i3");
	if (*ctl->argv[0] == 'i')
		return ctl_explain_incident(ctl, ctl->argv[0] + 1);
	if (ctl_call(ctl, API_EVENTS_EXPLAIN, json_pack("{s:s}", "event", ctl->argv[0]), &event))
		return 1;
	if (ctl->json)
		return ctl_print_json(event);
	print_event(event);
	print_words(event, "why", "why");
	print_words(event, "what to do", "what_to_do");
	json_decref(event);
	return 0;
}
