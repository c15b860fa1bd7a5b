/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function while it is compiled: its pieces, which registers are alive where, and which of them
 * are the same in all lanes.
 */
#ifndef SOFTGPU_JIT_UNIT_H
#define SOFTGPU_JIT_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/jit/request.h"
#include "softgpu/ptx/ptx.h"

#define N_LANES	     32
#define NO_BLOCK     UINT32_MAX
#define N_PLACES_MAX 65536

/* What is known of a register: nothing yet, lanes at equal distances, or each lane for itself. */
enum kind_state { KIND_OPEN, KIND_AFFINE, KIND_VARYING };

struct kind {
	uint8_t state;
	int64_t stride;
};

/* A register: the lanes at one place of the frame. */
struct place {
	uint8_t cls; /* enum ptx_class */
	uint32_t offset;
};

enum block_end {
	END_FALL,   /* into the next */
	END_BRANCH, /* to its target, if guarded by some lanes only */
	END_STOP,   /* the interpreter goes on; later it comes to the next block */
	END_LEAVE,
};

struct piece {
	uint32_t first; /* instruction: JOIN or ENTER */
	uint32_t enter; /* the ENTER */
	uint32_t end;	/* the instruction that ends it; END_FALL: the first of the next block */
	uint32_t tail;	/* one past the last; what is behind end is the interpreter's */
	uint8_t ends;	/* enum block_end */
	bool joins;
	bool reached;	 /* by compiled code or from the start */
	uint32_t target; /* END_BRANCH: block */
	uint32_t next;	 /* block behind it, or NO_BLOCK */
	uint64_t *live;	 /* at its start: a set of places */
	struct kind *in; /* at its start, by place */
};

struct unit {
	const struct jit_request *request;
	const struct jit_insn *insns;
	const uint32_t *operands;
	const uint8_t *constants;
	struct place *places;
	uint32_t n_places, n_words; /* words of a set */
	uint32_t class_first[JIT_N_CLASSES];
	struct piece *blocks;
	uint32_t n_blocks;
	uint32_t *block_at; /* by instruction: the block that starts there */
	const char *refusal;
};

/**
 * unit_read() - look at a request
 * @data:	aligned to 8 bytes; used as long as the unit
 *
 * Return: whether it is one. A unit that is refused has a reason and need not be whole.
 */
bool unit_read(struct unit *u, const void *data, uint32_t size);
void unit_done(struct unit *u);

/* Works out blocks, lives and kinds; false with u->refusal set. */
bool unit_plan(struct unit *u);

/* The place of an operand that is no constant. */
uint32_t unit_place(const struct unit *u, uint32_t operand);

static inline bool is_const(uint32_t operand)
{
	return operand & JIT_CONST;
}

static inline bool set_has(const uint64_t *set, uint32_t at)
{
	return set[at / 64] >> (at % 64) & 1;
}

static inline void set_add(uint64_t *set, uint32_t at)
{
	set[at / 64] |= UINT64_C(1) << (at % 64);
}

static inline void set_drop(uint64_t *set, uint32_t at)
{
	set[at / 64] &= ~(UINT64_C(1) << (at % 64));
}

/* The bits of a constant's first lane: all lanes are alike. */
uint64_t unit_constant(const struct unit *u, uint32_t operand, uint32_t bytes);

/* Does the guard let every lane through? */
bool unit_always(const struct unit *u, const struct jit_insn *in);

/* Goes from the state behind an instruction to the one before it: what is alive. */
void unit_live_step(const struct unit *u, const struct jit_insn *in, uint64_t *live);

/* What is alive right before an instruction of a block. */
void unit_live_before(const struct unit *u, const struct piece *b, uint32_t insn, uint64_t *live);

/* ---- kinds.c ------------------------------------------------------------------------------------- */

bool unit_kinds(struct unit *u);
struct kind kind_of_operand(const struct unit *u, uint32_t operand, const struct kind *state);

/* Of the results of an instruction, guard aside. */
struct kind kind_of_result(const struct unit *u, const struct jit_insn *in,
			   const struct kind *state);

/* From the state before an instruction to the one behind it. */
void kind_step(const struct unit *u, const struct jit_insn *in, struct kind *state);

/* ---- forms.c: what is compiled -------------------------------------------------------------------- */

/* Whether there is code for it, beside a call of its handler. */
bool form_is_native(const struct unit *u, const struct jit_insn *in);

/* Whether it takes denormal f32 as zeros and makes no others. */
bool form_flushes(const struct jit_insn *in);

/* Whether it is of doubles, and looks at no more than their upper words. */
bool form_is_upper(const struct jit_insn *in);

/* Whether it reads or writes the carry flag. */
bool form_carries(const struct jit_insn *in);

#endif
