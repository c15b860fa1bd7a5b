/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers that never hold values at the same time become one.
 *
 * Compilers write PTX with a new register for each value, thousands of them. An interpreter keeps
 * every register for every lane, so what is not shared falls out of the processor's cache: 1,900
 * functions of public libraries have 165 MB of registers for a warp as written, and 32 MB so. This
 * is liveness and a linear scan:
 *
 *   - A register that is written and read within one block of code alone, first written, is live
 *     from its first mention to its last. Most are so, and need no more.
 *   - For the others the blocks they are live into are found by the usual backward iteration, and
 *     they count as live from the first such place of the code to the last.
 *   - A walk over the code hands out numbers and takes them back.
 *
 * An instruction's results never share with its sources: handlers may write the one before they
 * read the other. A result under a guard keeps the old value in some lanes, so it counts as read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/share.h"
#include "softgpu/ptx/vec.h"

/* Above these a function is left alone. */
#define MAX_EDGES	 (1u << 22)
#define MAX_BITSET_WORDS (8u << 20)
#define MAX_PASSES	 64

#define UNTOUCHED UINT32_MAX
#define NOWHERE	  UINT32_MAX

/* A register of any class: its life, as numbers of the first and last instruction. */
struct life {
	uint32_t start, end;
	uint32_t block;	 /* of all its mentions, while [spread] is false */
	uint32_t bit;	 /* where it is spread: its place in the sets */
	uint32_t number; /* that it gets */
	uint32_t next;	 /* of those with the same start, and later with the same end */
	bool spread;	 /* over blocks, or read before it is written */
};

struct block {
	uint32_t first, last;
	uint32_t edge, n_edges;
};

struct sharing {
	struct ptx_function *f;
	struct ptx_proto *proto;
	uint32_t base[PTX_N_CLASSES + 1]; /* where a class begins in [lives] */
	struct life *lives;
	struct block *blocks;
	uint32_t *block_of; /* instruction to block */
	VEC(uint32_t, edges);
	uint32_t n_blocks;
	uint32_t n_bits, n_words;
	uint64_t *sets; /* per block: read first, written, live at its start */
	bool skip;
	int error;
};

typedef void visit_fn(struct sharing *s, uint32_t reg, uint32_t at, bool kills);

/* ---- blocks ------------------------------------------------------------------------------------- */

static bool ends_block(const struct ptx_insn *insn)
{
	return insn->op == PTX_OP_BRA || insn->op == PTX_OP_BRX || insn->op == PTX_OP_RET ||
	       insn->op == PTX_OP_EXIT || insn->op == PTX_OP_TRAP;
}

static bool goes_on(const struct ptx_insn *insn)
{
	return !ends_block(insn) || insn->guard != PTX_NO_GUARD;
}

static void mark_leaders(struct sharing *s)
{
	const struct ptx_function *f = s->f;

	s->block_of[0] = 1;
	for (uint32_t i = 0; i < f->n_insns; i++) {
		const struct ptx_insn *insn = &f->insns[i];

		if (insn->op == PTX_OP_BRA)
			s->block_of[ptx_operands(f, insn)->index] = 1;
		if (ends_block(insn) && i + 1 < f->n_insns)
			s->block_of[i + 1] = 1;
	}
	for (uint32_t t = 0; t < f->n_tables; t++) {
		for (uint32_t i = 0; i < f->tables[t].n; i++)
			s->block_of[f->tables[t].targets[i]] = 1;
	}
}

static void number_blocks(struct sharing *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->f->n_insns; i++)
		n += s->block_of[i];
	s->n_blocks = n;
	s->blocks = calloc(n, sizeof(*s->blocks));
	if (!s->blocks) {
		s->error = -ENOMEM;
		return;
	}
	n = 0;
	for (uint32_t i = 0; i < s->f->n_insns; i++) {
		if (s->block_of[i])
			s->blocks[n++].first = i;
		s->block_of[i] = n - 1;
		s->blocks[n - 1].last = i;
	}
}

