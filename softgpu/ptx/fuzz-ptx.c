/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as PTX: no crash, no leak, and what parses keeps the promises of ptx.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/ptx/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256];
	struct ptx_log log = { text, sizeof(text), 0 };
	struct ptx_module *module;
	const char *wrong;

	if (ptx_parse((const char *)data, size, &log, &module) != 0)
		return 0;
	wrong = ptx_verify(module);
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		abort();
	}
	ptx_module_free(module);
	return 0;
}
