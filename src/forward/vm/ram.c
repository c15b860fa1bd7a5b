// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/ram.h"

#include "base/base.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE 4096

static bool region_is_sound(const struct ram_region *region)
{
	uint64_t end;

	return region->size && region->size % PAGE == 0 && region->offset % PAGE == 0 &&
	       region->guest % PAGE == 0 && region->user % PAGE == 0 &&
	       !__builtin_add_overflow(region->guest, region->size, &end) &&
	       !__builtin_add_overflow(region->user, region->size, &end) &&
	       !__builtin_add_overflow(region->offset, region->size, &end) && end <= INT64_MAX;
}

/* A file that is shorter than it is said to be would end us at the first look behind its end. */
static int region_map(struct ram_region *region)
{
	struct stat st;
	void *at;

	if (!region_is_sound(region))
		return -EINVAL;
	if (fstat(region->fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < region->offset + region->size)
		return -EINVAL;
	at = mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		  region->fd, (off_t)region->offset);
	if (at == MAP_FAILED)
		return -errno;
	region->at = at;
	return 0;
}

void ram_done(struct ram *ram)
{
	size_t i;

	for (i = 0; i < ram->n; i++) {
		if (ram->regions[i].at)
			munmap(ram->regions[i].at, ram->regions[i].size);
		close(ram->regions[i].fd);
	}
	ram->n = 0;
}

int ram_set(struct ram *ram, const struct ram_region *regions, size_t n)
{
	size_t i;
	int r = 0;

	ram_done(ram);
	for (i = 0; i < n; i++) {
		ram->regions[i] = regions[i];
		ram->regions[i].at = NULL;
	}
	ram->n = n;
	for (i = 0; i < n && r == 0; i++)
		r = region_map(&ram->regions[i]);
	if (r < 0)
		ram_done(ram);
	return r;
}

static bool is_inside(uint64_t address, uint64_t size, uint64_t start, uint64_t room)
{
	return address >= start && address - start < room && size <= room - (address - start);
}

const struct ram_region *ram_region_of(const struct ram *ram, uint64_t guest, uint64_t size)
{
	size_t i;

	for (i = 0; i < ram->n; i++)
		if (is_inside(guest, size, ram->regions[i].guest, ram->regions[i].size))
			return &ram->regions[i];
	return NULL;
}

void *ram_at(const struct ram *ram, uint64_t guest, uint64_t size)
{
	const struct ram_region *region = ram_region_of(ram, guest, size);

	return region ? region->at + (guest - region->guest) : NULL;
}

void *ram_at_user(const struct ram *ram, uint64_t user, uint64_t size)
{
	size_t i;

	for (i = 0; i < ram->n; i++)
		if (is_inside(user, size, ram->regions[i].user, ram->regions[i].size))
			return ram->regions[i].at + (user - ram->regions[i].user);
	return NULL;
}
