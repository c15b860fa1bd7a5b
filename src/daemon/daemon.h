/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's parts share.
 *
 * All of it is used on one thread, that of the event loop. Calls that wait are
 * held by the engine's own process, so nothing here is in anybody's way.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "api/server.h"
#include "daemon/charged.h"
#include "daemon/eviction.h"
#include "daemon/running.h"
#include "daemon/tenants.h"

#include <systemd/sd-event.h>

#define DAEMON_VERSION "0.1.0"

struct waiter;
struct gate;
struct overuse;

/**
 * struct daemon - the whole of it
 * @reload:		set while a change of the files waits to be read
 * @reload_offsets:	likewise, of offsets.d
 * @offsets_dir:	the folder that tells where calls are in builds without symbols
 * @engine_reason:	why there is no engine, where there is none
 * @features:		what the kernel offers, once somebody has asked
 * @context_bytes:	what a context was seen to cost on each device, at the least
 * @context_file:	where that is kept
 * @mps_server:		the program of MPS's server
 * @unowned_bytes:	what processes that are nobody's have of each device
 * @charged:		the charged processes as the books had them last, and the time before
 * @books_read_us:	when they were read last, by the monotonic clock
 * @running:		what the devices listed last
 * @compute_since_us:	of each device the latest sample of its time
 * @compute_timer:	when they are read next
 * @compute_is_slow:	that is seldom, as nobody has a limit: at ticks
 * @compute_saw_work:	somebody was at work when they were read last
 * @compute_skips:	nobody was, so the next tick does not read them
 * @compute_reason:	why compute limits are not enforced; NULL if they are
 * @cgroups_timer:	when cgroups are looked at next
 * @cgroups_are_slow:	that is seldom, as nobody is a cgroup's
 * @settling:		set while the books are to be settled out of turn
 * @settled_us:		when they were last, by the monotonic clock, and how long it took
 * @n_settled:		how often
 * @settled_used:	with how much memory in use on each device, UINT64_MAX where none told
 * @settled_since:	of what threads had asked for by then
 * @settled_tenants:	and with which tenants
 * @books_changed:	the books have, since they were read to be settled
 * @trimmed_us:		when memory was last given back
 * @placing:		set while processes are looked for on the devices
 * @placed_us:		when they last were, by the monotonic clock
 * @placing_until_us:	how long they are
 * @waiters:		calls that wait for an event
 * @gate:		listens for reports of the second gate
 * @overuse:		samples the devices and acts on tenants beyond their requests
 * @evictions:		commands that were, for whoever started them
 * @started_us:		when, since the epoch
 */
struct daemon {
	sd_event *loop;
	sd_event_source *reload;
	sd_event_source *reload_offsets;
	char *offsets_dir;
	struct engine *engine;
	char engine_reason[400];
	struct engine_feature features[32];
	int n_features;
	struct gpu *gpu;
	struct event_log *events;
	struct tenants tenants;
	struct api_server *api;
	uint64_t context_bytes[LEDGER_DEVICES];
	char *context_file;
	const char *mps_server;
	uint64_t unowned_bytes[LEDGER_DEVICES];
	const char *compute_reason;
	sd_event_source *compute_timer;
	bool compute_is_slow;
	bool compute_saw_work;
	bool compute_skips;
	uint64_t compute_since_us[LEDGER_DEVICES];
	struct charged_list charged;
	struct charged_list charged_before;
	uint64_t books_read_us;
	struct running running;
	sd_event_source *cgroups_timer;
	bool cgroups_are_slow;
	sd_event_source *settling;
	uint64_t settled_us;
	uint64_t settle_took_us;
	uint64_t n_settled;
	uint64_t settled_used[LEDGER_DEVICES];
	uint64_t settled_since;
	unsigned settled_tenants;
	bool books_changed;
	uint64_t trimmed_us;
	sd_event_source *placing;
	uint64_t placed_us;
	uint64_t placing_until_us;
	struct waiter *waiters;
	struct gate *gate;
	struct overuse *overuse;
	struct evictions evictions;
	uint64_t started_us;
};

/* The devices that the engine has room for. */
static inline unsigned daemon_n_devices(const struct daemon *d)
{
	return MIN(d->gpu->n_devices, (unsigned)LEDGER_DEVICES);
}

/**
 * daemon_now_us() - microseconds since the epoch
 */
uint64_t daemon_now_us(void);

/**
 * daemon_monotonic_us() - the same by a clock that nobody sets
 */
uint64_t daemon_monotonic_us(void);

/**
 * daemon_devices_apply() - tell the engine the devices with their reserves
 */
void daemon_devices_apply(struct daemon *d);

/**
 * daemon_reserve() - bytes of a device that are never handed out
 */
uint64_t daemon_reserve(const struct daemon *d, unsigned device);

/**
 * context_costs_load() - what contexts cost under this driver, as it was learnt earlier
 */
int context_costs_load(struct daemon *d, const char *state_dir);

/**
 * context_cost_learn() - a process with one context was seen to have so much beyond what its calls explain
 */
void context_cost_learn(struct daemon *d, unsigned device, uint64_t bytes);

/**
 * daemon_read_books() - what the books have now, into @charged
 * @oldest_us:	what was read before that, by the monotonic clock, does not do
 */
void daemon_read_books(struct daemon *d, uint64_t oldest_us);

