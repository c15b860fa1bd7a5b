/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2 folders: finding, making, leaving.
 *
 * Paths are as in /proc/PID/cgroup: they begin with "/" at the root of the
 * hierarchy, wherever that is mounted. On hybrid hosts it is mounted beside
 * the older hierarchies.
 */
#ifndef DAEMON_CGROUP_H
#define DAEMON_CGROUP_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

/* How folders begin that are made for a tenant. */
#define CGROUP_PREFIX "cotenant-"

/**
 * cgroup_mount() - where the v2 hierarchy is mounted; the caller frees it
 *
 * Return: 0, or -ENODATA where there is none.
 */
int cgroup_mount(char **ret);

/**
 * cgroup_v1_mount() - where a controller's v1 hierarchy is mounted; the caller frees it
 *
 * Return: 0, or -ENODATA where there is none.
 */
int cgroup_v1_mount(const char *controller, char **ret);

/**
 * cgroup_dir() - the folder of a path; the caller frees it
 */
int cgroup_dir(const char *path, char **ret);

/**
 * cgroup_id() - the number by which the kernel knows it
 *
 * Return: 0; -ENOENT if there is no such cgroup; what the kernel said.
 */
int cgroup_id(const char *path, uint64_t *ret);

/**
 * cgroup_of_pid() - where a process is; the caller frees it
 *
 * Return: 0; -ESRCH if it is gone; -ENODATA on a host without cgroup v2.
 */
int cgroup_of_pid(pid_t pid, char **ret);

/**
 * cgroup_is_inside() - is a path the cgroup @of, or below it?
 */
bool cgroup_is_inside(const char *path, const char *of);

/**
 * cgroup_enter() - make a cgroup below the one a process is in, and move it there
 * @name:	of the new folder
 * @ret_path:	the caller frees it
 *
 * Below its own, so that whatever limits the process had still hold around it.
 *
 * Return: 0, or what the kernel said; the process is then where it was.
 */
int cgroup_enter(pid_t pid, const char *name, char **ret_path);

/**
 * cgroup_move() - move a process into a cgroup that is there
 */
int cgroup_move(pid_t pid, const char *path);

/**
 * cgroup_is_populated() - is there a process in it or below?
 */
bool cgroup_is_populated(const char *path);

/**
 * cgroup_each_pid() - visit the processes in it and below, down to some dozen levels
 *
 * Return: 0, or what the kernel said about the folder.
 */
typedef void (*cgroup_pid_fn)(pid_t pid, void *userdata);
int cgroup_each_pid(const char *path, cgroup_pid_fn fn, void *userdata);

/**
 * cgroup_remove() - take an empty cgroup away that was made for a tenant, and such inside it
 *
 * One that is in use stays, and so does one of a container's runtime.
 */
void cgroup_remove(const char *path);

#endif
