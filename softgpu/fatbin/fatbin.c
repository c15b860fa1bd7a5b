// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the PTX of an image.
 *
 * Nothing in an image is trusted: each header is copied out only after its place was found to lie
 * within the readable bytes, and sizes are compared by subtraction, so that they cannot wrap. A
 * fat binary made by a compiler lists alternatives, of which one is taken; the units of
 * relocatable code and the entries of a linked image belong together and are all taken.
 */
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "softgpu/fatbin/fatbin.h"
#include "softgpu/fatbin/format.h"

/* More PTX than any compiler has been seen to make; what claims to be larger is damaged. */
#define PTX_MAX_BYTES ((uint64_t)256 << 20)

/* Units of relocatable code in one wrapper: more than a linker has been seen to make. */
#define UNITS_MAX 65536u

/* Bytes that can be read, cut down as headers tell how many of them belong to a thing. */
struct bytes {
	const uint8_t *at;
	size_t n;
};

static struct bytes bytes_at(const struct fatbin_reach *reach, const void *addr)
{
	return (struct bytes){ addr, addr ? reach->bytes(reach->arg, addr) : 0 };
}

static struct bytes bytes_skip(struct bytes bytes, size_t n)
{
	return (struct bytes){ bytes.at + n, bytes.n - n };
}

static uint32_t bytes_magic(struct bytes bytes)
{
	uint32_t magic = 0;

	if (bytes.n >= sizeof(magic))
		memcpy(&magic, bytes.at, sizeof(magic));
	return magic;
}

static int image_add(struct fatbin_image *image, char *text, size_t len, unsigned int arch)
{
	struct fatbin_ptx *ptx;

	ptx = realloc(image->ptx, (image->n_ptx + 1) * sizeof(*ptx));
	if (!ptx) {
		free(text);
		return -ENOMEM;
	}
	image->ptx = ptx;
	image->ptx[image->n_ptx++] = (struct fatbin_ptx){ text, len, arch };
	return 0;
}

static void image_add_arch(struct fatbin_image *image, unsigned int arch)
{
	for (size_t i = 0; i < image->n_archs; i++)
		if (image->archs[i] == arch)
			return;
	if (image->n_archs < FATBIN_ARCHS_MAX)
		image->archs[image->n_archs++] = arch;
}

static bool unpack(const struct fatbin_entry *entry, struct bytes payload, char *text)
{
	size_t n = entry->unpacked_bytes;

	if (entry->flags & FATBIN_FLAG_ZSTD)
		return ZSTD_decompress(text, n, payload.at, payload.n) == n;
	if (entry->flags & FATBIN_FLAG_LZ4)
		return LZ4_decompress_safe((const char *)payload.at, text, (int)payload.n,
					   (int)n) == (int)n;
	return false;
}

/* Adds the PTX of one entry. @payload lies within the readable bytes. */
static int image_add_entry(struct fatbin_image *image, const struct fatbin_entry *entry,
			   struct bytes payload)
{
	bool packed = entry->packed_bytes > 0;
	uint64_t n = packed ? entry->unpacked_bytes : payload.n;
	char *text;

	if (n > PTX_MAX_BYTES || payload.n > PTX_MAX_BYTES)
		return FATBIN_E_INVALID;
	if (packed && entry->packed_bytes > payload.n)
		return FATBIN_E_INVALID;

	text = malloc(n + 1);
	if (!text)
		return -ENOMEM;
	if (!packed) {
		memcpy(text, payload.at, n);
	} else if (!unpack(entry, (struct bytes){ payload.at, entry->packed_bytes }, text)) {
		free(text);
		return FATBIN_E_INVALID;
	}

	/* The padding, and some compilers' own end, is NUL. */
	text[n] = '\0';
	return image_add(image, text, strlen(text), entry->arch);
}

/* Whether @a suits a device of @arch better than @b. */
static bool arch_better(unsigned int a, unsigned int b, unsigned int arch)
{
	if ((a <= arch) != (b <= arch))
		return a <= arch;
	return a <= arch ? a > b : a < b;
}

