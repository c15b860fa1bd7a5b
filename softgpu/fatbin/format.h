/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of fat binaries, from NVIDIA's public fatbinary_section.h and from decoding. */
#pragma once

#include <stdint.h>

#define FATBIN_WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC	     0xba55ed50u

/* Version 1: @data is a fat binary. Version 2: @extra is an array of them that ends with NULL. */
struct fatbin_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *extra;
};

struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_bytes;
	uint64_t entries_bytes;
};

enum fatbin_kind {
	FATBIN_KIND_PTX = 1,
	FATBIN_KIND_ELF = 2,
	FATBIN_KIND_LINKED_PTX = 0x5350, /* the software GPU's own: see fatbin_link() */
};

enum fatbin_flags {
	FATBIN_FLAG_64BIT = 0x1,
	FATBIN_FLAG_LINUX = 0x10,
	FATBIN_FLAG_LZ4 = 0x2000,
	FATBIN_FLAG_ZSTD = 0x8000,
};

struct fatbin_entry {
	uint16_t kind;
	uint16_t version;
	uint32_t header_bytes; /* to the payload; strings may lie between */
	uint64_t padded_bytes; /* of the payload, as stored */
	uint32_t packed_bytes; /* 0: not compressed */
	uint32_t options_offset;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
	uint64_t zero;
	uint64_t unpacked_bytes; /* 0: not compressed */
};

_Static_assert(sizeof(struct fatbin_wrapper) == 24, "wrapper");
_Static_assert(sizeof(struct fatbin_header) == 16, "header");
_Static_assert(sizeof(struct fatbin_entry) == 64, "entry");
