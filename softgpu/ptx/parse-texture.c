/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces: "tex.level.2d.v4.f32.f32 {r, g, b, a}, [object, {x, y}], level;"
 *
 * Objects are values of 64 bits. References, which modules of old declared, are refused where they
 * are declared, and so is a sampler of its own.
 */
#include <string.h>

#include "softgpu/ptx/parse.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum word_of_texture {
	WORD_GEOMETRY,
	WORD_WHAT,
	WORD_MODE,
	WORD_VEC,
	WORD_BYTES, /* of surfaces: elements without a format */
	WORD_CACHE,
	N_WORDS,
};

#define ALL_OPS	 0
#define SURFACES 1
#define QUERIES	 2
#define SAMPLES	 3
#define GATHER	 4

static const struct {
	const char *text;
	uint8_t kind, value;
	uint8_t where;
} word_list[] = {
	{ "1d", WORD_GEOMETRY, PTX_GEOMETRY_1D, ALL_OPS },
	{ "2d", WORD_GEOMETRY, PTX_GEOMETRY_2D, ALL_OPS },
	{ "3d", WORD_GEOMETRY, PTX_GEOMETRY_3D, ALL_OPS },
	{ "a1d", WORD_GEOMETRY, PTX_GEOMETRY_A1D, ALL_OPS },
	{ "a2d", WORD_GEOMETRY, PTX_GEOMETRY_A2D, ALL_OPS },
	{ "cube", WORD_GEOMETRY, PTX_GEOMETRY_CUBE, ALL_OPS },
	{ "acube", WORD_GEOMETRY, PTX_GEOMETRY_ACUBE, ALL_OPS },
	{ "v2", WORD_VEC, 2, ALL_OPS },
	{ "v4", WORD_VEC, 4, ALL_OPS },
	{ "base", WORD_MODE, PTX_MODE_NONE, SAMPLES },
	{ "level", WORD_MODE, PTX_MODE_LEVEL, SAMPLES },
	{ "grad", WORD_MODE, PTX_MODE_GRAD, SAMPLES },
	{ "level", WORD_MODE, PTX_MODE_LEVEL, QUERIES },
	{ "r", WORD_WHAT, 0, GATHER },
	{ "g", WORD_WHAT, 1, GATHER },
	{ "b", WORD_WHAT, 2, GATHER },
	{ "a", WORD_WHAT, 3, GATHER },
	{ "b", WORD_BYTES, 1, SURFACES },
	{ "p", WORD_MODE, PTX_MODE_FORMATTED, SURFACES },
	{ "trap", WORD_WHAT, PTX_OUTSIDE_TRAP, SURFACES },
	{ "clamp", WORD_WHAT, PTX_OUTSIDE_CLAMP, SURFACES },
	{ "zero", WORD_WHAT, PTX_OUTSIDE_ZERO, SURFACES },
	{ "ca", WORD_CACHE, 0, SURFACES },
	{ "cg", WORD_CACHE, 0, SURFACES },
	{ "cs", WORD_CACHE, 0, SURFACES },
	{ "cv", WORD_CACHE, 0, SURFACES },
	{ "wb", WORD_CACHE, 0, SURFACES },
	{ "wt", WORD_CACHE, 0, SURFACES },
	{ "width", WORD_WHAT, PTX_QUERY_WIDTH, QUERIES },
	{ "height", WORD_WHAT, PTX_QUERY_HEIGHT, QUERIES },
	{ "depth", WORD_WHAT, PTX_QUERY_DEPTH, QUERIES },
	{ "array_size", WORD_WHAT, PTX_QUERY_LAYERS, QUERIES },
	{ "num_mipmap_levels", WORD_WHAT, PTX_QUERY_LEVELS, QUERIES },
	{ "num_samples", WORD_WHAT, PTX_QUERY_SAMPLES, QUERIES },
	{ "channel_data_type", WORD_WHAT, PTX_QUERY_DATA_TYPE, QUERIES },
	{ "channel_order", WORD_WHAT, PTX_QUERY_ORDER, QUERIES },
	{ "normalized_coords", WORD_WHAT, PTX_QUERY_NORMALIZED, QUERIES },
};

