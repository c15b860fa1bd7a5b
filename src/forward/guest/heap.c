// SPDX-License-Identifier: Apache-2.0
#include "forward/guest/heap.h"

#include "forward/guest/session.h"

#include <pthread.h>

#define N_BLOCKS (WIRE_HEAP_SIZE / HEAP_BLOCK)

_Static_assert(N_BLOCKS == 64, "a bit for each block");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static uint64_t taken;

unsigned heap_take(void)
{
	unsigned block;

	pthread_mutex_lock(&lock);
	while (~taken == 0)
		pthread_cond_wait(&given, &lock);
	block = (unsigned)__builtin_ctzll(~taken);
	taken |= 1ULL << block;
	pthread_mutex_unlock(&lock);
	return block;
}

void heap_give(unsigned block)
{
	pthread_mutex_lock(&lock);
	taken &= ~(1ULL << block);
	pthread_cond_signal(&given);
	pthread_mutex_unlock(&lock);
}

void *heap_at(unsigned block)
{
	return (char *)session_heap() + (size_t)block * HEAP_BLOCK;
}

struct wire_buffer heap_buffer(unsigned block, size_t size)
{
	return (struct wire_buffer){ .offset = (uint64_t)block * HEAP_BLOCK, .size = size };
}
