/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.*: a process that `cotenant run` has started and that waits to be let go.
 *
 * It gets a cgroup of its own below the one it is in, or, from a login session on a host
 * that systemd runs, a scope beside it. Where neither can be had, the tenant is the process
 * and what it starts.
 *
 * The first process of a container has a cgroup of its runtime's making already, unless
 * the runtime uses cgroup v1 on a hybrid host: then it gets one as a command does.
 */
#include "daemon/cgroup.h"
#include "daemon/change.h"
#include "daemon/libraries.h"
#include "daemon/overuse.h"
#include "daemon/process.h"
#include "daemon/scope.h"

#include <ctype.h>
#include <errno.h>

static int check_process(const struct request *q, pid_t pid)
{
	uid_t uid;

	if (process_uid(pid, &uid) < 0)
		return api_fail(q->error, API_E_NOT_FOUND, "there is no process %d", pid);
	if (q->peer.uid != 0 && uid != q->peer.uid)
		return api_fail(q->error, API_E_FORBIDDEN, "process %d is not yours", pid);
	return 0;
}

/* "python3" and 4711 -> "python3-4711" */
static int choose_name(struct daemon *d, const struct request *q, pid_t pid,
		       char ret[TENANT_NAME_SIZE])
{
	const char *name = api_arg_string(q->args, "tenant");
	const char *command = api_arg_string(q->args, "command");
	char *p;

	if (name && strchr(name, '@'))
		return api_fail(
			q->error, API_E_BAD_REQUEST,
			"a name with '@' is that of a user under a template: choose another");
	if (name) {
		str_copy(ret, TENANT_NAME_SIZE, name);
	} else {
		command = command && strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
		snprintf(ret, TENANT_NAME_SIZE, "%.40s-%d", command && *command ? command : "run",
			 pid);
		for (p = ret; *p; p++) {
			if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
				*p = '-';
		}
		if (!str_is_name(ret))
			ret[0] = 'x';
	}
	if (!tenants_find(&d->tenants, ret))
		return 0;
	api_fail(q->error, API_E_CONFLICT, "there is a tenant '%s' already", ret);
	return api_hint(q->error, "choose another --name");
}

/* The engine has room for a thousand tenants: one user must not take it from the others. */
#define MAX_RUNS_OF_USER 64

static int check_room(struct daemon *d, const struct request *q)
{
	const struct tenant *t;
	unsigned n = 0;

	for (t = d->tenants.first; t; t = t->next)
		n += t->origin == TENANT_OF_RUN && !t->spec.job && t->uid == q->peer.uid;
	if (q->peer.uid != 0 && n >= MAX_RUNS_OF_USER)
		return api_fail(q->error, API_E_FORBIDDEN,
				"you have %u commands running as tenants already", n);
	return 0;
}

/* Whether a scope would take a process out of a tenant: a session's, which no slice stands for. */
static bool scope_would_leave(struct daemon *d, const char *cgroup)
{
	size_t kept = scope_keeps(cgroup);
	const struct tenant *t;

	for (t = d->tenants.first; t; t = t->next) {
		if (t->spec.match.kind == SELECT_CGROUP && strlen(t->spec.match.name) > kept &&
		    cgroup_is_inside(cgroup, t->spec.match.name))
			return true;
	}
	return false;
}

static int enter_cgroup(struct daemon *d, pid_t pid, const char *name, char **ret_path)
{
	/* Another daemon of this host may have a tenant of the same name. */
	_cleanup_free_ char *folder = str_format(CGROUP_PREFIX "%s-%d", name, pid);
	_cleanup_free_ char *cgroup = NULL;
	int r;

	if (!folder)
		return -ENOMEM;
	r = cgroup_of_pid(pid, &cgroup);
	if (r < 0)
		return r;
	if (scope_available() && scope_suits(cgroup) && !scope_would_leave(d, cgroup))
		return scope_enter(pid, folder, ret_path);
	return cgroup_enter(pid, folder, ret_path);
}

/*
 * Its runtime's own cgroup is another one than the container's.
 *
 * Return: 0, or -ENOENT if the container has none in this hierarchy.
 */
static int container_cgroup(pid_t pid, pid_t runtime, char **ret_path)
{
	_cleanup_free_ char *path = NULL, *others = NULL;
	int r;

	r = cgroup_of_pid(pid, &path);
	if (r == 0)
		r = cgroup_of_pid(runtime, &others);
	if (r < 0)
		return r;
	if (str_eq(path, others) || str_eq(path, "/"))
		return -ENOENT;
	*ret_path = TAKE_PTR(path);
	return 0;
}

/* With no cgroup of its own in v2 it may have one of v1, in which more will be started. */
static void note_freezer(struct daemon *d, pid_t pid, struct tenant_spec *spec)
{
	struct assoc_process p;

	if (assoc_of_pid(d->overuse->residents.proc_fd, pid, &p) != 0)
		return;
	if (p.place.freezer && !str_eq(p.place.freezer, "/") && cgroup_path_ok(p.place.freezer))
		spec->freezer = TAKE_PTR(p.place.freezer);
	assoc_process_done(&p);
}

