/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants as the API shows them. What is not known is null.
 */
#include "daemon/daemon.h"

#include "base/clock.h"
#include "daemon/process.h"

static json_t *number_or_null(uint64_t v)
{
	return v == UINT64_MAX ? json_null() : json_integer(v);
}

static json_t *limits_json(const struct limits *limits)
{
	json_t *object = json_object();
	char buf[QUANTITY_TEXT], *key;
	size_t i;

	for (i = 0; i < limits->n_settings; i++) {
		key = limit_key_print(&limits->settings[i]);
		if (key)
			json_object_set_new(
				object, key,
				json_string(limit_value_print(limits->settings[i].id,
							      &limits->settings[i].value, buf)));
		free(key);
	}
	return object;
}

static json_t *gpus_json(const struct limits *limits)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < limits->n_gpus; i++)
		json_array_append_new(list, json_string(limits->gpus[i]));
	return list;
}

/* What the processes of one tenant have by their calls, and beyond. */
struct sums {
	uint64_t use[LEDGER_DEVICES];
	uint64_t overhead[LEDGER_DEVICES];
	unsigned n_processes;
};

/*
 * Of all tenants by their number, from one walk over the processes and one over the
 * calls that wait: however many tenants are shown, the engine is asked once.
 */
struct books_view {
	struct daemon *daemon;
	struct sums sums[LEDGER_TENANTS];
	json_t *processes[LEDGER_TENANTS]; /* of the tenant @detail alone */
	json_t *waiting[LEDGER_TENANTS];
	uint32_t detail; /* a tenant's number, or 0 */
};

static json_t *process_json(const struct audit_process *p)
{
	char name[PROCESS_NAME_SIZE], user[PROCESS_NAME_SIZE] = "-";
	uint64_t use = 0, overhead = 0;
	unsigned i;
	uid_t uid;

	process_name(audit_process_tgid(p), name);
	if (process_uid(audit_process_tgid(p), &uid) == 0)
		user_name(uid, user);
	for (i = 0; i < LEDGER_DEVICES; i++) {
		use += p->use[i] + p->idle[i];
		overhead += p->overhead[i];
	}
	return json_pack("{s:i, s:s, s:s, s:I, s:I}", "pid", (int)audit_process_tgid(p), "command",
			 name, "user", user, "memory.allocated", (json_int_t)use, "memory.overhead",
			 (json_int_t)overhead);
}

static void append(json_t **list, json_t *item)
{
	if (!*list)
		*list = json_array();
	json_array_append_new(*list, item);
}

static int add_process(const struct audit_process *p, void *userdata)
{
	struct books_view *view = userdata;
	uint32_t i, number;
	unsigned device;

	for (i = 0; i < p->chain.n && i < LEDGER_DEPTH; i++) {
		number = p->chain.tenants[i] % LEDGER_TENANTS;
		view->sums[number].n_processes++;
		for (device = 0; device < LEDGER_DEVICES; device++) {
			view->sums[number].use[device] += p->use[device] + p->idle[device];
			view->sums[number].overhead[device] += p->overhead[device];
		}
		if (number == view->detail)
			append(&view->processes[number], process_json(p));
	}
	return 0;
}

static json_t *compute_stat_json(struct daemon *d, const struct tenant *t, unsigned device)
{
	struct share s;

	if (!d->engine || !t->number || d->compute_reason ||
	    engine_compute_stat(d->engine, t->number, device, &s) != 0)
		return json_null();
	return json_pack("{s:I, s:I, s:I}", "usage_usec", (json_int_t)(s.usage_ns / 1000),
			 "throttled_usec", (json_int_t)(s.throttled_ns / 1000), "nr_throttled",
			 (json_int_t)s.n_throttled);
}

static json_t *device_json(struct daemon *d, const struct tenant *t, unsigned device,
			   const struct sums *sums)
{
	const struct gpu_device *g = &d->gpu->devices[device];
	struct device_limits limits;
	struct ledger book;
	json_t *o;

	tenant_limits(&d->tenants, t, device, &limits);
	o = json_pack("{s:i, s:s, s:o, s:I, s:i, s:f}", "gpu", device, "UUID", g->uuid,
		      "memory.max", number_or_null(limits.memory_max), "memory.low",
		      (json_int_t)limits.memory_low, "compute.weight", limits.compute_weight,
		      "compute.max", limits.compute_max_permille / 10.0);
	json_object_set_new(o, "compute.stat", compute_stat_json(d, t, device));
	json_object_set_new(o, "last_active",
			    t->last_active_us[device] ? json_real(t->last_active_us[device] / 1e6)
						      : json_null());
	if (!d->engine || !t->number || engine_book(d->engine, t->number, device, &book) != 0) {
		json_object_update_new(o, json_pack("{s:n, s:n, s:n, s:n, s:n, s:n, s:n}",
						    "memory.current", "memory.peak",
						    "memory.allocated", "memory.overhead",
						    "refused", "held", "waiting"));
		return o;
	}
	json_object_update_new(
		o,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "memory.current",
			  (json_int_t)book.current, "memory.peak", (json_int_t)book.peak,
			  "memory.allocated", (json_int_t)sums->use[device], "memory.overhead",
			  (json_int_t)sums->overhead[device], "refused", (json_int_t)book.n_refused,
			  "held", (json_int_t)book.n_held, "waiting", (json_int_t)book.n_queued));
	return o;
}

