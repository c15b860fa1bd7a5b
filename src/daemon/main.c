/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenantd: opens the parts, joins them on one event loop, closes them.
 *
 * Ending, however it ends, leaves probes and books where they are: enforcement goes
 * on and the next start takes it over. `cotenantd --remove` takes it away.
 */
#include "daemon/daemon.h"
#include "daemon/gate.h"
#include "daemon/lacking.h"
#include "daemon/overuse.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/trim.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#define SETTLE_EVERY_US	   500000
#define RELOAD_AFTER_US	   200000
#define SAMPLE_AT_LEAST_MS 20
#define TRIM_EVERY_US	   10000000
/* A cgroup that is made anew is limited from then on at the latest. */
#define CGROUPS_EVERY_US 50000
/* The loop may put timers off by so much, to wake up once for several; a quarter second if it is not told. */
#define TIMER_GRAIN_US 10000

enum option_id {
#define OPTION(id, name, metavar, without, help) OPTION_##id,
#include "daemon/options.def"
#undef OPTION
	N_OPTIONS,
};

static const struct {
	const char *name;
	const char *metavar;
	const char *without;
	const char *help;
} option_infos[N_OPTIONS] = {
#define OPTION(id, name, metavar, without, help) { name, metavar, without, help },
#include "daemon/options.def"
#undef OPTION
};

struct options {
	const char *values[N_OPTIONS];
	enum engine_rung rung;
	uint64_t failure_wait_ms;
	struct overuse_options overuse;
};

uint64_t daemon_now_us(void)
{
	return clock_now_us(CLOCK_REALTIME);
}

uint64_t daemon_monotonic_us(void)
{
	return clock_now_us(CLOCK_MONOTONIC);
}

/* --- options --- */

static void print_help(void)
{
	int i;

	printf("cotenantd [OPTIONS]\n\nShares NVIDIA GPUs between tenants, each with a quota that "
	       "holds.\n\n");
	for (i = 0; i < N_OPTIONS; i++)
		printf("  --%s%s%s\n        %s%s%s%s\n", option_infos[i].name,
		       option_infos[i].metavar ? "=" : "",
		       option_infos[i].metavar ? option_infos[i].metavar : "", option_infos[i].help,
		       option_infos[i].without ? " (" : "",
		       option_infos[i].without ? option_infos[i].without : "",
		       option_infos[i].without ? ")" : "");
}

static int read_time(const struct options *o, enum option_id id, uint64_t least_ms,
		     uint64_t *ret_ms)
{
	if (duration_parse(o->values[id], ret_ms) < 0 || *ret_ms == QUANTITY_MAX ||
	    *ret_ms < least_ms)
		return log_err(-EINVAL, "--%s: '%s' is not a time such as %s",
			       option_infos[id].name, o->values[id], option_infos[id].without);
	return 0;
}

/* Where there is no engine, the program that is the default need not be there; one that was named has to. */
static int check_batch_program(const struct options *o)
{
	const char *program = o->values[OPTION_BATCH_PROGRAM];
	int r;

	if (program == option_infos[OPTION_BATCH_PROGRAM].without || !*program)
		return 0;
	r = file_find_program(program);
	return r < 0 ? log_err(r,
			       "--batch-program: '%s' cannot be started; %s is the one for Slurm, "
			       "nothing stands for no batch engine",
			       program, option_infos[OPTION_BATCH_PROGRAM].without)
		     : 0;
}

static int read_values(struct options *o)
{
	const char *rung = o->values[OPTION_RUNG];
	int r;

	for (o->rung = ENGINE_RUNG_AUTO; o->rung <= ENGINE_RUNG_SUPERVISED; o->rung++) {
		if (str_eq(engine_rung_name(o->rung), rung))
			break;
	}
	if (o->rung > ENGINE_RUNG_SUPERVISED)
		return log_err(-EINVAL, "--rung: '%s' is not auto, registers or supervised", rung);
	o->overuse.state_dir = o->values[OPTION_STATE_DIR];
	o->overuse.batch_program = o->values[OPTION_BATCH_PROGRAM];
	r = read_time(o, OPTION_FAILURE_WAIT, 0, &o->failure_wait_ms);
	if (r == 0)
		r = read_time(o, OPTION_SAMPLE, SAMPLE_AT_LEAST_MS, &o->overuse.slow_ms);
	if (r == 0)
		r = read_time(o, OPTION_SAMPLE_TENSE, SAMPLE_AT_LEAST_MS, &o->overuse.fast_ms);
	return r < 0 ? r : check_batch_program(o);
}

