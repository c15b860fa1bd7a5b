// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/leftover.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Is that file the guest's memory, or a part of it? */
static bool is_ram(const struct ram *ram, unsigned device_major, unsigned device_minor,
		   uint64_t inode)
{
	struct stat st;
	size_t i;

	for (i = 0; i < ram->n; i++)
		if (fstat(ram->regions[i].fd, &st) == 0 && st.st_ino == inode &&
		    major(st.st_dev) == device_major && minor(st.st_dev) == device_minor)
			return true;
	return false;
}

/* A line of /proc/PID/maps: "7f0a1c000000-7f0a1c021000 rw-s 00004000 00:01 1043 /memfd:ram (deleted)" */
static bool is_leftover(const struct ram *ram, const char *line, uint64_t at, uint64_t size)
{
	unsigned device_major, device_minor;
	uint64_t start, end, inode;

	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &start, &end,
		      &device_major, &device_minor, &inode) == 5 &&
	       start < at + size && at < end && is_ram(ram, device_major, device_minor, inode);
}

int leftover_check(const struct ram *ram, pid_t pid, uint64_t at, uint64_t size)
{
	_cleanup_fclose_ FILE *maps = NULL;
	_cleanup_free_ char *line = NULL;
	char path[64];
	bool has_space = false;
	size_t room = 0;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = file_open_at(AT_FDCWD, path, &maps);
	if (r < 0)
		return r;
	while (getline(&line, &room, maps) > 0) {
		has_space = true;
		if (is_leftover(ram, line, at, size))
			return -EBUSY;
	}
	if (ferror(maps))
		return -EIO;
	/*
	 * Where its first thread has ended the file is empty, and still its other threads, or its mapper, have all that
	 * it had.
	 */
	return has_space ? 0 : -ESRCH;
}
