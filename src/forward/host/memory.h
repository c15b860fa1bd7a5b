/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's commands may reach: its grants, and the device memory that is its own.
 */
#ifndef FORWARD_HOST_MEMORY_H
#define FORWARD_HOST_MEMORY_H

#include "forward/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * grant_add() - map memory that the guest shares
 * @fd:		what to map
 * @pieces:	where in it, in order; NULL: @size bytes from its beginning
 * @address:	where the guest has it; it is mapped there, too, unless something else is
 *
 * Return: 0, -EINVAL, -EEXIST, or what the kernel said.
 */
int grant_add(uint32_t id, int fd, uint64_t address, uint64_t size, const struct wire_piece *pieces,
	      size_t n_pieces);

/** grant_remove() - unmap it. Return: 0, -ENOENT. */
int grant_remove(uint32_t id);

/** grant_find() - where a part of a grant is here; NULL where it is not inside */
void *grant_find(const struct wire_buffer *buffer);

/**
 * range_ok() - are these addresses the session's device memory?
 *
 * The driver is asked; addresses that were only reserved, or that belong to a graph which has not run yet,
 * it does not know, so range_add() keeps them.
 */
bool range_ok(uint64_t address, uint64_t size);

/** range_add() - remember addresses that a call gave out, unless the driver knows them */
void range_add(uint64_t address, uint64_t size);

/** range_remove() - forget them */
void range_remove(uint64_t address);

#endif
