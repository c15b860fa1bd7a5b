/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the host shares: allocated, registered, managed, or shared because a graph names it. */
#ifndef FORWARD_GUEST_MEMORY_H
#define FORWARD_GUEST_MEMORY_H

#include "forward/guest/session.h"

enum memory_kind {
	MEMORY_ALLOCATED,
	MEMORY_REGISTERED,
	MEMORY_MANAGED,
	/* Pages that a graph's node reads or writes; the driver does not know of them. */
	MEMORY_ADOPTED,
};

/**
 * struct memory - a grant and what it is for
 * @address:	of the first page
 * @size:	bytes of whole pages
 * @asked:	where the program's own range begins, and
 * @asked_size:	how long it is
 * @device:	the address by which devices reach @asked
 */
struct memory {
	struct memory *next;
	uint64_t address;
	uint64_t size;
	uint64_t asked;
	uint64_t asked_size;
	uint64_t device;
	uint32_t grant;
	enum memory_kind kind;
	unsigned flags;
};

/** memory_buffer() - how a command names host memory. Return: is all of it in one grant? */
bool memory_buffer(const void *at, uint64_t size, struct wire_buffer *ret);

/**
 * memory_find() - the memory around an address that devices reach
 * @ret:	a copy
 *
 * Return: is there any?
 */
bool memory_find(uint64_t address, struct memory *ret);

/** memory_adopt() - share the pages of a range for good, so that what runs later reaches them */
CUresult memory_adopt(const void *at, uint64_t size);

/** memory_free_managed() - if it is managed memory. Return: CUDA_ERROR_NOT_FOUND if it is not */
CUresult memory_free_managed(uint64_t address);

/** memory_is_device() - does the host's driver know the address? */
bool memory_is_device(uint64_t address);

#endif
