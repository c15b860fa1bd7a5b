/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int fd_write_all(int fd, const void *buf, size_t n)
{
	const char *p = buf;
	ssize_t w;

	while (n > 0) {
		w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= w;
	}
	return 0;
}

int fd_mkdir_parents(const char *path, mode_t mode)
{
	_cleanup_free_ char *copy = strdup(path);
	char *p;

	if (!copy)
		return -ENOMEM;
	for (p = copy; (p = strchr(p + 1, '/'));) {
		*p = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdir(copy, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

int fd_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int fd_of_process(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		return fd;
	/* EINVAL up to Linux 6.14, ENOENT since, where the number is not that of a process. */
	return pid > 0 && (errno == EINVAL || errno == ENOENT) ? -ESRCH : -errno;
}
