/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of Slurm's jobs that are tenants here, with nobody's help but the kernel's.
 *
 * cotenantd may stand still just then, and Slurm is not heard. So nothing is known but what /proc says of each
 * process: which cgroups it is in. Those of Slurm's jobs, and of tenants, only root makes, so nobody can put a
 * process of his into another one's job, nor take it out of his own:
 *
 *	freezer:/slurm_n1/uid_0/job_7/step_0  0::/cotenant-job-7-4711	job 7 of the node n1
 *	0::/system.slice/n1_slurmstepd.scope/job_7/step_0/user/task_0	the same where cgroup v2 is alone
 *
 * Slurm's own keepers of a job are in neither. Nothing here waits for a disk, another program or the network.
 */
#ifndef CLUSTER_JOBS_H
#define CLUSTER_JOBS_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

#define JOBS_TOLD 64

/**
 * struct jobs - where they are looked for
 * @proc_fd:	/proc, or a fixture of a test
 * @unified:	where cgroup v2 is mounted, "" where it is not
 * @freezer:	where the v1 freezers are, likewise
 */
struct jobs {
	int proc_fd;
	char *unified;
	char *freezer;
};

/**
 * struct jobs_order - which are to end
 * @node:	as Slurm calls it: the machine may be another one as well
 * @kept:	the jobs that are not to end: "3 7"
 */
struct jobs_order {
	const char *node;
	const char *kept;
	bool is_kill;
};

/**
 * struct jobs_told - who was told to end
 * @n_processes:	those that lived, of all jobs
 * @jobs:	the first so many jobs that they are of
 */
struct jobs_told {
	size_t n_processes;
	uint32_t jobs[JOBS_TOLD];
	size_t n_jobs;
};

/**
 * jobs_open() - find out where to look
 *
 * Return: 0, or what the kernel said.
 */
int jobs_open(struct jobs *ret);

void jobs_done(struct jobs *jobs);

/**
 * jobs_of_process() - which job of the node, by the bytes of /proc/PID/cgroup
 *
 * Return: its number, 0 for none.
 */
uint32_t jobs_of_process(const char *cgroups, size_t len, const char *node);

/**
 * jobs_end() - send SIGTERM, or SIGKILL, to each process of theirs, and let go who is stopped or frozen
 *
 * Whoever has been told, and is there still, is told again by the next call: none of them is left when a
 * later call finds none.
 *
 * Return: 0, or the first fault; the others were told all the same.
 */
int jobs_end(const struct jobs *jobs, const struct jobs_order *order, struct jobs_told *ret);

#endif