/* Takes the next entry off @bytes. */
static int entry_next(struct bytes *bytes, struct fatbin_entry *entry, struct bytes *payload)
{
	if (bytes->n < sizeof(*entry))
		return FATBIN_E_INVALID;
	memcpy(entry, bytes->at, sizeof(*entry));
	if (entry->header_bytes < sizeof(*entry) || entry->header_bytes > bytes->n)
		return FATBIN_E_INVALID;

	*bytes = bytes_skip(*bytes, entry->header_bytes);
	if (entry->padded_bytes > bytes->n)
		return FATBIN_E_INVALID;
	*payload = (struct bytes){ bytes->at, entry->padded_bytes };
	*bytes = bytes_skip(*bytes, entry->padded_bytes);
	return 0;
}

/* Reads the entries of one fat binary: the best alternative, and all that are linked. */
static int read_entries(struct fatbin_image *image, struct bytes entries, unsigned int arch)
{
	struct fatbin_entry entry, best;
	struct bytes payload, best_payload;
	bool have_best = false, have_any = false;
	int r;

	while (entries.n > 0) {
		r = entry_next(&entries, &entry, &payload);
		if (r != 0)
			return r;
		if (entry.kind == FATBIN_KIND_LINKED_PTX) {
			r = image_add_entry(image, &entry, payload);
			if (r != 0)
				return r;
			have_any = true;
		} else if (entry.kind == FATBIN_KIND_PTX &&
			   (!have_best || arch_better(entry.arch, best.arch, arch))) {
			best = entry;
			best_payload = payload;
			have_best = true;
		} else if (entry.kind == FATBIN_KIND_ELF) {
			image_add_arch(image, entry.arch);
		}
	}

	if (have_best)
		return image_add_entry(image, &best, best_payload);
	return have_any ? 0 : FATBIN_E_NO_PTX;
}

static int read_fatbin(struct fatbin_image *image, struct bytes bytes, unsigned int arch)
{
	struct fatbin_header header;

	for (;;) {
		if (bytes_magic(bytes) != FATBIN_MAGIC || bytes.n < sizeof(header))
			return FATBIN_E_INVALID;
		memcpy(&header, bytes.at, sizeof(header));
		if (header.header_bytes < sizeof(header) || header.header_bytes > bytes.n)
			return FATBIN_E_INVALID;
		bytes = bytes_skip(bytes, header.header_bytes);
		if (header.entries_bytes > bytes.n)
			return FATBIN_E_INVALID;

		/* Linkers put an empty fat binary before the one that counts. */
		if (header.entries_bytes > 0 || bytes_magic(bytes) != FATBIN_MAGIC)
			break;
	}

	return read_entries(image, (struct bytes){ bytes.at, header.entries_bytes }, arch);
}

/* Relocatable code: the machine code in @data is left, each unit's PTX is taken. */
static int read_units(struct fatbin_image *image, const struct fatbin_wrapper *wrapper,
		      const struct fatbin_reach *reach, unsigned int arch)
{
	struct bytes list = bytes_at(reach, wrapper->extra);
	const void *unit;
	int r;

	for (unsigned int i = 0; i < UNITS_MAX; i++) {
		if (list.n < sizeof(unit))
			return FATBIN_E_INVALID;
		memcpy(&unit, list.at, sizeof(unit));
		list = bytes_skip(list, sizeof(unit));
		if (!unit)
			return image->n_ptx > 0 ? 0 : FATBIN_E_NO_PTX;

		r = read_fatbin(image, bytes_at(reach, unit), arch);
		if (r != 0 && r != FATBIN_E_NO_PTX)
			return r;
	}
	return FATBIN_E_INVALID;
}

