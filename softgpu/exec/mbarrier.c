/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers that lie in shared memory: so many arrivals end a phase, and who has arrived asks whether the
 * phase that he came to has ended.
 *
 *	bit	0	20		40		63
 *		| pending | expected	| phase		|
 *
 * PTX leaves open what the 64 bits are. What an arrival gives, and asking takes, is the word as it was
 * before. One worker has a block at a time, and nobody else reaches its shared memory: no host atomics.
 *
 * Bulk copies do not exist here, so no phase waits for bytes.
 */
#include "softgpu/exec/access.h"

#define COUNT_BITS  20
#define COUNT_MASK  ((UINT64_C(1) << COUNT_BITS) - 1)
#define PHASE(v)    ((v) >> 2 * COUNT_BITS)
#define PENDING(v)  ((v)&COUNT_MASK)
#define EXPECTED(v) ((v) >> COUNT_BITS & COUNT_MASK)
#define PUT(p, e, n)                                                                               \
	((u64)(p) << 2 * COUNT_BITS | ((e)&COUNT_MASK) << COUNT_BITS | ((n)&COUNT_MASK))

static void find_objects(struct warp *w, const struct insn *in, u32 mask, u64 *ret[LANES])
{
	const struct block *block = w->block;
	struct access at;

	access_resolve(w, in, mask, sizeof(u64), /* write= */ true, &at);
	FOR_LANES(l, mask) {
		if (at.p[l] < block->shared || at.p[l] >= block->shared + block->shared_size)
			exec_fault(w, l, EXEC_FAULT_ADDRESS,
				   "a barrier object outside of shared memory");
		ret[l] = (u64 *)at.p[l];
	}
}

static int init(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *count = operand(w, in->op[2]);
	u64 *objects[LANES];

	find_objects(w, in, mask, objects);
	FOR_LANES(l, mask)
		*objects[l] = PUT(0, (u64)count[l], (u64)count[l]);
	return RUN_ON;
}

static int inval(struct warp *w, const struct insn *in, u32 mask)
{
	u64 *objects[LANES];

	find_objects(w, in, mask, objects);
	FOR_LANES(l, mask)
		*objects[l] = 0;
	return RUN_ON;
}

/* With the last arrival the next phase begins, which expects as many as are left. */
static u64 after_arrival(u64 v, u64 count, bool drop)
{
	u64 pending = (PENDING(v) - count) & COUNT_MASK;
	u64 expected = drop ? EXPECTED(v) - count : EXPECTED(v);

	return pending ? PUT(PHASE(v), expected, pending) : PUT(PHASE(v) + 1, expected, expected);
}

static int arrive_lanes(struct warp *w, const struct insn *in, u32 mask, bool drop)
{
	const u32 *count = operand(w, in->op[2]);
	u64 *d = operand(w, in->op[1]);
	u64 *objects[LANES];

	find_objects(w, in, mask, objects);
	FOR_LANES(l, mask) {
		u64 before = *objects[l];

		*objects[l] = after_arrival(before, count[l], drop);
		d[l] = before;
	}
	return RUN_ON;
}

static int arrive(struct warp *w, const struct insn *in, u32 mask)
{
	return arrive_lanes(w, in, mask, /* drop= */ false);
}

static int arrive_drop(struct warp *w, const struct insn *in, u32 mask)
{
	return arrive_lanes(w, in, mask, /* drop= */ true);
}

/* Who is told that it has not ended asks again: that costs a part of his turn. */
static int answer(struct warp *w, const struct insn *in, u32 mask, u32 ended)
{
	predicate_set(w, in->op[1], mask, ended);
	if (ended != mask)
		access_charge_poll(w);
	return RUN_ON;
}

static int wait_for_state(struct warp *w, const struct insn *in, u32 mask)
{
	const u64 *state = operand(w, in->op[2]);
	u64 *objects[LANES];
	u32 ended = 0;

	find_objects(w, in, mask, objects);
	FOR_LANES(l, mask)
		ended |= (u32)(PHASE(*objects[l]) != PHASE(state[l])) << l;
	return answer(w, in, mask, ended);
}

/* The phase of that parity is this one or the one before, which has ended. */
static int wait_for_parity(struct warp *w, const struct insn *in, u32 mask)
{
	const u32 *parity = operand(w, in->op[2]);
	u64 *objects[LANES];
	u32 ended = 0;

	find_objects(w, in, mask, objects);
	FOR_LANES(l, mask)
		ended |= (u32)((PHASE(*objects[l]) ^ parity[l]) & 1) << l;
	return answer(w, in, mask, ended);
}

static int pending_count(struct warp *w, const struct insn *in, u32 mask)
{
	const u64 *state = operand(w, in->op[2]);
	u32 *d = operand(w, in->op[1]);

	SET_LANES(u32, d, (u32)PENDING(state[l]));
	return RUN_ON;
}

exec_fn *find_mbarrier(enum ptx_mode mode)
{
	switch (mode) {
	case PTX_MODE_INIT:
		return init;
	case PTX_MODE_INVAL:
		return inval;
	case PTX_MODE_ARRIVE:
		return arrive;
	case PTX_MODE_ARRIVE_DROP:
		return arrive_drop;
	case PTX_MODE_TEST_WAIT:
	case PTX_MODE_TRY_WAIT:
		return wait_for_state;
	case PTX_MODE_PARITY_WAIT:
		return wait_for_parity;
	case PTX_MODE_PENDING_COUNT:
		return pending_count;
	default:
		return NULL;
	}
}
