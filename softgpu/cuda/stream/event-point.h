/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside points and events, for event.c and event-ipc.c.
 *
 * The points of an event that processes share are numbers in memory that they share: each record
 * takes the next number, and "reached up to n" is all that anybody needs to know.
 */
#pragma once

#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/stream/event.h"

/* In shared memory, so without pointers. */
struct event_shared_words {
	_Atomic uint64_t recorded;
	_Atomic uint64_t reached;
	_Atomic uint64_t time_ns;
	_Atomic uint32_t changes; /* futex: counts what was reached */
	_Atomic int32_t recorder; /* process of the latest record */
};

struct event_shared {
	_Atomic unsigned int n_references;
	int fd;
	struct event_shared_words *words;
};

struct event_point {
	_Atomic unsigned int n_references;
	_Atomic uint32_t reached; /* futex */
	uint64_t time_ns;
	struct event_shared *shared; /* or NULL; then @number counts */
	uint64_t number;
};

struct event {
	CUevent handle;
	struct context *ctx;
	unsigned int flags;
	pthread_mutex_t lock;
	struct event_point *latest; /* under the lock */
	struct capture_mark mark;   /* what its latest record means in a capture */
	struct event_shared *shared;
	struct event *next, **at; /* in the context's list */
};

/** event_new() - an event in a context; takes over the reference to @shared, which may be NULL */
CUresult event_new(struct context *ctx, unsigned int flags, struct event_shared *shared,
		   CUevent *ret);

CUresult event_shared_new(struct event_shared **ret);
void event_shared_unref(struct event_shared *shared);

void event_shared_reach(struct event_point *point, uint64_t time_ns);
bool event_shared_is_reached(const struct event_point *point);
void event_shared_wait(struct event_point *point);
