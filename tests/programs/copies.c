/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory to the device and back, in one dimension and in two, with waiting and without:
 * copies pageable|pinned|registered BYTES
 */
#include "program.h"

enum { WIDTH = 4096 };

static unsigned char *host_memory(const char *how, size_t size)
{
	void *at;

	if (strcmp(how, "pinned") == 0) {
		CHECK(cuMemHostAlloc(&at, size, 0));
		return at;
	}
	at = aligned_alloc(4096, size);
	EXPECT(at);
	if (strcmp(how, "registered") == 0)
		CHECK(cuMemHostRegister(at, size, 0));
	return at;
}

static void there_and_back(unsigned char *from, unsigned char *to, CUdeviceptr device, size_t size)
{
	CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = from,
			     .srcPitch = WIDTH,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = device,
			     .dstPitch = WIDTH,
			     .WidthInBytes = WIDTH,
			     .Height = size / WIDTH };
	CUDA_MEMCPY2D out = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = device,
			      .srcPitch = WIDTH,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = to,
			      .dstPitch = WIDTH,
			      .WidthInBytes = WIDTH,
			      .Height = size / WIDTH };

	CHECK(cuMemcpyHtoD(device, from, size));
	CHECK(cuMemcpyDtoHAsync(to, device, size, NULL));
	CHECK(cuStreamSynchronize(NULL));
	EXPECT(memcmp(from, to, size) == 0);

	for (size_t i = 0; i < size; i++)
		from[i] ^= 0x5a;
	CHECK(cuMemcpy2D(&in));
	CHECK(cuMemcpy2D(&out));
	EXPECT(memcmp(from, to, size) == 0);
}

int main(int argc, char **argv)
{
	size_t size = strtoul(argv[2], NULL, 0);
	unsigned char *from, *to;
	CUdeviceptr device;

	CHECK(cuInit(0));
	context_on(0);
	from = host_memory(argv[1], size);
	to = host_memory(argv[1], size);
	for (size_t i = 0; i < size; i++)
		from[i] = (unsigned char)noise((unsigned int)i);
	CHECK(cuMemAlloc(&device, size));
	there_and_back(from, to, device, size);
	printf("%zu bytes right\n", size);
	return 0;
}
