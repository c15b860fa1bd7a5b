// SPDX-License-Identifier: Apache-2.0
/* blocks.h: the records in use are few to look at, however many there were, and none of them is overlooked. */
#include <stdlib.h>

#include "base/check.h"
#include "blocks.h"

#define SPREAD 0x9e3779b1U /* as the programs have it */

/* As the programs do it. */
static __u32 claim(struct audit_state *state)
{
	__u32 random = state->control.next_serial++ * SPREAD;
	__u32 at = blocks_start(state, AUDIT_TABLE_PROCESSES, random);

	do
		at = (at + 1) % AUDIT_PROCESSES;
	while (state->processes[at].owner);
	state->processes[at].owner = AUDIT_PROCESS_LIVE;
	block_use(state, AUDIT_TABLE_PROCESSES, at);
	state->control.taken[AUDIT_TABLE_PROCESSES]++;
	return at;
}

static void end(struct audit_state *state, __u32 at)
{
	state->processes[at].owner = AUDIT_PROCESS_FREE;
	state->control.taken[AUDIT_TABLE_PROCESSES]--;
}

struct visit {
	__u32 looked_at;
	__u32 live;
};

static struct visit visit(struct audit_state *state)
{
	struct visit v = {};

	blocks_each(state, AUDIT_TABLE_PROCESSES, i) {
		v.looked_at++;
		v.live += state->processes[i].owner != AUDIT_PROCESS_FREE;
	}
	return v;
}

static void tidy(struct audit_state *state)
{
	for (__u32 at = 0; at < AUDIT_PROCESSES; at += AUDIT_BLOCK)
		block_tidy(state, AUDIT_TABLE_PROCESSES, at);
}

static void case_few(struct audit_state *state)
{
	struct visit v = visit(state);

	check(v.looked_at == 0, "blocks: of nobody %u records are looked at", v.looked_at);
	for (int i = 0; i < 500; i++)
		claim(state);
	v = visit(state);
	check(v.live == 500 && v.looked_at <= 17 * AUDIT_BLOCK,
	      "blocks: 500 processes, %u found, are among 1,088 records at most: %u", v.live,
	      v.looked_at);
}

static void case_full(struct audit_state *state)
{
	struct visit v;

	while (state->control.taken[AUDIT_TABLE_PROCESSES] < AUDIT_PROCESSES)
		claim(state);
	v = visit(state);
	check(v.live == AUDIT_PROCESSES, "blocks: the table takes 16,384: %u", v.live);
}

static void case_tidy(struct audit_state *state)
{
	struct visit v;

	for (__u32 i = 0; i < AUDIT_PROCESSES; i++)
		if (i != 5000)
			end(state, i);
	tidy(state);
	v = visit(state);
	check(v.live == 1 && v.looked_at == AUDIT_BLOCK,
	      "blocks: the last of all, %u found, is among 64: %u", v.live, v.looked_at);
	check(claim(state) <= AUDIT_BLOCK, "blocks: the next has a record among the first");
	end(state, 5000);
	tidy(state);
	v = visit(state);
	check(v.live == 1 && v.looked_at == AUDIT_BLOCK,
	      "blocks: when the last has ended, %u found, 64 are left: %u", v.live, v.looked_at);
}

int main(void)
{
	struct audit_state *state = calloc(1, sizeof(*state));

	if (!state)
		return 1;
	case_few(state);
	case_full(state);
	case_tidy(state);
	free(state);
	return check_result();
}
