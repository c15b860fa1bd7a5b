/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a path, the rest a body. The same bytes are tried as a response. */
#include "api/client.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	enum api_method_id method;
	struct api_error error;
	size_t len = strlen(text), path_len = strcspn(text, "\n"), body;
	json_t *args;

	if (api_response_parse(text, len, &body) > 0)
		assert(body <= len);
	if (path_len == len)
		return 0;
	text[path_len] = '\0';
	if (api_request_parse(text, text + path_len + 1, len - path_len - 1, &method, &args,
			      &error) == 0) {
		assert(method < API_N_METHODS && json_is_object(args));
		json_decref(args);
	}
	return 0;
}
