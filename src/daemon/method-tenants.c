/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenants.*: showing, setting, adopting, releasing.
 *
 * A change is written to its file first and applied from there, so that what holds
 * and what a restart would find are the same.
 */
#include "daemon/cgroup.h"
#include "daemon/change.h"
#include "daemon/process.h"

#include <ctype.h>
#include <errno.h>

int method_tenants_list(struct daemon *d, const struct request *q, json_t **ret)
{
	_cleanup_(books_view_freep) struct books_view *view = NULL;
	const struct tenant *t;
	json_t *list;
	int device;

	if (request_device(d, q, &device) < 0)
		return -EINVAL;
	view = books_view_new(d, NULL);
	if (!view)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	list = json_array();
	for (t = d->tenants.first; t; t = t->next) {
		if (tenant_is_visible(t, q->peer.uid))
			json_array_append_new(list, tenant_json(view, t, device));
	}
	*ret = json_pack("{s:o}", "tenants", list);
	return 0;
}

int method_tenants_show(struct daemon *d, const struct request *q, json_t **ret)
{
	struct tenant *t;

	if (request_tenant(d, q, &t) < 0)
		return -EINVAL;
	*ret = tenant_json_alone(d, t);
	return 0;
}

static int write_failed(const struct request *q, const struct config *config, int r,
			const struct ini_error *error)
{
	if (r == -EINVAL)
		return api_fail(q->error, API_E_CONFLICT,
				"the file in %s that holds it is refused: "
				"line %u: %s",
				config->dir, error->line, error->reason);
	return api_fail(q->error, API_E_FAULT, "cannot write in %s: %s", config->dir,
			strerrordesc_np(-r));
}

/* Into its file, then into force. */
static int store(struct daemon *d, const struct request *q, struct config *config,
		 const struct tenant_spec *spec)
{
	struct ini_error error;
	int r;

	r = config_write_tenant(config, spec, &error);
	if (r < 0)
		return write_failed(q, config, r, &error);
	r = tenants_apply(&d->tenants);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "cannot apply: %s", strerrordesc_np(-r));
	return 0;
}

static int reply_changed(struct daemon *d, const struct request *q, const char *name,
			 enum event_kind kind, json_t **ret)
{
	const struct tenant *t = tenants_find(&d->tenants, name);

	if (!t)
		return api_fail(q->error, API_E_FAULT, "%s was written but is not there", name);
	tenants_note(&d->tenants, kind, t, "%s %s", t->spec.name,
		     kind == EVENT_TENANT_NEW ? "is a tenant now" : "has other limits now");
	*ret = json_pack("{s:o, s:o}", "tenant", tenant_json_alone(d, t), "warnings",
			 change_warnings(d, t));
	return 0;
}

/* "/user.slice/docker-1f3a.scope" -> "docker-1f3a.scope"; what a name may not have becomes '-'. */
static void name_from_match(const struct selector *match, char ret[TENANT_NAME_SIZE])
{
	const char *s = match->name ? match->name : "";
	char *p;

	if (match->kind == SELECT_PID) {
		snprintf(ret, TENANT_NAME_SIZE, "pid-%d", match->pid);
		return;
	}
	if (match->kind == SELECT_DEFAULT)
		s = "everyone";
	if (match->kind == SELECT_CGROUP && strrchr(s, '/'))
		s = strrchr(s, '/') + 1;
	str_copy(ret, TENANT_NAME_SIZE, *s ? s : "root");
	for (p = ret; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			*p = '-';
	}
	if (!str_is_name(ret))
		ret[0] = 'x';
}

static int parse_match(const struct request *q, struct selector *ret)
{
	const char *text = api_arg_string(q->args, "match"), *reason = NULL;

	if (selector_parse(text, ret, &reason) < 0)
		return api_fail(q->error, API_E_BAD_REQUEST, "match: '%.100s' is %s", text, reason);
	return 0;
}

