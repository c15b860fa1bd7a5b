/* SPDX-License-Identifier: Apache-2.0 */
/* The host's end of a lane: a thread that executes what comes through the ring, in its order. */
#ifndef FORWARD_HOST_LANE_H
#define FORWARD_HOST_LANE_H

#include "forward/transport.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * struct lane_bells - what wakes whom
 * @beside:	the guest's thread runs on the CPUs that the lane's runs on
 * @kick:	what the guest's doorbell becomes: a pipe, or in a virtual machine a socket
 * @kick_end:	the pipe's other end; -1: it is a socket
 * @call:	what wakes the guest
 */
struct lane_bells {
	bool beside;
	int kick, kick_end, call;
};

/**
 * lane_add() - start a lane's thread
 * @memory:	LANE_SIZE bytes, which lane_add() unmaps where it fails
 * @ended:	called by the thread when it is done with all of them; it unmaps the memory
 *
 * The descriptors are taken over whatever happens. Return: 0, -EINVAL, -EEXIST, or what the kernel said.
 */
int lane_add(uint32_t id, void *memory, const struct lane_bells *bells,
	     struct session_block *session, void (*ended)(uint32_t id, void *memory));

/** lane_remove() - let it end when its ring is empty. Return: 0, -ENOENT. */
int lane_remove(uint32_t id);

#endif
