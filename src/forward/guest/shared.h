/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of this process that the host has, too.
 *
 * Two ranges that a program registers may have a page in common, so pages are shared once and counted.
 */
#ifndef FORWARD_GUEST_SHARED_H
#define FORWARD_GUEST_SHARED_H

#include "forward/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define SHARED_PAGE 4096ULL

/**
 * shared_take() - share the pages of a range, those of them that are not yet
 * @keep:	they keep their contents
 *
 * Return: 0, -EFAULT where something is not mapped, or what the carrier said.
 */
int shared_take(uint64_t address, uint64_t size, bool keep);

/** shared_put() - the range needs them no more */
void shared_put(uint64_t address, uint64_t size);

/** shared_buffer() - how a command names a range; false where not all of it is shared */
bool shared_buffer(uint64_t address, uint64_t size, struct wire_buffer *ret);

#endif
