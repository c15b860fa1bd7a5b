// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/host.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is left alone: a part, and what a CPU touches in some milliseconds, for each. */
#define MARGIN	      (128ULL << 20)
#define MARGIN_OF_CPU (8ULL << 20)
#define MARGIN_PARTS  8 /* of a cgroup, which can be small: no more than one in so many */

#define PAGE_SIZE 4096ULL

/**
 * struct hierarchy - where a version of cgroups tells of memory
 * @controller:	what stands before the path in /proc/self/cgroup, after the number
 * @root:	where it is mounted
 */
struct hierarchy {
	const char *controller;
	const char *root;
	const char *max, *current;
	const char *inactive_file, *active_file; /* lines of memory.stat */
};

static const struct hierarchy hierarchies[] = {
	{ "::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ",
	  "active_file " },
	{ ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_inactive_file ", "total_active_file " },
};

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t margin(void)
{
	static _Atomic uint64_t known;
	uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
	long n_cpus;

	if (bytes)
		return bytes;
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bytes = MARGIN + (n_cpus > 0 ? (uint64_t)n_cpus : 1) * MARGIN_OF_CPU;
	atomic_store_explicit(&known, bytes, memory_order_relaxed);
	return bytes;
}

/* The number behind @key in a file of lines; @none if there is no such file or line. */
static uint64_t number_of(const char *path, const char *key, uint64_t none)
{
	unsigned long long n = none, here;
	size_t n_key = strlen(key);
	char line[128];
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return none;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, n_key) == 0 && sscanf(line + n_key, "%llu", &here) == 1) {
			n = here;
			break;
		}
	}
	fclose(f);

	return n;
}

static uint64_t cgroup_number(const struct hierarchy *of, const char *cgroup, const char *file,
			      const char *key, uint64_t none)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s/%s", of->root, cgroup, file) >= (int)sizeof(path))
		return none;
	return number_of(path, key, none);
}

/* Files that it has read do not count: the host drops them when it needs the memory. */
static uint64_t cgroup_used(const struct hierarchy *of, const char *cgroup)
{
	uint64_t used = cgroup_number(of, cgroup, of->current, "", 0);

	used = minus(used, cgroup_number(of, cgroup, "memory.stat", of->inactive_file, 0));
	return minus(used, cgroup_number(of, cgroup, "memory.stat", of->active_file, 0) / 2);
}

static uint64_t cgroup_left(const struct hierarchy *of, const char *cgroup)
{
	uint64_t max = cgroup_number(of, cgroup, of->max, "", UINT64_MAX);

	if (max == UINT64_MAX)
		return UINT64_MAX;
	return minus(max - least(margin(), max / MARGIN_PARTS), cgroup_used(of, cgroup));
}

/* The tightest of a cgroup and its ancestors; changes @cgroup. */
static uint64_t ancestry_left(const struct hierarchy *of, char *cgroup)
{
	uint64_t left = UINT64_MAX;
	char *slash;

	for (; (slash = strrchr(cgroup, '/')); *slash = '\0')
		left = least(left, cgroup_left(of, cgroup));
	return left;
}

/* "0::/path" or "4:memory:/path" */
static uint64_t cgroups_left(void)
{
	uint64_t left = UINT64_MAX;
	char line[PATH_MAX], *controller;
	FILE *f;

	f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		controller = strchr(line, ':');
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; controller && i < sizeof(hierarchies) / sizeof(hierarchies[0]);
		     i++) {
			const struct hierarchy *of = &hierarchies[i];
			size_t n = strlen(of->controller);

			if (strncmp(controller, of->controller, n) == 0)
				left = least(left, ancestry_left(of, controller + n));
		}
	}
	fclose(f);

	return left;
}

uint64_t host_memory_left(void)
{
	uint64_t kib = number_of("/proc/meminfo", "MemAvailable:", UINT64_MAX / 1024);

	return least(minus(kib * 1024, margin()), cgroups_left());
}

bool host_memory_is_mapped(uint64_t addr, uint64_t size)
{
	unsigned char there[4096];
	uint64_t start = addr & ~(PAGE_SIZE - 1), end = addr + size, part;

	if (end < addr)
		return false;
	for (; start < end; start += part) {
		part = end - start;
		if (part > sizeof(there) * PAGE_SIZE)
			part = sizeof(there) * PAGE_SIZE;
		if (mincore((void *)start, part, there) < 0)
			return false;
	}
	return true;
}

uint64_t host_memory_own(void)
{
	unsigned long long n = 0;
	char text[128];
	ssize_t n_text;
	int fd;

	fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n_text = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n_text <= 0)
		return 0;
	text[n_text] = '\0';

	return sscanf(text, "%*u %llu", &n) == 1 ? n * PAGE_SIZE : 0;
}
