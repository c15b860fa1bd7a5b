// SPDX-License-Identifier: Apache-2.0
/*
 * Two tables, one for names that the worker makes and one for those of the guest, and an index from
 * objects to names, because the driver shows many objects more than once. One lock guards all of it;
 * a look-up is a few loads.
 */
#include "forward/host/handle.h"

#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#define N_ENTRIES	(1U << 20)
#define N_BUCKETS	(1U << 16)
#define GENERATION_MASK 0xffffffU

struct entry {
	uint64_t object;
	uint32_t next;	/* of the bucket, or of the free ones */
	uint32_t state; /* kind << 24 | generation; the kind is 0 while there is no object */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *made, *local; /* of N_ENTRIES each; pages exist when they are used */
static uint32_t n_made = 1, first_free;
static uint32_t buckets[N_BUCKETS];

int handle_init(void)
{
	size_t size = 2 * (size_t)N_ENTRIES * sizeof(*made);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	made = at;
	local = made + N_ENTRIES;
	return 0;
}

static struct entry *entry_of(uint64_t handle)
{
	uint32_t index = (uint32_t)handle;
	struct entry *table = index & HANDLE_LOCAL ? local : made;

	index &= ~HANDLE_LOCAL;
	return index < N_ENTRIES ? &table[index] : NULL;
}

static uint32_t state_of(uint64_t handle)
{
	return (uint32_t)(handle >> 32);
}

static bool kind_fits(enum handle_kind kind, uint64_t handle)
{
	enum handle_kind is = handle >> 56;

	return is == kind || (kind == HANDLE_FUNCTION && is == HANDLE_KERNEL);
}

int handle_get(enum handle_kind kind, uint64_t handle, uint64_t *ret_object)
{
	struct entry *entry = entry_of(handle);
	int r = -ENOENT;

	if (handle == 0 || (kind == HANDLE_STREAM && handle <= 2)) {
		*ret_object = handle;
		return 0;
	}
	if (!kind_fits(kind, handle) || !entry)
		return -ENOENT;
	pthread_mutex_lock(&lock);
	if (entry->object && entry->state == state_of(handle)) {
		*ret_object = entry->object;
		r = 0;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static uint32_t *bucket_of(enum handle_kind kind, uint64_t object)
{
	uint64_t hash = (object ^ (uint64_t)kind << 57) * 0x9e3779b97f4a7c15ULL;

	return &buckets[hash >> 48];
}

static uint64_t handle_of(uint32_t index)
{
	return (uint64_t)made[index].state << 32 | index;
}

/* The caller has the lock. 0 where the table is full. */
static uint32_t entry_take(void)
{
	uint32_t index = first_free;

	if (index) {
		first_free = made[index].next;
		return index;
	}
	return n_made < N_ENTRIES ? n_made++ : 0;
}

/* The caller has the lock. 0 where the object has no entry. */
static uint32_t entry_find(enum handle_kind kind, uint64_t object)
{
	uint32_t index = *bucket_of(kind, object);

	while (index && (made[index].object != object || made[index].state >> 24 != kind))
		index = made[index].next;
	return index;
}

static uint64_t handle_put_locked(enum handle_kind kind, uint64_t object)
{
	uint32_t *bucket = bucket_of(kind, object), index = entry_find(kind, object), generation;

	if (index)
		return handle_of(index);
	index = entry_take();
	if (!index)
		return 0;
	generation = (made[index].state + 1) & GENERATION_MASK;
	made[index] = (struct entry){ object, *bucket, (uint32_t)kind << 24 | generation };
	*bucket = index;
	return handle_of(index);
}

uint64_t handle_put(enum handle_kind kind, uint64_t object)
{
	uint64_t handle;

	if (!object || (kind == HANDLE_STREAM && object <= 2))
		return object;
	pthread_mutex_lock(&lock);
	handle = handle_put_locked(kind, object);
	pthread_mutex_unlock(&lock);
	return handle;
}

uint64_t handle_find(enum handle_kind kind, uint64_t object)
{
	uint32_t index;
	uint64_t handle;

	pthread_mutex_lock(&lock);
	index = entry_find(kind, object);
	handle = index ? handle_of(index) : 0;
	pthread_mutex_unlock(&lock);
	return handle;
}

int handle_put_local(enum handle_kind kind, uint64_t handle, uint64_t object)
{
	struct entry *entry = entry_of(handle);

	if (!entry || !((uint32_t)handle & HANDLE_LOCAL) || handle >> 56 != kind)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	*entry = (struct entry){ .object = object, .state = state_of(handle) };
	pthread_mutex_unlock(&lock);
	return 0;
}

static void entry_free(uint32_t index)
{
	struct entry *entry = &made[index];
	uint32_t *at = bucket_of(entry->state >> 24, entry->object);

	while (*at != index)
		at = &made[*at].next;
	*at = entry->next;
	*entry = (struct entry){ .next = first_free, .state = entry->state & GENERATION_MASK };
	first_free = index;
}

void handle_drop(uint64_t handle)
{
	struct entry *entry = entry_of(handle);

	if (!entry)
		return;
	pthread_mutex_lock(&lock);
	if (entry->object && entry->state == state_of(handle)) {
		if ((uint32_t)handle & HANDLE_LOCAL)
			entry->object = 0;
		else
			entry_free((uint32_t)handle);
	}
	pthread_mutex_unlock(&lock);
}