static int read_wrapper(struct fatbin_image *image, struct bytes bytes,
			const struct fatbin_reach *reach, unsigned int arch)
{
	struct fatbin_wrapper wrapper;

	if (bytes.n < sizeof(wrapper))
		return FATBIN_E_INVALID;
	memcpy(&wrapper, bytes.at, sizeof(wrapper));

	if (wrapper.version == 1)
		return read_fatbin(image, bytes_at(reach, wrapper.data), arch);
	if (wrapper.version == 2)
		return read_units(image, &wrapper, reach, arch);
	return FATBIN_E_INVALID;
}

/* Whether bytes begin as text does; whether it is PTX is the parser's to say. */
static bool looks_like_text(struct bytes bytes)
{
	uint8_t first = bytes.n > 0 ? bytes.at[0] : 0;

	return (first >= ' ' && first < 0x7f) || first == '\n' || first == '\t' || first == '\r';
}

static int read_text(struct fatbin_image *image, struct bytes bytes)
{
	size_t len = strnlen((const char *)bytes.at, bytes.n);
	char *text;

	if (len > PTX_MAX_BYTES)
		return FATBIN_E_INVALID;
	text = strndup((const char *)bytes.at, len);
	if (!text)
		return -ENOMEM;
	return image_add(image, text, len, /* arch= */ 0);
}

static int read_any(struct fatbin_image *image, const void *addr, const struct fatbin_reach *reach,
		    unsigned int arch)
{
	struct bytes bytes = bytes_at(reach, addr);

	switch (bytes_magic(bytes)) {
	case FATBIN_WRAPPER_MAGIC:
		return read_wrapper(image, bytes, reach, arch);
	case FATBIN_MAGIC:
		return read_fatbin(image, bytes, arch);
	case 0x464c457f: /* "\x7fELF" */
		return FATBIN_E_NO_PTX;
	}
	return looks_like_text(bytes) ? read_text(image, bytes) : FATBIN_E_INVALID;
}

int fatbin_read(const void *image, const struct fatbin_reach *reach, unsigned int arch,
		struct fatbin_image **ret)
{
	struct fatbin_image *read;
	int r;

	read = calloc(1, sizeof(*read));
	if (!read)
		return -ENOMEM;
	r = read_any(read, image, reach, arch);
	if (r != 0 && r != FATBIN_E_NO_PTX) {
		fatbin_image_free(read);
		return r;
	}

	*ret = read;
	return r;
}

void fatbin_image_free(struct fatbin_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->n_ptx; i++)
		free(image->ptx[i].text);
	free(image->ptx);
	free(image);
}

static size_t linked_padded(const struct fatbin_ptx *ptx)
{
	return (ptx->len + 1 + 7) & ~(size_t)7;
}

int fatbin_link(const struct fatbin_ptx *ptx, size_t n_ptx, void **ret, size_t *ret_size)
{
	struct fatbin_header header = {
		.magic = FATBIN_MAGIC,
		.version = 1,
		.header_bytes = sizeof(header),
	};
	uint8_t *image, *at;
	size_t size;

	for (size_t i = 0; i < n_ptx; i++)
		header.entries_bytes += sizeof(struct fatbin_entry) + linked_padded(&ptx[i]);
	size = sizeof(header) + header.entries_bytes;
	image = calloc(1, size);
	if (!image)
		return -ENOMEM;

	at = mempcpy(image, &header, sizeof(header));
	for (size_t i = 0; i < n_ptx; i++) {
		struct fatbin_entry entry = {
			.kind = FATBIN_KIND_LINKED_PTX,
			.version = 0x101,
			.header_bytes = sizeof(entry),
			.padded_bytes = linked_padded(&ptx[i]),
			.arch = ptx[i].arch,
			.flags = FATBIN_FLAG_64BIT | FATBIN_FLAG_LINUX,
		};

		at = mempcpy(at, &entry, sizeof(entry));
		memcpy(at, ptx[i].text, ptx[i].len);
		at += entry.padded_bytes;
	}

	*ret = image;
	*ret_size = size;
	return 0;
}
