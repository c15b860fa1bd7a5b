/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the form of arguments is checked here: that a name is one and a number is
 * one. What they mean, whether the tenant exists, is the daemon's to say.
 */
#include "api/methods.h"

#include <errno.h>
#include <stdarg.h>

#define REQUIRED true
#define OPTIONAL false

const struct api_method api_methods[API_N_METHODS] = {
#define METHOD(id, name, access, help) { name, API_##access, help },
#define ARG(id, name, type, needed, help)
#include "api/methods.def"
#undef METHOD
#undef ARG
};

static const struct {
	enum api_method_id method;
	struct api_arg arg;
} all_args[] = {
#define METHOD(id, name, access, help)
#define ARG(id, name, type, needed, help) { API_##id, { name, API_##type, needed, help } },
#include "api/methods.def"
#undef METHOD
#undef ARG
};

static const char *const type_names[] = {
	[API_STRING] = "string", [API_NAME] = "name",	[API_MATCH] = "match",
	[API_GPU] = "gpu",	 [API_GPUS] = "gpus",	[API_SIZE] = "size",
	[API_LIMITS] = "limits", [API_UINT] = "number", [API_BOOL] = "boolean",
	[API_DURATION] = "time",
};

int api_fail(struct api_error *error, int status, const char *code, const char *fmt, ...)
{
	va_list ap;

	error->status = status;
	error->code = code;
	error->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int api_hint(struct api_error *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->hint, sizeof(error->hint), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int api_method_find(const char *name)
{
	int i;

	for (i = 0; i < API_N_METHODS; i++) {
		if (str_eq(api_methods[i].name, name))
			return i;
	}
	return -ENOENT;
}

const struct api_arg *api_next_arg(enum api_method_id method, const struct api_arg *previous)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all_args); i++) {
		if (all_args[i].method != method)
			continue;
		if (!previous)
			return &all_args[i].arg;
		if (previous == &all_args[i].arg)
			previous = NULL;
	}
	return NULL;
}

const char *api_type_name(enum api_type type)
{
	return type_names[type];
}

static bool is_gpu_list(const json_t *value)
{
	size_t i;

	if (!json_is_array(value) || json_array_size(value) > 64)
		return false;
	for (i = 0; i < json_array_size(value); i++) {
		if (!json_is_string(json_array_get(value, i)))
			return false;
	}
	return true;
}

static bool is_limits(const json_t *value)
{
	const char *key;
	json_t *limit;

	if (!json_is_object(value))
		return false;
	json_object_foreach((json_t *)value, key, limit) {
		if (!json_is_string(limit) && !json_is_null(limit))
			return false;
	}
	return true;
}

static bool is_uint(const json_t *value)
{
	uint64_t v;

	if (json_is_integer(value))
		return json_integer_value(value) >= 0;
	return json_is_string(value) && str_parse_u64(json_string_value(value), &v) == 0;
}

static bool fits(enum api_type type, const json_t *value)
{
	switch (type) {
	case API_NAME:
		return json_is_string(value) && str_is_name(json_string_value(value));
	case API_GPUS:
		return is_gpu_list(value);
	case API_LIMITS:
		return is_limits(value);
	case API_UINT:
		return is_uint(value);
	case API_BOOL:
		return json_is_boolean(value);
	default:
		return json_is_string(value);
	}
}

static const struct api_arg *find_arg(enum api_method_id method, const char *name)
{
	const struct api_arg *arg = NULL;

	while ((arg = api_next_arg(method, arg))) {
		if (str_eq(arg->name, name))
			return arg;
	}
	return NULL;
}

