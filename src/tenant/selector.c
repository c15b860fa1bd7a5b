/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/selector.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>

static const char *const kind_names[N_SELECTORS] = {
	[SELECT_USER] = "user", [SELECT_GROUP] = "group",     [SELECT_CGROUP] = "cgroup",
	[SELECT_PID] = "pid",	[SELECT_DEFAULT] = "default",
};

const char *selector_kind_name(enum selector_kind kind)
{
	return kind_names[kind];
}

/* Nothing that would need quoting in a file, a log line or a metric. */
static bool is_account_name(const char *s)
{
	return str_is_name(s) || (*s && strspn(s, "0123456789") == strlen(s));
}

bool cgroup_path_ok(const char *s)
{
	const char *p;

	if (*s != '/' || strlen(s) >= SELECTOR_SIZE - sizeof("cgroup:"))
		return false;
	for (p = s; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	}
	if ((p > s + 1 && p[-1] == '/') || p[-1] == ' ')
		return false;
	return !strstr(s, "//") && !strstr(s, "/../") && !strstr(s, "/./") &&
	       (p - s < 3 || !str_eq(p - 3, "/..")) && (p - s < 2 || !str_eq(p - 2, "/."));
}

static bool parse_pid(char *s, struct selector *ret)
{
	char *at = strchr(s, '@');
	uint64_t pid;

	if (at) {
		*at = '\0';
		if (str_parse_u64(at + 1, &ret->start_time) < 0)
			return false;
	}
	if (str_parse_u64(s, &pid) < 0 || pid < 1 || pid > INT_MAX)
		return false;
	ret->pid = pid;
	return true;
}

static int take_rest(enum selector_kind kind, char *rest, struct selector *ret,
		     const char **ret_reason)
{
	switch (kind) {
	case SELECT_USER:
	case SELECT_GROUP:
		if (!is_account_name(rest)) {
			*ret_reason = "not the name or number of an account";
			return -EINVAL;
		}
		break;
	case SELECT_CGROUP:
		if (!cgroup_path_ok(rest)) {
			*ret_reason = "not a cgroup path: it begins with '/', ends without one, "
				      "and has no '.', '..' or empty parts";
			return -EINVAL;
		}
		break;
	case SELECT_PID:
		*ret_reason = "not a process: write pid:NUMBER or pid:NUMBER@STARTTIME";
		return parse_pid(rest, ret) ? 0 : -EINVAL;
	case SELECT_DEFAULT:
	case N_SELECTORS:
		return 0;
	}
	ret->name = strdup(rest);
	return ret->name ? 0 : -ENOMEM;
}

int selector_parse(const char *text, struct selector *ret, const char **ret_reason)
{
	_cleanup_free_ char *copy = strdup(text);
	struct selector s = {};
	char *colon;
	int kind, r;

	if (!copy)
		return -ENOMEM;
	if (str_eq(text, "default")) {
		s.kind = SELECT_DEFAULT;
		*ret = s;
		return 0;
	}
	*ret_reason = "none of user:NAME, group:NAME, cgroup:/PATH, pid:NUMBER, default";
	colon = strchr(copy, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	for (kind = 0; kind < SELECT_DEFAULT; kind++) {
		if (str_eq(copy, kind_names[kind]))
			break;
	}
	if (kind == SELECT_DEFAULT)
		return -EINVAL;
	s.kind = kind;
	r = take_rest(kind, colon + 1, &s, ret_reason);
	if (r == 0)
		*ret = s;
	return r;
}

char *selector_print(const struct selector *selector)
{
	switch (selector->kind) {
	case SELECT_DEFAULT:
	case N_SELECTORS:
		return strdup("default");
	case SELECT_PID:
		if (!selector->start_time)
			return str_format("pid:%d", selector->pid);
		return str_format("pid:%d@%llu", selector->pid,
				  (unsigned long long)selector->start_time);
	default:
		return str_format("%s:%s", kind_names[selector->kind], selector->name);
	}
}

bool selector_equal(const struct selector *a, const struct selector *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SELECT_DEFAULT)
		return true;
	if (a->kind == SELECT_PID)
		return a->pid == b->pid && a->start_time == b->start_time;
	return str_eq(a->name, b->name);
}

int selector_copy(const struct selector *from, struct selector *ret)
{
	struct selector copy = *from;

	if (from->name) {
		copy.name = strdup(from->name);
		if (!copy.name)
			return -ENOMEM;
	}
	*ret = copy;
	return 0;
}

void selector_done(struct selector *selector)
{
	free(selector->name);
	memset(selector, 0, sizeof(*selector));
}
