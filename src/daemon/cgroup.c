/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cgroup.h"

#include "base/file.h"
#include "base/mounts.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* So many folders are open at once while one is walked through. */
#define WALK_DEPTH 64

/* Mounted once, when the host starts: looked up once, as cgroups are looked at all the time. */
int cgroup_mount(char **ret)
{
	static char *mount;
	int r = 0;

	if (!mount)
		r = mounts_find_cgroup(NULL, &mount);
	if (r < 0)
		return r;
	*ret = strdup(mount);
	return *ret ? 0 : -ENOMEM;
}

int cgroup_v1_mount(const char *controller, char **ret)
{
	return mounts_find_cgroup(controller, ret);
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

/* In a threaded cgroup there is nothing to read: its processes are listed by the one around it. */
static void each_pid_of(int dir_fd, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_free_ char *text = NULL;
	char *line, *state = NULL;

	if (file_read_at(dir_fd, "cgroup.procs", 16 << 20, &text, NULL) < 0)
		return;
	for (line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		fn(atoi(line), userdata);
}

/*
 * What is inside may be another user's making: called as he likes, one in the other as often as he likes, and
 * gone at any moment. What fails for one of them hides none of the others.
 */
static void each_pid_below(int dir_fd, unsigned depth, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_closedir_ DIR *d = fdopendir(dir_fd);
	struct dirent *entry;
	int below;

	if (!d) {
		close(dir_fd);
		return;
	}
	each_pid_of(dirfd(d), fn, userdata);
	while (depth && (entry = readdir(d))) {
		if (entry->d_type != DT_DIR || str_eq(entry->d_name, ".") ||
		    str_eq(entry->d_name, ".."))
			continue;
		below = openat(dirfd(d), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			each_pid_below(below, depth - 1, fn, userdata);
	}
}

int cgroup_each_pid(const char *path, cgroup_pid_fn fn, void *userdata)
{
	_cleanup_free_ char *dir = NULL;
	int r, fd;

	r = cgroup_dir(path, &dir);
	if (r < 0)
		return r;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	each_pid_below(fd, WALK_DEPTH, fn, userdata);
	return 0;
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
