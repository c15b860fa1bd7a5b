/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/target.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "daemon/cgroup.h"
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* --- whom --- */

int target_set_cgroup(struct target *target, const char *path)
{
	_cleanup_free_ char *own = NULL;
	uint64_t id;
	int r;

	r = cgroup_id(path, &id);
	if (r < 0)
		return r;
	r = cgroup_of_pid(getpid(), &own);
	if (r < 0)
		return r;
	if (cgroup_is_inside(own, path))
		return -EBUSY;
	target->cgroup = strdup(path);
	return target->cgroup ? 0 : -ENOMEM;
}

int target_add(struct target *target, pid_t pid, uint64_t start_time, const char *cgroup,
	       const char *freezer)
{
	struct target_process *p;

	if (pid == getpid() || pid <= 1)
		return -EBUSY;
	if (target->cgroup && cgroup && cgroup_is_inside(cgroup, target->cgroup))
		return 0;
	p = reallocarray(target->processes, target->n_processes + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	target->processes = p;
	p += target->n_processes;
	*p = (struct target_process){ .pid = pid, .start_time = start_time };
	p->pidfd = fd_of_process(pid);
	if (p->pidfd < 0)
		return p->pidfd == -ESRCH ? 0 : p->pidfd;
	/* Opened first, compared then: the descriptor is of the process that was meant. */
	if (!process_is(pid, start_time)) {
		close(p->pidfd);
		return 0;
	}
	if (freezer && !str_eq(freezer, "/")) {
		p->freezer = strdup(freezer);
		if (!p->freezer) {
			close(p->pidfd);
			return -ENOMEM;
		}
	}
	target->n_processes++;
	return 0;
}

void target_done(struct target *target)
{
	size_t i;

	for (i = 0; i < target->n_processes; i++) {
		close(target->processes[i].pidfd);
		free(target->processes[i].freezer);
	}
	free(target->processes);
	free(target->cgroup);
	memset(target, 0, sizeof(*target));
}

/* --- stopping and letting go --- */

static int write_v2(const char *path, const char *knob, const char *value)
{
	_cleanup_free_ char *dir = NULL, *file = NULL;
	int r;

	r = cgroup_dir(path, &dir);
	if (r < 0)
		return r;
	file = str_format("%s/%s", dir, knob);
	return file ? file_write_at(AT_FDCWD, file, value) : -ENOMEM;
}

static int write_freezer(const char *path, const char *state)
{
	_cleanup_free_ char *mount = NULL, *file = NULL;
	int r;

	r = cgroup_v1_mount("freezer", &mount);
	if (r < 0)
		return r;
	file = str_format("%s%s/freezer.state", mount, path);
	return file ? file_write_at(AT_FDCWD, file, state) : -ENOMEM;
}

static bool freezer_is_frozen(const char *path)
{
	_cleanup_free_ char *mount = NULL, *file = NULL, *state = NULL;

	if (cgroup_v1_mount("freezer", &mount) < 0)
		return false;
	file = str_format("%s%s/freezer.state", mount, path);
	if (!file || file_read_at(AT_FDCWD, file, 64, &state, NULL) < 0)
		return false;
	/* A v1 freezer that met a task on its way out has to be told again. */
	if (strstr(state, "FREEZING"))
		write_freezer(path, "FROZEN");
	return strstr(state, "FROZEN");
}

static bool cgroup_is_frozen(const char *path)
{
	_cleanup_free_ char *dir = NULL, *file = NULL, *events = NULL;

	if (cgroup_dir(path, &dir) < 0)
		return false;
	file = str_format("%s/cgroup.events", dir);
	return file && file_read_at(AT_FDCWD, file, 4096, &events, NULL) == 0 &&
	       strstr(events, "frozen 1");
}

static int freeze_process(const struct target_process *p, struct text *record)
{
	int r;

	if (p->freezer) {
		/* Of several in one container the first has stopped it. */
		r = write_freezer(p->freezer, "FROZEN");
		if (r == 0) {
			text_addf(record, "freezer %s\n", p->freezer);
			return 0;
		}
	}
	if (syscall(SYS_pidfd_send_signal, p->pidfd, SIGSTOP, NULL, 0) < 0)
		return errno == ESRCH ? 0 : -errno;
	text_addf(record, "process %d@%" PRIu64 "\n", p->pid, p->start_time);
	return 0;
}

int target_freeze(const struct target *target, char **ret_record)
{
	struct text record = {};
	int r = 0, r2;
	size_t i;

	if (target->cgroup) {
		r = write_v2(target->cgroup, "cgroup.freeze", "1");
		if (r == 0)
			text_addf(&record, "cgroup %s\n", target->cgroup);
	}
	for (i = 0; i < target->n_processes; i++) {
		r2 = freeze_process(&target->processes[i], &record);
		if (r == 0)
			r = r2;
	}
	*ret_record = text_take(&record);
	return *ret_record ? r : -ENOMEM;
}

/* The state of a process is the field behind its name. */
static bool process_is_stopped(pid_t pid)
{
	_cleanup_free_ char *stat = NULL;
	char path[64];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read_at(AT_FDCWD, path, 4096, &stat, NULL) < 0)
		return true;
	p = strrchr(stat, ')');
	return !p || strlen(p) < 3 || strchr("TtZX", p[2]);
}

