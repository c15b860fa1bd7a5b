/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurmctld is asked by its own public calls, as any client would: it holds its locks while a
 * submission is looked at, so that it could not be asked then, and its structures are not for
 * plugins to read.
 *
 * What was chosen a moment ago may not be in the answer yet, so it counts as waited for until
 * an answer that was asked for later is there.
 */
#include "cluster/slurm/watch.h"
#include "cluster/slurm/slurm-api.h"

#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define LOAD_EVERY_S 5
/* Of many submissions in a row the first asks for all. */
#define LOAD_AFTER_US 200000

static struct {
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wanted;
	struct inventory known;
	bool is_known;
	bool is_untold; /* whatever is chosen, jobs do not hear of it */
	bool is_stopped;
	bool is_wanted;
	char **fresh; /* chosen since the last answer was asked for */
	size_t n_fresh;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER };

/* --- loading --- */

static int load_nodes(struct inventory *inventory)
{
	node_info_msg_t *nodes = NULL;
	uint32_t i;
	int r = 0;

	if (slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	for (i = 0; r == 0 && i < nodes->record_count; i++) {
		if (nodes->node_array[i].name && nodes->node_array[i].gres)
			r = inventory_add_node(inventory, nodes->node_array[i].name,
					       nodes->node_array[i].gres);
	}
	slurm_free_node_info_msg(nodes);
	return r;
}

static int load_types(bool *ret_untold)
{
	slurm_conf_t *conf = NULL;

	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return -EIO;
	*ret_untold = conf->gres_plugins && !gres_types_are_told(conf->gres_plugins);
	slurm_free_ctl_conf(conf);
	return 0;
}

static void use_of_job(struct inventory *inventory, const job_info_t *job)
{
	_cleanup_(hostlist_freep) struct hostlist *nodes = hostlist_of(job->nodes);
	uint32_t i;
	char *node;

	for (i = 0; nodes && i < job->gres_detail_cnt && (node = slurm_hostlist_shift(nodes));
	     i++) {
		if (job->gres_detail_str[i])
			inventory_use(inventory, node, job->gres_detail_str[i]);
		free(node);
	}
}

static int load_jobs(struct inventory *inventory)
{
	job_info_msg_t *jobs = NULL;
	uint32_t i;
	int r = 0;

	if (slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
		return -EIO;
	for (i = 0; r == 0 && i < jobs->record_count; i++) {
		const job_info_t *job = &jobs->job_array[i];
		uint32_t state = job->job_state & JOB_STATE_BASE;

		if (state == JOB_RUNNING || state == JOB_SUSPENDED)
			use_of_job(inventory, job);
		else if (state == JOB_PENDING && job->tres_per_node)
			r = inventory_wait(inventory, job->tres_per_node);
	}
	slurm_free_job_info_msg(jobs);
	return r;
}

/* What was chosen while an answer was on its way is not in it. */
static void take_answer(struct inventory *now, bool is_untold, size_t n_before)
{
	size_t i;

	inventory_done(&watch.known);
	watch.known = *now;
	watch.is_known = true;
	watch.is_untold = is_untold;
	for (i = 0; i < watch.n_fresh; i++) {
		if (i >= n_before)
			inventory_wait(&watch.known, watch.fresh[i]);
		else
			free(watch.fresh[i]);
	}
	watch.n_fresh -= n_before;
	memmove(watch.fresh, watch.fresh + n_before, watch.n_fresh * sizeof(*watch.fresh));
}

/* Called with the lock held, which is let go while slurmctld is asked. */
static void load(void)
{
	struct inventory now = {};
	size_t n_before = watch.n_fresh;
	bool is_untold = false;
	int r;

	pthread_mutex_unlock(&watch.lock);
	r = load_types(&is_untold);
	if (r == 0)
		r = load_nodes(&now);
	if (r == 0)
		r = load_jobs(&now);
	pthread_mutex_lock(&watch.lock);
	if (r == 0)
		take_answer(&now, is_untold, n_before);
	else
		inventory_done(&now);
}

static void wait_for_need(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += watch.is_known ? LOAD_EVERY_S : 1;
	if (!watch.is_wanted && !watch.is_stopped)
		pthread_cond_clockwait(&watch.wanted, &watch.lock, CLOCK_MONOTONIC, &until);
	if (!watch.is_wanted || watch.is_stopped)
		return;
	pthread_mutex_unlock(&watch.lock);
	usleep(LOAD_AFTER_US);
	pthread_mutex_lock(&watch.lock);
}

static void *load_again_and_again(_unused_ void *unused)
{
	pthread_mutex_lock(&watch.lock);
	while (!watch.is_stopped) {
		watch.is_wanted = false;
		load();
		wait_for_need();
	}
	pthread_mutex_unlock(&watch.lock);
	return NULL;
}

int watch_start(void)
{
	pthread_t thread;
	int r;

	watch.is_stopped = false;
	r = pthread_create(&thread, NULL, load_again_and_again, NULL);
	if (r == 0)
		pthread_detach(thread);
	return -r;
}

void watch_stop(void)
{
	pthread_mutex_lock(&watch.lock);
	watch.is_stopped = true;
	pthread_cond_signal(&watch.wanted);
	pthread_mutex_unlock(&watch.lock);
}

/* --- choosing --- */

static int keep_fresh(const char *chosen)
{
	char **fresh = reallocarray(watch.fresh, watch.n_fresh + 1, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	watch.fresh = fresh;
	fresh[watch.n_fresh] = strdup(chosen);
	if (!fresh[watch.n_fresh])
		return -ENOMEM;
	watch.n_fresh++;
	return inventory_wait(&watch.known, chosen);
}

int watch_choose(const struct inventory_request *request, char **ret, char reason[INVENTORY_REASON])
{
	int r = -EAGAIN;

	pthread_mutex_lock(&watch.lock);
	if (watch.is_known && watch.is_untold) {
		snprintf(
			reason, INVENTORY_REASON,
			"no job is told its device: in slurm.conf GresTypes is to be gpu,mps,shard, "
			"in this order, or without mps");
		r = -ENOSPC;
	} else if (watch.is_known)
		r = inventory_choose(&watch.known, request, ret, reason);
	if (r == 0)
		r = keep_fresh(*ret);
	watch.is_wanted = true;
	pthread_cond_signal(&watch.wanted);
	pthread_mutex_unlock(&watch.lock);
	return r;
}
