/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine tells, in words, into the events.
 */
#include "daemon/daemon.h"

#include "daemon/process.h"

#define NOT_KEPT N_EVENT_KINDS

/* Which events people are told; the others only set something in motion. */
static const enum event_kind kind_of[AUDIT_EVENT_KINDS] = {
	[AUDIT_EVENT_INSUFFICIENT] = EVENT_INSUFFICIENT,
	[AUDIT_EVENT_REFUSED] = EVENT_REFUSED,
	[AUDIT_EVENT_ADMITTED] = EVENT_ADMITTED,
	[AUDIT_EVENT_EXIT] = NOT_KEPT,
	[AUDIT_EVENT_SETTLE] = NOT_KEPT,
	[AUDIT_EVENT_NEW_PROCESS] = NOT_KEPT,
	[AUDIT_EVENT_FAILED_KILL] = EVENT_KILLED,
	[AUDIT_EVENT_FAILED_ALLOW] = EVENT_OVERRUN,
	[AUDIT_EVENT_FAILED_DENY] = EVENT_DENIED,
	[AUDIT_EVENT_DEVICE_UNKNOWN] = EVENT_DEVICE_UNKNOWN,
	[AUDIT_EVENT_PLACE] = NOT_KEPT,
	[AUDIT_EVENT_ELSEWHERE] = EVENT_ELSEWHERE,
	[AUDIT_EVENT_UNRECORDED] = EVENT_UNRECORDED,
	[AUDIT_EVENT_RAN] = EVENT_RAN,
	[AUDIT_EVENT_THROTTLED] = EVENT_THROTTLED,
	[AUDIT_EVENT_UNPACED] = EVENT_UNPACED,
	[AUDIT_EVENT_STRANGER] = NOT_KEPT,
	[AUDIT_EVENT_LIBRARY] = EVENT_LIBRARY,
	[AUDIT_EVENT_UNKNOWN_CALL] = EVENT_UNKNOWN_CALL,
	[AUDIT_EVENT_UNPROBED] = EVENT_UNPROBED,
	[AUDIT_EVENT_OFFSETS_REFUSED] = EVENT_OFFSETS_REFUSED,
};

static const char *const reason_names[] = {
	[AUDIT_REASON_NONE] = "none",	       [AUDIT_REASON_MAX] = "memory.max",
	[AUDIT_REASON_DEVICE] = "device-full", [AUDIT_REASON_QUEUE] = "queue",
	[AUDIT_REASON_COMPUTE] = "compute",    [AUDIT_REASON_PROBES] = "probes",
	[AUDIT_REASON_USER] = "user",
};

static const char *reason_name(uint32_t reason)
{
	return reason < ARRAY_SIZE(reason_names) ? reason_names[reason] : "none";
}

static void add_reason(struct text *text, const struct audit_event *e, const char *tenant)
{
	char left[QUANTITY_TEXT];

	switch (e->reason) {
	case AUDIT_REASON_MAX:
		text_addf(text, "; %s are left under memory.max of %s",
			  size_print_short(e->left, left), tenant ? tenant : "its tenant");
		break;
	case AUDIT_REASON_DEVICE:
		text_addf(text, "; the device has %s left", size_print_short(e->left, left));
		break;
	case AUDIT_REASON_QUEUE:
		text_add(text, "; others wait already");
		break;
	}
}

static void add_fate(struct text *text, const struct audit_event *e)
{
	char wait[QUANTITY_TEXT];

	if (e->kind != AUDIT_EVENT_INSUFFICIENT)
		return;
	if (e->wait_ns == UINT64_MAX)
		text_add(text, "; it waits for memory");
	else
		text_addf(text, "; it waits up to %s", duration_print(e->wait_ns / 1000000, wait));
}

static const char *verb_of(uint32_t kind)
{
	switch (kind) {
	case AUDIT_EVENT_INSUFFICIENT:
		return "asks for";
	case AUDIT_EVENT_REFUSED:
		return "was refused";
	case AUDIT_EVENT_ADMITTED:
		return "was given";
	case AUDIT_EVENT_FAILED_KILL:
		return "was killed, as nobody could answer for";
	case AUDIT_EVENT_FAILED_ALLOW:
		return "took without an answer";
	case AUDIT_EVENT_ELSEWHERE:
		return "was killed, as it took on another device than it had said";
	case AUDIT_EVENT_FAILED_DENY:
		return "was refused at once, as nobody could hold";
	case AUDIT_EVENT_RAN:
		return "got all the same";
	default:
		return "took";
	}
}

static bool is_failure(uint32_t kind)
{
	return kind == AUDIT_EVENT_FAILED_KILL || kind == AUDIT_EVENT_FAILED_ALLOW ||
	       kind == AUDIT_EVENT_FAILED_DENY;
}

/* Its `size` is his user id. */
static bool is_of_stranger(const struct audit_event *e)
{
	return is_failure(e->kind) && !e->tenant;
}

/* Where nobody could decide on a call, or knew whose it is, what it asks for may not have been found out. */
static bool is_size_unknown(const struct audit_event *e)
{
	return is_failure(e->kind) && (!e->size || is_of_stranger(e));
}

