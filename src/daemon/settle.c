/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books against the devices, every half second; every second where neither has changed.
 *
 * Contexts, code and pools take memory that no argument tells. What a device says
 * that a process has, less what its calls explain, is its overhead. A process may
 * allocate between the two looks, and a call may be under way at either; the engine
 * knows how much that was, settles what is certain, and the next round the rest.
 *
 * A call that may have changed what no argument tells asks for one out of turn. Any user can
 * make such calls as fast as he likes, and a round looks at every process: so they wait for
 * each other, and rounds take no more than a fifth of the time.
 */
#include "daemon/daemon.h"

#include "base/log.h"
#include "daemon/mps.h"
#include "daemon/overuse.h"
#include "daemon/process.h"

#include <errno.h>
#include <inttypes.h>

#define SETTLE_PAUSE_US	    20000
#define SETTLE_PAUSE_ROUNDS 4
#define SETTLE_AT_LEAST_US  900000

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

/* Mostly the books have it so already. */
static bool is_settled(const struct charged *c, unsigned device, uint64_t device_bytes)
{
	bool seen = c->seen_on & 1U << device;

	return device_bytes == c->use[device] + c->overhead[device] && c->idle[device] == 0 &&
	       c->pending[device] == 0 && seen == (device_bytes > 0);
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
	if (is_settled(c, device, bytes) ||
	    engine_settle(d->engine, c->pid, device, bytes, c->moved) == 0)
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
	/* No call of it has asked for that: the first that wants to know would wait in vain. */
	daemon_place_hint(d, p->pid);
	note_adopted(d, p->pid, device, p->used_bytes);
	return true;
}

/* @ended: what ended processes had, from before the books were read */
static void settle_unowned(struct daemon *d, unsigned device, uint64_t bytes, uint64_t ended)
{
	d->unowned_bytes[device] = bytes;
	if (d->engine)
		engine_device_unowned(d->engine, device, bytes, ended);
}

static void settle_device(struct daemon *d, unsigned device, uint64_t oldest_us, uint64_t ended)
{
	const struct running_list *running;
	uint64_t unowned = 0;
	size_t i, at = 0;

	/* What the books had must be from before what the device says, never from after it. */
	if (running_read(&d->running, d->gpu, device, oldest_us, &running) < 0) {
		/* Nobody can tell whether it has back what the dead had, which is not waited for in vain. */
		settle_unowned(d, device, d->unowned_bytes[device], ended);
		d->settled_used[device] = UINT64_MAX;
		return;
	}
	d->settled_used[device] = running->knows_memory ? running->memory.used_bytes : UINT64_MAX;
	for (i = 0; i < d->charged.n; i++)
		settle_charged(d, device, &d->charged.items[i],
			       running_next(running, d->charged.items[i].pid, &at));
	at = 0;
	for (i = 0; i < running->n; i++) {
		if (charged_next(&d->charged, running->items[i].pid, &at) ||
		    (d->engine && engine_lists(d->engine, running->items[i].pid)) ||
		    adopt(d, &running->items[i], device))
			continue;
		if (running->items[i].used_bytes != GPU_UNKNOWN)
			unowned += running->items[i].used_bytes;
	}
	settle_unowned(d, device, unowned, ended);
}

/* What nobody has asked for may be much, and beyond a limit: whoever wonders is told. */
#define INHERITED_IS_TOLD (64ULL << 20)

static void note_inherited(struct daemon *d, const struct charged *c, unsigned device,
			   uint64_t bytes)
{
	const struct tenant *t =
		c->chain.n ? tenants_by_number(&d->tenants, c->chain.tenants[0]) : NULL;
	struct event event = { .kind = EVENT_INHERITED,
			       .uid = EVENT_NO_UID,
			       .tenant = t ? t->spec.name : NULL,
			       .pid = c->pid,
			       .gpu = d->gpu->devices[device].uuid,
			       .size = bytes,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };
	char name[PROCESS_NAME_SIZE], text[200], size[QUANTITY_TEXT];

	process_name(c->pid, name);
	process_uid(c->pid, &event.uid);
	snprintf(text, sizeof(text),
		 "process %d (%s) keeps %s that another process has made, which has ended; it is "
		 "charged for them now",
		 c->pid, name, size_print_short(bytes, size));
	event.text = text;
	event_log_add(d->events, &event, NULL);
}

