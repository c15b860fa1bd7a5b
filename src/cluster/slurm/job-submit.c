/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * job_submit_cotenant.so: what slurmctld loads to look at each submission.
 *
 * It turns what a job asks for into shards of one device each, a shard being a MiB and the
 * device being said by the shards' type: --gpu-mem, --gres=shard and, as all shards of whole
 * devices, --gres=gpu, --gpus-per-node and --gpus. So everything that is booked of a device is booked in one currency,
 * which Slurm adds up right; it would hand out a device whole of which parts are in use.
 *
 * slurmctld holds its locks meanwhile: nothing here waits. What is known of the devices is
 * loaded by a thread (watch.c); while nothing is known, requests stay without a type.
 */
#include "cluster/slurm/gpu-request.h"
#include "cluster/slurm/inventory.h"
#include "cluster/slurm/slurm-api.h"
#include "cluster/slurm/watch.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm_errno.h>
#include <stdarg.h>

const char plugin_name[] = "Job submission of Cotenant";
const char plugin_type[] = "job_submit/cotenant";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

int init(void);
void fini(void);
int job_submit(job_desc_msg_t *job, uint32_t uid, char **ret_message);
int job_modify(job_desc_msg_t *job, void *record, uint32_t uid, char **ret_message);

/* slurmctld frees what it is given by its own means. Its public headers do not declare these. */
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **memory);

#define OPTION_PREFIX "_SLURM_SPANK_OPTION_cotenant_"

int init(void)
{
	return watch_start() == 0 ? SLURM_SUCCESS : SLURM_ERROR;
}

void fini(void)
{
	watch_stop();
}

static int refuse(char **ret_message, const char *fmt, ...) PRINTF(2, 3);

static int refuse(char **ret_message, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (ret_message && !*ret_message)
		*ret_message = slurm_xstrdup(text);
	return ESLURM_INVALID_GRES;
}

/* --- what is asked for --- */

static const char *option_value(const job_desc_msg_t *job, const char *name)
{
	const char *rest;
	uint32_t i;

	for (i = 0; i < job->spank_job_env_size; i++) {
		rest = str_after(job->spank_job_env[i], OPTION_PREFIX);
		rest = rest ? str_after(rest, name) : NULL;
		if (rest && *rest == '=')
			return rest + 1;
	}
	return NULL;
}

/* Was it there already? Then what else there is of it is kept out of the new list. */
static int take_device(const struct gres *gres, struct inventory_request *request,
		       char **ret_message)
{
	if (request->shards || request->n_devices)
		return refuse(ret_message, "cotenant: ask for one of --gpu-mem, --gres=gpu:N and "
					   "--gres=shard:N, and once");
	if (str_eq(gres->name, "mps"))
		return refuse(
			ret_message,
			"cotenant: --gres=mps is not offered here: ask by --gpu-mem=SIZE for the "
			"memory and by --gpu-compute=PCT for the part of the device's time");
	if (gres->count == 0)
		return refuse(ret_message, "cotenant: --gres=%s of nothing", gres->name);
	if (str_eq(gres->name, "shard"))
		request->shards = gres->count;
	else
		request->n_devices = gres->count;
	str_copy(request->type, sizeof(request->type), gres->type);
	return SLURM_SUCCESS;
}

/* Reads --gres; what is not of a device goes on to *others. */
static int read_gres(const char *list, struct inventory_request *request, struct text *others,
		     char **ret_message)
{
	struct gres gres;
	int r, refused;

	while ((r = gres_next(&list, &gres)) > 0) {
		if (!gres_is_device(&gres)) {
			text_addf(others, "%s%.*s", others->len ? "," : "", (int)gres.len,
				  gres.text);
			continue;
		}
		refused = take_device(&gres, request, ret_message);
		if (refused != SLURM_SUCCESS)
			return refused;
	}
	return r < 0 ? refuse(ret_message, "cotenant: --gres is not understood") : SLURM_SUCCESS;
}

static bool names_device(const char *list)
{
	struct gres gres;

	while (list && gres_next(&list, &gres) > 0) {
		if (gres_is_device(&gres))
			return true;
	}
	return false;
}

static int read_options(const job_desc_msg_t *job, struct inventory_request *request,
			char **ret_message)
{
	const char *text = option_value(job, "gpu_mem");
	char reason[GPU_REQUEST_REASON];
	struct gpu_request asked = {};

	if (!text)
		return SLURM_SUCCESS;
	if (request->shards || request->n_devices)
		return refuse(ret_message,
			      "cotenant: --gpu-mem and --gres of a device exclude each other");
	if (gpu_request_memory(text, &asked, reason) < 0)
		return refuse(ret_message, "cotenant: --gpu-mem: %s", reason);
	request->shards = asked.low_mib;
	return SLURM_SUCCESS;
}

/* --- what is booked --- */

static bool is_in_list(const char *node, void *userdata)
{
	return slurm_hostlist_find(userdata, node) >= 0;
}

/* Where nothing is known of the devices Slurm chooses one itself. */
static char *untyped(const struct inventory_request *request)
{
	return request->shards ? gres_shards(request->type, request->shards) : NULL;
}

