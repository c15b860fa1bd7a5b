/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of address space in whole blocks of 2 MiB: reserved first, backed later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum section_flags {
	SECTION_LOW = 1 << 0, /* addresses that fit into 32 bits */
};

/**
 * section_reserve() - address space that nothing else will get
 * @hint:	where it would be welcome, or 0; taken only if it is free and fits @align
 * @size:	a multiple of the block size
 * @align:	a power of two, at least the block size
 *
 * Return: 0 or a negative errno.
 */
int section_reserve(uint64_t hint, uint64_t size, uint64_t align, enum section_flags flags,
		    uint64_t *ret);

/** section_map() - back a part of it with a part of a file. Return: 0 or a negative errno. */
int section_map(uint64_t addr, uint64_t size, int fd, uint64_t offset, bool accessible);

/** section_unmap() - back to address space only. Return: 0 or a negative errno. */
int section_unmap(uint64_t addr, uint64_t size);

void section_free(uint64_t addr, uint64_t size);