/* Several samples for a place, and samplers by themselves. */
static const char *const refused[] = {
	"2dms",
	"a2dms",
	"addr_mode_0",
	"addr_mode_1",
	"addr_mode_2",
	"filter_mode",
	"force_unnormalized_coords",
	"memory_layout",
};

struct texture_words {
	uint8_t values[N_WORDS];
	bool has[N_WORDS];
	uint8_t types[2], n_types;
};

static uint8_t kind_of_op(enum ptx_op op)
{
	switch (op) {
	case PTX_OP_TEX:
		return SAMPLES;
	case PTX_OP_TLD4:
		return GATHER;
	case PTX_OP_SULD:
	case PTX_OP_SUST:
		return SURFACES;
	default:
		return QUERIES;
	}
}

static bool word_matches(const struct token *t, const char *text)
{
	return strlen(text) == t->len && memcmp(text, t->text, t->len) == 0;
}

static bool take_type(struct texture_words *w, const struct token *t)
{
	enum ptx_type type = type_find(t->text, t->len);

	if (type == PTX_TYPE_NONE || w->n_types == ARRAY_SIZE(w->types))
		return false;
	w->types[w->n_types++] = (uint8_t)type;
	return true;
}

static bool take_word(struct texture_words *w, const struct token *t, uint8_t where)
{
	for (size_t i = 0; i < ARRAY_SIZE(word_list); i++) {
		uint8_t kind = word_list[i].kind;

		if (!word_matches(t, word_list[i].text) ||
		    (word_list[i].where != ALL_OPS && word_list[i].where != where))
			continue;
		if (w->has[kind])
			return false;
		w->has[kind] = true;
		w->values[kind] = word_list[i].value;
		return true;
	}
	return take_type(w, t);
}

static bool is_refused(const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (word_matches(t, refused[i]))
			return true;
	}
	return false;
}

static void read_words(struct parser *p, struct texture_words *w)
{
	bool refuse = false;

	while (!p->error && p->token.kind == TOKEN_DOT) {
		insn_name_add(p, &p->token);
		if (is_refused(&p->token))
			refuse = true;
		else if (!take_word(w, &p->token, kind_of_op(p->insn.op)) && !refuse)
			parse_fail(p, p->token.line, "%s: there is no such modifier", insn_name(p));
		next(p);
	}
	/* Reading with a format is what tex is for; the word is from before it. */
	refuse |= p->insn.op == PTX_OP_SULD && w->has[WORD_MODE];
	if (refuse && !p->error)
		parse_refuse(p, p->insn.line, "%s: this instruction is not run here", insn_name(p));
}

/* ---- which of them go together ------------------------------------------------------------------ */

static bool is_sampled_type(enum ptx_type type)
{
	return type == PTX_F32 || type == PTX_U32 || type == PTX_S32;
}

static bool sample_fits(const struct texture_words *w)
{
	bool faces = w->values[WORD_GEOMETRY] >= PTX_GEOMETRY_CUBE;
	bool whole = w->types[1] == PTX_S32;

	bool pairs = w->types[0] == PTX_F16X2;

	return w->has[WORD_GEOMETRY] && w->values[WORD_VEC] == (pairs ? 2 : 4) && w->n_types == 2 &&
	       (pairs || w->types[0] == PTX_F16 || is_sampled_type(w->types[0])) &&
	       (whole || w->types[1] == PTX_F32) &&
	       !(whole && (faces || w->values[WORD_MODE] == PTX_MODE_GRAD));
}

