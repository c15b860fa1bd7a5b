/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cotenant-cluster: services that are kept running as jobs of Slurm.
 *
 * All verbs but `run` may be used whether a controller runs or not: services are in a file, and
 * what there is of them is asked of Slurm.
 */
#include "cluster/controller/image.h"
#include "cluster/controller/keep.h"
#include "cluster/controller/world.h"
#include "cluster/slurm/gpu-request.h"
#include "cluster/slurm/slurm-api.h"

#include "base/log.h"
#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <time.h>

#define DEFAULT_STATE	  "/var/lib/cotenant/cluster.db"
#define DEFAULT_INTERVAL  "1s"
#define DEFAULT_SETTLE	  "10s"
#define DEFAULT_LEASE	  "10s"
#define DEFAULT_SILENT	  "15s" /* three reports of one every five seconds */
#define DEFAULT_PRIORITY  "100"
#define MAX_REPLICAS	  10000
#define N_SHOWN_ORDERS	  100
#define N_SHOWN_INCIDENTS 100

enum option_id {
	OPTION_STATE,
	OPTION_INTERVAL,
	OPTION_SETTLE,
	OPTION_LEASE,
	OPTION_LISTEN,
	OPTION_SILENT,
	OPTION_MUNGE,
	OPTION_IMAGE,
	OPTION_REPLICAS,
	OPTION_MEMORY,
	OPTION_RAISE,
	OPTION_COMPUTE,
	OPTION_POLICY,
	OPTION_PRIORITY,
	OPTION_PLACEMENT,
	N_OPTIONS,
};

static const struct option table[] = {
	[OPTION_STATE] = { "state", required_argument, NULL, OPTION_STATE },
	[OPTION_INTERVAL] = { "interval", required_argument, NULL, OPTION_INTERVAL },
	[OPTION_SETTLE] = { "settle", required_argument, NULL, OPTION_SETTLE },
	[OPTION_LEASE] = { "lease", required_argument, NULL, OPTION_LEASE },
	[OPTION_LISTEN] = { "listen", required_argument, NULL, OPTION_LISTEN },
	[OPTION_SILENT] = { "silent", required_argument, NULL, OPTION_SILENT },
	[OPTION_MUNGE] = { "munge-socket", required_argument, NULL, OPTION_MUNGE },
	[OPTION_IMAGE] = { "image", required_argument, NULL, OPTION_IMAGE },
	[OPTION_REPLICAS] = { "replicas", required_argument, NULL, OPTION_REPLICAS },
	[OPTION_MEMORY] = { "gpu-mem", required_argument, NULL, OPTION_MEMORY },
	[OPTION_RAISE] = { "gpu-raise", required_argument, NULL, OPTION_RAISE },
	[OPTION_COMPUTE] = { "gpu-compute", required_argument, NULL, OPTION_COMPUTE },
	[OPTION_POLICY] = { "gpu-policy", required_argument, NULL, OPTION_POLICY },
	[OPTION_PRIORITY] = { "priority", required_argument, NULL, OPTION_PRIORITY },
	[OPTION_PLACEMENT] = { "placement", required_argument, NULL, OPTION_PLACEMENT },
	[N_OPTIONS] = {},
};

/* --- set --- */

static int read_number(const char *name, const char *text, uint64_t most, uint32_t *ret)
{
	uint64_t n;

	if (str_parse_u64(text, &n) < 0 || n > most)
		return log_err(-EINVAL, "--%s: '%s' is not a number up to %" PRIu64, name, text,
			       most);
	*ret = n;
	return 0;
}

