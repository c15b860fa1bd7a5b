// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of the holder process: which of the calls that wait may be decided, first come, first served.
 *
 * How many wait for a ledger is written into it, and is how the programs know that a call which comes now has
 * others before it.
 */
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "holder.h"

#define PLACE_MS 20   /* a thread that was let go keeps its place for so long */
#define LATE_MS	 2000 /* and that long while it waits for a CPU to be decided */

static bool slot_is_counted(const struct audit_slot *slot)
{
	return slot->reason != AUDIT_REASON_NONE && slot->reason < AUDIT_REASON_COMPUTE &&
	       slot_state(slot) != AUDIT_SLOT_FREE;
}

static void queued_add(struct holder *h, uint32_t ledger)
{
	if (h->is_queued[ledger])
		return;
	h->is_queued[ledger] = 1;
	h->queued[h->n_queued++] = ledger;
}

/*
 * Calls that come now queue behind those that wait for the same tenant's memory. They may come at any instant, so
 * a ledger's number goes from what it was to what it is in one step, and is never 0 in between.
 */
static void queue_recount(struct holder *h)
{
	struct ledger *books = h->state->books;
	size_t kept = 0;

	for (size_t i = 0; i < h->n_queued; i++)
		h->n_waiting[h->queued[i]] = 0;
	for (size_t i = 0; i < h->n_held; i++) {
		const struct audit_slot *slot = &h->state->slots[h->held[i]];
		uint32_t at = ledger_index(slot->tenant, slot->device);

		if (!slot_is_counted(slot))
			continue;
		h->n_waiting[at]++;
		queued_add(h, at);
	}
	for (size_t i = 0; i < h->n_queued; i++) {
		uint32_t at = h->queued[i];

		__atomic_store_n(&books[at].n_queued, h->n_waiting[at], __ATOMIC_RELEASE);
		h->is_queued[at] = h->n_waiting[at] != 0;
		if (h->is_queued[at])
			h->queued[kept++] = at;
	}
	h->n_queued = kept;
}

static int compare_tickets(const void *a, const void *b, void *slots)
{
	uint64_t x = ((struct audit_slot *)slots)[*(const uint32_t *)a].ticket;
	uint64_t y = ((struct audit_slot *)slots)[*(const uint32_t *)b].ticket;

	return x < y ? -1 : x > y;
}

/* A thread that waited: the holder before has let it go by now, whatever it wrote, and it is on its way here. */
static void queue_inherit_slot(struct holder *h, uint32_t at)
{
	struct audit_slot *slot = &h->state->slots[at];

	slot_change(slot, AUDIT_SLOT_HELD, AUDIT_SLOT_RELEASED);
	if (slot_state(slot) < AUDIT_SLOT_WAITING || slot->ask != AUDIT_ASK_HOLD)
		return;
	h->tickets[at] = slot->ticket;
	h->let_go_ns[at] = clock_now_ns(CLOCK_MONOTONIC);
	h->is_decided[at] = 1;
	h->held[h->n_held++] = at;
}

void queue_inherit(struct holder *h)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(h->state->books); i++)
		if (h->state->books[i].n_queued)
			queued_add(h, i);
	blocks_each(h->state, AUDIT_TABLE_SLOTS, i)
		queue_inherit_slot(h, i);
	qsort_r(h->held, h->n_held, sizeof(h->held[0]), compare_tickets, h->state->slots);
	queue_recount(h);
}

void queue_add(struct holder *h, uint32_t at)
{
	uint64_t ticket = h->state->slots[at].ticket;
	size_t i;

	for (i = 0; i < h->n_held; i++)
		if (h->held[i] == at)
			return;
	for (i = h->n_held++; i > 0 && h->state->slots[h->held[i - 1]].ticket > ticket; i--)
		h->held[i] = h->held[i - 1];
	h->held[i] = at;
}

void queue_remove(struct holder *h, uint32_t at)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n_held; i++)
		if (h->held[i] != at)
			h->held[kept++] = h->held[i];
	h->n_held = kept;
	h->let_go_ns[at] = 0;
}

/* It runs, or does as soon as it gets a CPU; who is stopped or frozen does not. */
static bool thread_is_runnable(pid_t tid)
{
	char path[64], line[256];
	_cleanup_fclose_ FILE *f = NULL;
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return false;
	name_end = strrchr(line, ')');
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

/*
 * Whether a slot still has its place. One that was let go keeps it until it has been decided, so that those
 * behind it do not take what it was let go for: on a busy machine that is when the kernel gets round to
 * running it. One that may be busy with a signal, or is frozen, does not keep others waiting for so long.
 */
static bool slot_is_queued(const struct holder *h, uint32_t at, uint64_t now)
{
	const struct audit_slot *slot = &h->state->slots[at];
	uint32_t state = slot_state(slot);
	uint64_t ms = (now - h->let_go_ns[at]) / 1000000;

	if (state == AUDIT_SLOT_HELD || state == AUDIT_SLOT_FREE)
		return state == AUDIT_SLOT_HELD;
	if (ms < PLACE_MS)
		return true;
	return h->is_decided[at] && ms < LATE_MS &&
	       (state < AUDIT_SLOT_RELEASED || thread_is_runnable(slot->tid));
}

void queue_tidy(struct holder *h)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	size_t kept = 0;

	for (size_t i = 0; i < h->n_held; i++)
		if (slot_is_queued(h, h->held[i], now))
			h->held[kept++] = h->held[i];
	h->n_held = kept;
	queue_recount(h);
}

