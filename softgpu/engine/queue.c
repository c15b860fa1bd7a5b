// SPDX-License-Identifier: Apache-2.0
#include "softgpu/engine/queue.h"

#include "softgpu/util/futex.h"
#include "softgpu/util/moment.h"

#include <stddef.h>

void queue_init(struct queue *queue)
{
	*queue = (struct queue){ 0 };
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->ended, NULL);
}

void queue_done(struct queue *queue)
{
	pthread_cond_destroy(&queue->ended);
	pthread_mutex_destroy(&queue->lock);
}

void queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	pthread_cond_broadcast(&queue->ended);
	pthread_mutex_unlock(&queue->lock);
}

unsigned queue_level(int priority)
{
	if (priority >= 0)
		return 0;
	return priority > -QUEUE_N_LEVELS ? (unsigned)-priority : QUEUE_N_LEVELS - 1;
}

static void waiter_insert(struct queue *queue, struct queue_waiter *waiter)
{
	struct queue_waiter **at = &queue->waiters;

	while (*at && (*at)->level >= waiter->level)
		at = &(*at)->next;
	waiter->next = *at;
	*at = waiter;
}

void queue_take(struct queue *queue, unsigned level)
{
	struct queue_waiter waiter = { .level = level };
	bool is_next;

	pthread_mutex_lock(&queue->lock);
	is_next = !queue->busy;
	queue->busy = true;
	if (!is_next)
		waiter_insert(queue, &waiter);
	pthread_mutex_unlock(&queue->lock);

	while (!is_next && !atomic_load(&waiter.is_next))
		futex_wait(&waiter.is_next, 0, NULL);
}

void queue_give(struct queue *queue)
{
	struct queue_waiter *next;

	pthread_mutex_lock(&queue->lock);
	next = queue->waiters;
	if (next)
		queue->waiters = next->next;
	else
		queue->busy = false;
	pthread_mutex_unlock(&queue->lock);
	if (!next)
		return;
	/* It may be gone as soon as it is told: to wake an address is not to look at it. */
	atomic_store(&next->is_next, 1);
	futex_wake_all(&next->is_next);
}

static bool is_held(const struct queue *queue, unsigned level)
{
	while (++level < QUEUE_N_LEVELS)
		if (queue->n_begun[level] > 0)
			return !queue->closed;
	return false;
}

void queue_begin(struct queue *queue, unsigned level, uint64_t hold_ns)
{
	struct timespec until;

	pthread_mutex_lock(&queue->lock);
	if (is_held(queue, level)) {
		until = moment_in(hold_ns);
		while (is_held(queue, level) &&
		       pthread_cond_clockwait(&queue->ended, &queue->lock, CLOCK_MONOTONIC,
					      &until) == 0)
			;
	}
	queue->n_begun[level]++;
	pthread_mutex_unlock(&queue->lock);
}

void queue_end(struct queue *queue, unsigned level)
{
	pthread_mutex_lock(&queue->lock);
	if (--queue->n_begun[level] == 0 && level > 0)
		pthread_cond_broadcast(&queue->ended);
	pthread_mutex_unlock(&queue->lock);
}
