/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cluster/controller/orders.h"

#include "cluster/controller/image.h"
#include "cluster/slurm/slurm-api.h"

#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <slurm/slurm_errno.h>
#include <time.h>

#define MAX_VARIABLES 4

static int failed(char words[ORDER_WORDS])
{
	snprintf(words, ORDER_WORDS, "%s", slurm_strerror(slurm_get_errno()));
	return -EIO;
}

static char *shards_on(const struct world *world, size_t device, uint64_t memory_mib)
{
	return gres_shards(world->device_names[device].type, memory_mib);
}

/* --- submitting --- */

/**
 * struct request - the texts of a job that Slurm is asked for
 * @variables:	its environment; options of the plugin reach the node in it
 */
struct request {
	char *name;
	char *script;
	char *gres;
	char comment[IDENTITY_SIZE];
	char *variables[MAX_VARIABLES];
	uint32_t n_variables;
};

static void request_done(struct request *request)
{
	uint32_t i;

	free(request->name);
	free(request->script);
	free(request->gres);
	for (i = 0; i < request->n_variables; i++)
		free(request->variables[i]);
}

static void add_variable(struct request *request, char *variable)
{
	request->variables[request->n_variables++] = variable;
}

static int fill_request(const struct service *service, const struct identity *identity, char *gres,
			struct request *ret)
{
	static const char option[] = "_SLURM_SPANK_OPTION_cotenant_gpu_";
	char percent[QUANTITY_TEXT];
	uint32_t i;
	int r = 0;

	identity_print(identity, ret->comment);
	ret->name = str_format("%s.%" PRIu32, service->name, identity->instance);
	ret->script = *service->image && ret->name
			      ? image_script(service, ret->name)
			      : str_format("#!/bin/sh\n%s\n", service->command);
	ret->gres = gres;
	add_variable(ret,
		     strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
	if (*service->policy)
		add_variable(ret, str_format("%spolicy=%s", option, service->policy));
	if (service->compute_permille)
		add_variable(ret, str_format("%scompute=%s", option,
					     percent_print(service->compute_permille, percent)));
	for (i = 0; i < ret->n_variables; i++)
		r = ret->variables[i] ? r : -ENOMEM;
	return ret->name && ret->script && ret->gres ? r : -ENOMEM;
}

/* Held, so that it runs only once it is seen to be the one job of its instance. */
static int submit_request(const struct world *world, size_t device, struct request *request,
			  uint32_t *ret_job)
{
	submit_response_msg_t *answer = NULL;
	job_desc_msg_t job;

	slurm_init_job_desc_msg(&job);
	job.name = request->name;
	job.script = request->script;
	job.comment = request->comment;
	job.tres_per_node = request->gres;
	job.req_nodes = (char *)world->device_names[device].node;
	job.min_nodes = 1;
	job.max_nodes = 1;
	job.environment = request->variables;
	job.env_size = request->n_variables;
	job.user_id = getuid();
	job.group_id = getgid();
	job.work_dir = (char *)"/";
	job.std_in = (char *)"/dev/null";
	job.std_out = (char *)"/dev/null";
	job.std_err = (char *)"/dev/null";
	job.requeue = 1;
	job.priority = 0;
	if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS)
		return -EIO;
	*ret_job = answer->job_id;
	slurm_free_submit_response_response_msg(answer);
	return 0;
}

static int submit_as(const struct world *world, const struct service *service,
		     const struct identity *identity, size_t device, uint64_t memory_mib,
		     uint32_t *ret_job)
{
	_cleanup_(request_done) struct request request = {};
	int r;

	r = fill_request(service, identity, shards_on(world, device, memory_mib), &request);
	return r < 0 ? r : submit_request(world, device, &request, ret_job);
}