static int read_request(const char *const values[N_OPTIONS], struct service *service)
{
	char reason[GPU_REQUEST_REASON];
	struct gpu_request request = {};

	if (!values[OPTION_MEMORY])
		return log_err(-EINVAL, "say how much memory an instance needs: --gpu-mem");
	if (gpu_request_memory(values[OPTION_MEMORY], &request, reason) < 0)
		return log_err(-EINVAL, "--gpu-mem: %s", reason);
	if (request.max_bytes)
		return log_err(-EINVAL, "--gpu-mem: a service has no max");
	if (values[OPTION_COMPUTE] &&
	    gpu_request_compute(values[OPTION_COMPUTE], &request, reason) < 0)
		return log_err(-EINVAL, "--gpu-compute: %s", reason);
	if (values[OPTION_POLICY] &&
	    gpu_request_policy(values[OPTION_POLICY], &request, reason) < 0)
		return log_err(-EINVAL, "--gpu-policy: %s", reason);
	service->memory_mib = request.low_mib;
	service->compute_permille = request.compute_permille;
	if (values[OPTION_POLICY])
		str_copy(service->policy, sizeof(service->policy), values[OPTION_POLICY]);
	return 0;
}

/* Up to what the request may be raised; more than an instance asks for to begin with. */
static int read_raise(const char *text, struct service *service)
{
	char reason[GPU_REQUEST_REASON];
	struct gpu_request request = {};

	if (!text)
		return 0;
	if (gpu_request_memory(text, &request, reason) < 0)
		return log_err(-EINVAL, "--gpu-raise: %s", reason);
	if (request.max_bytes || request.low_mib <= service->memory_mib)
		return log_err(-EINVAL, "--gpu-raise: '%s' is not a size above --gpu-mem", text);
	service->raise_mib = request.low_mib;
	return 0;
}

static int read_image(const char *image, struct service *service)
{
	if (!image)
		return 0;
	if (!image_is_name(image))
		return log_err(-EINVAL, "--image: '%s' cannot be an image's name", image);
	str_copy(service->image, sizeof(service->image), image);
	return 0;
}

static int read_service(const char *const values[N_OPTIONS], const char *name, char *command,
			struct service *ret)
{
	const char *replicas = values[OPTION_REPLICAS] ? values[OPTION_REPLICAS] : "1";
	const char *priority = values[OPTION_PRIORITY] ? values[OPTION_PRIORITY] : DEFAULT_PRIORITY;
	const char *placement = values[OPTION_PLACEMENT] ? values[OPTION_PLACEMENT] : "binpack";
	int r;

	*ret = (struct service){ .command = command };
	/* A dot goes before the number of an instance. */
	if (!str_is_name(name) || strchr(name, '.') ||
	    !str_copy(ret->name, sizeof(ret->name), name))
		return log_err(-EINVAL, "'%s' cannot be a service's name", name);
	if (service_order_parse(placement, &ret->order) < 0)
		return log_err(-EINVAL, "--placement: '%s' is not binpack, spread or spread-nodes",
			       placement);
	r = read_number("replicas", replicas, MAX_REPLICAS, &ret->n_replicas);
	if (r == 0)
		r = read_number("priority", priority, UINT32_MAX, &ret->priority);
	if (r == 0)
		r = read_image(values[OPTION_IMAGE], ret);
	if (r == 0)
		r = read_request(values, ret);
	return r < 0 ? r : read_raise(values[OPTION_RAISE], ret);
}

static int verb_set(struct store *store, const char *const values[N_OPTIONS], int n, char **words)
{
	bool needs_command = !values[OPTION_IMAGE];
	char nothing[] = "";
	struct service service;

	if (n > 2 || n < 1 + needs_command)
		return log_err(
			-EINVAL,
			"set NAME COMMAND: the command is one word, a line for a shell; an image "
			"may have its own");
	if (read_service(values, words[0], n > 1 ? words[1] : nothing, &service) < 0)
		return -EINVAL;
	if (store_put(store, &service) < 0)
		return log_err(-EIO, "cannot write %s: %s", service.name, store_reason(store));
	return 0;
}

static int verb_remove(struct store *store, _unused_ const char *const values[N_OPTIONS], int n,
		       char **words)
{
	int r;

	if (n != 1)
		return log_err(-EINVAL, "remove NAME");
	r = store_remove(store, words[0]);
	if (r < 0)
		return log_err(r, "cannot remove %s: %s", words[0], store_reason(store));
	return r ? 0 : log_err(-ENOENT, "there is no service '%s'", words[0]);
}