/* Let a held thread go, with a signal that it is to take; @to: AUDIT_SLOT_RELEASED or AUDIT_SLOT_TURN */
static void slot_let_go(struct holder *h, uint32_t at, uint32_t to, int signal)
{
	struct audit_slot *slot = &h->state->slots[at];
	pid_t tid = slot->tid;

	if (!slot_change(slot, AUDIT_SLOT_HELD, to))
		return;
	h->let_go_ns[at] = clock_now_ns(CLOCK_MONOTONIC);
	ptrace(PTRACE_DETACH, tid, 0, signal);
}

/* Also if it was let go to be decided just now. */
void slot_release(struct holder *h, uint32_t at, int signal)
{
	h->is_decided[at] = 0;
	slot_change(&h->state->slots[at], AUDIT_SLOT_TURN, AUDIT_SLOT_RELEASED);
	slot_let_go(h, at, AUDIT_SLOT_RELEASED, signal);
}

/* It is let run, or answered, when it meets its probe. */
static void slot_decide(struct holder *h, uint32_t at)
{
	h->is_decided[at] = 1;
	slot_let_go(h, at, AUDIT_SLOT_TURN, /* signal= */ 0);
}

static bool slot_has_request(const struct holder *h, const struct audit_slot *slot)
{
	for (uint32_t i = 0; i < slot->chain.n && i < LEDGER_DEPTH; i++)
		if (h->state->books[ledger_index(slot->chain.tenants[i], slot->device)].low)
			return true;
	return false;
}

/* Whether waiting is over: it fits, or a limit was lowered and it never will. */
static bool slot_is_decided(const struct holder *h, const struct audit_slot *slot)
{
	struct ledger *books = h->state->books;
	uint32_t at;
	int r;

	if (slot->reason == AUDIT_REASON_NONE)
		return true;
	r = ledger_chain_fits(books, &slot->chain, slot->device, slot->size, &at);
	if (r)
		return r == LEDGER_E_NEVER;
	return !slot_has_request(h, slot) ||
	       slot->size <= ledger_left(&books[ledger_index(0, slot->device)]);
}

/* Whether an older call waits for memory that this one wants too, or has just been let go for it. */
static bool slot_is_behind(const struct holder *h, const struct audit_slot *slot)
{
	if (h->is_ahead[ledger_index(0, slot->device)] && slot_has_request(h, slot))
		return true;
	for (uint32_t i = 0; i < slot->chain.n && i < LEDGER_DEPTH; i++)
		if (h->is_ahead[ledger_index(slot->chain.tenants[i], slot->device)])
			return true;
	return false;
}

/* Whether the launches of a process are probed by now. */
static bool process_is_probed(const struct holder *h, const struct audit_slot *slot)
{
	const struct audit_process *p = &h->state->processes[slot->process & (AUDIT_PROCESSES - 1)];

	return audit_process_tgid(p) != slot->tgid || p->probed == h->state->control.generation;
}

/* What waits for something else than memory: device time, probes, or the daemon's word. */
static bool slot_may_go_on(const struct holder *h, const struct audit_slot *slot, uint64_t now)
{
	if (slot->reason == AUDIT_REASON_COMPUTE)
		return share_is_due(&h->state->shares[ledger_index(slot->tenant, slot->device)],
				    now);
	return now >= slot->deadline_ns ||
	       (slot->reason == AUDIT_REASON_PROBES && process_is_probed(h, slot));
}

void queue_run(struct holder *h)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	memset(h->is_ahead, 0, sizeof(h->is_ahead));
	for (size_t i = 0; i < h->n_held; i++) {
		struct audit_slot *slot = &h->state->slots[h->held[i]];

		if (slot->reason >= AUDIT_REASON_COMPUTE) {
			if (slot_may_go_on(h, slot, now))
				slot_decide(h, h->held[i]);
			continue;
		}
		if (now >= slot->deadline_ns && slot->reason != AUDIT_REASON_NONE) {
			slot_decide(h, h->held[i]);
			continue;
		}
		if (slot_is_behind(h, slot))
			continue;
		if (slot_is_decided(h, slot))
			slot_decide(h, h->held[i]);
		if (slot->reason != AUDIT_REASON_NONE)
			h->is_ahead[ledger_index(slot->tenant, slot->device)] = 1;
	}
	queue_tidy(h);
}
