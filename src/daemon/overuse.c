/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: a sample is taken, kept, shown to the policy, and what that decides is done.
 */
#include "daemon/sampling.h"

#include "base/log.h"

#include <errno.h>

/* The timer's grain: a device is sampled when it is due, not later than this. */
#define WAKE_AT_LEAST_MS 20

uint64_t overuse_now_ms(void)
{
	return daemon_monotonic_us() / 1000;
}

/* --- the log of use --- */

void overuse_saw_work(struct overuse *o, pid_t pid, unsigned device, unsigned percent)
{
	struct resident *p = residents_find(&o->residents, pid);

	if (!p)
		p = residents_find(&o->residents, assoc_process_of(o->residents.proc_fd, pid));
	if (!p)
		return;
	p->percent[device] = MIN(percent, 100U);
	p->worked_ms[device] = overuse_now_ms();
}

static void keep_sample(struct overuse *o, struct resident *p, unsigned device, uint64_t now_ms)
{
	struct resident_kept now = { p->bytes[device], p->n_tenants ? p->tenants[0] : 0,
				     resident_busy(p, device, now_ms) };
	struct resident_kept *kept = &p->kept[device];

	/* It may be listed before the books say whose it is. */
	if (now.bytes == kept->bytes && now.percent == kept->percent &&
	    (now.tenant == kept->tenant || now.bytes == 0))
		return;
	*kept = now;
	use_log_sample(&o->use, &(struct use_sample){ .bytes = now.bytes,
						      .time_ms = now_ms,
						      .pid = p->who.pid,
						      .tenant = now.tenant,
						      .device = device,
						      .percent = now.percent });
}

static void keep_minute(struct overuse *o, const struct sampled_tenant *t, unsigned device)
{
	struct use_of use = { .tenant = t->tenant->spec.name,
			      .uid = t->tenant->uid,
			      .gpu = o->daemon->gpu->devices[device].uuid,
			      .bytes = t->bytes[device],
			      .busy_percent = t->busy[device] };

	if (use.bytes > 0)
		use_log_minute(&o->use, o->history, daemon_now_us(), &use);
}

static void keep_use(struct overuse *o, const struct sampling *s)
{
	unsigned device;
	size_t i;

	for (device = 0; device < s->sample.n_devices; device++) {
		if (!s->devices[device].known)
			continue;
		for (i = 0; i < o->residents.n; i++)
			keep_sample(o, o->residents.items[i], device, s->sample.now_ms);
		for (i = 0; i < s->n_tenants; i++)
			keep_minute(o, &s->tenants[i], device);
	}
}

static void keep_peaks(struct overuse *o, const struct sampling *s)
{
	const struct sampled_tenant *t;
	struct live_incident *live;
	unsigned i;

	for (live = o->live; live; live = live->next) {
		t = sampling_find(s, live->tenant);
		for (i = 0; t && i < s->sample.n_devices; i++) {
			if (str_eq(live->row.gpu, o->daemon->gpu->devices[i].uuid))
				live->row.peak_bytes = MAX(live->row.peak_bytes, t->bytes[i]);
		}
	}
}

/* --- the loop --- */

static void plan_next(struct overuse *o, unsigned device, uint64_t now_ms)
{
	if (now_ms >= o->due_ms[device])
		o->due_ms[device] =
			now_ms + (o->state.devices[device].is_tense ? o->fast_ms : o->slow_ms);
}

void overuse_sample(struct overuse *o, uint64_t now_ms)
{
	_cleanup_(sampling_done) struct sampling s;
	unsigned i;
	size_t j;
	int r;

	r = sampling_take(o, now_ms, &s);
	if (r == 0) {
		keep_use(o, &s);
		keep_peaks(o, &s);
		r = policy_decide(&o->numbers, &o->state, &s.sample, &o->actions);
	}
	for (j = 0; r == 0 && j < o->actions.n; j++)
		overuse_carry_out(o, &o->actions.items[j]);
	if (r < 0)
		log_warn(r, "nothing is decided on this sample");
	for (i = 0; i < daemon_n_devices(o->daemon); i++)
		plan_next(o, i, now_ms);
}

static uint64_t next_ms(const struct overuse *o, uint64_t now_ms)
{
	uint64_t next = now_ms + o->slow_ms;
	unsigned i;

	for (i = 0; i < daemon_n_devices(o->daemon); i++)
		next = MIN(next, o->due_ms[i]);
	return MAX(next, now_ms + WAKE_AT_LEAST_MS) - now_ms;
}

