// SPDX-License-Identifier: Apache-2.0
/* Handles: wrong, stale and doubly removed ones are told from good ones. */
#include <stdio.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/cuda/handle.h"
#include "softgpu/util/check.h"

static void test_reuse(int *object)
{
	CUstream first = handle_new(CUstream, HANDLE_STREAM, object), again;

	handle_remove(HANDLE_STREAM, first);
	again = handle_new(CUstream, HANDLE_STREAM, object);
	check(again != first, "a place that is used again gets another handle");
	check(!handle_get(HANDLE_STREAM, first), "the handle from before is not found");
	check(handle_get(HANDLE_STREAM, again) == object, "the new one is");
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
	check(n_good == 100000, "100,000 at once are all found");
	for (i = 0; i < 100000; i++)
		n_good -= handle_remove_(HANDLE_GRAPH_NODE, handles[i]) == object;
	check(n_good == 0, "and all removed");
}

int main(void)
{
	int object = 0;
	CUstream stream;

	check(!handle_get(HANDLE_STREAM, (CUstream)0x12345), "nothing is found in an empty table");
	stream = handle_new(CUstream, HANDLE_STREAM, &object);
	check(handle_get(HANDLE_STREAM, stream) == &object, "a handle finds its object");
	check(!handle_get(HANDLE_EVENT, stream), "not as another kind");
	check(!handle_get(HANDLE_STREAM, NULL) && !handle_get(HANDLE_STREAM, CU_STREAM_LEGACY) &&
		      !handle_get(HANDLE_STREAM, CU_STREAM_PER_THREAD),
	      "NULL, 1 and 2 are no handles");
	check(!handle_get(HANDLE_STREAM, (CUstream)&object), "an address is none");
	check(!handle_get(HANDLE_STREAM, (CUstream)UINTPTR_MAX), "all bits set is none");
	check(handle_remove(HANDLE_STREAM, stream) == &object, "it can be removed");
	check(!handle_remove(HANDLE_STREAM, stream), "once");
	test_reuse(&object);
	test_many(&object);
	return n_failed != 0;
}
