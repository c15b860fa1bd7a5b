/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context costs on each device: no argument of a call tells it, so it is learnt from what the
 * devices say of processes that have just one, and reserved when the next context is asked for.
 *
 * It is kept in a file, with the driver's version as other drivers need other amounts: of the very first
 * context with a driver on a device alone AUDIT_CONTEXT_GUESS is reserved.
 */
#include "daemon/daemon.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define COSTS_FILE_MAX 65536

static const char *driver_of(const struct daemon *d)
{
	return *d->gpu->driver_version ? d->gpu->driver_version : "-";
}

static void take_line(struct daemon *d, const char *line)
{
	char uuid[GPU_UUID_SIZE], driver[80];
	uint64_t bytes;
	unsigned i;

	if (sscanf(line, "%79s %79s %" SCNu64, uuid, driver, &bytes) != 3 ||
	    !str_eq(driver, driver_of(d)))
		return;
	for (i = 0; i < daemon_n_devices(d); i++) {
		if (str_eq(uuid, d->gpu->devices[i].uuid))
			d->context_bytes[i] = bytes;
	}
}

int context_costs_load(struct daemon *d, const char *state_dir)
{
	_cleanup_free_ char *text = NULL;
	char *line, *state = NULL;
	int r;

	d->context_file = str_format("%s/contexts", state_dir);
	if (!d->context_file)
		return -ENOMEM;
	r = file_read_at(AT_FDCWD, d->context_file, COSTS_FILE_MAX, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		take_line(d, line);
	return 0;
}

static void save(const struct daemon *d)
{
	_cleanup_free_ char *bytes = NULL;
	struct text text = {};
	unsigned i;
	int r;

	for (i = 0; i < daemon_n_devices(d); i++) {
		if (d->context_bytes[i])
			text_addf(&text, "%s %s %" PRIu64 "\n", d->gpu->devices[i].uuid,
				  driver_of(d), d->context_bytes[i]);
	}
	bytes = text_take(&text);
	r = bytes ? file_replace(d->context_file, bytes, strlen(bytes), 0600) : -ENOMEM;
	if (r < 0)
		log_warn(r, "cannot keep what contexts cost in %s", d->context_file);
}

void context_cost_learn(struct daemon *d, unsigned device, uint64_t bytes)
{
	if (d->context_bytes[device] && bytes >= d->context_bytes[device])
		return;
	d->context_bytes[device] = bytes;
	daemon_devices_apply(d);
	save(d);
}
