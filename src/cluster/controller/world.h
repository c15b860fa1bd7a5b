/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is: the cluster's nodes, devices and jobs as Slurm tells of them, in one pass.
 *
 * Slurm is what says which part of a device is given away, so nothing of this is kept.
 */
#ifndef CLUSTER_WORLD_H
#define CLUSTER_WORLD_H

#include "cluster/controller/service.h"
#include "cluster/nodes.h"
#include "cluster/reconcile.h"
#include "cluster/slurm/inventory.h"

/**
 * struct world_device - beside its placement_device: how Slurm calls it
 */
struct world_device {
	char node[GRES_NAME];
	char type[GRES_NAME];
};

/**
 * struct world_job - beside its reconcile_job
 * @identity:	of an instance's job
 * @n_restarts:	how often Slurm has started it anew
 * @type:	of the device that it asks Slurm for
 * @is_raised:	its node has sent it away, and it asks for more than it was given there
 */
struct world_job {
	struct identity identity;
	uint32_t n_restarts;
	char type[GRES_NAME];
	bool is_raised;
};

/**
 * struct world - all of it; what has the same index belongs together
 * @facts:	of nodes with devices, for who judges their reports
 * @node_jobs:	what has a part of a node, once for each
 */
struct world {
	struct placement_device *devices;
	struct world_device *device_names;
	size_t n_devices;
	struct reconcile_job *jobs;
	struct world_job *job_names;
	size_t n_jobs;
	uint32_t n_nodes;
	struct node_facts *facts;
	size_t n_facts;
	struct node_job *node_jobs;
	size_t n_node_jobs;
};

/**
 * world_load() - ask Slurm
 * @services:	whose compute share and policy is not Slurm's to know; of others' jobs it is in a comment
 * @ret_reason:	filled in on -EIO, a constant
 *
 * Return: 0, -EIO or -ENOMEM.
 */
int world_load(const struct services *services, struct world *ret, const char **ret_reason);

/**
 * world_find_job() - the index of a job, or SIZE_MAX
 */
size_t world_find_job(const struct world *world, uint32_t id);

void world_done(struct world *world);

#endif
