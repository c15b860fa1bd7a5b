/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers that share a number must not change what a program computes.
 *
 * Programs are made at random: blocks of additions, some under a guard, with branches between
 * them. Each is carried out twice, as it was made, with a variable per register, and as it was
 * parsed, with the numbers that registers_share() gave. What both store must be the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/dump.h"

#define N_PROGRAMS 300
#define N_BLOCKS   8
#define N_LINES	   12 /* per block */
#define N_SPREAD   10 /* registers with a value from the start */
#define N_LOCAL	   30 /* registers that a block writes before it reads them */
#define N_REGS	   (N_SPREAD + N_LOCAL)
#define N_PREDS	   3
#define MAX_STEPS  2000
#define MAX_STORES MAX_STEPS

enum kind { KIND_ADD, KIND_COMPARE, KIND_STORE, KIND_BRANCH, KIND_END };

struct line {
	enum kind kind;
	int guard; /* predicate, or -1 */
	int d, a, b;
};

struct program {
	struct line lines[N_BLOCKS * (N_LINES + 1) + N_SPREAD + N_PREDS + 1];
	int n_lines;
	int starts[N_BLOCKS];
};

struct trace {
	uint32_t stores[MAX_STORES];
	int n;
};

static uint32_t seed = 1;

static int pick(int n)
{
	seed = seed * 1664525 + 1013904223;
	return (int)((uint64_t)(seed >> 8) * (uint32_t)n >> 24);
}

/* A register that has a value here: a spread one, or a local one written in this block. */
static int readable(const int *written, int n_written)
{
	int i = pick(N_SPREAD + n_written);

	return i < N_SPREAD ? i : written[i - N_SPREAD];
}

static void make_block(struct program *p, int block)
{
	int written[N_LINES], n_written = 0;

	p->starts[block] = p->n_lines;
	for (int i = 0; i < N_LINES; i++) {
		struct line *l = &p->lines[p->n_lines++];
		int chance = pick(10);

		*l = (struct line){ .guard = -1 };
		l->a = readable(written, n_written);
		l->b = readable(written, n_written);
		if (chance < 2) {
			l->kind = KIND_STORE;
		} else if (chance < 4) {
			l->kind = KIND_COMPARE;
			l->d = pick(N_PREDS);
		} else if (chance < 6) {
			l->kind = KIND_ADD;
			l->guard = pick(N_PREDS);
			l->d = pick(N_SPREAD);
		} else {
			l->kind = KIND_ADD;
			l->d = pick(2) ? pick(N_SPREAD) : N_SPREAD + pick(N_LOCAL);
			if (l->d >= N_SPREAD)
				written[n_written++] = l->d;
		}
	}
	p->lines[p->n_lines++] = (struct line){
		.kind = KIND_BRANCH,
		.guard = pick(4) ? pick(N_PREDS) : -1,
		.d = pick(N_BLOCKS),
	};
}

static void make_program(struct program *p)
{
	p->n_lines = 0;
	for (int i = 0; i < N_BLOCKS; i++)
		make_block(p, i);
	p->lines[p->n_lines++] = (struct line){ .kind = KIND_END, .guard = -1 };
}

static void print_line(const struct line *l, FILE *to)
{
	if (l->guard >= 0)
		fprintf(to, "@%%p%d ", l->guard);
	switch (l->kind) {
	case KIND_ADD:
		fprintf(to, "add.u32 %%r%d, %%r%d, %%r%d;\n", l->d, l->a, l->b);
		break;
	case KIND_COMPARE:
		fprintf(to, "setp.lt.u32 %%p%d, %%r%d, %%r%d;\n", l->d, l->a, l->b);
		break;
	case KIND_STORE:
		fprintf(to, "st.global.u32 [%%d0], %%r%d;\n", l->a);
		break;
	case KIND_BRANCH:
		fprintf(to, "bra L%d;\n", l->d);
		break;
	case KIND_END:
		fprintf(to, "exit;\n");
		break;
	}
}

static void print_program(const struct program *p, FILE *to)
{
	fprintf(to,
		".version 8.0\n.target sm_80\n.entry k() {\n.reg .b32 %%r<%d>;\n"
		".reg .pred %%p<%d>;\n.reg .b64 %%d<1>;\nmov.b64 %%d0, 0;\n",
		N_REGS, N_PREDS);
	for (int i = 0; i < N_SPREAD; i++)
		fprintf(to, "mov.u32 %%r%d, %d;\n", i, i * 77777777);
	for (int i = 0; i < N_PREDS; i++)
		fprintf(to, "mov.pred %%p%d, %d;\n", i, i & 1);
	for (int i = 0, block = 0; i < p->n_lines; i++) {
		if (block < N_BLOCKS && p->starts[block] == i)
			fprintf(to, "L%d:\n", block++);
		print_line(&p->lines[i], to);
	}
	fprintf(to, "}\n");
}

