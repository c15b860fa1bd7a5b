// SPDX-License-Identifier: Apache-2.0
/* Values that are asked for by number. Each is a question of its own, and has its own answer. */
#include "forward/nvml/nvml.h"

#include <stdint.h>

ENTRY(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	unsigned number;
	nvmlReturn_t r = device_check(device, values, &number);
	int i;

	if (r == NVML_SUCCESS && count < 1)
		r = NVML_ERROR_INVALID_ARGUMENT;
	for (i = 0; i < count && r == NVML_SUCCESS; i++)
		r = ask(QUESTION_nvmlDeviceGetFieldValues, number,
			values[i].fieldId | (uint64_t)values[i].scopeId << 32, &values[i],
			sizeof(values[i]));
	return r;
}
