/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bringing up to date is mark and sweep: what is wanted is looked up or made and
 * marked, what is not marked goes. The engine keeps tenants by name across the
 * daemon's death, so one that is wanted again finds its books as they were.
 */
#include "daemon/tenants.h"

#include "base/fd.h"
#include "base/log.h"
#include "daemon/cgroup.h"
#include "daemon/libraries.h"
#include "daemon/process.h"
#include "daemon/tenant-engine.h"

#include <errno.h>
#include <stdarg.h>

static int init_dir(struct config *config, const char *dir, const char *name)
{
	_cleanup_free_ char *path = str_format("%s/%s", dir, name);

	return path ? config_init(config, path) : -ENOMEM;
}

int tenants_init(struct tenants *tenants, const char *config_dir, const char *state_dir)
{
	int r;

	r = init_dir(&tenants->files, config_dir, "tenants.d");
	if (r == 0)
		r = init_dir(&tenants->runs, state_dir, "run.d");
	tenants->runs.passing = true;
	if (r == 0)
		r = init_dir(&tenants->lowered, state_dir, "lowered.d");
	return r == 0 ? released_init(&tenants->released, state_dir) : r;
}

static void tenant_free(struct tenant *tenant)
{
	tenant_spec_done(&tenant->spec);
	limits_done(&tenant->lowered);
	free(tenant);
}

void tenants_done(struct tenants *tenants)
{
	struct tenant *t, *next;

	for (t = tenants->first; t; t = next) {
		next = t->next;
		tenant_free(t);
	}
	config_done(&tenants->files);
	config_done(&tenants->runs);
	config_done(&tenants->lowered);
	released_done(&tenants->released);
	free(tenants->gone);
}

struct tenant *tenants_find(const struct tenants *tenants, const char *name)
{
	struct tenant *t;

	for (t = tenants->first; t; t = t->next) {
		if (str_eq(t->spec.name, name))
			return t;
	}
	return NULL;
}

struct tenant *tenants_by_number(const struct tenants *tenants, uint32_t number)
{
	struct tenant *t;

	for (t = tenants->first; t && number; t = t->next) {
		if (t->number == number)
			return t;
	}
	return NULL;
}

bool tenants_told_as(const struct tenants *tenants, uint32_t number, struct tenant_told *ret)
{
	const struct tenant *t = tenants_by_number(tenants, number);

	if (!t && (!tenants->gone || number >= LEDGER_TENANTS || !*tenants->gone[number].name))
		return false;
	if (!t) {
		*ret = tenants->gone[number];
		return true;
	}
	str_copy(ret->name, sizeof(ret->name), t->spec.name);
	ret->uid = t->uid;
	return true;
}

static bool stands_for_user(const struct tenant *t)
{
	return t->spec.match.kind == SELECT_USER && t->origin != TENANT_OF_RUN;
}

struct tenant *tenants_of_uid(const struct tenants *tenants, uid_t uid)
{
	struct tenant *t;

	for (t = tenants->first; t; t = t->next) {
		if (stands_for_user(t) && t->uid == uid)
			return t;
	}
	return NULL;
}

unsigned tenants_around(const struct tenants *tenants, const char *cgroup)
{
	const struct tenant *t;
	unsigned n = 0;

	for (t = tenants->first; t; t = t->next)
		n += t->spec.match.kind == SELECT_CGROUP &&
		     cgroup_is_inside(cgroup, t->spec.match.name);
	return n;
}

bool tenant_is_visible(const struct tenant *tenant, uid_t uid)
{
	return uid == 0 || tenant->uid == uid;
}

static void lower(struct device_limits *limits, const struct device_limits *own)
{
	limits->memory_max = MIN(limits->memory_max, own->memory_max);
	limits->compute_max_permille = MIN(limits->compute_max_permille, own->compute_max_permille);
}

void tenant_limits(const struct tenants *tenants, const struct tenant *tenant, unsigned device,
		   struct device_limits *ret)
{
	const struct gpu_device *d = &tenants->gpu->devices[device];
	struct device_limits own;

	limits_resolve(&tenant->spec.limits, d->uuid, d->total_bytes, ret);
	if (tenant->lowered.n_settings > 0) {
		limits_resolve(&tenant->lowered, d->uuid, d->total_bytes, &own);
		lower(ret, &own);
	}
	ret->memory_low = MIN(ret->memory_low, ret->memory_max);
}

bool tenant_sets_compute(const struct tenant *t)
{
	const struct limits *of[] = { &t->spec.limits, &t->lowered };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		for (j = 0; j < of[i]->n_settings; j++) {
			if (of[i]->settings[j].id == LIMIT_COMPUTE_MAX ||
			    of[i]->settings[j].id == LIMIT_COMPUTE_WEIGHT)
				return true;
		}
	}
	return false;
}

