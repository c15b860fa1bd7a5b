// SPDX-License-Identifier: Apache-2.0
/* Captures: what becomes of work while they go on, and which calls they forbid. */
#include "softgpu/cuda/graph/capture-member.h"

#include <stdlib.h>
#include <string.h>

CUresult capture_submit(struct stream *stream, const struct work_class *class, const void *params,
			bool *ret_taken)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && member;
	if (*ret_taken)
		r = capture_member_add_work(member, class, params);
	pthread_mutex_unlock(&capture_lock);
	return r;
}

CUresult capture_check(struct stream *stream, bool *ret_captures)
{
	struct capture_member *member = NULL;
	CUresult r = CUDA_SUCCESS;

	if (capture_any()) {
		pthread_mutex_lock(&capture_lock);
		r = capture_member_find(stream, &member);
		pthread_mutex_unlock(&capture_lock);
	}
	*ret_captures = member;
	return r;
}

CUresult capture_fail(struct stream *stream, CUresult error)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	if (r == CUDA_SUCCESS && member)
		r = capture_invalidate(member->capture, error);
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	for (struct capture *capture = captures; capture; capture = capture->next)
		for (struct capture_member *member = capture->members; member;
		     member = member->next)
			if (member->stream && stream_context(member->stream) == ctx)
				r = capture_invalidate(capture,
						       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&capture_lock);
	return r;
}

/* Whether a capture forbids unsafe calls to this thread. */
static bool capture_forbids(const struct capture *capture)
{
	if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    capture_thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (capture->thread == capture_this_thread())
		return true;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       capture_thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult stream_capture_check(_unused_ struct context *ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&capture_lock);
	for (struct capture *capture = captures; capture; capture = capture->next)
		if (capture_forbids(capture))
			r = capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pthread_mutex_unlock(&capture_lock);
	return r;
}

bool stream_is_capturing(struct stream *stream)
{
	return capture_any() && capture_member_of(stream);
}

void capture_leave(struct stream *stream)
{
	struct capture_member *member;

	if (!capture_any())
		return;
	pthread_mutex_lock(&capture_lock);
	member = capture_member_of(stream);
	if (member) {
		member->capture->is_invalid = true;
		member->stream = NULL;
		stream->capture = NULL;
		/* Nobody is left who could end it. */
		if (member == member->capture->origin)
			capture_free(member->capture, /* keep_graph= */ false);
	}
	pthread_mutex_unlock(&capture_lock);
}

static CUresult capture_node(struct stream *stream, CUgraphNodeParams *params)
{
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	if (r == CUDA_SUCCESS)
		r = member ? capture_member_add_node(member, params) : CUDA_ERROR_ILLEGAL_STATE;
	pthread_mutex_unlock(&capture_lock);
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

	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && member;
	if (*ret_taken)
		r = external ? capture_member_add_node(member, &params) : mark_set(mark, member);
	else if (r == CUDA_SUCCESS)
		capture_mark_clear(mark);
	pthread_mutex_unlock(&capture_lock);
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
		return member ? capture_invalidate(member->capture,
						   CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
			      : CUDA_ERROR_CAPTURED_EVENT;
	if (capture->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (member && member->capture != capture) {
		capture->is_invalid = true;
		return capture_invalidate(member->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (stream->is_legacy)
		return capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (!member)
		r = capture_join(capture, stream, &member);
	return r == CUDA_SUCCESS ? capture_member_add(member, mark->nodes, NULL, mark->n_nodes) : r;
}

CUresult capture_wait(struct stream *stream, CUevent handle, const struct capture_mark *mark,
		      bool external, bool *ret_taken)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
				     .eventWait.event = handle };
	struct capture_member *member;
	CUresult r;

	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	*ret_taken = r == CUDA_SUCCESS && (member || mark->capture_id);
	if (*ret_taken && mark->capture_id)
		r = wait_in_capture(stream, member, mark);
	else if (*ret_taken && external)
		r = capture_member_add_node(member, &params);
	else if (*ret_taken)
		r = capture_invalidate(member->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	pthread_mutex_unlock(&capture_lock);
	return r;
}
