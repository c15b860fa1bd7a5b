/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: streams whose work becomes nodes of a graph instead of running.
 *
 * A capture begins in one stream. Other streams join it by waiting for an event that was recorded
 * in a stream of it, and have to be joined back the same way before it ends. For each stream the
 * capture keeps the nodes that the next one will come after.
 */
#pragma once

#include "softgpu/cuda/graph/graph.h"

struct capture;
struct event;

/* How many captures go on in the process: calls look no further while there is none. */
extern _Atomic unsigned int n_captures;

static inline bool capture_any(void)
{
	return __builtin_expect(atomic_load_explicit(&n_captures, memory_order_relaxed) > 0, 0);
}

/**
 * capture_submit() - work that is submitted to a stream while captures go on
 * @ret_taken:	it became a node; else it has to run
 */
CUresult capture_submit(struct stream *stream, const struct work_class *class, const void *params,
			bool *ret_taken);

/**
 * capture_check() - may work be submitted to a stream?
 * @ret_captures:	yes, and it will be a node
 */
CUresult capture_check(struct stream *stream, bool *ret_captures);

/** capture_graph() - make a child graph node of @graph; on success it belongs to the node */
CUresult capture_graph(struct stream *stream, struct graph *graph);

/**
 * capture_fail() - what was to be captured cannot be: a capture of the stream is invalid
 *
 * Return: @error, or what was wrong before; CUDA_SUCCESS if it does not capture.
 */
CUresult capture_fail(struct stream *stream, CUresult error);

/** capture_check_synchronous() - may the stream be waited for, or used synchronously? */
CUresult capture_check_synchronous(struct stream *stream);

/** capture_check_context() - may all of a context be waited for? */
CUresult capture_check_context(struct context *ctx);

/** capture_leave() - the stream is destroyed: a capture that it takes part in is invalid */
void capture_leave(struct stream *stream);

/*
 * What an event that was recorded in a capture stands for: the nodes of the stream then.
 */
struct capture_mark {
	uint64_t capture_id; /* 0: none */
	CUgraphNode *nodes;
	size_t n_nodes;
};

void capture_mark_clear(struct capture_mark *mark);

/** capture_record() - record an event in a capturing stream; @external makes a node of it */
CUresult capture_record(struct stream *stream, CUevent handle, struct capture_mark *mark,
			bool external, bool *ret_taken);

/**
 * capture_wait() - let a stream wait for an event, where a capture is concerned
 * @mark:	what the event was recorded as, not in a capture if @mark->capture_id is 0
 */
CUresult capture_wait(struct stream *stream, CUevent handle, const struct capture_mark *mark,
		      bool external, bool *ret_taken);
