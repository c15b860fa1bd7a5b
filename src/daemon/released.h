/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of runs that were released: their processes go on, and nobody looks after the folder that was
 * made for them. It goes when the last of them has ended, whichever daemon is there then.
 */
#ifndef DAEMON_RELEASED_H
#define DAEMON_RELEASED_H

#include "base/base.h"

#include <stddef.h>

/**
 * struct released - their paths
 * @file:	where they are kept, one a line
 */
struct released {
	char *file;
	char **paths;
	size_t n;
};

/**
 * released_init() - with what an earlier daemon has left
 *
 * Return: 0 or -ENOMEM.
 */
int released_init(struct released *released, const char *state_dir);

/**
 * released_add() - one more
 *
 * Return: 0, or why it could not be kept: then it is not waited for.
 */
int released_add(struct released *released, const char *cgroup);

/**
 * released_collect() - take away those that are empty
 */
void released_collect(struct released *released);

void released_done(struct released *released);

#endif
