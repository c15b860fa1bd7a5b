// SPDX-License-Identifier: Apache-2.0
/*
 * The cgroups that a process is in, as inode numbers of their directories: those are the
 * same in every mount and cgroup namespace. Ancestors above a namespace's root cannot be
 * seen from inside.
 */
#include "softgpu/state/internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLDS_NS 10000000

/* Where the cgroup v2 hierarchy is mounted, and what part of it; looked up once. */
static struct {
	char root[PATH_MAX];
	char point[PATH_MAX];
	bool found;
} cgroup_mount;

static void mount_find(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return;
	while (!cgroup_mount.found && getline(&line, &size, f) > 0) {
		if (strstr(line, " - cgroup2 "))
			cgroup_mount.found = sscanf(line, "%*d %*d %*s %4095s %4095s",
						    cgroup_mount.root, cgroup_mount.point) == 2;
	}
	free(line);
	fclose(f);
}

static bool path_read(char path[PATH_MAX])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 16];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 3);
		found = true;
	}
	fclose(f);
	return found;
}

/* Inode numbers from the directory at @path up to its first @top bytes. */
static void ancestors_read(char *path, size_t top, uint64_t ret[STATE_CGROUPS_MAX])
{
	struct stat st;
	unsigned n = 0;

	while (n < STATE_CGROUPS_MAX) {
		if (stat(path, &st) == 0)
			ret[n++] = st.st_ino;
		if (strlen(path) <= top)
			return;
		*strrchr(path, '/') = '\0';
	}
}

/* A container's mount may show a part of the hierarchy only: "/a/b" of the path "/a/b/c". */
static const char *path_below_mount(const char *path)
{
	size_t len = strlen(cgroup_mount.root);

	if (strcmp(cgroup_mount.root, "/") != 0 && strncmp(path, cgroup_mount.root, len) == 0)
		path += len;
	return strcmp(path, "/") == 0 ? "" : path;
}

static void look_up(uint64_t ret[STATE_CGROUPS_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char path[PATH_MAX], full[2 * PATH_MAX];

	memset(ret, 0, STATE_CGROUPS_MAX * sizeof(*ret));
	pthread_once(&once, mount_find);
	if (!cgroup_mount.found || !path_read(path))
		return;
	snprintf(full, sizeof(full), "%s%s", cgroup_mount.point, path_below_mount(path));
	ancestors_read(full, strlen(cgroup_mount.point), ret);
}

/*
 * Looking up takes longer than an allocation, and processes are seldom moved: where this one
 * was a moment ago is where it is. Whoever finds the lock taken looks by himself; in a child
 * that was forked meanwhile nobody would give it back.
 */
void cgroups_own(uint64_t ret[STATE_CGROUPS_MAX])
{
	static struct {
		pthread_mutex_t lock;
		pid_t pid; /* a forked child may be moved at once */
		uint64_t until_ns;
		uint64_t found[STATE_CGROUPS_MAX];
	} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

	if (pthread_mutex_trylock(&last.lock) != 0) {
		look_up(ret);
		return;
	}
	if (clock_now() >= last.until_ns || last.pid != getpid()) {
		look_up(last.found);
		last.pid = getpid();
		last.until_ns = clock_now() + HOLDS_NS;
	}
	memcpy(ret, last.found, sizeof(last.found));
	pthread_mutex_unlock(&last.lock);
}

void cgroups_refresh(struct state_slot *slot)
{
	uint64_t now[STATE_CGROUPS_MAX];

	cgroups_own(now);
	for (unsigned i = 0; i < STATE_CGROUPS_MAX; i++)
		atomic_store(&slot->cgroups[i], now[i]);
}
