/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside a stream: its queue, its thread, and the order between the streams of a context. Only
 * stream-*.c, event.c and capture.c look in here.
 *
 * Each piece of work has a number in its stream, counted from 1. "Done up to n" says everything
 * about a stream's progress, so waiting for a stream is waiting for a number:
 *
 *	legacy stream:    1  2  3 .  .            done = 2, submitted = 3
 *	                        |
 *	                        +-- waits for (a, 5), (b, 1)
 *	stream a:         4  5  6 .               6 was submitted after 3: it waits for (legacy, 3)
 *
 * Whoever waits does so under the lock of the context's streams, which guards all of it.
 */
#pragma once

#include "softgpu/cuda/stream/stream.h"

struct capture_member;

/* Everything up to number @upto of @stream; holds a reference to the stream. */
struct stream_fence {
	struct stream *stream;
	uint64_t upto;
};

struct stream_fences {
	struct stream_fence *fence;
	size_t n;
};

/* Space of @params; larger parameters are allocated apart. */
#define STREAM_OP_BYTES 416

/**
 * struct stream_op - queued work
 * @submitted_ns:	when, by the engine's clock
 * @after:	what of other streams must be done first
 */
struct stream_op {
	struct stream_op *next;
	uint64_t submitted_ns;
	const struct work_class *class;
	struct stream_fences after;
	void *params;
	_Alignas(16) unsigned char space[STREAM_OP_BYTES];
};

/* What a stream's thread does. */
enum stream_rest {
	STREAM_AWAKE,
	STREAM_ASLEEP, /* until it is woken */
	STREAM_NAPS,   /* for some microseconds, or until it is woken */
};

/**
 * struct stream - a stream
 * @set:	stays what it is when the place is used for another stream of the set, so that a call
 *		that has found a stream which is destroyed meanwhile finds the lock, and sees that
 * @n_references:	the handle's, the thread's, those of fences and of calls that wait
 * @wanted:	the lowest number that somebody waits for, UINT64_MAX if nobody does: work that
 *		nobody waits for ends without waking anyone
 * @running:	number @done + 1 is being run, by the thread or by a caller
 * @rest:	what the thread does while it has nothing to do
 * @bypassed:	a caller has done work since the thread last looked
 */
struct stream {
	struct stream_set *set;
	CUstream handle;
	uint64_t id;
	struct stream *next;
	unsigned int flags;
	int priority;
	bool is_legacy;

	unsigned int n_references;
	bool closed, running, has_thread, bypassed;
	enum stream_rest rest;
	struct stream_op *first, **last;
	struct stream_op *spare;
	uint64_t submitted, done, wanted;
	uint64_t end_ns;			/* of number @done, by the engine's clock */
	struct capture_member *_Atomic capture; /* its part in a capture; written by capture.c */
	pthread_cond_t work, progress;

	CUstreamAttrValue policy_window, sync_policy, sync_domain_map, sync_domain;
};

/**
 * struct stream_set - the streams of a context
 * @n_inside:	calls of other threads that look at them, or at what else the context has
 * @gone:	places of destroyed streams
 */
struct stream_set {
	struct context *ctx;
	_Atomic unsigned int n_inside;
	pthread_mutex_t lock;
	struct stream *streams;
	struct stream *gone;
	struct stream *legacy;
	unsigned int n_threads;
	pthread_cond_t threads_ended;
	_Atomic bool ending;
};

/* A call begins to look at the streams, with their lock; from here to set_leave() they are there. */
void set_enter(struct stream_set *set);
void set_leave(struct stream_set *set);

/* Fences, with the lock; waiting gives it up meanwhile. */
bool fences_add(struct stream_fences *fences, struct stream *stream);

/** fences_wait() - until all are passed; when, in device time, the last of them was */
uint64_t fences_wait(struct stream_fences *fences);
void fences_done(struct stream_fences *fences);

static inline bool stream_is_busy(const struct stream *stream)
{
	return stream->done != stream->submitted;
}

/** stream_new() - a stream with a handle of its own */
CUresult stream_new(struct context *ctx, unsigned int flags, int priority, struct stream **ret);

/** stream_close() - cuStreamDestroy: no handle any more; what is queued is still done */
CUresult stream_close(CUstream handle);

/** stream_idle() - whether all work submitted so far is done, by the stream's own order */
bool stream_idle(struct stream *stream);

/** stream_put() - queue work whatever a capture says */
CUresult stream_put(struct stream *stream, const struct work_class *class, const void *params);

/**
 * struct stream_moment - the place in device time of the work that this thread runs
 * @ready_ns:	when it could begin at the earliest
 * @more:	more work of the stream is queued
 * @priority:	of the stream, or of a graph's node
 * @end_ns:	when it ended; the work sets it if it had device time of its own (a kernel, an
 *		event), else the end is when it returns. A thread that wakes up late thus does not
 *		make what it ran look late.
 */
struct stream_moment {
	uint64_t ready_ns;
	bool more;
	int priority;
	uint64_t end_ns;
};

/** stream_moment() - of the work that is being run by the calling thread */
struct stream_moment *stream_moment(void);

/* From one to the other a context is not taken away that another thread ends meanwhile. */
void context_hold(struct context *ctx);
void context_release(struct context *ctx);

/** context_synchronized() - the program has waited for work: what happens then besides */
void context_synchronized(struct context *ctx);

/**
 * stream_cancelled() - should work that goes on for long be given up?
 *
 * True once the context has failed or ends; then nobody waits for the result.
 */
bool stream_cancelled(const struct context *ctx);
