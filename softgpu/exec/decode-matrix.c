/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of instructions on matrices: more registers than an instruction has operands, so they are
 * listed beside it.
 */
#include <errno.h>

#include "softgpu/exec/decode.h"

static u8 element_bits(u8 type)
{
	switch (type) {
	case PTX_B1:
		return 1;
	case PTX_S4:
	case PTX_U4:
		return 4;
	default:
		return (u8)(8 * ptx_type_bytes((enum ptx_type)type));
	}
}

static struct fragment_shape shape_of(const struct ptx_fragment *f)
{
	struct fragment_shape s = {
		.type = f->type,
		.layout = f->layout,
		.run = f->run,
		.rows = f->rows,
		.cols = f->cols,
		.n_regs = f->n_regs,
		.reg_bytes = (u8)ptx_type_bytes((enum ptx_type)f->reg_type),
		.bits = element_bits(f->type),
	};

	/* Single bits are multiplied by the word. */
	if (s.type == PTX_B1) {
		s.bits = 32;
		s.cols /= 32;
		s.run = 1;
	}
	return s;
}

static void take_sources(struct decoder *d, struct fragment_shape *s, u32 *at)
{
	for (u32 i = 0; i < s->n_regs; i++)
		s->regs[i] = decode_source(d, &d->ops[(*at)++], s->reg_bytes);
}

static void take_results(struct decoder *d, struct fragment_shape *s, u32 *at)
{
	for (u32 i = 0; i < s->n_regs; i++)
		s->regs[i] = decode_result(d, &d->ops[(*at)++], s->reg_bytes, false);
}

static exec_fn *matrix_handler(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_LDMATRIX:
		return matrix_rows_load;
	case PTX_OP_STMATRIX:
		return matrix_rows_store;
	case PTX_OP_MOVMATRIX:
		return matrix_transpose;
	default:
		return in->mode == PTX_MODE_LOAD    ? matrix_load
		       : in->mode == PTX_MODE_STORE ? matrix_store
						    : matrix_multiply;
	}
}

/* The stride between rows or columns; without one they follow each other. */
static u32 stride_source(struct decoder *d, const struct ptx_matrix *text, u32 at)
{
	if (at < d->in->n_ops && d->ops[at].kind != PTX_NONE)
		return decode_source(d, &d->ops[at], 4);
	return decode_constant(d, text->by_cols ? text->d.rows : text->d.cols, 4);
}

/* Fills what the handler needs; @t gets the address. */
static void take_operands(struct decoder *d, const struct ptx_matrix *text, struct matrix *m,
			  struct insn *t, exec_fn *fn)
{
	u32 at = 0;

	if (fn == matrix_multiply) {
		take_results(d, &m->d, &at);
		take_sources(d, &m->a, &at);
		take_sources(d, &m->b, &at);
		take_sources(d, &m->c, &at);
		return;
	}
	if (fn == matrix_transpose) {
		take_results(d, &m->d, &at);
		take_sources(d, &m->a, &at);
		return;
	}
	if (fn == matrix_load || fn == matrix_rows_load) {
		take_results(d, &m->d, &at);
		decode_address(d, t, &d->ops[at++]);
	} else {
		decode_address(d, t, &d->ops[at++]);
		take_sources(d, &m->d, &at);
	}
	t->op[1] = stride_source(d, text, at);
	m->offset = t->imm;
}

void decode_matrix(struct decoder *d)
{
	const struct ptx_matrix *text = &d->f->matrices[d->in->aux];
	struct matrix *m = arena_alloc(d->image->arena, sizeof(*m));
	exec_fn *fn = matrix_handler(d->in);
	struct insn t = { 0 };
	struct insn *in;

	if (!m) {
		d->error = d->error ? d->error : -ENOMEM;
		return;
	}
	m->d = shape_of(&text->d);
	m->a = shape_of(fn == matrix_transpose ? &text->d : &text->a);
	m->b = shape_of(&text->b);
	m->c = shape_of(&text->c);
	m->by_cols = text->by_cols;
	m->satfinite = text->satfinite;
	m->bop = text->bop;
	m->round = d->in->round;
	t.op[0] = t.op[1] = decode_constant(d, 0, 8);
	take_operands(d, text, m, &t, fn);

	in = decode_emit(d, warp_sync);
	in->inner = fn;
	in->matrix = m;
	in->op[0] = t.op[0];
	in->op[1] = t.op[1];
	in->op[5] = decode_constant(d, ALL_LANES, 4);
	in->space = t.space;
	in->flags = t.flags | INSN_SYNC | INSN_TOGETHER;
	decode_uses(d, 0x23, 0);
	decode_widen(d);
}