void tenants_note(struct tenants *tenants, enum event_kind kind, const struct tenant *tenant,
		  const char *fmt, ...)
{
	struct event event = { .kind = kind,
			       .uid = EVENT_NO_UID,
			       .size = EVENT_NO_NUMBER,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	event.text = text;
	if (tenant) {
		event.tenant = tenant->spec.name;
		event.uid = tenant->uid;
	}
	event_log_add(tenants->events, &event, NULL);
}

/* --- what is wanted --- */

static uid_t owner_of(const struct tenant_spec *spec)
{
	uid_t uid;

	if (spec->match.kind == SELECT_USER && user_id(spec->match.name, &uid) == 0)
		return uid;
	return spec->owner;
}

static struct tenant *tenant_make(struct tenants *tenants, const struct tenant_spec *spec)
{
	struct tenant *t = calloc(1, sizeof(*t)), **end;

	if (!t)
		return NULL;
	if (tenant_spec_copy(spec, &t->spec) < 0) {
		free(t);
		return NULL;
	}
	t->id = ++tenants->last_id;
	for (end = &tenants->first; *end; end = &(*end)->next)
		;
	*end = t;
	return t;
}

static int replace_spec(struct tenant *t, const struct tenant_spec *spec)
{
	struct tenant_spec copy;
	int r;

	r = tenant_spec_copy(spec, &copy);
	if (r < 0)
		return r;
	tenant_spec_done(&t->spec);
	t->spec = copy;
	return 0;
}

/* Looks it up or makes it, and brings it to what @spec says. */
static int want(struct tenants *tenants, const struct tenant_spec *spec, enum tenant_origin origin,
		const char *template)
{
	struct tenant *t = tenants_find(tenants, spec->name);
	int r = 0;

	if (t && t->wanted)
		return log_debug(-EEXIST, "two tenants are called %s", spec->name);
	if (!t) {
		t = tenant_make(tenants, spec);
		if (!t)
			return -ENOMEM;
	} else {
		r = replace_spec(t, spec);
		if (r < 0)
			return r;
	}
	t->wanted = true;
	t->origin = origin;
	t->uid = owner_of(spec);
	str_copy(t->template, sizeof(t->template), template);
	return 0;
}

static int want_all(struct tenants *tenants, const struct config *config, enum tenant_origin origin)
{
	size_t i, j;
	int r;

	for (i = 0; i < config->n_files; i++) {
		for (j = 0; j < config->files[i].specs.n_tenants; j++) {
			r = want(tenants, &config->files[i].specs.tenants[j], origin, "");
			if (r == -ENOMEM)
				return r;
		}
	}
	return 0;
}

/* The template that a user falls under: a group's before the default. */
static const struct tenant *template_for(const struct tenants *tenants, uid_t uid)
{
	const struct tenant *t, *found = NULL;

	for (t = tenants->first; t; t = t->next) {
		if (!t->wanted || t->origin == TENANT_OF_RUN)
			continue;
		if (t->spec.match.kind == SELECT_GROUP && group_has(t->spec.match.name, uid))
			return t;
		if (t->spec.match.kind == SELECT_DEFAULT)
			found = t;
	}
	return found;
}

static bool has_own_tenant(const struct tenants *tenants, uid_t uid)
{
	const struct tenant *t;

	for (t = tenants->first; t; t = t->next) {
		if (t->wanted && stands_for_user(t) && t->uid == uid)
			return true;
	}
	return false;
}

/* Return: 1 if a tenant for this user is wanted from a template, 0 if not. */
static int want_member(struct tenants *tenants, uid_t uid)
{
	char user[PROCESS_NAME_SIZE], name[2 * TENANT_NAME_SIZE];
	const struct tenant *template;
	struct tenant_spec spec;
	int r;

	if (has_own_tenant(tenants, uid))
		return 0;
	template = template_for(tenants, uid);
	if (!template)
		return 0;
	user_name(uid, user);
	snprintf(name, sizeof(name), "%s@%s", user, template->spec.name);
	if (!str_is_name(name))
		snprintf(name, sizeof(name), "%u@%.40s", uid, template->spec.name);
	r = tenant_spec_copy(&template->spec, &spec);
	if (r < 0)
		return r;
	selector_done(&spec.match);
	spec.match = (struct selector){ .kind = SELECT_USER, .name = strdup(user) };
	str_copy(spec.name, sizeof(spec.name), name);
	r = spec.match.name ? want(tenants, &spec, TENANT_OF_TEMPLATE, template->spec.name)
			    : -ENOMEM;
	tenant_spec_done(&spec);
	return r < 0 ? r : 1;
}

/* Users who had a template's tenant in this life or an earlier one of the daemon. */
static int want_members(struct tenants *tenants)
{
	struct audit_tenant known;
	struct tenant *t;
	uid_t uid;
	uint32_t i;
	char *at;
	int r;

	for (t = tenants->first; t; t = t->next) {
		if (t->origin != TENANT_OF_TEMPLATE || t->wanted)
			continue;
		r = want_member(tenants, t->uid);
		if (r < 0)
			return r;
	}
	for (i = 1; tenants->engine && i < LEDGER_TENANTS; i++) {
		if (engine_tenant(tenants->engine, i, &known) != 0 || !known.in_use)
			continue;
		known.name[sizeof(known.name) - 1] = '\0';
		at = strchr(known.name, '@');
		if (!at)
			continue;
		*at = '\0';
		if (user_id(known.name, &uid) == 0) {
			r = want_member(tenants, uid);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static void take_lowered(struct tenants *tenants)
{
	const struct tenant_spec *spec;
	struct tenant *t;

	for (t = tenants->first; t; t = t->next) {
		limits_done(&t->lowered);
		spec = config_find(&tenants->lowered, t->spec.name, NULL);
		if (spec && selector_equal(&spec->match, &t->spec.match))
			limits_copy(&spec->limits, &t->lowered);
	}
}

/*
 * What the engine has to tell of those who are gone is told before a number of theirs is another's.
 */
static void sweep(struct tenants *tenants)
{
	struct tenant **p = &tenants->first, *t;
	bool any = false;

	while ((t = *p)) {
		if (t->wanted) {
			p = &t->next;
			continue;
		}
		*p = t->next;
		tenant_forget(tenants, t);
		tenants_note(tenants, EVENT_TENANT_GONE, t, "%s is no tenant any more",
			     t->spec.name);
		tenant_free(t);
		any = true;
	}
	if (any && tenants->engine)
		engine_dispatch(tenants->engine);
}

/*
 * Probes only where somebody may be charged. The engine attaches a library when a
 * process maps it, so this costs nothing where nobody uses a device.
 */
static void watch(struct tenants *tenants)
{
	bool on = tenants->first != NULL;

	if (!tenants->engine)
		return;
	engine_watch(tenants->engine, on);
	if (on && !tenants->watching)
		libraries_attach_system(tenants->engine, tenants->gpu->library_dir);
	tenants->watching = on;
}

/* What is asked all the time is noted here, as it changes seldom. */
static void note_kinds(struct tenants *tenants)
{
	const struct tenant *t;

	tenants->any_sets_compute = tenants->any_of_cgroup = false;
	for (t = tenants->first; t; t = t->next) {
		tenants->any_sets_compute |= tenant_sets_compute(t);
		tenants->any_of_cgroup |= t->spec.match.kind == SELECT_CGROUP;
	}
}

static enum audit_failure failure_of(const struct tenant *t)
{
	const struct limit_setting *setting = limits_find(&t->spec.limits, LIMIT_ON_FAILURE, "");

	return tenant_failure(setting ? setting->value.number : ON_FAILURE_KILL);
}

static enum audit_failure stricter(enum audit_failure a, enum audit_failure b)
{
	if (a == AUDIT_FAILURE_KILL || b == AUDIT_FAILURE_KILL)
		return AUDIT_FAILURE_KILL;
	return a == AUDIT_FAILURE_DENY || b == AUDIT_FAILURE_DENY ? AUDIT_FAILURE_DENY
								  : AUDIT_FAILURE_ALLOW;
}

/*
 * Who is a member of a group is found out when he is seen first. As long as that is not known he may be of any
 * of them, so the strictest decides on a call that has waited for it in vain.
 */
static void ask_users(struct tenants *tenants)
{
	enum audit_failure on_failure = AUDIT_FAILURE_ALLOW;
	const struct tenant *t;
	bool on = false;

	for (t = tenants->first; t; t = t->next) {
		if (t->spec.match.kind != SELECT_GROUP)
			continue;
		on = true;
		on_failure = stricter(on_failure, failure_of(t));
	}
	if (tenants->engine)
		engine_ask_users(tenants->engine, on, on_failure);
}

int tenants_apply(struct tenants *tenants)
{
	struct tenant *t;
	int r;

	for (t = tenants->first; t; t = t->next)
		t->wanted = false;
	r = want_all(tenants, &tenants->files, TENANT_OF_FILE);
	if (r == 0)
		r = want_all(tenants, &tenants->runs, TENANT_OF_RUN);
	if (r == 0)
		r = want_members(tenants);
	if (r < 0)
		return r;
	take_lowered(tenants);
	sweep(tenants);
	for (t = tenants->first; t; t = t->next)
		tenant_enforce(tenants, t);
	tenants->n_changes++;
	note_kinds(tenants);
	ask_users(tenants);
	watch(tenants);
	return 0;
}

static void note_refused(struct tenants *tenants, const struct config *config)
{
	const struct config_file *f;
	size_t i;

	for (i = 0; i < config->n_files; i++) {
		f = &config->files[i];
		if (!f->news)
			continue;
		log_warn(0, "%s:%u: %s; the file is refused", f->path, f->error.line,
			 f->error.reason);
		tenants_note(tenants, EVENT_FILE_REFUSED, NULL, "%s:%u: %s", f->path, f->error.line,
			     f->error.reason);
	}
}

/* A restart must bind process trees that it finds alive, and forget the others. */
int tenants_reload(struct tenants *tenants)
{
	int r;

	r = config_load(&tenants->files);
	if (r == 0)
		r = config_load(&tenants->runs);
	if (r == 0)
		r = config_load(&tenants->lowered);
	if (r < 0)
		return r;
	note_refused(tenants, &tenants->files);
	r = tenants_apply(tenants);
	if (r == 0)
		tenants_remove_strays(tenants);
	return r;
}

void tenants_retry(struct tenants *tenants)
{
	uint64_t before;
	struct tenant *t;

	for (t = tenants->first; t; t = t->next) {
		if (!tenants->engine || !t->number || t->spec.match.kind != SELECT_CGROUP)
			continue;
		before = t->bound ? t->bound_id : 0;
		tenant_bind(tenants, t);
		if (t->bound && t->bound_id != before)
			tenant_set_outer_wall(tenants, t, /* on= */ true);
	}
}

int tenants_meet(struct tenants *tenants, uid_t uid)
{
	struct tenant *t;
	int r;

	r = want_member(tenants, uid);
	if (r <= 0)
		return r;
	t = tenants_of_uid(tenants, uid);
	tenant_enforce(tenants, t);
	tenants->n_changes++;
	note_kinds(tenants);
	tenants_note(tenants, EVENT_TENANT_NEW, t, "%s has the limits of %s", t->spec.name,
		     t->template);
	return 1;
}

struct charged_search {
	uint32_t number;
	bool found;
};

static int is_charged_to(const struct audit_process *process, void *userdata)
{
	struct charged_search *search = userdata;
	uint32_t i;

	for (i = 0; i < process->chain.n && i < LEDGER_DEPTH; i++)
		search->found |= process->chain.tenants[i] == search->number;
	return search->found;
}

static bool has_charged_process(const struct tenants *tenants, const struct tenant *t)
{
	struct charged_search search = { .number = t->number };

	if (tenants->engine && t->number)
		engine_each_process(tenants->engine, is_charged_to, &search);
	return search.found;
}

static bool has_ended(const struct tenants *tenants, const struct tenant *t)
{
	const struct selector *match = &t->spec.match;

	if (match->kind == SELECT_CGROUP)
		return !cgroup_is_populated(match->name);
	return !process_is(match->pid, match->start_time) && !has_charged_process(tenants, t);
}

void tenants_release_run(struct tenants *tenants, const struct tenant *t)
{
	int r = t->spec.match.kind == SELECT_CGROUP
			? released_add(&tenants->released, t->spec.match.name)
			: 0;

	if (r < 0)
		log_warn(r, "%s: nobody will take away its cgroup", t->spec.name);
}

int tenants_remove_cgroups(const char *state_dir)
{
	_cleanup_(config_done) struct config runs = {};
	size_t i, k;
	int r;

	r = init_dir(&runs, state_dir, "run.d");
	if (r == 0)
		r = config_load(&runs);
	if (r < 0)
		return r;
	for (i = 0; i < runs.n_files; i++) {
		const struct specs *specs = &runs.files[i].specs;

		for (k = 0; k < specs->n_tenants; k++) {
			if (specs->tenants[k].match.kind == SELECT_CGROUP)
				cgroup_remove(specs->tenants[k].match.name);
		}
	}
	return 0;
}

/* Return: whether it is forgotten with the next tenants_apply(). */
static bool collect(struct tenants *tenants, const struct tenant *t)
{
	struct ini_error error;

	if (t->origin != TENANT_OF_RUN || !has_ended(tenants, t))
		return false;
	if (t->spec.match.kind == SELECT_CGROUP)
		cgroup_remove(t->spec.match.name);
	return config_remove_tenant(&tenants->runs, t->spec.name, &error) == 0;
}

void tenants_collect(struct tenants *tenants)
{
	struct tenant *t;
	bool changed = false;

	for (t = tenants->first; t; t = t->next)
		changed |= collect(tenants, t);
	if (changed)
		tenants_apply(tenants);
	released_collect(&tenants->released);
}

void tenants_collect_one(struct tenants *tenants, const struct tenant *t)
{
	if (collect(tenants, t))
		tenants_apply(tenants);
}
