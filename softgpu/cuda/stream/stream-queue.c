// SPDX-License-Identifier: Apache-2.0
/*
 * The queues of streams and the threads that empty them.
 *
 * A thread starts with the first work of its stream and ends with it. A piece of work costs the
 * submitter one lock and the thread one lock; the thread is woken only when it sleeps, and a
 * waiter only by the work that it waits for. Nothing here knows what work does.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/code/printed.h"
#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/engine/engine.h"
#include "softgpu/util/moment.h"

/* As many as a hardware queue holds. */
#define PENDING_MAX 1024

#define THREAD_STACK_BYTES (1 << 20)

/* A thread naps for so long, or until so much waits. */
#define NAP_NS	  50000
#define NAP_WORKS 8

static _Atomic uint64_t n_streams_ever;
static _Thread_local struct stream_moment moment;
/* A stream's thread, or one that does work while it waits. */
static _Thread_local bool works_already;

struct stream_moment *stream_moment(void)
{
	return &moment;
}

struct context *stream_context(const struct stream *stream)
{
	return stream->set->ctx;
}

int stream_priority(const struct stream *stream)
{
	return stream->priority;
}

bool stream_cancelled(const struct context *ctx)
{
	return context_error(ctx) != CUDA_SUCCESS ||
	       atomic_load_explicit(&ctx->streams->ending, memory_order_relaxed);
}

static bool stream_is_blocking(const struct stream *stream)
{
	return !stream->is_legacy && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void op_free(struct stream_op *op)
{
	if (op->params != op->space)
		free(op->params);
	free(op);
}

/* Under the lock. */
static void stream_unref(struct stream *stream)
{
	struct stream_set *set = stream->set;
	struct stream_op *op;

	if (--stream->n_references > 0)
		return;

	for (struct stream **at = &set->streams; *at; at = &(*at)->next) {
		if (*at == stream) {
			*at = stream->next;
			break;
		}
	}
	while ((op = stream->spare)) {
		stream->spare = op->next;
		op_free(op);
	}
	pthread_cond_destroy(&stream->work);
	pthread_cond_destroy(&stream->progress);
	stream->next = set->gone;
	set->gone = stream;
}

static void stream_run_first(struct stream *stream);

/* Once is enough, though it may be long until the thread runs. */
static void stream_wake(struct stream *stream)
{
	stream->rest = STREAM_AWAKE;
	pthread_cond_signal(&stream->work);
}

/* Who waits does not leave it to a nap. A thread that rests sleeps on if there is nothing to do. */
static void stream_poke(struct stream *stream)
{
	if (stream->rest != STREAM_AWAKE && (stream->first || stream->closed))
		stream_wake(stream);
}

/* There is new work. Who naps is left to it a little longer, unless there is much. */
static void stream_tell(struct stream *stream)
{
	if (stream->rest == STREAM_ASLEEP ||
	    (stream->rest == STREAM_NAPS && stream->submitted - stream->done >= NAP_WORKS))
		stream_wake(stream);
}

/* Is there as much stack left here as a stream's thread has? */
static bool stack_is_large(void)
{
	static _Thread_local uintptr_t lowest, highest;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attr;
	size_t size;
	void *start;

	if (highest == 0) {
		highest = 1;
		if (pthread_getattr_np(pthread_self(), &attr) == 0) {
			if (pthread_attr_getstack(&attr, &start, &size) == 0) {
				lowest = (uintptr_t)start;
				highest = lowest + size;
			}
			pthread_attr_destroy(&attr);
		}
	}
	return here < highest && here - lowest > THREAD_STACK_BYTES;
}

/*
 * May a thread that waits for @stream do its next work itself? To wake the stream's thread and to
 * be woken by it costs tens of microseconds, much more than a small kernel. What runs code of the
 * program, or waits for something else, is left to the stream's thread.
 */
static bool may_run_here(const struct stream *stream)
{
	if (works_already || !stream->first || stream->running)
		return false;
	switch (stream->first->class->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return stack_is_large();
	default:
		return false;
	}
}

/* Under the lock, which is given up meanwhile. */
static void stream_wait_upto(struct stream *stream, uint64_t upto)
{
	while (stream->done < upto) {
		if (may_run_here(stream)) {
			works_already = true;
			stream_run_first(stream);
			works_already = false;
			stream->bypassed = true;
			continue;
		}
		stream_poke(stream);
		if (upto < stream->wanted)
			stream->wanted = upto;
		pthread_cond_wait(&stream->progress, &stream->set->lock);
	}
	stream_poke(stream);
}

void fences_done(struct stream_fences *fences)
{
	for (size_t i = 0; i < fences->n; i++)
		stream_unref(fences->fence[i].stream);
	free(fences->fence);
	*fences = (struct stream_fences){ 0 };
}

bool fences_add(struct stream_fences *fences, struct stream *stream)
{
	struct stream_fence *fence;

	fence = realloc(fences->fence, (fences->n + 1) * sizeof(*fence));
	if (!fence)
		return false;
	stream->n_references++;
	fences->fence = fence;
	fence[fences->n++] = (struct stream_fence){ stream, stream->submitted };
	return true;
}

/* What new work on @stream has to wait for in other streams, by the rules of the legacy stream. */
static bool fences_collect(struct stream *stream, struct stream_fences *fences)
{
	struct stream *legacy = stream->set->legacy;
	bool ok = true;

	if (stream->is_legacy) {
		for (struct stream *other = stream->set->streams; other && ok; other = other->next)
			if (stream_is_blocking(other) && stream_is_busy(other))
				ok = fences_add(fences, other);
	} else if (stream_is_blocking(stream) && stream_is_busy(legacy)) {
		ok = fences_add(fences, legacy);
	}
	if (!ok)
		fences_done(fences);
	return ok;
}

uint64_t fences_wait(struct stream_fences *fences)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < fences->n; i++) {
		stream_wait_upto(fences->fence[i].stream, fences->fence[i].upto);
		if (fences->fence[i].stream->end_ns > end_ns)
			end_ns = fences->fence[i].stream->end_ns;
	}
	fences_done(fences);
	return end_ns;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Does the work of @class. Without the lock unless it is brief; the thread's moment is set. */
