/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of libcuda or libnvidia-ml as a file: where its calls are.
 *
 * What is read here belongs to whoever made the file, tenants included. It is read by pread()
 * alone, never mapped (a file that shrinks under a mapping kills whoever looks at it), and no count
 * or size in it is believed beyond what the libraries of real drivers need.
 */
#ifndef AUDIT_LIBRARY_H
#define AUDIT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIBRARY_CODE	 8
#define LIBRARY_BUILD_ID 41
#define LIBRARY_NAME	 64

/**
 * struct library_call - one call
 * @address:	where it is once loaded, less the load address: a symbol's value
 * @offset:	where that is in the file
 * @ret_delta:	from there to a `ret` byte, 0 if there is none
 */
struct library_call {
	uint32_t row;
	uint64_t address;
	uint64_t offset;
	int32_t ret_delta;
};

/* A part of the file that is mapped executable. */
struct library_code {
	uint64_t address;
	uint64_t offset;
	uint64_t size;
};

/**
 * struct library_image - what was read of a file
 * @unknown:	names that look allocating and that no row knows
 * @looks_up:	it exports cuGetProcAddress: a libcuda, whatever else it exports
 * @build_id:	in hexadecimal digits, "" without one
 */
struct library_image {
	struct library_call *calls;
	size_t n_calls;
	char (*unknown)[LIBRARY_NAME];
	size_t n_unknown;
	struct library_code code[LIBRARY_CODE];
	size_t n_code;
	bool looks_up;
	char build_id[LIBRARY_BUILD_ID];
};

enum library_symbols {
	LIBRARY_EXPORTED, /* what programs can link with */
	LIBRARY_ALL,	  /* and what is left for debuggers, in a file of its own or in this one */
};

/**
 * library_read() - read a file's code, build-id and calls
 *
 * Return: 0, also if it has no call that a row knows; -ENOEXEC if it is no 64-bit library, or none
 * that a real driver could be.
 */
int library_read(int fd, enum library_symbols which, struct library_image *ret);

/**
 * library_add() - add a call that no symbol tells
 *
 * Return: 0, also for a call that no row knows; -ENOEXEC when the address is not in the code.
 */
int library_add(int fd, struct library_image *image, const char *name, uint64_t address);

/** library_has() - is this call among those found? */
bool library_has(const struct library_image *image, const char *name);

/** library_call_name() - what a call is called */
const char *library_call_name(uint32_t row);

/** library_take_launches() - take out those that are probed in single processes; the caller frees them */
int library_take_launches(struct library_image *image, struct library_call **ret, size_t *ret_n);

void library_image_done(struct library_image *image);

#endif
