/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files about launches share: launch-probes.c (who is probed), launch-cost.c (what launches
 * take), launch.c (who gets which part of a device).
 */
#ifndef AUDIT_LAUNCH_H
#define AUDIT_LAUNCH_H

#include "base/clock.h"
#include "priv.h"

#define LAUNCH_LINKS_MAX 8 /* copies of libcuda that are probed in one process */

/**
 * struct launch_link - the probes in one copy of libcuda
 * @fds:	one link; where the kernel has no links of many probes, one for each call
 */
struct launch_link {
	dev_t dev;
	ino_t ino;
	int *fds;
	size_t n_fds;
};

/**
 * struct probed - a process whose launches are probed
 * @process:	number of its record
 * @work:	number of its record of launches
 * @needed_ns:	when a limit last wanted it
 * @since_ns:	since when it has been probed
 * @started:	per device: its meter compares what was charged with what is measured
 * @sampled_ns:	per device: end of the last period
 * @kinds:	what is known of each kind of launch, as in its record
 * @quiet_ns:	per device: since when the driver has said nothing of it
 * @n_quiet:	launches of each kind up to then
 */
struct probed {
	pid_t pid;
	uint32_t serial;
	uint32_t process;
	uint32_t work;
	uint64_t needed_ns;
	struct launch_link links[LAUNCH_LINKS_MAX];
	size_t n_links;
	uint64_t since_ns;
	struct share_meter meters[LEDGER_DEVICES];
	bool started[LEDGER_DEVICES];
	uint64_t sampled_ns[LEDGER_DEVICES];
	struct share_learner learners[LEDGER_DEVICES];
	struct share_kind kinds[AUDIT_KERNELS];
	uint64_t quiet_ns[LEDGER_DEVICES];
	uint64_t n_quiet[AUDIT_KERNELS];
	struct probed *next;
};

/**
 * struct worker - a tenant on a device, lately
 * @active_ns:	when it was last seen at work
 * @used:	part of the device that it had in the last period
 * @n_throttled:	share.n_throttled when that was last looked at
 */
struct worker {
	uint64_t active_ns;
	double used;
	uint64_t n_throttled;
};

/**
 * struct launches - all that is known of launches
 * @n_works:	records of launches that are in use lie below it
 * @any_limit:	some tenant's part of a device is limited
 * @no_rates:	no tenant has a rate, and none is to be given one
 */
struct launches {
	struct probed *first;
	uint64_t scanned_ns;
	uint32_t n_works;
	bool any_limit;
	bool no_rates;
	struct worker workers[LEDGER_TENANTS][LEDGER_DEVICES];
};

/** probed_find() - the process with this id and serial, NULL if its launches are not probed */
struct probed *probed_find(const struct engine *engine, pid_t pid, uint32_t serial);
/** probed_process() - its record, NULL when it is gone */
struct audit_process *probed_process(const struct engine *engine, const struct probed *p);
/** probes_scan() - probe the processes that need it by now */
void probes_scan(struct engine *engine);
/** probes_sweep() - let go of those that are gone, or have not needed it for a while */
void probes_sweep(struct engine *engine, uint64_t now);

/**
 * costs_learn() - take in a period
 * @proven_ns:	what the meter found for it
 * @quiet:	it ended at @quiet_ns, and what was launched later is not to blame
 *
 * Return: as share_learn().
 */
double costs_learn(struct engine *engine, struct probed *p, unsigned device,
		   const struct share_sample *sample, double proven_ns, bool quiet);
/** costs_count() - see how much has been launched by now; several times a period */
void costs_count(struct engine *engine, struct probed *p, unsigned device, uint64_t now);
/** costs_skip() - what was launched up to now is not to be compared with what is measured */
void costs_skip(struct engine *engine, struct probed *p, unsigned device);

#endif
