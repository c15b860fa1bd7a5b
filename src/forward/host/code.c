// SPDX-License-Identifier: Apache-2.0
/*
 * Body of a load: the image (struct wire_buffer), of how many parts it is and the size of each; how many options,
 * then for each its number and value. An image of one part is whatever the driver takes. One of several is what a
 * linker of relocatable code leaves: a fat binary that it linked, then those it linked it from.
 *
 * The driver parses a copy: what the guest shares, it could change under the parser. Options that point
 * somewhere are the compiler's texts; they are written here and travel back in the reply, first the
 * information, then the errors, each of the size that the guest has room for.
 */
#include "forward/host/code.h"

#include "base/base.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/jit-options.h"

#include <string.h>

#define WRAPPER_MAGIC 0x466243b1U

#define MAX_IMAGE (1ULL << 30)

/* What nvcc puts into .nvFatBinSegment: version 2 has a list of fat binaries that ends with NULL. */
struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *extra;
};

/**
 * struct image - a copy of the guest's, with room behind it for a wrapper
 * @at:		what the driver is given
 */
struct image {
	struct wrapper wrapper;
	const void *at;
	const void *units[WIRE_MAX_PARTS];
	char bytes[];
};

static struct image *image_copy(struct reader *reader, uint64_t *ret_size)
{
	uint64_t size = 0;
	const void *from = reader_buffer(reader, &size);
	struct image *image;

	if (!from || size == 0 || size > MAX_IMAGE)
		return NULL;
	image = calloc(1, sizeof(*image) + size + 1);
	if (!image)
		return NULL;
	/* PTX is text, whose end has to be there: there is a zero more. */
	memcpy(image->bytes, from, size);
	image->at = image->bytes;
	*ret_size = size;
	return image;
}

/* A wrapper has addresses in it: only those of our own making are the driver's to follow. */
static bool is_wrapper(const struct image *image, uint64_t size)
{
	uint32_t magic;

	if (size < sizeof(magic))
		return false;
	memcpy(&magic, image->bytes, sizeof(magic));
	return magic == WRAPPER_MAGIC;
}

/* Finds the parts in what was copied, @size bytes. */
static bool image_parts(struct reader *reader, struct image *image, uint64_t size)
{
	uint64_t i, n = reader_word(reader), part, offset = 0;

	if (reader->failed || n == 0 || n > WIRE_MAX_PARTS || is_wrapper(image, size))
		return false;
	image->wrapper = (struct wrapper){ WRAPPER_MAGIC, 2, image->bytes, image->units };
	for (i = 0; i < n; i++) {
		part = reader_word(reader);
		if (reader->failed || part > size - offset)
			return false;
		if (i > 0)
			image->units[i - 1] = image->bytes + offset;
		offset += MIN(wire_align(part), size - offset);
	}
	if (n > 1)
		image->at = &image->wrapper;
	return true;
}

static struct image *image_take(struct reader *reader)
{
	uint64_t size = 0;
	_cleanup_free_ struct image *image = image_copy(reader, &size);

	if (!image || !image_parts(reader, image, size))
		return NULL;
	return TAKE_PTR(image);
}

/* Lets the texts be written into the reply. */
static bool texts_to_reply(struct command *command, struct jit_options *options)
{
	unsigned i;
	void *at;
	int room;

	for (i = 0; i < JIT_TEXTS; i++) {
		room = jit_options_room(options, i);
		if (room < 0)
			continue;
		at = reply_bytes(command, (size_t)room);
		if (!at)
			return false;
		jit_options_place(options, i, at, room);
	}
	return true;
}

/* A library's own options speak of host code and stay in the guest. */
static CUresult load(struct command *command, enum handle_kind kind)
{
	struct reader reader = command_reader(command);
	_cleanup_free_ struct image *image = image_take(&reader);
	uint64_t *handle = reply_bytes(command, sizeof(*handle)), loaded = 0;
	struct jit_options options;
	CUresult r;

	if (!image || !handle || !jit_options_take(&reader, &options) ||
	    !texts_to_reply(command, &options))
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == HANDLE_MODULE)
		r = DRIVER(cuModuleLoadDataEx, POINTER(&loaded), POINTER(image->at), options.n,
			   POINTER(options.names), POINTER(options.values));
	else
		r = DRIVER(cuLibraryLoadData, POINTER(&loaded), POINTER(image->at),
			   POINTER(options.names), POINTER(options.values), options.n, 0, 0, 0);
	*handle = r == CUDA_SUCCESS ? handle_put(kind, loaded) : 0;
	return r;
}

CUresult code_load_module(struct command *command)
{
	return load(command, HANDLE_MODULE);
}

CUresult code_load_library(struct command *command)
{
	return load(command, HANDLE_LIBRARY);
}
