/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books against the devices, every half second.
 *
 * Contexts, code and pools take memory that no argument tells. What a device says
 * that a process has, less what its calls explain, is its overhead. A process may
 * allocate between the two looks; the engine then says so, and the next round
 * settles it.
 *
 * A call that may have changed what no argument tells asks for one out of turn. Any user can
 * make such calls as fast as he likes, and a round looks at every process: so they wait for
 * each other, and rounds take no more than a fifth of the time.
 */
#include "daemon/daemon.h"

#include "base/log.h"
#include "daemon/mps.h"
#include "daemon/process.h"

#include <errno.h>
#include <inttypes.h>

#define SETTLE_PAUSE_US	    20000
#define SETTLE_PAUSE_ROUNDS 4

/* A charged process, as it was before the device was asked. */
struct charged {
	pid_t pid; /* first: see by_pid() */
	uint64_t n_changes;
	uint64_t use[LEDGER_DEVICES];
	uint64_t idle[LEDGER_DEVICES];
	uint64_t pending[LEDGER_DEVICES];
	uint64_t overhead[LEDGER_DEVICES];
	uint32_t n_contexts[LEDGER_DEVICES];
};

struct charged_list {
	struct charged *items;
	size_t n;
	size_t cap;
};

static int add_charged(const struct audit_process *p, void *userdata)
{
	struct charged_list *list = userdata;
	struct charged *c;
	size_t cap;
	void *items;

	if (list->n == list->cap) {
		cap = MAX(2 * list->cap, (size_t)64);
		items = reallocarray(list->items, cap, sizeof(*list->items));
		if (!items)
			return -ENOMEM;
		list->items = items;
		list->cap = cap;
	}
	c = &list->items[list->n++];
	c->pid = audit_process_tgid(p);
	c->n_changes = p->n_changes;
	memcpy(c->use, p->use, sizeof(c->use));
	memcpy(c->idle, p->idle, sizeof(c->idle));
	memcpy(c->pending, p->pending, sizeof(c->pending));
	memcpy(c->overhead, p->overhead, sizeof(c->overhead));
	memcpy(c->n_contexts, p->n_contexts, sizeof(c->n_contexts));
	return 0;
}

/* Both lists are sorted, as each is looked up once for every entry of the other. Both begin with
 * the pid. */
static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static struct charged *find_charged(const struct charged_list *list, pid_t pid)
{
	return list->n ? bsearch(&pid, list->items, list->n, sizeof(*list->items), by_pid) : NULL;
}

static const struct gpu_process *find_running(const struct gpu_process *list, size_t n, pid_t pid)
{
	return n ? bsearch(&pid, list, n, sizeof(*list), by_pid) : NULL;
}

/*
 * The least that one context was seen to cost is what the next one is charged until
 * it is settled: too little would let a tenant start over its limit, too much would
 * refuse it what fits. A number counts when it is the same twice in a row, as drivers
 * list a process before it has all of its context, and when nothing else is uncertain.
 */
static void learn_context(struct daemon *d, unsigned device, const struct charged *c,
			  uint64_t device_bytes)
{
	uint64_t overhead = device_bytes - c->use[device];

	if (c->n_contexts[device] != 1 || device_bytes <= c->use[device] ||
	    overhead != c->overhead[device] || c->idle[device] || c->pending[device])
		return;
	context_cost_learn(d, device, overhead);
}

static void settle_charged(struct daemon *d, unsigned device, const struct charged *c,
			   const struct gpu_process *running)
{
	uint64_t bytes = running ? running->used_bytes : 0;

	if (running && bytes == GPU_UNKNOWN)
		return;
	/* Drivers list a process a moment after its first context: do not call that empty. */
	if (!running && c->n_contexts[device] > 0)
		return;
	if (!running && c->use[device] == 0 && c->idle[device] == 0 && c->overhead[device] == 0)
		return;
	if (engine_settle(d->engine, c->pid, device, bytes, c->n_changes) == 0 && running)
		learn_context(d, device, c, bytes);
}