static int submit(const struct world *world, const struct service *service,
		  const struct reconcile_action *action, uint32_t *ret_job, char words[ORDER_WORDS])
{
	const struct world_device *device = &world->device_names[action->device];
	struct identity identity;
	int r;

	r = identity_make(service->id, action->instance, &identity);
	if (r == 0)
		r = submit_as(world, service, &identity, action->device,
			      service_request_mib(service, action->instance), ret_job);
	if (r == -EIO)
		return failed(words);
	snprintf(words, ORDER_WORDS, "held, for %s %s", device->node, device->type);
	return r;
}

/* --- changing --- */

static int release(uint32_t number, char words[ORDER_WORDS])
{
	job_desc_msg_t change;

	slurm_init_job_desc_msg(&change);
	change.job_id = number;
	change.priority = INFINITE;
	change.begin_time = SLURM_API_NOW;
	if (slurm_update_job(&change) != SLURM_SUCCESS)
		return failed(words);
	str_copy(words, ORDER_WORDS, "released");
	return 0;
}

/* That it was moved is written with the place itself, so that both are true or none. */
static int rebind(const struct world *world, size_t index, size_t to)
{
	struct identity identity = world->job_names[index].identity;
	_cleanup_free_ char *gres = shards_on(world, to, world->jobs[index].memory_mib);
	char comment[IDENTITY_SIZE];
	job_desc_msg_t change;

	if (!gres)
		return -ENOMEM;
	identity.n_placed = world->job_names[index].n_restarts;
	identity_print(&identity, comment);
	slurm_init_job_desc_msg(&change);
	change.job_id = world->jobs[index].id;
	change.comment = comment;
	change.req_nodes = (char *)world->device_names[to].node;
	change.tres_per_node = gres;
	return slurm_update_job(&change) == SLURM_SUCCESS ? 0 : -EIO;
}

/*
 * The same request as another job. Both are held until they are seen, and then one is cancelled, should
 * that not happen here.
 */
static int replace(const struct world *world, const struct service *service, size_t index,
		   size_t to, uint32_t *ret_job)
{
	const struct reconcile_job *job = &world->jobs[index];
	struct identity identity = world->job_names[index].identity;
	int r;

	identity.n_placed = 0;
	r = submit_as(world, service, &identity, to, job->memory_mib, ret_job);
	if (r < 0)
		return r;
	return slurm_kill_job(job->id, SIGKILL, 0) == SLURM_SUCCESS ? 0 : -EIO;
}

/*
 * Slurm adds what it is told of another type to what a job asks for already, and lets nobody take that
 * away: such a job would be given both devices. So it keeps its number only on a device of its type.
 */
static int move(const struct world *world, const struct service *service,
		const struct reconcile_action *action, uint32_t *ret_job, char words[ORDER_WORDS])
{
	const struct world_device *device = &world->device_names[action->device];
	size_t index = world_find_job(world, action->job);
	int r;

	if (str_eq(world->job_names[index].type, device->type))
		r = rebind(world, index, action->device);
	else
		r = replace(world, service, index, action->device, ret_job);
	if (r == -EIO)
		return failed(words);
	snprintf(words, ORDER_WORDS, "to %s %s, for %" PRIu64 "M", device->node, device->type,
		 world->jobs[index].memory_mib);
	return r;
}

static int cancel(const struct reconcile_action *action, char words[ORDER_WORDS])
{
	if (slurm_kill_job(action->job, SIGKILL, 0) != SLURM_SUCCESS)
		return failed(words);
	str_copy(words, ORDER_WORDS, reconcile_reason_name(action->reason));
	return 0;
}

int order_send(const struct world *world, const struct service *service,
	       const struct reconcile_action *action, uint32_t *ret_job, char words[ORDER_WORDS])
{
	*ret_job = action->job;
	switch (action->kind) {
	case RECONCILE_SUBMIT:
		return submit(world, service, action, ret_job, words);
	case RECONCILE_RELEASE:
		return release(action->job, words);
	case RECONCILE_MOVE:
		return move(world, service, action, ret_job, words);
	case RECONCILE_CANCEL:
		return cancel(action, words);
	case RECONCILE_WAIT:
		break;
	}
	return 0;
}
