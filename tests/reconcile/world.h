/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster that is made up: nodes that fall silent, a Slurm that forgets what it has not saved, users
 * with jobs of their own. It obeys orders as Slurm does.
 */
#ifndef TESTS_RECONCILE_WORLD_H
#define TESTS_RECONCILE_WORLD_H

#include "cluster/reconcile.h"

#define WORLD_NODES    4
#define WORLD_DEVICES  8
#define WORLD_JOBS     512
#define WORLD_SERVICES 6

/**
 * struct world - all of it
 * @silent:	nodes that neither Slurm nor the controller hears; @down: that Slurm has given up as well
 * @cut:	nodes that are cut off from the controller alone: for Slurm, and for those that run, all is well
 * @saved:	jobs that outlive a crash of Slurm, and @saved_id the number that it goes on from
 */
struct world {
	uint64_t random;
	struct placement_device devices[WORLD_DEVICES];
	bool silent[WORLD_NODES];
	bool down[WORLD_NODES];
	bool cut[WORLD_NODES];
	struct reconcile_job jobs[WORLD_JOBS];
	bool saved[WORLD_JOBS];
	size_t n_jobs;
	uint32_t last_id;
	uint32_t saved_id;
	struct reconcile_service services[WORLD_SERVICES];
	size_t n_services;
	uint32_t last_service;
};

/** world_random() - a number below @below; the same history for the same seed everywhere */
uint64_t world_random(struct world *w, uint64_t below);

void world_init(struct world *w, uint64_t seed);

/** world_obey() - an order arrives at Slurm */
void world_obey(struct world *w, const struct reconcile_action *order);

/** world_go_on() - Slurm starts what can start, and ends what is ending */
void world_go_on(struct world *w);

/** world_disturb() - something happens that nobody ordered */
void world_disturb(struct world *w);

struct reconcile_view world_view(struct world *w);

#endif