/* --- list, explain --- */

struct picture {
	struct services services;
	struct world world;
};

static void picture_done(struct picture *picture)
{
	services_done(&picture->services);
	world_done(&picture->world);
}

/* As the controller has seen it: what nodes report, they report to it. */
static int put_silent_out_of_use(struct store *store, struct world *world)
{
	_cleanup_free_ struct store_node *nodes = NULL;
	size_t n = 0, i, j;
	int r;

	r = store_nodes(store, &nodes, &n);
	for (i = 0; r == 0 && i < world->n_devices; i++) {
		for (j = 0; j < n; j++)
			if (nodes[j].is_silent &&
			    str_eq(nodes[j].name, world->device_names[i].node))
				world->devices[i].usable = false;
	}
	return r;
}

static int picture_load(struct store *store, struct picture *ret)
{
	const char *reason = NULL;
	int r;

	r = store_services(store, &ret->services);
	if (r < 0)
		return log_err(r, "cannot read the services: %s", store_reason(store));
	r = world_load(&ret->services, &ret->world, &reason);
	if (r < 0)
		return log_err(r, "Slurm does not answer: %s", reason ? reason : "no memory");
	r = put_silent_out_of_use(store, &ret->world);
	return r < 0 ? log_err(r, "cannot read the nodes: %s", store_reason(store)) : 0;
}

static const char *const state_names[] = {
	[RECONCILE_HELD] = "held",
	[RECONCILE_PENDING] = "pending",
	[RECONCILE_RUNNING] = "running",
	[RECONCILE_ENDING] = "ending",
};

static const struct reconcile_job *job_of(const struct picture *picture, uint32_t service,
					  uint32_t instance)
{
	size_t i;

	for (i = 0; i < picture->world.n_jobs; i++) {
		const struct reconcile_job *job = &picture->world.jobs[i];

		if (job->service == service && job->instance == instance)
			return job;
	}
	return NULL;
}

static void show_instance(const struct picture *picture, const struct service *service,
			  uint32_t instance)
{
	const struct reconcile_job *job = job_of(picture, service->id, instance);
	const struct world_device *device = job && job->device != RECONCILE_NO_DEVICE
						    ? &picture->world.device_names[job->device]
						    : NULL;

	printf("%s.%" PRIu32 "\t%" PRIu64 "M\t", service->name, instance,
	       job ? job->memory_mib : service_request_mib(service, instance));
	if (job)
		printf("%s\tjob %" PRIu32 "\t%s %s\n", state_names[job->state], job->id,
		       device ? device->node : "-", device ? device->type : "");
	else
		printf("waiting\n");
}

static int verb_list(struct store *store, _unused_ const char *const values[N_OPTIONS],
		     _unused_ int n, _unused_ char **words)
{
	_cleanup_(picture_done) struct picture picture = {};
	uint32_t instance;
	size_t i;
	int r;

	r = picture_load(store, &picture);
	for (i = 0; r == 0 && i < picture.services.n; i++) {
		for (instance = 0; instance < picture.services.items[i].n_replicas; instance++)
			show_instance(&picture, &picture.services.items[i], instance);
	}
	return r;
}

static void book_jobs(struct world *world)
{
	size_t i;

	for (i = 0; i < world->n_jobs; i++) {
		const struct reconcile_job *job = &world->jobs[i];

		if (job->device != RECONCILE_NO_DEVICE)
			placement_book(&world->devices[job->device], job->memory_mib,
				       job->compute_permille);
	}
}

static void explain_devices(struct picture *picture, const struct service *service,
			    uint32_t instance, const struct reconcile_job *job)
{
	struct placement_request request = { job ? job->memory_mib
						 : service_request_mib(service, instance),
					     service->compute_permille, service->order,
					     job ? job->avoid_node : PLACEMENT_NO_NODE, NULL };
	struct world *world = &picture->world;
	char text[200];
	size_t i;

	book_jobs(world);
	for (i = 0; i < world->n_devices; i++) {
		placement_explain(&world->devices[i], &request, text, sizeof(text));
		printf("  %s %s: %s\n", world->device_names[i].node, world->device_names[i].type,
		       text);
	}
}

