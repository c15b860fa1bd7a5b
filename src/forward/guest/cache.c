// SPDX-License-Identifier: Apache-2.0
/*
 * One table for the process, and one for each thread about its current context. When a table is full it is
 * emptied: what is asked again comes back.
 */
#include "forward/guest/cache.h"

#include "base/base.h"

#include <pthread.h>
#include <string.h>

#define N_BUCKETS   256
#define MAX_ENTRIES 4096

struct entry {
	struct entry *next;
	unsigned call;
	uint8_t what;
	uint32_t size;
	uint32_t answer_size;
	uint8_t bytes[]; /* the question, then the answer */
};

struct cache {
	struct entry *buckets[N_BUCKETS];
	size_t n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cache shared;

/* What a thread asks about its current context: two questions without arguments. */
static __thread struct {
	unsigned call;
	size_t size;
	uint64_t answer;
} current[2];

static uint32_t bucket_of(unsigned call, const uint8_t *body, size_t size)
{
	uint32_t hash = 2166136261u ^ call;
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ body[i]) * 16777619u;
	return hash % N_BUCKETS;
}

static struct entry *entry_find(unsigned call, const void *body, size_t size)
{
	struct entry *e = shared.buckets[bucket_of(call, body, size)];

	while (e && (e->call != call || e->size != size || memcmp(e->bytes, body, size) != 0))
		e = e->next;
	return e;
}

static bool current_find(unsigned call, void *ret, size_t room)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(current); i++) {
		if (current[i].size == 0 || current[i].call != call || current[i].size > room)
			continue;
		memcpy(ret, &current[i].answer, current[i].size);
		return true;
	}
	return false;
}

bool cache_find(enum wire_cache what, unsigned call, const void *body, size_t size, void *ret,
		size_t room)
{
	struct entry *e;
	bool found;

	if (what == WIRE_CACHE_CURRENT)
		return current_find(call, ret, room);
	pthread_mutex_lock(&lock);
	e = entry_find(call, body, size);
	found = e && e->answer_size <= room;
	if (found)
		memcpy(ret, e->bytes + e->size, e->answer_size);
	pthread_mutex_unlock(&lock);
	return found;
}

/* The caller has the lock. WIRE_CACHE_NONE stands for all. */
static void remove_entries(enum wire_cache what)
{
	size_t i;

	for (i = 0; i < N_BUCKETS; i++) {
		struct entry **at = &shared.buckets[i], *e;

		while ((e = *at)) {
			if (what != WIRE_CACHE_NONE && e->what != what) {
				at = &e->next;
				continue;
			}
			*at = e->next;
			free(e);
			shared.n--;
		}
	}
}

static void current_add(unsigned call, const void *answer, size_t answer_size)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(current) && answer_size <= sizeof(current[i].answer); i++) {
		if (current[i].size)
			continue;
		current[i].call = call;
		current[i].size = answer_size;
		memcpy(&current[i].answer, answer, answer_size);
		break;
	}
}

void cache_add(enum wire_cache what, unsigned call, const void *body, size_t size,
	       const void *answer, size_t answer_size)
{
	struct entry *e, **bucket;

	if (what == WIRE_CACHE_CURRENT) {
		current_add(call, answer, answer_size);
		return;
	}
	e = malloc(sizeof(*e) + size + answer_size);
	if (!e)
		return;
	e->call = call;
	e->what = what;
	e->size = (uint32_t)size;
	e->answer_size = (uint32_t)answer_size;
	memcpy(e->bytes, body, size);
	memcpy(e->bytes + size, answer, answer_size);
	pthread_mutex_lock(&lock);
	if (shared.n >= MAX_ENTRIES)
		remove_entries(WIRE_CACHE_NONE);
	bucket = &shared.buckets[bucket_of(call, body, size)];
	e->next = *bucket;
	*bucket = e;
	shared.n++;
	pthread_mutex_unlock(&lock);
}

void cache_end(enum wire_cache what)
{
	if (what == WIRE_CACHE_CURRENT) {
		memset(current, 0, sizeof(current));
		return;
	}
	pthread_mutex_lock(&lock);
	remove_entries(what);
	pthread_mutex_unlock(&lock);
}
