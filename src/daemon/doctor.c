/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.doctor: what this kernel offers, what is probed, and what therefore holds.
 *
 * Said in sentences, because whoever reads it wants to know whether to trust the
 * limits, and what to change if not.
 */
#include "daemon/daemon.h"

#include "daemon/process.h"

/* Programs are loaded to find them out, and they do not change: it is done once, whoever asks how often. */
static json_t *features_json(struct daemon *d)
{
	json_t *list = json_array();
	int i;

	if (d->n_features == 0)
		d->n_features = engine_features(d->features, ARRAY_SIZE(d->features));
	for (i = 0; i < d->n_features; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:s}", "name", d->features[i].name,
					"gives", d->features[i].gives, "works",
					d->features[i].works, "reason", d->features[i].reason));
	return list;
}

static int add_library(const struct engine_library *l, void *userdata)
{
	json_array_append_new(userdata, json_pack("{s:s, s:s, s:i, s:i}", "path", l->path,
						  "build_id", l->build_id, "calls", (int)l->n_calls,
						  "unknown_calls", (int)l->n_unknown));
	return 0;
}

/* One who asks; and of the process that is looked at what it maps. */
struct look {
	struct daemon *daemon;
	struct charged_list charged;
	char *maps;
	const char *why;
};

static int maps_library(const struct engine_library *l, void *userdata)
{
	return maps_have(((struct look *)userdata)->maps, l->dev, l->ino);
}

static int maps_unprobed(const struct engine_unprobed *u, void *userdata)
{
	struct look *look = userdata;

	if (maps_have(look->maps, u->dev, u->ino))
		look->why = u->why;
	return look->why != NULL;
}

/* Why what a process allocates is not held to a limit; NULL if it is. */
static const char *why_unprotected(struct look *look, pid_t pid)
{
	struct engine *engine = look->daemon->engine;
	const struct charged *charged;

	if (!engine)
		return "nothing enforces limits here";
	free(look->maps);
	look->why = look->maps = NULL;
	if (process_maps(pid, &look->maps) < 0)
		return "what it maps cannot be read";
	engine_each_unprobed(engine, maps_unprobed, look);
	if (look->why)
		return look->why;
	charged = charged_find(&look->charged, pid);
	if (!charged || charged->chain.n == 0)
		return "no tenant matches it";
	return engine_each_library(engine, maps_library, look)
		       ? NULL
		       : "it maps no libcuda that is probed";
}

static void add_unprotected(struct look *look, unsigned device, json_t *list)
{
	char name[PROCESS_NAME_SIZE], user[PROCESS_NAME_SIZE];
	struct daemon *d = look->daemon;
	const struct running_list *running;
	const struct gpu_process *p;
	const char *why;
	uid_t uid;

	if (running_read(&d->running, d->gpu, device, daemon_monotonic_us(), &running) < 0)
		return;
	for (p = running->items; p < running->items + running->n; p++) {
		why = why_unprotected(look, p->pid);
		if (!why || process_uid(p->pid, &uid) < 0)
			continue;
		process_name(p->pid, name);
		user_name(uid, user);
		json_array_append_new(
			list, json_pack("{s:i, s:s, s:s, s:i, s:o, s:s}", "pid", (int)p->pid,
					"command", name, "user", user, "gpu", (int)device, "bytes",
					p->used_bytes == GPU_UNKNOWN ? json_null()
								     : json_integer(p->used_bytes),
					"why", why));
	}
}

static json_t *unprotected_json(struct daemon *d)
{
	struct look look = { .daemon = d };
	json_t *list = json_array();
	unsigned i;

	charged_read(&look.charged, d->engine);
	for (i = 0; i < daemon_n_devices(d); i++)
		add_unprotected(&look, i, list);
	charged_done(&look.charged);
	free(look.maps);
	return list;
}

static void say(json_t *list, const char *sentence)
{
	json_array_append_new(list, json_string(sentence));
}

static json_t *guaranteed_json(struct daemon *d)
{
	json_t *list = json_array();

	if (!d->engine)
		return list;
	say(list, "memory.max: an allocation through a probed libcuda never passes it");
	say(list, "what a tenant is shown of a device's memory agrees with its memory.max");
	if (!d->compute_reason)
		say(list,
		    "compute.max and compute.weight: launches are held to the tenant's share of "
		    "device time, over a second or two");
	say(list, "limits hold on through a restart or a crash of the daemon");
	if (engine_rung_now(d->engine) == ENGINE_RUNG_REGISTERS)
		say(list, "calls are answered by the kernel program itself (rung registers)");
	else
		say(list, "calls are answered by the daemon's holder (rung supervised)");
	if (d->gpu->has_driver_limits)
		say(list, "memory.max of a cgroup is set in NVIDIA's driver, too");
	return list;
}