static int explain(struct picture *picture, const struct service *service, uint32_t instance)
{
	const struct reconcile_job *job = job_of(picture, service->id, instance);

	show_instance(picture, service, instance);
	if (!job || job->device == RECONCILE_NO_DEVICE)
		explain_devices(picture, service, instance, job);
	return 0;
}

/* NAME, which is its first instance, or NAME.NUMBER */
static int verb_explain(struct store *store, _unused_ const char *const values[N_OPTIONS], int n,
			char **words)
{
	_cleanup_(picture_done) struct picture picture = {};
	const struct service *service;
	uint64_t instance = 0;
	char *dot;
	int r;

	if (n != 1)
		return log_err(-EINVAL, "explain NAME.NUMBER");
	dot = strchr(words[0], '.');
	if (dot)
		*dot = '\0';
	r = picture_load(store, &picture);
	if (r < 0)
		return r;
	service = service_find(&picture.services, words[0]);
	if (!service || (dot && str_parse_u64(dot + 1, &instance) < 0) ||
	    instance >= service->n_replicas)
		return log_err(-ENOENT, "there is no such instance of '%s'", words[0]);
	return explain(&picture, service, instance);
}

/* --- nodes --- */

static void show_node(const struct store_node *node)
{
	/* A clock that was set back says that it was in the future. */
	uint64_t now_s = MAX((uint64_t)time(NULL), node->heard_s);

	printf("%s\t%s\t", node->name, node->is_silent ? "silent" : "reports");
	if (node->heard_s)
		printf("%" PRIu64 " s ago", now_s - node->heard_s);
	else
		printf("never");
	printf("%s%s\n", *node->refused ? "\trefused: " : "", node->refused);
}

static int verb_nodes(struct store *store, _unused_ const char *const values[N_OPTIONS],
		      _unused_ int n, _unused_ char **words)
{
	_cleanup_free_ struct store_node *nodes = NULL;
	size_t n_nodes = 0, i;
	int r;

	r = store_nodes(store, &nodes, &n_nodes);
	if (r < 0)
		return log_err(r, "cannot read the nodes: %s", store_reason(store));
	for (i = 0; i < n_nodes; i++)
		show_node(&nodes[i]);
	return 0;
}

/* --- incidents --- */

static void show_incident(const struct store_incident *from)
{
	const struct report_incident *i = &from->incident;
	char request[QUANTITY_TEXT], peak[QUANTITY_TEXT], when[32];
	time_t begun = i->begun_s;
	struct tm tm;

	strftime(when, sizeof(when), "%F %T", localtime_r(&begun, &tm));
	printf("%s\t%s\t%s\tasked for %s, held %s\t%s%s\n", when, from->node, i->tenant,
	       size_print_short(i->request_bytes, request), size_print_short(i->peak_bytes, peak),
	       i->state, i->ended_s ? "" : ", goes on");
}

static int verb_incidents(struct store *store, _unused_ const char *const values[N_OPTIONS],
			  _unused_ int n, _unused_ char **words)
{
	if (store_each_incident(store, N_SHOWN_INCIDENTS, show_incident) < 0)
		return log_err(-EIO, "cannot read the incidents: %s", store_reason(store));
	return 0;
}

/* --- log --- */

static void show_order(const char *when, const char *order, const char *instance, const char *job,
		       const char *words)
{
	printf("%s\t%s\t%s\tjob %s\t%s\n", when, order, instance, job, words);
}

static int verb_log(struct store *store, _unused_ const char *const values[N_OPTIONS],
		    _unused_ int n, _unused_ char **words)
{
	if (store_each_note(store, N_SHOWN_ORDERS, show_order) < 0)
		return log_err(-EIO, "cannot read the orders: %s", store_reason(store));
	return 0;
}

/* --- run --- */

