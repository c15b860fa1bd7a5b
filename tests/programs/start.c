/* SPDX-License-Identifier: Apache-2.0 */
/* A process that starts, uses a little memory and ends; 200 of them start at once. */
#include "program.h"

int main(void)
{
	unsigned int word = 0;
	CUdeviceptr ptr;

	CHECK(cuInit(0));
	context_on(0);
	CHECK(cuMemAlloc(&ptr, 8 << 20));
	CHECK(cuMemsetD32(ptr, 0x12345678, (8 << 20) / 4));
	CHECK(cuMemcpyDtoH(&word, ptr + (8 << 20) - 4, sizeof(word)));
	EXPECT(word == 0x12345678);
	CHECK(cuMemFree(ptr));
	printf("started\n");
	return 0;
}
