/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of what a program hands to the driver as code: PTX text, a fat binary, or a wrapper that
 * points to fat binaries. Finds the PTX to run and unpacks it; does not look into the PTX.
 *
 * The driver's calls give no length. What bounds every read here is the caller's notion of how far
 * memory can be read from an address, so a header that lies about sizes costs an error only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers of fatbin_read(). */
enum {
	FATBIN_E_INVALID = 1, /* no image of any known kind, or damaged: CUDA_ERROR_INVALID_IMAGE */
	FATBIN_E_NO_PTX = 2,  /* machine code only: CUDA_ERROR_NO_BINARY_FOR_GPU */
};

/**
 * struct fatbin_reach - how far memory can be read
 * @bytes:	how many bytes can be read at @addr; 0 for none
 */
struct fatbin_reach {
	size_t (*bytes)(void *arg, const void *addr);
	void *arg;
};

/* The process's own readable mappings: for images that come as a bare pointer. */
extern const struct fatbin_reach fatbin_reach_process;

/* Bytes of known length: for images from files. */
struct fatbin_span {
	const void *addr;
	size_t n;
};

/** fatbin_reach_span() - nothing but @span, which has to stay where it is */
struct fatbin_reach fatbin_reach_span(const struct fatbin_span *span);

/**
 * struct fatbin_ptx - one PTX module
 * @text:	NUL-terminated
 * @len:	without the NUL
 * @arch:	compute capability it was made for (75, 120); 0 for plain text
 */
struct fatbin_ptx {
	char *text;
	size_t len;
	unsigned int arch;
};

/* More architectures than any build names. */
#define FATBIN_ARCHS_MAX 32

/**
 * struct fatbin_image - what an image has
 * @ptx:	all PTX modules that make it up: several for relocatable code, else one
 * @archs:	what its machine code is for, in the order found; the first FATBIN_ARCHS_MAX
 */
struct fatbin_image {
	struct fatbin_ptx *ptx;
	size_t n_ptx;
	unsigned int archs[FATBIN_ARCHS_MAX];
	size_t n_archs;
};

/**
 * fatbin_read() - find the PTX of an image that fits a device best
 * @image:	PTX text, fat binary or wrapper
 * @reach:	how far memory can be read
 * @arch:	the device's compute capability, as 10 * major + minor
 *
 * Takes the PTX of the highest capability that the device has. Where all need more, it takes the
 * lowest of them: a software device runs it as well, and some libraries carry nothing else.
 *
 * Return: 0; FATBIN_E_NO_PTX with an image that has @archs alone; else without one,
 * FATBIN_E_INVALID or -ENOMEM.
 */
int fatbin_read(const void *image, const struct fatbin_reach *reach, unsigned int arch,
		struct fatbin_image **ret);

void fatbin_image_free(struct fatbin_image *image);

/**
 * fatbin_link() - put PTX modules into one fat binary that fatbin_read() gives back whole
 * @ptx:	the modules; linked in this order
 *
 * What cuLinkComplete() returns. It is plain bytes without pointers, so a program can keep it in a
 * file. Its entries have a kind of their own: PTX of which all belong together, where entries of
 * an ordinary fat binary are alternatives.
 *
 * Return: 0 or -ENOMEM.
 */
int fatbin_link(const struct fatbin_ptx *ptx, size_t n_ptx, void **ret, size_t *ret_size);
