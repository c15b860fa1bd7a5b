// SPDX-License-Identifier: Apache-2.0
/*
 * The cgroups that a process is in, as inode numbers of their directories: those are the
 * same in every mount and cgroup namespace. Ancestors above a namespace's root cannot be
 * seen from inside.
 */
#include "softgpu/state/internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Finds where the cgroup v2 hierarchy is mounted, and what part of it. */
static bool mount_find(char root[PATH_MAX], char mount_point[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[3 * PATH_MAX];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strstr(line, " - cgroup2 "))
			found = sscanf(line, "%*d %*d %*s %4095s %4095s", root, mount_point) == 2;
	}
	fclose(f);
	return found;
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

void cgroups_own(uint64_t ret[STATE_CGROUPS_MAX])
{
	char root[PATH_MAX], mount_point[PATH_MAX], path[PATH_MAX];
	char full[2 * PATH_MAX];
	const char *below = path;

	memset(ret, 0, STATE_CGROUPS_MAX * sizeof(*ret));
	if (!path_read(path) || !mount_find(root, mount_point))
		return;
	/* A container's mount may show a part of the hierarchy only: "/a/b" of path "/a/b/c". */
	if (strcmp(root, "/") != 0 && strncmp(path, root, strlen(root)) == 0)
		below += strlen(root);
	snprintf(full, sizeof(full), "%s%s", mount_point, strcmp(below, "/") == 0 ? "" : below);
	ancestors_read(full, strlen(mount_point), ret);
}

void cgroups_refresh(struct state_slot *slot)
{
	uint64_t now[STATE_CGROUPS_MAX];

	cgroups_own(now);
	for (unsigned i = 0; i < STATE_CGROUPS_MAX; i++)
		atomic_store(&slot->cgroups[i], now[i]);
}
