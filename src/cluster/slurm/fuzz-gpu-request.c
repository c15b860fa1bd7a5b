/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as values of the options: what is taken can be booked, and holds what it says. */
#include "cluster/slurm/gpu-request.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reason[GPU_REQUEST_REASON] = "";
	struct gpu_request request = {};
	char *text = strndup((const char *)data, size);

	if (gpu_request_memory(text, &request, reason) == 0) {
		assert(request.low_mib > 0 && request.low_mib <= INT64_MAX / MIB + 1);
		assert(!request.max_bytes || request.max_bytes >= request.low_mib * MIB);
	} else {
		assert(*reason && !request.low_mib && !request.max_bytes);
	}
	if (gpu_request_compute(text, &request, reason) == 0)
		assert(request.compute_permille > 0 && request.compute_permille <= 1000);
	if (gpu_request_policy(text, &request, reason) == 0)
		assert(request.has_policy && request.policy.from <= request.policy.to);
	free(text);
	return 0;
}
