// SPDX-License-Identifier: Apache-2.0
/*
 * Calls on streams, and which stream a handle means.
 *
 * The legacy stream is made with the context, a thread's stream when the thread first asks for it
 * in a context. A thread keeps a list of its streams, which end with it.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/stream/stream-queue.h"

/* Priorities as every device since Kepler has them: lower numbers first. */
#define PRIORITY_LOWEST	 0
#define PRIORITY_HIGHEST (-5)

/* A stream of this thread in one context. */
struct thread_stream {
	struct thread_stream *next;
	uint64_t ctx_id;
	CUstream handle;
};

static _Thread_local struct thread_stream *thread_streams;
static pthread_key_t thread_streams_key;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;

static void thread_streams_end(void *first)
{
	struct thread_stream *mine = first, *next;

	thread_streams = NULL;
	for (; mine; mine = next) {
		next = mine->next;
		/* It is gone already where the context ended first. */
		stream_close(mine->handle);
		free(mine);
	}
}

static void thread_streams_make_key(void)
{
	pthread_key_create(&thread_streams_key, thread_streams_end);
}

static struct thread_stream *thread_stream_find(uint64_t ctx_id)
{
	struct thread_stream *mine;

	for (mine = thread_streams; mine; mine = mine->next)
		if (mine->ctx_id == ctx_id)
			break;
	return mine;
}

static CUresult thread_stream_new(uint64_t ctx_id, struct thread_stream **ret)
{
	struct thread_stream *mine = calloc(1, sizeof(*mine));

	if (!mine)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mine->ctx_id = ctx_id;
	mine->next = thread_streams;

	pthread_once(&thread_streams_once, thread_streams_make_key);
	pthread_setspecific(thread_streams_key, mine);
	thread_streams = mine;
	*ret = mine;
	return CUDA_SUCCESS;
}

static CUresult stream_of_thread(struct context *ctx, struct stream **ret)
{
	struct thread_stream *mine = thread_stream_find(ctx->id);
	struct stream *stream;
	CUresult r;

	if (!mine) {
		r = thread_stream_new(ctx->id, &mine);
		if (r != CUDA_SUCCESS)
			return r;
	}
	stream = handle_get(HANDLE_STREAM, mine->handle);
	if (!stream) {
		r = stream_new(ctx, CU_STREAM_DEFAULT, PRIORITY_LOWEST, &stream);
		if (r != CUDA_SUCCESS)
			return r;
		mine->handle = stream->handle;
	}
	*ret = stream;
	return CUDA_SUCCESS;
}

static CUresult stream_of_context(enum stream_default dflt, struct stream **ret)
{
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (dflt == STREAM_DEFAULT_PER_THREAD)
		return stream_of_thread(ctx, ret);
	*ret = ctx->streams->legacy;
	return CUDA_SUCCESS;
}

CUresult stream_find(CUstream handle, enum stream_default dflt, struct stream **ret)
{
	struct stream *stream;
	CUresult r;

	if (!handle)
		return stream_of_context(dflt, ret);
	if (handle == CU_STREAM_LEGACY)
		return stream_of_context(STREAM_DEFAULT_LEGACY, ret);
	if (handle == CU_STREAM_PER_THREAD)
		return stream_of_context(STREAM_DEFAULT_PER_THREAD, ret);

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	stream = handle_get(HANDLE_STREAM, handle);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	r = context_error(stream_context(stream));
	if (r != CUDA_SUCCESS)
		return r;
	*ret = stream;
	return CUDA_SUCCESS;
}

CALL(cuCtxGetStreamPriorityRange, int *leastPriority, int *greatestPriority)
{
	CUresult r = context_need();

	if (r != CUDA_SUCCESS)
		return r;
	if (leastPriority)
		*leastPriority = PRIORITY_LOWEST;
	if (greatestPriority)
		*greatestPriority = PRIORITY_HIGHEST;
	return CUDA_SUCCESS;
}

