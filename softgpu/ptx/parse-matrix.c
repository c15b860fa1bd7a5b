/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on matrices that the lanes of a warp hold together.
 *
 * Their words are too many for forms, and which matrix a type or a layout is of, only their order
 * tells. They are read here; a table tells what of it goes together; and how many registers a matrix
 * has follows from its size: rows * columns * bits of an element / (32 lanes * 32 bits).
 */
#include <string.h>

#include "softgpu/ptx/parse.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum shape {
	SHAPE_NONE,
	M16N16K16,
	M32N8K16,
	M8N32K16,
	M16N16K8,
	M8N8K4,
	M16N8K4,
	M16N8K8,
	M16N8K16,
	M8N8K16,
	M16N8K32,
	M8N8K32,
	M16N8K64,
	M8N8K128,
	M16N8K128,
	M16N8K256,
	M8N8,
};

static const struct {
	const char *text;
	uint8_t m, n;
	uint16_t k;
} shapes[] = {
	[M16N16K16] = { "m16n16k16", 16, 16, 16 }, [M32N8K16] = { "m32n8k16", 32, 8, 16 },
	[M8N32K16] = { "m8n32k16", 8, 32, 16 },	   [M16N16K8] = { "m16n16k8", 16, 16, 8 },
	[M8N8K4] = { "m8n8k4", 8, 8, 4 },	   [M16N8K4] = { "m16n8k4", 16, 8, 4 },
	[M16N8K8] = { "m16n8k8", 16, 8, 8 },	   [M16N8K16] = { "m16n8k16", 16, 8, 16 },
	[M8N8K16] = { "m8n8k16", 8, 8, 16 },	   [M16N8K32] = { "m16n8k32", 16, 8, 32 },
	[M8N8K32] = { "m8n8k32", 8, 8, 32 },	   [M16N8K64] = { "m16n8k64", 16, 8, 64 },
	[M8N8K128] = { "m8n8k128", 8, 8, 128 },	   [M16N8K128] = { "m16n8k128", 16, 8, 128 },
	[M16N8K256] = { "m16n8k256", 16, 8, 256 }, [M8N8] = { "m8n8", 8, 8, 0 },
};

/* Types of d and c, those of a and b, and in which shapes. */
static const struct form_of_matrix {
	enum ptx_op op;
	uint32_t result, source;
	uint32_t shapes;
} matrix_forms[] = {
#define S(shape) (1u << (shape))
	{ PTX_OP_WMMA, T(F16) | T(F32), T(F16), S(M16N16K16) | S(M32N8K16) | S(M8N32K16) },
	{ PTX_OP_WMMA, T(F32), T(BF16), S(M16N16K16) | S(M32N8K16) | S(M8N32K16) },
	{ PTX_OP_WMMA, T(S32), T(S8) | T(U8), S(M16N16K16) | S(M32N8K16) | S(M8N32K16) },
	{ PTX_OP_WMMA, T(F32), T(TF32), S(M16N16K8) },
	{ PTX_OP_WMMA, T(F64), T(F64), S(M8N8K4) },
	{ PTX_OP_WMMA, T(S32), T(S4) | T(U4), S(M8N8K32) },
	{ PTX_OP_WMMA, T(S32), T(B1), S(M8N8K128) },
	{ PTX_OP_MMA, T(F16) | T(F32), T(F16), S(M16N8K8) | S(M16N8K16) },
	{ PTX_OP_MMA, T(F16) | T(F32), T(F16), S(M8N8K4) },
	{ PTX_OP_MMA, T(F32), T(BF16), S(M16N8K8) | S(M16N8K16) },
	{ PTX_OP_MMA, T(F32), T(TF32), S(M16N8K4) | S(M16N8K8) },
	{ PTX_OP_MMA, T(F64), T(F64), S(M8N8K4) | S(M16N8K4) | S(M16N8K8) | S(M16N8K16) },
	{ PTX_OP_MMA, T(S32), T(S8) | T(U8), S(M8N8K16) | S(M16N8K16) | S(M16N8K32) },
	{ PTX_OP_MMA, T(S32), T(S4) | T(U4), S(M8N8K32) | S(M16N8K32) | S(M16N8K64) },
	{ PTX_OP_MMA, T(S32), T(B1), S(M8N8K128) | S(M16N8K128) | S(M16N8K256) },
#undef S
};

