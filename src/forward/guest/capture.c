// SPDX-License-Identifier: Apache-2.0
#include "forward/guest/capture.h"

#include "forward/guest/writer.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic int n_captures;

bool capture_is_active(void)
{
	return atomic_load_explicit(&n_captures, memory_order_relaxed) > 0;
}

static CUresult begin(enum call_id id, CUstream stream, uint64_t mode)
{
	CUresult r = CALL_WORDS(id, POINTER(stream), mode);

	if (r == CUDA_SUCCESS)
		atomic_fetch_add(&n_captures, 1);
	return r;
}

CALL_TWINS(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream))
{
	return begin(id, stream, /* mode= */ 0);
}

CALL_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
	   (stream, mode))
{
	return begin(id, stream, mode);
}

/* It ends a capture even where it says that something was wrong with it. */
CALL_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *ret), (stream, ret))
{
	CUresult r = CALL_WORDS(id, POINTER(stream), POINTER(ret));

	if (r != CUDA_ERROR_ILLEGAL_STATE && r != CUDA_ERROR_INVALID_VALUE &&
	    r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && atomic_load(&n_captures) > 0)
		atomic_fetch_sub(&n_captures, 1);
	return r;
}

CALL_TWINS(cuStreamBeginCaptureToGraph, _ptsz,
	   (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
	    size_t n, CUstreamCaptureMode mode),
	   (stream, graph, after, edges, n, mode))
{
	CUresult r = CALL_WORDS(id, POINTER(stream), POINTER(graph), POINTER(after), POINTER(edges),
				n, mode);

	if (r == CUDA_SUCCESS)
		atomic_fetch_add(&n_captures, 1);
	return r;
}

/**
 * struct told - what a thread was told last of a capture
 *
 * CUDA promises the lists until the next call on that stream.
 */
struct told {
	struct wire_capture head;
	size_t room;
	CUgraphNode *after;
	CUgraphEdgeData *edges;
};

static bool told_grow(struct told *told, size_t n)
{
	CUgraphNode *after;
	CUgraphEdgeData *edges;

	if (n <= told->room)
		return true;
	after = realloc(told->after, n * sizeof(*after));
	if (after)
		told->after = after;
	edges = realloc(told->edges, n * sizeof(*edges));
	if (edges)
		told->edges = edges;
	if (!after || !edges)
		return false;
	told->room = n;
	return true;
}

static CUresult info_ask(enum call_id id, CUstream stream, struct told *told)
{
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r;

	r = writer_begin(&w, id, sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(stream));
	r = lane_ask(w.lane, &data, &size);
	if (r != CUDA_SUCCESS)
		return lane_error(w.lane, r);
	if (size < sizeof(told->head))
		return session_lose();
	memcpy(&told->head, data, sizeof(told->head));
	if (told->head.n > (size - sizeof(told->head)) / sizeof(CUgraphNode))
		return session_lose();
	if (!told_grow(told, told->head.n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (told->head.n)
		memcpy(told->after, data + sizeof(told->head), told->head.n * sizeof(CUgraphNode));
	return lane_error(w.lane, r);
}

static CUresult info(enum call_id id, CUstream stream, CUstreamCaptureStatus *status,
		     cuuint64_t *ret_id, CUgraph *graph, const CUgraphNode **after,
		     const CUgraphEdgeData **edges, size_t *n)
{
	static __thread struct told told;
	CUresult r = session_check();

	if (r == CUDA_SUCCESS && !status)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = info_ask(id, stream, &told);
	if (r != CUDA_SUCCESS)
		return r;
	*status = told.head.status;
	/* Of a stream that does not capture only that is told. */
	if (told.head.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (told.head.n)
		memset(told.edges, 0, told.head.n * sizeof(*told.edges));
	if (ret_id)
		*ret_id = told.head.id;
	if (graph)
		*graph = (CUgraph)told.head.graph;
	if (after)
		*after = told.after;
	if (edges)
		*edges = told.edges;
	if (n)
		*n = told.head.n;
	return CUDA_SUCCESS;
}

CALL_TWINS(cuStreamGetCaptureInfo_v2, _ptsz,
	   (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *ret_id, CUgraph *graph,
	    const CUgraphNode **after, size_t *n),
	   (stream, status, ret_id, graph, after, n))
{
	return info(id, stream, status, ret_id, graph, after, NULL, n);
}

CALL_TWINS(cuStreamGetCaptureInfo_v3, _ptsz,
	   (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *ret_id, CUgraph *graph,
	    const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *n),
	   (stream, status, ret_id, graph, after, edges, n))
{
	return info(id == CALL_ID_cuStreamGetCaptureInfo_v3
			    ? CALL_ID_cuStreamGetCaptureInfo_v2
			    : CALL_ID_cuStreamGetCaptureInfo_v2_ptsz,
		    stream, status, ret_id, graph, after, edges, n);
}
