// SPDX-License-Identifier: Apache-2.0
/*
 * Modules and libraries.
 *
 * An image has no length that the program would say: PTX ends with its zero, a fat binary and an ELF file
 * tell theirs. It travels through the heap, or through a grant of its own where it is larger.
 */
#include "forward/guest/code.h"

#include "base/base.h"
#include "forward/guest/call.h"
#include "forward/guest/heap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define WRAPPER_MAGIC 0x466243b1U
#define FATBIN_MAGIC  0xba55ed50U

/* What nvcc puts into .nvFatBinSegment; of relocatable code @extra is a list of units that ends with NULL. */
#define WRAPPER_OF_UNITS 2

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *extra;
};

struct fatbin {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t size;
};

static size_t elf_size(const Elf64_Ehdr *header)
{
	size_t sections = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	size_t segments = header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;

	return MAX(sections, segments);
}

static uint32_t magic_of(const void *at)
{
	uint32_t magic;

	memcpy(&magic, at, sizeof(magic));
	return magic;
}

static size_t part_size(const void *at)
{
	const struct fatbin *fatbin = at;

	if (magic_of(at) == FATBIN_MAGIC)
		return fatbin->header_size + fatbin->size;
	if (memcmp(at, ELFMAG, SELFMAG) == 0)
		return elf_size(at);
	return strlen(at) + 1;
}

static bool image_add(struct image *image, const void *at)
{
	if (image->n == WIRE_MAX_PARTS)
		return false;
	image->parts[image->n] = (struct part){ at, part_size(at) };
	image->size += wire_align(image->parts[image->n++].size);
	return true;
}

/* False where it has too many parts. */
static bool image_read(const void *at, struct image *ret)
{
	const struct wrapper *wrapper = at;
	const void *const *unit;

	ret->n = 0;
	ret->size = 0;
	if (magic_of(at) != WRAPPER_MAGIC)
		return image_add(ret, at);
	image_add(ret, wrapper->data);
	if (wrapper->version != WRAPPER_OF_UNITS)
		return true;
	for (unit = wrapper->extra; unit && *unit; unit++)
		if (!image_add(ret, *unit))
			return false;
	return true;
}

static void parcel_fill(const struct image *image, char *to)
{
	unsigned i;

	for (i = 0; i < image->n; i++) {
		memcpy(to, image->parts[i].at, image->parts[i].size);
		to += wire_align(image->parts[i].size);
	}
}

