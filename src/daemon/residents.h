/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that have memory of a device, as the driver tells, with whose they are.
 *
 * Each is looked at once, when it is first listed, and held on to by a descriptor of the
 * process: while that says that it lives, its number cannot mean another one. So a sample
 * costs a call to the driver per device and nothing per process.
 */
#ifndef DAEMON_RESIDENTS_H
#define DAEMON_RESIDENTS_H

#include "assoc/assoc.h"
#include "gpu/gpu.h"
#include "tenant/ledger.h"

#include <stdbool.h>

/**
 * struct resident - one process
 * @pidfd:	the process itself
 * @is_new:	nobody has looked at it yet but the sample that found it
 * @listed:	a bit per device that lists it
 * @unknown:	a bit per device that does not tell how much it has
 * @bytes:	what it has of each device
 * @percent:	of the time in which it was at work there, lately
 * @worked_ms:	when that was told; 0 for never
 * @kept:	what the log of use was told last
 * @tenants:	whom it is charged to, by their ids
 */
struct resident {
	struct assoc_process who;
	int pidfd;
	bool is_new;
	uint32_t listed;
	uint32_t unknown;
	uint64_t bytes[LEDGER_DEVICES];
	uint8_t percent[LEDGER_DEVICES];
	uint64_t worked_ms[LEDGER_DEVICES];
	struct resident_kept {
		uint64_t bytes;
		uint32_t tenant;
		uint8_t percent;
	} kept[LEDGER_DEVICES];
	uint32_t tenants[LEDGER_DEPTH];
	unsigned n_tenants;
};

/**
 * struct residents - all of them, by process id
 * @epoll_fd:	tells of those that have died
 * @proc_fd:	/proc
 */
struct residents {
	struct resident **items;
	size_t n;
	size_t cap;
	int epoll_fd;
	int proc_fd;
};

int residents_init(struct residents *residents);

/**
 * residents_take() - take in what a device lists now
 *
 * Whoever dies meanwhile is dropped, so that what it had is nobody's.
 */
void residents_take(struct residents *residents, unsigned device, const struct gpu_process *list,
		    size_t n);

/**
 * resident_is_of() - is it charged to this tenant?
 */
bool resident_is_of(const struct resident *resident, uint32_t tenant);

/**
 * resident_busy() - per cent of the time in which it was at work on a device, lately
 */
unsigned resident_busy(const struct resident *resident, unsigned device, uint64_t now_ms);

struct resident *residents_find(const struct residents *residents, pid_t pid);

void residents_done(struct residents *residents);

#endif