static void tell_inherited(struct daemon *d)
{
	const struct charged *c, *before;
	size_t i, at = 0;
	unsigned device;

	for (i = 0; i < d->charged.n; i++) {
		c = &d->charged.items[i];
		before = charged_next(&d->charged_before, c->pid, &at);
		if (!before || before->serial != c->serial)
			continue;
		for (device = 0; device < daemon_n_devices(d); device++) {
			if (c->inherited[device] >= before->inherited[device] + INHERITED_IS_TOLD)
				note_inherited(d, c, device,
					       c->inherited[device] - before->inherited[device]);
		}
	}
}

/* What the books had the last time is kept: what has changed since tells who is at work. */
void daemon_read_books(struct daemon *d, uint64_t oldest_us)
{
	struct charged_list before = d->charged_before;

	if (d->books_read_us && d->books_read_us >= oldest_us)
		return;
	d->books_read_us = daemon_monotonic_us();
	d->charged_before = d->charged;
	d->charged = before;
	if (charged_read(&d->charged, d->engine) < 0)
		log_warn(-ENOMEM, "the books are not settled this time");
	d->books_changed |= !charged_equal(&d->charged, &d->charged_before);
	daemon_activity_look(d);
	tell_inherited(d);
}

static bool any_is_placing(const struct charged_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (list->items[i].is_placing)
			return true;
	}
	return false;
}

void daemon_settle(struct daemon *d)
{
	uint64_t begun_us = daemon_monotonic_us();
	uint64_t since = d->engine ? engine_settling(d->engine) : 0;
	uint64_t ended[LEDGER_DEVICES] = {};
	unsigned i;

	for (i = 0; d->engine && i < daemon_n_devices(d); i++)
		ended[i] = engine_device_ended(d->engine, i);
	if (d->engine)
		engine_asks_devices(d->engine);
	daemon_read_books(d, UINT64_MAX);
	/* What is settled below is a change as well, and the next round sees it. */
	d->books_changed = false;
	for (i = 0; i < daemon_n_devices(d); i++)
		settle_device(d, i, d->books_read_us + 1, ended[i]);
	if (d->engine)
		engine_settled(d->engine, since);
	if (d->engine && engine_is_lingering(d->engine))
		daemon_settle_soon(d);
	if (any_is_placing(&d->charged))
		daemon_place(d);
	d->n_settled++;
	d->settled_since = since;
	d->settled_tenants = d->tenants.n_changes;
	d->settled_us = daemon_monotonic_us();
	d->settle_took_us = d->settled_us - begun_us;
}

static bool is_used_as_settled(struct daemon *d, unsigned device)
{
	struct gpu_memory now;

	return d->settled_used[device] != UINT64_MAX &&
	       d->gpu->ops->memory(d->gpu, device, &now) == 0 &&
	       now.used_bytes == d->settled_used[device];
}

/*
 * Whether a round would find all as the last one did. A list of processes costs many times what the memory
 * in use does: the devices are asked for that alone. What nobody owns is looked at as often as it can be, as
 * somebody may own it from now on.
 */
static bool is_as_settled(struct daemon *d)
{
	unsigned i;

	if (daemon_monotonic_us() >= d->settled_us + SETTLE_AT_LEAST_US ||
	    d->settled_tenants != d->tenants.n_changes ||
	    (d->engine && d->settled_since != engine_settling(d->engine)))
		return false;
	daemon_read_books(d, UINT64_MAX);
	if (d->books_changed || any_is_placing(&d->charged) ||
	    (d->engine && engine_is_lingering(d->engine)))
		return false;
	for (i = 0; i < daemon_n_devices(d); i++) {
		if (d->unowned_bytes[i] || !is_used_as_settled(d, i))
			return false;
	}
	return true;
}

void daemon_settle_changes(struct daemon *d)
{
	if (overuse_is_due(d) || !is_as_settled(d))
		daemon_settle(d);
}

static int on_settle_time(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
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
