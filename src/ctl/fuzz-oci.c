/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a runtime's state: a request that comes of them has the form the API wants. */
#include "ctl/oci.h"

#include "api/methods.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reason[OCI_REASON_SIZE];
	json_t *state, *args = NULL;

	if (oci_state_parse((const char *)data, size, &state, reason) < 0)
		return 0;
	if (oci_request(state, json_object_get(state, "annotations"), &args, reason) == 0 && args) {
		assert(json_integer_value(json_object_get(args, "pid")) > 0);
		assert(json_is_object(json_object_get(args, "limits")));
		assert(!json_object_get(args, "gpu") ||
		       json_is_array(json_object_get(args, "gpu")));
		json_decref(args);
	}
	json_decref(state);
	return 0;
}
