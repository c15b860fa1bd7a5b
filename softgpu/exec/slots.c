/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: which of a function's registers can share a place.
 *
 * Compilers give every value a register of its own, thousands in an unrolled
 * kernel, and a warp's lanes of all of them would be megabytes. Here a
 * register has its slot from the first instruction that names it to the last,
 * and then another may have it. The order of instructions in the text is all
 * that is looked at, so two things need care: a value may be carried around a
 * loop, and a register may be read on a way on which nothing was written.
 * Hence, unless all of a register's life is in one piece of straight code that
 * begins by writing it, it keeps its slot through every loop that it touches.
 *
 * Each lane follows its own way through the code and has its own part of a
 * slot, so divergence changes nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "softgpu/exec/decode.h"

/* A register's life, in numbers of instructions. */
struct life {
	u32 first, last;
	u32 piece;     /* of straight code that it is in */
	bool seen;
	bool straight; /* written first, and never outside that piece */
	u32 slot;
};

/* Instructions that a branch backwards repeats. */
struct loop {
	u32 first, last;
};

struct survey {
	const struct ptx_function *f;
	struct life *lives[PTX_N_CLASSES];
	VEC(struct loop, loops);
};

/* ---- who lives when ----------------------------------------------------------------------------- */

static void mention(struct survey *s, u32 cls, u32 index, u32 at, u32 piece, bool writes)
{
	struct life *l = &s->lives[cls][index];

	if (!l->seen)
		*l = (struct life){ .first = at, .piece = piece, .seen = true, .straight = writes };
	if (l->piece != piece)
		l->straight = false;
	if (at > l->last)
		l->last = at;
}

/* Sources before results: a register that is both is read first. */
static void mention_operands(struct survey *s, const struct ptx_insn *in, u32 at, u32 piece)
{
	const struct ptx_operand *ops = ptx_operands(s->f, in);
	bool always = in->guard == PTX_NO_GUARD;

	if (!always)
		mention(s, PTX_CLASS_P, in->guard, at, piece, false);
	for (u32 i = 0; i < in->n_ops; i++) {
		if (ops[i].kind == PTX_REG && (i >= in->n_dst || ops[i].mem))
			mention(s, ops[i].cls, ops[i].index, at, piece, false);
	}
	for (u32 i = 0; i < in->n_dst && i < in->n_ops; i++) {
		if (ops[i].kind == PTX_REG && !ops[i].mem)
			mention(s, ops[i].cls, ops[i].index, at, piece, always);
	}
}

/* Parameters in registers, and the carry flag: from the beginning to the end. */
static void mention_throughout(struct survey *s, u32 cls, u32 index)
{
	mention(s, cls, index, 0, 0, false);
	mention(s, cls, index, s->f->n_insns, 0, false);
}

static void mention_params(struct survey *s, const struct ptx_param *params, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		if (params[i].in_reg)
			mention_throughout(s, params[i].cls, params[i].reg);
	}
}

static bool ends_piece(const struct ptx_insn *in)
{
	return in->op == PTX_OP_BRA || in->op == PTX_OP_BRX || in->op == PTX_OP_RET ||
	       in->op == PTX_OP_EXIT || in->op == PTX_OP_TRAP;
}

static void survey_lives(struct survey *s, const struct decoder *d)
{
	const struct ptx_proto *proto = &d->module->ptx->protos[s->f->proto];
	u32 piece = 1;

	if (!s->f->kernel) {
		mention_params(s, proto->params, proto->n_params);
		mention_params(s, proto->rets, proto->n_rets);
	}
	if (s->f->carry != UINT32_MAX)
		mention_throughout(s, PTX_CLASS_P, s->f->carry);
	for (u32 i = 0; i < s->f->n_insns; i++) {
		piece += d->leader[i];
		mention_operands(s, &s->f->insns[i], i, piece);
		piece += ends_piece(&s->f->insns[i]);
	}
}

/* ---- loops -------------------------------------------------------------------------------------- */

static bool add_loop(struct survey *s, u32 target, u32 branch)
{
	if (target > branch)
		return true;
	if (!vec_room(s, loops, 1))
		return false;
	s->loops[s->n_loops++] = (struct loop){ target, branch };
	return true;
}

