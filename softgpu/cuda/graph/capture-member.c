// SPDX-License-Identifier: Apache-2.0
/* The books of captures: the streams in each, and where the next node of each goes. */
#include "softgpu/cuda/graph/capture-member.h"

#include <stdlib.h>

_Atomic unsigned int n_captures;

pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
struct capture *captures;
static uint64_t n_captures_ever;

_Thread_local CUstreamCaptureMode capture_thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

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

CUresult capture_member_add(struct capture_member *member, const CUgraphNode *nodes,
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

CUresult capture_join(struct capture *capture, struct stream *stream, struct capture_member **ret)
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

void capture_free(struct capture *capture, bool keep_graph)
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

struct capture *capture_in_way(const struct stream *stream)
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

CUresult capture_member_find(struct stream *stream, struct capture_member **ret)
{
	struct capture *in_way = capture_in_way(stream);

	if (in_way)
		return capture_invalidate(in_way, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	*ret = capture_member_of(stream);
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
		r = capture_member_add(member, &node->handle, NULL, 1);
	}
	return r == CUDA_SUCCESS ? r : capture_invalidate(member->capture, r);
}

CUresult capture_member_add_node(struct capture_member *member, CUgraphNodeParams *params)
{
	struct graph_node *node = NULL;
	CUresult r;

	r = node_new(member->capture->graph, member->after, member->edges, member->n_after, params,
		     &node);
	return member_advance(member, r, node);
}

CUresult capture_member_add_work(struct capture_member *member, const struct work_class *class,
				 const void *work)
{
	struct graph_node *node = NULL;
	CUresult r;

	r = node_new_of_work(member->capture->graph, member->after, member->edges, member->n_after,
			     class->type, work, &node);
	return member_advance(member, r, node);
}

CUresult capture_begin(struct stream *stream, CUstreamCaptureMode mode, struct graph *graph,
		       struct capture_member **ret)
{
	struct capture *capture;
	CUresult r = CUDA_SUCCESS;

	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (capture_member_of(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->id = ++n_captures_ever;
	capture->mode = mode;
	capture->thread = capture_this_thread();
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

CUresult capture_end(struct stream *stream, CUgraph *ret)
{
	struct capture_member *member = capture_member_of(stream);
	struct capture *capture;
	CUresult r = CUDA_SUCCESS;

	if (!member)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = member->capture;
	if (member != capture->origin)
		return capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	    capture->thread != capture_this_thread())
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
