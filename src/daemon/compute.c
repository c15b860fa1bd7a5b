/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device time: the driver's samples of each process, handed to the engine.
 *
 * Often while some tenant's compute is limited, so that what a launch takes is learned
 * soon; now and then where a tenant has such a limit; else seldom, for compute.stat, and at
 * every other of those times while nobody works.
 */
#include "daemon/daemon.h"

#include <errno.h>

#define NOW_AND_THEN_US 100000
#define SELDOM_US	500000
/* Several of each process, where they are read seldom. */
#define SAMPLES 2048

static int by_pid_and_time(const void *a, const void *b)
{
	const struct gpu_activity *x = a, *y = b;

	if (x->pid != y->pid)
		return (x->pid > y->pid) - (x->pid < y->pid);
	return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Drivers give the wall clock's time, the engine wants the monotonic clock's. */
static void read_device(struct daemon *d, unsigned device)
{
	uint64_t now_us = daemon_now_us(), now_ns = daemon_monotonic_us() * 1000;
	struct gpu_activity activity[SAMPLES];
	struct engine_sample samples[SAMPLES];
	size_t i, n = 0;
	int r;

	r = d->gpu->ops->activity(d->gpu, device, d->compute_since_us[device], activity,
				  ARRAY_SIZE(activity), &n);
	if (r == -EOPNOTSUPP)
		d->compute_reason = "the driver does not tell the processes' device time";
	if (r < 0 || n == 0)
		return;
	qsort(activity, n, sizeof(*activity), by_pid_and_time);
	for (i = 0; i < n; i++) {
		d->compute_since_us[device] = MAX(d->compute_since_us[device], activity[i].time_us);
		samples[i].pid = activity[i].pid;
		samples[i].percent = activity[i].percent;
		d->compute_saw_work |= activity[i].percent > 0;
		samples[i].end_ns =
			now_ns - MIN((now_us - MIN(activity[i].time_us, now_us)) * 1000, now_ns);
	}
	if (d->engine)
		engine_compute_samples(d->engine, device, samples, n);
	daemon_activity_samples(d, device, activity, n);
}

static void compute_look(struct daemon *d)
{
	uint64_t next_us = d->engine && d->tenants.any_sets_compute ? NOW_AND_THEN_US : SELDOM_US;
	unsigned i;

	/* Marks first: a sample is compared with a mark behind its end. */
	if (d->engine && engine_compute_tick(d->engine))
		next_us = ENGINE_COMPUTE_TICK_MS * 1000;
	d->compute_saw_work = false;
	for (i = 0; i < daemon_n_devices(d); i++)
		read_device(d, i);
	d->compute_is_slow = next_us == SELDOM_US;
	sd_event_source_set_time_relative(d->compute_timer, next_us);
	sd_event_source_set_enabled(d->compute_timer,
				    d->compute_is_slow ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_time(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	compute_look(userdata);
	return 0;
}

void daemon_compute_tick(struct daemon *d)
{
	if (!d->compute_is_slow)
		return;
	d->compute_skips = !d->compute_skips && !d->compute_saw_work;
	if (!d->compute_skips)
		compute_look(d);
}

void daemon_compute_wake(struct daemon *d)
{
	if (!d->compute_is_slow || !d->engine || !d->tenants.any_sets_compute)
		return;
	d->compute_is_slow = false;
	sd_event_source_set_time_relative(d->compute_timer, 0);
	sd_event_source_set_enabled(d->compute_timer, SD_EVENT_ONESHOT);
}

int daemon_compute_start(struct daemon *d)
{
	if (daemon_n_devices(d) == 0)
		return 0;
	return sd_event_add_time_relative(d->loop, &d->compute_timer, CLOCK_MONOTONIC,
					  NOW_AND_THEN_US, 1000, on_time, d);
}