static json_t *advisory_json(struct daemon *d)
{
	json_t *list = json_array();

	if (!d->engine) {
		json_array_append_new(list, json_sprintf("every limit: %s", d->engine_reason));
		return list;
	}
	if (d->compute_reason)
		json_array_append_new(list, json_sprintf("compute.max and compute.weight: %s",
							 d->compute_reason));
	say(list, "compute shares count launches of kernels and graphs; copies are charged when "
		  "the device "
		  "tells of them");
	say(list,
	    "a launch waits for the daemon's holder for a second at most, and then runs: a process "
	    "under a debugger is not held to its share");
	say(list,
	    "what a process has queued before a limit is set on it is not held back; it launches "
	    "nothing more until that has run");
	say(list,
	    "a process that copies or rewrites libcuda to get around the probes is found when the "
	    "books are settled, not stopped; under `cotenant run --gate` it is ended by "
	    "on-failure");
	say(list, "sizes that a program keeps in its memory (descriptors of arrays, properties of "
		  "cuMemCreate, parameters of graph nodes) it can change between the check and the "
		  "call; what it took by that is charged when the books are settled");
	say(list,
	    "a copy of libcuda that nobody has mapped before and that is in none of the usual "
	    "places can make its first calls before it is probed; they are charged when the books "
	    "are settled");
	say(list,
	    "processes of other tenants that use the same libcuda pay the probes' cost on memory "
	    "and information calls");
	if (!d->gpu->has_driver_limits)
		say(list, "the driver keeps no limits of its own (it does from R615 on)");
	return list;
}

static int add_offsets(const struct engine_offsets *o, void *userdata)
{
	if (!o->refused)
		json_array_append_new(userdata,
				      json_sprintf("%s: build %.12s", o->path, o->build_id));
	return 0;
}

static int add_refused_offsets(const struct engine_offsets *o, void *userdata)
{
	if (o->refused)
		json_array_append_new(userdata,
				      json_sprintf("%s:%u: %s", o->path, o->line, o->refused));
	return 0;
}

static json_t *refused_files_json(struct daemon *d)
{
	const struct config *files = &d->tenants.files;
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < files->n_files; i++) {
		if (files->files[i].refused)
			json_array_append_new(list, json_sprintf("%s:%u: %s", files->files[i].path,
								 files->files[i].error.line,
								 files->files[i].error.reason));
	}
	if (d->engine)
		engine_each_offsets(d->engine, add_refused_offsets, list);
	return list;
}

static void add_events_problem(struct daemon *d, json_t *list)
{
	struct event_log_state state;

	event_log_state(d->events, &state);
	if (*state.reason)
		json_array_append_new(
			list, json_sprintf("events are not written (%s): %llu wait in memory, "
					   "%llu were too many for it",
					   state.reason, (unsigned long long)state.n_waiting,
					   (unsigned long long)state.n_lost));
}

static json_t *problems_json(struct daemon *d, uid_t uid)
{
	json_t *list = json_array();
	const struct tenant *t;

	add_events_problem(d, list);
	for (t = d->tenants.first; t; t = t->next) {
		if (*t->problem && tenant_is_visible(t, uid))
			json_array_append_new(list,
					      json_sprintf("%s: %s", t->spec.name, t->problem));
	}
	return list;
}

int method_daemon_doctor(struct daemon *d, const struct request *q, json_t **ret)
{
	json_t *libraries = json_array(), *offsets = json_array();

	if (d->engine) {
		engine_each_library(d->engine, add_library, libraries);
		engine_each_offsets(d->engine, add_offsets, offsets);
	}
	*ret = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s?}", "rung",
			 d->engine ? engine_rung_name(engine_rung_now(d->engine)) : "none",
			 "features", features_json(d), "libraries", libraries, "offsets", offsets,
			 /* Other people's processes are named to root alone. */
			 "unprotected", q->peer.uid ? json_array() : unprotected_json(d),
			 "guaranteed", guaranteed_json(d), "advisory", advisory_json(d),
			 "refused_files", refused_files_json(d), "problems",
			 problems_json(d, q->peer.uid), "devices", (int)daemon_n_devices(d),
			 "no_devices", *d->gpu->reason ? d->gpu->reason : NULL);
	return 0;
}
