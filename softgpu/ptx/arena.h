/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is released all at once: a parsed module is thousands of small pieces that live and
 * die together.
 */
#ifndef SOFTGPU_PTX_ARENA_H
#define SOFTGPU_PTX_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *arena);

/* arena_alloc() - @size zeroed bytes, aligned for anything; NULL where there is no memory */
void *arena_alloc(struct arena *arena, size_t size);

/* arena_copy() - a copy of @size bytes; NULL where there is no memory */
void *arena_copy(struct arena *arena, const void *from, size_t size);

#endif
