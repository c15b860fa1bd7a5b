/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "tenant/selector.h"

static const char *const good[] = {
	"user:alice",	       "user:1000", "group:students", "cgroup:/", "cgroup:/a b/c.slice",
	"cgroup:/x (deleted)", "pid:4711",  "pid:4711@93215", "default",
};

static const char *const bad[] = {
	"",	    "alice",	  "user:",	     "user:a b",   "user:-x",	     "group:a/b",
	"cgroup:a", "cgroup:/a/", "cgroup:/a/../b",  "cgroup:/..", "cgroup://a",     "cgroup:/a\nb",
	"pid:0",    "pid:-1",	  "pid:99999999999", "pid:1@",	   "pid:x",	     "default:x",
	"cgroup:",  "cgroup:/.",  "cgroup:/a ",	     "slurm:7",	   "kubernetes:web",
};

int main(void)
{
	const char *reason;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_(selector_done) struct selector s = {}, again = {};
		_cleanup_free_ char *text = NULL;

		if (!check(selector_parse(good[i], &s, &reason) == 0, "selector_parse: %s",
			   good[i]))
			continue;
		text = selector_print(&s);
		check(text && str_eq(text, good[i]) && selector_parse(text, &again, &reason) == 0 &&
			      selector_equal(&s, &again),
		      "selector_print: %s reads back", good[i]);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct selector s;

		reason = NULL;
		check(selector_parse(bad[i], &s, &reason) < 0 && reason,
		      "selector_parse: refuses case %zu, \"%s\"", i, bad[i]);
	}
	return check_result();
}
