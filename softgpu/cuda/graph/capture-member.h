/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside captures: what is kept of one, and of each stream in it. For capture*.c alone.
 */
#pragma once

#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/stream/stream-queue.h"

/* A stream's part in a capture: the nodes that its next node comes after. */
struct capture_member {
	struct capture_member *next;
	struct capture *capture;
	struct stream *stream;
	CUgraphNode *after;
	CUgraphEdgeData *edges;
	size_t n_after;
};

/**
 * struct capture - a capture
 * @owns_graph:	the graph is made by it, else it is the program's
 * @thread:	of its begin; see capture_this_thread()
 */
struct capture {
	uint64_t id;
	CUstreamCaptureMode mode;
	struct graph *graph;
	bool owns_graph, is_invalid;
	const void *thread;
	struct capture_member *members;
	struct capture_member *origin;
	struct capture *next;
};

/* Guards them all; it is taken only while there is a capture. */
extern pthread_mutex_t capture_lock;
extern struct capture *captures;

extern _Thread_local CUstreamCaptureMode capture_thread_mode;

/* Any address of its own tells a thread from others. */
static inline const void *capture_this_thread(void)
{
	return &capture_thread_mode;
}

static inline struct capture_member *capture_member_of(const struct stream *stream)
{
	return stream->capture;
}

static inline CUresult capture_invalidate(struct capture *capture, CUresult error)
{
	capture->is_invalid = true;
	return error;
}

/* All that follows is done under the lock. */

/**
 * capture_in_way() - the capture whose stream the legacy stream would have to wait for
 *
 * That is a blocking one. NULL if there is none, or @stream is not the legacy stream.
 */
struct capture *capture_in_way(const struct stream *stream);

/** capture_member_find() - a stream's part in a capture; an error for work that no capture allows */
CUresult capture_member_find(struct stream *stream, struct capture_member **ret);

/** capture_member_add() - nodes that the next one comes after; those it has already count once */
CUresult capture_member_add(struct capture_member *member, const CUgraphNode *nodes,
			    const CUgraphEdgeData *edges, size_t n);

/** capture_member_add_node() - add a node; the next one comes after it */
CUresult capture_member_add_node(struct capture_member *member, CUgraphNodeParams *params);

/** capture_member_add_work() - the same from work of a stream */
CUresult capture_member_add_work(struct capture_member *member, const struct work_class *class,
				 const void *work);

/** capture_join() - let a stream take part */
CUresult capture_join(struct capture *capture, struct stream *stream, struct capture_member **ret);

/** capture_begin() - into @graph, or into one of its own for NULL */
CUresult capture_begin(struct stream *stream, CUstreamCaptureMode mode, struct graph *graph,
		       struct capture_member **ret);

/** capture_end() - end the capture of a stream */
CUresult capture_end(struct stream *stream, CUgraph *ret);

void capture_free(struct capture *capture, bool keep_graph);