/* ---- words -------------------------------------------------------------------------------------- */

enum word_of_matrix {
	WORD_SYNC = 1,
	WORD_ALIGNED,
	WORD_PART,
	WORD_LAYOUT,
	WORD_SPACE,
	WORD_COUNT,
	WORD_TRANS,
	WORD_SATFINITE,
	WORD_BOP,
	WORD_POPC,
	WORD_ROUND,
	WORD_MODE,
};

static const struct {
	const char *text;
	uint8_t kind, value;
} word_list[] = {
	{ "sync", WORD_SYNC, 1 },
	{ "aligned", WORD_ALIGNED, 1 },
	{ "load", WORD_MODE, PTX_MODE_LOAD },
	{ "store", WORD_MODE, PTX_MODE_STORE },
	{ "mma", WORD_MODE, PTX_MODE_NONE },
	{ "a", WORD_PART, 'a' },
	{ "b", WORD_PART, 'b' },
	{ "c", WORD_PART, 'c' },
	{ "d", WORD_PART, 'd' },
	{ "row", WORD_LAYOUT, 'r' },
	{ "col", WORD_LAYOUT, 'c' },
	{ "global", WORD_SPACE, PTX_SPACE_GLOBAL },
	{ "shared", WORD_SPACE, PTX_SPACE_SHARED },
	{ "shared::cta", WORD_SPACE, PTX_SPACE_SHARED },
	{ "x1", WORD_COUNT, 1 },
	{ "x2", WORD_COUNT, 2 },
	{ "x4", WORD_COUNT, 4 },
	{ "trans", WORD_TRANS, 1 },
	{ "satfinite", WORD_SATFINITE, 1 },
	{ "and", WORD_BOP, PTX_BOP_AND },
	{ "xor", WORD_BOP, PTX_BOP_XOR },
	{ "popc", WORD_POPC, 1 },
	{ "rn", WORD_ROUND, PTX_RN },
	{ "rz", WORD_ROUND, PTX_RZ },
	{ "rm", WORD_ROUND, PTX_RM },
	{ "rp", WORD_ROUND, PTX_RP },
};

/* Parts of newer hardware: sparse and scaled matrices, floats of 8 bits and less. */
static const char *const refused[] = {
	"sp",
	"sp::ordered_metadata",
	"kind::f8f6f4",
	"kind::mxf8f6f4",
	"kind::mxf4",
	"kind::mxf4nvf4",
	"block_scale",
	"scale_vec::1X",
	"scale_vec::2X",
	"scale_vec::4X",
	"e4m3",
	"e5m2",
	"e3m2",
	"e2m3",
	"e2m1",
	"ue8m0",
	"ue4m3",
	"m16n16",
	"m8n16",
	"m16n8",
	"b8",
	"b8x16",
	"b6x16_p32",
	"b4x16_p64",
};

struct matrix_words {
	uint8_t seen[WORD_MODE + 1]; /* the last value of each, and whether it was there */
	bool has[WORD_MODE + 1];
	enum shape shape;
	uint8_t layouts[2], n_layouts;
	uint8_t types[4], n_types;
};

static bool word_matches(const struct token *t, const char *text)
{
	return strlen(text) == t->len && memcmp(text, t->text, t->len) == 0;
}

static bool take_shape(struct matrix_words *w, const struct token *t)
{
	for (size_t i = 1; i < ARRAY_SIZE(shapes); i++) {
		if (!word_matches(t, shapes[i].text))
			continue;
		if (w->shape)
			return false;
		w->shape = (enum shape)i;
		return true;
	}
	return false;
}

