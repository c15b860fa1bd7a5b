/* SPDX-License-Identifier: Apache-2.0 */
/* The cotenant command: finds the verb, reads its options, runs it. */
#include "ctl/ctl.h"

#include "base/log.h"
#include "tenant/limit.h"

#include <getopt.h>

typedef int (*verb_fn)(const struct ctl *ctl);

static const verb_fn verb_fns[N_VERBS] = {
#define VERB(id, fn, name, flags, synopsis, help) verb_##fn,
#include "ctl/verbs.def"
};

static bool is_limit(const char *name)
{
	size_t i;

	for (i = 0; i < N_LIMITS; i++) {
		if (str_eq(limit_infos[i].name, name))
			return true;
	}
	return false;
}

static void take_option(struct ctl *ctl, const char *name, const char *value)
{
	if (verbs[ctl->verb].flags & VERB_LIMITS && is_limit(name)) {
		json_object_set_new(ctl->limits, name, json_string(value));
	} else if (verbs[ctl->verb].flags & VERB_LIMITS && str_eq(name, "gpu")) {
		if (!ctl->gpus)
			ctl->gpus = json_array();
		json_array_append_new(ctl->gpus, json_string(value));
	} else if (str_eq(name, "json")) {
		ctl->json = true;
	} else if (str_eq(name, "socket")) {
		ctl->socket = value;
	} else {
		json_object_set_new(ctl->options, name, json_string(value));
	}
}

/* Return: 0, or the exit code. */
static int parse_options(struct ctl *ctl, int argc, char **argv)
{
	struct option_info infos[VERB_MAX_OPTIONS];
	struct option table[VERB_MAX_OPTIONS + 1] = {};
	const char *how = verbs[ctl->verb].flags & VERB_REST ? "+:" : ":";
	size_t i, n;
	int c;

	n = verb_options(ctl->verb, infos);
	for (i = 0; i < n; i++)
		table[i] = (struct option){ infos[i].name,
					    infos[i].metavar ? required_argument : no_argument,
					    NULL, i + 1 };
	opterr = 0;
	while ((c = getopt_long(argc, argv, how, table, NULL)) != -1) {
		if (c == ':')
			return ctl_usage(ctl, "%s wants a value", argv[optind - 1]);
		if (c == '?')
			return ctl_usage(ctl, "there is no option %s; see cotenant help %s",
					 argv[optind - 1], verbs[ctl->verb].name);
		take_option(ctl, infos[c - 1].name, optarg ? optarg : "");
	}
	ctl->argc = argc - optind;
	ctl->argv = argv + optind;
	return 0;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	char *own_name[] = { (char *)verbs[ctl->verb].name };
	int r;

	r = parse_options(ctl, argc, argv);
	if (r)
		return r;
	if (ctl_option(ctl, "help")) {
		ctl->argc = 1;
		ctl->argv = own_name;
		return verb_help(ctl);
	}
	return verb_fns[ctl->verb](ctl);
}

/* Some verbs are two words. Return: its number, or -1. */
static int find_verb(int argc, char **argv, const char *name, int *ret_n_words)
{
	_cleanup_free_ char *both = argc > 2 ? str_format("%s %s", name, argv[2]) : NULL;
	int verb = both ? verb_find(both) : -1;

	*ret_n_words = verb >= 0 ? 2 : 1;
	return verb >= 0 ? verb : verb_find(name);
}

int main(int argc, char **argv)
{
	const char *socket = getenv("COTENANT_SOCKET"), *name = argc > 1 ? argv[1] : "help";
	struct ctl ctl = { .socket = socket && *socket ? socket : API_DEFAULT_SOCKET,
			   .options = json_object(),
			   .limits = json_object() };
	int verb, n_words, r;

	log_init("cotenant", LOG_WARNING);
	if (str_eq(name, "--help") || str_eq(name, "-h"))
		name = "help";
	if (str_eq(name, "--version"))
		name = "version";
	verb = find_verb(argc, argv, name, &n_words);
	if (verb < 0) {
		fprintf(stderr, "cotenant: there is no '%s'; `cotenant help` shows what there is\n",
			name);
		return 2;
	}
	ctl.verb = verb;
	r = run(&ctl, MAX(argc - n_words, 1), argc > n_words ? argv + n_words : argv);
	json_decref(ctl.options);
	json_decref(ctl.limits);
	json_decref(ctl.gpus);
	if (fflush(stdout) != 0)
		return MAX(r, 1);
	return r;
}
