/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of each device, as the driver listed them last.
 *
 * To ask the driver is most of what a look at a device costs, and several parts of the daemon
 * want to know at about the same time: each says how old the answer may be.
 */
#ifndef DAEMON_RUNNING_H
#define DAEMON_RUNNING_H

#include "gpu/gpu.h"
#include "tenant/ledger.h"

/**
 * struct running_list - of one device, by process id
 * @asked_us:	when, by the monotonic clock; 0 for never
 * @memory:	of the device, just before; of no meaning unless @knows_memory
 */
struct running_list {
	struct gpu_process *items;
	size_t n;
	size_t cap;
	uint64_t asked_us;
	struct gpu_memory memory;
	bool knows_memory;
};

struct running {
	struct running_list lists[LEDGER_DEVICES];
};

/**
 * running_read() - the processes of a device, and its memory
 * @oldest_us:	an answer from before that does not do
 * @ret:	stays the list's; good until it is read again
 *
 * Return: 0, or what the driver said.
 */
int running_read(struct running *running, struct gpu *gpu, unsigned device, uint64_t oldest_us,
		 const struct running_list **ret);

const struct gpu_process *running_find(const struct running_list *list, pid_t pid);

/** running_next() - the same for who asks of one process after the other, in the order of their ids; @at begins as 0 */
const struct gpu_process *running_next(const struct running_list *list, pid_t pid, size_t *at);

void running_done(struct running *running);

#endif
