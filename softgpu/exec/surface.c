/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing of surfaces: elements as they are in memory, at whole places. The first
 * coordinate counts bytes.
 */
#include "softgpu/exec/access.h"
#include "softgpu/exec/texture.h"

static const struct exec_texture *find_surface(struct warp *w, const struct sampling *s, u32 lane)
{
	u64 handle = ((const u64 *)operand(w, s->object))[lane];
	const struct exec_texture *t = exec_find_surface ? exec_find_surface(handle) : NULL;

	if (!t)
		exec_fault(w, lane, EXEC_FAULT_ADDRESS, "0x%llx is no surface",
			   (unsigned long long)handle);
	return t;
}

static s64 coordinate(struct warp *w, const struct sampling *s, u32 i, u32 lane)
{
	return ((const s32 *)operand(w, s->coords[i]))[lane];
}

/* @at as it is inside, or moved there; false: it is outside. */
static bool bound(s64 *at, s64 most, bool clamp)
{
	if (*at >= 0 && *at <= most)
		return true;
	if (clamp)
		*at = *at < 0 || most < 0 ? 0 : most;
	return clamp;
}

/* The memory of a lane; NULL where it is outside and that is no fault. */
static u8 *lane_memory(struct warp *w, const struct sampling *s, u32 lane, bool write)
{
	const struct exec_texture *t = find_surface(w, s, lane);
	const struct exec_texels *level = &t->levels[0];
	bool layered = s->geometry == PTX_GEOMETRY_A1D || s->geometry == PTX_GEOMETRY_A2D;
	bool clamp = s->what == PTX_OUTSIDE_CLAMP;
	u32 size = (u32)s->bytes * s->n_values, first = layered ? 1 : 0, n = s->n_coords - first;
	s64 row = (s64)level->width * t->n_channels * exec_format_bytes(t->format);
	s64 x = coordinate(w, s, first, lane);
	s64 y = n > 1 ? coordinate(w, s, first + 1, lane) : 0;
	s64 z = layered ? coordinate(w, s, 0, lane) : n > 2 ? coordinate(w, s, first + 2, lane) : 0;

	if (!bound(&x, row - size, clamp) || !bound(&y, (s64)level->height - 1, clamp) ||
	    !bound(&z, (s64)level->depth - 1, clamp)) {
		if (s->what == PTX_OUTSIDE_TRAP)
			exec_fault(w, lane, EXEC_FAULT_TRAP, "a place outside of a surface");
		return NULL;
	}
	if (x & (size - 1))
		exec_fault(w, lane, EXEC_FAULT_MISALIGNED, "%u bytes at byte %lld of a surface",
			   size, (long long)x);
	return access_lane(w, level->addr + (u64)z * level->slice + (u64)y * level->pitch + (u64)x,
			   lane, size, write);
}

int surface_load(struct warp *w, const struct insn *in, u32 mask)
{
	const struct sampling *s = in->sampling;

	FOR_LANES(l, mask) {
		const u8 *from = lane_memory(w, s, l, /* write= */ false);

		for (u32 i = 0; i < s->n_values; i++) {
			u64 v = 0;

			if (from)
				memcpy(&v, from + i * s->bytes, s->bytes);
			memcpy((u8 *)operand(w, s->values[i]) + l * s->lane_bytes, &v,
			       s->lane_bytes);
		}
	}
	return RUN_ON;
}

int surface_store(struct warp *w, const struct insn *in, u32 mask)
{
	const struct sampling *s = in->sampling;

	FOR_LANES(l, mask) {
		u8 *to = lane_memory(w, s, l, /* write= */ true);

		for (u32 i = 0; to && i < s->n_values; i++)
			memcpy(to + i * s->bytes,
			       (const u8 *)operand(w, s->values[i]) + l * s->lane_bytes, s->bytes);
	}
	return RUN_ON;
}
