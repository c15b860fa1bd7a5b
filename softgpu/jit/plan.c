/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of straight code, and the registers that are alive at their starts.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/jit/unit.h"

/* What a register takes in the frame, by class. */
static const uint32_t place_bytes[JIT_N_CLASSES] = { 4, 64, 128, 256, 512 };

#define N_BLOCKS_MAX 4096

/* ---- reading ------------------------------------------------------------------------------------ */

static bool read_places(struct unit *u)
{
	const struct jit_request *r = u->request;
	uint64_t n = 0;

	for (uint32_t c = 0; c < JIT_N_CLASSES; c++)
		n += r->class_count[c];
	if (n > N_PLACES_MAX)
		return false;
	u->places = calloc(n + 1, sizeof(*u->places));
	if (!u->places)
		return false;
	for (uint32_t c = 0; c < JIT_N_CLASSES; c++) {
		u->class_first[c] = u->n_places;
		for (uint32_t i = 0; i < r->class_count[c]; i++)
			u->places[u->n_places++] = (struct place){
				.cls = (uint8_t)c,
				.offset = r->class_start[c] + i * place_bytes[c],
			};
	}
	u->n_words = u->n_places / 64 + 1;
	return true;
}

static bool is_operand(const struct unit *u, uint32_t operand)
{
	if (is_const(operand))
		return (operand & ~JIT_CONST) + UINT64_C(512) <= u->request->constant_bytes;
	return unit_place(u, operand) < u->n_places;
}

static bool check_insn(const struct unit *u, const struct jit_insn *in)
{
	uint64_t n = (uint64_t)in->n_reads + in->n_writes;

	if (in->operands + n > u->request->n_operands || !is_operand(u, in->guard))
		return false;
	if (in->kind == JIT_BRANCH && in->target >= u->request->n_insns)
		return false;
	if (in->kind == JIT_ENTER && in->imm >= u->request->n_enters)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (!is_operand(u, u->operands[in->operands + i]))
			return false;
	}
	for (uint32_t i = in->n_reads; i < n; i++) {
		if (is_const(u->operands[in->operands + i]))
			return false;
	}
	return true;
}

bool unit_read(struct unit *u, const void *data, uint32_t size)
{
	const struct jit_request *r = data;
	uint64_t need;

	*u = (struct unit){ .request = r };
	if (size < sizeof(*r) || r->magic != JIT_MAGIC || r->version != JIT_VERSION ||
	    r->size != size)
		return false;
	need = sizeof(*r) + (uint64_t)r->n_insns * sizeof(struct jit_insn) +
	       (uint64_t)r->n_operands * sizeof(uint32_t) + r->constant_bytes;
	if (need != size)
		return false;
	u->insns = (const struct jit_insn *)(r + 1);
	u->operands = (const uint32_t *)(u->insns + r->n_insns);
	u->constants = (const uint8_t *)(u->operands + r->n_operands);
	if (!read_places(u))
		return false;
	for (uint32_t i = 0; i < r->n_insns; i++) {
		if (!check_insn(u, &u->insns[i]))
			return false;
	}
	return true;
}

void unit_done(struct unit *u)
{
	for (uint32_t b = 0; u->blocks && b < u->n_blocks; b++) {
		free(u->blocks[b].live);
		free(u->blocks[b].in);
	}
	free(u->blocks);
	free(u->block_at);
	free(u->places);
}

uint32_t unit_place(const struct unit *u, uint32_t operand)
{
	const struct jit_request *r = u->request;

	for (uint32_t c = 0; c < JIT_N_CLASSES; c++) {
		uint64_t end = r->class_start[c] + (uint64_t)r->class_count[c] * place_bytes[c];

		if (operand >= r->class_start[c] && operand < end &&
		    (operand - r->class_start[c]) % place_bytes[c] == 0)
			return u->class_first[c] + (operand - r->class_start[c]) / place_bytes[c];
	}
	return UINT32_MAX;
}

uint64_t unit_constant(const struct unit *u, uint32_t operand, uint32_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, u->constants + (operand & ~JIT_CONST), bytes);
	return v;
}

