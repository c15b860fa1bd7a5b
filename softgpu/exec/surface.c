/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing of surfaces: elements as they are in memory, at whole places. The first
 * coordinate counts bytes, but where words become what the surface has.
 */
#include "softgpu/exec/access.h"
#include "softgpu/exec/half.h"
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

static u32 lane_word(struct warp *w, u32 op, u32 lane)
{
	return ((const u32 *)operand(w, op))[lane];
}

static s64 coordinate(struct warp *w, const struct sampling *s, u32 i, u32 lane)
{
	return (s32)lane_word(w, s->coords[i], lane);
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

/* An access of a lane: so many bytes, at a place that counts steps of so many. */
struct piece {
	u32 lane, size, step;
	bool write;
};

/* The memory of it; NULL where it is outside and that is no fault. */
static u8 *piece_memory(struct warp *w, const struct sampling *s, const struct exec_texture *t,
			const struct piece *p)
{
	const struct exec_texels *level = &t->levels[0];
	bool layered = s->geometry == PTX_GEOMETRY_A1D || s->geometry == PTX_GEOMETRY_A2D;
	bool clamp = s->what == PTX_OUTSIDE_CLAMP;
	u32 first = layered ? 1 : 0, n = s->n_coords - first;
	s64 row = (s64)level->width * t->n_channels * exec_format_bytes(t->format);
	s64 x = coordinate(w, s, first, p->lane) * p->step;
	s64 y = n > 1 ? coordinate(w, s, first + 1, p->lane) : 0;
	s64 z = layered ? coordinate(w, s, 0, p->lane)
		: n > 2 ? coordinate(w, s, first + 2, p->lane)
			: 0;

	if (!bound(&x, row - p->size, clamp) || !bound(&y, (s64)level->height - 1, clamp) ||
	    !bound(&z, (s64)level->depth - 1, clamp)) {
		if (s->what == PTX_OUTSIDE_TRAP)
			exec_fault(w, p->lane, EXEC_FAULT_TRAP, "a place outside of a surface");
		return NULL;
	}
	if (x & (p->size - 1))
		exec_fault(w, p->lane, EXEC_FAULT_MISALIGNED, "%u bytes at byte %lld of a surface",
			   p->size, (long long)x);
	return access_lane(w, level->addr + (u64)z * level->slice + (u64)y * level->pitch + (u64)x,
			   p->lane, p->size, p->write);
}

/* Of elements as they are in memory. */
static u8 *lane_memory(struct warp *w, const struct sampling *s, u32 lane, bool write)
{
	const struct piece piece = { lane, (u32)s->bytes * s->n_values, 1, write };

	return piece_memory(w, s, find_surface(w, s, lane), &piece);
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

static u32 clamped(s64 v, s64 low, s64 high)
{
	return (u32)(v < low ? low : v > high ? high : v);
}

/* A word as a channel of a surface: integers of its sign, or a float. */
static u32 as_channel(u8 format, u32 v)
{
	switch (format) {
	case EXEC_FORMAT_U8:
		return clamped(v, 0, UINT8_MAX);
	case EXEC_FORMAT_U16:
		return clamped(v, 0, UINT16_MAX);
	case EXEC_FORMAT_S8:
		return clamped((s32)v, INT8_MIN, INT8_MAX);
	case EXEC_FORMAT_S16:
		return clamped((s32)v, INT16_MIN, INT16_MAX);
	case EXEC_FORMAT_F16:
		return half_from_float(float_of_bits(v));
	default:
		return v;
	}
}

/* The first coordinate counts elements. Channels that the text does not have become zeros. */
int surface_store_formatted(struct warp *w, const struct insn *in, u32 mask)
{
	const struct sampling *s = in->sampling;

	FOR_LANES(l, mask) {
		const struct exec_texture *t = find_surface(w, s, l);
		/* The surface may end meanwhile: what counts is looked at once. */
		u8 format = t->format, n = t->n_channels <= 4 ? t->n_channels : 4;
		u32 bytes = exec_format_bytes(format);
		const struct piece piece = { l, n * bytes, n * bytes, /* write= */ true };
		u8 *to = piece_memory(w, s, t, &piece);

		for (u32 i = 0; to && i < n; i++) {
			u32 v = i < s->n_values ? lane_word(w, s->values[i], l) : 0;

			v = as_channel(format, v);
			memcpy(to + i * bytes, &v, bytes);
		}
	}
	return RUN_ON;
}
