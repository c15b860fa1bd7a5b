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
	uint64_t address; /* the guest's */
};

struct range {
	uint64_t address;
	uint64_t size;
};

/**
 * struct pin - host memory that devices reach, by the driver's leave
 */
struct pin {
	const uint8_t *at;
	uint64_t size;
};

#define MAX_RANGES 4096
#define MAX_PINS   4096

static pthread_rwlock_t grants_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct grant grants[WIRE_MAX_GRANTS];
static struct pin pins[MAX_PINS];
static size_t n_pins;

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[MAX_RANGES];
static size_t n_ranges;

uint8_t *memory_reserve(uint64_t address, uint64_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *at = MAP_FAILED;

	if (address)
		at = mmap((void *)address, size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		at = mmap(NULL, size, PROT_NONE, flags, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

int grant_add_at(uint32_t id, uint8_t *at, uint64_t address, uint64_t size)
{
	int r = 0;

	if (id >= WIRE_MAX_GRANTS || size == 0 || size > WIRE_MAX_GRANT || address % 4096 ||
	    size % 4096)
		return -EINVAL;
	pthread_rwlock_wrlock(&grants_lock);
	if (grants[id].at)
		r = -EEXIST;
	else
		grants[id] = (struct grant){ at, size, address };
	pthread_rwlock_unlock(&grants_lock);
	return r;
}

int grant_add(uint32_t id, int fd, uint64_t address, uint64_t size)
{
	uint8_t *at;
	int r;

	if (size == 0 || size > WIRE_MAX_GRANT)
		return -EINVAL;
	at = memory_reserve(address, size);
	if (!at)
		return -ENOMEM;
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		r = -errno;
	else
		r = grant_add_at(id, at, address, size);
	if (r < 0)
		munmap(at, size);
	return r;
}

/* The caller has the lock. */
static bool is_pinned(const struct grant *grant)
{
	size_t i;

	for (i = 0; i < n_pins; i++)
		if (pins[i].at < grant->at + grant->size && grant->at < pins[i].at + pins[i].size)
			return true;
	return false;
}

int grant_remove(uint32_t id)
{
	struct grant grant;
	int r = 0;

	if (id >= WIRE_MAX_GRANTS)
		return -ENOENT;
	pthread_rwlock_wrlock(&grants_lock);
	grant = grants[id];
	if (!grant.at)
		r = -ENOENT;
	else if (is_pinned(&grant))
		r = -EBUSY;
	else
		grants[id] = (struct grant){ 0 };
	pthread_rwlock_unlock(&grants_lock);
	if (r == 0)
		munmap(grant.at, grant.size);
	return r;
}

/* The caller has the lock. */
static bool is_granted(const uint8_t *at, uint64_t size)
{
	const uint8_t *end = at + size, *before;
	size_t i;

	do {
		before = at;
		for (i = 0; i < WIRE_MAX_GRANTS; i++)
			if (grants[i].at && at >= grants[i].at &&
			    at < grants[i].at + grants[i].size)
				at = grants[i].at + grants[i].size;
	} while (at != before && at < end);
	return at >= end;
}

int pin_begin(const void *at, uint64_t size)
{
	int r = 0;

	pthread_rwlock_wrlock(&grants_lock);
	if (!is_granted(at, size))
		r = -ENOENT;
	else if (n_pins == MAX_PINS)
		r = -EDQUOT;
	else
		pins[n_pins++] = (struct pin){ at, size };
	pthread_rwlock_unlock(&grants_lock);
	return r;
}

void pin_end(const void *at)
{
	size_t i;

	pthread_rwlock_wrlock(&grants_lock);
	for (i = 0; i < n_pins && pins[i].at != at; i++)
		;
	if (i < n_pins)
		pins[i] = pins[--n_pins];
	pthread_rwlock_unlock(&grants_lock);
}

/* The grant that has an address of the guest's at that address here. */
static const struct grant *grant_around(uint64_t address)
{
	size_t i;

	for (i = 1; i < WIRE_MAX_GRANTS; i++)
		if (grants[i].at && (uint64_t)(uintptr_t)grants[i].at == grants[i].address &&
		    address - grants[i].address < grants[i].size)
			return &grants[i];
	return NULL;
}

static void *find_by_address(uint64_t address, uint64_t size)
{
	const struct grant *grant;
	uint64_t at = address, end;

	if (size == 0 || __builtin_add_overflow(address, size, &end))
		return NULL;
	while (at < end) {
		grant = grant_around(at);
		if (!grant)
			return NULL;
		at = grant->address + grant->size;
	}
	return (void *)(uintptr_t)address;
}

static void *find_in_grant(const struct wire_buffer *buffer)
{
	const struct grant *grant;

	if (buffer->grant >= WIRE_MAX_GRANTS)
		return NULL;
	grant = &grants[buffer->grant];
	if (!grant->at || buffer->size > grant->size || buffer->offset > grant->size - buffer->size)
		return NULL;
	return grant->at + buffer->offset;
}

void *grant_find(const struct wire_buffer *buffer)
{
	void *at;

	pthread_rwlock_rdlock(&grants_lock);
	if (buffer->grant == WIRE_BY_ADDRESS)
		at = find_by_address(buffer->offset, buffer->size);
	else
		at = find_in_grant(buffer);
	pthread_rwlock_unlock(&grants_lock);
	return at;
}

uint64_t grant_address(const void *at)
{
	const uint8_t *byte = at;
	uint64_t address = 0;
	size_t i;

	pthread_rwlock_rdlock(&grants_lock);
	for (i = 1; i < WIRE_MAX_GRANTS; i++)
		if (grants[i].at && byte >= grants[i].at && byte < grants[i].at + grants[i].size)
			address = grants[i].address + (uint64_t)(byte - grants[i].at);
	pthread_rwlock_unlock(&grants_lock);
	return address;
}

/* The driver's own allocation around an address. A mapping of several is asked about piece by piece. */
static bool driver_knows(uint64_t address, struct range *ret)
{
	return DRIVER(cuPointerGetAttribute, POINTER(&ret->address),
		      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) == CUDA_SUCCESS &&
	       DRIVER(cuPointerGetAttribute, POINTER(&ret->size), CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		      address) == CUDA_SUCCESS &&
	       ret->size > 0 && address >= ret->address && address - ret->address < ret->size;
}

static bool is_kept(uint64_t address, struct range *ret)
{
	bool found = false;
	size_t i;

	pthread_mutex_lock(&ranges_lock);
	for (i = 0; i < n_ranges && !found; i++) {
		found = address >= ranges[i].address &&
			address - ranges[i].address < ranges[i].size;
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

bool range_is_managed(uint64_t address, uint64_t size)
{
	uint64_t managed = 0;
	struct range range;

	return driver_knows(address, &range) && size <= range.size - (address - range.address) &&
	       DRIVER(cuPointerGetAttribute, POINTER(&managed), CU_POINTER_ATTRIBUTE_IS_MANAGED,
		      address) == CUDA_SUCCESS &&
	       managed;
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
