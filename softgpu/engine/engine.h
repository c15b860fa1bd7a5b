/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device time.
 *
 * A device is a line of turns without overlap. Each turn belongs to one context (a client
 * in here) of whichever process; contexts that have work take turns of 2 ms. The line is
 * kept in the shared state and advanced by whoever looks at it, also on behalf of others
 * and into the past. So a thread that wakes up late finds its turn served at the time when
 * it was due, a stopped or killed process delays nobody, and there is nothing to lock.
 *
 * What runs is told how long it takes, one of two ways:
 *
 *	timed		the duration is given and the CPU sleeps
 *	executed	step() does the work on the CPU and tells what it would have cost on
 *			the device; that much device time is then taken from the line
 *
 * Kernels of one context follow each other: each is taken to fill the device. Of those that
 * wait the most urgent is next. Executed ones of different streams nevertheless run at the
 * same time on the CPU, so they can wait for each other; only their device times are put one
 * after another.
 */
#ifndef SOFTGPU_ENGINE_ENGINE_H
#define SOFTGPU_ENGINE_ENGINE_H

#include "softgpu/state/state.h"

#include <stdbool.h>
#include <stdint.h>

struct engine_client;

/**
 * struct engine_job - a piece of device work
 * @step:	NULL: timed. Else called until it says that it is done, each time with
 *		the device time after which it should return; tells what it has used
 * @arg:	for @step
 * @duration_ns:	of a timed job; 0 takes no time
 * @ready_ns:	when the job could have begun at the earliest (engine_now_ns() at its
 *		submission, or the end of what came before it in its stream, whichever is
 *		later); 0 for now
 * @priority:	as streams have it: 0, or less for what is more urgent
 * @more:	more work of the same stream follows at once. A timed job then keeps the turn for
 *		it; of an executed one it is not known whether there is anything to keep it for
 * @ret_end_ns:	when its device time was over; pass it as @ready_ns of what follows
 */
struct engine_job {
	int (*step)(void *arg, uint64_t budget_ns, uint64_t *ret_used_ns, bool *ret_done);
	void *arg;
	uint64_t duration_ns;
	uint64_t ready_ns;
	int priority;
	bool more;
	uint64_t ret_end_ns;
};

/** engine_now_ns() - the clock of all device times: CLOCK_MONOTONIC */
uint64_t engine_now_ns(void);

/**
 * engine_client_new() - a context of this process on a device
 *
 * The process must be attached to the state.
 *
 * Return: 0; STATE_E_BUSY if the device has STATE_CLIENTS_MAX contexts; STATE_E_FORKED;
 * -ENOMEM.
 */
int engine_client_new(struct state *state, unsigned dev, struct engine_client **ret);

/** engine_client_free() - its jobs must have ended; accepts NULL */
void engine_client_free(struct engine_client *client);

/**
 * engine_run() - give a job its device time; blocks until it has had it
 *
 * Called by a stream's thread, several streams at once.
 *
 * Return: 0; what @step returned if not 0; ENGINE_E_ABORTED.
 */
int engine_run(struct engine_client *client, struct engine_job *job);
#define ENGINE_E_ABORTED 0x10001

/**
 * engine_client_abort() - end the client's jobs where they are
 *
 * Those that wait for device time return at once, executed ones after their step. From now
 * on engine_run() answers ENGINE_E_ABORTED.
 */
void engine_client_abort(struct engine_client *client);

/** engine_update() - bring the device's counters and samples up to now; for monitors */
void engine_update(struct state *state, unsigned dev);

/**
 * engine_work_ns() - how long a device takes for a kernel's instructions
 * @device:		the device
 * @n_instructions:	executed, summed over threads
 * @n_blocks:		of the grid
 * @n_threads:		of a block
 *
 * An SM completes 128 threads' instructions per cycle (four warps), a warp issues one
 * instruction every four cycles, and blocks are spread over all SMs. So a full device of
 * 108 SMs at 1410 MHz does 108 * 128 * 1.41e9 = 19.5e12 a second, and a single thread one
 * instruction in 4 / 1.41 GHz = 2.8 ns. Waiting for memory is not modelled.
 */
uint64_t engine_work_ns(const struct softgpu_device_config *device, uint64_t n_instructions,
			uint64_t n_blocks, uint32_t n_threads);

#endif
