/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the kernel's hierarchies of cgroups are mounted.
 */
#ifndef BASE_MOUNTS_H
#define BASE_MOUNTS_H

#include "base/base.h"

/**
 * mounts_find_cgroup() - the folder of a hierarchy; the caller frees it
 * @controller:	of a v1 hierarchy, as in "freezer"; NULL for the v2 hierarchy
 *
 * Return: 0, or -ENODATA where there is none.
 */
int mounts_find_cgroup(const char *controller, char **ret);

#endif