static bool gather_fits(const struct texture_words *w)
{
	uint8_t geometry = w->values[WORD_GEOMETRY];
	bool plane = geometry == PTX_GEOMETRY_2D || geometry == PTX_GEOMETRY_A2D;

	return (plane || geometry >= PTX_GEOMETRY_CUBE) && w->has[WORD_WHAT] &&
	       w->values[WORD_VEC] == 4 && w->n_types == 2 && is_sampled_type(w->types[0]) &&
	       w->types[1] == PTX_F32;
}

static bool surface_fits(const struct texture_words *w)
{
	uint8_t geometry = w->values[WORD_GEOMETRY];
	enum ptx_type type = (enum ptx_type)w->types[0];
	bool formatted = w->has[WORD_MODE];
	bool bits = type == PTX_B8 || type == PTX_B16 || type == PTX_B32 || type == PTX_B64;

	return geometry >= PTX_GEOMETRY_1D && geometry <= PTX_GEOMETRY_A2D &&
	       w->has[WORD_BYTES] != formatted && w->has[WORD_WHAT] && w->n_types == 1 &&
	       (formatted ? type == PTX_B32 : bits) &&
	       ptx_type_bytes(type) * (w->has[WORD_VEC] ? w->values[WORD_VEC] : 1u) <= 16;
}

static bool words_fit(enum ptx_op op, const struct texture_words *w)
{
	switch (op) {
	case PTX_OP_TEX:
		return sample_fits(w);
	case PTX_OP_TLD4:
		return gather_fits(w);
	case PTX_OP_SULD:
	case PTX_OP_SUST:
		return surface_fits(w);
	default:
		return w->n_types == 1 && w->types[0] == PTX_B32 && w->has[WORD_WHAT] &&
		       !w->has[WORD_GEOMETRY] && !w->has[WORD_VEC];
	}
}

/* ---- operands ----------------------------------------------------------------------------------- */

/* What the text has for coordinates, and what of it counts: vectors are filled up to two or four. */
static unsigned int n_coordinates(enum ptx_geometry geometry)
{
	switch (geometry) {
	case PTX_GEOMETRY_1D:
		return 1;
	case PTX_GEOMETRY_2D:
	case PTX_GEOMETRY_A1D:
		return 2;
	case PTX_GEOMETRY_ACUBE:
		return 4;
	default:
		return 3;
	}
}

/* Derivatives are of places, not of layers. */
static unsigned int n_derivatives(enum ptx_geometry geometry)
{
	switch (geometry) {
	case PTX_GEOMETRY_1D:
	case PTX_GEOMETRY_A1D:
		return 1;
	case PTX_GEOMETRY_2D:
	case PTX_GEOMETRY_A2D:
		return 2;
	default:
		return 3;
	}
}

static bool has_layers(enum ptx_geometry geometry)
{
	return geometry == PTX_GEOMETRY_A1D || geometry == PTX_GEOMETRY_A2D ||
	       geometry == PTX_GEOMETRY_ACUBE;
}

static void wrong_operands(struct parser *p)
{
	parse_fail(p, p->insn.line, "%s: these are not its operands", insn_name(p));
}

/* The first @n elements of an operand that may have more. */
static void push_elements(struct parser *p, const struct raw *raw, unsigned int n,
			  enum ptx_type type, enum ptx_type first_type)
{
	const struct raw *elements = raw->kind == RAW_VECTOR ? &p->elements[raw->first] : raw;
	unsigned int count = raw->kind == RAW_VECTOR ? raw->count : 1, room = n == 3 ? 4 : n;

