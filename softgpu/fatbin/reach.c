// SPDX-License-Identifier: Apache-2.0
/*
 * How far memory can be read: what the kernel's list of mappings says, or a length.
 *
 * Images come mostly without a length, so a damaged size would otherwise make the driver read to
 * the end of a mapping and die. Loading code is rare enough to read the list each time.
 */
#include <inttypes.h>
#include <stdio.h>

#include "softgpu/fatbin/fatbin.h"

static size_t process_bytes(_unused_ void *arg, const void *addr)
{
	uintptr_t at = (uintptr_t)addr, begin, end, reached = 0;
	char line[4352], readable;
	FILE *f;

	f = fopen("/proc/self/maps", "re");
	if (!f)
		return 0;

	/* The list is sorted; mappings that touch are read as one. */
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c", &begin, &end, &readable) != 3)
			continue;
		if (end <= at)
			continue;
		if (readable != 'r' || begin > (reached ? reached : at))
			break;
		reached = end;
	}
	fclose(f);
	return reached ? reached - at : 0;
}

const struct fatbin_reach fatbin_reach_process = { .bytes = process_bytes };

static size_t span_bytes(void *arg, const void *addr)
{
	const struct fatbin_span *span = arg;
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)span->addr;

	return offset < span->n ? span->n - offset : 0;
}

struct fatbin_reach fatbin_reach_span(const struct fatbin_span *span)
{
	return (struct fatbin_reach){ .bytes = span_bytes, .arg = (void *)span };
}
