/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tenant-engine.h"

#include "daemon/cgroup.h"
#include "daemon/process.h"

#include <errno.h>

static uint64_t to_ns(uint64_t ms)
{
	return ms > UINT64_MAX / 1000000 ? UINT64_MAX : ms * 1000000;
}

/* Until a new user's own tenant is there, he shares the template's: wait rather than refuse. */
#define TEMPLATE_WAIT_MS 2000

enum audit_failure tenant_failure(uint64_t on_failure)
{
	static const enum audit_failure failures[] = {
		[ON_FAILURE_KILL] = AUDIT_FAILURE_KILL,
		[ON_FAILURE_ALLOW] = AUDIT_FAILURE_ALLOW,
		[ON_FAILURE_DENY] = AUDIT_FAILURE_DENY,
	};

	return failures[on_failure];
}

static int apply_limits(struct tenants *tenants, const struct tenant *t)
{
	struct device_limits limits = { .wait_low_ms = LIMIT_DEFAULT_WAIT_LOW_MS };
	struct engine_compute compute;
	struct engine_limits e;
	unsigned i;
	int r;

	for (i = 0; i < tenants->gpu->n_devices && i < LEDGER_DEVICES; i++) {
		tenant_limits(tenants, t, i, &limits);
		e.max_bytes = limits.memory_max;
		e.low_bytes = limits.memory_low;
		r = engine_tenant_limit(tenants->engine, t->number, i, &e);
		if (r)
			return r;
		compute.max_permille = limits.compute_max_permille;
		compute.weight = limits.compute_weight;
		r = engine_tenant_compute(tenants->engine, t->number, i, &compute);
		if (r)
			return r;
	}
	if (t->spec.match.kind == SELECT_DEFAULT)
		limits.wait_max_ms = MAX(limits.wait_max_ms, (uint64_t)TEMPLATE_WAIT_MS);
	return engine_tenant_waits(tenants->engine, t->number, to_ns(limits.wait_max_ms),
				   to_ns(limits.wait_low_ms), tenant_failure(limits.on_failure));
}

bool tenants_can_deny(const struct tenants *tenants)
{
	return !tenants->engine || engine_rung_now(tenants->engine) == ENGINE_RUNG_REGISTERS;
}

/* A file may say so, and may be older than the kernel: it is told, and the default is what happens. */
static void check_on_failure(struct tenants *tenants, struct tenant *t)
{
	const struct limit_setting *setting = limits_find(&t->spec.limits, LIMIT_ON_FAILURE, "");

	if (setting && setting->value.number == ON_FAILURE_DENY && !tenants_can_deny(tenants) &&
	    !*t->problem)
		snprintf(t->problem, sizeof(t->problem), "%s", TENANTS_CANNOT_DENY);
}

/*
 * Where the driver keeps limits on cgroups itself, it is told as well: a wall behind
 * the probes. That it does not know a cgroup is no fault. A tenant that is to run
 * though nobody can answer has none: the driver would refuse what we let pass.
 */
void tenant_set_outer_wall(struct tenants *tenants, const struct tenant *t, bool on)
{
	struct device_limits limits = { .memory_max = QUANTITY_MAX };
	_cleanup_free_ char *dir = NULL;
	unsigned i;

	if (!tenants->gpu->has_driver_limits || t->spec.match.kind != SELECT_CGROUP ||
	    cgroup_dir(t->spec.match.name, &dir) < 0)
		return;
	for (i = 0; i < tenants->gpu->n_devices; i++) {
		if (on)
			tenant_limits(tenants, t, i, &limits);
		if (limits.on_failure == ON_FAILURE_ALLOW)
			limits.memory_max = QUANTITY_MAX;
		tenants->gpu->ops->driver_limits(tenants->gpu, i, dir, limits.memory_low,
						 limits.memory_max);
	}
}

/* What a tenant's processes are known by. On failure @t->problem says why. */
static int find_binding(const struct tenants *tenants, struct tenant *t,
			enum engine_binding *ret_kind, uint64_t *ret_id)
{
	const struct selector *match = &t->spec.match;

