// SPDX-License-Identifier: Apache-2.0
/*
 * Memory operations of streams: wait until a word of memory has a value, write a word.
 *
 * All calls are batches; a single operation is a batch of one. A wait looks at memory now and
 * then, as whoever writes it (a kernel, the host, another process) tells nobody.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/cuda/stream/work.h"
#include "softgpu/mem/space.h"

/* As many as the driver takes in one call. */
#define BATCH_MAX 256

/* A wait looks again after 1 us, then after twice as long each time, up to this. */
#define LOOK_MAX_NS 256000

static bool is_64_bit(const CUstreamBatchMemOpParams *op)
{
	return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool wait_is_over(const CUstreamBatchMemOpParams *op)
{
	uint64_t have, want, mask = is_64_bit(op) ? UINT64_MAX : UINT32_MAX;
	uint64_t sign = (mask >> 1) + 1;

	if (is_64_bit(op))
		have = __atomic_load_n((const uint64_t *)op->waitValue.address, __ATOMIC_ACQUIRE);
	else
		have = __atomic_load_n((const uint32_t *)op->waitValue.address, __ATOMIC_ACQUIRE);
	want = op->waitValue.value64 & mask;

	switch (op->waitValue.flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return have == want;
	case CU_STREAM_WAIT_VALUE_AND:
		return have & want;
	case CU_STREAM_WAIT_VALUE_NOR:
		return ~(have | want) & mask;
	default:
		/* Greater or equal in cyclic order, so that counters may wrap. */
		return !((have - want) & sign);
	}
}

static CUresult wait_run(struct context *ctx, const CUstreamBatchMemOpParams *op)
{
	struct timespec pause = { .tv_nsec = 1000 };

	while (!wait_is_over(op)) {
		if (stream_cancelled(ctx))
			return CUDA_SUCCESS;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LOOK_MAX_NS)
			pause.tv_nsec *= 2;
	}
	return CUDA_SUCCESS;
}

static CUresult write_run(const CUstreamBatchMemOpParams *op)
{
	if (is_64_bit(op))
		__atomic_store_n((uint64_t *)op->writeValue.address, op->writeValue.value64,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)op->writeValue.address, op->writeValue.value,
				 __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static CUresult op_run(struct context *ctx, const CUstreamBatchMemOpParams *op)
{
	bool wait = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		    op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;

	/* Barriers and flushes: memory here is coherent. */
	if (op->operation == CU_STREAM_MEM_OP_BARRIER ||
	    op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
		return CUDA_SUCCESS;
	/* It may have been freed since it was queued. */
	if (!space_ok(op->waitValue.address, is_64_bit(op) ? 8 : 4, !wait))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return wait ? wait_run(ctx, op) : write_run(op);
}

static CUresult batch_run(struct context *ctx, void *params)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch = params;
	CUresult r = CUDA_SUCCESS;

	for (unsigned int i = 0; i < batch->count && r == CUDA_SUCCESS; i++)
		r = op_run(ctx, &batch->paramArray[i]);
	return r;
}

static CUresult batch_copy(void *to, const void *from)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *source = from;
	CUDA_BATCH_MEM_OP_NODE_PARAMS *batch = to;
	size_t n_bytes = source->count * sizeof(*batch->paramArray);

	batch->paramArray = malloc(n_bytes + 1);
	if (!batch->paramArray)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(batch->paramArray, source->paramArray, n_bytes);
	return CUDA_SUCCESS;
}

static void batch_release(void *params)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS *batch = params;

	free(batch->paramArray);
}

const struct work_class work_batch_mem_op = {
	.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
	.size = sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS),
	.run = batch_run,
	.copy = batch_copy,
	.release = batch_release,
};

static bool op_is_valid(const CUstreamBatchMemOpParams *op)
{
	bool write = false;

	switch (op->operation) {
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return op->flushRemoteWrites.flags == 0;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (op->writeValue.flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
			return false;
		write = true;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if ((op->waitValue.flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) >
		    CU_STREAM_WAIT_VALUE_NOR)
			return false;
		break;
	default:
		return false;
	}
	return op->waitValue.address % (is_64_bit(op) ? 8 : 4) == 0 &&
	       space_ok(op->waitValue.address, is_64_bit(op) ? 8 : 4, write);
}

bool batch_mem_op_is_valid(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	if (batch->count > BATCH_MAX || (batch->count > 0 && !batch->paramArray) ||
	    batch->flags != 0)
		return false;
	for (unsigned int i = 0; i < batch->count; i++)
		if (!op_is_valid(&batch->paramArray[i]))
			return false;
	return true;
}

CALL_TWINS(cuStreamBatchMemOp_v2, _ptsz,
	   (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *ops, unsigned int flags),
	   (handle, count, ops, flags))
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = { .count = count, .paramArray = ops, .flags = flags };
	struct stream *stream;
	CUresult r;

	r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (!batch_mem_op_is_valid(&batch))
		return CUDA_ERROR_INVALID_VALUE;
	batch.ctx = stream_context(stream)->handle;
	return stream_submit(stream, &work_batch_mem_op, &batch);
}

CALL_TWINS(cuStreamBatchMemOp, _ptsz,
	   (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *ops, unsigned int flags),
	   (handle, count, ops, flags))
{
	return twin_cuStreamBatchMemOp_v2(dflt, handle, count, ops, flags);
}

/* One call for one operation, in its first and its second version. */
#define SINGLE(name, member, op, type)                                                             \
	CALL_TWINS(name##_v2, _ptsz,                                                               \
		   (CUstream handle, CUdeviceptr addr, type value, unsigned int flags),            \
		   (handle, addr, value, flags))                                                   \
	{                                                                                          \
		CUstreamBatchMemOpParams single = { .operation = op };                             \
                                                                                                   \
		single.member.address = addr;                                                      \
		single.member.value64 = value;                                                     \
		single.member.flags = flags;                                                       \
		return twin_cuStreamBatchMemOp_v2(dflt, handle, 1, &single, 0);                    \
	}                                                                                          \
	CALL_TWINS(name, _ptsz,                                                                    \
		   (CUstream handle, CUdeviceptr addr, type value, unsigned int flags),            \
		   (handle, addr, value, flags))                                                   \
	{                                                                                          \
		return twin_##name##_v2(dflt, handle, addr, value, flags);                         \
	}

SINGLE(cuStreamWaitValue32, waitValue, CU_STREAM_MEM_OP_WAIT_VALUE_32, cuuint32_t)
SINGLE(cuStreamWaitValue64, waitValue, CU_STREAM_MEM_OP_WAIT_VALUE_64, cuuint64_t)
SINGLE(cuStreamWriteValue32, writeValue, CU_STREAM_MEM_OP_WRITE_VALUE_32, cuuint32_t)
SINGLE(cuStreamWriteValue64, writeValue, CU_STREAM_MEM_OP_WRITE_VALUE_64, cuuint64_t)