/* There is one tenant of a tree: another would take the process out of the limits it has. */
static int check_tree(struct daemon *d, const struct request *q, pid_t pid)
{
	const struct tenant *t;
	uint32_t number;

	if (!d->engine || engine_tree_of(d->engine, pid, &number) != 0)
		return 0;
	t = tenants_by_number(&d->tenants, number);
	if (!t)
		return 0;
	api_fail(q->error, API_E_CONFLICT, "process %d is part of tenant '%s' already", pid,
		 t->spec.name);
	return api_hint(q->error, "change the limits of that one, or release it first");
}

/* A process is named for good only with its start time. */
static int complete_pid(struct daemon *d, const struct request *q, struct tenant_spec *spec)
{
	if (spec->match.kind != SELECT_PID)
		return 0;
	if (!process_is(spec->match.pid, spec->match.start_time))
		return api_fail(q->error, API_E_NOT_FOUND, "there is no process %d",
				spec->match.pid);
	process_start_time(spec->match.pid, &spec->match.start_time);
	process_uid(spec->match.pid, &spec->owner);
	return check_tree(d, q, spec->match.pid);
}

static int new_name(struct daemon *d, const struct request *q, struct tenant_spec *spec)
{
	const char *name = api_arg_string(q->args, "tenant");
	char base[TENANT_NAME_SIZE];

	if (name) {
		str_copy(spec->name, sizeof(spec->name), name);
		if (!tenants_find(&d->tenants, name))
			return 0;
		api_fail(q->error, API_E_CONFLICT, "there is a tenant '%s' already", name);
		return api_hint(q->error,
				"choose another name, or change that one without a match");
	}
	name_from_match(&spec->match, spec->name);
	if (!tenants_find(&d->tenants, spec->name))
		return 0;
	str_copy(base, sizeof(base), spec->name);
	snprintf(spec->name, sizeof(spec->name), "%s-%.50s", selector_kind_name(spec->match.kind),
		 base);
	if (!tenants_find(&d->tenants, spec->name))
		return 0;
	api_fail(q->error, API_E_CONFLICT, "the names '%s' and '%s' are taken", base, spec->name);
	return api_hint(q->error, "give it a name of its own");
}

static struct config *config_for(struct daemon *d, const struct tenant_spec *spec)
{
	/* A process does not outlive the machine's next start, a run neither. */
	return spec->match.kind == SELECT_PID ? &d->tenants.runs : &d->tenants.files;
}

static int make_tenant(struct daemon *d, const struct request *q, struct selector *match,
		       json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = { .match = *match,
								.owner = TENANT_NO_OWNER };
	const struct tenant_spec *same;

	memset(match, 0, sizeof(*match));
	if (complete_pid(d, q, &spec) < 0 || new_name(d, q, &spec) < 0 ||
	    change_limits(d, q, &spec.limits) < 0)
		return -EINVAL;
	same = config_find_match(config_for(d, &spec), &spec.match);
	if (same)
		return api_fail(q->error, API_E_CONFLICT, "that is tenant '%s' already",
				same->name);
	if (spec.match.kind == SELECT_CGROUP && change_check_depth(d, q, spec.match.name) < 0)
		return -EINVAL;
	if (store(d, q, config_for(d, &spec), &spec) < 0)
		return -EINVAL;
	return reply_changed(d, q, spec.name, EVENT_TENANT_NEW, ret);
}

