// SPDX-License-Identifier: Apache-2.0
/* Allocating and freeing in the order of a stream: cuMemAllocAsync() and cuMemFreeAsync(). */
#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/memory/pool.h"
#include "softgpu/cuda/stream/stream.h"

static CUresult alloc_on(struct stream *stream, struct pool *pool, size_t bytes, CUdeviceptr *ret)
{
	struct memory *memory;
	CUresult r;

	if (pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream_is_capturing(stream))
		return stream_capture_alloc(stream, pool->device, bytes, ret);

	r = pool_alloc(pool, bytes, &memory);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		/* Some may come free when the stream has done what it was given. */
		r = stream_synchronize(stream);
		if (r == CUDA_SUCCESS)
			r = pool_alloc(pool, bytes, &memory);
	}
	if (r != CUDA_SUCCESS)
		return r;

	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}

static CUresult alloc_begin(CUdeviceptr *ret, size_t bytes, CUstream handle,
			    enum stream_default dflt, struct stream **ret_stream)
{
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = stream_find(handle, dflt, ret_stream);
	return r != CUDA_SUCCESS ? r : context_error(stream_context(*ret_stream));
}

CALL_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * ret, size_t bytes, CUstream handle),
	   (ret, bytes, handle))
{
	struct stream *stream;
	struct pool *pool;
	CUresult r;

	r = alloc_begin(ret, bytes, handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = pool_current(stream_context(stream)->device, &pool);
	return r != CUDA_SUCCESS ? r : alloc_on(stream, pool, bytes, ret);
}

CALL_TWINS(cuMemAllocFromPoolAsync, _ptsz,
	   (CUdeviceptr * ret, size_t bytes, CUmemoryPool pool_handle, CUstream handle),
	   (ret, bytes, pool_handle, handle))
{
	struct stream *stream;
	struct pool *pool;
	CUresult r;

	r = alloc_begin(ret, bytes, handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = pool_find(pool_handle, &pool);
	return r != CUDA_SUCCESS ? r : alloc_on(stream, pool, bytes, ret);
}

struct free_work {
	struct memory *memory;
};

/* All happens on release, so that memory is freed even if the stream is given up before. */
static CUresult free_run(_unused_ struct context *ctx, _unused_ void *params)
{
	return CUDA_SUCCESS;
}

static void free_release(void *params)
{
	struct free_work *work = params;

	work->memory->end(work->memory);
}

static const struct work_class work_free = {
	.type = WORK_NO_NODE,
	.size = sizeof(struct free_work),
	.run = free_run,
	.release = free_release,
	.always = true,
};

CALL_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream handle), (dptr, handle))
{
	struct stream *stream;
	struct free_work work;
	CUresult r = stream_find_with_context(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (stream_is_capturing(stream))
		return stream_capture_free(stream, dptr);

	if (graph_memory_exists(dptr))
		return graph_memory_free_async(dptr, stream);

	work.memory = memory_claim(dptr, 1U << MEMORY_POOL | 1U << MEMORY_POOL_IMPORT);
	if (!work.memory)
		return CUDA_ERROR_INVALID_VALUE;

	/*
	 * Without memory for the queue the work may have been released, so the claim stays. Any
	 * other refusal comes before.
	 */
	r = stream_submit(stream, &work_free, &work);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY)
		work.memory->is_freed = false;
	return r;
}
