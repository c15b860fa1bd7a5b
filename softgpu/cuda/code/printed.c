// SPDX-License-Identifier: Apache-2.0
/*
 * Text that kernels print. It is kept until the program waits for the device, as hardware does
 * with its buffer, and then goes to the program's standard output. Where the buffer would
 * overflow, it is written early rather than lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/code/printed.h"

struct printed {
	pthread_mutex_t lock;
	char *text;
	size_t n, cap;
	_Atomic bool pending; /* spares synchronisations the lock */
};

static void printed_write(struct printed *print)
{
	fwrite(print->text, 1, print->n, stdout);
	print->n = 0;
	print->pending = false;
}

static bool printed_has_room(struct printed *print, size_t n, size_t limit)
{
	size_t cap = print->cap ? print->cap : 4096;
	char *text;

	if (print->n + n <= print->cap)
		return true;
	if (print->n + n > limit)
		return false;
	while (cap < print->n + n)
		cap *= 2;
	text = realloc(print->text, cap);
	if (!text)
		return false;
	print->text = text;
	print->cap = cap;
	return true;
}

void printed_add(void *arg, const char *text, size_t n)
{
	struct context *ctx = arg;
	struct printed *print = ctx->printed;

	pthread_mutex_lock(&print->lock);
	if (!printed_has_room(print, n, ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE]))
		printed_write(print);
	if (printed_has_room(print, n, SIZE_MAX)) {
		memcpy(print->text + print->n, text, n);
		print->n += n;
		print->pending = true;
	}
	pthread_mutex_unlock(&print->lock);
}

void printed_flush(struct context *ctx)
{
	struct printed *print = ctx->printed;

	if (!print->pending)
		return;
	pthread_mutex_lock(&print->lock);
	printed_write(print);
	pthread_mutex_unlock(&print->lock);
}

static CUresult printed_begin(struct context *ctx)
{
	struct printed *print = calloc(1, sizeof(*print));

	if (!print)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&print->lock, NULL);
	ctx->printed = print;
	return CUDA_SUCCESS;
}

static void printed_end(struct context *ctx)
{
	struct printed *print = ctx->printed;

	printed_flush(ctx);
	pthread_mutex_destroy(&print->lock);
	free(print->text);
	free(print);
	ctx->printed = NULL;
}

CONTEXT_PART(printed, .order = 18, .begin = printed_begin, .end = printed_end);
