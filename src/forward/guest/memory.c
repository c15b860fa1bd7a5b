// SPDX-License-Identifier: Apache-2.0
/*
 * A grant has one address on both sides, so a pointer into it means the same to the program, to a kernel
 * and to the host's driver. Only where that address is taken in the worker does registered memory have
 * another for devices, which CUDA allows.
 *
 * Managed memory is host memory that devices reach: it never moves.
 */
#include "forward/guest/memory.h"

#include "base/base.h"
#include "forward/guest/call.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE		     4096ULL
#define HOST_ALLOC_FLAGS     (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                           \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | \
	 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory *all;

static void memory_enter(struct memory *memory)
{
	pthread_mutex_lock(&lock);
	memory->next = all;
	all = memory;
	pthread_mutex_unlock(&lock);
}

/* Takes what a call is to end out of the list; NULL where there is no such. */
static struct memory *memory_claim(uint64_t asked, enum memory_kind kind)
{
	struct memory **at, *memory;

	pthread_mutex_lock(&lock);
	for (at = &all; *at && ((*at)->asked != asked || (*at)->kind != kind); at = &(*at)->next)
		;
	memory = *at;
	if (memory)
		*at = memory->next;
	pthread_mutex_unlock(&lock);
	return memory;
}

static bool contains(uint64_t begin, uint64_t length, uint64_t address, uint64_t size)
{
	return address >= begin && address - begin < length && size <= length - (address - begin);
}

bool memory_buffer(const void *at, uint64_t size, struct wire_buffer *ret)
{
	uint64_t address = (uintptr_t)at;
	struct memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = all; memory; memory = memory->next)
		if (contains(memory->address, memory->size, address, size))
			break;
	if (memory)
		*ret = (struct wire_buffer){ memory->grant, 0, address - memory->address, size };
	pthread_mutex_unlock(&lock);
	return memory;
}

bool memory_find(uint64_t address, struct memory *ret)
{
	struct memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = all; memory; memory = memory->next)
		if (memory->kind != MEMORY_ADOPTED && contains(memory->asked, memory->asked_size, address, 1))
			break;
	if (memory)
		*ret = *memory;
	pthread_mutex_unlock(&lock);
	return memory;
}

bool memory_is_device(uint64_t address)
{
	struct guest_lane *l;
	const uint8_t *data;
	size_t size;
	void *body;

	if (call_begin(WIRE_CLASSIFY, sizeof(address), &l, &body) != CUDA_SUCCESS)
		return false;
	memcpy(body, &address, sizeof(address));
	return lane_ask(l, &data, &size) == CUDA_SUCCESS && size == sizeof(uint64_t) && *(const uint64_t *)data;
}

/* WIRE_PIN, WIRE_UNPIN: the grant, the range in it, the flags of cuMemHostRegister(). */
static CUresult pin(struct memory *memory, unsigned command)
{
	const uint64_t words[] = { memory->grant, memory->asked - memory->address, memory->asked_size,
				   memory->flags };
	struct guest_lane *l;
	const uint8_t *data;
	size_t size;
	void *body;
	CUresult r;

	r = call_begin(command, sizeof(words), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	r = call_ask(l, &data, &size);
	if (r == CUDA_SUCCESS && size == sizeof(memory->device))
		memcpy(&memory->device, data, sizeof(memory->device));
	return r;
}

static struct memory *memory_new(enum memory_kind kind, uint64_t asked, uint64_t asked_size, unsigned flags)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->kind = kind;
	memory->asked = asked;
	memory->asked_size = asked_size;
	memory->flags = flags;
	memory->address = asked & ~(PAGE - 1);
	memory->size = ((asked + asked_size + PAGE - 1) & ~(PAGE - 1)) - memory->address;
	return memory;
}