static CUresult work_do(struct context *ctx, const struct work_class *class, void *params)
{
	CUresult r = CUDA_SUCCESS;

	moment.end_ns = 0;
	if (class->always || !stream_cancelled(ctx)) {
		r = class->run(ctx, params);
		if (r != CUDA_SUCCESS) {
			/* Who is told of the error has the kernel's last words. */
			printed_flush(ctx);
			context_fail(ctx, r);
		}
	}
	if (class->release)
		class->release(params);
	if (moment.end_ns == 0)
		moment.end_ns = engine_now_ns();
	return r;
}

/* Number done + 1 of @stream has been run, by this thread. */
static void stream_progress(struct stream *stream)
{
	stream->end_ns = later_of(stream->end_ns, moment.end_ns);
	stream->running = false;
	stream->done++;
	if (stream->done >= stream->wanted) {
		stream->wanted = UINT64_MAX;
		pthread_cond_broadcast(&stream->progress);
	}
}

static void stream_run_first(struct stream *stream)
{
	struct stream_op *op = stream->first;
	bool brief;

	stream->running = true;
	moment.ready_ns = later_of(op->submitted_ns, fences_wait(&op->after));
	moment.ready_ns = later_of(moment.ready_ns, stream->end_ns);
	moment.more = op->next;
	moment.priority = stream->priority;

	stream->first = op->next;
	if (!stream->first)
		stream->last = &stream->first;
	brief = op->class->brief;
	if (!brief)
		pthread_mutex_unlock(&stream->set->lock);
	work_do(stream->set->ctx, op->class, op->params);
	if (op->params != op->space) {
		free(op->params);
		op->params = op->space;
	}
	if (!brief)
		pthread_mutex_lock(&stream->set->lock);

	op->next = stream->spare;
	stream->spare = op;
	stream_progress(stream);
}

/*
 * The thread has nothing to do. Where a caller has done its work since it last looked, the program
 * launches and waits by turns: to wake the thread each time would be most of what that costs, and
 * in vain. Then it naps: a little work does not wake it, but it looks by itself, soon enough for
 * what nobody waits for. The place of work in device time is where it was submitted.
 */
static void stream_rest(struct stream *stream)
{
	pthread_mutex_t *lock = &stream->set->lock;
	struct timespec until;

	if (stream->bypassed) {
		stream->bypassed = false;
		until = moment_in(NAP_NS);
		stream->rest = STREAM_NAPS;
		pthread_cond_clockwait(&stream->work, lock, CLOCK_MONOTONIC, &until);
	} else {
		stream->rest = STREAM_ASLEEP;
		pthread_cond_wait(&stream->work, lock);
	}
	stream->rest = STREAM_AWAKE;
}

