/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a process is: its cgroups, and the container, pod, batch job or virtual machine
 * that these tell of.
 *
 * Names are taken from cgroup paths alone, from the root down: what lies nearer to the
 * root was made by somebody mightier, so the first container on the way is the one, and
 * a batch job is believed only where nobody but root can make it. Whom to charge is
 * never decided by such a name; it is for people and for engines that ask by it.
 */
#ifndef ASSOC_ASSOC_H
#define ASSOC_ASSOC_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

/* 64 hexadecimal digits mostly; runc and crun take any name. */
#define ASSOC_NAME_SIZE 129

/* Answer: there is no such process any more, or another one has its number by now. */
#define ASSOC_E_GONE 1

enum assoc_runtime {
	ASSOC_NO_CONTAINER,
	ASSOC_PODMAN,
	ASSOC_DOCKER,
	ASSOC_CONTAINERD,
	ASSOC_CRIO,
	ASSOC_RUNC,
	ASSOC_CRUN,
	ASSOC_OCI, /* one of them: the path tells no more than an id */
	N_ASSOC_RUNTIMES,
};

/**
 * struct assoc_place - where a process is
 * @cgroup:	its path in the v2 hierarchy; NULL on a host without one
 * @freezer:	its path in the v1 freezer hierarchy; NULL where there is none
 * @container:	its id; "" for none
 * @pod:	the kubelet's uid of its pod; "" for none
 * @job:	of Slurm; 0 for none
 * @step:	"0", "batch", "extern"; "" for none
 * @vm:		a virtual machine's name as libvirt has it; "" for none
 */
struct assoc_place {
	char *cgroup;
	char *freezer;
	enum assoc_runtime runtime;
	char container[ASSOC_NAME_SIZE];
	char pod[40];
	uint32_t job;
	char step[16];
	char vm[64];
};

/**
 * assoc_parse() - read the bytes of /proc/PID/cgroup
 * @ret:	released with assoc_place_done(); untouched on failure
 *
 * Return: 0, -EBADMSG or -ENOMEM.
 */
int assoc_parse(const char *bytes, size_t len, struct assoc_place *ret);

/**
 * struct assoc_process - a process that keeps its meaning when its number is used again
 */
struct assoc_process {
	pid_t pid;
	uint64_t start_time;
	uid_t uid;
	char name[16];
	struct assoc_place place;
};

/**
 * assoc_of_pid() - look at a process
 * @proc_fd:	/proc, or a fixture of a test
 * @ret:	released with assoc_process_done(); untouched on failure
 *
 * All of it is read between two reads of the start time, so that it is of one process.
 *
 * Return: 0, ASSOC_E_GONE, or a fault.
 */
int assoc_of_pid(int proc_fd, pid_t pid, struct assoc_process *ret);

/**
 * assoc_process_of() - whose thread is it?
 * @id:	of a process, or of any of its threads
 *
 * Return: the process, or 0 if there is none any more.
 */
pid_t assoc_process_of(int proc_fd, pid_t id);

/**
 * assoc_descends() - is a process another one, or was it started by it or by who it started?
 *
 * Asks of each parent in turn; whose parent has died descends from nobody of ours.
 */
bool assoc_descends(int proc_fd, pid_t pid, pid_t of);

/**
 * assoc_runtime_name() - "podman"
 */
const char *assoc_runtime_name(enum assoc_runtime runtime);

void assoc_place_done(struct assoc_place *place);
void assoc_process_done(struct assoc_process *process);

#endif