/**
 * daemon_settle() - correct the books by what the devices say, adopt who is not charged yet
 */
void daemon_settle(struct daemon *d);

/**
 * daemon_settle_changes() - the same, where something may have changed since, or it was long ago
 */
void daemon_settle_changes(struct daemon *d);

/**
 * daemon_settle_soon() - the same, within moments; many who ask for it get it together
 */
void daemon_settle_soon(struct daemon *d);

/**
 * daemon_activity_look() - note which tenants have been at work, by what has changed in the books
 */
void daemon_activity_look(struct daemon *d);

/**
 * daemon_activity_samples() - likewise, by what a device tells
 */
void daemon_activity_samples(struct daemon *d, unsigned device, const struct gpu_activity *samples,
			     size_t n);

/**
 * daemon_place_hint() - tell the engine which devices a new process says that it uses
 */
void daemon_place_hint(struct daemon *d, pid_t pid);

/**
 * daemon_place() - tell the engine where processes are that have made a context on a number nobody knows
 */
void daemon_place(struct daemon *d);

/**
 * daemon_place_soon() - the same, again and again until the devices list them
 */
void daemon_place_soon(struct daemon *d);

/**
 * daemon_compute_start() - from now on read what devices tell of their time, and enforce compute limits
 *
 * Where there is no engine it is read all the same, for showing it.
 */
int daemon_compute_start(struct daemon *d);

/**
 * daemon_compute_tick() - read it where that is seldom done; with the timer of everything else
 */
void daemon_compute_tick(struct daemon *d);

/**
 * daemon_compute_wake() - tenants may have changed: do not wait where one is limited now
 */
void daemon_compute_wake(struct daemon *d);

/**
 * daemon_on_engine_event() - the engine's event function; userdata is the daemon
 */
void daemon_on_engine_event(const struct audit_event *event, const char *text, void *userdata);

/**
 * daemon_handle() - the API's handler; userdata is the daemon
 */
void daemon_handle(struct api_call *call, void *userdata);

/**
 * daemon_answer_waiters() - answer those whose event came or whose time is over
 * @all:	answer everybody, as the daemon ends
 */
void daemon_answer_waiters(struct daemon *d, bool all);

/*
 * Handlers, one per method, named after it. They return 0 with *ret set, or
 * -EINVAL with @error filled in.
 */
struct request {
	const json_t *args;
	struct api_peer peer;
	struct api_error *error;
};

int method_daemon_version(struct daemon *d, const struct request *q, json_t **ret);
int method_daemon_doctor(struct daemon *d, const struct request *q, json_t **ret);
int method_daemon_reload(struct daemon *d, const struct request *q, json_t **ret);
int method_devices_list(struct daemon *d, const struct request *q, json_t **ret);
int method_devices_set(struct daemon *d, const struct request *q, json_t **ret);
int method_tenants_list(struct daemon *d, const struct request *q, json_t **ret);
int method_tenants_show(struct daemon *d, const struct request *q, json_t **ret);
int method_tenants_set(struct daemon *d, const struct request *q, json_t **ret);
int method_tenants_adopt(struct daemon *d, const struct request *q, json_t **ret);
int method_tenants_release(struct daemon *d, const struct request *q, json_t **ret);
int method_job_begin(struct daemon *d, const struct request *q, json_t **ret);
int method_job_end(struct daemon *d, const struct request *q, json_t **ret);
int method_run_begin(struct daemon *d, const struct request *q, json_t **ret);
int method_run_gate(struct daemon *d, const struct request *q, json_t **ret);
int method_run_end(struct daemon *d, const struct request *q, json_t **ret);
int method_incidents_list(struct daemon *d, const struct request *q, json_t **ret);
int method_incidents_show(struct daemon *d, const struct request *q, json_t **ret);
int method_history_show(struct daemon *d, const struct request *q, json_t **ret);
int method_processes_list(struct daemon *d, const struct request *q, json_t **ret);
int method_events_explain(struct daemon *d, const struct request *q, json_t **ret);

/**
 * method_events_list() - answers the call itself, now or later
 */
void method_events_list(struct daemon *d, struct api_call *call);

/**
 * method_metrics() - Prometheus text of what a user may see; the caller frees it
 */
char *method_metrics(struct daemon *d, uid_t uid);

/**
 * books_view_new() - what the engine has of every tenant just now, for showing them
 * @detail:	the tenant whose processes are wanted one by one, or NULL
 *
 * Return: NULL where there is no memory.
 */
struct books_view;
struct books_view *books_view_new(struct daemon *d, const struct tenant *detail);
void books_view_free(struct books_view *view);
DEFINE_CLEANUP(struct books_view *, books_view_free)

/**
 * tenant_json() - a tenant as the API shows it
 * @only_device:	-1 for all
 */
json_t *tenant_json(const struct books_view *view, const struct tenant *t, int only_device);

/**
 * tenant_json_alone() - one tenant in detail, with a view of its own
 */
json_t *tenant_json_alone(struct daemon *d, const struct tenant *t);

/**
 * request_tenant() - the tenant that an argument names and the caller may see
 */
int request_tenant(struct daemon *d, const struct request *q, struct tenant **ret);

/**
 * request_device() - the device that the argument "gpu" names; -1 where it is not given
 */
int request_device(struct daemon *d, const struct request *q, int *ret);

#endif