static int book(const job_desc_msg_t *job, struct inventory_request *request, char **ret,
		char **ret_message)
{
	char reason[INVENTORY_REASON];
	_cleanup_(hostlist_freep) struct hostlist *nodes =
		job->req_nodes ? hostlist_of(job->req_nodes) : NULL;
	int r;

	if (nodes) {
		request->allowed = is_in_list;
		request->userdata = nodes;
	}
	r = watch_choose(request, ret, reason);
	if (r == -EAGAIN) {
		*ret = untyped(request);
		if (!*ret)
			return refuse(ret_message, "cotenant: the devices are not known yet: "
						   "submit again in a moment");
	} else if (r < 0) {
		return refuse(ret_message, "cotenant: %s",
			      r == -ENOSPC ? reason : strerrordesc_np(-r));
	}
	return SLURM_SUCCESS;
}

static int set_gres(job_desc_msg_t *job, const char *booked, struct text *others)
{
	_cleanup_free_ char *list = NULL;

	text_addf(others, "%s%s", others->len ? "," : "", booked);
	list = text_take(others);
	if (!list)
		return ESLURM_INVALID_GRES;
	/* The former list is left to slurmctld, which may hold it elsewhere as well. */
	job->tres_per_node = slurm_xstrdup(list);
	return SLURM_SUCCESS;
}

/* Slurm hands the option on to the node alone. The controller of services counts it, too. */
static int note_compute(job_desc_msg_t *job, char **ret_message)
{
	const char *text = option_value(job, "gpu_compute");
	char reason[GPU_REQUEST_REASON], note[COMPUTE_NOTE_SIZE];
	struct gpu_request asked = {};

	if (!text)
		return SLURM_SUCCESS;
	if (gpu_request_compute(text, &asked, reason) < 0)
		return refuse(ret_message, "cotenant: --gpu-compute: %s", reason);
	gpu_request_note_compute(asked.compute_permille, note);
	job->admin_comment = slurm_xstrdup(note);
	return SLURM_SUCCESS;
}

static int look_at(job_desc_msg_t *job, char **ret_message)
{
	_cleanup_(text_done) struct text others = {};
	struct inventory_request request = {};
	_cleanup_free_ char *booked = NULL;
	int r = SLURM_SUCCESS;

	if (names_device(job->tres_per_job) || names_device(job->tres_per_socket) ||
	    names_device(job->tres_per_task))
		return refuse(
			ret_message,
			"cotenant: devices are booked per node here: ask by --gpu-mem=SIZE for a "
			"part of one, or by --gres=gpu:N for whole ones");
	if (job->tres_per_node)
		r = read_gres(job->tres_per_node, &request, &others, ret_message);
	if (r == SLURM_SUCCESS)
		r = read_options(job, &request, ret_message);
	if (r != SLURM_SUCCESS || (!request.shards && !request.n_devices))
		return r;
	r = note_compute(job, ret_message);
	if (r == SLURM_SUCCESS)
		r = book(job, &request, &booked, ret_message);
	return r == SLURM_SUCCESS ? set_gres(job, booked, &others) : r;
}

/* --- --gpus --- */

static bool is_one_or_unsaid(uint32_t n)
{
	return n <= 1 || n == NO_VAL;
}

/*
 * --gpus=N is N devices of the whole job. On one node that is what --gres=gpu:N says, and that is
 * where such a job is put; of several nodes Slurm may give each as many as it likes.
 */
static int gpus_to_node(job_desc_msg_t *job, char **ret_message)
{
	_cleanup_free_ char *list = NULL;

	if (!names_device(job->tres_per_job))
		return SLURM_SUCCESS;
	if (!is_one_or_unsaid(job->min_nodes) || !is_one_or_unsaid(job->max_nodes))
		return refuse(ret_message, "cotenant: --gpus is for jobs of one node: say by "
					   "--gpus-per-node=N how many each is to have");
	/* Those of salloc, and srun itself, would ask for them again for each step, and get none. */
	if (!job->script)
		return refuse(ret_message, "cotenant: --gpus is for sbatch: ask salloc by "
					   "--gres=gpu:N, or by --gpu-mem=SIZE for a part of one");
	list = str_format("%s%s%s", job->tres_per_node ? job->tres_per_node : "",
			  job->tres_per_node ? "," : "", job->tres_per_job);
	if (!list)
		return ESLURM_INVALID_GRES;
	job->tres_per_node = slurm_xstrdup(list);
	job->tres_per_job = NULL;
	job->min_nodes = job->max_nodes = 1;
	return SLURM_SUCCESS;
}

/*
 * sbatch tells the script what it was asked for, and srun there asks for it again: for whole
 * devices, where the job has shards.
 */
static void forget_gpus(job_desc_msg_t *job)
{
	uint32_t i, n = 0;

	for (i = 0; i < job->env_size; i++) {
		if (str_after(job->environment[i], "SLURM_GPUS=") ||
		    str_after(job->environment[i], "SLURM_GPUS_PER_NODE="))
			slurm_xfree((void **)&job->environment[i]);
		else
			job->environment[n++] = job->environment[i];
	}
	job->env_size = n;
}

int job_submit(job_desc_msg_t *job, _unused_ uint32_t uid, char **ret_message)
{
	int r = gpus_to_node(job, ret_message);

	if (r == SLURM_SUCCESS)
		r = look_at(job, ret_message);
	if (r == SLURM_SUCCESS && job->environment)
		forget_gpus(job);
	return r;
}

int job_modify(job_desc_msg_t *job, _unused_ void *record, _unused_ uint32_t uid,
	       char **ret_message)
{
	return look_at(job, ret_message);
}
