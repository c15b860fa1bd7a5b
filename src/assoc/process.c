/* SPDX-License-Identifier: Apache-2.0 */
#include "assoc/assoc.h"

#include "base/file.h"
#include "base/str.h"
#include "base/userns.h"

#include <errno.h>

/* A path of 4 KiB for each of some dozen hierarchies. */
#define MAX_CGROUP_FILE (256 << 10)

static int read_file(int proc_fd, pid_t pid, const char *file, char **ret, size_t *ret_len)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%d/%s", pid, file);
	r = file_read_at(proc_fd, path, MAX_CGROUP_FILE, ret, ret_len);
	return r == -ENOENT || r == -ESRCH ? ASSOC_E_GONE : r;
}

/* "PID (NAME) S ...": the name may hold blanks and brackets, so count behind its last. */
static int read_stat(int proc_fd, pid_t pid, uint64_t *ret_start, char name[16])
{
	_cleanup_free_ char *stat = NULL;
	const char *open, *close, *p;
	int field, r;

	r = read_file(proc_fd, pid, "stat", &stat, NULL);
	if (r != 0)
		return r;
	open = strchr(stat, '(');
	close = strrchr(stat, ')');
	if (!open || !close || close < open)
		return -EBADMSG;
	for (p = close, field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -EBADMSG;
	*ret_start = strtoull(p, NULL, 10);
	snprintf(name, 16, "%.*s", (int)MIN(close - open - 1, (ptrdiff_t)15), open + 1);
	str_make_printable(name);
	return 0;
}

static int read_uid(int proc_fd, pid_t pid, uid_t *ret)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	int r;

	r = read_file(proc_fd, pid, "status", &status, NULL);
	if (r != 0)
		return r;
	line = strstr(status, "\nUid:");
	if (!line)
		return -EBADMSG;
	*ret = userns_user(proc_fd, pid, strtoul(line + strlen("\nUid:"), NULL, 10));
	return 0;
}

int assoc_of_pid(int proc_fd, pid_t pid, struct assoc_process *ret)
{
	_cleanup_(assoc_process_done) struct assoc_process p = { .pid = pid };
	_cleanup_free_ char *cgroup = NULL;
	uint64_t start_after;
	char name_after[16];
	size_t len = 0;
	int r;

	r = read_stat(proc_fd, pid, &p.start_time, p.name);
	if (r == 0)
		r = read_uid(proc_fd, pid, &p.uid);
	if (r == 0)
		r = read_file(proc_fd, pid, "cgroup", &cgroup, &len);
	if (r == 0)
		r = assoc_parse(cgroup, len, &p.place);
	if (r == 0)
		r = read_stat(proc_fd, pid, &start_after, name_after);
	if (r != 0)
		return r;
	if (start_after != p.start_time)
		return ASSOC_E_GONE;
	*ret = p;
	memset(&p, 0, sizeof(p));
	return 0;
}

pid_t assoc_process_of(int proc_fd, pid_t id)
{
	_cleanup_free_ char *status = NULL;
	const char *line;

	if (read_file(proc_fd, id, "status", &status, NULL) != 0)
		return 0;
	line = strstr(status, "\nTgid:");
	return line ? strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

/* More generations than any shell's; a number that is used again makes no endless walk. */
#define MAX_GENERATIONS 64

static pid_t parent_of(int proc_fd, pid_t pid)
{
	_cleanup_free_ char *stat = NULL;
	const char *close;
	int parent;

	if (read_file(proc_fd, pid, "stat", &stat, NULL) != 0)
		return 0;
	close = strrchr(stat, ')');
	return close && sscanf(close, ") %*c %d", &parent) == 1 ? parent : 0;
}

bool assoc_descends(int proc_fd, pid_t pid, pid_t of)
{
	int i;

	for (i = 0; i < MAX_GENERATIONS && pid > 1; i++) {
		if (pid == of)
			return true;
		pid = parent_of(proc_fd, pid);
	}
	return false;
}

void assoc_process_done(struct assoc_process *process)
{
	assoc_place_done(&process->place);
}
