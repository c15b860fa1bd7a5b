/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine's memory as QEMU shares it: regions, each a part of a file.
 *
 * Addresses that a guest says come through here, each time anew, before they are used: what is not whole inside of
 * one region is refused.
 */
#ifndef FORWARD_VM_RAM_H
#define FORWARD_VM_RAM_H

#include <stddef.h>
#include <stdint.h>

/* As many as QEMU sends in one message. */
#define RAM_MAX_REGIONS 8

/**
 * struct ram_region - contiguous memory of the guest
 * @guest:	its guest-physical address
 * @user:	where QEMU has it; addresses of rings are said so
 * @offset:	where in the file it begins
 * @at:		where we have it
 */
struct ram_region {
	uint64_t guest;
	uint64_t user;
	uint64_t size;
	uint64_t offset;
	int fd;
	uint8_t *at;
};

struct ram {
	struct ram_region regions[RAM_MAX_REGIONS];
	size_t n;
};

/**
 * ram_set() - these are the regions from now on
 * @regions:	with their descriptors, which are taken over whatever happens; `at` is found here
 *
 * Return: 0, -EINVAL for what is no memory of a guest, or what the kernel said; then there are none.
 */
int ram_set(struct ram *ram, const struct ram_region *regions, size_t n);

/** ram_done() - there are none any more */
void ram_done(struct ram *ram);

/** ram_region_of() - the region that has all of a guest-physical range, or NULL */
const struct ram_region *ram_region_of(const struct ram *ram, uint64_t guest, uint64_t size);

/** ram_at() - where we have a guest-physical range; NULL where it is not whole inside a region */
void *ram_at(const struct ram *ram, uint64_t guest, uint64_t size);

/** ram_at_user() - likewise for an address of QEMU's */
void *ram_at_user(const struct ram *ram, uint64_t user, uint64_t size);

#endif