static void *stream_thread(void *arg)
{
	struct stream *stream = arg;
	struct stream_set *set = stream->set;

	works_already = true;
	pthread_mutex_lock(&set->lock);
	for (;;) {
		if (stream->first && !stream->running) {
			stream_run_first(stream);
		} else if (stream->closed && !stream->running) {
			break;
		} else {
			stream_rest(stream);
		}
	}
	stream_unref(stream);
	set->n_threads--;
	pthread_cond_broadcast(&set->threads_ended);
	pthread_mutex_unlock(&set->lock);
	return NULL;
}

/* Signals of the program are for the program's threads. */
static bool stream_start_thread(struct stream *stream)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, stream_thread, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0)
		return false;

	stream->has_thread = true;
	stream->n_references++;
	stream->set->n_threads++;
	return true;
}

static struct stream_op *op_new(struct stream *stream, const struct work_class *class)
{
	struct stream_op *op = stream->spare;

	if (op) {
		stream->spare = op->next;
	} else {
		op = malloc(sizeof(*op));
		if (!op)
			return NULL;
	}

	op->next = NULL;
	op->class = class;
	op->submitted_ns = engine_now_ns();
	op->after = (struct stream_fences){ 0 };
	op->params = class->size <= sizeof(op->space) ? op->space : malloc(class->size);
	if (!op->params) {
		free(op);
		return NULL;
	}
	return op;
}

static CUresult op_fill(struct stream_op *op, const void *params)
{
	memcpy(op->params, params, op->class->size);
	return op->class->copy ? op->class->copy(op->params, params) : CUDA_SUCCESS;
}

static bool stream_is_full(const struct stream *stream)
{
	return stream->submitted - stream->done >= PENDING_MAX;
}

/* Under the lock. */
static CUresult stream_append(struct stream *stream, const struct work_class *class,
			      const void *params)
{
	struct stream_op *op;
	CUresult r;

	if (stream->closed)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!stream->has_thread && !stream_start_thread(stream))
		return CUDA_ERROR_OUT_OF_MEMORY;

	op = op_new(stream, class);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = op_fill(op, params);
	if (r == CUDA_SUCCESS && !fences_collect(stream, &op->after)) {
		/* What was not copied is still the caller's. */
		if (class->copy && class->release)
			class->release(op->params);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		op_free(op);
		return r;
	}

	*stream->last = op;
	stream->last = &op->next;
	stream->submitted++;
	stream_tell(stream);
	return CUDA_SUCCESS;
}

CUresult stream_put(struct stream *stream, const struct work_class *class, const void *params)
{
	struct stream_set *set = stream->set;
	bool waits;
	CUresult r;

	pthread_mutex_lock(&set->lock);
	waits = stream_is_full(stream);
	if (waits) {
		atomic_fetch_add(&set->n_inside, 1);
		stream->n_references++;
		/* Half at once: to be woken for each piece would cost more than the work. */
		stream_wait_upto(stream, stream->submitted - PENDING_MAX / 2);
	}
	r = stream_append(stream, class, params);
	if (waits)
		stream_unref(stream);
	pthread_mutex_unlock(&set->lock);
	if (waits)
		set_leave(set);
	return r;
}

CUresult stream_submit(struct stream *stream, const struct work_class *class, const void *params)
{
	bool taken;
	CUresult r;

	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (capture_any()) {
		r = capture_submit(stream, class, params, &taken);
		if (r != CUDA_SUCCESS || taken)
			return r;
	}
	return stream_put(stream, class, params);
}

CUresult stream_enqueue(CUstream handle, enum stream_default dflt, const struct work_class *class,
			const void *params)
{
	struct stream *stream;
	CUresult r;

	r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	return stream_submit(stream, class, params);
}

/* Does work in the calling thread: nothing is queued before it. Under the lock. */
static CUresult stream_run_here(struct stream *stream, const struct work_class *class,
				const void *params)
{
	_Alignas(16) unsigned char copy[STREAM_OP_BYTES];
	struct stream_fences fences = { 0 };
	CUresult r;

	memcpy(copy, params, class->size);
	if (!fences_collect(stream, &fences))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = class->copy ? class->copy(copy, params) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS) {
		fences_done(&fences);
		return r;
	}

	stream->n_references++;
	stream->submitted++;
	stream->running = true;
	fences_wait(&fences);
	moment =
		(struct stream_moment){ .ready_ns = engine_now_ns(), .priority = stream->priority };
	pthread_mutex_unlock(&stream->set->lock);
	r = work_do(stream->set->ctx, class, copy);
	pthread_mutex_lock(&stream->set->lock);
	stream_progress(stream);
	stream_poke(stream);
	stream_unref(stream);
	return r;
}

