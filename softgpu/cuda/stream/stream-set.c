// SPDX-License-Identifier: Apache-2.0
/*
 * The streams of a context together: how they begin and end with it, and waiting for all of them.
 *
 * A context can end while other threads wait in it, for kernels that do not end, say. They are
 * counted, are let go because all work is given up, and only then the streams are taken away.
 */
#include <stdlib.h>
#include <time.h>

#include "softgpu/cuda/code/printed.h"
#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/memory/pool.h"
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/util/moment.h"

void set_enter(struct stream_set *set)
{
	atomic_fetch_add(&set->n_inside, 1);
	pthread_mutex_lock(&set->lock);
}

void set_leave(struct stream_set *set)
{
	atomic_fetch_sub(&set->n_inside, 1);
}

void context_hold(struct context *ctx)
{
	atomic_fetch_add(&ctx->streams->n_inside, 1);
}

void context_release(struct context *ctx)
{
	set_leave(ctx->streams);
}

void context_synchronized(struct context *ctx)
{
	printed_flush(ctx);
	pools_settle();
}

/* It is held for a few instructions, so a short spin mostly spares the sleep. */
static void streams_init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static CUresult streams_begin(struct context *ctx)
{
	struct stream_set *set;
	CUresult r;

	set = calloc(1, sizeof(*set));
	if (!set)
		return CUDA_ERROR_OUT_OF_MEMORY;
	set->ctx = ctx;
	streams_init_lock(&set->lock);
	pthread_cond_init(&set->threads_ended, NULL);

	ctx->streams = set;
	r = stream_new(ctx, CU_STREAM_DEFAULT, /* priority= */ 0, &set->legacy);
	if (r != CUDA_SUCCESS) {
		ctx->streams = NULL;
		free(set);
		return r;
	}
	set->legacy->is_legacy = true;
	return CUDA_SUCCESS;
}

/* Whatever is being done in the context now. Under the lock. */
static bool fences_collect_all(struct stream_set *set, struct stream_fences *fences)
{
	bool ok = true;

	for (struct stream *stream = set->streams; stream && ok; stream = stream->next)
		if (stream_is_busy(stream))
			ok = fences_add(fences, stream);
	if (!ok)
		fences_done(fences);
	return ok;
}

/* The streams are waited for one by one, in no particular order: their fences see to theirs. */
static CUresult streams_synchronize(struct context *ctx)
{
	struct stream_set *set = ctx->streams;
	struct stream_fences fences = { 0 };
	CUresult r;
	bool ok;

	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	r = capture_check_context(ctx);
	if (r != CUDA_SUCCESS)
		return r;

	set_enter(set);
	ok = fences_collect_all(set, &fences);
	if (ok)
		fences_wait(&fences);
	pthread_mutex_unlock(&set->lock);
	context_synchronized(ctx);
	set_leave(set);
	return ok ? context_error(ctx) : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * As long as pieces of work end, each within @most_ns, and without doing any of it in this thread:
 * it might not come to an end. Under the lock.
 */
static void stream_wait_patiently(struct stream *stream, uint64_t upto, uint64_t most_ns)
{
	struct timespec until = moment_in(most_ns);
	uint64_t done = stream->done;

	while (stream->done < upto && context_error(stream->set->ctx) == CUDA_SUCCESS) {
		if (stream->done != done) {
			done = stream->done;
			until = moment_in(most_ns);
		}
		if (done + 1 < stream->wanted)
			stream->wanted = done + 1;
		if (pthread_cond_clockwait(&stream->progress, &stream->set->lock, CLOCK_MONOTONIC,
					   &until) != 0 &&
		    stream->done == done)
			break;
	}
}

static void streams_drain(struct context *ctx, uint64_t most_ns)
{
	struct stream_set *set = ctx->streams;
	struct stream_fences fences = { 0 };

	if (context_in_callback)
		return;
	pthread_mutex_lock(&set->lock);
	if (fences_collect_all(set, &fences))
		for (size_t i = 0; i < fences.n; i++)
			stream_wait_patiently(fences.fence[i].stream, fences.fence[i].upto,
					      most_ns);
	fences_done(&fences);
	pthread_mutex_unlock(&set->lock);
	printed_flush(ctx);
}

/* Other threads may have been waiting for work that was given up. */
static void callers_wait(const struct stream_set *set)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	while (atomic_load(&set->n_inside) > 0)
		nanosleep(&pause, NULL);
}

/*
 * No call can reach the streams any more. Work that is left is passed over (stream_cancelled()),
 * but its parameters are released, so the threads end by themselves.
 */
static void streams_end(struct context *ctx)
{
	struct stream_set *set = ctx->streams;
	struct stream *stream;

	atomic_store(&set->ending, true);
	pthread_mutex_lock(&set->lock);
	for (;;) {
		for (stream = set->streams; stream && stream->closed; stream = stream->next)
			;
		if (!stream)
			break;
		pthread_mutex_unlock(&set->lock);
		stream_close(stream->handle);
		pthread_mutex_lock(&set->lock);
	}
	while (set->n_threads > 0)
		pthread_cond_wait(&set->threads_ended, &set->lock);
	pthread_mutex_unlock(&set->lock);
	callers_wait(set);

	while ((stream = set->gone)) {
		set->gone = stream->next;
		free(stream);
	}
	pthread_cond_destroy(&set->threads_ended);
	pthread_mutex_destroy(&set->lock);
	free(set);
	ctx->streams = NULL;
}

CONTEXT_PART(streams, .order = 50, .begin = streams_begin, .synchronize = streams_synchronize,
	     .drain = streams_drain, .end = streams_end);
