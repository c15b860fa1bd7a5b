/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the driver's numbers to the policy's question: who has what, who asked for what,
 * and what waits.
 */
#include "daemon/overuse.h"

#include "base/log.h"
#include "daemon/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

/* The timer's grain: a device is sampled when it is due, not later than this. */
#define WAKE_AT_LEAST_MS 20

uint64_t overuse_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* --- who is charged --- */

struct charging {
	struct overuse *overuse;
	uint32_t ids[LEDGER_TENANTS]; /* by the engine's numbers */
};

static int charge_process(const struct audit_process *p, void *userdata)
{
	struct charging *c = userdata;
	struct resident *r = residents_find(&c->overuse->residents, audit_process_tgid(p));
	uint32_t i, id;

	for (i = 0; r && i < p->chain.n && i < LEDGER_DEPTH; i++) {
		id = c->ids[p->chain.tenants[i] % LEDGER_TENANTS];
		if (id && r->n_tenants < LEDGER_DEPTH)
			r->tenants[r->n_tenants++] = id;
	}
	return 0;
}

static void charge_residents(struct overuse *o)
{
	struct daemon *d = o->daemon;
	struct charging c = { .overuse = o };
	const struct tenant *t;
	size_t i;

	for (i = 0; i < o->residents.n; i++)
		o->residents.items[i]->n_tenants = 0;
	for (t = d->tenants.first; t; t = t->next)
		c.ids[t->number % LEDGER_TENANTS] = t->number ? t->id : 0;
	if (d->engine)
		engine_each_process(d->engine, charge_process, &c);
}

/*
 * A process that was started in a container later, as by `podman exec`, is in its v1
 * cgroups but not in the v2 cgroup that was made for it: it is put there.
 */
static void gather(struct overuse *o, struct resident *p)
{
	const char *freezer = p->who.place.freezer;
	const struct tenant *t;

	p->is_new = false;
	for (t = o->daemon->tenants.first; t && freezer; t = t->next) {
		if (!t->spec.freezer || !str_eq(t->spec.freezer, freezer) ||
		    (p->who.place.cgroup && str_eq(p->who.place.cgroup, t->spec.match.name)))
			continue;
		if (cgroup_move(p->who.pid, t->spec.match.name) == 0 && o->daemon->engine)
			engine_adopt(o->daemon->engine, p->who.pid);
		return;
	}
}

static void gather_new(struct overuse *o)
{
	size_t i;

	for (i = 0; i < o->residents.n; i++) {
		if (o->residents.items[i]->is_new)
			gather(o, o->residents.items[i]);
	}
}

/* --- the sample --- */

struct sampling {
	struct policy_sample sample;
	struct policy_device devices[LEDGER_DEVICES];
	struct policy_tenant *tenants;
};

static void ask_device(struct overuse *o, unsigned device, struct policy_device *ret)
{
	struct gpu *gpu = o->daemon->gpu;
	struct gpu_memory m;

	ret->known = gpu->ops->memory(gpu, device, &m) == 0 &&
		     residents_sample(&o->residents, gpu, device) == 0;
	if (!ret->known)
		return;
	ret->total_bytes = m.total_bytes;
	ret->free_bytes = m.free_bytes;
}

/* Return: whether it is watched: it has a request on some device. */
static bool take_requests(struct overuse *o, const struct tenant *t, struct policy_tenant *ret)
{
	struct device_limits limits;
	bool any = false;
	unsigned i;

	memset(ret, 0, sizeof(*ret));
	ret->id = t->id;
	for (i = 0; i < daemon_n_devices(o->daemon); i++) {
		tenant_limits(&o->daemon->tenants, t, i, &limits);
		ret->use[i].known = true;
		ret->use[i].request_bytes =
			limits.has_request ? limits.memory_low : POLICY_NO_REQUEST;
		any |= limits.has_request;
		ret->ladder = limits.ladder;
		ret->grace_ms = limits.grace_ms;
		ret->priority = limits.priority;
	}
	return any;
}

static struct policy_tenant *find_sampled(struct sampling *s, uint32_t id)
{
	size_t i;

	for (i = 0; i < s->sample.n_tenants; i++) {
		if (s->tenants[i].id == id)
			return &s->tenants[i];
	}
	return NULL;
}

