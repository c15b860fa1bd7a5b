/* SPDX-License-Identifier: Apache-2.0 */
/* What modules, libraries and the linker have in common. */
#ifndef FORWARD_GUEST_CODE_H
#define FORWARD_GUEST_CODE_H

#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

#define MAX_JIT_OPTIONS 32

struct part {
	const void *at;
	size_t size;
};

/**
 * struct image - what a program gives as code
 * @n:		1, or more where a linker of relocatable code left a list
 * @size:	of all, each part at a multiple of 8
 */
struct image {
	unsigned n;
	size_t size;
	struct part parts[WIRE_MAX_PARTS];
};

/**
 * struct parcel - an image where the host can read it
 * @grant:	its own, 0 where it is in the heap
 */
struct parcel {
	struct wire_buffer buffer;
	unsigned block;
	uint32_t grant;
	void *mapped;
	size_t mapped_size;
};

CUresult parcel_make(const struct image *image, struct parcel *ret);
void parcel_done(struct parcel *parcel);

/** struct options - of the compiler, with where the program wants its texts */
struct options {
	unsigned n;
	const CUjit_option *names;
	void **values;
};

/** options_texts() - what the compiler wrote: where an answer has them, its next @left bytes */
void options_texts(const struct options *options, const uint8_t *data, size_t left);

/** code_file_read() - a file of the guest's, with zeros behind it; the caller frees it */
CUresult code_file_read(const char *path, char **ret, size_t *ret_size);

#endif
