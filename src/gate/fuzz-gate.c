/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of tenants: whatever they hold and point to, decoding ends. */
#include <string.h>

#include "base/base.h"
#include "gate/gate.h"

struct input {
	const uint8_t *data;
	size_t size;
};

/* Any address is a place in the input. */
static bool copy_input(void *userdata, uint64_t address, void *to, size_t n)
{
	const struct input *in = userdata;

	if (address > in->size || n > in->size - address)
		return false;
	memcpy(to, in->data + address, n);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint32_t command = 0;
	uint64_t bytes;

	memcpy(&command, data, MIN(size, sizeof(command)));
	gate_decode(command, sizeof(command), copy_input, &in, &bytes);
	return 0;
}
