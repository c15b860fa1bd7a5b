// SPDX-License-Identifier: Apache-2.0
/* rows.def against calls.def: every call that has to do with device memory, and every launch, has
 * been looked at. */
#include <string.h>

#include "base/check.h"
#include "cuda/calls.h"
#include "engine.h"
#include "library.h"
#include "rows.h"

static bool has_row(const char *name)
{
	for (unsigned i = 0; i < ROW_COUNT; i++)
		if (strcmp(engine_row_name(i), name) == 0)
			return true;
	return false;
}

static bool is_about_memory(const struct call *call)
{
	switch (call->group) {
	case GROUP_ALLOC_DEVICE:
	case GROUP_FREE_DEVICE:
	case GROUP_VMM:
	case GROUP_POOL:
	case GROUP_SHARE:
	case GROUP_CODE:
		return true;
	default:
		return false;
	}
}

/* Kernels and graphs; functions of the host take none of the device's time. */
static bool is_launch(const struct call *call)
{
	return call->group == GROUP_LAUNCH && strncmp(call->base, "cuLaunchHostFunc", 16) != 0 &&
	       (strncmp(call->base, "cuLaunch", 8) == 0 ||
		strcmp(call->base, "cuGraphLaunch") == 0);
}

/* What hands out something that is or has device memory, or begins to collect it for a graph. */
static bool makes_something(const struct call *call)
{
	static const enum call_argument out[] = {
		ARG_OUT_ADDRESS,
		ARG_OUT_ADDRESS32,
		ARG_OUT_ARRAY,
		ARG_OUT_CONTEXT,
		ARG_OUT_EXTERNAL_MEMORY,
		ARG_OUT_FREE,
		ARG_OUT_FREE32,
		ARG_OUT_GRAPH,
		ARG_OUT_GRAPH_EXEC,
		ARG_OUT_GRAPHICS_RESOURCE,
		ARG_OUT_GREEN_CONTEXT,
		ARG_OUT_LIBRARY,
		ARG_OUT_LINK,
		ARG_OUT_MIPMAPPED_ARRAY,
		ARG_OUT_MODULE,
		ARG_OUT_PHYSICAL,
		ARG_OUT_POOL,
		ARG_OUT_TOTAL,
		ARG_OUT_TOTAL32,
	};

	if (strstr(call->base, "BeginCapture"))
		return true;
	if (strstr(call->base, "Get") && call->group != GROUP_INFO)
		return false;
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		if (call_argument(call, out[i]) >= 0)
			return strncmp(call->base, "cuMemGetAddressRange", 20) != 0 &&
			       strncmp(call->base, "cuStreamGet", 11) != 0;
	return false;
}

static size_t n_unknown_with(const char *name)
{
	struct library_image image = {};
	size_t n;

	library_add(/* fd= */ -1, &image, name, /* address= */ 0);
	n = image.n_unknown;
	library_image_done(&image);
	return n;
}

static void test_unknown(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < CALL_N; i++)
		n += n_unknown_with(calls[i].name);
	check(n == 0, "library_add: no call that calls.def knows is told as unknown");
	check(n_unknown_with("cuMemAllocOfTomorrow") == 1,
	      "library_add: a new call that allocates is");
	check(n_unknown_with("cuMemConjure") == 1,
	      "library_add: a new call of which nobody knows what it does is");
	check(n_unknown_with("cuPoolCreateAndGet") == 1,
	      "library_add: a new call that makes and tells is");
	check(n_unknown_with("cuMemGetOfTomorrow") == 0,
	      "library_add: a new call that tells about memory is not");
	check(n_unknown_with("cuMemGetAllocationOfTomorrow") == 0,
	      "library_add: words count as a whole");
	check(n_unknown_with("cublasCreate_v2") + n_unknown_with("cudaMalloc") == 0,
	      "library_add: calls of other libraries are not");
}

int main(void)
{
	test_unknown();
	for (unsigned i = 0; i < CALL_N; i++)
		if (is_launch(&calls[i]) && !has_row(calls[i].name))
			check(false, "rows.def: the launch %s has a row", calls[i].name);
	for (unsigned i = 0; i < CALL_N; i++)
		if (is_about_memory(&calls[i]) && !has_row(calls[i].name))
			check(false, "rows.def: %s has a row", calls[i].name);
	for (unsigned i = 0; i < CALL_N; i++)
		if (makes_something(&calls[i]) && !has_row(calls[i].name))
			check(false, "rows.def: %s has a row", calls[i].name);
	for (unsigned i = 0; i < ROW_COUNT; i++)
		if (strncmp(engine_row_name(i), "cu", 2) == 0 && !call_find(engine_row_name(i)))
			check(false, "rows.def: calls.def knows %s", engine_row_name(i));
	check(check_failures == 0,
	      "rows.def: every call about device memory and every launch, and no other name");
	return check_result();
}
