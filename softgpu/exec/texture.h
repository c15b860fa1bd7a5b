/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces as kernels meet them: what the driver has made of a handle.
 *
 * Nothing in here is trusted when it is used: a texture may end while a kernel reads it, so the memory
 * of a struct exec_texture stays one for the life of the process, and each access to the texels is
 * checked as any other.
 */
#ifndef SOFTGPU_EXEC_TEXTURE_H
#define SOFTGPU_EXEC_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

enum exec_format {
	EXEC_FORMAT_U8,
	EXEC_FORMAT_U16,
	EXEC_FORMAT_U32,
	EXEC_FORMAT_S8,
	EXEC_FORMAT_S16,
	EXEC_FORMAT_S32,
	EXEC_FORMAT_F16,
	EXEC_FORMAT_F32,
};

/* What is behind the edge. Their values are those of CUaddress_mode. */
enum exec_address {
	EXEC_ADDRESS_WRAP,
	EXEC_ADDRESS_CLAMP,
	EXEC_ADDRESS_MIRROR,
	EXEC_ADDRESS_BORDER,
};

/* As many halvings as the largest extent has. */
#define EXEC_LEVELS_MAX 18

struct exec_texels {
	uint64_t addr;
	uint64_t pitch, slice;	       /* bytes from row to row, and from layer to layer */
	uint32_t width, height, depth; /* elements, rows, layers */
};

/**
 * struct exec_texture - a texture or a surface
 * @is_buffer:	a line of memory: outside of it is zero
 * @is_float:	it is read as floats: by its format, or because integers become them
 * @is_layered:	depth counts layers, which do not shrink with the level
 * @border:	what is outside with EXEC_ADDRESS_BORDER
 */
struct exec_texture {
	struct exec_texels levels[EXEC_LEVELS_MAX];
	uint32_t n_levels;
	uint8_t format; /* enum exec_format */
	uint8_t n_channels;
	uint8_t address[3]; /* enum exec_address */
	bool is_buffer, is_float, is_srgb, is_layered;
	bool linear, linear_levels;
	bool normalized; /* coordinates from 0 to 1 */
	float bias, least_level, most_level;
	float border[4];
};

/*
 * Who knows the handles: the driver. NULL where there is nobody, and as the answer if there is no
 * such texture, or surface.
 */
extern const struct exec_texture *(*exec_find_texture)(uint64_t handle);
extern const struct exec_texture *(*exec_find_surface)(uint64_t handle);

/* Bytes of one channel. */
static inline uint32_t exec_format_bytes(uint8_t format)
{
	return format == EXEC_FORMAT_U8 || format == EXEC_FORMAT_S8 ? 1
	       : format == EXEC_FORMAT_U32 || format == EXEC_FORMAT_S32 || format == EXEC_FORMAT_F32
		       ? 4
		       : 2;
}

#endif
