/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files about contexts; the other parts need core.h alone. */
#pragma once

#include "softgpu/cuda/core.h"

/* Held while a context comes into being or ends, and over the fields that core.h says. */
extern pthread_mutex_t context_lock;

/** context_flags_check() - CUDA_ERROR_INVALID_VALUE for flags that no context can have */
CUresult context_flags_check(unsigned flags);

/** context_alloc() - a context with a handle, not active yet; NULL: no memory */
struct context *context_alloc(struct device *device);

/**
 * context_begin() - make it active: pay for it, give it a place on the device, begin its parts
 *
 * Under context_lock. On failure it is as before.
 */
CUresult context_begin(struct context *ctx, unsigned flags);

/**
 * context_drain() - before a context ends: wait for its work, as long as that ends
 *
 * Without context_lock: others can make and end contexts meanwhile. A program that only ends its
 * context expects that what it submitted is done, so it is waited for; but a kernel need not end.
 */
void context_drain(struct context *ctx);

/**
 * context_end() - give up what it still does and free all that it has
 *
 * Under context_lock. Calls that are given it from now on answer
 * CUDA_ERROR_CONTEXT_IS_DESTROYED.
 */
void context_end(struct context *ctx);

/** context_free() - forget a context that has ended */
void context_free(struct context *ctx);

/* The calling thread's stack of current contexts. */
CUresult current_push(CUcontext handle);
void current_pop(void);

/** context_or_current() - the context that @handle means, the current one for NULL */
CUresult context_or_current(CUcontext handle, struct context **ret);
