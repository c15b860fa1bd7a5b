/* SPDX-License-Identifier: Apache-2.0 */
/* Many launches with arguments and one wait: launches PTX-FILE N */
#include "program.h"

int main(int argc, char **argv)
{
	int n = 100, n_launches = atoi(argv[2]);
	CUfunction scale;
	CUdeviceptr ptr;
	float by = 1, x;

	CHECK(cuInit(0));
	context_on(0);
	scale = function_of(module_of(argv[1]), "scale");
	ptr = device_zeros(n * sizeof(float));
	for (int i = 0; i < n_launches; i++)
		CHECK(cuLaunchKernel(scale, 1, 1, 1, 128, 1, 1, 0, NULL,
				     (void *[]){ &ptr, &by, &n }, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&x, ptr, sizeof(x)));
	EXPECT(x == 0);
	printf("%d launches\n", n_launches);
	return 0;
}
