/* SPDX-License-Identifier: Apache-2.0 */
/* The session's heap, grant 0, in blocks: what pageable memory travels through. */
#ifndef FORWARD_GUEST_HEAP_H
#define FORWARD_GUEST_HEAP_H

#include "forward/transport.h"

#include <stddef.h>

#define HEAP_BLOCK (256U << 10)

/** heap_take() - a block that nobody else has; waits for one. Return: its number. */
unsigned heap_take(void);

/** heap_give() - it is free again: what used it was executed */
void heap_give(unsigned block);

/** heap_at() - where it is */
void *heap_at(unsigned block);

/** heap_buffer() - how a command names its first bytes */
struct wire_buffer heap_buffer(unsigned block, size_t size);

#endif