	if (count != n && count != room) {
		wrong_operands(p);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		push_source(p, &elements[i], i == 0 ? first_type : type, /* relaxed= */ false);
}

static void push_place(struct parser *p, const struct raw *object, const struct raw *place)
{
	enum ptx_geometry geometry = (enum ptx_geometry)PTX_TEXTURE_GEOMETRY(p->insn.aux);
	enum ptx_type type =
		kind_of_op(p->insn.op) == SURFACES ? PTX_B32 : (enum ptx_type)p->insn.stype;

	if (object->kind == RAW_ADDRESS) {
		parse_refuse(p, p->insn.line, "%s: references are not run here, objects are",
			     insn_name(p));
		return;
	}
	push_source(p, object, PTX_B64, /* relaxed= */ false);
	if (geometry != PTX_GEOMETRY_NONE)
		push_elements(p, place, n_coordinates(geometry), type,
			      has_layers(geometry) ? PTX_B32 : type);
}

/* "[object, {x, y}]", "[object]" */
static void parse_place(struct parser *p, struct raw *object, struct raw *place)
{
	expect(p, '[');
	parse_operand(p, object);
	if (take(p, ','))
		parse_operand(p, place);
	if (at(p, ','))
		parse_refuse(p, p->insn.line, "%s: a sampler of its own is not run here",
			     insn_name(p));
	expect(p, ']');
}

static void push_level(struct parser *p, const struct raw *raws, unsigned int n)
{
	enum ptx_geometry geometry = (enum ptx_geometry)PTX_TEXTURE_GEOMETRY(p->insn.aux);
	unsigned int wanted = p->insn.mode == PTX_MODE_GRAD    ? 2
			      : p->insn.mode == PTX_MODE_LEVEL ? 1
							       : 0;

	if (n > wanted && kind_of_op(p->insn.op) != QUERIES) {
		parse_refuse(p, p->insn.line, "%s: offsets and depths are not run here",
			     insn_name(p));
		return;
	}
	if (n != wanted) {
		wrong_operands(p);
		return;
	}
	if (p->insn.mode == PTX_MODE_LEVEL)
		push_source(p, &raws[0],
			    p->insn.op == PTX_OP_TXQ ? PTX_B32 : (enum ptx_type)p->insn.stype,
			    /* relaxed= */ false);
	for (unsigned int i = 0; i < wanted && p->insn.mode == PTX_MODE_GRAD; i++)
		push_elements(p, &raws[i], n_derivatives(geometry), PTX_F32, PTX_F32);
}

/* All but those of sust: results, the place, what tells the level. */
static void parse_reading(struct parser *p)
{
	struct raw values = { 0 }, object = { 0 }, place = { 0 }, more[4] = { { 0 } };
	unsigned int n = 0;

	parse_operand(p, &values);
	if (at(p, '|')) {
		parse_refuse(p, p->insn.line, "%s: whether memory is there is not told here",
			     insn_name(p));
		return;
	}
	expect(p, ',');
	parse_place(p, &object, &place);
	while (!p->error && n < ARRAY_SIZE(more) && take(p, ','))
		parse_operand(p, &more[n++]);
	expect(p, ';');
	if (p->error)
		return;
	push_vector(p, &values, /* result= */ true);
	push_place(p, &object, &place);
	push_level(p, more, n);
}

static void parse_writing(struct parser *p)
{
	struct raw values = { 0 }, object = { 0 }, place = { 0 };

	parse_place(p, &object, &place);
	expect(p, ',');
	parse_operand(p, &values);
	expect(p, ';');
	if (p->error)
		return;
	push_place(p, &object, &place);
	push_vector(p, &values, /* result= */ false);
}

void parse_texture(struct parser *p)
{
	struct texture_words w = { 0 };

	read_words(p, &w);
	if (p->error)
		return;
	if (!words_fit(p->insn.op, &w)) {
		parse_fail(p, p->insn.line, "%s: these types and modifiers do not go together",
			   insn_name(p));
		return;
	}
	p->insn.type = w.types[0];
	p->insn.stype = p->insn.utype = w.n_types > 1 ? w.types[1] : w.types[0];
	p->insn.mode = w.values[WORD_MODE];
	p->insn.vec = w.has[WORD_VEC] ? w.values[WORD_VEC] : 1;
	p->insn.aux = PTX_TEXTURE(w.values[WORD_GEOMETRY], w.values[WORD_WHAT]);
	p->n_elements = 0;
	if (p->insn.op == PTX_OP_SUST)
		parse_writing(p);
	else
		parse_reading(p);
	insn_emit(p);
}