static void add_use(struct policy_tenant *t, const struct resident *p)
{
	unsigned i;

	for (i = 0; i < LEDGER_DEVICES; i++) {
		t->use[i].used_bytes += p->bytes[i];
		if (p->unknown & 1U << i)
			t->use[i].known = false;
	}
}

static void take_use(struct overuse *o, struct sampling *s)
{
	const struct resident *p;
	struct policy_tenant *t;
	unsigned j;
	size_t i;

	for (i = 0; i < o->residents.n; i++) {
		p = o->residents.items[i];
		for (j = 0; j < p->n_tenants; j++) {
			t = find_sampled(s, p->tenants[j]);
			if (t)
				add_use(t, p);
		}
	}
}

static int take_tenants(struct overuse *o, struct sampling *s)
{
	const struct tenant *t;
	size_t n = 0;

	for (t = o->daemon->tenants.first; t; t = t->next)
		n++;
	s->tenants = calloc(n + 1, sizeof(*s->tenants));
	if (!s->tenants)
		return -ENOMEM;
	for (t = o->daemon->tenants.first; t; t = t->next) {
		if (take_requests(o, t, &s->tenants[s->sample.n_tenants]))
			s->sample.n_tenants++;
	}
	return 0;
}

struct waiting {
	struct overuse *overuse;
	struct sampling *sampling;
};

/* The nearest tenant that has a request decides whether an ask is within it. */
static const struct policy_use *request_of(const struct waiting *w, const struct audit_slot *slot)
{
	const struct policy_tenant *sampled;
	const struct tenant *t;
	uint32_t i;

	for (i = 0; i < slot->chain.n && i < LEDGER_DEPTH; i++) {
		t = tenants_by_number(&w->overuse->daemon->tenants, slot->chain.tenants[i]);
		sampled = t ? find_sampled(w->sampling, t->id) : NULL;
		if (sampled && sampled->use[slot->device].request_bytes != POLICY_NO_REQUEST)
			return &sampled->use[slot->device];
	}
	return NULL;
}

/* An allocation that is held for want of device memory, within what its tenant asked for. */
static int add_wanted(const struct audit_slot *slot, void *userdata)
{
	struct waiting *w = userdata;
	const struct policy_use *use;

	if (slot->ask != AUDIT_ASK_HOLD || slot->device >= w->sampling->sample.n_devices ||
	    (slot->reason != AUDIT_REASON_DEVICE && slot->reason != AUDIT_REASON_QUEUE))
		return 0;
	use = request_of(w, slot);
	if (use && use->known && use->used_bytes <= use->request_bytes &&
	    slot->size <= use->request_bytes - use->used_bytes)
		w->sampling->devices[slot->device].wanted_bytes += slot->size;
	return 0;
}

/* What is kept back of a device is not for those who wait. */
static void take_wanted(struct overuse *o, struct sampling *s)
{
	struct waiting w = { o, s };
	unsigned i;

	if (!o->daemon->engine)
		return;
	engine_each_held(o->daemon->engine, add_wanted, &w);
	for (i = 0; i < s->sample.n_devices; i++) {
		if (s->devices[i].wanted_bytes)
			s->devices[i].wanted_bytes += daemon_reserve(o->daemon, i);
	}
}

/* --- incidents --- */

struct live_incident *overuse_live(const struct overuse *o, uint32_t tenant)
{
	struct live_incident *live;

	for (live = o->live; live; live = live->next) {
		if (live->tenant == tenant)
			return live;
	}
	return NULL;
}

static const struct tenant *find_tenant(const struct overuse *o, uint32_t id)
{
	const struct tenant *t;

	for (t = o->daemon->tenants.first; t; t = t->next) {
		if (t->id == id)
			return t;
	}
	return NULL;
}

static struct live_incident *begin_incident(struct overuse *o, const struct policy_action *action,
					    const struct tenant *t)
{
	struct live_incident *live = calloc(1, sizeof(*live));
	struct device_limits limits;
	char ladder[LADDER_TEXT];

	if (!live)
		return NULL;
	tenant_limits(&o->daemon->tenants, t, action->device, &limits);
	live->tenant = action->id;
	str_copy(live->row.tenant, sizeof(live->row.tenant), t->spec.name);
	live->row.uid = t->uid;
	str_copy(live->row.gpu, sizeof(live->row.gpu),
		 o->daemon->gpu->devices[action->device].uuid);
	live->row.open_us = daemon_now_us();
	live->row.request_bytes = action->request_bytes;
	str_copy(live->row.policy, sizeof(live->row.policy), ladder_print(limits.ladder, ladder));
	live->next = o->live;
	o->live = live;
	return live;
}