CUresult stream_run(struct stream *stream, const struct work_class *class, const void *params)
{
	struct stream_set *set = stream->set;
	struct context *ctx = set->ctx;
	CUresult r;

	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	r = capture_check_synchronous(stream);
	if (r == CUDA_SUCCESS)
		r = stream_capture_check(ctx);
	if (r != CUDA_SUCCESS)
		return r;

	set_enter(set);
	if (stream->closed) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else if (!stream_is_busy(stream) && class->size <= STREAM_OP_BYTES) {
		r = stream_run_here(stream, class, params);
	} else {
		r = stream_append(stream, class, params);
		if (r == CUDA_SUCCESS) {
			stream->n_references++;
			stream_wait_upto(stream, stream->submitted);
			stream_unref(stream);
		}
	}
	pthread_mutex_unlock(&set->lock);
	printed_flush(ctx);
	set_leave(set);
	return r != CUDA_SUCCESS ? r : context_error(ctx);
}

/* Waits for a stream and what orders it. Under the lock. */
static CUresult stream_drain(struct stream *stream)
{
	struct stream_fences fences = { 0 };

	if (stream->is_legacy && !fences_collect(stream, &fences))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stream_is_busy(stream) && !fences_add(&fences, stream)) {
		fences_done(&fences);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	fences_wait(&fences);
	return CUDA_SUCCESS;
}

CUresult stream_synchronize(struct stream *stream)
{
	struct context *ctx = stream->set->ctx;
	struct stream_set *set = stream->set;
	CUresult r;

	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	r = capture_check_synchronous(stream);
	if (r != CUDA_SUCCESS)
		return r;

	set_enter(set);
	r = stream_drain(stream);
	pthread_mutex_unlock(&set->lock);
	context_synchronized(ctx);
	set_leave(set);
	return r != CUDA_SUCCESS ? r : context_error(ctx);
}

bool stream_idle(struct stream *stream)
{
	bool busy;

	pthread_mutex_lock(&stream->set->lock);
	busy = stream_is_busy(stream);
	if (stream->is_legacy)
		for (struct stream *other = stream->set->streams; other; other = other->next)
			busy |= stream_is_blocking(other) && stream_is_busy(other);
	pthread_mutex_unlock(&stream->set->lock);
	return !busy;
}

/* A place for a stream: that of one that is gone, all but its set cleared, or a new one. */
static struct stream *stream_place(struct stream_set *set)
{
	struct stream *stream = set->gone;

	if (stream) {
		set->gone = stream->next;
		memset(&stream->handle, 0, sizeof(*stream) - offsetof(struct stream, handle));
		return stream;
	}
	stream = calloc(1, sizeof(*stream));
	if (stream)
		stream->set = set;
	return stream;
}

/* Under the lock: a call that has found the stream which was here before sees it whole. */
static struct stream *stream_make(struct stream_set *set, unsigned int flags, int priority)
{
	struct stream *stream = stream_place(set);

	if (!stream)
		return NULL;
	stream->id = atomic_fetch_add(&n_streams_ever, 1) + 1;
	stream->flags = flags;
	stream->priority = priority;
	stream->n_references = 1;
	stream->last = &stream->first;
	stream->wanted = UINT64_MAX;
	stream->sync_policy.syncPolicy = CU_SYNC_POLICY_AUTO;
	stream->sync_domain_map.memSyncDomainMap.remote = 1;
	pthread_cond_init(&stream->work, NULL);
	pthread_cond_init(&stream->progress, NULL);
	stream->next = set->streams;
	set->streams = stream;

	stream->handle = handle_new(CUstream, HANDLE_STREAM, stream);
	if (stream->handle)
		return stream;
	stream->closed = true;
	stream_unref(stream);
	return NULL;
}

CUresult stream_new(struct context *ctx, unsigned int flags, int priority, struct stream **ret)
{
	struct stream_set *set = ctx->streams;
	struct stream *stream;

	pthread_mutex_lock(&set->lock);
	stream = stream_make(set, flags, priority);
	pthread_mutex_unlock(&set->lock);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = stream;
	return CUDA_SUCCESS;
}

CUresult stream_close(CUstream handle)
{
	struct stream *stream = handle_remove(HANDLE_STREAM, handle);
	struct stream_set *set;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;

	capture_leave(stream);
	set = stream->set;
	pthread_mutex_lock(&set->lock);
	stream->closed = true;
	stream_poke(stream);
	stream_unref(stream);
	pthread_mutex_unlock(&set->lock);
	return CUDA_SUCCESS;
}
