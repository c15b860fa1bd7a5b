// SPDX-License-Identifier: Apache-2.0
/*
 * Of each variable the guest keeps what both sides had when they were alike last, so that either side's news are
 * told from the other's byte by byte: nobody's write is undone by the other's older value.
 *
 * Commands carry the bytes themselves. They do not go through blocks of the heap, for which one would wait with
 * the lock held, and not through streams, whose order the program would notice.
 */
#include "forward/guest/variable.h"

#include "base/base.h"
#include "forward/guest/call.h"
#include "forward/guest/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE  4096ULL
#define CHUNK WIRE_MANAGED_MAX

/**
 * struct variable - one that is kept twice
 * @alike:	what both sides had last
 */
struct variable {
	struct variable *next;
	uint64_t address;
	uint64_t size;
	uint8_t *alike;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable *all;
static _Atomic unsigned n_variables;

static uint64_t page_of(uint64_t address)
{
	return address & ~(PAGE - 1);
}

/* Room for @n bytes of answer. The reply area is good until the thread's next record. */
static CUresult chunk_read(uint64_t address, size_t n, uint8_t *ret)
{
	const uint64_t words[] = { address, n };
	const uint8_t *data = NULL;
	struct guest_lane *l;
	size_t size = 0;
	void *body;
	CUresult r;

	r = call_begin(WIRE_READ_MANAGED, sizeof(words), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	r = lane_ask(l, &data, &size);
	if (r == CUDA_SUCCESS && size < n)
		r = session_lose();
	if (r == CUDA_SUCCESS)
		memcpy(ret, data, n);
	return r;
}

/* The host writes those of the bytes that are not as both sides had them. */
static CUresult chunk_write(uint64_t address, size_t n, const uint8_t *alike, const uint8_t *now)
{
	const uint64_t words[] = { address, n };
	struct guest_lane *l;
	uint8_t *body;
	CUresult r;

	r = call_begin(WIRE_WRITE_MANAGED, sizeof(words) + 2 * wire_align(n), &l, (void **)&body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	memcpy(body + sizeof(words), alike, n);
	memcpy(body + sizeof(words) + wire_align(n), now, n);
	return lane_ask(l, NULL, NULL);
}

static CUresult chunk_pull(struct variable *v, uint64_t offset, size_t n)
{
	uint8_t *mine = (uint8_t *)v->address + offset, *alike = v->alike + offset;
	uint8_t theirs[CHUNK];
	size_t i;
	CUresult r = chunk_read(v->address + offset, n, theirs);

	for (i = 0; i < n && r == CUDA_SUCCESS; i++)
		if (theirs[i] != alike[i])
			mine[i] = alike[i] = theirs[i];
	return r;
}

/* Other threads of the program may write meanwhile: what is sent is what is noted. */
static CUresult chunk_push(struct variable *v, uint64_t offset, size_t n)
{
	uint8_t *alike = v->alike + offset, now[CHUNK];
	CUresult r;

	memcpy(now, (const uint8_t *)v->address + offset, n);
	if (memcmp(now, alike, n) == 0)
		return CUDA_SUCCESS;
	r = chunk_write(v->address + offset, n, alike, now);
	if (r == CUDA_SUCCESS)
		memcpy(alike, now, n);
	return r;
}

typedef CUresult (*chunk_fn)(struct variable *v, uint64_t offset, size_t n);

static CUresult each_chunk(struct variable *v, chunk_fn run)
{
	uint64_t offset;
	CUresult r = CUDA_SUCCESS;

	for (offset = 0; offset < v->size && r == CUDA_SUCCESS; offset += CHUNK)
		r = run(v, offset, MIN(v->size - offset, (uint64_t)CHUNK));
	return r;
}

/* The caller has the lock. */
static bool page_is_used(uint64_t page)
{
	struct variable *v;

	for (v = all; v; v = v->next)
		if (page < v->address + v->size && v->address < page + PAGE)
			return true;
	return false;
}

/* The caller has the lock, and the variable is in the list no more. */
static void pages_unmap(uint64_t address, uint64_t end)
{
	uint64_t page;

	for (page = page_of(address); page < end; page += PAGE)
		if (!page_is_used(page))
			munmap((void *)page, PAGE);
}

/* The caller has the lock. Small variables share a page; what anybody else has mapped there is in the way. */
static bool pages_map(uint64_t address, uint64_t end)
{
	uint64_t page;
	void *at;

	for (page = page_of(address); page < end; page += PAGE) {
		if (page_is_used(page))
			continue;
		at = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (at == (void *)page)
			continue;
		if (at != MAP_FAILED)
			munmap(at, PAGE);
		pages_unmap(address, page);
		return false;
	}
	return true;
}

static void variable_free(struct variable *v)
{
	if (!v)
		return;
	free(v->alike);
	free(v);
}

/* The caller has the lock. Those that are no more, because their code or their context ended, are forgotten. */
static void each_variable(chunk_fn run)
{
	struct variable **at = &all, *v;

	while ((v = *at)) {
		if (each_chunk(v, run) != CUDA_ERROR_INVALID_VALUE) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		pages_unmap(v->address, v->address + v->size);
		atomic_fetch_sub(&n_variables, 1);
		variable_free(v);
	}
}

bool variable_waits_for(unsigned call)
{
	return wire_calls[call].class == WIRE_ROUND_TRIP &&
	       (calls[call].group == GROUP_SYNC || calls[call].group == GROUP_COPY);
}

void variable_push(unsigned call)
{
	if (atomic_load_explicit(&n_variables, memory_order_relaxed) == 0 || call >= CALL_N ||
	    (calls[call].group != GROUP_LAUNCH && calls[call].group != GROUP_COPY))
		return;
	pthread_mutex_lock(&lock);
	each_variable(chunk_push);
	pthread_mutex_unlock(&lock);
}

void variable_pull(void)
{
	if (atomic_load_explicit(&n_variables, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&lock);
	each_variable(chunk_pull);
	pthread_mutex_unlock(&lock);
}

/* The caller has the lock. */
static struct variable *variable_around(uint64_t address, uint64_t end)
{
	struct variable *v = all;

	while (v && (address < v->address || end > v->address + v->size))
		v = v->next;
	return v;
}

static struct variable *variable_new(uint64_t address, uint64_t size)
{
	struct variable *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	*v = (struct variable){ .address = address, .size = size, .alike = calloc(1, size) };
	if (v->alike)
		return v;
	free(v);
	return NULL;
}

/* The caller has the lock. */
static CUresult enter(uint64_t address, uint64_t size)
{
	struct variable *v = variable_new(address, size);
	CUresult r;

	if (!v)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!pages_map(address, address + size)) {
		guest_log(
			"a managed variable is at %#llx in the host, where this process has something else",
			(unsigned long long)address);
		variable_free(v);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	memset((void *)address, 0, size);
	r = each_chunk(v, chunk_pull);
	if (r != CUDA_SUCCESS) {
		pages_unmap(address, address + size);
		variable_free(v);
		return r;
	}
	v->next = all;
	all = v;
	atomic_fetch_add(&n_variables, 1);
	return CUDA_SUCCESS;
}

/* A variable was looked up. One that is not managed is the device's alone. */
static CUresult found(uint64_t address, uint64_t size)
{
	uint8_t first;
	CUresult r;

	if (size == 0)
		return CUDA_SUCCESS;
	r = chunk_read(address, 1, &first);
	if (r == CUDA_ERROR_INVALID_VALUE)
		return CUDA_SUCCESS;
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	if (!variable_around(address, address + size))
		r = enter(address, size);
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult look_up(enum call_id id, CUdeviceptr *ret, size_t *ret_size, uint64_t of,
			const char *name)
{
	CUdeviceptr address = 0;
	size_t size = 0;
	CUresult r;

	r = CALL_WORDS(id, POINTER(&address), POINTER(&size), of, POINTER(name));
	if (r == CUDA_SUCCESS)
		r = found(address, size);
	if (r != CUDA_SUCCESS)
		return r;
	if (ret)
		*ret = address;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

CALL(cuModuleGetGlobal_v2, CUdeviceptr *ret, size_t *ret_size, CUmodule module, const char *name)
{
	return look_up(CALL_ID_cuModuleGetGlobal_v2, ret, ret_size, POINTER(module), name);
}

CALL(cuLibraryGetGlobal, CUdeviceptr *ret, size_t *ret_size, CUlibrary library, const char *name)
{
	return look_up(CALL_ID_cuLibraryGetGlobal, ret, ret_size, POINTER(library), name);
}

CALL(cuLibraryGetManaged, CUdeviceptr *ret, size_t *ret_size, CUlibrary library, const char *name)
{
	return look_up(CALL_ID_cuLibraryGetManaged, ret, ret_size, POINTER(library), name);
}
