/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a host share about its devices: who uses how much memory and how
 * much time.
 *
 * There is one file per device. It holds a slot per process; the memory that is in use is
 * the sum over the slots of living processes, so whatever instruction a process is killed
 * at, what it held is free and nothing has to be repaired. That a slot's owner lives is
 * told by a robust futex word, which the kernel marks when the process dies; reading it
 * takes no lock, and no process ever waits for another.
 *
 * A process is on the books from state_attach() on. Opening alone, as monitors do, leaves
 * no trace. After fork() the child has nothing: every call answers STATE_E_FORKED and the
 * child opens the state anew (whether the driver lets it is the driver's affair).
 */
#ifndef SOFTGPU_STATE_STATE_H
#define SOFTGPU_STATE_STATE_H

#include "softgpu/state/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct state;

/* Answers, beside 0 and negative errno. */
enum {
	STATE_E_FULL = 1, /* does not fit into the device, or into a limit of the caller's cgroup */
	STATE_E_FORKED,	  /* opened by the parent process */
	STATE_E_FOREIGN,  /* the file is none of ours, damaged, or of another version */
	STATE_E_BUSY,	  /* no slot is left (STATE_SLOTS_MAX processes use the device) */
};

#define STATE_SLOTS_MAX	  1024
#define STATE_CLIENTS_MAX 1024
#define STATE_LIMITS_MAX  64

enum state_open_flags {
	/*
	 * For programs that run work: where nobody uses a device, it becomes what @config says.
	 * Without it, a device that is already there is taken as it is.
	 */
	STATE_CONFIGURE = 1 << 0,
};

/**
 * state_open() - map the files of all devices, making those that are missing
 * @config:	what the devices are like; not needed afterwards
 * @flags:	enum state_open_flags
 * @ret:	the state
 *
 * Return: 0; STATE_E_FOREIGN with the file named on standard error if config->log. Faults
 * are negative: -ENOSPC if there is no room for the files, -EACCES.
 */
int state_open(const struct softgpu_config *config, unsigned flags, struct state **ret);

/**
 * state_close() - unmap; accepts NULL
 *
 * What the process held is free, as if it had ended.
 */
void state_close(struct state *state);

/**
 * state_attach() - put this process on the books of every device
 *
 * Starts the thread whose death tells others of this process's. Further calls do nothing.
 *
 * Return: 0, STATE_E_BUSY, STATE_E_FORKED, or negative errno.
 */
int state_attach(struct state *state);

/** state_is_forked() - true in a child of the process that opened it */
bool state_is_forked(const struct state *state);

/** state_n_devices() - as the files say, which may differ from the configuration */
unsigned state_n_devices(const struct state *state);

/**
 * state_device() - what a device is like
 *
 * Filled in place of the configuration's where the device was there already.
 */
void state_device(const struct state *state, unsigned dev, struct softgpu_device_config *ret);

/**
 * state_charge() - take device memory
 *
 * The process must be attached. Check and taking are one step: the sum of all never
 * exceeds the device, and a request that fits is never refused because of others that do
 * not.
 *
 * Return: 0, STATE_E_FULL or STATE_E_FORKED.
 */
int state_charge(struct state *state, unsigned dev, uint64_t bytes);

/**
 * state_inherit() - be charged for memory that was another process', which has ended
 *
 * It is there already: neither a limit of a cgroup nor a full device refuses it, and whoever is beyond
 * either then gets nothing more.
 *
 * Return: as state_charge(), STATE_E_FULL for a size that no device has.
 */
int state_inherit(struct state *state, unsigned dev, uint64_t bytes);

/** state_uncharge() - give back what was charged; nothing happens in a forked child */
void state_uncharge(struct state *state, unsigned dev, uint64_t bytes);

/**
 * state_context_add() - count the contexts of this process on a device
 *
 * A process is one that computes on the device while it has a context or memory there.
 */
void state_context_add(struct state *state, unsigned dev, int n);

/* Memory of a device, or of the part that a cgroup's hard limit leaves of it. */
struct state_memory {
	uint64_t total_bytes;
	uint64_t used_bytes;
	uint64_t free_bytes;
};

/** state_memory() - the device as this process sees it: cut to the limits of its cgroup */
void state_memory(struct state *state, unsigned dev, struct state_memory *ret);

/** state_memory_device() - the whole device */
void state_memory_device(const struct state *state, unsigned dev, struct state_memory *ret);

/**
 * state_look() - for a monitor that is about to read what all processes have of a device
 *
 * Each has its line in the file of each device. Monitors read one file after the other and then do nothing for
 * a second: of the one before, nothing stays mapped.
 */
void state_look(struct state *state, unsigned dev);

struct state_process {
	pid_t pid; /* as numbered in the first pid namespace of the host, if known */
	uint64_t used_bytes;
	uint64_t busy_ns;    /* device time since it attached */
	unsigned n_contexts; /* on this device; 0: it only opened the driver */
	unsigned percent;    /* of device time in the last sample period */
	uint64_t sample_us;  /* end of that period, wall clock */
};

/**
 * state_processes() - the processes on the books of a device
 * @ret:	room for @n_max
 *
 * Return: how many there are, at most @n_max of them stored.
 */
size_t state_processes(struct state *state, unsigned dev, struct state_process *ret, size_t n_max);

/** state_computing() - the same of those that compute there: they have a context, or memory that outlived it */
size_t state_computing(struct state *state, unsigned dev, struct state_process *ret, size_t n_max);

/* A sample period of the whole device. */
struct state_sample {
	uint64_t end_us; /* wall clock */
	unsigned percent;
};

/**
 * state_samples() - utilisation of the device, oldest first
 * @ret:	room for @n_max
 *
 * Only periods that are over. Return: how many were stored.
 */
size_t state_samples(struct state *state, unsigned dev, struct state_sample *ret, size_t n_max);

/** state_sample_period_ns() - how long each of them is */
uint64_t state_sample_period_ns(const struct state *state, unsigned dev);

/** state_busy_ns() - device time that all processes ever used */
uint64_t state_busy_ns(struct state *state, unsigned dev);

/**
 * state_fault_add() - a kernel of this process has failed on the device
 * @xid:	what a driver would call it in its log
 *
 * Monitors that wait for it are woken.
 */
void state_fault_add(struct state *state, unsigned dev, uint32_t xid);

/**
 * state_fault_last() - the last failure of a kernel
 * @ret_xid:	not written if there was none; may be NULL
 *
 * Return: how many there were since the state was made.
 */
uint64_t state_fault_last(const struct state *state, unsigned dev, uint32_t *ret_xid);

/** state_fault_wait() - sleep while there were @n failures, at most @ns; may return early */
void state_fault_wait(const struct state *state, unsigned dev, uint64_t n, uint64_t ns);

/*
 * Limits of a cgroup, as a driver's: the hard one is kept by state_charge(), the soft one is
 * only remembered. No limit: soft 0 and hard UINT64_MAX. They go with their cgroup.
 */
struct state_limit {
	uint64_t soft_bytes;
	uint64_t hard_bytes;
	uint64_t used_bytes;
};

/**
 * state_limit_set() - limit the processes in and under a cgroup
 * @path:	full path of its directory in a cgroup v2 file system
 *
 * Return: 0; -ENOENT, -ENOTDIR; -EINVAL if it is no cgroup v2 directory or soft is above hard;
 * STATE_E_BUSY if STATE_LIMITS_MAX cgroups have limits, or if somebody who sets another one
 * does not come to an end.
 */
int state_limit_set(struct state *state, unsigned dev, const char *path, uint64_t soft_bytes,
		    uint64_t hard_bytes);

/** state_limit_get() - what was set, or that there is no limit; returns as state_limit_set() */
int state_limit_get(struct state *state, unsigned dev, const char *path, struct state_limit *ret);

#endif
