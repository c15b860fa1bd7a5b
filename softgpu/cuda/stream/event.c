// SPDX-License-Identifier: Apache-2.0
/*
 * Events: points in streams, and the calls on them. Times are the engine's.
 */
#include <stdlib.h>

#include "softgpu/cuda/stream/event-point.h"
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/cuda/stream/work.h"
#include "softgpu/util/futex.h"

#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* A waiter looks up this often whether its context has failed or ends. */
static const struct timespec look_up = { .tv_nsec = 20000000 };

struct event_set {
	pthread_mutex_t lock;
	struct event *first;
};

static struct event_point *point_new(void)
{
	struct event_point *point = calloc(1, sizeof(*point));

	if (point)
		point->n_references = 1;
	return point;
}

void event_point_ref(struct event_point *point)
{
	atomic_fetch_add(&point->n_references, 1);
}

void event_point_unref(struct event_point *point)
{
	if (!point || atomic_fetch_sub(&point->n_references, 1) > 1)
		return;
	event_shared_unref(point->shared);
	free(point);
}

void event_point_reach(struct event_point *point, uint64_t time_ns)
{
	if (atomic_load(&point->reached))
		return;
	point->time_ns = time_ns;
	if (point->shared)
		event_shared_reach(point, time_ns);
	atomic_store(&point->reached, 1);
	futex_wake_all(&point->reached);
}

bool event_point_is_reached(const struct event_point *point)
{
	if (atomic_load(&point->reached))
		return true;
	return point->shared && event_shared_is_reached(point);
}

uint64_t event_point_time(const struct event_point *point)
{
	return atomic_load(&point->reached) || !point->shared
		       ? point->time_ns
		       : atomic_load(&point->shared->words->time_ns);
}

void event_point_wait(struct event_point *point, const struct context *waiter)
{
	while (!event_point_is_reached(point)) {
		if (waiter && stream_cancelled(waiter))
			return;
		if (point->shared)
			event_shared_wait(point);
		else
			futex_wait(&point->reached, 0, &look_up);
	}
}

/* For an event that processes share, the latest point is whatever number they have come to. */
static struct event_point *shared_point(struct event *event)
{
	uint64_t number = atomic_load(&event->shared->words->recorded);
	struct event_point *point = number > 0 ? point_new() : NULL;

	if (!point)
		return NULL;
	atomic_fetch_add(&event->shared->n_references, 1);
	point->shared = event->shared;
	point->number = number;
	return point;
}

struct event_point *event_latest(struct event *event)
{
	struct event_point *point;

	if (event->shared)
		return shared_point(event);
	pthread_mutex_lock(&event->lock);
	point = event->latest;
	if (point)
		event_point_ref(point);
	pthread_mutex_unlock(&event->lock);
	return point;
}

CUresult event_record_begin(struct event *event, struct event_point **ret)
{
	struct event_point *point, *before = NULL;

	if (event->shared) {
		atomic_store(&event->shared->words->recorder, getpid());
		atomic_fetch_add(&event->shared->words->recorded, 1);
		point = shared_point(event);
		if (!point)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*ret = point;
		return CUDA_SUCCESS;
	}

	point = point_new();
	if (!point)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event_point_ref(point);
	pthread_mutex_lock(&event->lock);
	before = event->latest;
	event->latest = point;
	pthread_mutex_unlock(&event->lock);
	event_point_unref(before);
	*ret = point;
	return CUDA_SUCCESS;
}

static CUresult record_run(_unused_ struct context *ctx, void *params)
{
	struct event_work *work = params;
	struct stream_moment *moment = stream_moment();

	moment->end_ns = moment->ready_ns;
	event_point_reach(work->point, moment->ready_ns);
	return CUDA_SUCCESS;
}

static CUresult wait_run(struct context *ctx, void *params)
{
	struct event_work *work = params;
	struct stream_moment *moment = stream_moment();
	uint64_t time_ns;

	event_point_wait(work->point, ctx);
	time_ns = event_point_time(work->point);
	moment->end_ns = time_ns > moment->ready_ns ? time_ns : moment->ready_ns;
	return CUDA_SUCCESS;
}

static CUresult work_copy(void *to, _unused_ const void *from)
{
	struct event_work *work = to;

	event_point_ref(work->point);
	return CUDA_SUCCESS;
}

