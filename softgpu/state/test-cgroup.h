/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup for a test, where the machine lets it make one.
 */
#ifndef SOFTGPU_STATE_TEST_CGROUP_H
#define SOFTGPU_STATE_TEST_CGROUP_H

#include "softgpu/state/layout.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static inline bool cgroup_new(char path[STATE_PATH_MAX])
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char procs[STATE_PATH_MAX];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", mounts[i]);
		snprintf(path, STATE_PATH_MAX, "%s/softgpu-test-%d", mounts[i], getpid());
		if (access(procs, W_OK) == 0 && mkdir(path, 0755) == 0)
			return true;
	}
	return false;
}

static inline void cgroup_enter(const char *path)
{
	char procs[STATE_PATH_MAX + 16];
	int fd;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	fd = open(procs, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(77);
	close(fd);
}

#endif
