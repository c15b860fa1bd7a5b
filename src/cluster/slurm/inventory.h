/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a cluster, what is booked of them, and which of them a job is booked on.
 *
 * No I/O, no clock: who loads it from Slurm is another's business. A device is a node and a
 * type of shards there (g0, g1 ...), and a shard is a MiB.
 */
#ifndef SLURM_INVENTORY_H
#define SLURM_INVENTORY_H

#include "cluster/slurm/gres.h"

#define INVENTORY_REASON 400

/**
 * struct inventory_device - one device
 * @total:	its shards
 * @used:	of them, by jobs that have it
 */
struct inventory_device {
	char node[GRES_NAME];
	char type[GRES_NAME];
	uint64_t total;
	uint64_t used;
};

/**
 * struct inventory_queue - what jobs wait for that are bound to a type
 */
struct inventory_queue {
	char type[GRES_NAME];
	uint64_t shards;
};

struct inventory {
	struct inventory_device *devices;
	size_t n_devices;
	struct inventory_queue *queues;
	size_t n_queues;
};

/**
 * struct inventory_request - what a job asks for, on each of its nodes
 * @shards:	of one device; 0 for whole devices
 * @n_devices:	whole ones, where @shards is 0
 * @type:	"" for any
 * @allowed:	may this node be taken? NULL where any may
 */
struct inventory_request {
	uint64_t shards;
	uint64_t n_devices;
	char type[GRES_NAME];
	bool (*allowed)(const char *node, void *userdata);
	void *userdata;
};

/**
 * inventory_add_node() - take in a node's resources
 *
 * Return: 0, or -ENOMEM; what is not understood is left out.
 */
int inventory_add_node(struct inventory *inventory, const char *node, const char *gres);

/**
 * inventory_use() - take in what a job has on a node
 */
void inventory_use(struct inventory *inventory, const char *node, const char *gres);

/**
 * inventory_wait() - take in what a job waits for
 */
int inventory_wait(struct inventory *inventory, const char *gres);

/**
 * inventory_choose() - the devices to book, as a list of resources
 * @ret:	"gres/shard:g1:4096"; the caller frees it
 * @reason:	filled in on -ENOSPC: why no device can ever have it
 *
 * Of those with room the one is taken that is left with least, so that large requests find
 * room as well; where none has room, the type for which least is waited.
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int inventory_choose(const struct inventory *inventory, const struct inventory_request *request,
		     char **ret, char reason[INVENTORY_REASON]);

void inventory_done(struct inventory *inventory);

#endif