static void add_edges(struct sharing *s, const uint32_t *targets, uint32_t n)
{
	if (s->error || s->skip)
		return;
	if (n > MAX_EDGES - s->n_edges) {
		s->skip = true;
		return;
	}
	if (!vec_room(s, edges, n)) {
		s->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		s->edges[s->n_edges++] = s->block_of[targets[i]];
}

static void find_edges(struct sharing *s)
{
	const struct ptx_function *f = s->f;

	for (uint32_t b = 0; b < s->n_blocks; b++) {
		const struct ptx_insn *last = &f->insns[s->blocks[b].last];
		uint32_t after = s->blocks[b].last + 1;

		s->blocks[b].edge = s->n_edges;
		if (goes_on(last))
			add_edges(s, &after, 1);
		if (last->op == PTX_OP_BRA)
			add_edges(s, &ptx_operands(f, last)->index, 1);
		if (last->op == PTX_OP_BRX)
			add_edges(s, f->tables[last->aux].targets, f->tables[last->aux].n);
		s->blocks[b].n_edges = s->n_edges - s->blocks[b].edge;
	}
}

static void find_blocks(struct sharing *s)
{
	s->block_of = calloc(s->f->n_insns, sizeof(*s->block_of));
	if (!s->block_of) {
		s->error = -ENOMEM;
		return;
	}
	mark_leaders(s);
	number_blocks(s);
	if (!s->error)
		find_edges(s);
}

/* ---- mentions ----------------------------------------------------------------------------------- */

static void visit_operand(struct sharing *s, const struct ptx_operand *op, uint32_t at, bool kills,
			  visit_fn *visit)
{
	if (op->kind == PTX_REG)
		visit(s, s->base[op->cls] + op->index, at, kills);
}

/* Results that are handed back in registers are read by ret. */
static void visit_rets(struct sharing *s, uint32_t at, visit_fn *visit)
{
	for (uint32_t i = 0; i < s->proto->n_rets; i++) {
		const struct ptx_param *ret = &s->proto->rets[i];

		if (ret->in_reg)
			visit(s, s->base[ret->cls] + ret->reg, at, /* kills= */ false);
	}
}

/* What an instruction reads, then what it writes. */
static void visit_insn(struct sharing *s, uint32_t at, visit_fn *visit)
{
	const struct ptx_insn *insn = &s->f->insns[at];
	const struct ptx_operand *ops = ptx_operands(s->f, insn);
	uint32_t carry = s->base[PTX_CLASS_P] + s->f->carry;
	bool guarded = insn->guard != PTX_NO_GUARD;

	if (guarded)
		visit(s, s->base[PTX_CLASS_P] + insn->guard, at, /* kills= */ false);
	for (uint32_t i = insn->n_dst; i < insn->n_ops; i++)
		visit_operand(s, &ops[i], at, /* kills= */ false, visit);
	if (insn->op == PTX_OP_ADDC || insn->op == PTX_OP_SUBC || insn->op == PTX_OP_MADC)
		visit(s, carry, at, /* kills= */ false);
	if (insn->op == PTX_OP_RET)
		visit_rets(s, at, visit);

	for (uint32_t i = 0; i < insn->n_dst; i++)
		visit_operand(s, &ops[i], at, !guarded, visit);
	if (insn->flags & PTX_F_CC)
		visit(s, carry, at, !guarded);
}

static void note_mention(struct sharing *s, uint32_t reg, uint32_t at, bool kills)
{
	struct life *life = &s->lives[reg];
	uint32_t block = s->block_of[at];

	if (life->start == UNTOUCHED) {
		life->start = at;
		life->block = block;
		life->spread = !kills;
	} else if (life->block != block) {
		life->spread = true;
	}
	life->end = at;
}

/* Parameters in registers are written before the first instruction. */
static void note_params(struct sharing *s)
{
	for (uint32_t i = 0; i < s->proto->n_params; i++) {
		const struct ptx_param *param = &s->proto->params[i];

		if (param->in_reg)
			note_mention(s, s->base[param->cls] + param->reg, 0, /* kills= */ false);
	}
}

static void find_lives(struct sharing *s)
{
	uint32_t n = s->base[PTX_N_CLASSES];

	s->lives = malloc((n + 1) * sizeof(*s->lives));
	if (!s->lives) {
		s->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		s->lives[i] = (struct life){ .start = UNTOUCHED, .next = NOWHERE };
	note_params(s);
	for (uint32_t i = 0; i < s->f->n_insns; i++)
		visit_insn(s, i, note_mention);
	for (uint32_t i = 0; i < n; i++) {
		if (s->lives[i].spread)
			s->lives[i].bit = s->n_bits++;
	}
}

/* ---- liveness ----------------------------------------------------------------------------------- */

enum { SET_READ, SET_WRITTEN, SET_LIVE, N_SETS };

static uint64_t *set_of(const struct sharing *s, uint32_t block, int which)
{
	return s->sets + ((size_t)block * N_SETS + (size_t)which) * s->n_words;
}

static void note_in_sets(struct sharing *s, uint32_t reg, uint32_t at, bool kills)
{
	const struct life *life = &s->lives[reg];
	uint32_t block = s->block_of[at];
	uint64_t bit = 1ull << (life->bit & 63);
	uint64_t *written = set_of(s, block, SET_WRITTEN) + life->bit / 64;

	if (!life->spread)
		return;
	if (kills)
		*written |= bit;
	else if (!(*written & bit))
		set_of(s, block, SET_READ)[life->bit / 64] |= bit;
}

/* Live at the start: read first, or live at the end and not written. true: more than before. */
static bool block_iterate(struct sharing *s, uint32_t b)
{
	const struct block *block = &s->blocks[b];
	const uint64_t *read = set_of(s, b, SET_READ), *written = set_of(s, b, SET_WRITTEN);
	uint64_t *live = set_of(s, b, SET_LIVE);
	bool changed = false;

	for (uint32_t w = 0; w < s->n_words; w++) {
		uint64_t out = 0, in;

		for (uint32_t e = 0; e < block->n_edges; e++)
			out |= set_of(s, s->edges[block->edge + e], SET_LIVE)[w];
		in = read[w] | (out & ~written[w]);
		changed |= in != live[w];
		live[w] = in;
	}
	return changed;
}

static void life_covers(struct life *life, uint32_t at)
{
	if (at < life->start)
		life->start = at;
	if (at > life->end)
		life->end = at;
}

/* Those that are live into a block are at its first instruction, and at the end of who goes there. */
static void stretch_lives(struct sharing *s, struct life **by_bit)
{
	for (uint32_t b = 0; b < s->n_blocks; b++) {
		const struct block *block = &s->blocks[b];

		for (uint32_t w = 0; w < s->n_words; w++) {
			uint64_t in = set_of(s, b, SET_LIVE)[w], out = 0;

			for (uint32_t e = 0; e < block->n_edges; e++)
				out |= set_of(s, s->edges[block->edge + e], SET_LIVE)[w];
			for (; in; in &= in - 1)
				life_covers(by_bit[w * 64 + (uint32_t)__builtin_ctzll(in)],
					    block->first);
			for (; out; out &= out - 1)
				life_covers(by_bit[w * 64 + (uint32_t)__builtin_ctzll(out)],
					    block->last);
		}
	}
}

static void iterate(struct sharing *s)
{
	bool changed = true;

	for (int pass = 0; changed; pass++) {
		if (pass == MAX_PASSES) {
			s->skip = true;
			return;
		}
		changed = false;
		for (uint32_t b = s->n_blocks; b-- > 0;)
			changed |= block_iterate(s, b);
	}
}

static void find_liveness(struct sharing *s)
{
	uint32_t n = s->base[PTX_N_CLASSES];
	struct life **by_bit;

	s->n_words = (s->n_bits + 63) / 64;
	if ((uint64_t)s->n_words * s->n_blocks > MAX_BITSET_WORDS / N_SETS ||
	    (uint64_t)s->n_words * s->n_edges > MAX_BITSET_WORDS) {
		s->skip = true;
		return;
	}
	s->sets = calloc((size_t)s->n_blocks * s->n_words * N_SETS + 1, sizeof(*s->sets));
	by_bit = calloc((size_t)s->n_words * 64 + 1, sizeof(*by_bit));
	if (!s->sets || !by_bit) {
		s->error = -ENOMEM;
		free(by_bit);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (s->lives[i].spread)
			by_bit[s->lives[i].bit] = &s->lives[i];
	}
	for (uint32_t i = 0; i < s->f->n_insns; i++)
		visit_insn(s, i, note_in_sets);
	iterate(s);
	if (!s->skip)
		stretch_lives(s, by_bit);
	free(by_bit);
}

/* ---- numbers ------------------------------------------------------------------------------------ */

struct scan {
	uint32_t *starts, *ends; /* per instruction: the first register in the list of those */
	uint32_t *unused;	 /* numbers that were given back */
	uint32_t n_unused, n_numbers;
};

static void list_add(struct sharing *s, uint32_t *list, uint32_t at, uint32_t reg)
{
	s->lives[reg].next = list[at];
	list[at] = reg;
}

/* Registers of one class from @first to before @end. */
static void scan_class(struct sharing *s, struct scan *scan, uint32_t first, uint32_t end)
{
	uint32_t n = s->f->n_insns, reg, next;

	memset(scan->starts, 0xff, n * sizeof(*scan->starts));
	memset(scan->ends, 0xff, n * sizeof(*scan->ends));
	scan->n_unused = scan->n_numbers = 0;
	for (reg = first; reg < end; reg++) {
		if (s->lives[reg].start != UNTOUCHED)
			list_add(s, scan->starts, s->lives[reg].start, reg);
	}
	for (uint32_t at = 0; at < n; at++) {
		for (reg = scan->starts[at]; reg != NOWHERE; reg = next) {
			struct life *life = &s->lives[reg];

			next = life->next;
			life->number =
				scan->n_unused ? scan->unused[--scan->n_unused] : scan->n_numbers++;
			list_add(s, scan->ends, life->end, reg);
		}
		for (reg = scan->ends[at]; reg != NOWHERE; reg = s->lives[reg].next)
			scan->unused[scan->n_unused++] = s->lives[reg].number;
	}
}

static void find_numbers(struct sharing *s)
{
	uint32_t n = s->f->n_insns;
	struct scan scan = {
		.starts = malloc(n * sizeof(uint32_t)),
		.ends = malloc(n * sizeof(uint32_t)),
		.unused = malloc((s->base[PTX_N_CLASSES] + 1) * sizeof(uint32_t)),
	};

	if (!scan.starts || !scan.ends || !scan.unused)
		s->error = -ENOMEM;
	for (int cls = 0; cls < PTX_N_CLASSES && !s->error; cls++) {
		scan_class(s, &scan, s->base[cls], s->base[cls + 1]);
		s->f->n_regs[cls] = scan.n_numbers;
	}
	free(scan.starts);
	free(scan.ends);
	free(scan.unused);
}

static uint32_t number_of(const struct sharing *s, enum ptx_class cls, uint32_t index)
{
	return s->lives[s->base[cls] + index].number;
}

static void renumber_params(const struct sharing *s, struct ptx_param *params, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (params[i].in_reg)
			params[i].reg = number_of(s, params[i].cls, params[i].reg);
	}
}

static void renumber(struct sharing *s)
{
	struct ptx_function *f = s->f;

	for (uint32_t i = 0; i < f->n_operands; i++) {
		struct ptx_operand *op = &f->operands[i];

		if (op->kind == PTX_REG)
			op->index = number_of(s, op->cls, op->index);
	}
	for (uint32_t i = 0; i < f->n_insns; i++) {
		if (f->insns[i].guard != PTX_NO_GUARD)
			f->insns[i].guard = number_of(s, PTX_CLASS_P, f->insns[i].guard);
	}
	if (f->carry != UINT32_MAX)
		f->carry = number_of(s, PTX_CLASS_P, f->carry);
	renumber_params(s, s->proto->params, s->proto->n_params);
	renumber_params(s, s->proto->rets, s->proto->n_rets);
}

int registers_share(struct ptx_function *f, struct ptx_proto *proto)
{
	struct sharing s = { .f = f, .proto = proto };

	for (int cls = 0; cls < PTX_N_CLASSES; cls++)
		s.base[cls + 1] = s.base[cls] + f->n_regs[cls];
	find_blocks(&s);
	if (!s.error && !s.skip)
		find_lives(&s);
	if (!s.error && !s.skip)
		find_liveness(&s);
	if (!s.error && !s.skip)
		find_numbers(&s);
	if (!s.error && !s.skip)
		renumber(&s);
	free(s.lives);
	free(s.blocks);
	free(s.block_of);
	free(s.edges);
	free(s.sets);
	return s.error;
}
