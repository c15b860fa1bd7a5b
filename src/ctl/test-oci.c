/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/oci.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

static char reason[OCI_REASON_SIZE];

/* The arguments as text, "nothing", or what is wrong; ' stands for ". */
static const char *request(const char *state_text)
{
	static char text[500];
	_cleanup_free_ char *json = strdup(state_text), *out = NULL;
	json_t *state = NULL, *args = NULL;
	char *p;

	for (p = json; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	if (oci_state_parse(json, strlen(json), &state, reason) < 0 ||
	    oci_request(state, json_object_get(state, "annotations"), &args, reason) < 0) {
		json_decref(state);
		return reason;
	}
	out = args ? json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS) : strdup("nothing");
	snprintf(text, sizeof(text), "%s", out);
	json_decref(args);
	json_decref(state);
	return text;
}

static void test_requests(void)
{
	check(str_eq(request("{'id':'web','pid':7,'annotations':{'cotenant.memory.low':'3G','x':'y'"
			     "}}"),
		     "{\"command\":\"web\",\"container\":\"web\",\"limits\":{\"memory.low\":\"3G\"}"
		     ",\"pid\":7}"),
	      "request: a limit");
	check(str_eq(request("{'id':'0123456789abcdef','pid':7,'annotations':{'cotenant.name':'a',"
			     "'cotenant.gpu':'0, GPU-1'}}"),
		     "{\"command\":\"0123456789ab\",\"container\":\"0123456789abcdef\",\"gpu\":["
		     "\"0\","
		     "\"GPU-1\"],\"limits\":{},\"pid\":7,\"tenant\":\"a\"}"),
	      "request: devices and a name");
	check(str_eq(request("{'id':'web','pid':7,'annotations':{'x':'cotenant.memory.low'}}"),
		     "nothing"),
	      "request: of others' annotations, none");
	check(str_eq(request("{'id':'web','pid':7}"), "nothing"),
	      "request: without annotations, none");
}

static void test_bad(void)
{
	static const struct {
		const char *state;
		const char *word;
	} cases[] = {
		{ "", "not a JSON object" },
		{ "[]", "not a JSON object" },
		{ "{'pid':7}", "no usable id" },
		{ "{'id':'','pid':7}", "no usable id" },
		{ "{'id':'a/b','pid':7}", "no usable id" },
		{ "{'id':'a\\nb','pid':7}", "no usable id" },
		{ "{'id':'a (deleted)','pid':7}", "no usable id" },
		{ "{'id':'a\\u0000','pid':7}", "not a JSON object" },
		{ "{'id':'a','pid':0}", "no usable pid" },
		{ "{'id':'a','pid':-4}", "no usable pid" },
		{ "{'id':'a','pid':99999999999}", "no usable pid" },
		{ "{'id':'a','pid':'7'}", "no usable pid" },
		{ "{'id':'a','pid':7,'pid':8}", "not a JSON object" },
		{ "{'id':'a','pid':7,'annotations':{'cotenant.memory.low':3}}", "is not text" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		check(strstr(request(cases[i].state), cases[i].word) != NULL, "bad: %s",
		      cases[i].state);
}

int main(void)
{
	test_requests();
	test_bad();
	return check_result();
}
