/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between pageable memory and the host, through the heap. */
#ifndef FORWARD_GUEST_COPY_H
#define FORWARD_GUEST_COPY_H

#include "forward/guest/heap.h"
#include "forward/guest/session.h"

#define COPY_DEPTH 4

/**
 * struct copy_pipe - pieces under way
 *
 * While the host copies one piece out of the heap, or into it, the guest fills or empties another.
 *
 * @out:	where piece i goes in the guest when it is executed, NULL where it came from there
 */
struct copy_pipe {
	struct guest_lane *lane;
	unsigned n;
	unsigned blocks[COPY_DEPTH];
	uint64_t numbers[COPY_DEPTH];
	size_t sizes[COPY_DEPTH];
	void *out[COPY_DEPTH];
};

/** copy_pipe_next() - a block for the next piece; ends the one that had it before */
CUresult copy_pipe_next(struct copy_pipe *pipe, unsigned *ret_block);

/** copy_pipe_sent() - the piece is in the lane; @out and @size say what to do when it is executed */
void copy_pipe_sent(struct copy_pipe *pipe, void *out, size_t size);

/** copy_pipe_end() - all pieces are executed. Return: @result, or what went wrong. */
CUresult copy_pipe_end(struct copy_pipe *pipe, CUresult result);

#endif
