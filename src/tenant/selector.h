/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is a tenant: the processes that are charged to it.
 *
 *	user:alice		processes of a user (a name, or a number)
 *	group:students		each member of a group by himself, unless he has limits
 *				of his own (as @students in limits.conf)
 *	cgroup:/user.slice	processes in a cgroup or below it (a cgroup v2 path)
 *	pid:4711@93215		a process and its descendants; behind the @ its start
 *				time (field 22 of /proc/PID/stat), so that a number
 *				that is used again is not taken for it
 *	default			every user by himself whom nothing above names
 */
#ifndef TENANT_SELECTOR_H
#define TENANT_SELECTOR_H

#include "base/base.h"

#include <stdbool.h>

enum selector_kind {
	SELECT_USER,
	SELECT_GROUP,
	SELECT_CGROUP,
	SELECT_PID,
	SELECT_DEFAULT,
	N_SELECTORS,
};

/* A cgroup path at its longest, and the word before it. */
#define SELECTOR_SIZE 4096

/**
 * struct selector - one of the above
 * @name:	of a user or group, or a cgroup's path
 * @pid:	of a process
 * @start_time:	of a process; 0 if not given
 */
struct selector {
	enum selector_kind kind;
	char *name;
	pid_t pid;
	uint64_t start_time;
};

/**
 * selector_kind_name() - "user", "group", "cgroup", "pid", "default"
 */
const char *selector_kind_name(enum selector_kind kind);

/**
 * cgroup_path_ok() - may this be a cgroup's path: from the root, nothing that would need quoting?
 */
bool cgroup_path_ok(const char *path);

/**
 * selector_parse() - read the forms above
 * @ret:	released with selector_done(); untouched on failure
 * @ret_reason:	on -EINVAL: what is wrong, a constant
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int selector_parse(const char *text, struct selector *ret, const char **ret_reason);

/**
 * selector_print() - the text that selector_parse() reads; the caller frees it
 */
char *selector_print(const struct selector *selector);

/**
 * selector_equal() - do both mean the same, letter for letter?
 */
bool selector_equal(const struct selector *a, const struct selector *b);

/**
 * selector_copy() - a copy of its own
 *
 * Return: 0 or -ENOMEM.
 */
int selector_copy(const struct selector *from, struct selector *ret);

void selector_done(struct selector *selector);

#endif
