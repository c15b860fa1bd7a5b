/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/slurm/gpu-request.h"

#include "base/check.h"
#include "base/str.h"

static const struct {
	const char *text;
	uint64_t low_mib, max_bytes;
	const char *refused;
} memories[] = {
	{ "4096", 4096, 0, NULL },
	{ "4G", 4096, 0, NULL },
	{ "1.5G:max=2G", 1536, 2048 * MIB, NULL },
	{ "100:max=200", 100, 200 * MIB, NULL },
	{ "1K", 1, 0, NULL },
	{ "1K:max=2K", 1, MIB, NULL },
	{ "", 0, 0, "is not a size" },
	{ "0", 0, 0, "nothing is asked for" },
	{ "-1", 0, 0, "is not a size" },
	{ "max", 0, 0, "is not a size" },
	{ "4G:", 0, 0, "only ':max=SIZE'" },
	{ "4G:max=", 0, 0, "max: '' is not a size" },
	{ "4G:max=3G", 0, 0, "max is less" },
	{ "4G:max=5G:max=6G", 0, 0, "is not a size" },
	{ "4G,5G", 0, 0, "is not a size" },
	{ "8796093022208", 0, 0, "more than any device" },
	{ "99999999999999999999999", 0, 0, "more than any device" },
	{ "1 G\n", 0, 0, "is not a size" },
	{ "0000000000000000000000000000000000000000000000000000000000000000000001", 0, 0,
	  "is not a size" },
};

static void test_memory(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(memories); i++) {
		struct gpu_request request = {};
		char reason[GPU_REQUEST_REASON] = "";
		int r = gpu_request_memory(memories[i].text, &request, reason);

		if (memories[i].refused)
			check(r < 0 && strstr(reason, memories[i].refused) && !request.low_mib,
			      "memory: '%s' is refused: %s", memories[i].text, reason);
		else
			check(r == 0 && request.low_mib == memories[i].low_mib &&
				      request.max_bytes == memories[i].max_bytes,
			      "memory: '%s' is %llu MiB", memories[i].text,
			      (unsigned long long)request.low_mib);
	}
}

static void test_others(void)
{
	char reason[GPU_REQUEST_REASON];
	struct gpu_request request = {};

	check(gpu_request_compute("30", &request, reason) == 0 && request.compute_permille == 300,
	      "compute: 30 is 30 %%");
	check(gpu_request_compute("12.5%", &request, reason) == 0 &&
		      request.compute_permille == 125,
	      "compute: parts of a per cent");
	check(gpu_request_compute("0", &request, reason) < 0 &&
		      gpu_request_compute("101", &request, reason) < 0 &&
		      gpu_request_compute("all", &request, reason) < 0 &&
		      request.compute_permille == 125,
	      "compute: nothing, more than all, and words are refused");
	check(gpu_request_policy("suspend-evict", &request, reason) == 0 && request.has_policy &&
		      request.policy.from == LADDER_SUSPEND && request.policy.to == LADDER_EVICT,
	      "policy: from one step to another");
	check(gpu_request_policy("evict-warn", &request, reason) < 0 &&
		      gpu_request_policy("", &request, reason) < 0 &&
		      strstr(reason, "suspend-evict"),
	      "policy: what is no ladder is refused with an example");
}

static void test_notes(void)
{
	char note[COMPUTE_NOTE_SIZE];

	gpu_request_note_compute(1000, note);
	check(gpu_request_noted_compute(note) == 1000, "note: is read as it was written: %s", note);
	check(!gpu_request_noted_compute(NULL) && !gpu_request_noted_compute("") &&
		      !gpu_request_noted_compute("30") &&
		      !gpu_request_noted_compute("cotenant-compute:1001") &&
		      !gpu_request_noted_compute("cotenant-compute:-1") &&
		      !gpu_request_noted_compute("cotenant-compute:5 or so"),
	      "note: nothing else is one");
}

int main(void)
{
	test_memory();
	test_others();
	test_notes();
	return check_result();
}
