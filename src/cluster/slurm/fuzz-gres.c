/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list of resources: its items lie in it, one behind the other. */
#include "cluster/slurm/gres.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	const char *at = text, *before = text;
	struct gres gres;

	while (gres_next(&at, &gres) > 0) {
		assert(gres.text == before && gres.len > 0 && at > before);
		assert(*gres.name && strlen(gres.name) + strlen(gres.type) < gres.len + 1);
		before = at;
	}
	assert(at <= text + strlen(text));
	free(text);
	return 0;
}
