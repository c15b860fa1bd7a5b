/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. Each record makes a point: a moment in a stream that is reached once. The event holds
 * its latest point; who waits holds the point that was the latest when the wait was called, as
 * later records must not concern him.
 */
#pragma once

#include "softgpu/cuda/stream/stream.h"

struct event;
struct event_point;
struct event_shared;

/** event_find() - CUDA_ERROR_INVALID_HANDLE if there is no such event */
CUresult event_find(CUevent handle, struct event **ret);

/** event_context() - the one that it was made in; no reference of the caller's */
struct context *event_context(const struct event *event);

/** event_record() - cuEventRecord */
CUresult event_record(CUevent handle, CUstream stream, enum stream_default dflt);

/**
 * event_record_begin() - make a new point the event's latest
 *
 * The caller owns a reference and sees to it that the point is reached.
 */
CUresult event_record_begin(struct event *event, struct event_point **ret);

/** event_latest() - a reference to the latest point; NULL if it was never recorded */
struct event_point *event_latest(struct event *event);

void event_point_ref(struct event_point *point);
void event_point_unref(struct event_point *point);

/** event_point_reach() - the stream has come to it at @time_ns; only the first time counts */
void event_point_reach(struct event_point *point, uint64_t time_ns);

/** event_point_is_reached(), event_point_time() - has the stream come to it, and when */
bool event_point_is_reached(const struct event_point *point);
uint64_t event_point_time(const struct event_point *point);

/** event_point_wait() - until it is reached, or the waiting context's work is cancelled */
void event_point_wait(struct event_point *point, const struct context *waiter);

/* Parameters of work_event_record and work_event_wait; hold a reference. */
struct event_work {
	struct event_point *point;
};
