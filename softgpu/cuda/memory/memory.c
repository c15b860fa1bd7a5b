// SPDX-License-Identifier: Apache-2.0
/* What the driver knows of each piece of memory. memory.h says how it is kept. */
#include "softgpu/cuda/memory/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/rm.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/state/config.h"
#include "softgpu/state/state.h"

/*
 * Address space for each byte of a device: so much that freed memory between live one is never
 * the reason why an allocation does not find a place. A process that may not have that much
 * (ulimit -v, ulimit -f) has less, down to SECTION_LEAST.
 */
#define SECTION_FACTOR 4
#define SECTION_MIN    (16ULL << 30)
#define SECTION_LOW    (512ULL << 20)
#define SECTION_HOST   (1ULL << 40)
#define SECTION_LEAST  (64ULL << 20)

/* What a context keeps of memory: a list, under memory_lock. */
struct memory_set {
	struct memory *first;
};

pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t vrams_lock = PTHREAD_MUTEX_INITIALIZER; /* guards their making */
static struct vram *_Atomic vrams[SOFTGPU_DEVICES_MAX];
static struct vram *_Atomic vrams_low[SOFTGPU_DEVICES_MAX];
static struct vram *_Atomic vram_host;

CUresult memory_error(int r)
{
	if (r == 0)
		return CUDA_SUCCESS;
	if (r == VRAM_E_FULL || r == -ENOMEM || r == -ENOSPC || r == -EFBIG || r == -EMFILE ||
	    r == -ENFILE)
		return CUDA_ERROR_OUT_OF_MEMORY;

	return CUDA_ERROR_OPERATING_SYSTEM;
}

static int charge_take(void *arg, uint64_t bytes)
{
	const struct device *device = arg;

	return rm_charge(device->index, bytes);
}

/* The driver asks its kernel module for nothing: no ioctl goes with it. */
static int inherit_take(void *arg, uint64_t bytes)
{
	const struct device *device = arg;

	return state_inherit(driver.state, device->index, bytes);
}

static void charge_give(void *arg, uint64_t bytes)
{
	const struct device *device = arg;

	state_uncharge(driver.state, device->index, bytes);
}

struct share_charge memory_charge(struct device *device)
{
	return (struct share_charge){ charge_take, charge_give, device };
}

struct share_charge memory_charge_inherited(struct device *device)
{
	return (struct share_charge){ inherit_take, charge_give, device };
}

struct device *memory_device_of_index(unsigned index)
{
	for (unsigned i = 0; i < driver.n_devices; i++)
		if (driver.devices[i].index == index)
			return &driver.devices[i];

	return NULL;
}

bool memory_file_device(int fd, const char *name, struct device **ret)
{
	char path[64], link[128], format[64];
	int index;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;

	link[n] = '\0';
	snprintf(format, sizeof(format), "/memfd:%s-%%d", name);
	if (sscanf(link, format, &index) != 1)
		return false;

	*ret = index < 0 ? NULL : memory_device_of_index(index);
	return index < 0 || *ret;
}

static struct vram *vram_make(struct vram *_Atomic *at, enum vram_kind kind, struct device *device,
			      uint64_t size)
{
	struct share_charge charge = memory_charge(device);
	struct vram *vram = atomic_load_explicit(at, memory_order_acquire);
	uint8_t whose = device ? SPACE_DEVICE(device->ordinal) : SPACE_EVERYONE;
	char name[32];

	if (vram)
		return vram;

	snprintf(name, sizeof(name), MEMORY_FILE "-%d", device ? (int)device->index : -1);
	pthread_mutex_lock(&vrams_lock);
	vram = *at;
	for (; !vram && size >= SECTION_LEAST; size /= 2)
		if (vram_new(kind, name, size, whose, &charge, &vram) == 0)
			atomic_store_explicit(at, vram, memory_order_release);
	pthread_mutex_unlock(&vrams_lock);

	return vram;
}

struct vram *memory_vram(struct device *device)
{
	struct state_memory memory;
	struct vram *vram = atomic_load_explicit(&vrams[device->index], memory_order_acquire);
	uint64_t size;

	if (vram)
		return vram;

	state_memory_device(driver.state, device->index, &memory);
	size = SECTION_FACTOR * memory.total_bytes;
	if (size < SECTION_MIN)
		size = SECTION_MIN;
	return vram_make(&vrams[device->index], VRAM_DEVICE, device, size);
}

struct vram *memory_vram_low(struct device *device)
{
	return vram_make(&vrams_low[device->index], VRAM_LOW, device, SECTION_LOW);
}

struct vram *memory_vram_host(void)
{
	return vram_make(&vram_host, VRAM_HOST, /* device= */ NULL, SECTION_HOST);
}

void memory_enter(struct memory *memory, enum memory_kind kind, struct context *ctx,
		  struct device *device)
{
	static uint64_t n_ids;

	memory->range.space.kind = kind;
	memory->id = ++n_ids;
	memory->device = device;
	memory->ctx = ctx;
	if (!ctx)
		return;

	memory->ctx_handle = ctx->handle;
	memory->prev = NULL;
	memory->next = ctx->memory->first;
	if (memory->next)
		memory->next->prev = memory;
	ctx->memory->first = memory;
}

void memory_leave(struct memory *memory)
{
	if (!memory->ctx)
		return;

	if (memory->next)
		memory->next->prev = memory->prev;
	if (memory->prev)
		memory->prev->next = memory->next;
	else
		memory->ctx->memory->first = memory->next;
	memory->ctx = NULL;
}