/* Work that was dropped must not leave anybody waiting. */
static void record_release(void *params)
{
	struct event_work *work = params;

	event_point_reach(work->point, 0);
	event_point_unref(work->point);
}

static void wait_release(void *params)
{
	struct event_work *work = params;

	event_point_unref(work->point);
}

const struct work_class work_event_record = {
	.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
	.brief = true,
	.size = sizeof(struct event_work),
	.run = record_run,
	.copy = work_copy,
	.release = record_release,
	.always = true,
};

const struct work_class work_event_wait = {
	.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
	.size = sizeof(struct event_work),
	.run = wait_run,
	.copy = work_copy,
	.release = wait_release,
};

CUresult event_find(CUevent handle, struct event **ret)
{
	return FIND(handle_get(HANDLE_EVENT, handle), CUDA_ERROR_INVALID_HANDLE, ret);
}

struct context *event_context(const struct event *event)
{
	return event->ctx;
}

static void event_free(struct event *event)
{
	event_point_unref(event->latest);
	capture_mark_clear(&event->mark);
	event_shared_unref(event->shared);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

CUresult event_new(struct context *ctx, unsigned int flags, struct event_shared *shared,
		   CUevent *ret)
{
	struct event_set *set = ctx->events;
	struct event *event;

	event = calloc(1, sizeof(*event));
	if (!event) {
		event_shared_unref(shared);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->ctx = ctx;
	event->flags = flags;
	event->shared = shared;
	pthread_mutex_init(&event->lock, NULL);
	event->handle = handle_new(CUevent, HANDLE_EVENT, event);
	if (!event->handle) {
		event_free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	pthread_mutex_lock(&set->lock);
	event->next = set->first;
	event->at = &set->first;
	if (event->next)
		event->next->at = &event->next;
	set->first = event;
	pthread_mutex_unlock(&set->lock);
	*ret = event->handle;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent handle)
{
	struct event *event = handle_remove(HANDLE_EVENT, handle);
	struct event_set *set;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	set = event->ctx->events;
	pthread_mutex_lock(&set->lock);
	*event->at = event->next;
	if (event->next)
		event->next->at = event->at;
	pthread_mutex_unlock(&set->lock);
	event_free(event);
	return CUDA_SUCCESS;
}

static CUresult events_begin(struct context *ctx)
{
	ctx->events = calloc(1, sizeof(*ctx->events));
	if (!ctx->events)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&ctx->events->lock, NULL);
	return CUDA_SUCCESS;
}

static void events_end(struct context *ctx)
{
	struct event_set *set = ctx->events;

	while (set->first)
		event_destroy(set->first->handle);
	pthread_mutex_destroy(&set->lock);
	free(set);
	ctx->events = NULL;
}

CONTEXT_PART(events, .order = 40, .begin = events_begin, .end = events_end);

CALL(cuEventCreate, CUevent *ret, unsigned int flags)
{
	struct event_shared *shared = NULL;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags & ~(unsigned int)EVENT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/* What processes share cannot tell times. */
	if (flags & CU_EVENT_INTERPROCESS) {
		if (!(flags & CU_EVENT_DISABLE_TIMING))
			return CUDA_ERROR_INVALID_VALUE;
		r = event_shared_new(&shared);
		if (r != CUDA_SUCCESS)
			return r;
	}
	return event_new(ctx, flags, shared, ret);
}

CALL(cuEventDestroy_v2, CUevent handle)
{
	CUresult r = driver_check();

	return r != CUDA_SUCCESS ? r : event_destroy(handle);
}

CALL(cuEventDestroy, CUevent handle)
{
	return impl_cuEventDestroy_v2(handle);
}

CALL_TWINS(cuEventRecordWithFlags, _ptsz,
	   (CUevent handle, CUstream stream_handle, unsigned int flags),
	   (handle, stream_handle, flags))
{
	struct event_work work;
	struct stream *stream;
	struct event *event;
	bool taken = false;
	CUresult r;

	r = event_find(handle, &event);
	if (r == CUDA_SUCCESS)
		r = stream_find(stream_handle, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (event->ctx != stream_context(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (capture_any() || event->mark.capture_id)
		r = capture_record(stream, handle, &event->mark, flags & CU_EVENT_RECORD_EXTERNAL,
				   &taken);
	if (r != CUDA_SUCCESS || taken)
		return r;

	r = event_record_begin(event, &work.point);
	if (r != CUDA_SUCCESS)
		return r;
	r = stream_submit(stream, &work_event_record, &work);
	if (r != CUDA_SUCCESS)
		event_point_reach(work.point, 0);
	event_point_unref(work.point);
	return r;
}

CUresult event_record(CUevent handle, CUstream stream, enum stream_default dflt)
{
	return twin_cuEventRecordWithFlags(dflt, handle, stream, CU_EVENT_RECORD_DEFAULT);
}

CALL_TWINS(cuEventRecord, _ptsz, (CUevent handle, CUstream stream), (handle, stream))
{
	return event_record(handle, stream, dflt);
}

CALL_TWINS(cuStreamWaitEvent, _ptsz, (CUstream stream_handle, CUevent handle, unsigned int flags),
	   (stream_handle, handle, flags))
{
	struct event_work work;
	struct stream *stream;
	struct event *event;
	bool taken = false;
	CUresult r;

	r = stream_find(stream_handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = event_find(handle, &event);
	if (r != CUDA_SUCCESS)
		return r;
	if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_any() || event->mark.capture_id)
		r = capture_wait(stream, handle, &event->mark, flags & CU_EVENT_WAIT_EXTERNAL,
				 &taken);
	if (r != CUDA_SUCCESS || taken)
		return r;

	work.point = event_latest(event);
	if (work.point && !event_point_is_reached(work.point))
		r = stream_submit(stream, &work_event_wait, &work);
	event_point_unref(work.point);
	return r;
}

/* An event that can be looked at: by no means one that was recorded in a capture. */
static CUresult event_look(CUevent handle, struct event **ret)
{
	CUresult r = event_find(handle, ret);

	if (r == CUDA_SUCCESS)
		r = context_error((*ret)->ctx);
	if (r == CUDA_SUCCESS && (*ret)->mark.capture_id)
		r = CUDA_ERROR_CAPTURED_EVENT;
	return r == CUDA_SUCCESS ? stream_capture_check((*ret)->ctx) : r;
}

CALL(cuEventQuery, CUevent handle)
{
	struct event_point *point;
	struct event *event;
	bool reached;
	CUresult r = event_look(handle, &event);

	if (r != CUDA_SUCCESS)
		return r;
	point = event_latest(event);
	reached = !point || event_point_is_reached(point);
	event_point_unref(point);
	return reached ? context_error(event->ctx) : CUDA_ERROR_NOT_READY;
}

CALL(cuEventSynchronize, CUevent handle)
{
	struct event_point *point;
	struct context *ctx;
	struct event *event;
	CUresult r = event_look(handle, &event);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	ctx = event->ctx;
	context_hold(ctx);
	point = event_latest(event);
	if (point)
		event_point_wait(point, ctx);
	event_point_unref(point);
	context_synchronized(ctx);
	context_release(ctx);
	return context_error(ctx);
}

/* The time of an event's latest point. */
static CUresult event_time(CUevent handle, uint64_t *ret_ns)
{
	struct event_point *point;
	struct event *event;
	CUresult r = event_look(handle, &event);

	if (r != CUDA_SUCCESS)
		return r;
	if (event->flags & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	point = event_latest(event);
	if (!point)
		return CUDA_ERROR_INVALID_HANDLE;
	if (event_point_is_reached(point))
		*ret_ns = event_point_time(point);
	else
		r = CUDA_ERROR_NOT_READY;
	event_point_unref(point);
	return r;
}

CALL(cuEventElapsedTime_v2, float *ret_ms, CUevent begin, CUevent end)
{
	uint64_t begin_ns, end_ns;
	CUresult r;

	if (!ret_ms)
		return CUDA_ERROR_INVALID_VALUE;
	r = event_time(begin, &begin_ns);
	if (r == CUDA_SUCCESS)
		r = event_time(end, &end_ns);
	if (r != CUDA_SUCCESS)
		return r;
	*ret_ms = (float)((double)(int64_t)(end_ns - begin_ns) / 1e6);
	return CUDA_SUCCESS;
}

CALL(cuEventElapsedTime, float *ret_ms, CUevent begin, CUevent end)
{
	return impl_cuEventElapsedTime_v2(ret_ms, begin, end);
}