static bool take_type(struct matrix_words *w, const struct token *t)
{
	enum ptx_type type = type_find(t->text, t->len);

	if (type == PTX_TYPE_NONE || w->n_types == ARRAY_SIZE(w->types))
		return false;
	w->types[w->n_types++] = (uint8_t)type;
	return true;
}

static bool take_word(struct matrix_words *w, const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(word_list); i++) {
		uint8_t kind = word_list[i].kind;

		if (!word_matches(t, word_list[i].text))
			continue;
		if (kind == WORD_LAYOUT) {
			if (w->n_layouts == ARRAY_SIZE(w->layouts))
				return false;
			w->layouts[w->n_layouts++] = word_list[i].value;
			return true;
		}
		if (w->has[kind])
			return false;
		w->has[kind] = true;
		w->seen[kind] = word_list[i].value;
		return true;
	}
	return take_shape(w, t) || take_type(w, t);
}

static bool is_refused(const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (word_matches(t, refused[i]))
			return true;
	}
	return false;
}

static void read_words(struct parser *p, struct matrix_words *w)
{
	bool refuse = false;

	while (!p->error && p->token.kind == TOKEN_DOT) {
		insn_name_add(p, &p->token);
		if (is_refused(&p->token))
			refuse = true;
		else if (!take_word(w, &p->token) && !refuse)
			parse_fail(p, p->token.line, "%s: there is no such modifier", insn_name(p));
		next(p);
	}
	if (refuse && !p->error)
		parse_refuse(p, p->insn.line, "%s: this instruction is not run here", insn_name(p));
}

static void wrong_words(struct parser *p)
{
	parse_fail(p, p->insn.line, "%s: these types and modifiers do not go together",
		   insn_name(p));
}

/* ---- matrices ----------------------------------------------------------------------------------- */

static unsigned int element_bits(enum ptx_type type)
{
	switch (type) {
	case PTX_B1:
		return 1;
	case PTX_S4:
	case PTX_U4:
		return 4;
	default:
		return 8 * ptx_type_bytes(type);
	}
}

static enum ptx_type register_type(enum ptx_type type)
{
	switch (type) {
	case PTX_F32:
	case PTX_S32:
	case PTX_F64:
		return type;
	default:
		return PTX_B32;
	}
}

static struct ptx_fragment fragment(enum ptx_type type, unsigned int rows, unsigned int cols,
				    unsigned int run)
{
	enum ptx_type reg = register_type(type);
	unsigned int bits = rows * cols * element_bits(type);

	return (struct ptx_fragment){
		.type = (uint8_t)type,
		.run = (uint8_t)run,
		.rows = (uint8_t)rows,
		.cols = (uint16_t)cols,
		.n_regs = (uint8_t)(bits / (32 * 8 * ptx_type_bytes(reg))),
		.reg_type = (uint8_t)reg,
	};
}

/* Of c and d two elements are side by side in a lane; */
static struct ptx_fragment sum_fragment(enum ptx_type type, unsigned int rows, unsigned int cols)
{
	return fragment(type, rows, cols, 2);
}

/* Of four matrices, eight rows each. */
static struct ptx_fragment quad_fragment(enum ptx_type type, unsigned int cols,
					 enum ptx_layout layout)
{
	struct ptx_fragment f = fragment(type, 4 * 8, cols, 2);

	f.layout = (uint8_t)layout;
	return f;
}

/*
 * of a and b as many as a register of 32 bits holds.
 *
 * Of wmma, a and b of halves have eight registers whatever their shape: elements are there repeatedly.
 */
