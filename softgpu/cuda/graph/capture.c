// SPDX-License-Identifier: Apache-2.0
/*
 * Captures: what becomes of work while they go on, which calls they forbid, and the calls that
 * begin and end them. One lock guards them all; it is taken only while there is one.
 */
#include "softgpu/cuda/graph/capture.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/code/launch.h"
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
 * @thread:	of its begin; see this_thread()
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

_Atomic unsigned int n_captures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct capture *captures;
static uint64_t n_captures_ever;

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Any address of its own tells a thread from others. */
static const void *this_thread(void)
{
	return &thread_mode;
}

static struct capture_member *member_of(const struct stream *stream)
{
	return stream->capture;
}

static CUresult invalidate(struct capture *capture, CUresult error)
{
	capture->is_invalid = true;
	return error;
}

static bool member_reserve(struct capture_member *member, size_t n)
{
	CUgraphEdgeData *edges;
	CUgraphNode *after;

	after = realloc(member->after, (n + 1) * sizeof(*after));
	if (!after)
		return false;
	member->after = after;
	edges = realloc(member->edges, (n + 1) * sizeof(*edges));
	if (!edges)
		return false;
	member->edges = edges;
	return true;
}

/* Adds nodes that the member's next one comes after; those it has already count once. */
static CUresult member_add(struct capture_member *member, const CUgraphNode *nodes,
			   const CUgraphEdgeData *edges, size_t n)
{
	size_t j;

	if (!member_reserve(member, member->n_after + n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		for (j = 0; j < member->n_after; j++)
			if (member->after[j] == nodes[i])
				break;
		if (j < member->n_after)
			continue;
		member->after[j] = nodes[i];
		member->edges[j] = edges ? edges[i] : (CUgraphEdgeData){ 0 };
		member->n_after++;
	}
	return CUDA_SUCCESS;
}

static CUresult capture_join(struct capture *capture, struct stream *stream,
			     struct capture_member **ret)
{
	struct capture_member *member = calloc(1, sizeof(*member));

	if (!member)
		return CUDA_ERROR_OUT_OF_MEMORY;
	member->capture = capture;
	member->stream = stream;
	member->next = capture->members;
	capture->members = member;
	stream->capture = member;
	*ret = member;
	return CUDA_SUCCESS;
}

static void capture_free(struct capture *capture, bool keep_graph)
{
	struct capture_member *member;
	struct capture **at = &captures;

	while ((member = capture->members)) {
		capture->members = member->next;
		if (member->stream)
			member->stream->capture = NULL;
		free(member->after);
		free(member->edges);
		free(member);
	}
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	atomic_fetch_sub(&n_captures, 1);
	if (capture->owns_graph && !keep_graph)
		graph_free(capture->graph);
	free(capture);
}

/*
 * The legacy stream would have to wait for what a blocking stream captures: the capture whose
 * stream it is, or NULL.
 */
static struct capture *capture_in_way(const struct stream *stream)
{
	for (struct capture *capture = captures; stream->is_legacy && capture;
	     capture = capture->next)
		for (struct capture_member *member = capture->members; member;
		     member = member->next)
			if (member->stream && member->stream->set == stream->set &&
			    !(member->stream->flags & CU_STREAM_NON_BLOCKING))
				return capture;
	return NULL;
}

/* The capture that a stream is in, or an error for work that no capture allows. */
static CUresult member_find(struct stream *stream, struct capture_member **ret)
{
	struct capture *in_way = capture_in_way(stream);

	if (in_way)
		return invalidate(in_way, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	*ret = member_of(stream);
	if (*ret && (*ret)->capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return CUDA_SUCCESS;
}

/* What is added next comes after @node, if it could be made at all. */
static CUresult member_advance(struct capture_member *member, CUresult made,
			       const struct graph_node *node)
{
	CUresult r = made;

	if (r == CUDA_SUCCESS) {
		member->n_after = 0;
		r = member_add(member, &node->handle, NULL, 1);
	}
	return r == CUDA_SUCCESS ? r : invalidate(member->capture, r);
}

/* Adds a node to a stream's part. */
static CUresult member_add_node(struct capture_member *member, CUgraphNodeParams *params)
{
	struct graph_node *node = NULL;
	CUresult r;

	r = node_new(member->capture->graph, member->after, member->edges, member->n_after, params,
		     &node);
	return member_advance(member, r, node);
}

static CUresult member_add_work(struct capture_member *member, const struct work_class *class,
				const void *work)
{
	struct graph_node *node = NULL;
	CUresult r;

	r = node_new_of_work(member->capture->graph, member->after, member->edges, member->n_after,
			     class->type, work, &node);
	return member_advance(member, r, node);
}

CUresult capture_submit(struct stream *stream, const struct work_class *class, const void *params,
			bool *ret_taken)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && member;
	if (*ret_taken)
		r = member_add_work(member, class, params);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture_check(struct stream *stream, bool *ret_captures)
{
	struct capture_member *member = NULL;
	CUresult r = CUDA_SUCCESS;

	if (capture_any()) {
		pthread_mutex_lock(&lock);
		r = member_find(stream, &member);
		pthread_mutex_unlock(&lock);
	}
	*ret_captures = member;
	return r;
}

CUresult capture_fail(struct stream *stream, CUresult error)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	if (r == CUDA_SUCCESS && member)
		r = invalidate(member->capture, error);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture_check_synchronous(struct stream *stream)
{
	return capture_any() ? capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			     : CUDA_SUCCESS;
}

CUresult capture_check_context(struct context *ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (struct capture *capture = captures; capture; capture = capture->next)
		for (struct capture_member *member = capture->members; member;
		     member = member->next)
			if (member->stream && stream_context(member->stream) == ctx)
				r = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Whether a capture forbids unsafe calls to this thread. */
static bool capture_forbids(const struct capture *capture)
{
	if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (capture->thread == this_thread())
		return true;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult stream_capture_check(_unused_ struct context *ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (struct capture *capture = captures; capture; capture = capture->next)
		if (capture_forbids(capture))
			r = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&lock);
	return r;
}

bool stream_is_capturing(struct stream *stream)
{
	return capture_any() && member_of(stream);
}

void capture_leave(struct stream *stream)
{
	struct capture_member *member;

	if (!capture_any())
		return;
	pthread_mutex_lock(&lock);
	member = member_of(stream);
	if (member) {
		member->capture->is_invalid = true;
		member->stream = NULL;
		stream->capture = NULL;
		/* Nobody is left who could end it. */
		if (member == member->capture->origin)
			capture_free(member->capture, /* keep_graph= */ false);
	}
	pthread_mutex_unlock(&lock);
}

static CUresult capture_node(struct stream *stream, CUgraphNodeParams *params)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	if (r == CUDA_SUCCESS)
		r = member ? member_add_node(member, params) : CUDA_ERROR_ILLEGAL_STATE;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult capture_graph(struct stream *stream, struct graph *graph)
{
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.graph = { graph->handle, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE },
	};

	return capture_node(stream, &params);
}

CUresult stream_capture_alloc(struct stream *stream, const struct device *device, size_t bytes,
			      CUdeviceptr *ret)
{
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
		.alloc.bytesize = bytes,
		.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.alloc.poolProps.location = { CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal },
	};
	CUresult r = capture_node(stream, &params);

	if (r == CUDA_SUCCESS)
		*ret = params.alloc.dptr;
	return r;
}

CUresult stream_capture_free(struct stream *stream, CUdeviceptr dptr)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = dptr };

	return capture_node(stream, &params);
}

