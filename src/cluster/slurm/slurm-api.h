/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slurm's public header, in the words that every release has.
 *
 * hostlist_t is a pointer up to Slurm 23.02 and a struct since 23.11. `struct hostlist *` is the same
 * in all of them.
 */
#ifndef SLURM_SLURM_API_H
#define SLURM_SLURM_API_H

#include "base/base.h"

#include <slurm/slurm.h>

#pragma GCC poison hostlist_t

/*
 * When a job may begin that is to begin at once: slurmctld takes a time that is over for its own now. That of
 * the machine that asks may be ahead, and the job would wait for it.
 */
#define SLURM_API_NOW 1

/** hostlist_of() - the names in "n[1-3],n7", of which there are none in NULL; hostlist_free() ends it */
static inline struct hostlist *hostlist_of(const char *nodes)
{
	return slurm_hostlist_create(nodes ? nodes : "");
}

static inline void hostlist_free(struct hostlist *list)
{
	if (list)
		slurm_hostlist_destroy(list);
}
DEFINE_CLEANUP(struct hostlist *, hostlist_free)

#endif
