/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of textures, as the appendix on texture fetching of the CUDA programming guide has it.
 *
 * A coordinate becomes a place in elements: x * N if it is normalised. Without filtering the element is
 * floor(x). With it the two around x - 0.5 are mixed, by a fraction of which hardware keeps 8 bits:
 *
 *	x = 2.8		x - 0.5 = 2.3	elements 2 and 3	fraction 0.3 -> 77 / 256
 *
 * What lies beyond an edge the address mode says, for each element by itself. Wrapping and mirroring
 * are for normalised coordinates; others are held at the edge.
 */
#include <math.h>

#include "softgpu/exec/access.h"
#include "softgpu/exec/half.h"
#include "softgpu/exec/texture.h"

const struct exec_texture *(*exec_find_texture)(uint64_t handle);
const struct exec_texture *(*exec_find_surface)(uint64_t handle);

/* An element, or a mixture of some: floats, or the bits of integers. */
struct texel {
	f32 f[4];
	u32 i[4];
};

/* A texture as one lane reads it. */
struct reader {
	struct warp *w;
	const struct sampling *s;
	const struct exec_texture *t;
	u32 lane;
};

static u32 lane_word(struct warp *w, u32 op, u32 lane)
{
	return ((const u32 *)operand(w, op))[lane];
}

static const struct exec_texture *find_texture(struct warp *w, const struct sampling *s, u32 lane)
{
	u64 handle = ((const u64 *)operand(w, s->object))[lane];
	const struct exec_texture *t = exec_find_texture ? exec_find_texture(handle) : NULL;

	if (!t && s->op == PTX_OP_SUQ)
		t = exec_find_surface ? exec_find_surface(handle) : NULL;
	if (!t)
		exec_fault(w, lane, EXEC_FAULT_ADDRESS, "0x%llx is no texture",
			   (unsigned long long)handle);
	return t;
}

/* ---- elements ----------------------------------------------------------------------------------- */

