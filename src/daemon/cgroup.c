/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cgroup.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>

/* @controller: NULL for the v2 hierarchy */
static int find_mount(const char *controller, char **ret)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	int r = -ENODATA;

	if (!f)
		return -errno;
	while ((m = getmntent(f))) {
		if (!str_eq(m->mnt_type, controller ? "cgroup" : "cgroup2") ||
		    (controller && !hasmntopt(m, controller)))
			continue;
		*ret = strdup(m->mnt_dir);
		r = *ret ? 0 : -ENOMEM;
		break;
	}
	endmntent(f);
	return r;
}

/* Mounted once, when the host starts: looked up once, as cgroups are looked at all the time. */
int cgroup_mount(char **ret)
{
	static char *mount;
	int r = 0;

	if (!mount)
		r = find_mount(NULL, &mount);
	if (r < 0)
		return r;
	*ret = strdup(mount);
	return *ret ? 0 : -ENOMEM;
}

int cgroup_v1_mount(const char *controller, char **ret)
{
	return find_mount(controller, ret);
}

int cgroup_dir(const char *path, char **ret)
{
	_cleanup_free_ char *mount = NULL;
	int r;

	r = cgroup_mount(&mount);
	if (r < 0)
		return r;
	*ret = str_format("%s%s", mount, path);
	return *ret ? 0 : -ENOMEM;
}

int cgroup_id(const char *path, uint64_t *ret)
{
	_cleanup_free_ char *dir = NULL;
	struct stat st;
	int r;

	r = cgroup_dir(path, &dir);
	if (r < 0)
		return r;
	if (stat(dir, &st) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

int cgroup_of_pid(pid_t pid, char **ret)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *line, *state = NULL;
	const char *found;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	r = file_read_at(AT_FDCWD, path, 1 << 20, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	for (line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		found = str_after(line, "0::");
		if (!found)
			continue;
		*ret = strdup(found);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENODATA;
}

bool cgroup_is_inside(const char *path, const char *of)
{
	const char *rest = str_after(path, of);

	return str_eq(of, "/") || (rest && (*rest == '\0' || *rest == '/'));
}

static int move_into(const char *dir, pid_t pid)
{
	_cleanup_free_ char *procs = str_format("%s/cgroup.procs", dir);
	char text[16];

	if (!procs)
		return -ENOMEM;
	snprintf(text, sizeof(text), "%d", pid);
	return file_write_at(AT_FDCWD, procs, text);
}

int cgroup_move(pid_t pid, const char *path)
{
	_cleanup_free_ char *dir = NULL;
	int r;

	r = cgroup_dir(path, &dir);
	return r < 0 ? r : move_into(dir, pid);
}

int cgroup_enter(pid_t pid, const char *name, char **ret_path)
{
	_cleanup_free_ char *parent = NULL, *path = NULL, *dir = NULL;
	int r;

	r = cgroup_of_pid(pid, &parent);
	if (r < 0)
		return r;
	path = str_format("%s/%s", str_eq(parent, "/") ? "" : parent, name);
	if (!path)
		return -ENOMEM;
	r = cgroup_dir(path, &dir);
	if (r < 0)
		return r;
	/* One that is left over from a daemon that was killed is empty; one in use is somebody's.
	 */
	if (mkdir(dir, 0755) < 0 && (errno != EEXIST || rmdir(dir) < 0 || mkdir(dir, 0755) < 0))
		return -errno;
	r = move_into(dir, pid);
	if (r < 0) {
		rmdir(dir);
		return r;
	}
	*ret_path = TAKE_PTR(path);
	return 0;
}

bool cgroup_is_populated(const char *path)
{
	_cleanup_free_ char *dir = NULL, *file = NULL, *text = NULL;

	if (cgroup_dir(path, &dir) < 0)
		return false;
	file = str_format("%s/cgroup.events", dir);
	return file && file_read_at(AT_FDCWD, file, 4096, &text, NULL) == 0 &&
	       strstr(text, "populated 1");
}

static int each_pid_of(const char *dir, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_free_ char *file = str_format("%s/cgroup.procs", dir), *text = NULL;
	char *line, *state = NULL;
	int r;

	if (!file)
		return -ENOMEM;
	r = file_read_at(AT_FDCWD, file, 16 << 20, &text, NULL);
	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		fn(atoi(line), userdata);
	return 0;
}

static int each_pid_below(const char *dir, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *entry;
	int r;

	if (!d)
		return -errno;
	r = each_pid_of(dir, fn, userdata);
	while (r == 0 && (entry = readdir(d))) {
		_cleanup_free_ char *below = NULL;

		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		below = str_format("%s/%s", dir, entry->d_name);
		r = below ? each_pid_below(below, fn, userdata) : -ENOMEM;
		/* One that was taken away meanwhile has no processes. */
		r = r == -ENOENT || r == -ENODEV ? 0 : r;
	}
	return r;
}

int cgroup_each_pid(const char *path, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_free_ char *dir = NULL;
	int r;

	r = cgroup_dir(path, &dir);
	return r < 0 ? r : each_pid_below(dir, fn, userdata);
}

/* With those that were made inside it: where a nest of commands ends at once, the outer may be first. */
static void remove_nest(const char *dir)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *below = NULL;

		if (entry->d_type != DT_DIR || !str_after(entry->d_name, CGROUP_PREFIX))
			continue;
		below = str_format("%s/%s", dir, entry->d_name);
		if (below)
			remove_nest(below);
	}
	rmdir(dir);
}

void cgroup_remove(const char *path)
{
	const char *name = strrchr(path, '/');
	_cleanup_free_ char *dir = NULL;

	if (name && str_after(name, "/" CGROUP_PREFIX) && cgroup_dir(path, &dir) == 0)
		remove_nest(dir);
}