static int on_time(sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct overuse *o = userdata;
	uint64_t now_ms = overuse_now_ms();

	overuse_sample(o, now_ms);
	sd_event_source_set_time_relative(s, next_ms(o, overuse_now_ms()) * 1000);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static bool is_due(const struct overuse *o, unsigned device, uint64_t now_ms)
{
	uint64_t period_ms = o->state.devices[device].is_tense ? o->fast_ms : o->slow_ms;

	return now_ms + period_ms / 4 >= o->due_ms[device];
}

bool overuse_is_due(const struct daemon *d)
{
	const struct overuse *o = d->overuse;
	uint64_t now_ms = overuse_now_ms();
	unsigned i;

	for (i = 0; o && o->timer && i < daemon_n_devices(d); i++) {
		if (is_due(o, i, now_ms))
			return true;
	}
	return false;
}

/* What is due within a quarter of its time is due now. */
static bool take_due(struct overuse *o, uint64_t now_ms)
{
	bool any = false;
	unsigned i;

	for (i = 0; i < daemon_n_devices(o->daemon); i++) {
		if (!is_due(o, i, now_ms))
			continue;
		o->due_ms[i] = MIN(o->due_ms[i], now_ms);
		any = true;
	}
	return any;
}

void overuse_tick(struct daemon *d)
{
	struct overuse *o = d->overuse;
	uint64_t now_ms = overuse_now_ms();

	if (!o->timer || !take_due(o, now_ms))
		return;
	overuse_sample(o, now_ms);
	sd_event_source_set_time_relative(o->timer, next_ms(o, overuse_now_ms()) * 1000);
}

int overuse_start(struct daemon *d)
{
	if (daemon_n_devices(d) == 0)
		return 0;
	return sd_event_add_time_relative(d->loop, &d->overuse->timer, CLOCK_MONOTONIC,
					  d->overuse->slow_ms * 1000, WAKE_AT_LEAST_MS * 500,
					  on_time, d->overuse);
}

/* --- opening and closing --- */

void overuse_thaw(struct overuse *o, const char *record)
{
	batch_resume_recorded(&o->batch, record);
	target_thaw(record);
}

static void end_old(struct incident *incident, void *userdata)
{
	struct overuse *o = userdata;
	struct incident_entry entry = { .incident = incident->id,
					.time_us = daemon_now_us(),
					.action = policy_kind_name(POLICY_CLEAR),
					.reason = policy_reason_name(POLICY_RESTART),
					.request_bytes = incident->request_bytes };

	str_copy(entry.result, sizeof(entry.result), *incident->frozen ? "goes on" : "told");
	overuse_thaw(o, incident->frozen);
	free(incident->frozen);
	incident->frozen = NULL;
	incident->close_us = daemon_now_us();
	incident_log_put(o->history, incident);
	incident_log_put_entry(o->history, &entry);
}

static int open_log(struct overuse *o, const char *state_dir)
{
	_cleanup_free_ char *path = str_format("%s/history.db", state_dir);
	int r;

	r = path ? history_db_open(path, &o->history) : -ENOMEM;
	if (r == 0)
		return 0;
	log_warn(r, "%s: history will not outlive this daemon", path);
	return history_db_open(":memory:", &o->history);
}

int overuse_let_go(const struct overuse_options *options)
{
	_cleanup_free_ char *path = str_format("%s/history.db", options->state_dir);
	struct overuse o = { .batch.program = options->batch_program };
	int r;

	if (!path)
		return -ENOMEM;
	if (access(path, F_OK) < 0)
		return 0;
	r = history_db_open(path, &o.history);
	if (r == 0)
		r = incident_log_each_open(o.history, end_old, &o);
	history_db_close(o.history);
	return r;
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
	o->batch = (struct batch){ .program = options->batch_program, .loop = d->loop };
	r = residents_init(&o->residents);
	if (r == 0)
		r = open_log(o, options->state_dir);
	if (r == 0)
		r = incident_log_each_open(o->history, end_old, o);
	return r;
}

void overuse_close(struct daemon *d)
{
	struct overuse *o = d->overuse;
	struct live_incident *live, *next;

	if (!o)
		return;
	deeds_done(o);
	sd_event_source_unref(o->timer);
	for (live = o->live; live; live = next) {
		next = live->next;
		if (live->row.frozen)
			overuse_thaw(o, live->row.frozen);
		free(live->row.frozen);
		free(live);
	}
	batch_done(&o->batch);
	use_log_flush(&o->use, o->history);
	use_log_done(&o->use);
	residents_done(&o->residents);
	policy_state_done(&o->state);
	policy_actions_done(&o->actions);
	history_db_close(o->history);
	free(o);
	d->overuse = NULL;
}
