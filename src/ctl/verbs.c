/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of verbs.def and limits.def. */
#include "ctl/ctl.h"

#include "tenant/limit.h"

const struct verb_info verbs[N_VERBS] = {
#define VERB(id, fn, name, flags, synopsis, help) { name, flags, synopsis, help },
#include "ctl/verbs.def"
};

static const struct {
	enum verb_id verb;
	struct option_info option;
} own_options[] = {
#define OPT(id, name, metavar, help) { VERB_##id, { name, metavar, help } },
#include "ctl/verbs.def"
};

static const struct {
	enum verb_id verb;
	const char *text;
} texts[] = {
#define TEXT(id, text) { VERB_##id, text },
#include "ctl/verbs.def"
};

static const struct option_info match_options[] = {
	{ "user", "NAME", "processes of a user" },
	{ "group", "NAME", "each member of a group by himself" },
	{ "cgroup", "PATH", "processes in a cgroup or below it" },
	{ "pid", "N", "a process and what it starts" },
	{ "default", NULL, "each user by himself who is not named otherwise" },
};

static const struct option_info gpu_option = {
	"gpu",
	"GPU",
	"a device it may use, by UUID or index; several may be given, on all others memory.max is "
	"0",
};

static const struct option_info common_options[] = {
	{ "json", NULL, "print JSON" },
	{ "socket", "PATH",
	  "where the daemon listens (COTENANT_SOCKET, or " API_DEFAULT_SOCKET ")" },
	{ "help", NULL, "show this" },
};

static bool is_named(const char *verb, const char *name)
{
	while (*verb && (*verb == *name || (*verb == ' ' && *name == '-'))) {
		verb++;
		name++;
	}
	return *verb == *name;
}

int verb_find(const char *name)
{
	int i;

	for (i = 0; i < N_VERBS; i++) {
		if (is_named(verbs[i].name, name))
			return i;
	}
	return -1;
}

size_t verb_options(enum verb_id verb, struct option_info ret[VERB_MAX_OPTIONS])
{
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(own_options); i++) {
		if (own_options[i].verb == verb)
			ret[n++] = own_options[i].option;
	}
	for (i = 0; verbs[verb].flags & VERB_MATCH && i < ARRAY_SIZE(match_options); i++)
		ret[n++] = match_options[i];
	for (i = 0; verbs[verb].flags & VERB_LIMITS && i < N_LIMITS; i++)
		ret[n++] = (struct option_info){ limit_infos[i].name, limit_infos[i].metavar,
						 limit_infos[i].help };
	if (verbs[verb].flags & VERB_LIMITS)
		ret[n++] = gpu_option;
	for (i = 0; i < ARRAY_SIZE(common_options); i++)
		ret[n++] = common_options[i];
	return n;
}

const char *verb_text(enum verb_id verb, size_t n)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		if (texts[i].verb == verb && n-- == 0)
			return texts[i].text;
	}
	return NULL;
}
