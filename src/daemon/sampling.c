/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sampling.h"

#include "daemon/cgroup.h"
#include "daemon/process.h"

#include <errno.h>

/* --- who is charged --- */

struct charging {
	struct overuse *overuse;
	uint32_t ids[LEDGER_TENANTS]; /* by the engine's numbers */
};

static void charge(struct resident *p, uint32_t id)
{
	if (id && p->n_tenants < LEDGER_DEPTH)
		p->tenants[p->n_tenants++] = id;
}

/* Books that were read so lately will do. */
#define BOOKS_LAST_US 50000

static void charge_by_engine(const struct charging *c)
{
	struct daemon *d = c->overuse->daemon;
	const struct charged *charged;
	struct resident *p;
	size_t i, at = 0;
	uint32_t j;

	daemon_read_books(d, daemon_monotonic_us() - BOOKS_LAST_US);
	for (i = 0; i < c->overuse->residents.n; i++) {
		p = c->overuse->residents.items[i];
		charged = charged_next(&d->charged, p->who.pid, &at);
		for (j = 0; charged && j < charged->chain.n && j < LEDGER_DEPTH; j++)
			charge(p, c->ids[charged->chain.tenants[j] % LEDGER_TENANTS]);
	}
}

/* Where the kernel runs no engine, by whom the tenants match. */
static bool is_matched(const struct overuse *o, const struct resident *p, const struct tenant *t)
{
	const struct selector *match = &t->spec.match;
	const char *rest;

	switch (match->kind) {
	case SELECT_USER:
		return t->uid == p->who.uid;
	case SELECT_CGROUP:
		rest = p->who.place.cgroup ? str_after(p->who.place.cgroup, match->name) : NULL;
		return str_eq(match->name, "/") || (rest && (*rest == '\0' || *rest == '/'));
	case SELECT_PID:
		return process_is(match->pid, match->start_time) &&
		       assoc_descends(o->residents.proc_fd, p->who.pid, match->pid);
	default:
		return false;
	}
}

static void charge_by_match(struct overuse *o)
{
	const struct tenant *t;
	size_t i;

	for (i = 0; i < o->residents.n; i++) {
		if (o->residents.items[i]->is_new)
			tenants_meet(&o->daemon->tenants, o->residents.items[i]->who.uid);
	}
	for (t = o->daemon->tenants.first; t; t = t->next) {
		for (i = 0; i < o->residents.n; i++) {
			if (is_matched(o, o->residents.items[i], t))
				charge(o->residents.items[i], t->id);
		}
	}
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
		charge_by_engine(&c);
	else
		charge_by_match(o);
}

/*
 * A process that was started in a container later, as by `podman exec`, is in its v1
 * cgroups but not in the v2 cgroup that was made for it: it is put there.
 */
