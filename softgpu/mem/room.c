// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/room.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Below this it is not worth asking: the answer costs some 20 us. */
#define SIZE_MIN (8ULL << 20)

/* What is left alone. */
#define MARGIN (128ULL << 20)

#define PAGE_SIZE 4096ULL

static uint64_t host_available(void)
{
	unsigned long long kib = ULLONG_MAX / 1024;
	char line[128];
	FILE *f;

	f = fopen("/proc/meminfo", "re");
	if (!f)
		return UINT64_MAX;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	fclose(f);

	return kib * 1024;
}

/* A number in a file of a cgroup; @none if there is no such file or it says "max". */
static uint64_t cgroup_number(const char *cgroup, const char *name, uint64_t none)
{
	char path[PATH_MAX];
	unsigned long long n;
	FILE *f;
	int found;

	if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", cgroup, name) >= (int)sizeof(path))
		return none;
	f = fopen(path, "re");
	if (!f)
		return none;
	found = fscanf(f, "%llu", &n);
	fclose(f);

	return found == 1 ? n : none;
}

/* The tightest of the cgroup and its ancestors. Page cache counts as used: it may be ours. */
static uint64_t cgroup_available(void)
{
	uint64_t available = UINT64_MAX, max, current;
	char line[PATH_MAX], *slash;
	FILE *f;

	f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "0::/", 4) == 0)
			break;
	fclose(f);
	if (strncmp(line, "0::/", 4) != 0)
		return UINT64_MAX;

	line[strcspn(line, "\n")] = '\0';
	for (char *cgroup = line + strlen("0::"); (slash = strrchr(cgroup, '/')); *slash = '\0') {
		max = cgroup_number(cgroup, "memory.max", UINT64_MAX);
		current = cgroup_number(cgroup, "memory.current", 0);
		if (max == UINT64_MAX)
			continue;
		max = max > current ? max - current : 0;
		if (max < available)
			available = max;
	}

	return available;
}

/* How much of a stretch has pages already. */
static uint64_t resident(uint64_t addr, uint64_t size)
{
	unsigned char there[4096];
	uint64_t end = addr + size, n, n_there = 0;

	for (addr &= ~(PAGE_SIZE - 1); addr < end; addr += n * PAGE_SIZE) {
		n = (end - addr + PAGE_SIZE - 1) / PAGE_SIZE;
		if (n > sizeof(there))
			n = sizeof(there);
		if (mincore((void *)addr, n * PAGE_SIZE, there) < 0)
			return 0;
		for (uint64_t i = 0; i < n; i++)
			n_there += there[i] & 1;
	}

	return n_there * PAGE_SIZE;
}

bool room_for(uint64_t addr, uint64_t size)
{
	uint64_t available, in_cgroup, there;

	if (size < SIZE_MIN)
		return true;

	available = host_available();
	in_cgroup = cgroup_available();
	if (in_cgroup < available)
		available = in_cgroup;
	if (available > MARGIN && size <= available - MARGIN)
		return true;

	there = resident(addr, size);
	return there >= size || (available > MARGIN && size - there <= available - MARGIN);
}
