/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the fuzzer: workers and their mappers that are no processes. What they have mapped is written down, so that what
 * the broker promises a guest's kernel can be held against it.
 *
 * The kernel's part, the questions about a mapper's mappings, is played, too: mapping.c is included by fake-worker.c.
 */
#ifndef FORWARD_VM_FAKE_WORKER_H
#define FORWARD_VM_FAKE_WORKER_H

#include "forward/transport.h"
#include "forward/vm/ram.h"

#include <stdbool.h>

/* Of the sessions 1, 2 and so on; the first is of all others. */
#define FAKE_WORKERS 4
#define FAKE_LANES   8

/**
 * struct fake_mapping - what a mapper was allowed to map
 * @serial:	the number of the message that named it
 */
struct fake_mapping {
	uint32_t serial;
	uint64_t at;
	uint64_t size;
};

/**
 * struct fake_counts - over all inputs
 * @mapped:	the kernel was told to make a mapping
 * @not_mapped:	or not to
 * @kept:	the broker found what a worker had not given back
 * @woken:	lanes that a bell of the guest's has woken
 */
struct fake_counts {
	unsigned long mapped, not_mapped, kept, woken;
};

extern struct fake_counts fake_counts;

/**
 * struct fake_guest - what the guest's kernel has said. A message of its has a number above 0
 * @named:	the message under way of that session that named this memory, guest-physical; 0: none
 * @ended:	the message that began what this one ends
 */
struct fake_guest {
	uint32_t (*named)(uint32_t session, uint64_t guest, uint64_t size);
	uint32_t (*ended)(uint32_t session, const struct wire_message *message);
};

/** fake_workers_begin() - none is there */
void fake_workers_begin(const struct ram *ram, const struct fake_guest *guest);

/** fake_worker_for() - the session that the next worker is started for */
void fake_worker_for(uint32_t session);

/** fake_worker_works() - it does the next thing that it was told. @keeps: without giving anything back */
void fake_worker_works(uint32_t session, bool keeps);

/** fake_worker_says() - it says that instead */
void fake_worker_says(uint32_t session, const struct wire_message *message);

/** fake_worker_rings() - one of its bells: a lane's, or the service's beyond them. @closes: and for the last time */
void fake_worker_rings(uint32_t session, uint32_t lane, bool closes);

/** fake_worker_wakes() - has that lane's bell been rung since it was asked last? */
bool fake_worker_wakes(uint32_t session, uint32_t lane);

/** fake_mapper_works() - it introduces itself, or does a job. @wrong: not 0: not quite */
void fake_mapper_works(uint32_t session, uint32_t wrong);

/** fake_worker_ends() - it, or its mapper, is gone */
void fake_worker_ends(uint32_t session, bool mapper);

/** fake_workers_gone() - all are, and nobody was told */
void fake_workers_gone(void);

/** fake_has() - does anybody still have what the message of that number named? */
bool fake_has(uint32_t serial);

/** fake_settle() - the broker serves all that it has to; a broker that does not come to an end aborts */
void fake_settle(void);

#endif