static void gather(struct overuse *o, struct resident *p)
{
	const char *freezer = p->who.place.freezer;
	const struct tenant *t;

	for (t = o->daemon->tenants.first; t && freezer; t = t->next) {
		if (!t->spec.freezer || !str_eq(t->spec.freezer, freezer) ||
		    (p->who.place.cgroup && str_eq(p->who.place.cgroup, t->spec.match.name)))
			continue;
		if (cgroup_move(p->who.pid, t->spec.match.name) == 0 && o->daemon->engine &&
		    engine_adopt(o->daemon->engine, p->who.pid) == 0)
			daemon_place_hint(o->daemon, p->who.pid);
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

static void forget_new(struct overuse *o)
{
	size_t i;

	for (i = 0; i < o->residents.n; i++)
		o->residents.items[i]->is_new = false;
}

/* --- the devices --- */

/* The books may just have been settled with the same list. */
#define LIST_LASTS_US 20000

static void ask_device(struct overuse *o, unsigned device, struct policy_device *ret)
{
	const struct running_list *running;
	struct daemon *d = o->daemon;

	ret->known = running_read(&d->running, d->gpu, device,
				  daemon_monotonic_us() - LIST_LASTS_US, &running) == 0 &&
		     running->knows_memory;
	if (!ret->known)
		return;
	residents_take(&o->residents, device, running->items, running->n);
	ret->total_bytes = running->memory.total_bytes;
	ret->free_bytes = running->memory.free_bytes;
}

/* --- the tenants --- */

/* Where a tenant stands, or would stand. */
static size_t place_of(const struct sampling *s, uint32_t id)
{
	size_t low = 0, high = s->n_tenants, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (s->tenants[mid].tenant->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct sampled_tenant *sampling_find(const struct sampling *s, uint32_t tenant)
{
	size_t at = place_of(s, tenant);

	return at < s->n_tenants && s->tenants[at].tenant->id == tenant ? &s->tenants[at] : NULL;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Those who hold something, each perhaps several times, in order. */
static uint32_t *list_holders(const struct overuse *o, size_t *ret_n)
{
	uint32_t *ids = calloc(o->residents.n * LEDGER_DEPTH + 1, sizeof(*ids));
	size_t i, n = 0;

	for (i = 0; ids && i < o->residents.n; i++) {
		memcpy(&ids[n], o->residents.items[i]->tenants,
		       o->residents.items[i]->n_tenants * sizeof(*ids));
		n += o->residents.items[i]->n_tenants;
	}
	if (ids)
		qsort(ids, n, sizeof(*ids), by_id);
	*ret_n = n;
	return ids;
}

/* Tenants are listed by their ids: each new one has a higher one and stands at the end. */
static int find_tenants(struct overuse *o, struct sampling *s)
{
	_cleanup_free_ uint32_t *holders = NULL;
	const struct tenant *t;
	size_t n = 0, n_holders;

	for (t = o->daemon->tenants.first; t; t = t->next)
		n++;
	s->tenants = calloc(n + 1, sizeof(*s->tenants));
	holders = list_holders(o, &n_holders);
	if (!s->tenants || !holders)
		return -ENOMEM;
	for (t = o->daemon->tenants.first; t; t = t->next) {
		if (overuse_live(o, t->id) ||
		    bsearch(&t->id, holders, n_holders, sizeof(*holders), by_id))
			s->tenants[s->n_tenants++] =
				(struct sampled_tenant){ .tenant = t,
							 .policy = SAMPLED_NO_REQUEST };
	}
	return 0;
}

static void add_use(struct overuse *o, struct sampling *s)
{
	struct sampled_tenant *t;
	const struct resident *p;
	unsigned device, j;
	size_t i;

	for (i = 0; i < o->residents.n; i++) {
		p = o->residents.items[i];
		for (j = 0; j < p->n_tenants; j++) {
			t = sampling_find(s, p->tenants[j]);
			for (device = 0; t && device < s->sample.n_devices; device++) {
				t->bytes[device] += p->bytes[device];
				t->busy[device] += resident_busy(p, device, s->sample.now_ms);
			}
		}
	}
}

/* --- what the policy is asked --- */

/* Return: whether it is watched: it has a request on some device. */
static bool take_request(struct overuse *o, const struct sampled_tenant *t,
			 struct policy_tenant *ret)
{
	struct device_limits limits;
	bool any = false;
	unsigned i;

	memset(ret, 0, sizeof(*ret));
	ret->id = t->tenant->id;
	for (i = 0; i < daemon_n_devices(o->daemon); i++) {
		tenant_limits(&o->daemon->tenants, t->tenant, i, &limits);
		ret->use[i] = (struct policy_use){
			.known = true,
			.request_bytes = limits.has_request ? limits.memory_low : POLICY_NO_REQUEST,
			.used_bytes = t->bytes[i],
		};
		any |= limits.has_request;
		ret->ladder = limits.ladder;
		ret->grace_ms = limits.grace_ms;
		ret->priority = limits.priority;
	}
	return any;
}

static int take_requests(struct overuse *o, struct sampling *s)
{
	size_t i;

	s->policy = calloc(s->n_tenants + 1, sizeof(*s->policy));
	if (!s->policy)
		return -ENOMEM;
	for (i = 0; i < s->n_tenants; i++) {
		if (take_request(o, &s->tenants[i], &s->policy[s->sample.n_tenants]))
			s->tenants[i].policy = s->sample.n_tenants++;
	}
	return 0;
}

/* A process whose memory the driver does not tell leaves its tenants unknown. */
static void mark_unknown(struct overuse *o, struct sampling *s)
{
	const struct sampled_tenant *t;
	const struct resident *p;
	unsigned device, j;
	size_t i;

	for (i = 0; i < o->residents.n; i++) {
		p = o->residents.items[i];
		for (j = 0; p->unknown && j < p->n_tenants; j++) {
			t = sampling_find(s, p->tenants[j]);
			if (!t || t->policy == SAMPLED_NO_REQUEST)
				continue;
			for (device = 0; device < s->sample.n_devices; device++)
				s->policy[t->policy].use[device].known &=
					!(p->unknown & 1U << device);
		}
	}
}

struct waiting {
	struct overuse *overuse;
	struct sampling *sampling;
};

/* The nearest tenant that has a request decides whether an ask is within it. */
static const struct policy_use *request_of(const struct waiting *w, const struct audit_slot *slot)
{
	const struct sampled_tenant *sampled;
	const struct policy_use *use;
	const struct tenant *t;
	uint32_t i;

	for (i = 0; i < slot->chain.n && i < LEDGER_DEPTH; i++) {
		t = tenants_by_number(&w->overuse->daemon->tenants, slot->chain.tenants[i]);
		sampled = t ? sampling_find(w->sampling, t->id) : NULL;
		if (!sampled || sampled->policy == SAMPLED_NO_REQUEST)
			continue;
		use = &w->sampling->policy[sampled->policy].use[slot->device];
		if (use->request_bytes != POLICY_NO_REQUEST)
			return use;
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

int sampling_take(struct overuse *o, uint64_t now_ms, struct sampling *ret)
{
	unsigned i;
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->sample.now_ms = now_ms;
	ret->sample.n_devices = daemon_n_devices(o->daemon);
	for (i = 0; i < ret->sample.n_devices; i++) {
		if (now_ms >= o->due_ms[i])
			ask_device(o, i, &ret->devices[i]);
	}
	gather_new(o);
	charge_residents(o);
	forget_new(o);
	r = find_tenants(o, ret);
	if (r < 0)
		return r;
	add_use(o, ret);
	r = take_requests(o, ret);
	if (r < 0)
		return r;
	mark_unknown(o, ret);
	take_wanted(o, ret);
	ret->sample.devices = ret->devices;
	ret->sample.tenants = ret->policy;
	return 0;
}

void sampling_done(struct sampling *s)
{
	free(s->policy);
	free(s->tenants);
	memset(s, 0, sizeof(*s));
}
