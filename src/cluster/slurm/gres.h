/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic resources as Slurm writes them, in a request, of a node, or of what a job has:
 *
 *	gres:gpu:2,gres:shard:g1:4096
 *	gpu:g0:1(S:0),shard:g0:143771(S:0-1,3)
 *	shard:g1:30(IDX:1)
 */
#ifndef SLURM_GRES_H
#define SLURM_GRES_H

#include "base/base.h"

#include <stdbool.h>

#define GRES_NAME 64

/**
 * struct gres - one item of such a list
 * @type:	"" where none is said
 * @text:	the item as it stands, not terminated
 * @len:	its length
 */
struct gres {
	char name[GRES_NAME];
	char type[GRES_NAME];
	uint64_t count;
	const char *text;
	size_t len;
};

/**
 * gres_next() - read the next item
 * @list:	where to go on; moved behind the item
 *
 * Return: 1 with an item, 0 at the end, -EINVAL at what is no such list.
 */
int gres_next(const char **list, struct gres *ret);

/**
 * gres_is_device() - is it of a GPU, whole or in part?
 */
bool gres_is_device(const struct gres *gres);

#endif
