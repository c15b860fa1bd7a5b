/* SPDX-License-Identifier: Apache-2.0 */
#include "api/methods.h"
#include "base/check.h"

static const struct {
	const char *name;
	const char *path;
	const char *body;
	int status; /* 0: accepted */
} cases[] = {
	{ "no arguments, no body", "/v1/tenants.list", "", 0 },
	{ "no arguments, an empty object", "/v1/tenants.list", "{}", 0 },
	{ "an optional argument", "/v1/tenants.list", "{\"gpu\": \"0\"}", 0 },
	{ "a number", "/v1/events.explain", "{\"event\": 7}", 0 },
	{ "a number in a string, as a query has it", "/v1/events.explain", "{\"event\": \"7\"}",
	  0 },
	{ "limits", "/v1/tenants.set",
	  "{\"limits\": {\"memory.max\": \"4G\", \"memory.low\": null}}", 0 },
	{ "a list of devices", "/v1/tenants.set", "{\"gpu\": [\"0\", \"GPU-1\"]}", 0 },
	{ "another path", "/", "", 404 },
	{ "a method that is not there", "/v1/tenants.burn", "", 404 },
	{ "a body that is no JSON", "/v1/tenants.list", "{", 400 },
	{ "a body that is no object", "/v1/tenants.list", "[]", 400 },
	{ "an argument twice", "/v1/tenants.list", "{\"gpu\": \"0\", \"gpu\": \"1\"}", 400 },
	{ "an argument that is not there", "/v1/tenants.list", "{\"gqu\": \"0\"}", 400 },
	{ "a needed argument missing", "/v1/tenants.show", "{}", 400 },
	{ "a name that is none", "/v1/tenants.show", "{\"tenant\": \"../x\"}", 400 },
	{ "a negative number", "/v1/events.explain", "{\"event\": -1}", 400 },
	{ "limits that are numbers", "/v1/tenants.set", "{\"limits\": {\"memory.max\": 4}}", 400 },
	{ "devices that are numbers", "/v1/tenants.set", "{\"gpu\": [0]}", 400 },
};

static void test_requests(void)
{
	enum api_method_id method;
	struct api_error error;
	json_t *args;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		error.status = 0;
		if (api_request_parse(cases[i].path, cases[i].body, strlen(cases[i].body), &method,
				      &args, &error) == 0)
			json_decref(args);
		check(error.status == cases[i].status, "api_request_parse: %s", cases[i].name);
	}
}

static void test_table(void)
{
	_cleanup_free_ char *markdown = api_markdown();
	const struct api_arg *arg = NULL;
	int i, n = 0;

	while ((arg = api_next_arg(API_TENANTS_ADOPT, arg)))
		n++;
	check(n == 4, "api_next_arg: each argument once");
	for (i = 0; i < API_N_METHODS; i++) {
		if (api_method_find(api_methods[i].name) != i ||
		    !strstr(markdown, api_methods[i].name))
			break;
	}
	check(i == API_N_METHODS, "api_methods: each is found by its name and documented");
}

int main(void)
{
	test_requests();
	test_table();
	return check_result();
}
