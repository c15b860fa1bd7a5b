/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of the guest.
 *
 * The guest's kernel has pinned the pages that it names, and lets go of them when it has its answer. So no answer that
 * ends something, or says that it never began, is given while any process of the host could reach its pages.
 */
#ifndef FORWARD_VM_PROCESS_H
#define FORWARD_VM_PROCESS_H

#include "forward/vm/machine.h"

/**
 * process_open() - begin one
 * @request:	WIRE_SESSION_OPEN, which is answered here or later
 * @pieces:	its request->message.n_pieces pieces, taken over whatever happens
 */
void process_open(struct machine *machine, struct request *request, struct wire_piece *pieces);

/** process_request() - WIRE_LANE_ADD, LANE_REMOVE, GRANT or REVOKE; likewise */
void process_request(struct process *process, struct request *request, struct wire_piece *pieces);

/** process_close() - WIRE_SESSION_CLOSE */
void process_close(struct process *process, struct request *request);

/** process_ring() - wake a lane of it where that sleeps and has something to do */
void process_ring(struct process *process, uint32_t lane);

/** process_ring_all() - wake all such */
void process_ring_all(struct process *process);

/** process_end_now() - end it, and wait until nobody reaches its memory; requests stay without answers */
void process_end_now(struct process *process);

#endif