void capture_mark_clear(struct capture_mark *mark)
{
	free(mark->nodes);
	*mark = (struct capture_mark){ 0 };
}

static CUresult mark_set(struct capture_mark *mark, const struct capture_member *member)
{
	CUgraphNode *nodes = malloc((member->n_after + 1) * sizeof(*nodes));

	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (member->n_after > 0)
		memcpy(nodes, member->after, member->n_after * sizeof(*nodes));
	capture_mark_clear(mark);
	*mark = (struct capture_mark){ member->capture->id, nodes, member->n_after };
	return CUDA_SUCCESS;
}

CUresult capture_record(struct stream *stream, CUevent handle, struct capture_mark *mark,
			bool external, bool *ret_taken)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
				     .eventRecord.event = handle };
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && member;
	if (*ret_taken)
		r = external ? member_add_node(member, &params) : mark_set(mark, member);
	else if (r == CUDA_SUCCESS)
		capture_mark_clear(mark);
	pthread_mutex_unlock(&lock);
	return r;
}

static struct capture *capture_by_id(uint64_t id)
{
	struct capture *capture;

	for (capture = captures; capture; capture = capture->next)
		if (capture->id == id)
			break;
	return capture;
}

/* Waiting for an event of a capture: the stream joins it, or gets more to come after. */
static CUresult wait_in_capture(struct stream *stream, struct capture_member *member,
				const struct capture_mark *mark)
{
	struct capture *capture = capture_by_id(mark->capture_id);
	CUresult r = CUDA_SUCCESS;

	if (!capture)
		return member ? invalidate(member->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
			      : CUDA_ERROR_CAPTURED_EVENT;
	if (capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (member && member->capture != capture) {
		capture->is_invalid = true;
		return invalidate(member->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (stream->is_legacy)
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (!member)
		r = capture_join(capture, stream, &member);
	return r == CUDA_SUCCESS ? member_add(member, mark->nodes, NULL, mark->n_nodes) : r;
}

CUresult capture_wait(struct stream *stream, CUevent handle, const struct capture_mark *mark,
		      bool external, bool *ret_taken)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
				     .eventWait.event = handle };
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && (member || mark->capture_id);
	if (*ret_taken && mark->capture_id)
		r = wait_in_capture(stream, member, mark);
	else if (*ret_taken && external)
		r = member_add_node(member, &params);
	else if (*ret_taken)
		r = invalidate(member->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Begins a capture into @graph, or into one of its own for NULL. Under the lock. */
static CUresult capture_begin(struct stream *stream, CUstreamCaptureMode mode, struct graph *graph,
			      struct capture_member **ret)
{
	struct capture *capture;
	CUresult r = CUDA_SUCCESS;

	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (member_of(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->id = ++n_captures_ever;
	capture->mode = mode;
	capture->thread = this_thread();
	capture->owns_graph = !graph;
	capture->graph = graph;
	if (!graph)
		r = graph_new(&capture->graph);
	if (r == CUDA_SUCCESS)
		r = capture_join(capture, stream, ret);
	if (r != CUDA_SUCCESS) {
		if (capture->owns_graph)
			graph_free(capture->graph);
		free(capture);
		return r;
	}
	capture->origin = *ret;
	capture->next = captures;
	captures = capture;
	atomic_fetch_add(&n_captures, 1);
	return CUDA_SUCCESS;
}

static bool mode_is_valid(CUstreamCaptureMode mode)
{
	return (unsigned int)mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CALL_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream handle, CUstreamCaptureMode mode),
	   (handle, mode))
{
	struct capture_member *member;
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (!mode_is_valid(mode))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	r = capture_begin(stream, mode, NULL, &member);
	pthread_mutex_unlock(&lock);
	return r;
}

CALL_TWINS(cuStreamBeginCapture, _ptsz, (CUstream handle), (handle))
{
	return twin_cuStreamBeginCapture_v2(dflt, handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CALL_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
	   (CUstream handle, CUgraph graph_handle, const CUgraphNode *after,
	    const CUgraphEdgeData *edges, size_t n_after, CUstreamCaptureMode mode),
	   (handle, graph_handle, after, edges, n_after, mode))
{
	struct capture_member *member;
	struct stream *stream;
	struct graph *graph;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r == CUDA_SUCCESS)
		r = graph_find(graph_handle, &graph);
	if (r != CUDA_SUCCESS)
		return r;
	if (!mode_is_valid(mode) || (n_after > 0 && !after))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	r = capture_begin(stream, mode, graph, &member);
	if (r == CUDA_SUCCESS) {
		r = member_add(member, after, edges, n_after);
		if (r != CUDA_SUCCESS)
			capture_free(member->capture, /* keep_graph= */ true);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* Whether all work of other streams comes before what the origin would do next. */
static bool is_joined(const struct capture *capture)
{
	const struct capture_member *origin = capture->origin;
	struct graph_node *node, *end;
	size_t k;

	for (struct capture_member *member = capture->members; member; member = member->next) {
		for (size_t i = 0; member != origin && i < member->n_after; i++) {
			if (node_find(member->after[i], &node) != CUDA_SUCCESS)
				continue;
			for (k = 0; k < origin->n_after; k++)
				if (node_find(origin->after[k], &end) == CUDA_SUCCESS &&
				    node_comes_after(end, node))
					break;
			if (k == origin->n_after)
				return false;
		}
	}
	return true;
}

/* Ends the capture of a stream. Under the lock. */
static CUresult capture_end(struct stream *stream, CUgraph *ret)
{
	struct capture_member *member = member_of(stream);
	struct capture *capture;
	CUresult r = CUDA_SUCCESS;

	if (!member)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = member->capture;
	if (member != capture->origin)
		return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;

	if (capture->is_invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!is_joined(capture))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	else
		*ret = capture->graph->handle;
	capture_free(capture, /* keep_graph= */ r == CUDA_SUCCESS);
	return r;
}

CALL_TWINS(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph *ret), (handle, ret))
{
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = NULL;
	pthread_mutex_lock(&lock);
	r = capture_end(stream, ret);
	pthread_mutex_unlock(&lock);
	return r;
}

/* What the calls that look at a capture tell; each of the pointers may be NULL. */
struct capture_info {
	CUstreamCaptureStatus *status;
	cuuint64_t *id;
	CUgraph *graph;
	const CUgraphNode **after;
	const CUgraphEdgeData **edges;
	size_t *n_after;
};

static CUresult get_info(CUstream handle, enum stream_default dflt, const struct capture_info *info)
{
	struct capture_member *member;
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (!info->status)
		return CUDA_ERROR_INVALID_VALUE;
	*info->status = CU_STREAM_CAPTURE_STATUS_NONE;
	pthread_mutex_lock(&lock);
	if (capture_in_way(stream))
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	member = member_of(stream);
	if (r == CUDA_SUCCESS && member) {
		*info->status = member->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
							    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (info->id)
			*info->id = member->capture->id;
		if (info->graph)
			*info->graph = member->capture->graph->handle;
		if (info->after)
			*info->after = member->after;
		if (info->edges)
			*info->edges = member->edges;
		if (info->n_after)
			*info->n_after = member->n_after;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CALL_TWINS(cuStreamIsCapturing, _ptsz, (CUstream handle, CUstreamCaptureStatus *ret), (handle, ret))
{
	return get_info(handle, dflt, &(struct capture_info){ .status = ret });
}

CALL_TWINS(cuStreamGetCaptureInfo, _ptsz,
	   (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id), (handle, status, id))
{
	return get_info(handle, dflt, &(struct capture_info){ .status = status, .id = id });
}

CALL_TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
	   (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	    const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *n_after),
	   (handle, status, id, graph, after, edges, n_after))
{
	return get_info(handle, dflt,
			&(struct capture_info){ status, id, graph, after, edges, n_after });
}

CALL_TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
	   (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	    const CUgraphNode **after, size_t *n_after),
	   (handle, status, id, graph, after, n_after))
{
	return get_info(handle, dflt,
			&(struct capture_info){ status, id, graph, after, NULL, n_after });
}

static bool are_nodes_of(const struct graph *graph, const CUgraphNode *nodes, size_t n)
{
	struct graph_node *node;

	for (size_t i = 0; i < n; i++)
		if (node_find(nodes[i], &node) != CUDA_SUCCESS || node->graph != graph)
			return false;
	return true;
}

CALL_TWINS(cuStreamUpdateCaptureDependencies_v2, _ptsz,
	   (CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n,
	    unsigned int flags),
	   (handle, nodes, edges, n, flags))
{
	struct capture_member *member;
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n > 0 && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	r = member_find(stream, &member);
	if (r == CUDA_SUCCESS && !member)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (r == CUDA_SUCCESS && !are_nodes_of(member->capture->graph, nodes, n))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS) {
		if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			member->n_after = 0;
		r = member_add(member, nodes, edges, n);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CALL_TWINS(cuStreamUpdateCaptureDependencies, _ptsz,
	   (CUstream handle, CUgraphNode *nodes, size_t n, unsigned int flags),
	   (handle, nodes, n, flags))
{
	return twin_cuStreamUpdateCaptureDependencies_v2(dflt, handle, nodes, NULL, n, flags);
}

CALL(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = thread_mode;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!mode || !mode_is_valid(*mode))
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
