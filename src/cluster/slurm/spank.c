/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spank_cotenant.so: what Slurm loads into sbatch, srun and salloc, and on a node into each
 * job step.
 *
 * At submission it reads the options and refuses what is malformed. At the start of a task it
 * makes the job a tenant of the node's cotenantd, before anything of the job runs; if that
 * cannot be done the task does not start.
 *
 * What a job may have is read from what slurmd itself has put into the step's environment
 * (it overwrites or removes these variables, whatever a user has set): the shards that were
 * booked are the guarantee, not the option, which a client could forge. Of the options only
 * that is taken which takes something from the job.
 */
#include "cluster/slurm/gpu-request.h"
#include "cluster/slurm/slurm-api.h"

#include "api/client.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/spank.h>

SPANK_PLUGIN(cotenant, 1)

#define DEFAULT_SOCKET "/run/cotenant/cotenant.sock"

/* A daemon that is being upgraded is back before this. */
#define WAIT_FOR_DAEMON_MS 10000
#define TRY_EVERY_MS	   100
#define END_WITHIN_MS	   5000

/* A list of the devices of a node, by their UUIDs. */
#define DEVICES_SIZE 4096

static struct gpu_request request;
static char socket_path[108] = DEFAULT_SOCKET;
static char devices[DEVICES_SIZE];

/* --- options --- */

typedef int (*parse_fn)(const char *text, struct gpu_request *request,
			char reason[GPU_REQUEST_REASON]);

static int take(const char *option, const char *text, parse_fn parse)
{
	char reason[GPU_REQUEST_REASON] = "";
	int r = parse(text ? text : "", &request, reason);

	if (r < 0)
		slurm_error("--%s: %s", option, reason);
	return r < 0 ? -1 : 0;
}

static int on_memory(_unused_ int val, const char *text, _unused_ int remote)
{
	return take("gpu-mem", text, gpu_request_memory);
}

static int on_compute(_unused_ int val, const char *text, _unused_ int remote)
{
	return take("gpu-compute", text, gpu_request_compute);
}

static int on_policy(_unused_ int val, const char *text, _unused_ int remote)
{
	return take("gpu-policy", text, gpu_request_policy);
}

static struct spank_option options[] = {
	{ "gpu-mem", "REQUEST[:max=SIZE]",
	  "memory of one GPU that the job is guaranteed (MiB, or with a unit: 4G), and the most it "
	  "may have",
	  1, 0, on_memory },
	{ "gpu-compute", "PCT", "most per cent of the GPU's time that the job may have", 1, 0,
	  on_compute },
	{ "gpu-policy", "STEPS",
	  "what is done when the job holds more than its request: warn, suspend, evict, kill, or "
	  "from one "
	  "to another as in suspend-evict",
	  1, 0, on_policy },
};

/* "%n" is the node's name: several slurmd of one host have a daemon each. */
static int set_socket(const char *pattern)
{
	const char *node = getenv("SLURMD_NODENAME"), *at = strstr(pattern, "%n");
	int n;

	if (at)
		n = snprintf(socket_path, sizeof(socket_path), "%.*s%s%s", (int)(at - pattern),
			     pattern, node ? node : "", at + 2);
	else
		n = snprintf(socket_path, sizeof(socket_path), "%s", pattern);
	return n < (int)sizeof(socket_path) ? 0 : -1;
}

static int read_arguments(int n, char **arguments)
{
	const char *rest;
	int i;

	for (i = 0; i < n; i++) {
		rest = str_after(arguments[i], "socket=");
		if (!rest || set_socket(rest) < 0) {
			slurm_error("cotenant: plugstack.conf: '%s' is not socket=PATH",
				    arguments[i]);
			return -1;
		}
	}
	return 0;
}

int slurm_spank_init(spank_t spank, int n_arguments, char **arguments)
{
	spank_context_t context = spank_context();
	size_t i;

	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
		return 0;
	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			return -1;
	}
	return read_arguments(n_arguments, arguments);
}

/* --- on the node --- */

/*
 * What slurmd has given to this step; 0 where it has nothing of a device. A batch script has
 * the job's devices, any other step its own, and the job's may then come from its client.
 */
static uint64_t step_shards(spank_t spank, char *ret_gpus, int cap)
{
	char text[32];
	uint32_t step = 0;
	uint64_t n = 0;

	if (spank_getenv(spank, "SLURM_SHARDS_ON_NODE", text, sizeof(text)) != ESPANK_SUCCESS ||
	    str_parse_u64(text, &n) < 0)
		return 0;
	spank_get_item(spank, S_JOB_STEPID, &step);
	if (spank_getenv(spank, step == SLURM_BATCH_SCRIPT ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS",
			 ret_gpus, cap) != ESPANK_SUCCESS)
		return 0;
	return n;
}

/* slurmd has given it a part of a device, and does not say of which: then none would be kept to it. */
static bool is_of_unknown_device(spank_t spank)
{
	char text[32], gpus[1024];
	uint32_t step = 0;
	uint64_t n = 0;

	spank_get_item(spank, S_JOB_STEPID, &step);
	return step == SLURM_BATCH_SCRIPT &&
	       spank_getenv(spank, "SLURM_SHARDS_ON_NODE", text, sizeof(text)) == ESPANK_SUCCESS &&
	       str_parse_u64(text, &n) == 0 && n > 0 &&
	       spank_getenv(spank, "SLURM_JOB_GPUS", gpus, sizeof(gpus)) == ESPANK_ENV_NOEXIST;
}

