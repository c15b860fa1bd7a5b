/* SPDX-License-Identifier: Apache-2.0 */
/* What was read and printed must read the same again. */
#include <assert.h>

#include "offsets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct offsets offsets = {}, again = {};
	struct ini_error error;
	char *text;

	if (offsets_parse((const char *)data, size, &offsets, &error) < 0)
		return 0;
	text = offsets_print(&offsets);
	assert(text && offsets_parse(text, strlen(text), &again, &error) == 0);
	assert(again.n_calls == offsets.n_calls && str_eq(again.build_id, offsets.build_id));
	for (size_t i = 0; i < offsets.n_calls; i++)
		assert(again.calls[i].address == offsets.calls[i].address);
	free(text);
	offsets_done(&offsets);
	offsets_done(&again);
	return 0;
}
