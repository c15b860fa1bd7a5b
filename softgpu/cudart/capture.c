// SPDX-License-Identifier: Apache-2.0
/* Capture of streams: the calls of each version, with and without data of edges. */
#include "softgpu/cudart/runtime.h"

STREAM_CALL(cudaStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
	return in_context() ?: told(driver.cuStreamBeginCapture(stream, mode));
}

STREAM_CALL(cudaStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))
{
	return in_context() ?: told(driver.cuStreamEndCapture(stream, graph));
}

STREAM_CALL(cudaStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
	    (stream, status))
{
	return in_context() ?: told(driver.cuStreamIsCapturing(stream, status));
}

RUNTIME_CALL(cudaThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
	return in_context() ?: told(driver.cuThreadExchangeStreamCaptureMode(mode));
}

STREAM_CALL(cudaStreamBeginCaptureToGraph,
	    (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *data,
	     size_t n, CUstreamCaptureMode mode),
	    (stream, graph, after, data, n, mode))
{
	return in_context()
		       ?: told(driver.cuStreamBeginCaptureToGraph(stream, graph, after, data, n,
								  mode));
}

TWIN_CALL(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2_ptsz,
	  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	   const CUgraphNode **after, size_t *n),
	  (stream, status, id, graph, after, n))
{
	return in_context()
		       ?: told(driver.cuStreamGetCaptureInfo(stream, status, id, graph, after, n));
}

STREAM_CALL(cudaStreamGetCaptureInfo,
	    (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id), (stream, status, id))
{
	return run_cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

TWIN_CALL(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo_v3_ptsz,
	  (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	   const CUgraphNode **after, const CUgraphEdgeData **data, size_t *n),
	  (stream, status, id, graph, after, data, n))
{
	return in_context()
		       ?: told(driver.cuStreamGetCaptureInfo_v3(stream, status, id, graph, after,
								data, n));
}

STREAM_CALL(cudaStreamUpdateCaptureDependencies,
	    (CUstream stream, CUgraphNode *after, size_t n, unsigned flags),
	    (stream, after, n, flags))
{
	return in_context()
		       ?: told(driver.cuStreamUpdateCaptureDependencies(stream, after, n, flags));
}

TWIN_CALL(cudaStreamUpdateCaptureDependencies_v2, cudaStreamUpdateCaptureDependencies_v2_ptsz,
	  (CUstream stream, CUgraphNode *after, const CUgraphEdgeData *data, size_t n,
	   unsigned flags),
	  (stream, after, data, n, flags))
{
	return in_context()
		       ?: told(driver.cuStreamUpdateCaptureDependencies_v2(stream, after, data, n,
									   flags));
}