static struct ptx_fragment source_fragment(const struct parser *p, enum ptx_type type,
					   unsigned int rows, unsigned int k)
{
	unsigned int bits = element_bits(type);
	struct ptx_fragment f = fragment(type, rows, k, bits < 32 ? 32 / bits : 1);

	if (p->insn.op == PTX_OP_WMMA && type == PTX_F16)
		f.n_regs = 8;
	return f;
}

static const struct form_of_matrix *find_form(const struct parser *p, const struct matrix_words *w,
					      enum ptx_type result, enum ptx_type source)
{
	for (size_t i = 0; i < ARRAY_SIZE(matrix_forms); i++) {
		const struct form_of_matrix *f = &matrix_forms[i];

		if (f->op == p->insn.op && f->shapes >> w->shape & 1 &&
		    (!result || f->result >> result & 1) && (!source || f->source >> source & 1))
			return f;
	}
	return NULL;
}

/* wmma names d and c alone where a and b are halves. */
static bool spread_types(const struct parser *p, struct matrix_words *w)
{
	if (p->insn.op == PTX_OP_WMMA && w->n_types == 2) {
		w->types[3] = w->types[1];
		w->types[1] = w->types[2] = PTX_F16;
		w->n_types = 4;
	}
	return w->n_types == 4;
}

/* Is it the multiplication of four matrices? */
static bool is_quads(const struct parser *p, const struct matrix_words *w)
{
	return p->insn.op == PTX_OP_MMA && w->shape == M8N8K4 && w->types[1] == PTX_F16;
}

static bool layouts_fit(const struct parser *p, const struct matrix_words *w)
{
	if (w->n_layouts != 2)
		return false;
	/* Other than for these four, mma knows one layout. */
	return p->insn.op != PTX_OP_MMA || is_quads(p, w) ||
	       (w->layouts[0] == 'r' && w->layouts[1] == 'c');
}

static bool multiply_fits(const struct parser *p, const struct matrix_words *w)
{
	const struct form_of_matrix *f = find_form(p, w, w->types[0], w->types[1]);
	bool mixed = w->types[1] != w->types[2];
	bool integer = f && f->result == T(S32), bits = w->types[1] == PTX_B1;

	if (!f || !(f->result >> w->types[3] & 1) || !(f->source >> w->types[2] & 1))
		return false;
	if (mixed && p->insn.op == PTX_OP_WMMA)
		return false;
	if (w->seen[WORD_SATFINITE] && (!integer || bits))
		return false;
	if (w->has[WORD_ROUND] && w->types[0] != PTX_F64)
		return false;
	if (bits != w->has[WORD_BOP] || bits != w->has[WORD_POPC])
		return false;
	if (is_quads(p, w) && w->types[0] == PTX_F16 && w->types[3] != PTX_F16)
		return false;
	return layouts_fit(p, w);
}

static enum ptx_layout sum_layout(enum ptx_type type)
{
	return type == PTX_F32 ? PTX_LAYOUT_SUMS : PTX_LAYOUT_ROWS;
}

/* b is kept by its columns. */
static void describe_quads(const struct matrix_words *w, struct ptx_matrix *m)
{
	bool a_rows = w->layouts[0] == 'r', b_cols = w->layouts[1] == 'c';

	m->d = quad_fragment(w->types[0], 8, sum_layout(w->types[0]));
	m->a = quad_fragment(PTX_F16, 4, a_rows ? PTX_LAYOUT_ROWS : PTX_LAYOUT_COLS);
	m->b = quad_fragment(PTX_F16, 4, b_cols ? PTX_LAYOUT_ROWS : PTX_LAYOUT_COLS);
	m->c = quad_fragment(w->types[3], 8, sum_layout(w->types[3]));
}

