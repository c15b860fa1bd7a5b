// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzzer of the fat binary reader. The input is an image; pointers of a wrapper are taken as
 * offsets into the input, so that the fuzzer can make wrappers that point to something.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/fatbin/fatbin.h"
#include "softgpu/fatbin/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t *bytes;
	size_t n;
};

static size_t input_reach(void *arg, const void *addr)
{
	struct input *input = arg;
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)input->bytes;

	return offset < input->n ? input->n - offset : 0;
}

static void relocate(struct input *input, size_t at)
{
	uint64_t offset;

	if (at + sizeof(offset) > input->n)
		return;
	memcpy(&offset, input->bytes + at, sizeof(offset));
	if (offset == 0)
		return;
	offset += (uintptr_t)input->bytes;
	memcpy(input->bytes + at, &offset, sizeof(offset));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { malloc(size), size };
	struct fatbin_reach reach = { input_reach, &input };
	struct fatbin_image *image = NULL; /* stays so where nothing is read */
	uint32_t magic;

	memcpy(input.bytes, data, size);
	if (size >= sizeof(struct fatbin_wrapper)) {
		memcpy(&magic, data, sizeof(magic));
		if (magic == FATBIN_WRAPPER_MAGIC) {
			relocate(&input, offsetof(struct fatbin_wrapper, data));
			relocate(&input, offsetof(struct fatbin_wrapper, extra));
			relocate(&input, sizeof(struct fatbin_wrapper));
		}
	}

	fatbin_read(input.bytes, &reach, 90, &image);
	fatbin_image_free(image);
	free(input.bytes);
	return 0;
}