static int change_by_root(struct daemon *d, const struct request *q, const struct tenant *t,
			  json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {};
	struct config *config = t->origin == TENANT_OF_RUN ? &d->tenants.runs : &d->tenants.files;

	if (t->origin == TENANT_OF_TEMPLATE) {
		api_fail(q->error, API_E_CONFLICT, "%s has the limits of %s", t->spec.name,
			 t->template);
		return api_hint(q->error,
				"set those of %s, or give the user his own: "
				"cotenant set --user %s ...",
				t->template, t->spec.match.name);
	}
	if (tenant_spec_copy(&t->spec, &spec) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	if (change_limits(d, q, &spec.limits) < 0 || store(d, q, config, &spec) < 0)
		return -EINVAL;
	return reply_changed(d, q, spec.name, EVENT_TENANT_CHANGED, ret);
}

/* What a user started himself, he may change within what he may start. */
static int change_own_run(struct daemon *d, const struct request *q, const struct tenant *t,
			  json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {};

	if (tenant_spec_copy(&t->spec, &spec) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	if (change_limits(d, q, &spec.limits) < 0 || change_check_nested(d, q, &spec.limits) < 0 ||
	    store(d, q, &d->tenants.runs, &spec) < 0)
		return -EINVAL;
	return reply_changed(d, q, spec.name, EVENT_TENANT_CHANGED, ret);
}

/* What his job was booked with was not his to give: he may lower it, as what root gave him. */
static int lower_own_job(struct daemon *d, const struct request *q, const struct tenant *t,
			 json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {};
	_cleanup_(limits_done) struct limits changes = {};
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(q->args, "limits"), key, value) {
		if (json_is_null(value))
			return api_fail(q->error, API_E_FORBIDDEN,
					"%s: the job was started with it, and keeps it", key);
	}
	if (change_limits(d, q, &changes) < 0 || change_check_lowered(d, q, t, &changes) < 0)
		return -EINVAL;
	if (tenant_spec_copy(&t->spec, &spec) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	if (change_limits(d, q, &spec.limits) < 0 || store(d, q, &d->tenants.runs, &spec) < 0)
		return -EINVAL;
	return reply_changed(d, q, spec.name, EVENT_TENANT_CHANGED, ret);
}

/* What root gave him, he may lower; root's numbers stay as they are beside it. */
static int lower_own(struct daemon *d, const struct request *q, const struct tenant *t,
		     json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {};

	if (tenant_spec_copy(&t->spec, &spec) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	limits_done(&spec.limits);
	if (limits_copy(&t->lowered, &spec.limits) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	if (change_limits(d, q, &spec.limits) < 0 ||
	    change_check_lowered(d, q, t, &spec.limits) < 0 ||
	    store(d, q, &d->tenants.lowered, &spec) < 0)
		return -EINVAL;
	return reply_changed(d, q, spec.name, EVENT_TENANT_CHANGED, ret);
}

static int change_tenant(struct daemon *d, const struct request *q, const struct tenant *t,
			 json_t **ret)
{
	if (q->peer.uid == 0)
		return change_by_root(d, q, t, ret);
	if (t->spec.job)
		return lower_own_job(d, q, t, ret);
	if (t->origin == TENANT_OF_RUN)
		return change_own_run(d, q, t, ret);
	return lower_own(d, q, t, ret);
}

/* The tenant that a match stands for already, as far as the caller may see it. */
static struct tenant *find_by_match(struct daemon *d, const struct request *q,
				    const struct selector *match)
{
	struct tenant *t;

	for (t = d->tenants.first; t; t = t->next) {
		if (t->origin != TENANT_OF_TEMPLATE && selector_equal(&t->spec.match, match) &&
		    tenant_is_visible(t, q->peer.uid))
			return t;
	}
	return NULL;
}

int method_tenants_set(struct daemon *d, const struct request *q, json_t **ret)
{
	_cleanup_(selector_done) struct selector match = {};
	struct tenant *t;

	if (!json_object_get(q->args, "match")) {
		if (!json_object_get(q->args, "tenant"))
			return api_fail(q->error, API_E_BAD_REQUEST,
					"say which: a tenant or a match");
		return request_tenant(d, q, &t) < 0 ? -EINVAL : change_tenant(d, q, t, ret);
	}
	if (parse_match(q, &match) < 0)
		return -EINVAL;
	t = find_by_match(d, q, &match);
	if (t)
		return change_tenant(d, q, t, ret);
	/* A user who names himself means the tenant that a template made for him. */
	t = tenants_of_uid(&d->tenants, q->peer.uid);
	if (q->peer.uid != 0 && match.kind == SELECT_USER && t &&
	    selector_equal(&t->spec.match, &match))
		return lower_own(d, q, t, ret);
	if (q->peer.uid != 0) {
		api_fail(q->error, API_E_FORBIDDEN, "only root may make tenants of others");
		return api_hint(q->error, "start your own with `cotenant run`");
	}
	return make_tenant(d, q, &match, ret);
}

static bool is_of(_unused_ struct daemon *d, const struct tenant *t, pid_t pid)
{
	_cleanup_free_ char *cgroup = NULL;
	uid_t uid;

	switch (t->spec.match.kind) {
	case SELECT_PID:
		return pid == t->spec.match.pid;
	case SELECT_CGROUP:
		return cgroup_of_pid(pid, &cgroup) == 0 &&
		       cgroup_is_inside(cgroup, t->spec.match.name);
	default:
		return process_uid(pid, &uid) == 0 && t->uid == uid;
	}
}

/* What the adopted had before: from the devices themselves. */
static json_t *adopted_json(struct daemon *d, const struct tenant *t)
{
	json_t *list = json_array();
	const struct running_list *running;
	const struct gpu_process *p;
	unsigned device;

	for (device = 0; device < daemon_n_devices(d); device++) {
		if (running_read(&d->running, d->gpu, device, daemon_monotonic_us(), &running) < 0)
			continue;
		for (p = running->items; p < running->items + running->n; p++) {
			if (!is_of(d, t, p->pid))
				continue;
			json_array_append_new(list,
					      json_pack("{s:i, s:i, s:o}", "pid", (int)p->pid,
							"gpu", (int)device, "bytes",
							p->used_bytes == GPU_UNKNOWN
								? json_null()
								: json_integer(p->used_bytes)));
		}
	}
	return list;
}

int method_tenants_adopt(struct daemon *d, const struct request *q, json_t **ret)
{
	_cleanup_(selector_done) struct selector match = {};
	const struct tenant *t;
	int r;

	if (parse_match(q, &match) < 0)
		return -EINVAL;
	if (match.kind == SELECT_GROUP || match.kind == SELECT_DEFAULT)
		return api_fail(
			q->error, API_E_BAD_REQUEST,
			"adopt a process, a user or a cgroup; for others, `cotenant set` does it");
	t = find_by_match(d, q, &match);
	r = t ? change_by_root(d, q, t, ret) : make_tenant(d, q, &match, ret);
	if (r < 0)
		return r;
	/* The first round makes them charged, the second says how much. */
	daemon_settle(d);
	daemon_settle(d);
	t = tenants_find(&d->tenants, json_string_value(json_object_get(
					      json_object_get(*ret, "tenant"), "tenant")));
	if (t)
		json_object_set_new(*ret, "adopted", adopted_json(d, t));
	return 0;
}

int method_tenants_release(struct daemon *d, const struct request *q, json_t **ret)
{
	char name[TENANT_NAME_SIZE];
	struct ini_error error;
	struct config *config;
	struct tenant *t;
	int r;

	if (request_tenant(d, q, &t) < 0)
		return -EINVAL;
	if (t->origin == TENANT_OF_TEMPLATE) {
		api_fail(q->error, API_E_CONFLICT, "%s is there because %s matches", t->spec.name,
			 t->template);
		return api_hint(q->error, "release %s to end both", t->template);
	}
	if (t->origin == TENANT_OF_FILE && q->peer.uid != 0)
		return api_fail(q->error, API_E_FORBIDDEN, "only root may release %s",
				t->spec.name);
	str_copy(name, sizeof(name), t->spec.name);
	config = t->origin == TENANT_OF_RUN ? &d->tenants.runs : &d->tenants.files;
	r = config_remove_tenant(config, name, &error);
	if (r < 0)
		return write_failed(q, config, r, &error);
	if (t->origin == TENANT_OF_RUN)
		tenants_release_run(&d->tenants, t);
	config_remove_tenant(&d->tenants.lowered, name, &error);
	r = tenants_apply(&d->tenants);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "cannot apply: %s", strerrordesc_np(-r));
	*ret = json_pack("{s:s}", "released", name);
	return 0;
}
