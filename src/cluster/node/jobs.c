/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/jobs.h"

#include "assoc/assoc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mounts.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>

/* A path of 4 KiB for each of some dozen hierarchies. */
#define CGROUPS_BYTES (256 << 10)

int jobs_open(struct jobs *ret)
{
	struct jobs jobs = { .proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

	if (jobs.proc_fd < 0)
		return -errno;
	if (mounts_find_cgroup(NULL, &jobs.unified) < 0)
		jobs.unified = strdup("");
	if (mounts_find_cgroup("freezer", &jobs.freezer) < 0)
		jobs.freezer = strdup("");
	if (!jobs.unified || !jobs.freezer) {
		jobs_done(&jobs);
		return -ENOMEM;
	}
	*ret = jobs;
	return 0;
}

void jobs_done(struct jobs *jobs)
{
	close(jobs->proc_fd);
	free(jobs->unified);
	free(jobs->freezer);
}

/* --- whose a process is --- */

/* "/slurm_n1/uid_0/..." is of n1; where Slurm has one node for each machine it may say "/slurm/uid_0/..." */
static bool is_freezer_of(const char *path, const char *node)
{
	const char *rest = path ? str_after(path, "/slurm") : NULL, *name;

	name = rest ? str_after(rest, "_") : NULL;
	if (!name)
		return rest && *rest == '/';
	rest = str_after(name, node);
	return rest && *rest == '/';
}

/* "/system.slice/n1_slurmstepd.scope/...", or without the name, likewise */
static bool is_scope_of(const char *path, const char *node)
{
	const char *rest = path ? str_after(path, "/system.slice/") : NULL, *name;

	if (!rest || str_after(rest, "slurmstepd.scope/"))
		return rest;
	name = str_after(rest, node);
	return name && str_after(name, "_slurmstepd.scope/");
}

/* The folder of a tenant that was made for the job; whatever is below is the job's as well. NULL if there is none. */
static const char *own_folder(const char *path, uint32_t job)
{
	char part[40];

	snprintf(part, sizeof(part), "/cotenant-job-%" PRIu32 "-", job);
	return path ? strstr(path, part) : NULL;
}

/* Where Slurm's folder is the tenant's, what runs for the user is in "user" of a step. */
static const char *user_folder(const char *path)
{
	return path ? strstr(path, "/user/") : NULL;
}

static const char *job_folder(const char *path)
{
	return path ? strstr(path, "/job_") : NULL;
}

static uint32_t job_of(const struct assoc_place *place, const char *node)
{
	bool is_own = is_freezer_of(place->freezer, node) && own_folder(place->cgroup, place->job);
	bool is_slurms = is_scope_of(place->cgroup, node) && user_folder(place->cgroup);

	return is_own || is_slurms ? place->job : 0;
}

uint32_t jobs_of_process(const char *cgroups, size_t len, const char *node)
{
	_cleanup_(assoc_place_done) struct assoc_place place = {};

	return assoc_parse(cgroups, len, &place) == 0 ? job_of(&place, node) : 0;
}

static bool is_kept(const char *kept, uint32_t job)
{
	char number[16];
	size_t len;

	len = snprintf(number, sizeof(number), "%" PRIu32, job);
	for (; *kept; kept += strcspn(kept, " "), kept += strspn(kept, " ")) {
		if (strcspn(kept, " ") == len && strncmp(kept, number, len) == 0)
			return true;
	}
	return false;
}

/* --- one process --- */

/* @top: the slash in @path before the uppermost folder that is written to */
static void write_up(const char *mount, const char *path, const char *top, const char *knob,
		     const char *value)
{
	_cleanup_free_ char *part = strdup(path);
	char *slash;

	if (!part || !top || !*mount)
		return;
	for (; (slash = strrchr(part, '/')) && slash - part >= top - path; *slash = '\0') {
		_cleanup_free_ char *file = str_format("%s%s/%s", mount, part, knob);

		if (file)
			file_write_at(AT_FDCWD, file, value);
	}
}

/*
 * Whoever is frozen hears nothing, in a v1 freezer not even SIGKILL; it may be any folder between his and his
 * job's. The signal waits for him, so he does no more than end. What the kernel kills as a whole has nobody who
 * forks fast enough to get away.
 */
static void let_go(const struct jobs *jobs, const struct assoc_place *place, bool is_kill)
{
	const char *own = own_folder(place->cgroup, place->job);

	if (place->freezer)
		write_up(jobs->freezer, place->freezer, job_folder(place->freezer), "freezer.state",
			 "THAWED");
	if (place->cgroup && is_kill)
		write_up(jobs->unified, place->cgroup, own ? own : user_folder(place->cgroup),
			 "cgroup.kill", "1");
	else if (place->cgroup)
		write_up(jobs->unified, place->cgroup, own ? own : job_folder(place->cgroup),
			 "cgroup.freeze", "0");
}

/* Return: 1, 0 where it is gone, or is none of them, or a fault. */
static int read_place(const struct jobs *jobs, const struct jobs_order *order, const char *pid,
		      struct assoc_place *ret)
{
	_cleanup_free_ char *file = str_format("%s/cgroup", pid), *text = NULL;
	uint32_t job;
	size_t len;
	int r;

	r = file ? file_read_at(jobs->proc_fd, file, CGROUPS_BYTES, &text, &len) : -ENOMEM;
	if (r == 0)
		r = assoc_parse(text, len, ret);
	if (r < 0)
		return r == -ENOENT || r == -ESRCH ? 0 : r;
	job = job_of(ret, order->node);
	if (job && !is_kept(order->kept, job))
		return 1;
	assoc_place_done(ret);
	return 0;
}

/* One that has ended, and that nobody has buried yet, runs no more. */
static bool lives(const struct jobs *jobs, const char *pid)
{
	_cleanup_free_ char *file = str_format("%s/stat", pid), *stat = NULL;
	const char *end;

	if (!file || file_read_at(jobs->proc_fd, file, 4096, &stat, NULL) < 0)
		return false;
	end = strrchr(stat, ')');
	return !end || strlen(end) < 3 || !strchr("ZX", end[2]);
}

static void note(struct jobs_told *told, uint32_t job)
{
	size_t i;

	told->n_processes++;
	for (i = 0; i < told->n_jobs; i++) {
		if (told->jobs[i] == job)
			return;
	}
	if (told->n_jobs < JOBS_TOLD)
		told->jobs[told->n_jobs++] = job;
}

/* Its descriptor is opened first and its place read again: a number that is another process' by now harms nobody. */
static int end_process(const struct jobs *jobs, const struct jobs_order *order, const char *pid,
		       struct jobs_told *told)
{
	_cleanup_(assoc_place_done) struct assoc_place place = {};
	_cleanup_close_ int pidfd = fd_of_process(atoi(pid));
	int r;

	if (pidfd < 0)
		return pidfd == -ESRCH ? 0 : pidfd;
	r = read_place(jobs, order, pid, &place);
	if (r <= 0 || !lives(jobs, pid))
		return r < 0 ? r : 0;
	note(told, place.job);
	if (syscall(SYS_pidfd_send_signal, pidfd, order->is_kill ? SIGKILL : SIGTERM, NULL, 0) <
		    0 &&
	    errno != ESRCH)
		r = -errno;
	syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
	let_go(jobs, &place, order->is_kill);
	return r < 0 ? r : 0;
}

/* --- all of them --- */

/* Most are none of them, and need no descriptor. */
static int look_at(const struct jobs *jobs, const struct jobs_order *order, const char *pid,
		   struct jobs_told *told)
{
	_cleanup_(assoc_place_done) struct assoc_place place = {};
	int r = read_place(jobs, order, pid, &place);

	return r <= 0 ? r : end_process(jobs, order, pid, told);
}

int jobs_end(const struct jobs *jobs, const struct jobs_order *order, struct jobs_told *ret)
{
	int fd = openat(jobs->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0, r2;
	_cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct jobs_told told = {};
	struct dirent *entry;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((entry = readdir(d))) {
		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		r2 = look_at(jobs, order, entry->d_name, &told);
		if (r == 0)
			r = r2;
	}
	*ret = told;
	return r;
}
