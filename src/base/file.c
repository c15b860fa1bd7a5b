/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int file_open_at(int dir_fd, const char *path, FILE **ret)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	FILE *f;

	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f)
		return -errno;
	TAKE_FD(fd);
	*ret = f;
	return 0;
}

int file_read_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	_cleanup_(text_done) struct text t = {};
	char buf[4096];
	size_t len;
	ssize_t n;
	char *all;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (t.len + n > max)
			return -EFBIG;
		text_addn(&t, buf, n);
	}
	len = t.len;
	all = text_take(&t);
	if (!all)
		return -ENOMEM;
	*ret = all;
	if (ret_len)
		*ret_len = len;
	return 0;
}

int file_write_at(int dir_fd, const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

/* A rename is lasting only when the directory has been flushed, too. */
static int sync_directory_of(const char *path)
{
	_cleanup_free_ char *dir = strdup(path);
	_cleanup_close_ int fd = -1;
	char *slash;

	if (!dir)
		return -ENOMEM;
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

static int write_new(const char *path, const char *bytes, size_t len, mode_t mode, bool flush)
{
	_cleanup_close_ int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, bytes, len);
	if (r < 0 || !flush)
		return r;
	return fsync(fd) < 0 ? -errno : 0;
}

static int replace(const char *path, const char *bytes, size_t len, mode_t mode, bool flush)
{
	/* Readers of a directory of *.ini or *.conf files never take this for one. */
	_cleanup_free_ char *tmp = str_format("%s.new~", path);
	int r;

	if (!tmp)
		return -ENOMEM;
	r = write_new(tmp, bytes, len, mode, flush);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

int file_replace(const char *path, const char *bytes, size_t len, mode_t mode)
{
	int r = replace(path, bytes, len, mode, /* flush= */ true);

	return r < 0 ? r : sync_directory_of(path);
}

int file_put(const char *path, const char *bytes, size_t len, mode_t mode)
{
	return replace(path, bytes, len, mode, /* flush= */ false);
}

static int check_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -ENOENT;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int file_find_program(const char *name)
{
	const char *list = getenv("PATH");
	_cleanup_free_ char *copy = NULL;
	char *folder, *state = NULL;
	int r = -ENOENT, found;

	if (strchr(name, '/'))
		return check_program(name);
	copy = strdup(list ? list : "/bin:/usr/bin");
	if (!copy)
		return -ENOMEM;
	for (folder = strtok_r(copy, ":", &state); folder && *name && r != 0;
	     folder = strtok_r(NULL, ":", &state)) {
		_cleanup_free_ char *path = str_format("%s/%s", folder, name);

		found = path ? check_program(path) : -ENOMEM;
		r = found == -ENOENT ? r : found;
	}
	return r;
}
