/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include "base/file.h"
#include "base/str.h"
#include "base/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A program may map some ten thousand files; no file of /proc that is read here is longer. */
#define PROC_FILE_MAX (16 << 20)

static int read_proc(pid_t pid, const char *file, char **ret)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	r = file_read_at(AT_FDCWD, path, PROC_FILE_MAX, ret, NULL);
	return r == -ENOENT ? -ESRCH : r;
}

/* The first number of a line of its status. */
static int read_status(pid_t pid, const char *key, unsigned long *ret)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	int r;

	r = read_proc(pid, "status", &status);
	if (r < 0)
		return r;
	line = strstr(status, key);
	if (!line)
		return -ESRCH;
	*ret = strtoul(line + strlen(key), NULL, 10);
	return 0;
}

int process_uid(pid_t pid, uid_t *ret)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned long uid;
	int r;

	r = read_status(pid, "\nUid:", &uid);
	if (r < 0)
		return r;
	*ret = proc >= 0 ? userns_user(proc, pid, uid) : uid;
	return 0;
}

bool process_is_below(pid_t pid, pid_t above)
{
	pid_t parent = pid;

	while (parent > 0 && process_parent(parent, &parent) == 0) {
		if (parent == above)
			return true;
	}
	return false;
}

int process_start_time(pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *stat = NULL;
	const char *p;
	int field, r;

	r = read_proc(pid, "stat", &stat);
	if (r < 0)
		return r;
	/* The name is the second field and may hold blanks and brackets: count behind its last. */
	p = strrchr(stat, ')');
	for (field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -ESRCH;
	*ret = strtoull(p, NULL, 10);
	return 0;
}

int process_parent(pid_t pid, pid_t *ret)
{
	unsigned long parent;
	int r;

	r = read_status(pid, "\nPPid:", &parent);
	if (r == 0)
		*ret = parent;
	return r;
}

int process_variable(pid_t pid, const char *name, char **ret)
{
	_cleanup_free_ char *environ = NULL;
	size_t len = 0, n = strlen(name);
	char path[64], *p;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	r = file_read_at(AT_FDCWD, path, 1 << 20, &environ, &len);
	if (r < 0)
		return r;
	for (p = environ; p < environ + len; p += strlen(p) + 1) {
		if (strncmp(p, name, n) != 0 || p[n] != '=')
			continue;
		*ret = strdup(p + n + 1);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

void process_name(pid_t pid, char ret[PROCESS_NAME_SIZE])
{
	_cleanup_free_ char *comm = NULL;

	if (read_proc(pid, "comm", &comm) < 0)
		str_copy(ret, PROCESS_NAME_SIZE, "-");
	else
		str_copy(ret, PROCESS_NAME_SIZE, str_trim(comm));
	str_make_printable(ret);
}

bool process_is(pid_t pid, uint64_t start_time)
{
	uint64_t now;

	return process_start_time(pid, &now) == 0 && (start_time == 0 || start_time == now);
}

int process_maps(pid_t pid, char **ret)
{
	return read_proc(pid, "maps", ret);
}

bool maps_have(const char *maps, dev_t dev, ino_t ino)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), " %02x:%02x %llu ", major(dev), minor(dev),
		 (unsigned long long)ino);
	return strstr(maps, wanted);
}

void user_name(uid_t uid, char ret[PROCESS_NAME_SIZE])
{
	struct passwd *pw = getpwuid(uid);

	if (pw)
		str_copy(ret, PROCESS_NAME_SIZE, pw->pw_name);
	else
		snprintf(ret, PROCESS_NAME_SIZE, "%u", uid);
}

int user_id(const char *name, uid_t *ret)
{
	struct passwd *pw;
	uint64_t number;

	if (str_parse_u64(name, &number) == 0 && number < (uid_t)-1) {
		*ret = number;
		return 0;
	}
	pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	*ret = pw->pw_uid;
	return 0;
}

bool group_has(const char *group, uid_t uid)
{
	struct passwd *pw = getpwuid(uid);
	struct group *gr;
	uint64_t number;
	char **member;

	gr = str_parse_u64(group, &number) == 0 ? getgrgid(number) : getgrnam(group);
	if (!gr || !pw)
		return false;
	if (pw->pw_gid == gr->gr_gid)
		return true;
	for (member = gr->gr_mem; *member; member++) {
		if (str_eq(*member, pw->pw_name))
			return true;
	}
	return false;
}