bool unit_always(const struct unit *u, const struct jit_insn *in)
{
	return is_const(in->guard) &&
	       ((uint32_t)unit_constant(u, in->guard, 4) ^ in->guard_xor) == UINT32_MAX;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static bool starts_block(const struct unit *u, uint32_t i)
{
	if (i >= u->request->n_insns)
		return false;
	if (u->insns[i].kind == JIT_JOIN)
		return i + 1 < u->request->n_insns && u->insns[i + 1].kind == JIT_ENTER;
	return u->insns[i].kind == JIT_ENTER;
}

/* Who goes on behind an instruction that ends a block? */
static enum block_end end_of(const struct unit *u, uint32_t i)
{
	const struct jit_insn *in = &u->insns[i];

	switch (in->kind) {
	case JIT_WARP:
		return form_is_native(u, in) ? END_FALL : END_STOP;
	case JIT_BRANCH:
		return END_BRANCH;
	case JIT_STOP:
		return END_STOP;
	case JIT_LEAVE:
		return END_LEAVE;
	default:
		return END_FALL;
	}
}

static uint32_t read_block(struct unit *u, uint32_t i)
{
	struct piece *b = &u->blocks[u->n_blocks];
	uint32_t n = u->request->n_insns;

	*b = (struct piece){ .first = i, .next = NO_BLOCK, .target = NO_BLOCK };
	u->block_at[i] = u->n_blocks;
	if (u->insns[i].kind == JIT_JOIN) {
		b->joins = true;
		u->block_at[++i] = u->n_blocks;
	}
	b->enter = i++;
	while (i < n && !starts_block(u, i) && end_of(u, i) == END_FALL)
		i++;
	b->end = i;
	b->ends = i < n && !starts_block(u, i) ? (uint8_t)end_of(u, i) : END_FALL;
	while (i < n && !starts_block(u, i))
		i++;
	b->tail = i;
	if (i == n && b->ends == END_FALL)
		b->ends = END_LEAVE;
	if (i < n && b->ends != END_LEAVE)
		b->next = u->n_blocks + 1;
	u->n_blocks++;
	return i;
}

static bool read_blocks(struct unit *u)
{
	uint32_t n = u->request->n_insns, n_blocks = 0, i = 0;

	for (uint32_t k = 0; k < n; k++)
		n_blocks += u->insns[k].kind == JIT_ENTER;
	u->blocks = calloc(n_blocks + 1, sizeof(*u->blocks));
	u->block_at = malloc((n + 1) * sizeof(*u->block_at));
	if (!u->blocks || !u->block_at)
		return false;
	memset(u->block_at, 0xff, (n + 1) * sizeof(*u->block_at));
	while (i < n && !starts_block(u, i))
		i++;
	while (i < n)
		i = read_block(u, i);
	for (uint32_t b = 0; b < u->n_blocks; b++) {
		struct piece *block = &u->blocks[b];

		if (block->ends == END_BRANCH)
			block->target = u->block_at[u->insns[block->end].target];
		/* A branch into what is no block, or with nothing behind it: the interpreter's. */
		if (block->ends == END_BRANCH &&
		    (block->target == NO_BLOCK || block->next == NO_BLOCK))
			block->ends = END_LEAVE;
	}
	return u->n_blocks <= N_BLOCKS_MAX &&
	       (uint64_t)u->n_blocks * u->n_places < (UINT64_C(1) << 23);
}

/* ---- lives -------------------------------------------------------------------------------------- */

void unit_live_step(const struct unit *u, const struct jit_insn *in, uint64_t *live)
{
	const uint32_t *operand = u->operands + in->operands;

	if (unit_always(u, in)) {
		for (uint32_t i = 0; i < in->n_writes; i++)
			set_drop(live, unit_place(u, operand[in->n_reads + i]));
	}
	for (uint32_t i = 0; i < in->n_reads; i++) {
		if (!is_const(operand[i]))
			set_add(live, unit_place(u, operand[i]));
	}
	if (!is_const(in->guard))
		set_add(live, unit_place(u, in->guard));
}

static void join_live(const struct unit *u, uint32_t block, uint64_t *live)
{
	if (block == NO_BLOCK)
		return;
	for (uint32_t i = 0; i < u->n_words; i++)
		live[i] |= u->blocks[block].live[i];
}

void unit_live_before(const struct unit *u, const struct piece *b, uint32_t insn, uint64_t *live)
{
	if (b->ends == END_STOP && u->insns[b->end].kind == JIT_STOP &&
	    u->insns[b->end].mode == JIT_STOP_ANYWHERE) {
		for (uint32_t p = 0; p < u->n_places; p++)
			set_add(live, p);
		return;
	}
	memset(live, 0, u->n_words * sizeof(*live));
	join_live(u, b->target, live);
	/* What leaves for good may do so only for some lanes. */
	join_live(u, b->next, live);
	for (uint32_t i = b->tail; i-- > insn;)
		unit_live_step(u, &u->insns[i], live);
}

static bool plan_lives(struct unit *u)
{
	uint64_t *live = calloc(u->n_words, sizeof(*live));
	bool changed = true;

	for (uint32_t b = 0; b < u->n_blocks; b++) {
		u->blocks[b].live = calloc(u->n_words, sizeof(*live));
		if (!live || !u->blocks[b].live) {
			free(live);
			return false;
		}
	}
	while (changed) {
		changed = false;
		for (uint32_t b = u->n_blocks; b-- > 0;) {
			struct piece *block = &u->blocks[b];

			unit_live_before(u, block, block->first, live);
			if (!memcmp(live, block->live, u->n_words * sizeof(*live)))
				continue;
			memcpy(block->live, live, u->n_words * sizeof(*live));
			changed = true;
		}
	}
	free(live);
	return true;
}

bool unit_plan(struct unit *u)
{
	if (!read_blocks(u))
		u->refusal = "too large";
	else if (!u->n_blocks)
		u->refusal = "nothing in it";
	else if (!plan_lives(u) || !unit_kinds(u))
		u->refusal = "no memory";
	return !u->refusal;
}
