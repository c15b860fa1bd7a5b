/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job of a context is next: the most urgent, and of those that are equally so the one that
 * asked first.
 *
 * Device time is had by one job after another. Executed jobs also begin in this order: one that has
 * not begun yet lets more urgent ones go first, but not for ever, as a kernel may well wait for
 * another one that is less urgent. What has begun is not stopped.
 */
#ifndef SOFTGPU_ENGINE_QUEUE_H
#define SOFTGPU_ENGINE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUEUE_N_LEVELS 8

/* On the stack of the one who waits. */
struct queue_waiter {
	struct queue_waiter *next;
	unsigned level;
	_Atomic uint32_t is_next; /* futex */
};

/**
 * struct queue - the jobs of a context
 * @busy:	one of them has its device time now
 * @waiters:	the others that want some, next first
 * @n_begun:	executed jobs that are not done, by level
 * @ended:	one of them is
 * @closed:	nobody is held any more
 */
struct queue {
	pthread_mutex_t lock; /* guards all */
	bool busy;
	struct queue_waiter *waiters;
	unsigned n_begun[QUEUE_N_LEVELS];
	pthread_cond_t ended;
	bool closed;
};

void queue_init(struct queue *queue);
void queue_done(struct queue *queue);

/** queue_close() - hold nobody any more; those who wait for device time get it in turn */
void queue_close(struct queue *queue);

/** queue_level() - of a priority as streams have it: 0, or less for what is more urgent */
unsigned queue_level(int priority);

/** queue_take() - wait until the device time is this job's; queue_give() when it has had it */
void queue_take(struct queue *queue, unsigned level);
void queue_give(struct queue *queue);

/** queue_begin() - let more urgent jobs go first, for @hold_ns at most; then queue_end() */
void queue_begin(struct queue *queue, unsigned level, uint64_t hold_ns);
void queue_end(struct queue *queue, unsigned level);

#endif