/* A time that is neither nothing nor for ever. */
static int read_time(const char *name, const char *text, uint64_t *ret)
{
	if (duration_parse(text, ret) < 0 || *ret == 0 || *ret == QUANTITY_MAX)
		return log_err(-EINVAL, "--%s: '%s' is not a time such as " DEFAULT_INTERVAL, name,
			       text);
	return 0;
}

static int verb_run(const char *const values[N_OPTIONS])
{
	struct keep_options options = { .path = values[OPTION_STATE],
					.listen = { .address = values[OPTION_LISTEN],
						    .munge_socket = values[OPTION_MUNGE] } };

	if (read_time("interval", values[OPTION_INTERVAL], &options.interval_ms) < 0 ||
	    read_time("settle", values[OPTION_SETTLE], &options.settle_ms) < 0 ||
	    read_time("lease", values[OPTION_LEASE], &options.lease_ms) < 0 ||
	    read_time("silent", values[OPTION_SILENT], &options.listen.silent_ms) < 0)
		return -EINVAL;
	if (options.lease_ms < 2 * options.interval_ms)
		return log_err(-EINVAL,
			       "--lease: is renewed every --interval, and has to be longer");
	return keep_services(&options);
}

static const struct {
	const char *name;
	int (*fn)(struct store *store, const char *const values[N_OPTIONS], int n, char **words);
	const char *help;
} verbs[] = {
	{ "set", verb_set,
	  "NAME [COMMAND] [--image=IMAGE] --gpu-mem=SIZE [--gpu-raise=SIZE] [--replicas=N]\n"
	  "        [--gpu-compute=PCT] [--gpu-policy=STEPS]\n"
	  "        [--priority=N] [--placement=binpack|spread|spread-nodes]: what is to run" },
	{ "remove", verb_remove, "NAME: what is no longer to run" },
	{ "list", verb_list, "the instances, their jobs and devices" },
	{ "explain", verb_explain, "NAME.NUMBER: why an instance has no device, for each of them" },
	{ "incidents", verb_incidents, "who held more than it asked for, on which node" },
	{ "nodes", verb_nodes, "which nodes report, and why one is refused" },
	{ "log", verb_log, "the latest orders" },
};

static int usage(void)
{
	size_t i;

	printf("cotenant-cluster run [--interval=TIME] [--settle=TIME] [--lease=TIME]\n"
	       "        [--listen=HOST:PORT [--silent=TIME] [--munge-socket=PATH]]: keep the services running; nodes report to HOST:PORT\n");
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		printf("cotenant-cluster %s %s\n", verbs[i].name, verbs[i].help);
	printf("--state=FILE, with each: where the services are (" DEFAULT_STATE ")\n");
	return 2;
}

static int open_and_do(size_t verb, const char *const values[N_OPTIONS], int n, char **words)
{
	_cleanup_free_ char *reason = NULL;
	struct store *store;
	int r;

	r = store_open(values[OPTION_STATE], &store, &reason);
	if (r < 0)
		return log_err(r, "cannot open %s%s%s", values[OPTION_STATE], reason ? ": " : "",
			       reason ? reason : "");
	r = verbs[verb].fn(store, values, n, words);
	store_close(store);
	return r;
}

int main(int argc, char **argv)
{
	const char *values[N_OPTIONS] = { [OPTION_STATE] = DEFAULT_STATE,
					  [OPTION_INTERVAL] = DEFAULT_INTERVAL,
					  [OPTION_SETTLE] = DEFAULT_SETTLE,
					  [OPTION_LEASE] = DEFAULT_LEASE,
					  [OPTION_SILENT] = DEFAULT_SILENT };
	size_t i;
	int c;

	log_init("cotenant-cluster", LOG_INFO);
	while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		if (c == '?')
			return 2;
		values[c] = optarg;
	}
	if (optind == argc)
		return usage();
	slurm_init(NULL);
	if (str_eq(argv[optind], "run"))
		return verb_run(values) < 0;
	for (i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (str_eq(argv[optind], verbs[i].name))
			return open_and_do(i, values, argc - optind - 1, argv + optind + 1) < 0;
	}
	return usage();
}
