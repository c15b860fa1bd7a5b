/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keepers of the second gate report, and what follows from it.
 *
 * A report says that a process asks the device for memory. Calls that are audited explain most:
 * then the books and the device agree. What they do not explain was taken around the probes; it is
 * charged, told, and where it leads past memory.max the process is dealt with by its tenant's
 * on-failure.
 */
#ifndef DAEMON_GATE_H
#define DAEMON_GATE_H

#include "daemon/daemon.h"

/**
 * gate_open() - listen for reports
 * @state_dir:	where the socket lies; only root may send
 */
int gate_open(struct daemon *d, const char *state_dir);

void gate_close(struct daemon *d);

#endif
