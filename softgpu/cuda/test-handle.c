// SPDX-License-Identifier: Apache-2.0
/* Handles: wrong, stale and doubly removed ones are told from good ones. */
#include <stdio.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/cuda/handle.h"

static int n_failed;

static void check(const char *what, int good)
{
	printf("%s '%s'\n", good ? "ok" : "FAILED", what);
	n_failed += !good;
}

static void test_reuse(int *object)
{
	CUstream first = handle_new(CUstream, HANDLE_STREAM, object), again;

	handle_remove(HANDLE_STREAM, first);
	again = handle_new(CUstream, HANDLE_STREAM, object);
	check("a place that is used again gets another handle", again != first);
	check("the handle from before is not found", !handle_get(HANDLE_STREAM, first));
	check("the new one is", handle_get(HANDLE_STREAM, again) == object);
	handle_remove(HANDLE_STREAM, again);
}

static void test_many(int *object)
{
	static uint64_t handles[100000];
	int n_good = 0, i;

	for (i = 0; i < 100000; i++)
		handles[i] = handle_new_(HANDLE_GRAPH_NODE, object);
	for (i = 0; i < 100000; i++)
		n_good += handle_get_(HANDLE_GRAPH_NODE, handles[i]) == object;
	check("100,000 at once are all found", n_good == 100000);
	for (i = 0; i < 100000; i++)
		n_good -= handle_remove_(HANDLE_GRAPH_NODE, handles[i]) == object;
	check("and all removed", n_good == 0);
}

int main(void)
{
	int object = 0;
	CUstream stream;

	check("nothing is found in an empty table", !handle_get(HANDLE_STREAM, (CUstream)0x12345));
	stream = handle_new(CUstream, HANDLE_STREAM, &object);
	check("a handle finds its object", handle_get(HANDLE_STREAM, stream) == &object);
	check("not as another kind", !handle_get(HANDLE_EVENT, stream));
	check("NULL, 1 and 2 are no handles",
	      !handle_get(HANDLE_STREAM, NULL) && !handle_get(HANDLE_STREAM, CU_STREAM_LEGACY) &&
		      !handle_get(HANDLE_STREAM, CU_STREAM_PER_THREAD));
	check("an address is none", !handle_get(HANDLE_STREAM, (CUstream)&object));
	check("all bits set is none", !handle_get(HANDLE_STREAM, (CUstream)UINTPTR_MAX));
	check("it can be removed", handle_remove(HANDLE_STREAM, stream) == &object);
	check("once", !handle_remove(HANDLE_STREAM, stream));
	test_reuse(&object);
	test_many(&object);
	return n_failed != 0;
}
