/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a tenant consists of, to be stopped, let go, or ended.
 *
 * A cgroup that is the tenant's is stopped and ended as a whole. What is outside of one is
 * taken by itself: a container of cgroup v1 by its freezer, any other process by signals.
 * Nothing that the daemon itself is in is touched.
 */
#ifndef DAEMON_TARGET_H
#define DAEMON_TARGET_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

/**
 * struct target_process - one process outside of the cgroup
 * @pidfd:	the process itself
 * @freezer:	its container's path in the v1 freezer hierarchy, or NULL
 */
struct target_process {
	pid_t pid;
	uint64_t start_time;
	int pidfd;
	char *freezer;
};

/**
 * struct target - a tenant's processes
 * @cgroup:	its path in the v2 hierarchy, or NULL
 */
struct target {
	char *cgroup;
	struct target_process *processes;
	size_t n_processes;
};

/**
 * target_set_cgroup() - all that is in this cgroup belongs to it
 *
 * Return: 0; -EBUSY if the daemon is in it; -ENOENT if there is none; a fault.
 */
int target_set_cgroup(struct target *target, const char *path);

/**
 * target_add() - one process; one that is in the cgroup already adds nothing
 * @cgroup:	where it is in the v2 hierarchy, or NULL
 * @freezer:	its container's v1 freezer, or NULL
 *
 * Return: 0, or a fault.
 */
int target_add(struct target *target, pid_t pid, uint64_t start_time, const char *cgroup,
	       const char *freezer);

/**
 * target_freeze() - stop them
 * @ret_record:	what target_thaw() needs, a line each; the caller frees it
 *
 * Return: 0, or the first fault; the record then tells of what was stopped.
 */
int target_freeze(const struct target *target, char **ret_record);

/**
 * target_thaw() - let go what a record tells of, also one of an earlier life of the daemon
 */
void target_thaw(const char *record);

/**
 * target_is_frozen() - have all stopped by now?
 */
bool target_is_frozen(const char *record);

/**
 * target_signal() - send a signal to each
 */
void target_signal(const struct target *target, int signal);

/**
 * target_n_left() - how many live, at least
 */
size_t target_n_left(const struct target *target);

void target_done(struct target *target);

#endif