static bool describe_multiply(const struct parser *p, struct matrix_words *w, struct ptx_matrix *m)
{
	unsigned int rows = shapes[w->shape].m, cols = shapes[w->shape].n, k = shapes[w->shape].k;

	if (!spread_types(p, w) || !multiply_fits(p, w))
		return false;
	if (is_quads(p, w)) {
		describe_quads(w, m);
		return true;
	}
	m->d = sum_fragment(w->types[0], rows, cols);
	m->a = source_fragment(p, w->types[1], rows, k);
	m->b = source_fragment(p, w->types[2], cols, k);
	m->c = sum_fragment(w->types[3], rows, cols);
	m->satfinite = w->seen[WORD_SATFINITE];
	m->bop = w->seen[WORD_BOP];
	return true;
}

/* wmma.load and wmma.store: one matrix, with its layout in memory. */
static bool describe_transfer(const struct parser *p, const struct matrix_words *w,
			      struct ptx_matrix *m)
{
	unsigned int rows = shapes[w->shape].m, cols = shapes[w->shape].n, k = shapes[w->shape].k;
	uint8_t part = w->seen[WORD_PART];
	bool source = part == 'a' || part == 'b', col = w->layouts[0] == 'c';

	if (w->n_types != 1 || w->n_layouts != 1 || !part ||
	    (part == 'd') != (p->insn.mode == PTX_MODE_STORE) ||
	    !find_form(p, w, source ? PTX_TYPE_NONE : w->types[0],
		       source ? w->types[0] : PTX_TYPE_NONE))
		return false;
	if (part == 'a')
		m->d = source_fragment(p, w->types[0], rows, k);
	else if (part == 'b')
		m->d = source_fragment(p, w->types[0], cols, k);
	else
		m->d = sum_fragment(w->types[0], rows, cols);
	m->by_cols = col != (part == 'b');
	/* Elements smaller than bytes have no other layout than that of the multiplication. */
	return !m->by_cols || element_bits(w->types[0]) >= 8;
}

/* Eight rows of eight halves, up to four times: one register in each lane for each. */
static bool describe_rows(const struct parser *p, const struct matrix_words *w,
			  struct ptx_matrix *m)
{
	bool move = p->insn.op == PTX_OP_MOVMATRIX;

	if (w->shape != M8N8 || w->n_types != 1 || w->types[0] != PTX_B16 || w->n_layouts ||
	    move == w->has[WORD_COUNT] || (move && !w->has[WORD_TRANS]))
		return false;
	m->d = (struct ptx_fragment){
		.type = PTX_B16,
		.run = 2,
		.rows = 8,
		.cols = 8,
		.n_regs = move ? 1 : w->seen[WORD_COUNT],
		.reg_type = PTX_B32,
	};
	m->by_cols = w->has[WORD_TRANS];
	return true;
}

static bool describe(const struct parser *p, struct matrix_words *w, struct ptx_matrix *m)
{
	if (!w->has[WORD_SYNC] || !w->has[WORD_ALIGNED] ||
	    (p->insn.op == PTX_OP_WMMA) != w->has[WORD_MODE])
		return false;
	if (p->insn.op != PTX_OP_MMA && p->insn.op != PTX_OP_WMMA)
		return describe_rows(p, w, m);
	return p->insn.mode == PTX_MODE_NONE ? describe_multiply(p, w, m)
					     : describe_transfer(p, w, m);
}

/* ---- operands ----------------------------------------------------------------------------------- */

static void push_fragment(struct parser *p, const struct raw *raw, const struct ptx_fragment *f,
			  bool result)
{
	const struct raw *elements = raw->kind == RAW_VECTOR ? &p->elements[raw->first] : raw;
	unsigned int count = raw->kind == RAW_VECTOR ? raw->count : 1;

	if (count != f->n_regs) {
		parse_fail(p, p->insn.line, "%s: %u registers for %u values", insn_name(p), count,
			   f->n_regs);
		return;
	}
	for (unsigned int i = 0; i < count; i++) {
		if (result)
			push_result(p, &elements[i], f->reg_type, /* relaxed= */ false);
		else
			push_source(p, &elements[i], f->reg_type, /* relaxed= */ false);
	}
}

