// SPDX-License-Identifier: Apache-2.0
/* What the verifier says: of the frames it decides whether a program is used, of a refusal it is told. */
#include <errno.h>

#include "base/check.h"
#include "base/str.h"
#include "priv.h"

#define STATISTICS                                                                                 \
	"verification time 12 usec\nstack depth 0+8\nprocessed 30 insns (limit 1000000) max_states\n"

static void test_reasons(void)
{
	static const struct {
		const char *name, *log, *reason;
	} cases[] = {
		{ "the last line before the statistics",
		  "func#0 @0\nR2 unbounded memory access, make sure to bounds check\n" STATISTICS,
		  "R2 unbounded memory access, make sure to bounds check" },
		{ "a line that is not ended", "unknown func bpf_probe_read_kernel#113",
		  "unknown func bpf_probe_read_kernel#113" },
		{ "empty lines", "misaligned access\n\n" STATISTICS "\n", "misaligned access" },
		{ "statistics alone", STATISTICS, "" },
		{ "nothing", "", "" },
	};
	char reason[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		verifier_reason(cases[i].log, reason, sizeof(reason));
		check(str_eq(reason, cases[i].reason), "verifier_reason: %s", cases[i].name);
	}
	verifier_reason("a reason that is longer than there is room for", reason, 9);
	check(str_eq(reason, "a reason"), "verifier_reason: longer than there is room for");
}

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
	test_reasons();
	return check_result();
}
