/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video instructions: "vadd.s32.u32.s32.sat.min d, a.b0, b.h1, c;", "vset4.u32.u32.lt d.b10, a, b.b7654, c;"
 *
 * Operands are words of which the text may name parts: a letter for their size, and the numbers of the
 * parts, the highest first.
 */
#include "softgpu/ptx/parse.h"

#define MOST_PARTS 4

bool is_video(enum ptx_op op)
{
	return (op >= PTX_OP_VADD2 && op <= PTX_OP_VMAX4) ||
	       (op >= PTX_OP_VADD && op <= PTX_OP_VSET4);
}

/* In how many parts a word is taken. */
static unsigned int n_parts(enum ptx_op op)
{
	if ((op >= PTX_OP_VADD2 && op <= PTX_OP_VMAX2) || op == PTX_OP_VSET2)
		return 2;
	return (op >= PTX_OP_VADD4 && op <= PTX_OP_VMAX4) || op == PTX_OP_VSET4 ? 4 : 1;
}

void parse_parts(struct parser *p, struct raw *raw)
{
	const struct token *t = &p->token;

	if (t->kind != TOKEN_DOT)
		return;
	if (t->len < 2 || t->len > 1 + MOST_PARTS || (t->text[0] != 'b' && t->text[0] != 'h')) {
		parse_fail(p, t->line, "%s: '.%.*s' names no parts", insn_name(p),
			   t->len < 32 ? (int)t->len : 32, t->text);
		return;
	}
	raw->part_size = t->text[0];
	raw->n_parts = (uint8_t)(t->len - 1);
	/* What is no digit comes out too large. */
	for (unsigned int i = 0; i < raw->n_parts; i++)
		raw->parts[raw->n_parts - 1 - i] = (uint8_t)(t->text[1 + i] - '0');
	next(p);
}

static void wrong_operands(struct parser *p)
{
	parse_fail(p, p->insn.line, "%s: these are not its operands", insn_name(p));
}

/* One byte or half of a word. */
static uint32_t part_of_word(struct parser *p, const struct raw *raw)
{
	unsigned int n = raw->part_size == 'b' ? 4 : 2;

	if (!raw->n_parts)
		return PTX_PART_WORD;
	if (raw->n_parts != 1 || raw->parts[0] >= n)
		wrong_operands(p);
	return (raw->part_size == 'b' ? PTX_PART_B0 : PTX_PART_H0) + raw->parts[0];
}

static bool sizes_agree(const struct raw *raw, unsigned int n)
{
	return !raw->n_parts || raw->part_size == (n == 2 ? 'h' : 'b');
}

/* A part for each of @n, of a and b side by side; without any named, those of @first on. */
static uint32_t parts_of_pair(struct parser *p, const struct raw *raw, unsigned int n,
			      unsigned int first)
{
	uint32_t parts = 0;

	if (raw->n_parts && (raw->n_parts != n || !sizes_agree(raw, n)))
		wrong_operands(p);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int part = raw->n_parts ? raw->parts[i] : first + i;

		if (part >= 2 * n)
			wrong_operands(p);
		parts |= (part & 7) << 3 * i;
	}
	return parts;
}

/* Those of @n that are written. */
static uint32_t parts_written(struct parser *p, const struct raw *raw, unsigned int n)
{
	uint32_t set = 0;

	if (raw->n_parts > n || !sizes_agree(raw, n))
		wrong_operands(p);
	for (unsigned int i = 0; i < raw->n_parts; i++) {
		if (raw->parts[i] >= n)
			wrong_operands(p);
		set |= 1u << (raw->parts[i] & 3);
	}
	return raw->n_parts ? set : (1u << n) - 1;
}

static void name_parts(struct parser *p)
{
	const struct raw *d = &p->raws[0], *a = &p->raws[1], *b = &p->raws[2];
	unsigned int n = n_parts(p->insn.op);

	if (n == 1)
		p->insn.aux = PTX_VIDEO(part_of_word(p, d), part_of_word(p, a), part_of_word(p, b));
	else
		p->insn.aux = PTX_VIDEO(parts_written(p, d, n), parts_of_pair(p, a, n, 0),
					parts_of_pair(p, b, n, n));
	if (p->n_raws > 3 && p->raws[3].n_parts)
		wrong_operands(p);
}

/*
 * The fourth operand is what the result is put into or joined with: it is there if and only if the text
 * says one of the two.
 */
static bool count_fits(const struct parser *p)
{
	bool joins = p->words.present & (W_ADD | W_MINMAX);

	if (n_parts(p->insn.op) > 1 || p->insn.op == PTX_OP_VMAD)
		return p->n_raws == 4;
	if (p->raws[0].n_parts)
		return p->n_raws == 4 && !joins;
	return p->n_raws == (joins ? 4 : 3);
}

/* vmad d, {-}a, {-}b, {-}c: of the product and c one at most is negated, and with .po none. */
static void name_signs(struct parser *p)
{
	bool product = p->raws[1].minus != p->raws[2].minus, c = p->raws[3].minus;
	bool any = p->raws[1].minus || p->raws[2].minus || c, po = p->words.present & W_OTHER;

	if ((product && c) || (po && any) || p->raws[0].n_parts)
		wrong_operands(p);
	p->insn.aux |= (product ? PTX_VIDEO_NEG_PRODUCT : 0) | (c ? PTX_VIDEO_NEG_C : 0) |
		       (po ? PTX_VIDEO_PLUS_ONE : 0);
}

void parse_video(struct parser *p)
{
	if (p->n_raws < 3 || !count_fits(p)) {
		wrong_operands(p);
		return;
	}
	name_parts(p);
	if (p->insn.op == PTX_OP_VMAD)
		name_signs(p);
	push_result(p, &p->raws[0], p->insn.type, /* relaxed= */ false);
	push_source(p, &p->raws[1], p->insn.stype, /* relaxed= */ false);
	push_source(p, &p->raws[2], p->insn.utype, /* relaxed= */ false);
	if (p->n_raws == 4)
		push_source(p, &p->raws[3], p->insn.type, /* relaxed= */ false);
	else
		push_none(p);
	insn_emit(p);
}

/* The types are those of a and b: the result is a number, or several. */
void parse_vset(struct parser *p)
{
	p->insn.utype = p->insn.stype;
	p->insn.stype = p->insn.type;
	p->insn.type = PTX_U32;
	if (p->insn.cmp > PTX_CMP_GE) {
		parse_fail(p, p->insn.line, "%s: integers are not compared so", insn_name(p));
		return;
	}
	parse_video(p);
}
