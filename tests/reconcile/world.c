/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

uint64_t world_random(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 11) % below;
}

static uint64_t device_mib(size_t device)
{
	return (1 + device % 3) * 16384;
}

void world_init(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->random = seed * 0x9e3779b97f4a7c15 + 1;
	for (size_t i = 0; i < WORLD_DEVICES; i++)
		w->devices[i] =
			(struct placement_device){ i % WORLD_NODES, true,
						   placement_bookable_mib(device_mib(i)), 0, 0 };
}

struct reconcile_view world_view(struct world *w)
{
	for (size_t i = 0; i < WORLD_DEVICES; i++)
		w->devices[i].usable =
			!w->silent[w->devices[i].node] && !w->cut[w->devices[i].node];
	return (struct reconcile_view){ w->services, w->n_services, w->jobs,	w->n_jobs,
					w->devices,  WORLD_DEVICES, WORLD_NODES };
}

static void job_remove(struct world *w, size_t i)
{
	w->n_jobs--;
	w->jobs[i] = w->jobs[w->n_jobs];
	w->saved[i] = w->saved[w->n_jobs];
}

static struct reconcile_job *job_find(struct world *w, uint32_t id)
{
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].id == id)
			return &w->jobs[i];
	return NULL;
}

static bool is_allocated(const struct reconcile_job *job)
{
	return job->state == RECONCILE_RUNNING || job->state == RECONCILE_ENDING;
}

/* --- orders --- */

static void job_submit(struct world *w, const struct reconcile_action *order)
{
	const struct reconcile_service *service = NULL;

	for (size_t i = 0; i < w->n_services; i++)
		if (w->services[i].id == order->service)
			service = &w->services[i];
	if (!service || w->n_jobs == WORLD_JOBS)
		return;
	w->saved[w->n_jobs] = false;
	w->jobs[w->n_jobs++] = (struct reconcile_job){
		++w->last_id,  order->service,	    order->instance,	       RECONCILE_HELD,
		order->device, service->memory_mib, service->compute_permille, PLACEMENT_NO_NODE,
	};
}

static void job_cancel(struct world *w, struct reconcile_job *job)
{
	if (is_allocated(job))
		job->state = RECONCILE_ENDING;
	else
		job_remove(w, job - w->jobs);
}

/*
 * A device of another type is another job's: both are there where whoever orders it dies between the two
 * orders that it takes.
 */
static void job_move(struct world *w, struct reconcile_job *job, size_t device)
{
	if (job->device != RECONCILE_NO_DEVICE && device % 2 == job->device % 2) {
		job->device = device;
		return;
	}
	if (w->n_jobs == WORLD_JOBS)
		return;
	w->saved[w->n_jobs] = false;
	w->jobs[w->n_jobs] = *job;
	w->jobs[w->n_jobs].id = ++w->last_id;
	w->jobs[w->n_jobs].avoid_node = PLACEMENT_NO_NODE;
	w->jobs[w->n_jobs++].device = device;
	if (world_random(w, 8))
		job_cancel(w, job);
}

void world_obey(struct world *w, const struct reconcile_action *order)
{
	struct reconcile_job *job = job_find(w, order->job);

	if (order->kind == RECONCILE_SUBMIT)
		job_submit(w, order);
	if (!job)
		return;
	if (order->kind == RECONCILE_CANCEL)
		job_cancel(w, job);
	else if (job->state == RECONCILE_HELD && order->kind == RECONCILE_RELEASE)
		job->state = RECONCILE_PENDING;
	else if (job->state == RECONCILE_HELD && order->kind == RECONCILE_MOVE)
		job_move(w, job, order->device);
}

/* --- Slurm --- */

/* Slurm knows of memory only, as shards; compute and the reserve are ours. */
static bool slurm_has_room(const struct world *w, size_t device, uint64_t memory_mib)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].device == device && is_allocated(&w->jobs[i]))
			taken += w->jobs[i].memory_mib;
	return taken + memory_mib <= device_mib(device);
}

void world_go_on(struct world *w)
{
	for (size_t i = w->n_jobs; i-- > 0;) {
		struct reconcile_job *job = &w->jobs[i];
		bool silent = job->device != RECONCILE_NO_DEVICE &&
			      w->silent[w->devices[job->device].node];

		if (silent)
			continue;
		if (job->state == RECONCILE_ENDING)
			job_remove(w, i);
		else if (job->state == RECONCILE_PENDING &&
			 slurm_has_room(w, job->device, job->memory_mib))
			job->state = RECONCILE_RUNNING;
	}
}

