/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant api, metrics, version: the API as it is. */
#include "ctl/ctl.h"

static json_t *methods_json(void)
{
	json_t *list = json_array(), *args;
	const struct api_arg *arg;
	int i;

	for (i = 0; i < API_N_METHODS; i++) {
		args = json_array();
		for (arg = api_next_arg(i, NULL); arg; arg = api_next_arg(i, arg))
			json_array_append_new(args, json_pack("{s:s, s:s, s:b, s:s}", "name",
							      arg->name, "type",
							      api_type_name(arg->type), "required",
							      arg->required, "help", arg->help));
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:o}", "method", api_methods[i].name,
					"help", api_methods[i].help, "root",
					api_methods[i].access == API_ROOT, "arguments", args));
	}
	return list;
}

static void print_method(enum api_method_id id)
{
	const struct api_arg *arg = NULL;

	printf("%-16s %s%s\n", api_methods[id].name, api_methods[id].help,
	       api_methods[id].access == API_ROOT ? " (root)" : "");
	while ((arg = api_next_arg(id, arg)))
		printf("    %-14s %-8s %s%s\n", arg->name, api_type_name(arg->type), arg->help,
		       arg->required ? " (needed)" : "");
}

static int list_methods(const struct ctl *ctl)
{
	int i;

	if (ctl->json)
		return ctl_print_json(methods_json());
	for (i = 0; i < API_N_METHODS; i++)
		print_method(i);
	return 0;
}

/* tenant=alice is a string, limits={"memory.max": "4G"} is what it says. */
static json_t *read_value(enum api_method_id method, const char *name, const char *text)
{
	const struct api_arg *arg = NULL;
	json_t *value;

	while ((arg = api_next_arg(method, arg))) {
		if (!str_eq(arg->name, name))
			continue;
		if (arg->type == API_LIMITS || arg->type == API_GPUS || arg->type == API_BOOL) {
			value = json_loads(text, JSON_DECODE_ANY, NULL);
			return value ? value : json_string(text);
		}
	}
	return json_string(text);
}

static int call_method(const struct ctl *ctl, enum api_method_id method)
{
	json_t *args = json_object(), *reply;
	char *equals;
	int i;

	for (i = 1; i < ctl->argc; i++) {
		equals = strchr(ctl->argv[i], '=');
		if (!equals) {
			json_decref(args);
			return ctl_usage(ctl, "'%s' is not ARGUMENT=VALUE", ctl->argv[i]);
		}
		*equals = '\0';
		json_object_set_new(args, ctl->argv[i],
				    read_value(method, ctl->argv[i], equals + 1));
	}
	if (ctl_call(ctl, method, args, &reply))
		return 1;
	return ctl_print_json(reply);
}

int verb_api(const struct ctl *ctl)
{
	_cleanup_free_ char *markdown = NULL;
	int method;

	if (ctl_option(ctl, "markdown")) {
		markdown = api_markdown();
		fputs(markdown ? markdown : "", stdout);
		return markdown ? 0 : 1;
	}
	if (ctl->argc == 0)
		return list_methods(ctl);
	method = api_method_find(ctl->argv[0]);
	if (method < 0)
		return ctl_usage(ctl, "there is no method '%s'; `cotenant api` lists them",
				 ctl->argv[0]);
	if (method == API_METRICS)
		return verb_metrics(ctl);
	return call_method(ctl, method);
}

int verb_metrics(const struct ctl *ctl)
{
	_cleanup_free_ char *text = NULL;
	struct api_error error;

	if (api_request(ctl->socket, API_WITHIN_MS, API_METRICS, NULL, &text, &error) < 0)
		return ctl_fail(ctl, &error);
	if (ctl->json)
		return ctl_print_json(json_pack("{s:s}", "metrics", text));
	fputs(text, stdout);
	return 0;
}

/* It is a part of the answer, and not all of it. */
#define VERSION_WITHIN_MS 5000

int verb_version(const struct ctl *ctl)
{
	struct api_error error;
	json_t *reply = NULL;

	/* The command's own version is worth telling also when no daemon answers. */
	if (api_request_json(ctl->socket, VERSION_WITHIN_MS, API_DAEMON_VERSION, NULL, &reply,
			     &error) < 0)
		reply = NULL;
	if (ctl->json)
		return ctl_print_json(
			json_pack("{s:s, s:o?}", "version", CTL_VERSION, "daemon", reply));
	printf("cotenant %s\n", CTL_VERSION);
	if (reply)
		printf("cotenantd %s, rung %s, process %lld\n",
		       json_string_value(json_object_get(reply, "version")),
		       json_string_value(json_object_get(reply, "rung")),
		       (long long)json_integer_value(json_object_get(reply, "pid")));
	else
		printf("%s\n", error.message);
	json_decref(reply);
	return 0;
}
