/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries commands between this process and the host. Everything above it is the same for each.
 *
 * carrier-unix.c	a unix socket to the broker, which makes the memory that both share
 * carrier-device.c	a virtual machine's device: the kernel names this process's own pages to the host
 *
 * All but kick and wait are called with one lock held.
 */
#ifndef FORWARD_GUEST_CARRIER_H
#define FORWARD_GUEST_CARRIER_H

#include "forward/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct carrier_lane - a lane as the carrier has it
 * @memory:	LANE_SIZE bytes
 * @kick:	what wakes the host, the carrier's own affair
 * @kick_end:	of a pipe the end that is the host's, kept: to write to one that nobody can read raises a signal
 * @call:	what wakes us
 * @each:	every record is rung for, whether the host sleeps or not
 * @beside:	the host's thread runs on the CPUs that this process runs on
 * @apart:	both have much to do at once: it had better wake on another CPU, if one is idle
 */
struct carrier_lane {
	uint32_t id;
	struct lane *memory;
	int kick;
	int kick_end;
	int call;
	bool each;
	bool beside;
	bool apart;
};

/**
 * struct carrier - a way to the host
 * @open:	begin a session. Answers the session's block, the heap of WIRE_HEAP_SIZE bytes, and what
 *		wakes the service thread. 0 or a negative errno: -ENOENT where there is no host on this
 *		way, -EPROTO where the versions differ
 * @lane_add:	a lane for the calling thread
 * @lane_remove: its thread ends
 * @grant:	@size bytes at @address become memory that the host has as well. The pages there keep their
 *		contents where @keep is set; else it is fresh memory. Answers the grant's number, or -E2BIG
 *		where smaller grants may be had
 * @revoke:	nobody on the host has it any more when this returns. It stays mapped here
 * @kick:	ring the doorbell of a lane
 * @wait:	sleep until the host has called, or is gone, or a time has passed.
 *		-ENODEV: it is gone; -ETIMEDOUT; 0 otherwise, also for no reason
 */
struct carrier {
	const char *name;
	int (*open)(struct session_block **ret_block, void **ret_heap, int *ret_call);
	int (*lane_add)(struct carrier_lane *ret);
	void (*lane_remove)(struct carrier_lane *lane);
	int (*grant)(void *address, uint64_t size, bool keep, uint32_t *ret_id);
	int (*revoke)(uint32_t id);
	void (*kick)(const struct carrier_lane *lane);
	int (*wait)(int call, int timeout_ms);
};

extern const struct carrier carrier_unix;
extern const struct carrier carrier_device;

#endif
