/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose processes are on whole hosts: one with cgroup v1 alone, one with v2 alone, one with
 * both, each as the kernel shows it in /proc.
 */
#include "assoc/assoc.h"

#include "base/check.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#include <fcntl.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* All hierarchies of a distribution whose systemd mounts v1, in the order of their numbers. */
#define V1(path, user_path)                                                                        \
	"13:rdma:/\n12:pids:" user_path "\n11:hugetlb:" path "\n10:net_cls,net_prio:" path         \
	"\n9:cpuset:" path "\n8:perf_event:" path "\n7:memory:" user_path "\n6:blkio:" path        \
	"\n5:freezer:" path "\n4:cpu,cpuacct:" user_path "\n3:misc:/\n2:devices:" user_path        \
	"\n1:name=systemd:" user_path "\n"

struct host_process {
	int pid;
	int parent;
	const char *cgroup;
	/* what is to be found out */
	const char *v2;
	const char *freezer;
	enum assoc_runtime runtime;
	const char *container;
	uint32_t job;
};

static const struct host {
	const char *name;
	struct host_process processes[6];
} hosts[] = {
	{ "v1 alone",
	  { { 1, 0, V1("/", "/init.scope"), NULL, "/", 0, "", 0 },
	    { 400, 1, V1("/", "/user.slice/user-1000.slice/session-2.scope"), NULL, "/", 0, "", 0 },
	    { 500, 1, V1("/system.slice/containerd.service", "/system.slice/containerd.service"),
	      NULL, "/system.slice/containerd.service", 0, "", 0 },
	    { 510, 500, V1("/docker/" ID, "/docker/" ID), NULL, "/docker/" ID, ASSOC_DOCKER, ID,
	      0 },
	    { 511, 510, V1("/docker/" ID, "/docker/" ID), NULL, "/docker/" ID, ASSOC_DOCKER, ID,
	      0 },
	    { 600, 1, V1("/slurm/uid_1000/job_42/step_0", "/slurm/uid_1000/job_42/step_0"), NULL,
	      "/slurm/uid_1000/job_42/step_0", 0, "", 42 } } },
	{ "v2 alone",
	  { { 1, 0, "0::/init.scope\n", "/init.scope", NULL, 0, "", 0 },
	    { 400, 1, "0::/user.slice/user-1000.slice/session-2.scope\n",
	      "/user.slice/user-1000.slice/session-2.scope", NULL, 0, "", 0 },
	    { 500, 1, "0::/system.slice/containerd.service\n", "/system.slice/containerd.service",
	      NULL, 0, "", 0 },
	    { 510, 500, "0::/system.slice/docker-" ID ".scope\n",
	      "/system.slice/docker-" ID ".scope", NULL, ASSOC_DOCKER, ID, 0 },
	    { 511, 510, "0::/system.slice/docker-" ID ".scope/inner\n",
	      "/system.slice/docker-" ID ".scope/inner", NULL, ASSOC_DOCKER, ID, 0 },
	    { 600, 1, "0::/system.slice/n1_slurmstepd.scope/job_42/step_0/user/task_0\n",
	      "/system.slice/n1_slurmstepd.scope/job_42/step_0/user/task_0", NULL, 0, "", 42 } } },
	{ "both",
	  { { 1, 0, V1("/", "/init.scope") "0::/init.scope\n", "/init.scope", "/", 0, "", 0 },
	    { 400, 1,
	      V1("/",
		 "/user.slice/user-1000.slice/session-2.scope") "0::/user.slice/user-1000.slice/session-2.scope\n",
	      "/user.slice/user-1000.slice/session-2.scope", "/", 0, "", 0 },
	    { 500, 1,
	      V1("/", "/system.slice/containerd.service") "0::/system.slice/containerd.service\n",
	      "/system.slice/containerd.service", "/", 0, "", 0 },
	    { 510, 500, V1("/docker/" ID, "/docker/" ID) "0::/system.slice/containerd.service\n",
	      "/system.slice/containerd.service", "/docker/" ID, ASSOC_DOCKER, ID, 0 },
	    { 511, 510, V1("/docker/" ID, "/docker/" ID) "0::/docker/" ID "\n", "/docker/" ID,
	      "/docker/" ID, ASSOC_DOCKER, ID, 0 },
	    { 600, 1,
	      V1("/slurm_n1/uid_1000/job_42/step_0", "/slurm_n1/uid_1000/job_42/step_0") "0::/\n",
	      "/", "/slurm_n1/uid_1000/job_42/step_0", 0, "", 42 } } },
};

static void write_file(const char *dir, int pid, const char *name, const char *text)
{
	_cleanup_free_ char *path = str_format("%s/%d/%s", dir, pid, name);

	if (!path || file_replace(path, text, strlen(text), 0644) < 0)
		printf("cannot write %s/%d/%s\n", dir, pid, name);
}

static void write_process(const char *dir, const struct host_process *p)
{
	_cleanup_free_ char *folder = str_format("%s/%d", dir, p->pid);
	_cleanup_free_ char *stat = NULL, *status = NULL;

	stat = str_format("%d (a program) S %d 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n",
			  p->pid, p->parent, 7000 + p->pid);
	status = str_format("Name:\ta program\nPid:\t%d\nPPid:\t%d\nUid:\t1000\t1000\t1000\t1000\n",
			    p->pid, p->parent);
	if (!folder || !stat || !status || fd_mkdir_parents(folder, 0755) < 0)
		return;
	write_file(dir, p->pid, "stat", stat);
	write_file(dir, p->pid, "status", status);
	write_file(dir, p->pid, "cgroup", p->cgroup);
}

static bool is_text(const char *found, const char *wanted)
{
	return found && wanted ? str_eq(found, wanted) : found == wanted;
}

static void check_process(int proc, const struct host *host, const struct host_process *p)
{
	_cleanup_(assoc_process_done) struct assoc_process found = {};

	if (!check(assoc_of_pid(proc, p->pid, &found) == 0, "%s: process %d is read", host->name,
		   p->pid))
		return;
	check(is_text(found.place.cgroup, p->v2) && is_text(found.place.freezer, p->freezer),
	      "%s: process %d is where it is", host->name, p->pid);
	check(found.place.runtime == p->runtime && str_eq(found.place.container, p->container) &&
		      found.place.job == p->job,
	      "%s: process %d is in its container and its job", host->name, p->pid);
	check(found.uid == 1000 && found.start_time == (uint64_t)7000 + p->pid &&
		      found.pid == p->pid,
	      "%s: process %d is somebody's", host->name, p->pid);
}

static void test_host(const char *base, const struct host *host)
{
	_cleanup_free_ char *dir = str_format("%s/%s", base, host->name);
	_cleanup_close_ int proc = -1;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(host->processes); i++)
		write_process(dir, &host->processes[i]);
	proc = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < ARRAY_SIZE(host->processes); i++)
		check_process(proc, host, &host->processes[i]);
	check(assoc_descends(proc, 511, 500) && assoc_descends(proc, 511, 510) &&
		      !assoc_descends(proc, 511, 400) && !assoc_descends(proc, 400, 511),
	      "%s: who started whom", host->name);
}

int main(void)
{
	char dir[] = "/tmp/test-hosts-XXXXXX";
	_cleanup_free_ char *command = NULL;
	size_t i;

	if (!mkdtemp(dir))
		return 1;
	for (i = 0; i < ARRAY_SIZE(hosts); i++)
		test_host(dir, &hosts[i]);
	command = str_format("rm -rf '%s'", dir);
	if (!command || system(command) != 0)
		printf("cannot remove %s\n", dir);
	return check_result();
}