/* Matrices are shared: they are neither in local memory nor among parameters. */
static void push_place(struct parser *p, struct raw *raw)
{
	uint8_t space;

	push_mem(p, raw);
	space = p->insn.space;
	if (!p->error &&
	    (raw->op.kind == PTX_FRAME || raw->op.kind == PTX_PARAM ||
	     (space != PTX_SPACE_NONE && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_SHARED)))
		parse_fail(p, p->insn.line, "%s: not in this state space", insn_name(p));
}

static void push_stride(struct parser *p)
{
	if (p->n_raws > 2)
		push_source(p, &p->raws[2], PTX_U32, /* relaxed= */ false);
	else
		push_none(p);
}

static void push_operands(struct parser *p, const struct ptx_matrix *m)
{
	struct raw *raws = p->raws;

	switch (p->insn.op == PTX_OP_WMMA ? p->insn.mode : 0) {
	case PTX_MODE_LOAD:
		push_fragment(p, &raws[0], &m->d, /* result= */ true);
		push_place(p, &raws[1]);
		push_stride(p);
		return;
	case PTX_MODE_STORE:
		push_place(p, &raws[0]);
		push_fragment(p, &raws[1], &m->d, /* result= */ false);
		push_stride(p);
		return;
	default:
		break;
	}
	switch (p->insn.op) {
	case PTX_OP_LDMATRIX:
		push_fragment(p, &raws[0], &m->d, /* result= */ true);
		push_place(p, &raws[1]);
		break;
	case PTX_OP_STMATRIX:
		push_place(p, &raws[0]);
		push_fragment(p, &raws[1], &m->d, /* result= */ false);
		break;
	case PTX_OP_MOVMATRIX:
		push_fragment(p, &raws[0], &m->d, /* result= */ true);
		push_fragment(p, &raws[1], &m->d, /* result= */ false);
		break;
	default:
		push_fragment(p, &raws[0], &m->d, /* result= */ true);
		push_fragment(p, &raws[1], &m->a, /* result= */ false);
		push_fragment(p, &raws[2], &m->b, /* result= */ false);
		push_fragment(p, &raws[3], &m->c, /* result= */ false);
	}
}

static bool count_fits(const struct parser *p)
{
	bool multiply = p->insn.op == PTX_OP_MMA ||
			(p->insn.op == PTX_OP_WMMA && p->insn.mode == PTX_MODE_NONE);

	if (multiply)
		return p->n_raws == 4;
	return p->n_raws == 2 || (p->n_raws == 3 && p->insn.op == PTX_OP_WMMA);
}

static void keep_matrix(struct parser *p, const struct ptx_matrix *m)
{
	if (!vec_room(p, matrices, 1)) {
		parse_no_memory(p);
		return;
	}
	p->insn.aux = p->n_matrices;
	p->matrices[p->n_matrices++] = *m;
}

void parse_matrix(struct parser *p)
{
	struct matrix_words w = { 0 };
	struct ptx_matrix m = { 0 };

	read_words(p, &w);
	if (p->error)
		return;
	p->insn.mode = w.seen[WORD_MODE];
	p->insn.space = w.seen[WORD_SPACE];
	p->insn.round = w.seen[WORD_ROUND];
	if (!describe(p, &w, &m)) {
		wrong_words(p);
		return;
	}
	p->insn.type = p->insn.stype = p->insn.utype = m.d.type;
	parse_operands(p);
	if (p->error)
		return;
	for (unsigned int i = 0; i < p->n_raws; i++) {
		if (p->raws[i].pair)
			parse_fail(p, p->insn.line, "%s: has no second result", insn_name(p));
	}
	if (!count_fits(p)) {
		parse_fail(p, p->insn.line, "%s: wrong number of operands (%u)", insn_name(p),
			   p->n_raws);
		return;
	}
	push_operands(p, &m);
	keep_matrix(p, &m);
	insn_emit(p);
}
