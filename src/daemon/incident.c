/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The incidents that go on: begun and ended by the policy's actions, each of which is an
 * entry and an event.
 */
#include "daemon/overuse.h"

#include <inttypes.h>

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

static void tell_job(struct overuse *o, uint32_t job, const struct policy_action *action)
{
	char used[QUANTITY_TEXT], request[QUANTITY_TEXT], text[200];

	snprintf(text, sizeof(text), "this job holds %s of a device and asked for %s",
		 size_print_short(action->used_bytes, used),
		 size_print_short(action->request_bytes, request));
	batch_tell(&o->batch, "notify", job, text, NULL, NULL);
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
		if (t->origin == TENANT_OF_RUN)
			evictions_note(&o->daemon->evictions, t->spec.name, live->row.peak_bytes);
		deed_end(o, live, t, &entry);
		break;
	case POLICY_KILL:
		deed_end(o, live, t, &entry);
		break;
	default:
		if (action->kind == POLICY_WARN && t->spec.job)
			tell_job(o, t->spec.job, action);
		str_copy(entry.result, sizeof(entry.result), "told");
		incident_log_put_entry(o->history, &entry);
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
	incident_log_put(o->history, &live->row);
	note(o, live, t, action);
	do_action(o, live, t, action);
	if (action->kind == POLICY_CLEAR)
		end_incident(o, live);
}
