/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying much memory, as a device's copy engine does it: past the processor's caches.
 *
 * A copy that goes through a buffer has one side write it and the other read it, on two CPUs. What the first
 * has in its cache the second has to fetch from there, which between chiplets takes up to ten times as long as
 * from memory; and what is written through a cache is read into it first. Nothing of that is so of a store that
 * goes past the caches. Memory that does not fit in them loses nothing by it.
 */
#ifndef CUDA_BULK_COPY_H
#define CUDA_BULK_COPY_H

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* From here on: a quarter of a small second-level cache. */
#define BULK_COPY_MIN (256U << 10)

#define BULK_LINE 64

static inline void bulk_copy_line(char *to, const char *from)
{
	const __m128i *in = (const __m128i *)from;
	__m128i *out = (__m128i *)to;
	__m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
	__m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);

	_mm_stream_si128(out, a);
	_mm_stream_si128(out + 1, b);
	_mm_stream_si128(out + 2, c);
	_mm_stream_si128(out + 3, d);
}

/** bulk_copy() - memcpy() past the caches; who is told afterwards that it is done sees all of it */
static inline void bulk_copy(void *to, const void *from, size_t size)
{
	size_t i, head = -(uintptr_t)to % BULK_LINE;
	const char *in = from;
	char *out = to;

	if (head > size)
		head = size;
	memcpy(out, in, head);
	for (i = head; size - i >= BULK_LINE; i += BULK_LINE)
		bulk_copy_line(out + i, in + i);
	_mm_sfence();
	memcpy(out + i, in + i, size - i);
}

#endif
