/* SPDX-License-Identifier: Apache-2.0 */
/* The host's end of a lane: a thread that executes what comes through the ring, in its order. */
#ifndef FORWARD_HOST_LANE_H
#define FORWARD_HOST_LANE_H

#include "forward/transport.h"

#include <stdint.h>

/**
 * lane_add() - start a lane's thread
 * @memory:	LANE_SIZE bytes, which lane_add() unmaps where it fails
 * @kick:	event that the guest's doorbell becomes
 * @call:	event that wakes the guest
 * @ended:	called by the thread when it is done with all of them; it unmaps the memory
 *
 * The descriptors are taken over whatever happens. Return: 0, -EINVAL, -EEXIST, or what the kernel said.
 */
int lane_add(uint32_t id, void *memory, int kick, int call, struct session_block *session,
	     void (*ended)(uint32_t id, void *memory));

/** lane_remove() - let it end when its ring is empty. Return: 0, -ENOENT. */
int lane_remove(uint32_t id);

#endif
