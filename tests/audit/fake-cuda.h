/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test tells the fake libcuda, and what it counts. The variable `fake` is looked up by name.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#define FAKE_CALLS 512

struct fake {
	long code;	      /* what calls return */
	unsigned long handle; /* which handle they hand out, 0 for the next */
	unsigned long next_handle;
	unsigned long pitch;
	unsigned long free_bytes, total_bytes;
	unsigned char uuid[16];
	void (*inside)(void);		      /* what the driver does within a call, if anything */
	unsigned long executions[FAKE_CALLS]; /* by number of the row */
};

long fake_call(unsigned number, unsigned long *arguments);

#endif