/* Calls a function for each line of a record; stops when one answers false. */
struct record_fns {
	bool (*cgroup)(const char *path);
	bool (*freezer)(const char *path);
	bool (*process)(pid_t pid, uint64_t start_time);
};

static bool each_line(const char *record, const struct record_fns *fns)
{
	_cleanup_free_ char *copy = strdup(record);
	char *line, *state = NULL;
	const char *rest;
	uint64_t start;
	bool good = copy;
	int pid;

	for (line = strtok_r(copy, "\n", &state); line && good;
	     line = strtok_r(NULL, "\n", &state)) {
		if ((rest = str_after(line, "cgroup ")))
			good = fns->cgroup(rest);
		else if ((rest = str_after(line, "freezer ")))
			good = fns->freezer(rest);
		else if (sscanf(line, "process %d@%" SCNu64, &pid, &start) == 2)
			good = fns->process(pid, start);
	}
	return good;
}

static bool is_stopped(pid_t pid, uint64_t start_time)
{
	return !process_is(pid, start_time) || process_is_stopped(pid);
}

bool target_is_frozen(const char *record)
{
	static const struct record_fns fns = { cgroup_is_frozen, freezer_is_frozen, is_stopped };

	return each_line(record, &fns);
}

static bool thaw_cgroup(const char *path)
{
	write_v2(path, "cgroup.freeze", "0");
	return true;
}

static bool thaw_freezer(const char *path)
{
	write_freezer(path, "THAWED");
	return true;
}

static bool thaw_process(pid_t pid, uint64_t start_time)
{
	_cleanup_close_ int pidfd = fd_of_process(pid);

	if (pidfd >= 0 && process_is(pid, start_time))
		syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
	return true;
}

void target_thaw(const char *record)
{
	static const struct record_fns fns = { thaw_cgroup, thaw_freezer, thaw_process };

	each_line(record, &fns);
}

/* --- signals --- */

/*
 * A number read from cgroup.procs may be another process' by the time it is used: only
 * one that is in the cgroup while its descriptor is open is meant.
 */
static void signal_member(const char *cgroup, pid_t pid, int signal)
{
	_cleanup_close_ int pidfd = fd_of_process(pid);
	_cleanup_free_ char *path = NULL;

	if (pidfd >= 0 && cgroup_of_pid(pid, &path) == 0 && cgroup_is_inside(path, cgroup))
		syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

struct counting {
	const char *cgroup;
	int signal;
	size_t n;
};

static void each_member(pid_t pid, void *userdata)
{
	struct counting *c = userdata;

	c->n++;
	if (c->signal)
		signal_member(c->cgroup, pid, c->signal);
}

void target_signal(const struct target *target, int signal)
{
	struct counting c = { target->cgroup, signal, 0 };
	size_t i;

	/* The kernel's own way misses none that forks meanwhile. */
	if (target->cgroup &&
	    (signal != SIGKILL || write_v2(target->cgroup, "cgroup.kill", "1") < 0))
		cgroup_each_pid(target->cgroup, each_member, &c);
	for (i = 0; i < target->n_processes; i++)
		syscall(SYS_pidfd_send_signal, target->processes[i].pidfd, signal, NULL, 0);
}

static bool has_ended(const struct target_process *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

size_t target_n_left(const struct target *target)
{
	struct counting c = { target->cgroup, 0, 0 };
	size_t i;

	if (target->cgroup)
		cgroup_each_pid(target->cgroup, each_member, &c);
	/* Below where nobody looks is somebody, too. */
	if (target->cgroup && c.n == 0)
		c.n = cgroup_is_populated(target->cgroup);
	for (i = 0; i < target->n_processes; i++)
		c.n += !has_ended(&target->processes[i]);
	return c.n;
}