/* Return: 0 to go on, 1 to end well, or a fault. */
static int parse_options(int argc, char **argv, struct options *o)
{
	struct option table[N_OPTIONS + 1] = {};
	int i, c;

	for (i = 0; i < N_OPTIONS; i++) {
		table[i].name = option_infos[i].name;
		table[i].has_arg = option_infos[i].metavar ? required_argument : no_argument;
		table[i].val = i + 1;
		o->values[i] = option_infos[i].without;
	}
	while ((c = getopt_long(argc, argv, "", table, NULL)) > 0) {
		if (c == '?')
			return -EINVAL;
		o->values[c - 1] = optarg ? optarg : "";
	}
	if (optind < argc)
		return log_err(-EINVAL, "'%s' is no option; see cotenantd --help", argv[optind]);
	if (o->values[OPTION_HELP]) {
		print_help();
		return 1;
	}
	if (o->values[OPTION_VERSION]) {
		printf("cotenantd %s\n", DAEMON_VERSION);
		return 1;
	}
	return read_values(o);
}

/* --- the loop's sources --- */

static int on_api(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t revents,
		  void *userdata)
{
	struct daemon *d = userdata;

	api_server_dispatch(d->api);
	daemon_compute_wake(d);
	return 0;
}

/*
 * Each round of the loop ends here: what happened in it is written in one piece, and answers
 * for those who wait for it are sent at once, not with the next request.
 */
static int on_round(_unused_ sd_event_source *s, void *userdata)
{
	struct daemon *d = userdata;

	event_log_flush(d->events);
	/* Once: rounds come more often than that, and would put it off for ever. */
	if (d->cgroups_are_slow && d->tenants.any_of_cgroup) {
		d->cgroups_are_slow = false;
		sd_event_source_set_time_relative(d->cgroups_timer, CGROUPS_EVERY_US);
		sd_event_source_set_enabled(d->cgroups_timer, SD_EVENT_ONESHOT);
	}
	if (!d->waiters)
		return 0;
	daemon_answer_waiters(d, /* all= */ false);
	api_server_dispatch(d->api);
	return 0;
}

static int on_engine(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t revents,
		     void *userdata)
{
	struct daemon *d = userdata;
	int r;

	r = engine_dispatch(d->engine);
	if (r < 0)
		log_warn(r, "the engine");
	daemon_compute_wake(d);
	return 0;
}

static void trim(struct daemon *d)
{
	uint64_t now_us = daemon_monotonic_us();

	if (d->trimmed_us && now_us < d->trimmed_us + TRIM_EVERY_US)
		return;
	d->trimmed_us = now_us;
	event_log_trim(d->events);
	history_db_trim(d->overuse->history);
	trim_memory();
}

