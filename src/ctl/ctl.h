/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cotenant command: what its verbs share.
 *
 * A verb is a function of the parsed command line. It prints, and returns the exit
 * code. It knows the API, never the daemon's structs.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "api/client.h"

#define CTL_VERSION "0.1.0"

#define VERB_LIMITS 1
#define VERB_REST   2
#define VERB_MATCH  4

enum verb_id {
#define VERB(id, fn, name, flags, synopsis, help) VERB_##id,
#include "ctl/verbs.def"
	N_VERBS,
};

/**
 * struct ctl - a parsed command line
 * @json:	print JSON
 * @options:	an object: the options of the verb, as strings
 * @limits:	an object: limits, as the API takes them
 * @gpus:	an array, or NULL where --gpu was not given
 * @argv:	the arguments that are no options
 */
struct ctl {
	enum verb_id verb;
	const char *socket;
	bool json;
	json_t *options;
	json_t *limits;
	json_t *gpus;
	int argc;
	char **argv;
};

struct verb_info {
	const char *name;
	int flags;
	const char *synopsis;
	const char *help;
};

struct option_info {
	const char *name;
	const char *metavar;
	const char *help;
};

extern const struct verb_info verbs[N_VERBS];

/**
 * verb_find() - by name; a space in it may be written as a dash, as in the names of man pages
 *
 * Return: its number, or -1.
 */
int verb_find(const char *name);

/**
 * verb_options() - all options of a verb, its own, by its flags, and common ones
 * @ret:	room for VERB_MAX_OPTIONS
 *
 * Return: how many.
 */
#define VERB_MAX_OPTIONS 32
size_t verb_options(enum verb_id verb, struct option_info ret[VERB_MAX_OPTIONS]);

/**
 * verb_text() - the n-th paragraph about a verb, or NULL
 */
const char *verb_text(enum verb_id verb, size_t n);

/**
 * ctl_option() - the value of an option, or NULL ("" for one without a value)
 */
const char *ctl_option(const struct ctl *ctl, const char *name);

/**
 * ctl_call() - call a method, and say on standard error what went wrong
 * @args:	the reference is taken over
 *
 * Return: 0 with *ret set, or 1, the exit code.
 */
int ctl_call(const struct ctl *ctl, enum api_method_id method, json_t *args, json_t **ret);

/**
 * ctl_fail() - say what went wrong
 *
 * Return: 1, so that `return ctl_fail(...)` ends a verb.
 */
int ctl_fail(const struct ctl *ctl, const struct api_error *error);

/**
 * ctl_usage() - say what is wrong with the command line
 *
 * Return: 2.
 */
int ctl_usage(const struct ctl *ctl, const char *fmt, ...) PRINTF(2, 3);

/**
 * ctl_print_json() - print an object, whose reference is taken over
 *
 * Return: 0.
 */
int ctl_print_json(json_t *object);

/**
 * ctl_warn() - print the "warnings" of an answer on standard error
 */
void ctl_warn(const json_t *reply);

/**
 * ctl_explain_incident() - print one with its actions
 *
 * Return: the exit code.
 */
int ctl_explain_incident(const struct ctl *ctl, const char *number);

/**
 * ctl_clock() - a time of an answer as people write it
 */
const char *ctl_clock(const json_t *seconds, char buf[32]);

/**
 * ctl_match() - the match that --user and its like ask for; the caller frees it
 *
 * Return: 0 (NULL where none is given), or 2 where several are.
 */
int ctl_match(const struct ctl *ctl, char **ret);

/* One function per verb. It prints, and returns the exit code. */
#define VERB(id, fn, name, flags, synopsis, help) int verb_##fn(const struct ctl *ctl);
#include "ctl/verbs.def"

#endif