/* Whatever is around the process now is around the cgroup that it gets. */
static int check_nesting(struct daemon *d, const struct request *q, pid_t pid)
{
	_cleanup_free_ char *cgroup = NULL;

	return cgroup_of_pid(pid, &cgroup) < 0 ? 0 : change_check_depth(d, q, cgroup);
}

/* A process is of one tree. Were it to change, the limits of the other would be left behind. */
static int choose_tree(struct daemon *d, const struct request *q, pid_t pid,
		       struct tenant_spec *spec, const char *no_cgroup)
{
	uint32_t other;

	if (d->engine && engine_tree_of(d->engine, pid, &other) == 0)
		return api_fail(q->error, API_E_CONFLICT,
				"process %d gets no cgroup of its own (%s) and is part of another "
				"tenant already: what holds there would no longer hold for it",
				pid, no_cgroup);
	spec->match = (struct selector){ .kind = SELECT_PID, .pid = pid };
	process_start_time(pid, &spec->match.start_time);
	return 0;
}

/* *ret_no_cgroup: why there is no cgroup, or NULL if there is one. */
static int choose_match(struct daemon *d, const struct request *q, pid_t pid,
			struct tenant_spec *spec, const char **ret_no_cgroup)
{
	char *path = NULL;
	int r = -ENOENT;

	*ret_no_cgroup = NULL;

	/* A user could name a cgroup in which others are as well. */
	if (q->peer.uid == 0 && api_arg_string(q->args, "container")) {
		r = container_cgroup(pid, q->peer.pid, &path);
		if (r < 0)
			note_freezer(d, pid, spec);
	}
	if (r < 0)
		r = enter_cgroup(d, pid, spec->name, &path);
	if (r == 0) {
		spec->match = (struct selector){ .kind = SELECT_CGROUP, .name = path };
		return 0;
	}
	*ret_no_cgroup = strerrordesc_np(-r);
	return choose_tree(d, q, pid, spec, *ret_no_cgroup);
}

static void undo_match(const struct tenant_spec *spec)
{
	/* The process is still inside; the folder goes with it when systemd or nobody minds. */
	if (spec->match.kind == SELECT_CGROUP)
		cgroup_remove(spec->match.name);
}

static json_t *begin_reply(struct daemon *d, const struct tenant *t, const char *no_cgroup)
{
	json_t *warnings = change_warnings(d, t);

	if (no_cgroup)
		json_array_append_new(
			warnings,
			json_sprintf(
				"no cgroup of its own (%s): the tenant is the process and what "
				"it starts",
				no_cgroup));
	return json_pack("{s:o, s:o, s:b}", "tenant", tenant_json_alone(d, t), "warnings", warnings,
			 "own_cgroup", !no_cgroup);
}

int method_run_begin(struct daemon *d, const struct request *q, json_t **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {
		.owner = q->peer.uid,
		.match.kind = SELECT_DEFAULT,
	};
	pid_t pid = api_arg_uint(q->args, "pid", 0);
	const char *no_cgroup;
	struct ini_error error;
	uint64_t peak_bytes;
	struct tenant *t;
	int r;

	if (check_process(q, pid) < 0 || check_room(d, q) < 0 ||
	    choose_name(d, q, pid, spec.name) < 0 || change_limits(d, q, &spec.limits) < 0 ||
	    change_check_nested(d, q, &spec.limits) < 0 || check_nesting(d, q, pid) < 0)
		return -EINVAL;
	/* A name may be that of an earlier command of which nobody has asked. */
	evictions_take(&d->evictions, spec.name, &peak_bytes);
	tenants_meet(&d->tenants, q->peer.uid);
	if (choose_match(d, q, pid, &spec, &no_cgroup) < 0)
		return -EINVAL;
	r = config_write_tenant(&d->tenants.runs, &spec, &error);
	if (r == 0)
		r = tenants_apply(&d->tenants);
	t = tenants_find(&d->tenants, spec.name);
	if (r < 0 || !t) {
		undo_match(&spec);
		return api_fail(q->error, API_E_FAULT, "cannot make the tenant: %s",
				strerrordesc_np(-r));
	}
	if (d->engine)
		libraries_attach_for(d->engine, pid);
	tenants_note(&d->tenants, EVENT_TENANT_NEW, t, "%s is a tenant now", t->spec.name);
	*ret = begin_reply(d, t, no_cgroup);
	return 0;
}

/* One that was evicted may be forgotten before whoever started it comes to ask. */
int method_run_end(struct daemon *d, const struct request *q, json_t **ret)
{
	const char *name = api_arg_string(q->args, "tenant");
	struct tenant *t = tenants_find(&d->tenants, name);
	uint64_t peak_bytes = 0;
	bool evicted;

	if (t && request_tenant(d, q, &t) < 0)
		return -EINVAL;
	evicted = evictions_take(&d->evictions, name, &peak_bytes);
	if (!t && !evicted)
		return request_tenant(d, q, &t);
	if (t)
		tenants_collect_one(&d->tenants, t);
	*ret = json_pack("{s:b, s:b, s:I}", "gone", !tenants_find(&d->tenants, name), "evicted",
			 evicted, "peak", (json_int_t)peak_bytes);
	return 0;
}
