/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc tells of a process.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

#define PROCESS_NAME_SIZE 64

/**
 * process_uid() - whose process it is: its real user id says it, or who made its user namespace
 *
 * Return: 0, or -ESRCH.
 */
int process_uid(pid_t pid, uid_t *ret);

/**
 * process_parent() - who started it, or took it over
 *
 * Return: 0, or -ESRCH.
 */
int process_parent(pid_t pid, pid_t *ret);

/**
 * process_is_below() - was it started by that process, or by one that is below it?
 *
 * Of those whose parent has ended this is not known.
 */
bool process_is_below(pid_t pid, pid_t above);

/**
 * process_start_time() - field 22 of its stat: with the number, it names a process for good
 *
 * Return: 0, or -ESRCH.
 */
int process_start_time(pid_t pid, uint64_t *ret);

/**
 * process_name() - its short name, "-" if it is gone
 */
void process_name(pid_t pid, char ret[PROCESS_NAME_SIZE]);

/**
 * process_is() - does this number still mean the process with that start time?
 * @start_time:	0: any
 */
bool process_is(pid_t pid, uint64_t start_time);

/**
 * process_maps() - what it maps, as text; the caller frees it
 *
 * Return: 0, or -ESRCH.
 */
int process_maps(pid_t pid, char **ret);

/**
 * maps_have() - is this file in such a text?
 */
bool maps_have(const char *maps, dev_t dev, ino_t ino);

/**
 * user_name() - of an account, or its number where it has no name
 */
void user_name(uid_t uid, char ret[PROCESS_NAME_SIZE]);

/**
 * user_id() - of a name or number
 *
 * Return: 0, or -ENOENT.
 */
int user_id(const char *name, uid_t *ret);

/**
 * group_has() - is a user a member of a group (name or number), also by his primary group?
 */
bool group_has(const char *group, uid_t uid);

/**
 * process_variable() - what a variable of its environment was set to when it began
 *
 * A hint and no more: a process can write over what /proc shows of it.
 *
 * Return: 0; -ENOENT where it is not set, or a fault.
 */
int process_variable(pid_t pid, const char *name, char **ret);

#endif
