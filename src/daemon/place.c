/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices processes mean by their numbers (see the engine's engine_place()).
 *
 * The driver numbers the devices as CUDA_VISIBLE_DEVICES says at cuInit(). Two things are told to the
 * engine: what the environment said when the process began, which is a hint; and where a process that has
 * just made a context is, which the devices say. Drivers list a process a moment after it has a context,
 * so they are asked again until they do.
 */
#include "daemon/daemon.h"

#include "daemon/process.h"

#include <errno.h>

#define PLACE_EVERY_US 5000
#define PLACE_FOR_US   1000000

/* --- hints --- */

/* Numbers follow the bus, or the devices' speed, which is the same where all are of one kind. */
static bool numbers_are_ours(const struct daemon *d, pid_t pid)
{
	_cleanup_free_ char *order = NULL;
	unsigned i;

	if (process_variable(pid, "CUDA_DEVICE_ORDER", &order) == 0 && str_eq(order, "PCI_BUS_ID"))
		return true;
	for (i = 1; i < daemon_n_devices(d); i++) {
		if (!str_eq(d->gpu->devices[i].name, d->gpu->devices[0].name))
			return false;
	}
	return true;
}

/* The device that an item of the list names, AUDIT_NO_DEVICE if none or if it cannot be told. */
static uint8_t device_of_item(const struct daemon *d, const char *item, bool numbers)
{
	uint8_t found = AUDIT_NO_DEVICE;
	uint64_t number;
	unsigned i;

	if (str_parse_u64(item, &number) == 0)
		return numbers && number < daemon_n_devices(d) ? number : AUDIT_NO_DEVICE;
	/* The beginning of a UUID will do, if it is that of one device alone. */
	for (i = 0; i < daemon_n_devices(d); i++) {
		if (strncasecmp(d->gpu->devices[i].uuid, item, strlen(item)) != 0)
			continue;
		if (found != AUDIT_NO_DEVICE)
			return AUDIT_NO_DEVICE;
		found = i;
	}
	return found;
}

static void hints_from_list(const struct daemon *d, char *list, bool numbers, uint8_t *ret)
{
	char *item, *state = NULL;
	unsigned n = 0;

	for (item = strtok_r(list, ",", &state); item && n < LEDGER_DEVICES;
	     item = strtok_r(NULL, ",", &state))
		ret[n++] = device_of_item(d, str_trim(item), numbers);
}

void daemon_place_hint(struct daemon *d, pid_t pid)
{
	uint8_t hints[LEDGER_DEVICES];
	_cleanup_free_ char *list = NULL;
	bool numbers;
	unsigned i;

	if (daemon_n_devices(d) < 2)
		return;
	memset(hints, AUDIT_NO_DEVICE, sizeof(hints));
	numbers = numbers_are_ours(d, pid);
	if (process_variable(pid, "CUDA_VISIBLE_DEVICES", &list) == 0)
		hints_from_list(d, list, numbers, hints);
	else
		for (i = 0; numbers && i < daemon_n_devices(d); i++)
			hints[i] = i;
	engine_hint(d->engine, pid, hints);
}

/* --- places --- */

/*
 * One round: each device is asked once, and only where some process is to be placed.
 * @n_open:	processes that cannot be placed yet
 */
struct round {
	struct daemon *daemon;
	uint64_t begun_us;
	unsigned n_open;
};

/* The devices that list a process, less those that its other numbers stand for; a bit for each. */
static uint32_t devices_that_list(struct round *round, const struct audit_process *p)
{
	struct daemon *d = round->daemon;
	const struct running_list *running;
	uint32_t listed = 0;
	unsigned i;

	for (i = 0; i < daemon_n_devices(d); i++) {
		if (running_read(&d->running, d->gpu, i, round->begun_us, &running) == 0 &&
		    running_find(running, audit_process_tgid(p)))
			listed |= 1U << i;
	}
	for (i = 0; i < LEDGER_DEVICES; i++) {
		if (p->device_of[i] < LEDGER_DEVICES)
			listed &= ~(1U << p->device_of[i]);
	}
	return listed;
}

static int place(const struct audit_process *p, void *userdata)
{
	struct round *round = userdata;
	uint32_t placing = p->placing, listed;
	uint8_t hint;

	if (!placing || placing > LEDGER_DEVICES)
		return 0;
	listed = devices_that_list(round, p);
	hint = p->hint_of[placing - 1];
	/* In a process that was running before it was watched there may be more than one. */
	if (listed & (listed - 1) && hint < LEDGER_DEVICES)
		listed &= 1U << hint;
	if (listed && !(listed & (listed - 1)))
		engine_place(round->daemon->engine, audit_process_tgid(p), __builtin_ctz(listed));
	else
		round->n_open++;
	return 0;
}

static int on_place_time(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	d->placing = sd_event_source_unref(d->placing);
	daemon_place(d);
	return 0;
}

static void place_in(struct daemon *d, uint64_t delay_us)
{
	sd_event_add_time_relative(d->loop, &d->placing, CLOCK_MONOTONIC, delay_us, 1,
				   on_place_time, d);
}

void daemon_place(struct daemon *d)
{
	struct round round = { .daemon = d, .begun_us = daemon_monotonic_us() };

	if (!d->engine || daemon_n_devices(d) < 2 || d->placing)
		return;
	engine_each_process(d->engine, place, &round);
	d->placed_us = daemon_monotonic_us();
	if (round.n_open && daemon_now_us() < d->placing_until_us)
		place_in(d, PLACE_EVERY_US);
}

/* At once where that was not just done: somebody waits for it. */
void daemon_place_soon(struct daemon *d)
{
	uint64_t due_us = d->placed_us + PLACE_EVERY_US, now_us = daemon_monotonic_us();

	d->placing_until_us = daemon_now_us() + PLACE_FOR_US;
	if (d->engine && daemon_n_devices(d) >= 2 && !d->placing)
		place_in(d, due_us - MIN(due_us, now_us));
}