static CUresult parcel_large(const struct image *image, struct parcel *ret)
{
	int r;

	ret->mapped_size = (image->size + 4095) & ~(size_t)4095;
	ret->mapped = mmap(NULL, ret->mapped_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ret->mapped == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = session_grant(ret->mapped, ret->mapped_size, /* keep= */ false, &ret->grant);
	if (r < 0) {
		munmap(ret->mapped, ret->mapped_size);
		return r == -ENODEV ? session_lose() : CUDA_ERROR_OUT_OF_MEMORY;
	}
	parcel_fill(image, ret->mapped);
	ret->buffer = (struct wire_buffer){ .grant = ret->grant, .size = image->size };
	return CUDA_SUCCESS;
}

CUresult parcel_make(const struct image *image, struct parcel *ret)
{
	*ret = (struct parcel){ .grant = 0 };
	if (image->size > HEAP_BLOCK)
		return parcel_large(image, ret);
	ret->block = heap_take();
	parcel_fill(image, heap_at(ret->block));
	ret->buffer = heap_buffer(ret->block, image->size);
	return CUDA_SUCCESS;
}

void parcel_done(struct parcel *parcel)
{
	if (!parcel->grant) {
		heap_give(parcel->block);
		return;
	}
	session_revoke(parcel->grant);
	munmap(parcel->mapped, parcel->mapped_size);
}

static bool option_find(const struct options *options, CUjit_option name, void **ret)
{
	unsigned i;

	for (i = 0; i < options->n && options->names[i] != name; i++)
		;
	if (i < options->n)
		*ret = options->values[i];
	return i < options->n;
}

/* Every buffer that is named has its place in the answer, one at NULL, too. */
static const uint8_t *take_text(const struct options *options, CUjit_option buffer,
				CUjit_option size, const uint8_t *data, size_t *left)
{
	void *to, *asked = NULL;
	size_t room;

	if (!option_find(options, buffer, &to))
		return data;
	option_find(options, size, &asked);
	room = MIN((size_t)(uintptr_t)asked, (size_t)32 << 10);
	if (wire_align(room) > *left)
		return data;
	if (to)
		memcpy(to, data, room);
	*left -= wire_align(room);
	return data + wire_align(room);
}

void options_texts(const struct options *options, const uint8_t *data, size_t left)
{
	data = take_text(options, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, data,
			 &left);
	take_text(options, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, data,
		  &left);
}

static CUresult load(enum call_id id, const struct options *options, const struct image *image,
		     const struct parcel *parcel, void *ret)
{
	size_t i, left,
		size = sizeof(parcel->buffer) +
		       (2 + (size_t)image->n + 2 * (size_t)options->n) * sizeof(uint64_t);
	const uint8_t *data = NULL;
	struct guest_lane *l;
	uint64_t *at;
	CUresult r;

	r = call_begin(id, size, &l, (void **)&at);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(at, &parcel->buffer, sizeof(parcel->buffer));
	at += sizeof(parcel->buffer) / sizeof(*at);
	*at++ = image->n;
	for (i = 0; i < image->n; i++)
		*at++ = image->parts[i].size;
	*at++ = options->n;
	for (i = 0; i < options->n; i++) {
		*at++ = options->names[i];
		*at++ = POINTER(options->values[i]);
	}
	r = lane_ask(l, &data, &left);
	if (data && left >= sizeof(uint64_t)) {
		if (r == CUDA_SUCCESS)
			memcpy(ret, data, sizeof(uint64_t));
		options_texts(options, data + sizeof(uint64_t), left - sizeof(uint64_t));
	}
	return lane_error(l, r);
}

static CUresult load_image(enum call_id id, const void *at, unsigned n, const CUjit_option *names,
			   void **values, void *ret)
{
	struct options options = { n, names, values };
	struct parcel parcel;
	struct image image;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !at || n > MAX_JIT_OPTIONS || (n && (!names || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!image_read(at, &image))
		return CUDA_ERROR_INVALID_IMAGE;
	r = parcel_make(&image, &parcel);
	if (r != CUDA_SUCCESS)
		return r;
	r = load(id, &options, &image, &parcel, ret);
	parcel_done(&parcel);
	return r;
}

/* The host's driver does not see the guest's files. */
CUresult code_file_read(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;
	size_t done = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return CUDA_ERROR_FILE_NOT_FOUND;
	/* Zeros behind it end a text, and let short files be asked for a magic. */
	text = calloc(1, (size_t)st.st_size + sizeof(Elf64_Ehdr));
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (done < (size_t)st.st_size &&
	       (n = read(fd, text + done, (size_t)st.st_size - done)) > 0)
		done += (size_t)n;
	if (done < (size_t)st.st_size)
		return CUDA_ERROR_FILE_NOT_FOUND;
	*ret = TAKE_PTR(text);
	*ret_size = done;
	return CUDA_SUCCESS;
}

CALL(cuModuleLoadDataEx, CUmodule *ret, const void *image, unsigned n, CUjit_option *options,
     void **values)
{
	return load_image(CALL_ID_cuModuleLoadDataEx, image, n, options, values, ret);
}

CALL(cuModuleLoadData, CUmodule *ret, const void *image)
{
	return cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

CALL(cuModuleLoadFatBinary, CUmodule *ret, const void *image)
{
	return cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

/* @handle: where the caller wants what is loaded */
static CUresult image_file_read(const char *path, const void *handle, char **ret)
{
	CUresult r = session_check();
	size_t size;

	if (r != CUDA_SUCCESS)
		return r;
	if (!path || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	return code_file_read(path, ret, &size);
}

CALL(cuModuleLoad, CUmodule *ret, const char *path)
{
	_cleanup_free_ char *image = NULL;
	CUresult r = image_file_read(path, ret, &image);

	return r == CUDA_SUCCESS ? cuModuleLoadData(ret, image) : r;
}

/* The library's own options are about host code, which is here. */
CALL(cuLibraryLoadData, CUlibrary *ret, const void *image, CUjit_option *options, void **values,
     unsigned n, _unused_ CUlibraryOption *own, _unused_ void **own_values, _unused_ unsigned n_own)
{
	return load_image(CALL_ID_cuLibraryLoadData, image, n, options, values, ret);
}

CALL(cuLibraryLoadFromFile, CUlibrary *ret, const char *path, CUjit_option *options, void **values,
     unsigned n, CUlibraryOption *own, void **own_values, unsigned n_own)
{
	_cleanup_free_ char *image = NULL;
	CUresult r = image_file_read(path, ret, &image);

	return r == CUDA_SUCCESS
		       ? cuLibraryLoadData(ret, image, options, values, n, own, own_values, n_own)
		       : r;
}
