/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector that grows without moving: one address range, physical memory mapped into it
 * piece by piece: vmm PTX-FILE
 */
#include "program.h"

enum { PIECES = 6 };

int main(int argc, char **argv)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	CUmemAccessDesc access = { .location = prop.location,
				   .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	size_t piece, before, after, total;
	CUfunction scale;
	CUdeviceptr base;
	float by = 2, *host;
	int n;

	CHECK(cuInit(0));
	context_on(0);
	scale = function_of(module_of(argv[1]), "scale");
	CHECK(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemGetInfo(&before, &total));
	CHECK(cuMemAddressReserve(&base, PIECES * piece, 0, 0, 0));
	host = malloc(PIECES * piece);
	EXPECT(host);

	for (int i = 0; i < PIECES; i++) {
		CUmemGenericAllocationHandle handle;

		CHECK(cuMemCreate(&handle, piece, &prop, 0));
		CHECK(cuMemMap(base + i * piece, piece, 0, handle, 0));
		CHECK(cuMemSetAccess(base + i * piece, piece, &access, 1));
		/* The mapping keeps the memory. */
		CHECK(cuMemRelease(handle));
		CHECK(cuMemsetD32(base + i * piece, 0x3f800000, piece / 4)); /* 1.0f */
		n = (int)((i + 1) * piece / 4);
		CHECK(cuLaunchKernel(scale, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL,
				     (void *[]){ &base, &by, &n }, NULL));
	}
	CHECK(cuMemcpyDtoH(host, base, PIECES * piece));
	/* The first piece was doubled six times, the last once. */
	for (int i = 0; i < PIECES; i++)
		for (size_t k = 0; k < piece / 4; k++)
			EXPECT(host[i * (piece / 4) + k] == (float)(1 << (PIECES - i)));
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(before - after == PIECES * piece);

	CHECK(cuMemUnmap(base, PIECES * piece));
	CHECK(cuMemAddressFree(base, PIECES * piece));
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(after == before);
	free(host);
	printf("grew to %d pieces\n", PIECES);
	return 0;
}