CUresult memory_new_in(enum memory_kind kind, struct vram_group *group, struct context *ctx,
		       struct device *device, uint64_t bytes, struct memory **ret)
{
	struct memory *memory = group ? calloc(1, sizeof(*memory)) : NULL;
	int r;

	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;

	memory->end = memory_free;
	do {
		pthread_mutex_lock(&memory_lock);
		r = vram_alloc_in(group, bytes, SPACE_READ_WRITE, &memory->range);
		if (r == 0)
			memory_enter(memory, kind, ctx, device);
		pthread_mutex_unlock(&memory_lock);
	} while (r == VRAM_E_FULL && memory_reclaim(device));
	if (r) {
		free(memory);
		return memory_error(r);
	}

	*ret = memory;
	return CUDA_SUCCESS;
}

CUresult memory_new(enum memory_kind kind, struct vram *vram, struct context *ctx,
		    struct device *device, uint64_t bytes, struct memory **ret)
{
	return memory_new_in(kind, vram ? vram_common(vram) : NULL, ctx, device, bytes, ret);
}

void memory_free(struct memory *memory)
{
	pthread_mutex_lock(&memory_lock);
	memory_leave(memory);
	vram_release(&memory->range);
	pthread_mutex_unlock(&memory_lock);
	free(memory);
}

struct memory *memory_claim(uint64_t addr, unsigned kinds)
{
	struct memory *memory;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find(addr);
	if (memory && (memory_addr(memory) != addr || memory->is_freed ||
		       !(kinds >> memory_kind(memory) & 1)))
		memory = NULL;
	if (memory)
		memory->is_freed = true;
	pthread_mutex_unlock(&memory_lock);

	return memory;
}

CUresult memory_begin(struct context **ret)
{
	CUresult r = context_current(ret);

	return r != CUDA_SUCCESS ? r : stream_capture_check(*ret);
}

CUresult memory_release(struct memory *memory)
{
	CUresult r = CUDA_SUCCESS;
	struct context *ctx;

	if (context_find(memory->ctx_handle, &ctx) == CUDA_SUCCESS)
		r = context_synchronize(ctx);
	memory->end(memory);
	return r;
}

CUresult memory_internal_new(struct context *ctx, uint64_t bytes, CUdeviceptr *ret)
{
	struct memory *memory;
	CUresult r;

	r = memory_new(MEMORY_INTERNAL, memory_vram(ctx->device), ctx, ctx->device, bytes, &memory);
	if (r != CUDA_SUCCESS)
		return r;

	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}

void memory_internal_free(CUdeviceptr addr)
{
	struct memory *memory = memory_claim(addr, 1U << MEMORY_INTERNAL);

	if (memory)
		memory_free(memory);
}

/* Copies stop at the end of an allocation, but go on over mappings that touch each other. */
static bool check_from(uint64_t addr, uint64_t bytes)
{
	const struct memory *memory;
	uint64_t end, there;

	if (__builtin_add_overflow(addr, bytes, &end))
		return false;

	while ((memory = memory_find(addr))) {
		if (memory_kind(memory) == MEMORY_ARRAY || memory->is_freed)
			return false;
		if (memory_kind(memory) == MEMORY_VIRTUAL &&
		    !space_ok(addr, /* size= */ 1, /* write= */ false))
			return false;

		there = memory_addr(memory) + memory_size(memory);
		if (end <= there)
			return true;
		if (memory_kind(memory) != MEMORY_VIRTUAL)
			return false;
		addr = there;
	}

	return false;
}

bool memory_check(uint64_t addr, uint64_t bytes)
{
	bool ok;

	pthread_mutex_lock(&memory_lock);
	ok = check_from(addr, bytes);
	pthread_mutex_unlock(&memory_lock);

	/* What a graph will allocate may be named before it is there. */
	return ok || graph_memory_covers(addr, bytes);
}

static bool is_in(struct vram *_Atomic *at, uint64_t addr)
{
	struct vram *vram = atomic_load_explicit(at, memory_order_acquire);

	return vram && vram_contains(vram, addr);
}

bool memory_is_pageable(uint64_t addr)
{
	bool known;

	pthread_mutex_lock(&memory_lock);
	known = memory_find(addr) || memory_is_reserved(addr, /* bytes= */ 1);
	pthread_mutex_unlock(&memory_lock);
	if (known)
		return false;

	/* Nobody's now, but it cannot be the program's either: it was freed. */
	for (unsigned i = 0; i < driver.n_devices; i++)
		if (is_in(&vrams[driver.devices[i].index], addr) ||
		    is_in(&vrams_low[driver.devices[i].index], addr))
			return false;

	return !is_in(&vram_host, addr);
}

static CUresult memory_set_begin(struct context *ctx)
{
	ctx->memory = calloc(1, sizeof(*ctx->memory));
	return ctx->memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The next one to end. What a call is freeing at this very moment is left to that call. */
static struct memory *memory_set_take(struct memory_set *set)
{
	struct memory *memory;

	pthread_mutex_lock(&memory_lock);
	while ((memory = set->first) && memory->is_freed)
		memory_leave(memory);
	if (memory)
		memory->is_freed = true;
	pthread_mutex_unlock(&memory_lock);

	return memory;
}

static void memory_set_end(struct context *ctx)
{
	struct memory *memory;

	/* No thread can reach the context any more, so nothing is added meanwhile. */
	while ((memory = memory_set_take(ctx->memory)))
		memory->end(memory);
	free(ctx->memory);
	ctx->memory = NULL;
}

CONTEXT_PART(memory, .order = 10, .begin = memory_set_begin, .end = memory_set_end);