static void end_incident(struct overuse *o, struct live_incident *live)
{
	struct live_incident **p;

	deed_let_go(o, live);
	for (p = &o->live; *p != live; p = &(*p)->next)
		;
	*p = live->next;
	free(live);
}

static const enum event_kind event_of[N_POLICY_KINDS] = {
	[POLICY_WARN] = EVENT_OVER_REQUEST, [POLICY_SUSPEND] = EVENT_SUSPENDED,
	[POLICY_EVICT] = EVENT_EVICTED,	    [POLICY_KILL] = EVENT_ENDED,
	[POLICY_RESUME] = EVENT_RESUMED,    [POLICY_HELD] = EVENT_NOT_ENDED,
	[POLICY_CLEAR] = EVENT_CLEARED,
};

static void note(struct overuse *o, const struct live_incident *live, const struct tenant *t,
		 const struct policy_action *action)
{
	char used[QUANTITY_TEXT], request[QUANTITY_TEXT];

	if (action->reason == POLICY_GONE)
		tenants_note(&o->daemon->tenants, event_of[action->kind], NULL,
			     "%s is no more (incident %" PRIu64 ")", live->row.tenant,
			     live->row.id);
	else
		tenants_note(&o->daemon->tenants, event_of[action->kind], t,
			     "%s holds %s of device %u and asked for %s: %s, %s (incident %" PRIu64
			     ")",
			     live->row.tenant, size_print_short(action->used_bytes, used),
			     action->device, size_print_short(action->request_bytes, request),
			     policy_kind_name(action->kind), policy_reason_name(action->reason),
			     live->row.id);
}

static struct incident_entry entry_of(const struct live_incident *live,
				      const struct policy_action *action)
{
	return (struct incident_entry){ .incident = live->row.id,
					.time_us = daemon_now_us(),
					.action = policy_kind_name(action->kind),
					.reason = policy_reason_name(action->reason),
					.used_bytes = action->used_bytes,
					.request_bytes = action->request_bytes,
					.free_bytes = action->free_bytes,
					.missing_bytes = action->missing_bytes };
}

static void do_action(struct overuse *o, struct live_incident *live, const struct tenant *t,
		      const struct policy_action *action)
{
	struct incident_entry entry = entry_of(live, action);

	switch (action->kind) {
	case POLICY_SUSPEND:
		deed_suspend(o, live, t, &entry);
		break;
	case POLICY_RESUME:
		deed_resume(o, live, &entry);
		break;
	case POLICY_EVICT:
	case POLICY_KILL:
		deed_end(o, live, t, &entry);
		break;
	default:
		str_copy(entry.result, sizeof(entry.result), "told");
		incident_log_put_entry(o->log, &entry);
	}
}

void overuse_carry_out(struct overuse *o, const struct policy_action *action)
{
	struct live_incident *live = overuse_live(o, action->id);
	const struct tenant *t = find_tenant(o, action->id);

	if (!live && action->kind == POLICY_WARN && t)
		live = begin_incident(o, action, t);
	if (!live || (!t && action->kind != POLICY_CLEAR && action->kind != POLICY_RESUME))
		return;
	str_copy(live->row.state, sizeof(live->row.state), policy_kind_name(action->kind));
	live->row.peak_bytes = MAX(live->row.peak_bytes, action->used_bytes);
	if (action->kind == POLICY_CLEAR)
		live->row.close_us = daemon_now_us();
	incident_log_put(o->log, &live->row);
	note(o, live, t, action);
	do_action(o, live, t, action);
	if (action->kind == POLICY_CLEAR)
		end_incident(o, live);
}

static void note_peaks(struct overuse *o, const struct sampling *s)
{
	struct live_incident *live;
	const struct policy_tenant *t;
	unsigned i;
	size_t j;

	for (live = o->live; live; live = live->next) {
		for (j = 0; j < s->sample.n_tenants; j++) {
			t = &s->tenants[j];
			for (i = 0; t->id == live->tenant && i < s->sample.n_devices; i++) {
				if (t->use[i].request_bytes != POLICY_NO_REQUEST)
					live->row.peak_bytes =
						MAX(live->row.peak_bytes, t->use[i].used_bytes);
			}
		}
	}
}

