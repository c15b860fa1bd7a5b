/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keepers of the second gate report, and what follows from it.
 *
 * A report says that a process asks the device for memory. Calls that are audited explain most:
 * then the books and the device agree. What they do not explain was taken around the probes; it is
 * charged, told, and where it leads past memory.max the process is dealt with by its tenant's
 * on-failure.
 *
 * A comparison looks at every process there is, and any tenant can cause reports: comparisons take no more
 * than a fifth of the time, and whoever is reported meanwhile is looked at with the next.
 */
#ifndef DAEMON_GATE_H
#define DAEMON_GATE_H

#include "daemon/daemon.h"

/**
 * gate_open() - listen for reports
 * @state_dir:	where the socket lies; only root may send
 */
int gate_open(struct daemon *d, const char *state_dir);

/**
 * struct gate_counts - since the daemon has started
 * @n_reports:	of keepers: each process is reported no more than once in 20 ms
 * @n_asked:	how often processes have asked for memory, by these reports
 * @n_looks:	comparisons of books and devices that followed
 */
struct gate_counts {
	uint64_t n_reports;
	uint64_t n_asked;
	uint64_t n_looks;
};

/**
 * gate_counts() - all 0 where there is no gate
 */
struct gate_counts gate_counts(const struct daemon *d);

void gate_close(struct daemon *d);

#endif