/* As the sRGB standard has it. */
static f32 linear_light(f32 v)
{
	return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

static f32 as_float(const struct exec_texture *t, u32 channel, u32 bits)
{
	f32 v;

	switch (t->format) {
	case EXEC_FORMAT_U8:
		v = (f32)bits / 255.0f;
		return t->is_srgb && channel < 3 ? linear_light(v) : v;
	case EXEC_FORMAT_U16:
		return (f32)bits / 65535.0f;
	case EXEC_FORMAT_S8:
		return fmaxf((f32)(s8)bits / 127.0f, -1.0f);
	case EXEC_FORMAT_S16:
		return fmaxf((f32)(s16)bits / 32767.0f, -1.0f);
	case EXEC_FORMAT_F16:
		return half_to_float((u16)bits);
	default:
		return float_of_bits(bits);
	}
}

static u32 as_integer(const struct exec_texture *t, u32 bits)
{
	return t->format == EXEC_FORMAT_S8    ? (u32)(s32)(s8)bits
	       : t->format == EXEC_FORMAT_S16 ? (u32)(s32)(s16)bits
					      : bits;
}

static void border_texel(const struct exec_texture *t, bool is_colored, struct texel *ret)
{
	for (u32 c = 0; c < 4; c++) {
		ret->f[c] = is_colored ? t->border[c] : 0;
		ret->i[c] = is_colored ? float_bits(t->border[c]) : 0;
	}
}

/* The element at a place, which is in the level. */
static void read_texel(const struct reader *r, const struct exec_texels *level, u64 x, u64 y, u64 z,
		       struct texel *ret)
{
	const struct exec_texture *t = r->t;
	u32 bytes = exec_format_bytes(t->format), n = t->n_channels <= 4 ? t->n_channels : 4;
	u64 addr = level->addr + z * level->slice + y * level->pitch + x * n * bytes;
	const u8 *from = access_lane(r->w, addr, r->lane, n * bytes, /* write= */ false);

	*ret = (struct texel){ 0 };
	for (u32 c = 0; c < n; c++) {
		u32 bits = 0;

		memcpy(&bits, from + c * bytes, bytes);
		if (t->is_float)
			ret->f[c] = as_float(t, c, bits);
		else
			ret->i[c] = as_integer(t, bits);
	}
}

/* ---- places ------------------------------------------------------------------------------------- */

#define OUTSIDE -1

/* Remainders of what is not negative. */
static s64 modulo(s64 i, s64 n)
{
	return (i % n + n) % n;
}

static s64 inside(s64 i, u32 size, enum exec_address address)
{
	s64 n = size, m;

	switch (address) {
	case EXEC_ADDRESS_WRAP:
		return modulo(i, n);
	case EXEC_ADDRESS_MIRROR:
		m = modulo(i, 2 * n);
		return m < n ? m : 2 * n - 1 - m;
	case EXEC_ADDRESS_BORDER:
		return i < 0 || i >= n ? OUTSIDE : i;
	default:
		return i < 0 ? 0 : i >= n ? n - 1 : i;
	}
}

static enum exec_address address_of(const struct reader *r, u32 axis)
{
	enum exec_address a = (enum exec_address)r->t->address[axis];

	if (r->t->is_buffer)
		return EXEC_ADDRESS_BORDER;
	if (r->s->geometry >= PTX_GEOMETRY_CUBE)
		return EXEC_ADDRESS_CLAMP;
	if ((!r->t->normalized || r->s->whole) &&
	    (a == EXEC_ADDRESS_WRAP || a == EXEC_ADDRESS_MIRROR))
		return EXEC_ADDRESS_CLAMP;
	return a;
}

/* Where a coordinate falls along an axis: an element and the next, and how much of the next. */
struct spot {
	s64 at[2];
	f64 fraction;
};

static struct spot spot_of(const struct reader *r, u32 axis, f64 x, u32 size)
{
	enum exec_address address = address_of(r, axis);
	struct spot spot = { 0 };
	f64 floored;
	s64 i;

	if (r->t->linear && !r->s->whole)
		x -= 0.5;
	/* NaN is 0, and so far out the address modes make no difference. */
	x = x != x ? 0 : x < -0x1p50 ? -0x1p50 : x > 0x1p50 ? 0x1p50 : x;
	floored = floor(x);
	i = (s64)floored;
	spot.at[0] = inside(i, size, address);
	if (r->t->linear && !r->s->whole) {
		spot.at[1] = inside(i + 1, size, address);
		spot.fraction = floor((x - floored) * 256 + 0.5) / 256;
	}
	return spot;
}

/* ---- filtering ---------------------------------------------------------------------------------- */

static void texel_at(const struct reader *r, const struct exec_texels *level, const s64 at[3],
		     struct texel *ret)
{
	if (at[0] == OUTSIDE || at[1] == OUTSIDE || at[2] == OUTSIDE)
		border_texel(r->t, !r->t->is_buffer, ret);
	else
		read_texel(r, level, (u64)at[0], (u64)at[1], (u64)at[2], ret);
}

/* Of the eight elements around a place those that count, one after the other. */
static void mix(const struct reader *r, const struct exec_texels *level, const struct spot spots[3],
		struct texel *ret)
{
	f64 sum[4] = { 0 };

	for (u32 corner = 0; corner < 8; corner++) {
		struct texel one;
		f64 weight = 1;
		s64 at[3];

		for (u32 axis = 0; axis < 3; axis++) {
			u32 next = corner >> axis & 1;

			weight *= next ? spots[axis].fraction : 1 - spots[axis].fraction;
			at[axis] = spots[axis].at[next];
		}
		if (weight == 0)
			continue;
		texel_at(r, level, at, &one);
		for (u32 c = 0; c < 4; c++)
			sum[c] += weight * (f64)one.f[c];
	}
	for (u32 c = 0; c < 4; c++)
		ret->f[c] = (f32)sum[c];
}

/* A place in a level: coordinates of the axes, and of layers the number. */
struct place {
	f64 x[3];
	u32 n_axes;
	s64 layer; /* or face */
	bool has_layer;
};

static u32 extent_of(const struct exec_texels *level, u32 axis)
{
	u32 n = axis == 0 ? level->width : axis == 1 ? level->height : level->depth;

	return n ? n : 1;
}

static void find_spots(const struct reader *r, const struct exec_texels *level,
		       const struct place *place, struct spot spots[3])
{
	for (u32 axis = 0; axis < 3; axis++) {
		u32 size = extent_of(level, axis);
		f64 x = place->x[axis];

		spots[axis] = (struct spot){ 0 };
		if (axis >= place->n_axes)
			continue;
		if (!r->s->whole && r->t->normalized)
			x *= size;
		spots[axis] = spot_of(r, axis, x, size);
	}
	if (place->has_layer)
		spots[2].at[0] = inside(place->layer, extent_of(level, 2), EXEC_ADDRESS_CLAMP);
}

static void sample_level(const struct reader *r, u32 number, const struct place *place,
			 struct texel *ret)
{
	const struct exec_texels *level = &r->t->levels[number];
	struct spot spots[3];

	find_spots(r, level, place, spots);
	if (r->t->linear && r->t->is_float && !r->s->whole) {
		mix(r, level, spots, ret);
	} else {
		s64 at[3] = { spots[0].at[0], spots[1].at[0], spots[2].at[0] };

		texel_at(r, level, at, ret);
	}
}

/* Between two levels, the fraction has 8 bits as well. */
static void sample(const struct reader *r, f64 lod, const struct place *place, struct texel *ret)
{
	const struct exec_texture *t = r->t;
	f64 last = t->n_levels - 1.0, fraction;
	struct texel next;
	u32 first;

	if (t->n_levels < 2 || t->n_levels > EXEC_LEVELS_MAX) {
		sample_level(r, 0, place, ret);
		return;
	}
	lod = fmin(fmax(lod + (f64)t->bias, (f64)t->least_level), (f64)t->most_level);
	lod = !(lod > 0) ? 0 : lod > last ? last : lod;
	if (!t->linear_levels || !t->is_float) {
		sample_level(r, (u32)floor(lod + 0.5), place, ret);
		return;
	}
	first = (u32)floor(lod);
	fraction = floor((lod - first) * 256 + 0.5) / 256;
	sample_level(r, first, place, ret);
	if (fraction == 0)
		return;
	sample_level(r, first + 1, place, &next);
	for (u32 c = 0; c < 4; c++)
		ret->f[c] = (f32)((1 - fraction) * (f64)ret->f[c] + fraction * (f64)next.f[c]);
}

/* ---- coordinates -------------------------------------------------------------------------------- */

static f64 coordinate(const struct reader *r, u32 i)
{
	u32 bits = lane_word(r->w, r->s->coords[i], r->lane);

	return r->s->whole ? (f64)(s32)bits : (f64)float_of_bits(bits);
}

/* The face that a direction points at, and where on it. */
static void aim_at_face(const f64 v[3], struct place *ret)
{
	f64 x = fabs(v[0]), y = fabs(v[1]), z = fabs(v[2]), major, s, t;
	u32 axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
	bool back = v[axis] < 0;

	major = fabs(v[axis]);
	s = axis == 0 ? (back ? v[2] : -v[2]) : axis == 1 ? v[0] : back ? -v[0] : v[0];
	t = axis == 1 ? (back ? -v[2] : v[2]) : -v[1];
	ret->x[0] = (s / major + 1) / 2;
	ret->x[1] = (t / major + 1) / 2;
	ret->layer = 2 * axis + back;
	ret->has_layer = true;
	ret->n_axes = 2;
}

static void find_place(const struct reader *r, struct place *ret)
{
	u8 geometry = r->s->geometry;
	bool layered = geometry == PTX_GEOMETRY_A1D || geometry == PTX_GEOMETRY_A2D ||
		       geometry == PTX_GEOMETRY_ACUBE;
	u32 first = layered ? 1 : 0, n = r->s->n_coords - first;
	s64 layer = layered ? lane_word(r->w, r->s->coords[0], r->lane) : 0;
	f64 v[3] = { 0 };

	*ret = (struct place){ .n_axes = n, .layer = layer, .has_layer = layered };
	for (u32 i = 0; i < n; i++)
		v[i] = coordinate(r, first + i);
	if (geometry < PTX_GEOMETRY_CUBE) {
		memcpy(ret->x, v, sizeof(v));
		return;
	}
	aim_at_face(v, ret);
	ret->layer += 6 * layer;
}

/* The derivatives tell how many elements lie between two neighbours' places. */
static f64 level_of_derivatives(const struct reader *r)
{
	f64 longest = 0;

	for (u32 which = 0; which < 2; which++) {
		const u32 *d = which ? r->s->dy : r->s->dx;
		f64 sum = 0;

		for (u32 i = 0; i < r->s->n_derivatives; i++) {
			f64 v = (f64)float_of_bits(lane_word(r->w, d[i], r->lane));

			v *= r->t->normalized ? extent_of(&r->t->levels[0], i) : 1;
			sum += v * v;
		}
		longest = fmax(longest, sqrt(sum));
	}
	return log2(longest);
}

static f64 level_of(const struct reader *r)
{
	u32 bits;

	switch (r->s->mode) {
	case PTX_MODE_LEVEL:
		bits = lane_word(r->w, r->s->level, r->lane);
		return r->s->whole ? (f64)(s32)bits : (f64)float_of_bits(bits);
	case PTX_MODE_GRAD:
		return level_of_derivatives(r);
	default:
		return 0;
	}
}

/* ---- instructions ------------------------------------------------------------------------------- */

/* An element's channel as a half; of integers the lower bits. */
static u16 as_half(const struct reader *r, const struct texel *texel, u32 c)
{
	return r->t->is_float ? half_from_float(texel->f[c]) : (u16)texel->i[c];
}

static void put_value(const struct reader *r, u32 i, f32 f, u32 bits)
{
	u32 *d = operand(r->w, r->s->values[i]);

	d[r->lane] = r->t->is_float ? float_bits(f) : bits;
}

static void put_texel(const struct reader *r, const struct texel *texel)
{
	for (u32 i = 0; i < r->s->n_values; i++) {
		void *d = operand(r->w, r->s->values[i]);

		switch (r->s->type) {
		case PTX_F16:
			((u16 *)d)[r->lane] = as_half(r, texel, i);
			break;
		case PTX_F16X2:
			((u32 *)d)[r->lane] =
				as_half(r, texel, 2 * i) | (u32)as_half(r, texel, 2 * i + 1) << 16;
			break;
		default:
			put_value(r, i, texel->f[i], texel->i[i]);
		}
	}
}

int texture_sample(struct warp *w, const struct insn *in, u32 mask)
{
	struct reader r = { .w = w, .s = in->sampling };

	FOR_LANES(l, mask) {
		struct texel texel = { 0 };
		struct place place;

		r.lane = l;
		r.t = find_texture(w, r.s, l);
		find_place(&r, &place);
		sample(&r, level_of(&r), &place, &texel);
		put_texel(&r, &texel);
	}
	return RUN_ON;
}

/* One channel of the four elements that a filter would mix, from the lower left around. */
static void gather_lane(struct reader *r)
{
	static const u8 corners[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
	const struct exec_texels *level = &r->t->levels[0];
	struct exec_texture filtered = *r->t;
	struct reader as_filter = *r;
	struct spot spots[3];
	struct place place;

	filtered.linear = true;
	as_filter.t = &filtered;
	find_place(r, &place);
	find_spots(&as_filter, level, &place, spots);
	for (u32 i = 0; i < 4; i++) {
		s64 at[3] = { spots[0].at[corners[i][0]], spots[1].at[corners[i][1]],
			      spots[2].at[0] };
		struct texel texel;

		texel_at(r, level, at, &texel);
		put_value(r, i, texel.f[r->s->what], texel.i[r->s->what]);
	}
}

int texture_gather(struct warp *w, const struct insn *in, u32 mask)
{
	struct reader r = { .w = w, .s = in->sampling };

	FOR_LANES(l, mask) {
		r.lane = l;
		r.t = find_texture(w, r.s, l);
		gather_lane(&r);
	}
	return RUN_ON;
}

/* The numbers that OpenCL gives to formats, which are those that PTX does not tell. */
static u32 data_type(const struct exec_texture *t)
{
	static const u32 types[] = {
		[EXEC_FORMAT_U8] = 0x10da,  [EXEC_FORMAT_U16] = 0x10db, [EXEC_FORMAT_U32] = 0x10dc,
		[EXEC_FORMAT_S8] = 0x10d7,  [EXEC_FORMAT_S16] = 0x10d8, [EXEC_FORMAT_S32] = 0x10d9,
		[EXEC_FORMAT_F16] = 0x10dd, [EXEC_FORMAT_F32] = 0x10de,
	};

	return t->format <= EXEC_FORMAT_F32 ? types[t->format] : 0;
}

static u32 answer(const struct exec_texture *t, u8 query, u32 level_number)
{
	const struct exec_texels *level =
		&t->levels[level_number < EXEC_LEVELS_MAX ? level_number : EXEC_LEVELS_MAX - 1];

	switch (query) {
	case PTX_QUERY_WIDTH:
		return level->width;
	case PTX_QUERY_HEIGHT:
		return level->height;
	case PTX_QUERY_DEPTH:
		return t->is_layered ? 1 : level->depth;
	case PTX_QUERY_LAYERS:
		return t->is_layered ? level->depth : 0;
	case PTX_QUERY_LEVELS:
		return t->n_levels;
	case PTX_QUERY_SAMPLES:
		return 1;
	case PTX_QUERY_DATA_TYPE:
		return data_type(t);
	case PTX_QUERY_ORDER:
		return t->n_channels == 1 ? 0x10b0 : t->n_channels == 2 ? 0x10b2 : 0x10b5;
	default:
		return t->normalized;
	}
}

int texture_query(struct warp *w, const struct insn *in, u32 mask)
{
	const struct sampling *s = in->sampling;
	u32 *d = operand(w, s->values[0]);

	FOR_LANES(l, mask) {
		u32 level = s->mode == PTX_MODE_LEVEL ? lane_word(w, s->level, l) : 0;

		d[l] = answer(find_texture(w, s, l), s->what, level);
	}
	return RUN_ON;
}