CALL(cuStreamCreateWithPriority, CUstream *ret, unsigned int flags, int priority)
{
	struct context *ctx;
	struct stream *stream;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;

	if (priority > PRIORITY_LOWEST)
		priority = PRIORITY_LOWEST;
	else if (priority < PRIORITY_HIGHEST)
		priority = PRIORITY_HIGHEST;
	r = stream_new(ctx, flags, priority, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	*ret = stream->handle;
	return CUDA_SUCCESS;
}

CALL(cuStreamCreate, CUstream *ret, unsigned int flags)
{
	return impl_cuStreamCreateWithPriority(ret, flags, PRIORITY_LOWEST);
}

CALL(cuStreamDestroy_v2, CUstream handle)
{
	struct stream *stream;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	stream = handle_get(HANDLE_STREAM, handle);
	/* The stream of a thread is not the program's to destroy. */
	if (!stream || stream->is_legacy)
		return CUDA_ERROR_INVALID_HANDLE;
	return stream_close(handle);
}

CALL(cuStreamDestroy, CUstream handle)
{
	return impl_cuStreamDestroy_v2(handle);
}

CALL_TWINS(cuStreamSynchronize, _ptsz, (CUstream handle), (handle))
{
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	return r != CUDA_SUCCESS ? r : stream_synchronize(stream);
}

CALL_TWINS(cuStreamQuery, _ptsz, (CUstream handle), (handle))
{
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	r = capture_check_synchronous(stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (!stream_idle(stream))
		return CUDA_ERROR_NOT_READY;
	return context_error(stream_context(stream));
}

CALL_TWINS(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned int *ret), (handle, ret))
{
	struct stream *stream;

	return TELL(stream_find(handle, dflt, &stream), ret, stream->flags);
}

CALL_TWINS(cuStreamGetPriority, _ptsz, (CUstream handle, int *ret), (handle, ret))
{
	struct stream *stream;

	return TELL(stream_find(handle, dflt, &stream), ret, stream->priority);
}

CALL_TWINS(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long *ret), (handle, ret))
{
	struct stream *stream;

	return TELL(stream_find(handle, dflt, &stream), ret, stream->id);
}

CALL_TWINS(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice *ret), (handle, ret))
{
	struct stream *stream;

	return TELL(stream_find(handle, dflt, &stream), ret,
		    stream_context(stream)->device->ordinal);
}

CALL_TWINS(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext *ret), (handle, ret))
{
	struct stream *stream;

	return TELL(stream_find(handle, dflt, &stream), ret, stream_context(stream)->handle);
}

CALL_TWINS(cuStreamGetCtx_v2, _ptsz, (CUstream handle, CUcontext *ret, CUgreenCtx *ret_green),
	   (handle, ret, ret_green))
{
	CUresult r;

	if (!ret || !ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	r = twin_cuStreamGetCtx(dflt, handle, ret);
	if (r == CUDA_SUCCESS)
		*ret_green = NULL;
	return r;
}

/* Streams here belong to whole contexts. */
CALL(cuStreamGetGreenCtx, CUstream handle, CUgreenCtx *ret)
{
	struct stream *stream;

	return TELL(stream_find(handle, STREAM_DEFAULT_LEGACY, &stream), ret, NULL);
}

/* Where an attribute is kept, or NULL if streams have none of that name. */
static CUstreamAttrValue *stream_attribute(struct stream *stream, CUstreamAttrID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &stream->policy_window;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &stream->sync_policy;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &stream->sync_domain_map;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &stream->sync_domain;
	default:
		return NULL;
	}
}

CALL_TWINS(cuStreamGetAttribute, _ptsz,
	   (CUstream handle, CUstreamAttrID id, CUstreamAttrValue *ret), (handle, id, ret))
{
	CUstreamAttrValue *attribute;
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (ret && id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		ret->priority = stream->priority;
		return CUDA_SUCCESS;
	}
	attribute = stream_attribute(stream, id);
	if (!ret || !attribute)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = *attribute;
	return CUDA_SUCCESS;
}

CALL_TWINS(cuStreamSetAttribute, _ptsz,
	   (CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value),
	   (handle, id, value))
{
	CUstreamAttrValue *attribute;
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (value && id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		stream->priority = value->priority;
		return CUDA_SUCCESS;
	}
	attribute = stream_attribute(stream, id);
	if (!value || !attribute)
		return CUDA_ERROR_INVALID_VALUE;
	*attribute = *value;
	return CUDA_SUCCESS;
}

CALL_TWINS(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (to, from))
{
	struct stream *source, *target;
	CUresult r;

	r = stream_find(from, dflt, &source);
	if (r == CUDA_SUCCESS)
		r = stream_find(to, dflt, &target);
	if (r != CUDA_SUCCESS)
		return r;
	target->policy_window = source->policy_window;
	target->sync_policy = source->sync_policy;
	target->sync_domain_map = source->sync_domain_map;
	target->sync_domain = source->sync_domain;
	target->priority = source->priority;
	return CUDA_SUCCESS;
}
