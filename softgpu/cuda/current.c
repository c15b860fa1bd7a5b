// SPDX-License-Identifier: Apache-2.0
/*
 * Each thread's stack of current contexts.
 *
 * The top is a variable of its own, because every call looks at it; what lies below is rarely
 * there. A context that is destroyed stays on the stacks of other threads, whose calls then tell
 * so.
 */
#include <stdlib.h>

#include "softgpu/cuda/context.h"

_Thread_local CUcontext context_current_handle;
_Thread_local bool context_in_callback;

struct below {
	CUcontext *handles; /* oldest first */
	size_t n, capacity;
};

static _Thread_local struct below *below __attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_good;

static void free_below(void *arg)
{
	struct below *of_thread = arg;

	free(of_thread->handles);
	free(of_thread);
}

static void make_key(void)
{
	key_good = pthread_key_create(&key, free_below) == 0;
}

/* The thread's lower part, made when it is first needed; NULL: no memory. */
static struct below *get_below(void)
{
	struct below *made;

	if (below)
		return below;
	pthread_once(&key_once, make_key);
	made = key_good ? calloc(1, sizeof(*made)) : NULL;
	if (made && pthread_setspecific(key, made) != 0) {
		free(made);
		made = NULL;
	}
	below = made;
	return made;
}

CUresult current_push(CUcontext handle)
{
	struct below *under;
	CUcontext *grown;

	if (context_current_handle) {
		under = get_below();
		if (!under)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (under->n == under->capacity) {
			size_t capacity = under->capacity ? 2 * under->capacity : 8;

			grown = realloc(under->handles, capacity * sizeof(*grown));
			if (!grown)
				return CUDA_ERROR_OUT_OF_MEMORY;
			under->handles = grown;
			under->capacity = capacity;
		}
		under->handles[under->n++] = context_current_handle;
	}
	context_current_handle = handle;
	return CUDA_SUCCESS;
}

void current_pop(void)
{
	context_current_handle = below && below->n ? below->handles[--below->n] : NULL;
}

CALL(cuCtxPushCurrent_v2, CUcontext ctx)
{
	struct context *found;
	CUresult r = context_find(ctx, &found);

	return r == CUDA_SUCCESS ? current_push(ctx) : r;
}

CALL(cuCtxPushCurrent, CUcontext ctx)
{
	return impl_cuCtxPushCurrent_v2(ctx);
}

CALL(cuCtxPopCurrent_v2, CUcontext *pctx)
{
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!context_current_handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = context_current_handle;
	current_pop();
	return CUDA_SUCCESS;
}

CALL(cuCtxPopCurrent, CUcontext *pctx)
{
	return impl_cuCtxPopCurrent_v2(pctx);
}

/* Replaces the top; NULL takes it away. */
CALL(cuCtxSetCurrent, CUcontext ctx)
{
	struct context *found;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ctx) {
		current_pop();
		return CUDA_SUCCESS;
	}
	r = context_find(ctx, &found);
	if (r == CUDA_SUCCESS)
		context_current_handle = ctx;
	return r;
}

CALL(cuCtxGetCurrent, CUcontext *pctx)
{
	return TELL(driver_check(), pctx, context_current_handle);
}