int api_args_check(enum api_method_id method, const json_t *args, struct api_error *error)
{
	const char *name = api_methods[method].name, *key;
	const struct api_arg *arg = NULL;
	json_t *value;

	json_object_foreach((json_t *)args, key, value) {
		arg = find_arg(method, key);
		if (!arg) {
			api_fail(error, API_E_BAD_REQUEST, "%s has no argument '%.60s'", name, key);
			return api_hint(error, "`cotenant api %s` lists them", name);
		}
		if (!fits(arg->type, value))
			return api_fail(error, API_E_BAD_REQUEST, "%s: '%s' is not a %s", name, key,
					api_type_name(arg->type));
	}
	arg = NULL;
	while ((arg = api_next_arg(method, arg))) {
		if (arg->required && !json_object_get(args, arg->name))
			return api_fail(error, API_E_BAD_REQUEST, "%s needs '%s': %s", name,
					arg->name, arg->help);
	}
	return 0;
}

int api_request_parse(const char *path, const char *body, size_t len,
		      enum api_method_id *ret_method, json_t **ret_args, struct api_error *error)
{
	const char *name = str_after(path, "/v1/");
	json_error_t where;
	json_t *args;
	int method, r;

	method = name ? api_method_find(name) : -ENOENT;
	if (method < 0) {
		api_fail(error, API_E_NOT_FOUND, "there is no '%.100s'", path);
		return api_hint(error,
				"methods are called as POST /v1/NAME; `cotenant api` lists them");
	}
	args = len > 0 ? json_loadb(body, len, JSON_REJECT_DUPLICATES, &where) : json_object();
	if (!json_is_object(args)) {
		json_decref(args);
		return api_fail(error, API_E_BAD_REQUEST,
				"%s: the arguments are not a JSON object%s%s", name,
				args ? "" : ": ", args ? "" : where.text);
	}
	r = api_args_check(method, args, error);
	if (r < 0) {
		json_decref(args);
		return r;
	}
	*ret_method = method;
	*ret_args = args;
	return 0;
}

uint64_t api_arg_uint(const json_t *args, const char *name, uint64_t without)
{
	const json_t *value = json_object_get(args, name);
	uint64_t v = without;

	if (json_is_string(value))
		str_parse_u64(json_string_value(value), &v);
	else if (value)
		v = json_integer_value(value);
	return v;
}

const char *api_arg_string(const json_t *args, const char *name)
{
	return json_string_value(json_object_get(args, name));
}

static void markdown_method(struct text *t, enum api_method_id id)
{
	const struct api_method *m = &api_methods[id];
	const struct api_arg *arg = NULL;

	text_addf(t, "\n## %s\n\n%s.%s\n", m->name, m->help,
		  m->access == API_ROOT ? " Root only." : "");
	if (!api_next_arg(id, NULL))
		return;
	text_add(t, "\n| argument | type | |\n| --- | --- | --- |\n");
	while ((arg = api_next_arg(id, arg)))
		text_addf(t, "| `%s`%s | %s | %s |\n", arg->name, arg->required ? " (needed)" : "",
			  api_type_name(arg->type), arg->help);
}

char *api_markdown(void)
{
	struct text t = {};
	int i;

	text_add(&t,
		 "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
		 "<!-- Made by `cotenant api --markdown` from src/api/methods.def. -->\n"
		 "# The API of cotenantd\n\n"
		 "HTTP and JSON on a unix socket, `" API_DEFAULT_SOCKET "` unless told otherwise:\n"
		 "`POST /v1/METHOD` with an object of arguments, or `GET` with the arguments in "
		 "the\n"
		 "query. Who calls is known from the socket: root sees and changes everything, a "
		 "user\n"
		 "sees what is his, may start tenants under his own limits, and may lower them.\n\n"
		 "    curl --unix-socket " API_DEFAULT_SOCKET " http://localhost/v1/tenants.list\n"
		 "    cotenant api tenants.show tenant=alice\n\n"
		 "A failure has a fitting HTTP status and `{\"error\": {\"code\", \"message\", "
		 "\"hint\"}}`.\n"
		 "Sizes are in bytes, times in seconds since the epoch or milliseconds where the "
		 "name\n"
		 "ends in `_ms`; what is not known is `null`.\n");
	for (i = 0; i < API_N_METHODS; i++)
		markdown_method(&t, i);
	return text_take(&t);
}