static void slurm_save(struct world *w)
{
	for (size_t i = 0; i < w->n_jobs; i++)
		w->saved[i] = true;
	w->saved_id = w->last_id;
}

/* Jobs that were not saved are forgotten, what of them ran is ended, and their numbers are given again. */
static void slurm_crash(struct world *w)
{
	for (size_t i = w->n_jobs; i-- > 0;)
		if (!w->saved[i])
			job_remove(w, i);
	w->last_id = w->saved_id;
}

/* Slurm has waited long enough for a node; by then that has ended what ran there, see the lease. */
static void node_give_up(struct world *w, uint32_t node)
{
	w->silent[node] = w->down[node] = true;
	for (size_t i = w->n_jobs; i-- > 0;) {
		struct reconcile_job *job = &w->jobs[i];

		if (job->device == RECONCILE_NO_DEVICE || w->devices[job->device].node != node)
			continue;
		if (job->state == RECONCILE_ENDING)
			job_remove(w, i);
		else if (job->state == RECONCILE_RUNNING)
			job->state = RECONCILE_PENDING;
	}
}

static void node_return(struct world *w, uint32_t node)
{
	w->silent[node] = w->down[node] = w->cut[node] = false;
}

/* --- what nobody ordered --- */

static void some_job_ends(struct world *w)
{
	size_t i = w->n_jobs ? world_random(w, w->n_jobs) : 0;

	if (i < w->n_jobs && w->jobs[i].state == RECONCILE_RUNNING)
		w->jobs[i].state = RECONCILE_ENDING;
}

/* Requeued and held, to go on elsewhere. */
static void some_job_is_evicted(struct world *w)
{
	size_t i = w->n_jobs ? world_random(w, w->n_jobs) : 0;
	struct reconcile_job *job = &w->jobs[i];

	if (i >= w->n_jobs || job->state != RECONCILE_RUNNING || !job->service)
		return;
	job->state = RECONCILE_HELD;
	job->avoid_node = w->devices[job->device].node;
	job->device = RECONCILE_NO_DEVICE;
}

static void some_user_submits(struct world *w)
{
	size_t device = world_random(w, WORLD_DEVICES);
	uint64_t memory_mib = world_random(w, 8192);

	if (w->n_jobs == WORLD_JOBS || w->silent[w->devices[device].node] ||
	    !slurm_has_room(w, device, memory_mib))
		return;
	w->saved[w->n_jobs] = false;
	w->jobs[w->n_jobs++] = (struct reconcile_job){
		++w->last_id, 0, 0, RECONCILE_RUNNING, device, memory_mib, 0, PLACEMENT_NO_NODE,
	};
}

static void service_change(struct world *w, struct reconcile_service *service)
{
	service->n_replicas = world_random(w, 5);
	service->priority = world_random(w, 3);
	service->memory_mib = 1 + world_random(w, 20000);
	service->compute_permille = world_random(w, 700);
	service->order = world_random(w, 3);
}

static void some_service_changes(struct world *w)
{
	size_t i = world_random(w, WORLD_SERVICES);

	if (i >= w->n_services) {
		i = w->n_services++;
		w->services[i] = (struct reconcile_service){ .id = ++w->last_service };
	} else if (world_random(w, 4) == 0) {
		w->services[i] = w->services[--w->n_services];
		return;
	}
	service_change(w, &w->services[i]);
}

void world_disturb(struct world *w)
{
	uint32_t node = world_random(w, WORLD_NODES);

	switch (world_random(w, 10)) {
	case 0:
		some_service_changes(w);
		break;
	case 1:
		some_job_ends(w);
		break;
	case 2:
		some_job_is_evicted(w);
		break;
	case 3:
		some_user_submits(w);
		break;
	case 4:
		slurm_crash(w);
		break;
	case 5:
	case 6:
		slurm_save(w);
		break;
	case 7:
		if (world_random(w, 2))
			w->silent[node] = true;
		else
			w->cut[node] = true;
		break;
	case 8:
		if (w->silent[node] && world_random(w, 3) == 0)
			node_give_up(w, node);
		break;
	default:
		node_return(w, node);
	}
}
