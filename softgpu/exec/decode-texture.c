/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of textures and surfaces.
 */
#include <errno.h>

#include "softgpu/exec/decode.h"

static exec_fn *handler_of(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_TEX:
		return texture_sample;
	case PTX_OP_TLD4:
		return texture_gather;
	case PTX_OP_SULD:
		return surface_load;
	case PTX_OP_SUST:
		return in->mode == PTX_MODE_FORMATTED ? surface_store_formatted : surface_store;
	default:
		return texture_query;
	}
}

static u8 n_coords(u8 geometry)
{
	static const u8 n[] = {
		[PTX_GEOMETRY_1D] = 1,	  [PTX_GEOMETRY_2D] = 2,  [PTX_GEOMETRY_3D] = 3,
		[PTX_GEOMETRY_A1D] = 2,	  [PTX_GEOMETRY_A2D] = 3, [PTX_GEOMETRY_CUBE] = 3,
		[PTX_GEOMETRY_ACUBE] = 4,
	};

	return n[geometry];
}

static u8 n_derivatives(u8 geometry)
{
	static const u8 n[] = {
		[PTX_GEOMETRY_1D] = 1,	  [PTX_GEOMETRY_2D] = 2,  [PTX_GEOMETRY_3D] = 3,
		[PTX_GEOMETRY_A1D] = 1,	  [PTX_GEOMETRY_A2D] = 2, [PTX_GEOMETRY_CUBE] = 3,
		[PTX_GEOMETRY_ACUBE] = 3,
	};

	return n[geometry];
}

static void take_words(struct decoder *d, u32 *to, u32 n, u32 *at)
{
	for (u32 i = 0; i < n; i++)
		to[i] = decode_source(d, &d->ops[(*at)++], 4);
}

static void take_values(struct decoder *d, struct sampling *s, u32 *at)
{
	bool is_signed = ptx_type_kind((enum ptx_type)s->type) == 's';

	for (u32 i = 0; i < s->n_values; i++, (*at)++)
		s->values[i] = s->op == PTX_OP_SUST
				       ? decode_source(d, &d->ops[*at], s->bytes)
				       : decode_result(d, &d->ops[*at], s->bytes, is_signed);
}

void decode_texture(struct decoder *d)
{
	const struct ptx_insn *in = d->in;
	struct sampling *s = arena_alloc(d->image->arena, sizeof(*s));
	u32 at = 0;

	if (!s) {
		d->error = d->error ? d->error : -ENOMEM;
		return;
	}
	s->op = (u8)in->op;
	s->geometry = PTX_TEXTURE_GEOMETRY(in->aux);
	s->what = (u8)PTX_TEXTURE_WHAT(in->aux);
	s->mode = in->mode;
	s->type = in->type;
	s->whole = in->stype != PTX_F32;
	s->bytes = (u8)ptx_type_bytes((enum ptx_type)in->type);
	s->lane_bytes = (u8)lane_bytes(s->bytes);
	s->n_values = in->vec;
	s->n_coords = n_coords(s->geometry);
	s->n_derivatives = in->mode == PTX_MODE_GRAD ? n_derivatives(s->geometry) : 0;

	if (in->op != PTX_OP_SUST)
		take_values(d, s, &at);
	s->object = decode_source(d, &d->ops[at++], 8);
	take_words(d, s->coords, s->n_coords, &at);
	if (in->mode == PTX_MODE_LEVEL)
		take_words(d, &s->level, 1, &at);
	take_words(d, s->dx, s->n_derivatives, &at);
	take_words(d, s->dy, s->n_derivatives, &at);
	if (in->op == PTX_OP_SUST)
		take_values(d, s, &at);
	decode_emit(d, handler_of(in))->sampling = s;
	decode_uses(d, 0, 0);
	decode_widen(d);
}
