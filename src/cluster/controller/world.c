/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cluster/controller/world.h"
#include "cluster/slurm/gpu-request.h"
#include "cluster/slurm/slurm-api.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm_errno.h>

#define UNUSABLE_NODE                                                                              \
	(NODE_STATE_DRAIN | NODE_STATE_NO_RESPOND | NODE_STATE_FAIL | NODE_STATE_MAINT)

static size_t find_device(const struct world *world, const char *node, const char *type)
{
	size_t i;

	for (i = 0; i < world->n_devices; i++) {
		if (str_eq(world->device_names[i].node, node) &&
		    str_eq(world->device_names[i].type, type))
			return i;
	}
	return RECONCILE_NO_DEVICE;
}

static uint32_t find_node(const struct world *world, const char *node)
{
	size_t i;

	for (i = 0; i < world->n_devices; i++) {
		if (str_eq(world->device_names[i].node, node))
			return world->devices[i].node;
	}
	return PLACEMENT_NO_NODE;
}

/* --- nodes --- */

static bool is_usable(const node_info_t *node)
{
	uint32_t base = node->node_state & NODE_STATE_BASE;

	return !(node->node_state & UNUSABLE_NODE) &&
	       (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED ||
		base == NODE_STATE_MIXED);
}

static int add_device(struct world *world, const struct inventory_device *from, bool usable)
{
	struct placement_device *devices =
		reallocarray(world->devices, world->n_devices + 1, sizeof(*devices));
	struct world_device *names;

	if (!devices)
		return -ENOMEM;
	world->devices = devices;
	names = reallocarray(world->device_names, world->n_devices + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	world->device_names = names;
	devices[world->n_devices] = (struct placement_device){ .node = world->n_nodes,
							       .usable = usable,
							       .bookable_mib = from->total };
	str_copy(names[world->n_devices].node, GRES_NAME, from->node);
	str_copy(names[world->n_devices].type, GRES_NAME, from->type);
	world->n_devices++;
	return 0;
}

static int add_facts(struct world *world, const node_info_t *node, const struct inventory *devices)
{
	struct node_facts *facts = reallocarray(world->facts, world->n_facts + 1, sizeof(*facts));
	struct node_facts *new;
	size_t i;

	if (!facts)
		return -ENOMEM;
	world->facts = facts;
	new = &facts[world->n_facts];
	*new = (struct node_facts){ .address = strdup(node->node_addr ? node->node_addr
								      : node->name) };
	if (!new->address)
		return -ENOMEM;
	str_copy(new->name, sizeof(new->name), node->name);
	new->n_devices = MIN(devices->n_devices, (size_t)REPORT_DEVICES);
	for (i = 0; i < new->n_devices; i++)
		new->booked_out_mib[i] = devices->devices[i].total;
	world->n_facts++;
	return 0;
}

/* A device's shards are what of it is for jobs: what is kept back, gres.conf has left out. */
static int add_node(struct world *world, const node_info_t *node)
{
	_cleanup_(inventory_done) struct inventory inventory = {};
	size_t i;
	int r;

	if (!node->name || !node->gres)
		return 0;
	r = inventory_add_node(&inventory, node->name, node->gres);
	for (i = 0; r == 0 && i < inventory.n_devices; i++)
		r = add_device(world, &inventory.devices[i], is_usable(node));
	if (r == 0 && inventory.n_devices)
		r = add_facts(world, node, &inventory);
	world->n_nodes++;
	return r;
}

static int load_nodes(struct world *world)
{
	node_info_msg_t *nodes = NULL;
	uint32_t i;
	int r = 0;

	if (slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	for (i = 0; r == 0 && i < nodes->record_count; i++)
		r = add_node(world, &nodes->node_array[i]);
	slurm_free_node_info_msg(nodes);
	return r;
}

/* --- jobs --- */

/* Return: whether it takes part in anything; those that are over do not. */
static bool state_of(const job_info_t *job, enum reconcile_state *ret)
{
	uint32_t base = job->job_state & JOB_STATE_BASE;

	if (job->job_state & JOB_COMPLETING)
		*ret = RECONCILE_ENDING;
	else if (base == JOB_RUNNING || base == JOB_SUSPENDED)
		*ret = RECONCILE_RUNNING;
	else if (base == JOB_PENDING)
		*ret = job->priority == 0 ? RECONCILE_HELD : RECONCILE_PENDING;
	else
		return false;
	return true;
}

static int add_job(struct world *world, const struct reconcile_job *job,
		   const struct world_job *name)
{
	struct reconcile_job *jobs = reallocarray(world->jobs, world->n_jobs + 1, sizeof(*jobs));
	struct world_job *names;

	if (!jobs)
		return -ENOMEM;
	world->jobs = jobs;
	names = reallocarray(world->job_names, world->n_jobs + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	world->job_names = names;
	jobs[world->n_jobs] = *job;
	names[world->n_jobs++] = *name;
	return 0;
}

/* The device of a list of resources on a node; the memory goes to the job, the device's type to its name. */
static void book_list(const struct world *world, const char *node, const char *list,
		      struct reconcile_job *job, struct world_job *name)
{
	struct gres item;

	while (list && gres_next(&list, &item) > 0) {
		if (!str_eq(item.name, "shard") || item.count == 0)
			continue;
		job->memory_mib = item.count;
		job->device = find_device(world, node, item.type);
		str_copy(name->type, sizeof(name->type), item.type);
	}
}

/*
 * Somebody else's job may be on several nodes and devices: each of them counts, though the job has
 * one entry, so what it has is booked on the devices themselves.
 */
static void count_other(struct world *world, const job_info_t *from)
{
	_cleanup_(hostlist_freep) struct hostlist *nodes = hostlist_of(from->nodes);
	uint32_t permille = gpu_request_noted_compute(from->admin_comment);
	const char *list;
	struct gres item;
	uint32_t i;
	size_t device;
	char *node;

	for (i = 0; nodes && i < from->gres_detail_cnt && (node = slurm_hostlist_shift(nodes));
	     i++) {
		for (list = from->gres_detail_str[i]; list && gres_next(&list, &item) > 0;) {
			device = str_eq(item.name, "shard") ? find_device(world, node, item.type)
							    : RECONCILE_NO_DEVICE;
			if (device != RECONCILE_NO_DEVICE)
				placement_book(&world->devices[device], item.count, permille);
		}
		free(node);
	}
}

/* Restarted since it was given a device, and held: its node has sent it away. */
static bool was_sent_away(const struct reconcile_job *job, const struct world_job *name)
{
	return job->state == RECONCILE_HELD && name->n_restarts > name->identity.n_placed;
}

static void raise_request(const struct service *service, const char *note,
			  struct reconcile_job *job, struct world_job *name)
{
	uint64_t memory_mib = service_raised(service, job->memory_mib, note);

	name->is_raised = memory_mib > job->memory_mib;
	job->memory_mib = memory_mib;
}

static int add_instance(struct world *world, const struct services *services,
			const job_info_t *from, const struct identity *identity,
			enum reconcile_state state)
{
	const struct service *service = service_by_id(services, identity->service);
	const char *node = from->req_nodes ? from->req_nodes : "";
	struct world_job name = { .identity = *identity, .n_restarts = from->restart_cnt };
	struct reconcile_job job = {
		.id = from->job_id,
		.service = identity->service,
		.instance = identity->instance,
		.state = state,
		.device = RECONCILE_NO_DEVICE,
		.compute_permille = service ? service->compute_permille : 0,
		.avoid_node = PLACEMENT_NO_NODE,
	};

	book_list(world, node, from->tres_per_node, &job, &name);
	if (was_sent_away(&job, &name)) {
		job.device = RECONCILE_NO_DEVICE;
		job.avoid_node = find_node(world, node);
		if (service)
			raise_request(service, from->admin_comment, &job, &name);
	}
	return add_job(world, &job, &name);
}

static int add_node_job(struct world *world, uint32_t id, const char *node)
{
	struct node_job *jobs =
		reallocarray(world->node_jobs, world->n_node_jobs + 1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	world->node_jobs = jobs;
	jobs[world->n_node_jobs].id = id;
	str_copy(jobs[world->n_node_jobs++].node, sizeof(jobs->node), node);
	return 0;
}

static int add_to_nodes(struct world *world, const job_info_t *job)
{
	_cleanup_(hostlist_freep) struct hostlist *nodes = hostlist_of(job->nodes);
	char *node;
	int r = 0;

	while (nodes && r == 0 && (node = slurm_hostlist_shift(nodes))) {
		r = add_node_job(world, job->job_id, node);
		free(node);
	}
	return r;
}

static int load_jobs(struct world *world, const struct services *services)
{
	job_info_msg_t *jobs = NULL;
	struct identity identity;
	enum reconcile_state state;
	uint32_t i;
	int r = 0;

	if (slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
		return -EIO;
	for (i = 0; r == 0 && i < jobs->record_count; i++) {
		const job_info_t *job = &jobs->job_array[i];

		if (!state_of(job, &state))
			continue;
		r = add_to_nodes(world, job);
		if (r < 0)
			break;
		/* Anybody may write such a comment; it counts on a job of our own. */
		if (job->user_id == getuid() && job->comment &&
		    identity_parse(job->comment, &identity) == 0)
			r = add_instance(world, services, job, &identity, state);
		else if (state == RECONCILE_RUNNING || state == RECONCILE_ENDING)
			count_other(world, job);
	}
	slurm_free_job_info_msg(jobs);
	return r;
}

int world_load(const struct services *services, struct world *ret, const char **ret_reason)
{
	struct world world = {};
	int r;

	r = load_nodes(&world);
	if (r == 0)
		r = load_jobs(&world, services);
	if (r == -EIO)
		*ret_reason = slurm_strerror(slurm_get_errno());
	if (r < 0)
		world_done(&world);
	else
		*ret = world;
	return r;
}

size_t world_find_job(const struct world *world, uint32_t id)
{
	size_t i;

	for (i = 0; i < world->n_jobs; i++) {
		if (world->jobs[i].id == id)
			return i;
	}
	return SIZE_MAX;
}

void world_done(struct world *world)
{
	size_t i;

	for (i = 0; i < world->n_facts; i++)
		free(world->facts[i].address);
	free(world->facts);
	free(world->node_jobs);
	free(world->devices);
	free(world->device_names);
	free(world->jobs);
	free(world->job_names);
	memset(world, 0, sizeof(*world));
}
