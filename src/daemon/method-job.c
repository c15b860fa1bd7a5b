/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.*: a process of a batch job that waits to be let go, and the end of all of a job.
 *
 * A job is one tenant on this node, however many steps and processes it has: the first
 * process makes it, those that follow join it. Where the job's engine has a folder for it in
 * the v2 hierarchy, that is the tenant; elsewhere it gets one, and each process is moved
 * there before it runs anything.
 */
#include "daemon/cgroup.h"
#include "daemon/change.h"
#include "daemon/libraries.h"
#include "daemon/overuse.h"
#include "daemon/process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

/**
 * struct beginning - what is to begin
 * @own_cgroup:	where the process is
 * @cgroup:	the job's, by its engine; NULL where that keeps none in the v2 hierarchy
 */
struct beginning {
	pid_t pid;
	uint32_t job;
	uid_t uid;
	char name[TENANT_NAME_SIZE];
	char *own_cgroup;
	char *cgroup;
};

/* "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0" -> up to "job_7" */
static char *cgroup_of_job(const char *path, uint32_t job)
{
	_cleanup_free_ char *part = str_format("slurmstepd.scope/job_%" PRIu32, job);
	const char *found = part ? strstr(path, part) : NULL, *end;

	if (!found)
		return NULL;
	end = found + strlen(part);
	return *end && *end != '/' ? NULL : strndup(path, end - path);
}

static int read_request(_unused_ struct daemon *d, const struct request *q, struct beginning *b)
{
	uint64_t job = api_arg_uint(q->args, "job", 0), uid = api_arg_uint(q->args, "uid", 0);
	int r;

	if (job == 0 || job > UINT32_MAX || uid >= TENANT_NO_OWNER)
		return api_fail(q->error, API_E_BAD_REQUEST, "no job or user has such a number");
	b->pid = api_arg_uint(q->args, "pid", 0);
	b->job = job;
	b->uid = uid;
	snprintf(b->name, sizeof(b->name), "job-%" PRIu32, b->job);
	r = cgroup_of_pid(b->pid, &b->own_cgroup);
	if (r == -ESRCH)
		return api_fail(q->error, API_E_NOT_FOUND, "there is no process %d", b->pid);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "%s needs a cgroup v2 hierarchy: %s",
				b->name, strerrordesc_np(-r));
	b->cgroup = cgroup_of_job(b->own_cgroup, b->job);
	return 0;
}

/* --- the first process --- */

static int make_tenant(struct daemon *d, const struct tenant_spec *spec, struct tenant **ret)
{
	struct ini_error error;
	int r;

	r = config_write_tenant(&d->tenants.runs, spec, &error);
	if (r == 0)
		r = tenants_apply(&d->tenants);
	*ret = tenants_find(&d->tenants, spec->name);
	if (r == 0 && !*ret)
		r = -EINVAL;
	if (r < 0)
		cgroup_remove(spec->match.name);
	return r;
}

static int begin_job(struct daemon *d, const struct request *q, struct beginning *b,
		     struct tenant **ret)
{
	_cleanup_(tenant_spec_done) struct tenant_spec spec = {
		.owner = b->uid,
		.job = b->job,
		.match.kind = SELECT_CGROUP,
	};
	int r;

	str_copy(spec.name, sizeof(spec.name), b->name);
	if (change_check_depth(d, q, b->cgroup ? b->cgroup : b->own_cgroup) < 0 ||
	    change_limits(d, q, &spec.limits) < 0)
		return -EINVAL;
	tenants_meet(&d->tenants, b->uid);
	if (b->cgroup) {
		spec.match.name = TAKE_PTR(b->cgroup);
		r = 0;
	} else {
		_cleanup_free_ char *folder = str_format(CGROUP_PREFIX "%s-%d", b->name, b->pid);

		r = folder ? cgroup_enter(b->pid, folder, &spec.match.name) : -ENOMEM;
	}
	if (r == 0)
		r = make_tenant(d, &spec, ret);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "cannot make the tenant %s: %s", b->name,
				strerrordesc_np(-r));
	tenants_note(&d->tenants, EVENT_TENANT_NEW, *ret, "%s is a tenant now", b->name);
	return 0;
}