static char *describe(const struct audit_event *e, const char *text, const char *tenant)
{
	char name[PROCESS_NAME_SIZE], size[QUANTITY_TEXT];
	struct text out = {};

	if (e->kind == AUDIT_EVENT_LIBRARY) {
		text_addf(&out, "%s is probed", text);
		return text_take(&out);
	}
	if (e->kind == AUDIT_EVENT_UNKNOWN_CALL) {
		text_addf(&out, "%s may take memory of the device and is not known", text);
		return text_take(&out);
	}
	if (e->kind == AUDIT_EVENT_UNPROBED || e->kind == AUDIT_EVENT_OFFSETS_REFUSED) {
		text_add(&out, text);
		return text_take(&out);
	}
	process_name(e->tgid, name);
	if (e->kind == AUDIT_EVENT_THROTTLED) {
		text_addf(&out,
			  "launches of process %u (%s) are held to the share of device time of %s",
			  e->tgid, name, tenant ? tenant : "its tenant");
		return text_take(&out);
	}
	if (e->kind == AUDIT_EVENT_UNPACED) {
		text_addf(&out, "launches of process %u (%s) are not held to the share of %s yet",
			  e->tgid, name, tenant ? tenant : "its tenant");
		return text_take(&out);
	}
	text_addf(&out, "process %u (%s) %s ", e->tgid, name, verb_of(e->kind));
	if (is_size_unknown(e))
		text_addf(&out, "what %s asks for", engine_row_name(e->row));
	else
		text_addf(&out, "%s by %s", size_print_short(e->size, size),
			  engine_row_name(e->row));
	if (is_of_stranger(e))
		text_add(&out, ": whether a group limits its user was not known in time");
	add_reason(&out, e, tenant);
	add_fate(&out, e);
	return text_take(&out);
}

static bool has_size(uint32_t kind)
{
	return kind != AUDIT_EVENT_LIBRARY && kind != AUDIT_EVENT_UNKNOWN_CALL &&
	       kind != AUDIT_EVENT_UNPROBED && kind != AUDIT_EVENT_OFFSETS_REFUSED;
}

static void keep(struct daemon *d, const struct audit_event *e, const char *library)
{
	_cleanup_free_ char *text = NULL;
	struct tenant_told t;
	bool is_told = tenants_told_as(&d->tenants, e->tenant, &t);
	struct event event = { .kind = kind_of[e->kind],
			       .pid = e->tgid,
			       .uid = EVENT_NO_UID,
			       .size = EVENT_NO_NUMBER,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };

	if (is_told && event_log_leaves_out(d->events, t.uid, t.name))
		return;
	event.text = text = describe(e, library, is_told ? t.name : NULL);
	if (has_size(e->kind)) {
		if (!is_size_unknown(e))
			event.size = e->size;
		event.call = engine_row_name(e->row);
		event.reason = reason_name(e->reason);
		if (e->reason == AUDIT_REASON_MAX || e->reason == AUDIT_REASON_DEVICE)
			event.left = e->left;
		if (e->device < daemon_n_devices(d))
			event.gpu = d->gpu->devices[e->device].uuid;
		if (is_of_stranger(e))
			event.uid = e->size;
		else if (process_uid(e->tgid, &event.uid) < 0 && is_told)
			event.uid = t.uid;
	}
	if (e->kind == AUDIT_EVENT_INSUFFICIENT)
		event.wait_ms = e->wait_ns == UINT64_MAX ? EVENT_NO_NUMBER : e->wait_ns / 1000000;
	if (is_told)
		event.tenant = t.name;
	event_log_add(d->events, &event, NULL);
}

/* Whether a call waits for memory of a device, whosever it is. */
static bool is_device_awaited(struct daemon *d)
{
	struct ledger all;
	unsigned i;

	for (i = 0; i < daemon_n_devices(d); i++) {
		if (engine_book(d->engine, 0, i, &all) == 0 && all.n_queued)
			return true;
	}
	return false;
}

/* Whether a user is bound to what he has of a group by now, or has nothing of one. */
static bool is_met(struct tenants *tenants, uid_t uid)
{
	const struct tenant *t;

	if (tenants_meet(tenants, uid) < 0)
		return false;
	t = tenants_of_uid(tenants, uid);
	return !t || t->bound || t->origin != TENANT_OF_TEMPLATE;
}

void daemon_on_engine_event(const struct audit_event *e, const char *text, void *userdata)
{
	struct daemon *d = userdata;
	uid_t uid;

	if (e->kind >= AUDIT_EVENT_KINDS)
		return;
	/* A thread of the process may wait for the hint. */
	if (e->kind == AUDIT_EVENT_NEW_PROCESS)
		daemon_place_hint(d, e->tgid);
	if (e->kind == AUDIT_EVENT_NEW_PROCESS && process_uid(e->tgid, &uid) == 0)
		tenants_meet(&d->tenants, uid);
	/* His thread waits: he is bound before it goes on, or is nobody's. */
	if (e->kind == AUDIT_EVENT_STRANGER && is_met(&d->tenants, e->size))
		engine_user_met(d->engine, e->size);
	if (e->kind == AUDIT_EVENT_PLACE)
		daemon_place_soon(d);
	/* What the dead had is there for others when the device says so. */
	if (e->kind == AUDIT_EVENT_SETTLE || (e->kind == AUDIT_EVENT_EXIT && is_device_awaited(d)))
		daemon_settle_soon(d);
	/* Its charge stays until it is known who has what it had. */
	if (e->kind == AUDIT_EVENT_EXIT && engine_is_lingering(d->engine))
		daemon_settle_soon(d);
	/* One that is answered at once is told by its refusal. */
	if (e->kind == AUDIT_EVENT_INSUFFICIENT && e->wait_ns == 0)
		return;
	if (kind_of[e->kind] != NOT_KEPT)
		keep(d, e, text);
}
