/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cluster/controller/hold.h"

#include "cluster/channel.h"

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>

#define RANDOM "/proc/sys/kernel/random/"

/* This kernel since it was started, and the file: so no other machine has the same lock. */
static int name_self(struct hold *hold)
{
	_cleanup_free_ char *boot = NULL, *uuid = NULL;
	struct stat st;
	int r;

	r = file_read_at(AT_FDCWD, RANDOM "boot_id", 64, &boot, NULL);
	if (r == 0)
		r = file_read_at(AT_FDCWD, RANDOM "uuid", 64, &uuid, NULL);
	if (r < 0)
		return r;
	if (fstat(hold->lock_fd, &st) < 0)
		return -errno;
	snprintf(hold->lock, sizeof(hold->lock), "%.36s:%" PRIx64 ":%" PRIu64 ":", boot,
		 (uint64_t)st.st_dev, (uint64_t)st.st_ino);
	snprintf(hold->lease.self, sizeof(hold->lease.self), "%s%.36s", hold->lock, uuid);
	return 0;
}

int hold_lock(struct hold *hold, const char *path, uint64_t length_ms, const volatile int *is_over)
{
	_cleanup_free_ char *name = str_format("%s.lock", path);
	int r;

	*hold = (struct hold){ .lease = { .length_ms = length_ms }, .lock_fd = -1 };
	hold->lock_fd = name ? open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600) : -1;
	if (hold->lock_fd < 0)
		return log_err(-errno, "cannot open %s.lock", path);
	if (flock(hold->lock_fd, LOCK_EX | LOCK_NB) < 0)
		log_info("another controller has %s: standing by", path);
	while (!*is_over && flock(hold->lock_fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return log_err(-errno, "cannot lock %s.lock", path);
	}
	r = name_self(hold);
	return r < 0 ? log_err(r, "cannot find a name for this controller") : 0;
}

static int renew(struct hold *hold, struct store *store)
{
	uint64_t looked_ms = channel_now_ms();
	struct lease_row row, seen, to_write;
	bool was_held = hold->lease.is_held;
	int r;

	r = store_read_lease(store, &row);
	if (r < 0)
		return r;
	seen = row;
	/* Who had this lock before is dead, as it is ours now. */
	if (!str_eq(row.holder, hold->lease.self) && str_after(row.holder, hold->lock))
		seen.holder[0] = '\0';
	if (!lease_look(&hold->lease, &seen, looked_ms, &to_write))
		return -EAGAIN;
	r = store_write_lease(store, &row, &to_write);
	if (r <= 0)
		return r < 0 ? r : -EAGAIN;
	lease_wrote(&hold->lease, &to_write, looked_ms);
	return !was_held;
}

int hold_renew(struct hold *hold, struct store *store)
{
	bool was_held = hold->lease.is_held;
	int r = renew(hold, store);

	if (r == -EAGAIN && was_held)
		log_warn(0, "another controller has taken over: standing by");
	else if (r > 0)
		log_info("this controller gives the orders now");
	else if (r < 0 && r != -EAGAIN && !hold->has_complained)
		log_err(r, "cannot renew the lease, so no orders are given: %s",
			store_reason(store));
	hold->has_complained = r < 0 && r != -EAGAIN;
	return r;
}

bool hold_may_act(const struct hold *hold)
{
	return lease_may_act(&hold->lease, channel_now_ms());
}

void hold_done(struct hold *hold)
{
	if (hold->lock_fd >= 0)
		close(hold->lock_fd);
}
