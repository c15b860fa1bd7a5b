/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that devices reach: allocated, registered, managed. */
#ifndef FORWARD_GUEST_MEMORY_H
#define FORWARD_GUEST_MEMORY_H

#include "forward/guest/session.h"

enum memory_kind {
	MEMORY_ALLOCATED,
	MEMORY_REGISTERED,
	MEMORY_MANAGED,
};

/**
 * struct memory - a range of the program's and what it is for
 * @device:	the address by which devices reach it
 */
struct memory {
	struct memory *next;
	uint64_t address;
	uint64_t size;
	uint64_t device;
	enum memory_kind kind;
	unsigned flags;
};

/**
 * memory_find() - the memory around an address that devices reach
 * @ret:	a copy
 *
 * Return: is there any?
 */
bool memory_find(uint64_t address, struct memory *ret);

/** memory_adopt() - share the pages of a range for good, so that what runs later reaches them; devices do not */
CUresult memory_adopt(const void *at, uint64_t size);

/** memory_free_managed() - if it is managed memory. Return: CUDA_ERROR_NOT_FOUND if it is not */
CUresult memory_free_managed(uint64_t address);

/** memory_is_device() - does the host's driver know the address? */
bool memory_is_device(uint64_t address);

#endif
