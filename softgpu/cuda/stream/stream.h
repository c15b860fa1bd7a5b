/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: queues of work, each emptied in order by a thread of its own that starts with the
 * first piece of work.
 *
 * Work is a class (what to do) and parameters (with what). Parameters of the classes that graphs
 * know are the public node parameters of the same type (CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
 * ...), so one and the same piece of work is run by a stream, recorded by a capture and kept in a
 * graph node, and a caller of stream_submit() need not know about captures at all.
 *
 * Order between streams, as the driver has it: work on the legacy stream waits for what was
 * submitted before it to every blocking stream of the context, and work on a blocking stream waits
 * for what was submitted before it to the legacy stream. Streams with CU_STREAM_NON_BLOCKING take
 * no part in that. The per-thread streams are blocking ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/cuda/core.h"

struct stream;

/* Which stream a call means by NULL: plain names the legacy stream, _ptsz and _ptds the thread's. */
enum stream_default {
	STREAM_DEFAULT_LEGACY,
	STREAM_DEFAULT_PER_THREAD,
};

/**
 * struct work_class - a kind of work
 * @type:	graph node that it becomes in a capture, or WORK_NO_NODE if it cannot be captured
 * @size:	bytes of its parameters; streams and graphs copy that many
 * @run:	does it, on the stream's thread or in a waiting caller; an error of it becomes the
 *		context's sticky error
 * @copy:	makes @to, a byte copy of @from, independent of it; NULL if a byte copy will do
 * @release:	gives back what @copy took, whether it ran or not; NULL if there is nothing
 * @always:	run even when the context has failed (a host function with its status, an event)
 * @brief:	run under the queue's lock: who sees its effect sees that the stream has passed it
 */
struct work_class {
	int type;
	size_t size;
	CUresult (*run)(struct context *ctx, void *params);
	CUresult (*copy)(void *to, const void *from);
	void (*release)(void *params);
	bool always;
	bool brief;
};

#define WORK_NO_NODE (-1)

/* Parameters: CUDA_MEMCPY3D (copy.c) and CUDA_MEMSET_NODE_PARAMS (memset.c). */
extern const struct work_class work_memcpy;
extern const struct work_class work_memset;

/**
 * stream_find() - the stream that a handle means in the calling thread
 * @handle:	NULL, CU_STREAM_LEGACY (1), CU_STREAM_PER_THREAD (2) or a created stream
 * @dflt:	what NULL means
 *
 * NULL, 1 and 2 mean a stream of the current context; a created stream may be of any context.
 * The caller need not give the stream back: it lasts until it is destroyed by the program.
 */
CUresult stream_find(CUstream handle, enum stream_default dflt, struct stream **ret);

/** stream_find_with_context() - the same for calls that need a current context in any case */
static inline CUresult stream_find_with_context(CUstream handle, enum stream_default dflt,
						struct stream **ret)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	return r != CUDA_SUCCESS ? r : stream_find(handle, dflt, ret);
}

struct context *stream_context(const struct stream *stream);

/** stream_priority() - 0, or less for what is more urgent */
int stream_priority(const struct stream *stream);

/**
 * stream_submit() - queue work and return at once
 *
 * Copies @params. While the stream is capturing, adds a node to the graph instead; work that no
 * graph can hold fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and invalidates the capture.
 * Blocks while 1,024 pieces of work are pending, as hardware queues do.
 */
CUresult stream_submit(struct stream *stream, const struct work_class *class, const void *params);

/** stream_enqueue() - stream_find() and stream_submit() in one */
CUresult stream_enqueue(CUstream handle, enum stream_default dflt, const struct work_class *class,
			const void *params);

/**
 * stream_run() - do work in the stream's order and wait until it is done
 *
 * For the synchronous calls (cuMemcpyHtoD, ...). Runs in the calling thread where the order allows
 * it. Fails where a capture of this or another thread forbids a synchronous call.
 */
CUresult stream_run(struct stream *stream, const struct work_class *class, const void *params);

/** stream_synchronize() - wait for everything submitted so far; the context's error, if it has one */
CUresult stream_synchronize(struct stream *stream);

/**
 * stream_capture_check() - may the calling thread make a call that a capture forbids?
 *
 * For calls that are unsafe while a capture goes on (cuMemAlloc, cuMemFree, synchronous copies,
 * ...). CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, with the captures concerned invalidated, if a
 * capture in global mode goes on anywhere or one in thread-local mode was begun by this thread,
 * unless the thread has chosen the relaxed mode (cuThreadExchangeStreamCaptureMode).
 */
CUresult stream_capture_check(struct context *ctx);

bool stream_is_capturing(struct stream *stream);

/* cuMemAllocAsync and cuMemFreeAsync on a capturing stream: a memory node of the graph. */
CUresult stream_capture_alloc(struct stream *stream, const struct device *device, size_t bytes,
			      CUdeviceptr *ret);
CUresult stream_capture_free(struct stream *stream, CUdeviceptr dptr);

/*
 * CALL_TWINS(cuStreamQuery, _ptsz, (CUstream stream), (stream))
 * {
 *	... dflt ...
 * }
 *
 * defines a call that exists twice: under its plain name, where NULL means the legacy stream, and
 * with a suffix, where it means the thread's. The body sees which by @dflt.
 */
#define CALL_TWINS_LIST(...) __VA_ARGS__
#define CALL_TWINS(name, suffix, parameters, arguments)                                            \
	static CUresult twin_##name(enum stream_default dflt, CALL_TWINS_LIST parameters);         \
	CALL(name, CALL_TWINS_LIST parameters)                                                     \
	{                                                                                          \
		return twin_##name(STREAM_DEFAULT_LEGACY, CALL_TWINS_LIST arguments);              \
	}                                                                                          \
	CALL(name##suffix, CALL_TWINS_LIST parameters)                                             \
	{                                                                                          \
		return twin_##name(STREAM_DEFAULT_PER_THREAD, CALL_TWINS_LIST arguments);          \
	}                                                                                          \
	static CUresult twin_##name(enum stream_default dflt, CALL_TWINS_LIST parameters)