static int is_pid(const struct audit_process *p, void *userdata)
{
	return audit_process_tgid(p) == *(uint32_t *)userdata && p->chain.n > 0;
}

static void note_adopted(struct daemon *d, pid_t pid, unsigned device, uint64_t bytes)
{
	struct event event = { .kind = EVENT_ADOPTED,
			       .uid = EVENT_NO_UID,
			       .pid = pid,
			       .gpu = d->gpu->devices[device].uuid,
			       .size = bytes,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };
	char name[PROCESS_NAME_SIZE], text[200], size[QUANTITY_TEXT];

	process_name(pid, name);
	process_uid(pid, &event.uid);
	snprintf(text, sizeof(text), "process %d (%s) was running already; its %s are charged now",
		 pid, name, size_print_short(bytes, size));
	event.text = text;
	event_log_add(d->events, &event, NULL);
}

/* A process that the engine does not know: whoever matches it is charged from now on. */
static bool adopt(struct daemon *d, const struct gpu_process *p, unsigned device)
{
	uint32_t pid = p->pid;
	uid_t uid;

	if (!d->engine || !d->tenants.first)
		return false;
	/* What its clients allocate they are charged themselves: their calls are made in them. */
	if (mps_is_server(d->mps_server, p->pid))
		return false;
	if (process_uid(p->pid, &uid) == 0)
		tenants_meet(&d->tenants, uid);
	if (engine_adopt(d->engine, p->pid) != 0 || !engine_each_process(d->engine, is_pid, &pid))
		return false;
	note_adopted(d, p->pid, device, p->used_bytes);
	return true;
}

static void settle_device(struct daemon *d, unsigned device, const struct charged_list *charged)
{
	_cleanup_free_ struct gpu_process *running = NULL;
	uint64_t unowned = 0;
	size_t i, n = 0;

	if (gpu_processes(d->gpu, device, &running, &n) < 0)
		return;
	if (n)
		qsort(running, n, sizeof(*running), by_pid);
	for (i = 0; i < charged->n; i++)
		settle_charged(d, device, &charged->items[i],
			       find_running(running, n, charged->items[i].pid));
	for (i = 0; i < n; i++) {
		if (find_charged(charged, running[i].pid) || adopt(d, &running[i], device))
			continue;
		if (running[i].used_bytes != GPU_UNKNOWN)
			unowned += running[i].used_bytes;
	}
	d->unowned_bytes[device] = unowned;
	if (d->engine)
		engine_device_unowned(d->engine, device, unowned);
}

void daemon_settle(struct daemon *d)
{
	uint64_t begun_us = daemon_monotonic_us();
	struct charged_list charged = {};
	uint64_t since = d->engine ? engine_settling(d->engine) : 0;
	unsigned i;

	if (d->engine && engine_each_process(d->engine, add_charged, &charged) < 0)
		log_warn(-ENOMEM, "the books are not settled this time");
	if (charged.n)
		qsort(charged.items, charged.n, sizeof(*charged.items), by_pid);
	for (i = 0; i < daemon_n_devices(d); i++)
		settle_device(d, i, &charged);
	free(charged.items);
	if (d->engine)
		engine_settled(d->engine, since);
	daemon_place(d);
	d->n_settled++;
	d->settled_us = daemon_monotonic_us();
	d->settle_took_us = d->settled_us - begun_us;
}

static int on_settle_time(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	d->settling = sd_event_source_unref(d->settling);
	daemon_settle(d);
	return 0;
}

void daemon_settle_soon(struct daemon *d)
{
	uint64_t pause_us = MAX(SETTLE_PAUSE_ROUNDS * d->settle_took_us, (uint64_t)SETTLE_PAUSE_US);
	uint64_t due_us = d->settled_us + pause_us, now_us = daemon_monotonic_us();

	if (d->settling)
		return;
	sd_event_add_time_relative(d->loop, &d->settling, CLOCK_MONOTONIC,
				   due_us - MIN(due_us, now_us), 1, on_settle_time, d);
}