static int compare_loops(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* Loops that share an instruction become one. */
static void join_loops(struct survey *s)
{
	u32 n = 0;

	if (!s->n_loops)
		return;
	qsort(s->loops, s->n_loops, sizeof(*s->loops), compare_loops);
	for (u32 i = 1; i < s->n_loops; i++) {
		if (s->loops[i].first > s->loops[n].last)
			s->loops[++n] = s->loops[i];
		else if (s->loops[i].last > s->loops[n].last)
			s->loops[n].last = s->loops[i].last;
	}
	s->n_loops = n + 1;
}

static bool survey_loops(struct survey *s)
{
	bool ok = true;

	for (u32 i = 0; i < s->f->n_insns && ok; i++) {
		const struct ptx_insn *in = &s->f->insns[i];

		if (in->op == PTX_OP_BRA)
			ok = add_loop(s, ptx_operands(s->f, in)[0].index, i);
		for (u32 k = 0; in->op == PTX_OP_BRX && ok && k < s->f->tables[in->aux].n; k++)
			ok = add_loop(s, s->f->tables[in->aux].targets[k], i);
	}
	join_loops(s);
	return ok;
}

/* The first loop that ends at @at or later; the number of loops if there is none. */
static u32 loop_from(const struct survey *s, u32 at)
{
	u32 low = 0, high = s->n_loops;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (s->loops[middle].last < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void widen_life(const struct survey *s, struct life *l)
{
	u32 at = loop_from(s, l->first);

	if (at < s->n_loops && s->loops[at].first < l->first)
		l->first = s->loops[at].first;
	at = loop_from(s, l->last);
	if (at < s->n_loops && s->loops[at].first <= l->last)
		l->last = s->loops[at].last;
}

/* ---- giving slots ------------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
	const struct life *x = *(struct life *const *)a, *y = *(struct life *const *)b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static int by_last(const void *a, const void *b)
{
	const struct life *x = *(struct life *const *)a, *y = *(struct life *const *)b;

	return x->last < y->last ? -1 : x->last > y->last;
}

/* @scratch has room for three pointers to each of the class's registers. */
static u32 give_slots(struct life *lives, u32 n, struct life **scratch)
{
	struct life **starts = scratch, **ends = scratch + n, **given = scratch + 2 * n;
	u32 n_slots = 0, n_free = 0, ended = 0;

	for (u32 i = 0; i < n; i++)
		starts[i] = ends[i] = &lives[i];
	qsort(starts, n, sizeof(*starts), by_first);
	qsort(ends, n, sizeof(*ends), by_last);
	for (u32 i = 0; i < n; i++) {
		/* Not in the very instruction: it may write before it has read everything. */
		while (ended < n && ends[ended]->last < starts[i]->first)
			given[n_free++] = ends[ended++];
		starts[i]->slot = n_free ? given[--n_free]->slot : n_slots++;
	}
	return n_slots;
}

static bool fill_slots(struct survey *s, struct decoder *d, u32 cls)
{
	u32 n = s->f->n_regs[cls];
	struct life **scratch = malloc((3 * (size_t)n + 1) * sizeof(*scratch));

	d->slots[cls] = malloc((n + 1) * sizeof(*d->slots[cls]));
	if (!scratch || !d->slots[cls]) {
		free(scratch);
		return false;
	}
	for (u32 i = 0; i < n; i++) {
		if (!s->lives[cls][i].straight)
			widen_life(s, &s->lives[cls][i]);
	}
	d->n_slots[cls] = give_slots(s->lives[cls], n, scratch);
	for (u32 i = 0; i < n; i++)
		d->slots[cls][i] = s->lives[cls][i].slot;
	free(scratch);
	return true;
}

int decode_slots(struct decoder *d)
{
	struct survey s = { .f = d->f };
	bool ok = true;

	for (u32 cls = 0; cls < PTX_N_CLASSES; cls++) {
		s.lives[cls] = calloc(d->f->n_regs[cls] + 1, sizeof(*s.lives[cls]));
		ok = ok && s.lives[cls];
	}
	if (ok) {
		survey_lives(&s, d);
		ok = survey_loops(&s);
	}
	for (u32 cls = 0; cls < PTX_N_CLASSES; cls++) {
		ok = ok && fill_slots(&s, d, cls);
		free(s.lives[cls]);
	}
	free(s.loops);
	return ok ? 0 : -ENOMEM;
}