static size_t count_items(const char *list)
{
	size_t n = *list != '\0';

	for (; *list; list++)
		n += *list == ',';
	return n;
}

static json_t *list_of_gpus(const char *gpus)
{
	json_t *list = json_array();
	size_t len;

	for (; *gpus; gpus += len + (gpus[len] == ',')) {
		len = strcspn(gpus, ",");
		json_array_append_new(list, json_stringn(gpus, len));
	}
	return list;
}

static void set_size(json_t *limits, const char *name, uint64_t bytes)
{
	char text[QUANTITY_TEXT];

	json_object_set_new(limits, name, json_string(size_print(bytes, text)));
}

static json_t *limits_of(uint64_t low_mib)
{
	char percent[QUANTITY_TEXT], ladder[LADDER_TEXT];
	json_t *limits = json_object();

	set_size(limits, "memory.low", low_mib * MIB);
	if (request.max_bytes)
		set_size(limits, "memory.max", MAX(request.max_bytes, low_mib * MIB));
	if (request.compute_permille)
		json_object_set_new(limits, "compute.max",
				    json_string(percent_print(request.compute_permille, percent)));
	if (request.has_policy)
		json_object_set_new(limits, "memory.policy",
				    json_string(ladder_print(request.policy, ladder)));
	return limits;
}

static int call_daemon(enum api_method_id method, json_t *args, json_t **ret,
		       struct api_error *error)
{
	uint64_t now = clock_now_ms(CLOCK_MONOTONIC), until = now + WAIT_FOR_DAEMON_MS;
	int r;

	for (;;) {
		*error = (struct api_error){};
		r = api_request_json(socket_path, until - now, method, json_incref(args), ret,
				     error);
		now = clock_now_ms(CLOCK_MONOTONIC);
		if (r == 0 || error->status != 503 || now >= until)
			break;
		usleep(TRY_EVERY_MS * 1000);
	}
	json_decref(args);
	return r;
}

/* The devices by their UUIDs, for the program's environment. */
static void keep_devices(const json_t *reply)
{
	const json_t *list = json_object_get(json_object_get(reply, "tenant"), "gpus");
	size_t i, len = 0;

	devices[0] = '\0';
	for (i = 0; i < json_array_size(list) && len < sizeof(devices); i++)
		len += snprintf(devices + len, sizeof(devices) - len, "%s%s", i ? "," : "",
				json_string_value(json_array_get(list, i)));
}

/* Runs in the process that will become the task, while it is root still. */
int slurm_spank_task_init_privileged(spank_t spank, _unused_ int n_arguments,
				     _unused_ char **arguments)
{
	char gpus[1024] = "";
	uint64_t shards = step_shards(spank, gpus, sizeof(gpus));
	struct api_error error;
	uint32_t job = 0;
	uid_t uid = 0;
	json_t *reply;

	if (!shards && is_of_unknown_device(spank)) {
		slurm_error(
			"cotenant: the job does not start: slurmd does not say which device it has");
		return -1;
	}
	if (!shards)
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return -1;
	/* Whole devices are booked alike, so that each has its part. */
	if (call_daemon(API_JOB_BEGIN,
			json_pack("{s:i, s:I, s:I, s:o, s:o}", "pid", (int)getpid(), "job",
				  (json_int_t)job, "uid", (json_int_t)uid, "limits",
				  limits_of(shards / count_items(gpus)), "gpu", list_of_gpus(gpus)),
			&reply, &error) < 0) {
		slurm_error("cotenant: job %" PRIu32 " does not start: %s", job, error.message);
		return -1;
	}
	keep_devices(reply);
	json_decref(reply);
	return 0;
}

/*
 * Where Slurm hides the other devices from a job, the number that it knows a device by is
 * another one than the driver's. A UUID is the same to both.
 */
int slurm_spank_task_init(spank_t spank, _unused_ int n_arguments, _unused_ char **arguments)
{
	char visible[DEVICES_SIZE];

	if (*devices &&
	    spank_getenv(spank, "CUDA_VISIBLE_DEVICES", visible, sizeof(visible)) ==
		    ESPANK_SUCCESS &&
	    count_items(visible) == count_items(devices))
		spank_setenv(spank, "CUDA_VISIBLE_DEVICES", devices, /* overwrite= */ 1);
	return 0;
}

/* The tenant would go a moment later by itself; this way its devices are free when the job is over.
 */
int slurm_spank_exit(spank_t spank, _unused_ int n_arguments, _unused_ char **arguments)
{
	struct api_error error = {};
	char gpus[1024], name[32];
	uint32_t job = 0;
	json_t *reply;

	if (spank_context() != S_CTX_REMOTE || !step_shards(spank, gpus, sizeof(gpus)) ||
	    spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return 0;
	snprintf(name, sizeof(name), "job-%" PRIu32, job);
	if (api_request_json(socket_path, END_WITHIN_MS, API_RUN_END,
			     json_pack("{s:s}", "tenant", name), &reply, &error) == 0)
		json_decref(reply);
	return 0;
}
