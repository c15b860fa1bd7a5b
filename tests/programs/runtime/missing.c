// SPDX-License-Identifier: Apache-2.0
/* Calls of the runtime that nobody has implemented: each is cudaErrorNotSupported, and the thread's last error. */
#include <stdio.h>

#define NOT_SUPPORTED 801

int cudaGraphicsUnregisterResource(void *resource);
int cudaGraphicsMapResources(int count, void **resources, void *stream);
int cudaGetLastError(void);

int main(void)
{
	for (int i = 0; i < 3; i++) {
		if (cudaGraphicsUnregisterResource(NULL) != NOT_SUPPORTED ||
		    cudaGetLastError() != NOT_SUPPORTED || cudaGetLastError() ||
		    cudaGraphicsMapResources(0, NULL, NULL) != NOT_SUPPORTED ||
		    cudaGetLastError() != NOT_SUPPORTED) {
			printf("wrong\n");
			return 1;
		}
	}
	printf("refusals right\n");
	return 0;
}