/* What a held call waits for. */
static json_t *awaited_json(struct daemon *d, const struct audit_slot *slot)
{
	const struct tenant *by = tenants_by_number(&d->tenants, slot->tenant);

	switch (slot->reason) {
	case AUDIT_REASON_DEVICE:
		return json_string("device memory");
	case AUDIT_REASON_COMPUTE:
		return json_string("its share of device time");
	case AUDIT_REASON_PROBES:
		return json_string("its launches to be probed");
	default:
		return by ? json_sprintf("memory.max of %s", by->spec.name)
			  : json_string("its turn");
	}
}

static json_t *held_json(struct daemon *d, const struct audit_slot *slot)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	json_t *o;

	o = json_pack("{s:I, s:i, s:i, s:s, s:I, s:I}", "ticket", (json_int_t)slot->ticket, "pid",
		      (int)slot->tgid, "tid", (int)slot->tid, "call", engine_row_name(slot->row),
		      "size", (json_int_t)slot->size, "since_ms",
		      (json_int_t)(now > slot->begin_ns ? (now - slot->begin_ns) / 1000000 : 0));
	json_object_set_new(o, "gpu",
			    slot->device < daemon_n_devices(d) ? json_integer(slot->device)
							       : json_null());
	json_object_set_new(o, "for", awaited_json(d, slot));
	return o;
}

static int add_held(const struct audit_slot *slot, void *userdata)
{
	struct books_view *view = userdata;
	uint32_t i;

	for (i = 0; slot->ask == AUDIT_ASK_HOLD && i < slot->chain.n && i < LEDGER_DEPTH; i++)
		append(&view->waiting[slot->chain.tenants[i] % LEDGER_TENANTS],
		       held_json(view->daemon, slot));
	return 0;
}

struct books_view *books_view_new(struct daemon *d, const struct tenant *detail)
{
	struct books_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->daemon = d;
	view->detail = detail ? detail->number : 0;
	if (d->engine) {
		engine_each_process(d->engine, add_process, view);
		engine_each_held(d->engine, add_held, view);
	}
	return view;
}

void books_view_free(struct books_view *view)
{
	uint32_t i;

	if (!view)
		return;
	for (i = 0; i < LEDGER_TENANTS; i++) {
		json_decref(view->processes[i]);
		json_decref(view->waiting[i]);
	}
	free(view);
}

static const char *const origin_names[] = {
	[TENANT_OF_FILE] = "file",
	[TENANT_OF_RUN] = "run",
	[TENANT_OF_TEMPLATE] = "template",
};

static json_t *identity_json(struct daemon *d, const struct tenant *t)
{
	_cleanup_free_ char *match = selector_print(&t->spec.match);
	const struct config_file *file = NULL;
	char user[PROCESS_NAME_SIZE] = "";
	json_t *o;

	if (t->uid != TENANT_NO_OWNER)
		user_name(t->uid, user);
	if (t->origin == TENANT_OF_FILE)
		config_find(&d->tenants.files, t->spec.name, &file);
	o = json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:s?}", "tenant", t->spec.name, "match",
		      match ? str_make_printable(match) : "", "origin", origin_names[t->origin],
		      "user", *user ? user : NULL, "template", *t->template ? t->template : NULL,
		      "file", file ? file->path : NULL, "problem", *t->problem ? t->problem : NULL);
	return o;
}

static json_t *list_or_empty(json_t *list)
{
	return list ? json_incref(list) : json_array();
}

json_t *tenant_json(const struct books_view *view, const struct tenant *t, int only_device)
{
	uint32_t number = t->number % LEDGER_TENANTS;
	const struct sums *sums = &view->sums[number];
	struct daemon *d = view->daemon;
	json_t *o = identity_json(d, t), *devices = json_array();
	unsigned i;

	for (i = 0; i < daemon_n_devices(d); i++) {
		if (only_device < 0 || only_device == (int)i)
			json_array_append_new(devices, device_json(d, t, i, sums));
	}
	json_object_set_new(o, "limits", limits_json(&t->spec.limits));
	json_object_set_new(o, "lowered", limits_json(&t->lowered));
	json_object_set_new(o, "gpus", gpus_json(&t->spec.limits));
	json_object_set_new(o, "devices", devices);
	json_object_set_new(o, "n_processes",
			    d->engine && number ? json_integer(sums->n_processes) : json_null());
	json_object_set_new(o, "waiting", list_or_empty(view->waiting[number]));
	if (number == view->detail)
		json_object_set_new(o, "processes", list_or_empty(view->processes[number]));
	return o;
}

json_t *tenant_json_alone(struct daemon *d, const struct tenant *t)
{
	_cleanup_(books_view_freep) struct books_view *view = books_view_new(d, t);

	return view ? tenant_json(view, t, -1) : NULL;
}
