/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include <stdarg.h>
#include <time.h>

const char *ctl_option(const struct ctl *ctl, const char *name)
{
	return json_string_value(json_object_get(ctl->options, name));
}

int ctl_fail(const struct ctl *ctl, const struct api_error *error)
{
	if (ctl->json)
		ctl_print_json(json_pack("{s:{s:s, s:s, s:s}}", "error", "code", error->code,
					 "message", error->message, "hint", error->hint));
	fprintf(stderr, "cotenant %s: %s\n", verbs[ctl->verb].name, error->message);
	if (*error->hint)
		fprintf(stderr, "  %s\n", error->hint);
	return 1;
}

int ctl_call(const struct ctl *ctl, enum api_method_id method, json_t *args, json_t **ret)
{
	struct api_error error;

	if (api_request_json(ctl->socket, API_WITHIN_MS, method, args, ret, &error) < 0)
		return ctl_fail(ctl, &error);
	return 0;
}

int ctl_usage(const struct ctl *ctl, const char *fmt, ...)
{
	const char *name = verbs[ctl->verb].name;
	va_list ap;

	fprintf(stderr, "cotenant %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n  cotenant %s %s\n", name, verbs[ctl->verb].synopsis);
	return 2;
}

int ctl_print_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
	return 0;
}

void ctl_warn(const json_t *reply)
{
	const json_t *warnings = json_object_get(reply, "warnings"), *warning;
	size_t i;

	json_array_foreach(warnings, i, warning)
		fprintf(stderr, "cotenant: warning: %s\n", json_string_value(warning));
}

int ctl_match(const struct ctl *ctl, char **ret)
{
	static const char *const kinds[] = { "user", "group", "cgroup", "pid" };
	const char *kind = NULL, *value = NULL;
	size_t i;
	int n = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!ctl_option(ctl, kinds[i]))
			continue;
		kind = kinds[i];
		value = ctl_option(ctl, kind);
		n++;
	}
	*ret = NULL;
	if (ctl_option(ctl, "default"))
		n++;
	if (n > 1)
		return ctl_usage(ctl, "say one of --user, --group, --cgroup, --pid and --default");
	if (n == 1)
		*ret = kind ? str_format("%s:%s", kind, value) : strdup("default");
	return 0;
}

const char *ctl_clock(const json_t *seconds, char buf[32])
{
	time_t when = json_number_value(seconds);
	struct tm tm;

	strftime(buf, 32, "%F %T", localtime_r(&when, &tm));
	return buf;
}
