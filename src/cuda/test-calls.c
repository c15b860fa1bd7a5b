// SPDX-License-Identifier: Apache-2.0
/* calls.def: complete, without doubles, and the rows that others rely on most. */
#include <stdio.h>
#include <string.h>

#include "calls.h"

static int n_failed;

static void check(const char *what, int good)
{
	printf("%s '%s'\n", good ? "ok" : "FAILED", what);
	n_failed += !good;
}

static int n_in(unsigned drivers)
{
	int i, n = 0;

	for (i = 0; i < CALL_N; i++)
		n += (calls[i].drivers & drivers) != 0;
	return n;
}

static int n_doubles(void)
{
	int i, n = 0;

	for (i = 0; i < CALL_N; i++)
		n += call_find(calls[i].name) != &calls[i];
	return n;
}

/* A name is its base, and perhaps _v2.., and _ptds or _ptsz with the per-thread twins only. */
static int n_odd_names(void)
{
	int i, n = 0;

	for (i = 0; i < CALL_N; i++) {
		const char *rest = calls[i].name + strlen(calls[i].base);
		int is_twin = strstr(rest, "_ptds") || strstr(rest, "_ptsz");

		n += strncmp(calls[i].name, calls[i].base, strlen(calls[i].base)) != 0 ||
		     (*rest && *rest != '_') || is_twin != (calls[i].stream == STREAM_PER_THREAD);
	}
	return n;
}

/* Every call that makes device memory tells where its size is, or takes a structure that does. */
static int n_without_size(void)
{
	int i, n = 0;

	for (i = 0; i < CALL_N; i++) {
		const struct call *call = &calls[i];

		if (call->group != GROUP_ALLOC_DEVICE)
			continue;
		n += call_argument(call, ARG_SIZE) < 0 && call_argument(call, ARG_SIZE32) < 0 &&
		     call_argument(call, ARG_WIDTH) < 0 && call_argument(call, ARG_WIDTH32) < 0 &&
		     call_argument(call, ARG_IN) < 0;
	}
	return n;
}

static int argument(const char *name, enum call_argument role)
{
	const struct call *call = call_find(name);

	return call ? call_argument(call, role) : -1;
}

int main(void)
{
	check("682 names", CALL_N == 682);
	check("600 in driver 535", n_in(DRIVER_535) == 600);
	check("636 in driver 550", n_in(DRIVER_550) == 636);
	check("637 in CUDA 13.0", n_in(DRIVER_13) == 637);
	check("no name twice", n_doubles() == 0);
	check("each name is made of its base", n_odd_names() == 0);
	check("each allocation has a size", n_without_size() == 0);
	check("cuMemAlloc_v2: size second", argument("cuMemAlloc_v2", ARG_SIZE) == 1);
	check("cuMemAlloc: size is 32 bits wide", argument("cuMemAlloc", ARG_SIZE32) == 1);
	check("cuMemCreate: handle first", argument("cuMemCreate", ARG_OUT_PHYSICAL) == 0);
	check("cuMemAllocFromPoolAsync: pool third",
	      argument("cuMemAllocFromPoolAsync", ARG_POOL) == 2);
	check("cuLaunchKernel: stream ninth", argument("cuLaunchKernel", ARG_STREAM) == 8);
	check("cuMemGetInfo_v2: free, total",
	      argument("cuMemGetInfo_v2", ARG_OUT_FREE) == 0 &&
		      argument("cuMemGetInfo_v2", ARG_OUT_TOTAL) == 1);
	check("an unknown name is not found", !call_find("cuMemAlloc_v9"));
	return n_failed != 0;
}
