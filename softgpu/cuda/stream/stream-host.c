// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of the program that a stream calls: host functions, which a graph can hold, and the
 * older callbacks, which learn the stream and its status. They run on the stream's thread and may
 * not call the driver.
 */
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/cuda/stream/work.h"

static CUresult host_run(_unused_ struct context *ctx, void *params)
{
	const CUDA_HOST_NODE_PARAMS *host = params;

	context_in_callback = true;
	host->fn(host->userData);
	context_in_callback = false;
	return CUDA_SUCCESS;
}

const struct work_class work_host = {
	.type = CU_GRAPH_NODE_TYPE_HOST,
	.size = sizeof(CUDA_HOST_NODE_PARAMS),
	.run = host_run,
};

struct callback {
	CUstreamCallback fn;
	CUstream stream;
	void *arg;
};

static CUresult callback_run(struct context *ctx, void *params)
{
	const struct callback *callback = params;

	context_in_callback = true;
	callback->fn(callback->stream, context_error(ctx), callback->arg);
	context_in_callback = false;
	return CUDA_SUCCESS;
}

static const struct work_class work_callback = {
	.type = WORK_NO_NODE,
	.size = sizeof(struct callback),
	.run = callback_run,
	.always = true,
};

CALL_TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *arg), (stream, fn, arg))
{
	CUDA_HOST_NODE_PARAMS host = { fn, arg };

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_enqueue(stream, dflt, &work_host, &host);
}

CALL_TWINS(cuStreamAddCallback, _ptsz,
	   (CUstream stream, CUstreamCallback fn, void *arg, unsigned int flags),
	   (stream, fn, arg, flags))
{
	struct callback callback = { fn, stream, arg };

	if (!fn || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_enqueue(stream, dflt, &work_callback, &callback);
}