static CUresult grant_result(int error)
{
	switch (error) {
	case -ENODEV:
		return session_lose();
	case -EEXIST:
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

/* Fresh pages at an address that the kernel chooses. */
static CUresult allocate(enum memory_kind kind, size_t size, unsigned flags, uint64_t *ret)
{
	struct memory *memory;
	CUresult result;
	void *at;
	int r;

	at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = memory_new(kind, POINTER(at), size, flags);
	r = memory ? session_grant(at, memory->size, /* keep= */ false, &memory->grant) : -ENOMEM;
	result = r < 0 ? grant_result(r) : pin(memory, WIRE_PIN);
	if (result == CUDA_SUCCESS && memory->device != memory->asked) {
		pin(memory, WIRE_UNPIN);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS) {
		if (r == 0)
			session_revoke(memory->grant);
		munmap(at, size);
		free(memory);
		return result;
	}
	memory_enter(memory);
	*ret = memory->asked;
	return CUDA_SUCCESS;
}

static CUresult release(struct memory *memory)
{
	CUresult r = pin(memory, WIRE_UNPIN);

	if (r != DEVICE_LOST)
		session_revoke(memory->grant);
	if (memory->kind != MEMORY_REGISTERED)
		munmap((void *)memory->address, memory->size);
	free(memory);
	return r;
}

CALL(cuMemHostAlloc, void **pp, size_t size, unsigned flags)
{
	uint64_t at;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!pp || size == 0 || flags & ~HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	r = allocate(MEMORY_ALLOCATED, size, flags, &at);
	if (r == CUDA_SUCCESS)
		*pp = (void *)at;
	return r;
}

CALL(cuMemAllocHost_v2, void **pp, size_t size)
{
	return cuMemHostAlloc(pp, size, /* flags= */ 0);
}

CALL(cuMemAllocHost, void **pp, unsigned size)
{
	return cuMemHostAlloc(pp, size, /* flags= */ 0);
}

CALL(cuMemFreeHost, void *p)
{
	CUresult r = session_check();
	struct memory *memory;

	if (r != CUDA_SUCCESS || !p)
		return r;
	memory = memory_claim(POINTER(p), MEMORY_ALLOCATED);
	return memory ? release(memory) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemAllocManaged, CUdeviceptr *ret, size_t size, unsigned flags)
{
	CUresult r = session_check();
	uint64_t at;

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	r = allocate(MEMORY_MANAGED, size, /* flags= */ 0, &at);
	if (r == CUDA_SUCCESS)
		*ret = at;
	return r;
}

CUresult memory_free_managed(uint64_t address)
{
	struct memory *memory = memory_claim(address, MEMORY_MANAGED);

	return memory ? release(memory) : CUDA_ERROR_NOT_FOUND;
}

CALL(cuMemFree_v2, CUdeviceptr ptr)
{
	CUresult r = session_check();

	if (r == CUDA_SUCCESS)
		r = memory_free_managed(ptr);
	return r == CUDA_ERROR_NOT_FOUND ? CALL_WORDS(CALL_ID_cuMemFree_v2, ptr) : r;
}

/* Is any of these pages shared already? */
static bool overlaps(const struct memory *new)
{
	struct memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = all; memory; memory = memory->next)
		if (new->address < memory->address + memory->size && memory->address < new->address + new->size)
			break;
	pthread_mutex_unlock(&lock);
	return memory;
}

/* Makes pages that are the program's own a grant; they keep what is in them. */
static CUresult share(struct memory *memory)
{
	unsigned char there;
	uint64_t at;
	int r;

	for (at = memory->address; at < memory->address + memory->size; at += PAGE)
		if (mincore((void *)at, PAGE, &there) < 0)
			return CUDA_ERROR_INVALID_VALUE;
	if (overlaps(memory))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	r = session_grant((void *)memory->address, memory->size, /* keep= */ true, &memory->grant);
	return r < 0 ? grant_result(r) : CUDA_SUCCESS;
}

CALL(cuMemHostRegister_v2, void *p, size_t size, unsigned flags)
{
	CUresult r = session_check();
	struct memory *memory;
	uint64_t end;

	if (r != CUDA_SUCCESS)
		return r;
	if (!p || size == 0 || flags & ~HOST_REGISTER_FLAGS || __builtin_add_overflow(POINTER(p), size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	memory = memory_new(MEMORY_REGISTERED, POINTER(p), size, flags);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = share(memory);
	if (r == CUDA_SUCCESS) {
		r = pin(memory, WIRE_PIN);
		if (r != CUDA_SUCCESS)
			session_revoke(memory->grant);
	}
	if (r == CUDA_SUCCESS)
		memory_enter(memory);
	else
		free(memory);
	return r;
}

CALL(cuMemHostRegister, void *p, size_t size, unsigned flags)
{
	return cuMemHostRegister_v2(p, size, flags);
}

CALL(cuMemHostUnregister, void *p)
{
	CUresult r = session_check();
	struct memory *memory;

	if (r != CUDA_SUCCESS)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memory = memory_claim(POINTER(p), MEMORY_REGISTERED);
	return memory ? release(memory) : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CALL(cuMemHostGetDevicePointer_v2, CUdeviceptr *ret, void *p, unsigned flags)
{
	CUresult r = session_check();
	struct memory memory;

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || !memory_find(POINTER(p), &memory) || memory.kind == MEMORY_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = memory.device + (POINTER(p) - memory.asked);
	return CUDA_SUCCESS;
}

CALL(cuMemHostGetDevicePointer, CUdeviceptr_v1 *ret, void *p, unsigned flags)
{
	/* What devices reach never lies in the first 4 GiB. */
	return ret && p ? CUDA_ERROR_INVALID_VALUE : session_check();
}

CALL(cuMemHostGetFlags, unsigned *ret, void *p)
{
	CUresult r = session_check();
	struct memory memory;

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !memory_find(POINTER(p), &memory) || memory.kind == MEMORY_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = memory.flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult memory_adopt(const void *at, uint64_t size)
{
	struct memory *memory;
	struct wire_buffer buffer;
	CUresult r;

	if (size == 0 || memory_buffer(at, size, &buffer))
		return CUDA_SUCCESS;
	memory = memory_new(MEMORY_ADOPTED, POINTER(at), size, /* flags= */ 0);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = share(memory);
	if (r == CUDA_SUCCESS)
		memory_enter(memory);
	else
		free(memory);
	return r;
}
