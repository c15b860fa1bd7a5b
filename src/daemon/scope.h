/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A systemd scope for a process of a login session, where systemd manages the cgroups: a
 * session's folder is systemd's to change.
 */
#ifndef DAEMON_SCOPE_H
#define DAEMON_SCOPE_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

/**
 * scope_available() - does systemd run this host?
 */
bool scope_available(void);

/**
 * scope_suits() - is this the cgroup of a plain login session, or of a user's own manager?
 *
 * From anywhere else a process would leave limits that others have put around it: those of a
 * service, a container, or a job of a batch system.
 */
bool scope_suits(const char *cgroup);

/**
 * scope_keeps() - how much of a process' cgroup path is around the scope it would get
 *
 * Return: the length of its innermost slice's path; 0 if it is in none. Whatever is below
 * that, the process leaves.
 */
size_t scope_keeps(const char *cgroup);

/**
 * scope_enter() - put a process into a scope of its own, in the slice it is in
 * @name:	of the scope, without ".scope"
 * @ret_path:	its cgroup; the caller frees it
 *
 * Waits for systemd, two seconds at most.
 *
 * Return: 0, or a fault; -ETIMEDOUT if systemd took the request and did nothing.
 */
int scope_enter(pid_t pid, const char *name, char **ret_path);

#endif
