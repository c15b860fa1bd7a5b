/* SPDX-License-Identifier: Apache-2.0 */
#include "base/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* The kernel nests them no deeper. */
#define MAX_NESTED 33

static int is_same(int fd, int other)
{
	struct stat a, b;

	if (fstat(fd, &a) < 0 || fstat(other, &b) < 0)
		return -errno;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Return: 0 with the owner of the namespace on the way out that lies in @own. */
static int walk_out(int fd, int own, uid_t *ret)
{
	_cleanup_close_ int at = fd;
	int i, parent, r;

	for (i = 0; i < MAX_NESTED; i++) {
		parent = ioctl(at, NS_GET_PARENT);
		if (parent < 0)
			return -errno;
		r = is_same(parent, own);
		if (r > 0)
			r = ioctl(at, NS_GET_OWNER_UID, ret) < 0 ? -errno : 1;
		close(at);
		at = parent;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ELOOP;
}

int userns_maker(int proc_fd, pid_t pid, uid_t *ret)
{
	_cleanup_close_ int own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	char path[64];
	int fd, r;

	if (own < 0)
		return -errno;
	snprintf(path, sizeof(path), "%d/ns/user", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = is_same(fd, own);
	if (r != 0) {
		close(fd);
		return r < 0 ? r : USERNS_E_OWN;
	}
	return walk_out(fd, own, ret);
}

uid_t userns_user(int proc_fd, pid_t pid, uid_t uid)
{
	uid_t maker;

	return userns_maker(proc_fd, pid, &maker) == 0 && maker != 0 ? maker : uid;
}