/* --- the loop --- */

void overuse_sample(struct overuse *o, uint64_t now_ms)
{
	struct sampling s = { .sample = { .now_ms = now_ms,
					  .n_devices = daemon_n_devices(o->daemon) } };
	unsigned i;
	size_t j;

	for (i = 0; i < s.sample.n_devices; i++) {
		if (now_ms >= o->due_ms[i])
			ask_device(o, i, &s.devices[i]);
	}
	gather_new(o);
	charge_residents(o);
	if (take_tenants(o, &s) < 0)
		return;
	take_use(o, &s);
	take_wanted(o, &s);
	s.sample.devices = s.devices;
	s.sample.tenants = s.tenants;
	note_peaks(o, &s);
	if (policy_decide(&o->numbers, &o->state, &s.sample, &o->actions) < 0)
		log_warn(-ENOMEM, "nothing is decided on this sample");
	else
		for (j = 0; j < o->actions.n; j++)
			overuse_carry_out(o, &o->actions.items[j]);
	for (i = 0; i < s.sample.n_devices; i++) {
		if (now_ms >= o->due_ms[i])
			o->due_ms[i] =
				now_ms + (o->state.devices[i].is_tense ? o->fast_ms : o->slow_ms);
	}
	free(s.tenants);
}

static uint64_t next_ms(const struct overuse *o, uint64_t now_ms)
{
	uint64_t next = now_ms + o->slow_ms;
	unsigned i;

	for (i = 0; i < daemon_n_devices(o->daemon); i++)
		next = MIN(next, o->due_ms[i]);
	return MAX(next, now_ms + WAKE_AT_LEAST_MS) - now_ms;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct overuse *o = userdata;
	uint64_t now_ms = overuse_now_ms();

	overuse_sample(o, now_ms);
	sd_event_source_set_time_relative(s, next_ms(o, overuse_now_ms()) * 1000);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int overuse_start(struct daemon *d)
{
	if (daemon_n_devices(d) == 0)
		return 0;
	return sd_event_add_time_relative(d->loop, NULL, CLOCK_MONOTONIC,
					  d->overuse->slow_ms * 1000, 0, on_time, d->overuse);
}

/* --- opening and closing --- */

static void end_old(struct incident *incident, void *userdata)
{
	struct overuse *o = userdata;
	struct incident_entry entry = { .incident = incident->id,
					.time_us = daemon_now_us(),
					.action = policy_kind_name(POLICY_CLEAR),
					.reason = policy_reason_name(POLICY_RESTART),
					.request_bytes = incident->request_bytes };

	str_copy(entry.result, sizeof(entry.result), *incident->frozen ? "goes on" : "told");
	target_thaw(incident->frozen);
	free(incident->frozen);
	incident->frozen = NULL;
	incident->close_us = daemon_now_us();
	incident_log_put(o->log, incident);
	incident_log_put_entry(o->log, &entry);
}

static int open_log(struct overuse *o, const char *state_dir)
{
	_cleanup_free_ char *path = str_format("%s/incidents.db", state_dir);
	int r;

	r = path ? incident_log_open(path, &o->log) : -ENOMEM;
	if (r == 0)
		return 0;
	log_warn(r, "%s: incidents will not outlive this daemon", path);
	return incident_log_open(":memory:", &o->log);
}

int overuse_open(struct daemon *d, const struct overuse_options *options)
{
	struct overuse *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	d->overuse = o;
	o->daemon = d;
	o->numbers = policy_defaults;
	o->slow_ms = options->slow_ms;
	o->fast_ms = options->fast_ms;
	r = residents_init(&o->residents);
	if (r == 0)
		r = open_log(o, options->state_dir);
	if (r == 0)
		r = incident_log_each_open(o->log, end_old, o);
	return r;
}

void overuse_close(struct daemon *d)
{
	struct overuse *o = d->overuse;
	struct live_incident *live, *next;

	if (!o)
		return;
	deeds_done(o);
	for (live = o->live; live; live = next) {
		next = live->next;
		if (live->row.frozen)
			target_thaw(live->row.frozen);
		free(live->row.frozen);
		free(live);
	}
	residents_done(&o->residents);
	policy_state_done(&o->state);
	policy_actions_done(&o->actions);
	incident_log_close(o->log);
	free(o);
	d->overuse = NULL;
}
