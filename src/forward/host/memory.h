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

/** memory_reserve() - addresses without memory: those asked for, or any where these are taken. NULL: none */
uint8_t *memory_reserve(uint64_t address, uint64_t size);

/**
 * grant_add() - map memory that the guest shares
 * @fd:		what to map, @size bytes from its beginning
 * @address:	where the guest has it; it is mapped there, too, unless something else is
 *
 * Return: 0, -EINVAL, -EEXIST, or what the kernel said.
 */
int grant_add(uint32_t id, int fd, uint64_t address, uint64_t size);

/** grant_add_at() - likewise, of memory that is mapped already. Return: 0, -EINVAL, -EEXIST. */
int grant_add_at(uint32_t id, uint8_t *at, uint64_t address, uint64_t size);

/** grant_remove() - unmap it. Return: 0, -ENOENT, -EBUSY where devices reach some of it. */
int grant_remove(uint32_t id);

/**
 * pin_begin() - devices are about to reach memory of grants: these cannot end before pin_end()
 *
 * Return: 0, -ENOENT where it is none of any grant any more, -EDQUOT.
 */
int pin_begin(const void *at, uint64_t size);

/** pin_end() - devices do not reach what begins there any more */
void pin_end(const void *at);

/** grant_find() - where a part of a grant is here; NULL where it is not inside */
void *grant_find(const struct wire_buffer *buffer);

/** grant_address() - where the guest has what is at an address of a grant here; 0 where it is in none */
uint64_t grant_address(const void *at);

/**
 * range_ok() - are these addresses the session's device memory?
 *
 * The driver is asked; addresses that were only reserved, or that belong to a graph which has not run yet,
 * it does not know, so range_add() keeps them.
 */
bool range_ok(uint64_t address, uint64_t size);

/** range_is_managed() - are they in one piece of managed memory, which this process reaches, too? */
bool range_is_managed(uint64_t address, uint64_t size);

/** range_add() - remember addresses that a call gave out, unless the driver knows them */
void range_add(uint64_t address, uint64_t size);

/** range_remove() - forget them */
void range_remove(uint64_t address);

#endif
