// SPDX-License-Identifier: Apache-2.0
/*
 * Events. Making one waits for nobody: the guest chooses the name, and the host learns it in its turn.
 * What could be wrong with the call is therefore found here.
 */
#include "forward/guest/call.h"

#include <pthread.h>
#include <string.h>

#define N_EVENTS    (1U << 20)
#define LOCAL	    0x80000000U
#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* A name's generation is odd while there is such an event. Free ones are a list. */
static uint32_t generations[N_EVENTS], next_free[N_EVENTS];
static uint32_t first_free, n_used = 1;

static uint64_t name_of(uint32_t index)
{
	return (uint64_t)HANDLE_EVENT << 56 | (uint64_t)(generations[index] & 0xffffff) << 32 |
	       LOCAL | index;
}

/* Return: 0 where there are too many. */
static uint64_t name_take(void)
{
	uint32_t index;
	uint64_t name = 0;

	pthread_mutex_lock(&lock);
	index = first_free;
	if (index)
		first_free = next_free[index];
	else if (n_used < N_EVENTS)
		index = n_used++;
	if (index) {
		generations[index]++;
		name = name_of(index);
	}
	pthread_mutex_unlock(&lock);
	return name;
}

/* Return: is it one of ours, and was it still there? */
static bool name_give(uint64_t name)
{
	uint32_t index = (uint32_t)name & ~LOCAL;
	bool good;

	if (index == 0 || index >= N_EVENTS)
		return false;
	pthread_mutex_lock(&lock);
	good = generations[index] % 2 == 1 && name == name_of(index);
	if (good) {
		generations[index]++;
		next_free[index] = first_free;
		first_free = index;
	}
	pthread_mutex_unlock(&lock);
	return good;
}

CALL(cuEventCreate, CUevent *ret, unsigned flags)
{
	CUcontext current = NULL;
	struct guest_lane *l;
	uint64_t words[2];
	void *body;
	CUresult r;

	r = CALL_WORDS(CALL_ID_cuCtxGetCurrent, POINTER(&current));
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags & ~KNOWN_FLAGS ||
	    (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	words[0] = name_take();
	words[1] = flags;
	if (!words[0])
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = call_begin(CALL_ID_cuEventCreate, sizeof(words), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	*ret = (CUevent)words[0];
	return call_post(l);
}

static CUresult destroy(enum call_id id, CUevent event)
{
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!event || (POINTER(event) & LOCAL && !name_give(POINTER(event))))
		return CUDA_ERROR_INVALID_HANDLE;
	return CALL_WORDS(id, POINTER(event));
}

CALL(cuEventDestroy_v2, CUevent event)
{
	return destroy(CALL_ID_cuEventDestroy_v2, event);
}

CALL(cuEventDestroy, CUevent event)
{
	return destroy(CALL_ID_cuEventDestroy, event);
}
