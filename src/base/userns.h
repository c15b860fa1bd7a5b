/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is behind a process of a user namespace.
 *
 * A user may have thousands of user ids in namespaces of his own making (subuid, as rootless
 * containers use them). What runs under them is his all the same.
 */
#ifndef BASE_USERNS_H
#define BASE_USERNS_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

/**
 * userns_maker() - the user who made the namespace around a process that lies in the caller's own
 * @proc_fd:	/proc
 *
 * Of nested ones that is the outermost: the inner ones were made by who was in it.
 *
 * Return: 0; USERNS_E_OWN if the process is in the caller's namespace, so that its user id says
 * whose it is; -ESRCH if it is gone; another fault.
 */
#define USERNS_E_OWN 1
int userns_maker(int proc_fd, pid_t pid, uid_t *ret);

/**
 * userns_user() - whose a process with this user id is
 *
 * Return: the maker's id, or @uid in a namespace that root made, as for containers of a
 * system, and where there is none.
 */
uid_t userns_user(int proc_fd, pid_t pid, uid_t uid);

#endif
