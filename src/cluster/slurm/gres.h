/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic resources as Slurm writes them, in a request, of a node, or of what a job has:
 *
 *	gres:gpu:2,gres:shard:g1:4096		up to Slurm 23.02
 *	gres/gpu:2,gres/shard:g1:4096		since 23.11
 *	gpu:g0:1(S:0),shard:g0:143771(S:0-1,3)
 *	shard:g1:30(IDX:1)
 *
 * All of them are read; a request is written as the Slurm that this was built for wants it, which
 * meson.build finds out and says in GRES_PREFIX.
 */
#ifndef SLURM_GRES_H
#define SLURM_GRES_H

#include "base/base.h"

#include <stdbool.h>

#define GRES_NAME 64

struct text;

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

/**
 * gres_types_are_told() - do programs hear which device they have, by such a GresTypes?
 * @types:	"gpu,mps,shard"
 *
 * Slurm's plugins of devices set a job's variables one after the other, and that of mps, which no job has here, takes
 * away what that of shards has set where it comes later. With Slurm 22.05 it does in any order but this one.
 */
bool gres_types_are_told(const char *types);

/**
 * gres_add_shards() - add shards of one device to a request
 * @type:	the device's; "" for any
 */
void gres_add_shards(struct text *list, const char *type, uint64_t n);

/**
 * gres_shards() - a request for shards of one device; the caller frees it
 *
 * Return: NULL without memory.
 */
char *gres_shards(const char *type, uint64_t n);

#endif
