// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/section.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static bool reserve_at(uint64_t hint, uint64_t size)
{
	void *at = mmap((void *)hint, size, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return false;
	if ((uint64_t)at == hint)
		return true;

	/* Kernels before 4.17 take the address for a mere hint. */
	munmap(at, size);
	return false;
}

int section_reserve(uint64_t hint, uint64_t size, uint64_t align, enum section_flags flags,
		    uint64_t *ret)
{
	uint64_t room, base, end;
	void *at;

	if (__builtin_add_overflow(size, align, &room))
		return -ENOMEM;

	if (hint && hint % align == 0 && reserve_at(hint, size)) {
		*ret = hint;
		return 0;
	}

	at = mmap(NULL, room, PROT_NONE, RESERVED | (flags & SECTION_LOW ? MAP_32BIT : 0), -1, 0);
	if (at == MAP_FAILED)
		return -errno;

	base = ((uint64_t)at + align - 1) & ~(align - 1);
	end = base + size;
	if (base > (uint64_t)at)
		munmap(at, base - (uint64_t)at);
	if ((uint64_t)at + room > end)
		munmap((void *)end, (uint64_t)at + room - end);

	*ret = base;
	return 0;
}

int section_map(uint64_t addr, uint64_t size, int fd, uint64_t offset, bool accessible)
{
	int prot = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;

	if (mmap((void *)addr, size, prot, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, offset) ==
	    MAP_FAILED)
		return -errno;

	/* A core file with a device's memory in it would be as large as the device. */
	(void)madvise((void *)addr, size, MADV_DONTDUMP);
	return 0;
}

int section_unmap(uint64_t addr, uint64_t size)
{
	if (mmap((void *)addr, size, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;

	return 0;
}

void section_free(uint64_t addr, uint64_t size)
{
	munmap((void *)addr, size);
}
