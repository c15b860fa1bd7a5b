// SPDX-License-Identifier: Apache-2.0
#include "forward/host/memory.h"

#include "base/base.h"
#include "forward/host/driver.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

struct grant {
	uint8_t *at;
	uint64_t size;
};

struct range {
	uint64_t address;
	uint64_t size;
};

#define MAX_RANGES 4096

static pthread_rwlock_t grants_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct grant grants[WIRE_MAX_GRANTS];

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[MAX_RANGES];
static size_t n_ranges;

/* Addresses for a grant: the guest's own, or any where they are taken. */
static uint8_t *reserve(uint64_t address, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *at = MAP_FAILED;

	if (address)
		at = mmap((void *)address, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		at = mmap(NULL, size, PROT_NONE, flags, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static int map_pieces(uint8_t *at, uint64_t size, int fd, const struct wire_piece *pieces, size_t n_pieces)
{
	uint64_t done = 0;
	size_t i;

	for (i = 0; i < n_pieces; i++) {
		if (pieces[i].size > size - done)
			return -EINVAL;
		if (mmap(at + done, pieces[i].size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)pieces[i].address) == MAP_FAILED)
			return -errno;
		done += pieces[i].size;
	}
	return done == size ? 0 : -EINVAL;
}

int grant_add(uint32_t id, int fd, uint64_t address, uint64_t size, const struct wire_piece *pieces,
	      size_t n_pieces)
{
	struct wire_piece whole = { .address = 0, .size = size };
	uint8_t *at;
	int r;

	if (id >= WIRE_MAX_GRANTS || size == 0 || size > WIRE_MAX_GRANT || address % 4096 || size % 4096)
		return -EINVAL;
	at = reserve(address, size);
	if (!at)
		return -ENOMEM;
	r = pieces ? map_pieces(at, size, fd, pieces, n_pieces) : map_pieces(at, size, fd, &whole, 1);
	pthread_rwlock_wrlock(&grants_lock);
	if (r == 0 && grants[id].at)
		r = -EEXIST;
	if (r == 0)
		grants[id] = (struct grant){ at, size };
	pthread_rwlock_unlock(&grants_lock);
	if (r < 0)
		munmap(at, size);
	return r;
}

int grant_remove(uint32_t id)
{
	struct grant grant;

	if (id >= WIRE_MAX_GRANTS)
		return -ENOENT;
	pthread_rwlock_wrlock(&grants_lock);
	grant = grants[id];
	grants[id] = (struct grant){ NULL, 0 };
	pthread_rwlock_unlock(&grants_lock);
	if (!grant.at)
		return -ENOENT;
	munmap(grant.at, grant.size);
	return 0;
}

void *grant_find(const struct wire_buffer *buffer)
{
	void *at = NULL;

	if (buffer->grant >= WIRE_MAX_GRANTS)
		return NULL;
	pthread_rwlock_rdlock(&grants_lock);
	if (grants[buffer->grant].at && buffer->size <= grants[buffer->grant].size &&
	    buffer->offset <= grants[buffer->grant].size - buffer->size)
		at = grants[buffer->grant].at + buffer->offset;
	pthread_rwlock_unlock(&grants_lock);
	return at;
}

int grant_whole(uint32_t id, void **ret_at, uint64_t *ret_size)
{
	int r = -ENOENT;

	if (id >= WIRE_MAX_GRANTS)
		return -ENOENT;
	pthread_rwlock_rdlock(&grants_lock);
	if (grants[id].at) {
		*ret_at = grants[id].at;
		*ret_size = grants[id].size;
		r = 0;
	}
	pthread_rwlock_unlock(&grants_lock);
	return r;
}

/* The driver's own allocation around an address. A mapping of several is asked about piece by piece. */
static bool driver_knows(uint64_t address, struct range *ret)
{
	return DRIVER(cuPointerGetAttribute, POINTER(&ret->address), CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		      address) == CUDA_SUCCESS &&
	       DRIVER(cuPointerGetAttribute, POINTER(&ret->size), CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) ==
		       CUDA_SUCCESS &&
	       ret->size > 0 && address >= ret->address && address - ret->address < ret->size;
}

static bool is_kept(uint64_t address, struct range *ret)
{
	bool found = false;
	size_t i;

	pthread_mutex_lock(&ranges_lock);
	for (i = 0; i < n_ranges && !found; i++) {
		found = address >= ranges[i].address && address - ranges[i].address < ranges[i].size;
		if (found)
			*ret = ranges[i];
	}
	pthread_mutex_unlock(&ranges_lock);
	return found;
}

bool range_ok(uint64_t address, uint64_t size)
{
	struct range range;
	uint64_t rest;

	while (size > 0) {
		if (!driver_knows(address, &range) && !is_kept(address, &range))
			return false;
		rest = range.size - (address - range.address);
		if (rest >= size)
			return true;
		address += rest;
		size -= rest;
	}
	return true;
}

void range_add(uint64_t address, uint64_t size)
{
	struct range range;

	if (driver_knows(address, &range))
		return;
	pthread_mutex_lock(&ranges_lock);
	if (n_ranges < MAX_RANGES)
		ranges[n_ranges++] = (struct range){ address, size };
	pthread_mutex_unlock(&ranges_lock);
}

void range_remove(uint64_t address)
{
	size_t i;

	pthread_mutex_lock(&ranges_lock);
	for (i = 0; i < n_ranges; i++) {
		if (ranges[i].address == address) {
			ranges[i] = ranges[--n_ranges];
			break;
		}
	}
	pthread_mutex_unlock(&ranges_lock);
}
