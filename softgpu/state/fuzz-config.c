// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a configuration file. */
#include "softgpu/state/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct softgpu_config config;

	config_default(&config);
	config_parse(&config, (const char *)data, size, "fuzz");
	return 0;
}
