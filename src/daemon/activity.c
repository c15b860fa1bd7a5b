/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When tenants were last at work on a device.
 *
 * Two witnesses: the utilisation that the device samples per process, in which a
 * process with less than one per cent of a period does not show, and the books, in
 * which each change of a process' memory does.
 */
#include "daemon/overuse.h"

#include <errno.h>

/* A charged process as the books had it at the last look. */
struct seen {
	uint32_t serial;
	pid_t pid;
	uint64_t n_changes;
	uint64_t use[LEDGER_DEVICES];
	struct ledger_chain chain;
};

struct activity {
	struct seen *items;
	size_t n;
	size_t cap;
	uint64_t since_us[LEDGER_DEVICES];
};

/* One look: @before is sorted by serial, @now as the engine has them. */
struct look {
	struct daemon *daemon;
	const struct activity *before;
	struct activity now;
	uint64_t time_us;
};

static int by_serial(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->serial > y->serial) - (x->serial < y->serial);
}

static struct seen *seen_add(struct activity *a)
{
	size_t cap = MAX(2 * a->cap, (size_t)64);
	void *items;

	if (a->n == a->cap) {
		items = reallocarray(a->items, cap, sizeof(*a->items));
		if (!items)
			return NULL;
		a->items = items;
		a->cap = cap;
	}
	return &a->items[a->n++];
}

static void mark(struct daemon *d, const struct ledger_chain *chain, unsigned device,
		 uint64_t time_us)
{
	struct tenant *t;
	uint32_t i;

	for (i = 0; i < chain->n && i < LEDGER_DEPTH; i++) {
		t = tenants_by_number(&d->tenants, chain->tenants[i]);
		if (t)
			t->last_active_us[device] = MAX(t->last_active_us[device], time_us);
	}
}

/* What was allocated and freed again between two looks was so where the process has a context. */
static void mark_changed(const struct look *look, const struct audit_process *p,
			 const struct seen *now, const struct seen *before)
{
	bool found = false;
	unsigned i;

	for (i = 0; i < LEDGER_DEVICES; i++) {
		if (now->use[i] == (before ? before->use[i] : 0))
			continue;
		mark(look->daemon, &now->chain, i, look->time_us);
		found = true;
	}
	for (i = 0; i < LEDGER_DEVICES && !found; i++) {
		if (p->n_contexts[i])
			mark(look->daemon, &now->chain, i, look->time_us);
	}
}

static int look_at(const struct audit_process *p, void *userdata)
{
	struct look *look = userdata;
	struct seen *now = seen_add(&look->now);
	const struct seen *before;

	if (!now)
		return -ENOMEM;
	now->serial = p->serial;
	now->pid = audit_process_tgid(p);
	now->n_changes = p->n_changes;
	now->chain = p->chain;
	memcpy(now->use, p->use, sizeof(now->use));
	before = look->before->n ? bsearch(now, look->before->items, look->before->n, sizeof(*now),
					   by_serial)
				 : NULL;
	if (!before || before->n_changes != now->n_changes)
		mark_changed(look, p, now, before);
	return 0;
}

static const struct seen *seen_find(const struct activity *a, pid_t pid)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (a->items[i].pid == pid)
			return &a->items[i];
	}
	return NULL;
}

static void read_samples(struct daemon *d, struct activity *a, unsigned device)
{
	struct gpu_activity samples[256];
	const struct seen *seen;
	size_t i, n = 0;

	if (d->gpu->ops->activity(d->gpu, device, a->since_us[device], samples, ARRAY_SIZE(samples),
				  &n) < 0)
		return;
	for (i = 0; i < n; i++) {
		a->since_us[device] = MAX(a->since_us[device], samples[i].time_us);
		overuse_saw_work(d->overuse, samples[i].pid, device, samples[i].percent);
		seen = samples[i].percent > 0 ? seen_find(a, samples[i].pid) : NULL;
		if (seen)
			mark(d, &seen->chain, device, samples[i].time_us);
	}
}

void daemon_activity_read(struct daemon *d)
{
	struct activity *a = d->activity;
	struct look look = { .daemon = d, .before = a, .time_us = daemon_now_us() };
	unsigned i;

	if (d->engine && engine_each_process(d->engine, look_at, &look) == 0) {
		free(a->items);
		memcpy(look.now.since_us, a->since_us, sizeof(a->since_us));
		*a = look.now;
		if (a->n)
			qsort(a->items, a->n, sizeof(*a->items), by_serial);
	} else {
		free(look.now.items);
	}
	for (i = 0; i < daemon_n_devices(d); i++)
		read_samples(d, a, i);
}

int daemon_activity_open(struct daemon *d)
{
	d->activity = calloc(1, sizeof(*d->activity));
	return d->activity ? 0 : -ENOMEM;
}

void daemon_activity_close(struct daemon *d)
{
	if (d->activity)
		free(d->activity->items);
	free(d->activity);
}
