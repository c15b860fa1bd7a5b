// SPDX-License-Identifier: Apache-2.0
#include "forward/host/order.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t issued;
static _Atomic unsigned n_waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

uint64_t order_wait(uint64_t ticket)
{
	uint64_t now = atomic_load(&issued);

	if (now >= ticket)
		return now;
	pthread_mutex_lock(&lock);
	/* Counted before it looks again, and order_done() looks for it after it has moved on. */
	atomic_fetch_add(&n_waiting, 1);
	while ((now = atomic_load(&issued)) < ticket)
		pthread_cond_wait(&moved, &lock);
	atomic_fetch_sub(&n_waiting, 1);
	pthread_mutex_unlock(&lock);
	return now;
}

void order_done(uint64_t ticket)
{
	atomic_store(&issued, ticket + 1);
	if (!atomic_load(&n_waiting))
		return;
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
}
