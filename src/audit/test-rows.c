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
	check(n_unknown_with("cuMemGetOfTomorrow") == 0,
	      "library_add: a new call that tells about memory is not");
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
	for (unsigned i = 0; i < ROW_COUNT; i++)
		if (strncmp(engine_row_name(i), "cu", 2) == 0 && !call_find(engine_row_name(i)))
			check(false, "rows.def: calls.def knows %s", engine_row_name(i));
	check(check_failures == 0,
	      "rows.def: every call about device memory and every launch, and no other name");
	return check_result();
}
