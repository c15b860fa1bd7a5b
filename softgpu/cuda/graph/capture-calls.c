// SPDX-License-Identifier: Apache-2.0
/* The calls that begin and end captures, and look at them. */
#include "softgpu/cuda/graph/capture-member.h"

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
	pthread_mutex_lock(&capture_lock);
	r = capture_begin(stream, mode, NULL, &member);
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	r = capture_begin(stream, mode, graph, &member);
	if (r == CUDA_SUCCESS) {
		r = capture_member_add(member, after, edges, n_after);
		if (r != CUDA_SUCCESS)
			capture_free(member->capture, /* keep_graph= */ true);
	}
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	r = capture_end(stream, ret);
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	if (capture_in_way(stream))
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	member = capture_member_of(stream);
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
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	r = capture_member_find(stream, &member);
	if (r == CUDA_SUCCESS && !member)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (r == CUDA_SUCCESS && !are_nodes_of(member->capture->graph, nodes, n))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS) {
		if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			member->n_after = 0;
		r = capture_member_add(member, nodes, edges, n);
	}
	pthread_mutex_unlock(&capture_lock);
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
	CUstreamCaptureMode before = capture_thread_mode;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!mode || !mode_is_valid(*mode))
		return CUDA_ERROR_INVALID_VALUE;
	capture_thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