	switch (match->kind) {
	case SELECT_USER:
		*ret_kind = ENGINE_BIND_UID;
		*ret_id = t->uid;
		if (t->uid != TENANT_NO_OWNER)
			return 0;
		snprintf(t->problem, sizeof(t->problem), "there is no user %.60s", match->name);
		return -ENOENT;
	case SELECT_CGROUP:
		*ret_kind = ENGINE_BIND_CGROUP;
		if (tenants_around(tenants, match->name) > TENANTS_OF_CGROUPS) {
			snprintf(
				t->problem, sizeof(t->problem),
				"%d tenants of cgroups are around it, and it would be one too many",
				TENANTS_OF_CGROUPS);
			return -ELOOP;
		}
		if (cgroup_id(match->name, ret_id) == 0)
			return 0;
		snprintf(t->problem, sizeof(t->problem), "there is no such cgroup at present");
		return -ENOENT;
	case SELECT_PID:
		*ret_kind = ENGINE_BIND_TREE;
		*ret_id = match->pid;
		if (t->bound || process_is(match->pid, match->start_time))
			return 0;
		snprintf(t->problem, sizeof(t->problem), "the process has ended");
		return -ESRCH;
	default:
		*ret_kind = ENGINE_BIND_DEFAULT;
		*ret_id = 0;
		return 0;
	}
}

static void unbind(struct tenants *tenants, struct tenant *t)
{
	if (t->bound && tenants->engine)
		engine_unbind(tenants->engine, t->binding, t->bound_id);
	t->bound = false;
}

void tenant_bind(struct tenants *tenants, struct tenant *t)
{
	enum engine_binding kind;
	uint64_t id;

	t->problem[0] = '\0';
	if (find_binding(tenants, t, &kind, &id) < 0) {
		unbind(tenants, t);
		return;
	}
	if (t->bound && t->binding == kind && t->bound_id == id)
		return;
	unbind(tenants, t);
	if (engine_bind(tenants->engine, t->number, kind, id) != 0) {
		snprintf(t->problem, sizeof(t->problem),
			 "the engine has no room for one more binding");
		return;
	}
	t->bound = true;
	t->binding = kind;
	t->bound_id = id;
}

/* A group's template is never charged itself: its members are. */
static bool is_charged(const struct tenant *t)
{
	return t->spec.match.kind != SELECT_GROUP;
}

void tenant_enforce(struct tenants *tenants, struct tenant *t)
{
	int r = 0;

	if (!tenants->engine || !is_charged(t))
		return;
	if (t->number == 0) {
		r = engine_tenant_find(tenants->engine, t->spec.name, &t->number);
		if (r == ENGINE_E_GONE)
			r = engine_tenant_new(tenants->engine, t->spec.name, &t->number);
		if (r == 0 && tenants->gone)
			tenants->gone[t->number % LEDGER_TENANTS].name[0] = '\0';
	}
	if (r == 0)
		r = apply_limits(tenants, t);
	if (r != 0) {
		snprintf(t->problem, sizeof(t->problem), "the engine did not take it (%d)", r);
		return;
	}
	tenant_bind(tenants, t);
	check_on_failure(tenants, t);
	tenant_set_outer_wall(tenants, t, /* on= */ true);
}

/* Its last events may not have been read yet. */
static void remember(struct tenants *tenants, const struct tenant *t)
{
	struct tenant_told *told;

	if (!tenants->gone)
		tenants->gone = calloc(LEDGER_TENANTS, sizeof(*tenants->gone));
	if (!tenants->gone)
		return;
	told = &tenants->gone[t->number % LEDGER_TENANTS];
	str_copy(told->name, sizeof(told->name), t->spec.name);
	told->uid = t->uid;
}

void tenant_forget(struct tenants *tenants, struct tenant *t)
{
	if (!tenants->engine || t->number == 0)
		return;
	tenant_set_outer_wall(tenants, t, /* on= */ false);
	unbind(tenants, t);
	engine_tenant_remove(tenants->engine, t->number);
	remember(tenants, t);
	t->number = 0;
}

/* Tenants of an earlier life of the daemon that nobody wants any more. */
void tenants_remove_strays(struct tenants *tenants)
{
	struct audit_tenant known;
	uint32_t i;

	for (i = 1; tenants->engine && i < LEDGER_TENANTS; i++) {
		if (engine_tenant(tenants->engine, i, &known) == 0 && known.in_use &&
		    !tenants_by_number(tenants, i))
			engine_tenant_remove(tenants->engine, i);
	}
}