/* --- those that follow --- */

static int join_job(const struct request *q, const struct beginning *b, const struct tenant *t)
{
	int r;

	/* Numbers are used again after a controller has lost its state. */
	if (t->spec.job != b->job || t->uid != b->uid)
		return api_fail(q->error, API_E_CONFLICT,
				"there is a tenant '%s' already, and it is %s", b->name,
				t->spec.job == b->job ? "another user's" : "not a job");
	if (b->cgroup)
		return 0;
	r = cgroup_move(b->pid, t->spec.match.name);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT,
				"cannot bring process %d to the others of %s: %s", b->pid, b->name,
				strerrordesc_np(-r));
	return 0;
}

int method_job_begin(struct daemon *d, const struct request *q, json_t **ret)
{
	struct beginning b = {};
	struct tenant *t = NULL;
	int r;

	/* A job that begins anew does not join what is left of its former run. */
	tenants_collect(&d->tenants);
	r = read_request(d, q, &b);
	if (r == 0) {
		t = tenants_find(&d->tenants, b.name);
		r = t ? join_job(q, &b, t) : begin_job(d, q, &b, &t);
	}
	free(b.own_cgroup);
	free(b.cgroup);
	if (r < 0)
		return r;
	if (d->engine)
		libraries_attach_for(d->engine, b.pid);
	*ret = json_pack("{s:o, s:o}", "tenant", tenant_json_alone(d, t), "warnings",
			 change_warnings(d, t));
	return 0;
}

/* --- the end --- */

static const struct tenant *find_job(const struct tenants *tenants, uint32_t job)
{
	char name[TENANT_NAME_SIZE];
	const struct tenant *t;

	snprintf(name, sizeof(name), "job-%" PRIu32, job);
	t = tenants_find(tenants, name);
	return t && t->spec.job == job ? t : NULL;
}

/* In the engine's own folder of a job are its keepers as well, beside "user". */
static void add_own(pid_t pid, void *userdata)
{
	struct target *target = userdata;
	_cleanup_free_ char *cgroup = NULL;
	uint64_t start_time;

	if (cgroup_of_pid(pid, &cgroup) == 0 && strstr(cgroup, "/user/") &&
	    process_start_time(pid, &start_time) == 0)
		target_add(target, pid, start_time, NULL, NULL);
}

static int find_processes(const struct tenant *t, struct target *ret)
{
	const char *path = t->spec.match.name, *name = strrchr(path, '/');

	if (name && str_after(name, "/" CGROUP_PREFIX))
		return target_set_cgroup(ret, path);
	return cgroup_each_pid(path, add_own, ret);
}

/* Who is stopped hears nothing but SIGKILL, and in a freezer not even that. */
static void let_go(struct daemon *d, const struct tenant *t)
{
	struct live_incident *live = d->overuse ? overuse_live(d->overuse, t->id) : NULL;

	if (live)
		deed_let_go(d->overuse, live);
}

int method_job_end(struct daemon *d, const struct request *q, json_t **ret)
{
	bool is_kill = json_is_true(json_object_get(q->args, "kill"));
	uint64_t job = api_arg_uint(q->args, "job", 0);
	const struct tenant *t = job <= UINT32_MAX ? find_job(&d->tenants, job) : NULL;
	_cleanup_(target_done) struct target target = {};
	size_t n_left = 0;
	int r = 0;

	if (t) {
		let_go(d, t);
		r = find_processes(t, &target);
	}
	if (r < 0 && r != -ENOENT)
		return api_fail(q->error, API_E_FAULT, "cannot find the processes of %s: %s",
				t->spec.name, strerrordesc_np(-r));
	if (r == 0) {
		n_left = target_n_left(&target);
		target_signal(&target, is_kill ? SIGKILL : SIGTERM);
	}
	*ret = json_pack("{s:I}", "left", (json_int_t)n_left);
	return 0;
}
