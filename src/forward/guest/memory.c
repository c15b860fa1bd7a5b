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
#include "forward/guest/shared.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define HOST_ALLOC_FLAGS                                                                           \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                                        \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                              \
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
static struct memory *memory_claim(uint64_t address, enum memory_kind kind)
{
	struct memory **at, *memory;

	pthread_mutex_lock(&lock);
	for (at = &all; *at && ((*at)->address != address || (*at)->kind != kind);
	     at = &(*at)->next)
		;
	memory = *at;
	if (memory)
		*at = memory->next;
	pthread_mutex_unlock(&lock);
	return memory;
}

bool memory_find(uint64_t address, struct memory *ret)
{
	struct memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = all; memory; memory = memory->next)
		if (address - memory->address < memory->size)
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
	return lane_ask(l, &data, &size) == CUDA_SUCCESS && size == sizeof(uint64_t) &&
	       *(const uint64_t *)data;
}

/* WIRE_PIN, WIRE_UNPIN: the buffer, the flags of cuMemHostRegister(). */
static CUresult pin(struct memory *memory, unsigned command)
{
	const uint64_t flags = memory->flags;
	struct wire_buffer buffer;
	struct guest_lane *l;
	const uint8_t *data;
	uint8_t *body;
	size_t size;
	CUresult r;

	if (!shared_buffer(memory->address, memory->size, &buffer))
		return CUDA_ERROR_INVALID_VALUE;
	r = call_begin(command, sizeof(buffer) + sizeof(flags), &l, (void **)&body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, &buffer, sizeof(buffer));
	memcpy(body + sizeof(buffer), &flags, sizeof(flags));
	r = call_ask(l, &data, &size);
	if (r == CUDA_SUCCESS && size == sizeof(memory->device))
		memcpy(&memory->device, data, sizeof(memory->device));
	return r;
}

static CUresult share_result(int error)
{
	switch (error) {
	case 0:
		return CUDA_SUCCESS;
	case -ENODEV:
		return session_lose();
	case -EFAULT:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

static struct memory *memory_new(enum memory_kind kind, uint64_t address, uint64_t size,
				 unsigned flags)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (memory)
		*memory = (struct memory){
			.kind = kind, .address = address, .size = size, .flags = flags
		};
	return memory;
}

/* Shares it and lets devices reach it; on failure nothing of it is left. */
static CUresult memory_begin(struct memory *memory, bool keep)
{
	CUresult r = share_result(shared_take(memory->address, memory->size, keep));

	if (r != CUDA_SUCCESS)
		return r;
	r = pin(memory, WIRE_PIN);
	if (r == CUDA_SUCCESS && memory->kind != MEMORY_REGISTERED &&
	    memory->device != memory->address) {
		pin(memory, WIRE_UNPIN);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS)
		shared_put(memory->address, memory->size);
	return r;
}

/*
 * Addresses for fresh pages. What is long begins at a huge page, so that a carrier can share it in pieces
 * of that size.
 */
static void *reserve(size_t size)
{
	const size_t huge = 2UL << 20, spare = size >= huge ? huge : 0;
	uint8_t *at = mmap(NULL, size + spare, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (at == MAP_FAILED || !spare)
		return at;
	size = (size + SHARED_PAGE - 1) & ~(SHARED_PAGE - 1);
	before = -POINTER(at) % huge;
	if (before)
		munmap(at, before);
	if (before < spare)
		munmap(at + before + size, spare - before);
	return at + before;
}

static CUresult allocate(enum memory_kind kind, size_t size, unsigned flags, uint64_t *ret)
{
	struct memory *memory;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	void *at;

	if (size > WIRE_MAX_GRANT)
		return r;
	at = reserve(size);
	if (at == MAP_FAILED)
		return r;
	memory = memory_new(kind, POINTER(at), size, flags);
	if (memory)
		r = memory_begin(memory, /* keep= */ false);
	if (r != CUDA_SUCCESS) {
		munmap(at, size);
		free(memory);
		return r;
	}
	memory_enter(memory);
	*ret = memory->address;
	return CUDA_SUCCESS;
}

static CUresult release(struct memory *memory)
{
	CUresult r = pin(memory, WIRE_UNPIN);

	if (r != DEVICE_LOST)
		shared_put(memory->address, memory->size);
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

/* Is any of it registered or allocated already? */
static bool overlaps(uint64_t address, uint64_t size)
{
	struct memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = all; memory; memory = memory->next)
		if (address < memory->address + memory->size && memory->address < address + size)
			break;
	pthread_mutex_unlock(&lock);
	return memory;
}

CALL(cuMemHostRegister_v2, void *p, size_t size, unsigned flags)
{
	CUresult r = session_check();
	struct memory *memory;
	uint64_t end;

	if (r != CUDA_SUCCESS)
		return r;
	if (!p || size == 0 || flags & ~HOST_REGISTER_FLAGS ||
	    __builtin_add_overflow(POINTER(p), size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	if (overlaps(POINTER(p), size))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	memory = memory_new(MEMORY_REGISTERED, POINTER(p), size, flags);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = memory_begin(memory, /* keep= */ true);
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
	*ret = memory.device + (POINTER(p) - memory.address);
	return CUDA_SUCCESS;
}

CALL(cuMemHostGetDevicePointer, CUdeviceptr_v1 *ret, void *p, _unused_ unsigned flags)
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
	struct wire_buffer buffer;

	if (size == 0 || shared_buffer(POINTER(at), size, &buffer))
		return CUDA_SUCCESS;
	return share_result(shared_take(POINTER(at), size, /* keep= */ true));
}