static void run_as_made(const struct program *p, struct trace *t)
{
	uint32_t r[N_REGS] = { 0 };
	bool pred[N_PREDS];
	int at = 0;

	for (int i = 0; i < N_SPREAD; i++)
		r[i] = (uint32_t)(i * 77777777);
	for (int i = 0; i < N_PREDS; i++)
		pred[i] = i & 1;
	for (int step = 0; step < MAX_STEPS; step++) {
		const struct line *l = &p->lines[at++];

		if (l->guard >= 0 && !pred[l->guard])
			continue;
		switch (l->kind) {
		case KIND_ADD:
			r[l->d] = r[l->a] + r[l->b];
			break;
		case KIND_COMPARE:
			pred[l->d] = r[l->a] < r[l->b];
			break;
		case KIND_STORE:
			t->stores[t->n++] = r[l->a];
			break;
		case KIND_BRANCH:
			at = p->starts[l->d];
			break;
		case KIND_END:
			return;
		}
	}
}

static uint32_t value_of(const struct ptx_operand *op, const uint32_t *r)
{
	return op->kind == PTX_IMM ? (uint32_t)op->imm : r[op->index];
}

static void run_as_parsed(const struct ptx_function *f, struct trace *t)
{
	uint32_t r[N_REGS] = { 0 }, at = 0;
	uint32_t pred[N_PREDS] = { 0 };
	/* What stands before the first block is not counted as made. */
	int steps = MAX_STEPS + 1 + N_SPREAD + N_PREDS;

	while (steps-- > 0) {
		const struct ptx_insn *insn = &f->insns[at++];
		const struct ptx_operand *o = ptx_operands(f, insn);

		if (insn->guard != PTX_NO_GUARD && !pred[insn->guard])
			continue;
		switch (insn->op) {
		case PTX_OP_MOV:
			if (o[0].cls == PTX_CLASS_P)
				pred[o[0].index] = value_of(&o[1], pred);
			else if (o[0].cls == PTX_CLASS_W)
				r[o[0].index] = value_of(&o[1], r);
			break;
		case PTX_OP_ADD:
			r[o[0].index] = r[o[1].index] + r[o[2].index];
			break;
		case PTX_OP_SETP:
			pred[o[0].index] = r[o[2].index] < r[o[3].index];
			break;
		case PTX_OP_ST:
			t->stores[t->n++] = r[o[1].index];
			break;
		case PTX_OP_BRA:
			at = o[0].index;
			break;
		case PTX_OP_EXIT:
			return;
		}
	}
}

static bool try_program(uint32_t *ret_most)
{
	static struct program program;
	static struct trace made, parsed;
	struct ptx_module *module;
	const struct ptx_function *f;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	bool same;

	make_program(&program);
	print_program(&program, to);
	fclose(to);
	if (ptx_parse(text, len, NULL, &module)) {
		free(text);
		return false;
	}
	f = module->symbols[0].func;
	made.n = parsed.n = 0;
	run_as_made(&program, &made);
	run_as_parsed(f, &parsed);
	same = ptx_verify(module) == NULL && made.n == parsed.n &&
	       memcmp(made.stores, parsed.stores, (size_t)made.n * sizeof(made.stores[0])) == 0;
	if (f->n_regs[PTX_CLASS_W] > *ret_most)
		*ret_most = f->n_regs[PTX_CLASS_W];
	ptx_module_free(module);
	free(text);
	return same;
}

int main(void)
{
	uint32_t most = 0;
	int n_wrong = 0;

	for (int i = 0; i < N_PROGRAMS; i++)
		n_wrong += !try_program(&most);
	printf("%s 'registers_share: %d of %d random programs compute the same'\n",
	       n_wrong ? "not ok" : "ok", N_PROGRAMS - n_wrong, N_PROGRAMS);
	printf("%s 'registers_share: at most %u registers are left of %d'\n",
	       most < N_REGS / 2 + N_SPREAD / 2 ? "ok" : "not ok", most, N_REGS);
	return n_wrong || most >= N_REGS / 2 + N_SPREAD / 2;
}
