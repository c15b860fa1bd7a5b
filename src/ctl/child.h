/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that a verb starts: as tenants, with signals passed on and their exit code taken over. */
#ifndef CTL_CHILD_H
#define CTL_CHILD_H

#include "ctl/ctl.h"

#include <signal.h>

#define EXIT_NO_TENANT 125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/** child_signals_block() - keep what child_wait() passes on from ending this process; before fork() */
void child_signals_block(sigset_t *set, sigset_t *old);

/** child_exec() - in the child: become a command, with the signals of before */
_Noreturn void child_exec(const struct ctl *ctl, char **argv, const sigset_t *mask);

/**
 * child_tenant_begin() - make a process the tenant that the command line asks for
 * @command:	what the tenant is named after
 * @ret_tenant:	its name; the caller frees it
 *
 * Return: 0, or EXIT_NO_TENANT, and why is said.
 */
int child_tenant_begin(const struct ctl *ctl, pid_t child, const char *command, char **ret_tenant);

/**
 * child_tenant_end() - it has ended
 * @ret_peak:	what it held at the most, where it was evicted; may be NULL
 *
 * The daemon would forget it by itself, too: this only makes it prompt.
 *
 * Return: whether it was evicted.
 */
bool child_tenant_end(const struct ctl *ctl, const char *tenant, json_int_t *ret_peak);

/**
 * child_tenant_forget() - it has ended, and what it started ends behind it: wait until the name is free
 */
void child_tenant_forget(const struct ctl *ctl, const char *tenant);

/**
 * child_wait() - pass signals on until it ends
 * @each_second:	called meanwhile; may be NULL
 *
 * Return: the exit code to pass on.
 */
int child_wait(pid_t child, const sigset_t *set, void (*each_second)(void *userdata),
	       void *userdata);

#endif