static int on_tick(sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	tenants_collect(&d->tenants);
	/* The kernel does not always tell of new mappings while the machine is idle. */
	if (d->engine)
		engine_dispatch(d->engine);
	daemon_settle_changes(d);
	/* Right behind it, as the devices were just asked. */
	overuse_tick(d);
	daemon_compute_tick(d);
	/* Connections on which nothing comes are closed in time. */
	api_server_dispatch(d->api);
	trim(d);
	sd_event_source_set_time_relative(s, SETTLE_EVERY_US);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_cgroups_time(sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	tenants_retry(&d->tenants);
	/* Then a round of the loop begins it again: see on_round(). */
	d->cgroups_are_slow = !d->tenants.any_of_cgroup;
	if (d->cgroups_are_slow)
		return 0;
	sd_event_source_set_time_relative(s, CGROUPS_EVERY_US);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void reload(struct daemon *d)
{
	int r = tenants_reload(&d->tenants);

	if (r < 0)
		log_warn(r, "cannot read %s", d->tenants.files.dir);
	daemon_devices_apply(d);
	daemon_compute_wake(d);
}

static int on_hangup(_unused_ sd_event_source *s, _unused_ const struct signalfd_siginfo *si,
		     void *userdata)
{
	reload(userdata);
	return 0;
}

static int on_reload_time(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	d->reload = sd_event_source_unref(d->reload);
	reload(d);
	return 0;
}

/* An editor writes several times: wait until it has come to rest. */
static int on_config_change(_unused_ sd_event_source *s, const struct inotify_event *event,
			    void *userdata)
{
	struct daemon *d = userdata;
	size_t n = event->len ? strlen(event->name) : 0;

	if (d->reload || n < 4 || !str_eq(event->name + n - 4, ".ini"))
		return 0;
	return sd_event_add_time_relative(d->loop, &d->reload, CLOCK_MONOTONIC, RELOAD_AFTER_US, 0,
					  on_reload_time, d);
}

static int on_offsets_time(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;
	int r;

	d->reload_offsets = sd_event_source_unref(d->reload_offsets);
	r = engine_offsets_reload(d->engine);
	if (r < 0)
		log_warn(r, "cannot read %s", d->offsets_dir);
	return 0;
}

static int on_offsets_change(_unused_ sd_event_source *s,
			     _unused_ const struct inotify_event *event, void *userdata)
{
	struct daemon *d = userdata;

	if (d->reload_offsets)
		return 0;
	return sd_event_add_time_relative(d->loop, &d->reload_offsets, CLOCK_MONOTONIC,
					  RELOAD_AFTER_US, 0, on_offsets_time, d);
}

static int add_sources(struct daemon *d)
{
	const uint32_t changes =
		IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR;
	int r;

	r = sd_event_add_io(d->loop, NULL, api_server_fd(d->api), EPOLLIN, on_api, d);
	if (r >= 0 && d->engine)
		r = sd_event_add_io(d->loop, NULL, engine_fd(d->engine), EPOLLIN, on_engine, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->loop, NULL, CLOCK_MONOTONIC, SETTLE_EVERY_US,
					       TIMER_GRAIN_US, on_tick, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->loop, &d->cgroups_timer, CLOCK_MONOTONIC,
					       CGROUPS_EVERY_US, TIMER_GRAIN_US, on_cgroups_time,
					       d);
	if (r >= 0)
		r = sd_event_add_post(d->loop, NULL, on_round, d);
	if (r >= 0)
		r = daemon_compute_start(d);
	if (r >= 0)
		r = overuse_start(d);
	if (r >= 0)
		r = sd_event_add_signal(d->loop, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(d->loop, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(d->loop, NULL, SIGHUP, on_hangup, d);
	if (r >= 0)
		r = sd_event_add_inotify(d->loop, NULL, d->tenants.files.dir, changes,
					 on_config_change, d);
	if (r >= 0 && d->engine)
		r = sd_event_add_inotify(d->loop, NULL, d->offsets_dir, changes, on_offsets_change,
					 d);
	return r < 0 ? log_err(r, "cannot watch what is to be watched") : 0;
}

/* --- opening and closing --- */

/* Each probed copy of a library takes three descriptors, and the usual limit is a thousand. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * Without an engine the daemon still keeps limits and shows devices, and says in each
 * answer that nothing enforces them.
 */
static int open_engine(struct daemon *d, const struct options *o)
{
	_cleanup_free_ char *dir = str_format("%s/engine", o->values[OPTION_STATE_DIR]);
	struct engine_options options = { .rung = o->rung,
					  .failure_wait_ns = o->failure_wait_ms * 1000000,
					  .driver_version = d->gpu->driver_version };
	char cuda[16] = "", refusal[ENGINE_REFUSAL] = "";
	_cleanup_free_ char *reason = NULL;
	int r;

	raise_descriptors();
	if (d->gpu->cuda_version > 0)
		snprintf(cuda, sizeof(cuda), "%d.%d", d->gpu->cuda_version / 1000,
			 d->gpu->cuda_version % 1000 / 10);
	d->offsets_dir = str_format("%s/offsets.d", o->values[OPTION_CONFIG_DIR]);
	if (!dir || !d->offsets_dir)
		return -ENOMEM;
	options.state_dir = dir;
	options.offsets_dir = d->offsets_dir;
	options.cuda_version = cuda;
	options.refusal = refusal;
	r = fd_mkdir_parents(dir, 0755);
	if (r == 0)
		r = fd_mkdir_parents(d->offsets_dir, 0755);
	if (r == 0)
		r = engine_open(&options, &d->engine);
	if (r == -EBUSY)
		return log_err(r, "another cotenantd uses %s", o->values[OPTION_STATE_DIR]);
	if (r < 0) {
		reason = lacking_reason(r, refusal, "/proc", "/sys");
		str_copy(d->engine_reason, sizeof(d->engine_reason),
			 reason ? reason : strerrordesc_np(ENOMEM));
		log_warn(r, "limits are not enforced: %s", d->engine_reason);
		return 0;
	}
	engine_on_event(d->engine, daemon_on_engine_event, d);
	return 0;
}

static int remove_all(const struct options *o)
{
	_cleanup_free_ char *dir = str_format("%s/engine", o->values[OPTION_STATE_DIR]);
	struct engine_options options = { .state_dir = dir };
	struct engine *engine;
	int r;

	if (!dir)
		return log_err(-ENOMEM, "cannot take the books away");
	r = engine_open(&options, &engine);
	if (r == -EBUSY)
		return log_err(r, "another cotenantd uses %s", o->values[OPTION_STATE_DIR]);
	if (r == 0)
		engine_remove(engine);
	else
		r = engine_discard(dir);
	if (r < 0)
		return log_err(r, "cannot take away the books in %s", dir);
	r = overuse_let_go(&o->overuse);
	if (r < 0)
		return log_err(r, "cannot let go who was suspended");
	r = tenants_remove_cgroups(o->values[OPTION_STATE_DIR]);
	return r < 0 ? log_err(r, "cannot take away the cgroups of what ran") : 0;
}

static int open_events(struct daemon *d, const struct options *o)
{
	_cleanup_free_ char *path = str_format("%s/events.db", o->values[OPTION_STATE_DIR]);
	int r;

	r = path ? event_log_open(path, &d->events) : -ENOMEM;
	if (r == 0)
		return 0;
	log_warn(r, "%s: events will not outlive this daemon", path);
	return event_log_open(":memory:", &d->events);
}

static int open_api(struct daemon *d, const struct options *o)
{
	_cleanup_free_ char *dir = strdup(o->values[OPTION_SOCKET]);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	int r = 0;

	if (slash && slash != dir) {
		*slash = '\0';
		r = fd_mkdir_parents(dir, 0755);
	}
	if (r == 0)
		r = api_server_new(o->values[OPTION_SOCKET], daemon_handle, d, &d->api);
	if (r == -EADDRINUSE)
		return log_err(
			r,
			"another cotenantd listens on %s; give this one --socket, --state-dir "
			"and --config-dir of its own",
			o->values[OPTION_SOCKET]);
	return r < 0 ? log_err(r, "cannot listen on %s", o->values[OPTION_SOCKET]) : 0;
}

static int open_tenants(struct daemon *d, const struct options *o)
{
	int r;

	r = tenants_init(&d->tenants, o->values[OPTION_CONFIG_DIR], o->values[OPTION_STATE_DIR]);
	if (r < 0)
		return r;
	d->tenants.engine = d->engine;
	d->tenants.gpu = d->gpu;
	d->tenants.events = d->events;
	r = fd_mkdir_parents(d->tenants.files.dir, 0755);
	if (r < 0)
		return log_err(r, "cannot make %s", d->tenants.files.dir);
	return 0;
}

static void note_start(struct daemon *d)
{
	unsigned i;

	tenants_note(&d->tenants, EVENT_STARTED, NULL, "cotenantd %s started, rung %s",
		     DAEMON_VERSION,
		     d->engine ? engine_rung_name(engine_rung_now(d->engine)) : "none");
	if (!d->engine)
		tenants_note(&d->tenants, EVENT_NOT_ENFORCED, NULL, "limits are not enforced: %s",
			     d->engine_reason);
	if (*d->gpu->reason)
		log_warn(0, "no devices: %s", d->gpu->reason);
	for (i = 0; i < d->gpu->n_devices; i++)
		log_info("device %u: %s, %s", i, d->gpu->devices[i].name, d->gpu->devices[i].uuid);
}

static int daemon_open(struct daemon *d, const struct options *o)
{
	bool own_library = str_eq(o->values[OPTION_NVML], option_infos[OPTION_NVML].without);
	int r;

	r = fd_mkdir_parents(o->values[OPTION_STATE_DIR], 0755);
	if (r < 0)
		return log_err(r, "cannot make %s", o->values[OPTION_STATE_DIR]);
	/* First of all, so that a second daemon touches nothing of the first. */
	r = open_api(d, o);
	if (r == 0)
		r = open_events(d, o);
	if (r == 0)
		r = gpu_open(own_library ? NULL : o->values[OPTION_NVML], &d->gpu);
	if (r == 0)
		r = context_costs_load(d, o->values[OPTION_STATE_DIR]);
	if (r == 0)
		r = open_engine(d, o);
	if (r == 0 && d->engine)
		r = gate_open(d, o->values[OPTION_STATE_DIR]);
	if (r == 0)
		r = open_tenants(d, o);
	if (r == 0)
		r = overuse_open(d, &o->overuse);
	if (r < 0)
		return r;
	daemon_devices_apply(d);
	r = tenants_reload(&d->tenants);
	if (r < 0)
		return log_err(r, "cannot read %s", d->tenants.files.dir);
	daemon_devices_apply(d);
	note_start(d);
	/* Once more, now that the events are kept: those that are refused are told. */
	return d->engine ? engine_offsets_reload(d->engine) : 0;
}

static void daemon_close(struct daemon *d)
{
	if (d->api && d->events)
		daemon_answer_waiters(d, /* all= */ true);
	if (d->api)
		api_server_dispatch(d->api);
	api_server_free(d->api);
	gate_close(d);
	overuse_close(d);
	tenants_done(&d->tenants);
	if (d->engine)
		engine_close(d->engine);
	gpu_close(d->gpu);
	event_log_close(d->events);
	charged_done(&d->charged);
	charged_done(&d->charged_before);
	running_done(&d->running);
	free(d->offsets_dir);
	free(d->context_file);
	sd_event_source_unref(d->cgroups_timer);
	sd_event_source_unref(d->settling);
	sd_event_source_unref(d->placing);
	sd_event_source_unref(d->compute_timer);
	sd_event_source_unref(d->reload);
	sd_event_source_unref(d->reload_offsets);
	sd_event_unref(d->loop);
}

/*
 * What is freed goes back: a large answer to somebody must not stay resident for good. There is
 * one thread, so one arena does.
 */
static void keep_little_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int run(const struct options *o)
{
	struct daemon d = { .started_us = daemon_now_us(),
			    .mps_server = o->values[OPTION_MPS_SERVER] };
	int r;

	r = sd_event_default(&d.loop);
	if (r >= 0)
		r = daemon_open(&d, o);
	/* After the engine has started its holder, which must not inherit the mask. */
	block_signals();
	if (r >= 0)
		r = add_sources(&d);
	if (r >= 0) {
		sd_event_set_watchdog(d.loop, true);
		sd_notify(false, "READY=1");
		r = sd_event_loop(d.loop);
		sd_notify(false, "STOPPING=1");
	}
	daemon_close(&d);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = {};
	int r;

	keep_little_memory();
	log_init("cotenantd", LOG_INFO);
	r = parse_options(argc, argv, &options);
	if (r != 0)
		return r < 0 ? 2 : 0;
	if (options.values[OPTION_DEBUG])
		log_init("cotenantd", LOG_DEBUG);
	if (options.values[OPTION_REMOVE])
		return remove_all(&options) < 0 ? 1 : 0;
	return run(&options) < 0 ? 1 : 0;
}
