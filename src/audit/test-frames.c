// SPDX-License-Identifier: Apache-2.0
/* The guard against private stacks: what the verifier says of the frames decides whether a program is used. */
#include <errno.h>

#include "base/check.h"
#include "priv.h"

int main(void)
{
	static const struct {
		const char *name, *log;
		int result;
	} cases[] = {
		{ "small frames",
		  "verification time 5 usec\nstack depth 0+48+16+8\nprocessed 7 insns\n", 0 },
		{ "one function", "stack depth 40\n", 0 },
		{ "first one is large", "stack depth 64+0\n", -ENOTSUP },
		{ "last one is large", "stack depth 0+8+512\n", -ENOTSUP },
		{ "just too large", "stack depth 49\n", -ENOTSUP },
		{ "nothing is said of frames", "processed 7 insns\n", -ENOTSUP },
		{ "empty log", "", -ENOTSUP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(frames_check(cases[i].log) == cases[i].result, "frames_check: %s",
		      cases[i].name);
	return check_result();
}
