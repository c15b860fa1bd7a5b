// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that are charged: adopting those that run, settling by the device's number, taking off what
 * the dead held whose end no program has seen.
 *
 * The books themselves are changed by a program (bpf/order.h): it is seen through, even if this process is
 * killed in the middle.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "priv.h"

#define DROP_NS	       300000000000ULL /* a credit that was used up is no end of anything, but a record */
#define KERNEL_EXITING 4	       /* PF_EXITING */

int engine_each_process(const struct engine *engine, engine_process_fn fn, void *userdata)
{
	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		int r;

		if (!audit_process_tgid(process_at(engine, i)))
			continue;
		r = fn(process_at(engine, i), userdata);
		if (r)
			return r;
	}
	return 0;
}

struct audit_process *process_find(const struct engine *engine, pid_t pid)
{
	uint32_t tgid = pid, at;
	struct audit_process *p;

	if (bpf_map_lookup_elem(engine_map_fd(engine, "numbers"), &tgid, &at))
		return NULL;
	p = process_at(engine, at);
	return audit_process_tgid(p) == tgid ? p : NULL;
}

/*
 * A process whose last thread has ended lives on as a zombie until its parent asks for it; its descriptor tells
 * that as well. All that are charged are asked now and then, and their files in /proc cost ten times that.
 */
static bool process_is_dead(pid_t pid)
{
	struct pollfd fd = { .fd = fd_of_process(pid), .events = POLLIN };
	bool dead;

	if (fd.fd < 0)
		return fd.fd == -ESRCH;
	dead = poll(&fd, 1, 0) == 1;
	close(fd.fd);
	return dead;
}

bool process_is_exiting(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[32], line[512], *end;
	unsigned flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return true;
	end = strrchr(line, ')');
	return end && sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & KERNEL_EXITING;
}

int engine_order(struct engine *engine, const struct audit_order *order)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	engine->state->order = *order;
	if (bpf_prog_test_run_opts(engine->program_fds[ENGINE_ORDER], &options))
		return -errno;
	return engine->state->order.result;
}

int engine_adopt(struct engine *engine, pid_t pid)
{
	struct audit_order adopt = { .kind = AUDIT_ORDER_ADOPT, .tgid = pid };
	uint64_t cgroup = 0;
	uid_t user = 0;
	int r = chain_of_pid(engine, pid, &adopt.chain, &cgroup, &user);

	if (r)
		return r;
	adopt.cgroup = cgroup;
	adopt.user = user;
	r = engine_order(engine, &adopt);
	/* It may have ended just before, and then nobody else ends what was made for it. */
	if (r == 0 && process_is_dead(pid))
		ended_see_to(engine);
	/* Somebody is moving it already. */
	return r == ENGINE_E_CHANGED ? 0 : r;
}

int engine_settle(struct engine *engine, pid_t pid, unsigned device, uint64_t device_bytes,
		  uint64_t moved)
{
	const struct audit_order settle = { .kind = AUDIT_ORDER_SETTLE,
					    .tgid = pid,
					    .device = device,
					    .bytes = device_bytes,
					    .moved = moved };

	struct audit_process *p;
	uint64_t before;
	int r;

	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	p = process_find(engine, pid);
	before = p ? p->overhead[device] : 0;
	r = engine_order(engine, &settle);
	if (p && r >= 0)
		lingering_inherit(engine, p, device, before);
	return r;
}

uint64_t engine_settling(const struct engine *engine)
{
	return __atomic_load_n(&engine->state->control.settle_wanted, __ATOMIC_ACQUIRE);
}

static bool process_has_idle(const struct audit_process *p)
{
	for (size_t i = 0; i < LEDGER_DEVICES; i++)
		if (__atomic_load_n(&p->idle[i], __ATOMIC_RELAXED))
			return true;
	return false;
}

static int mark_may_shrink(const struct audit_process *p, void *userdata)
{
	struct audit_tenant *tenants = userdata;

	if (!process_has_idle(p))
		return 0;
	for (uint32_t i = 0; i < p->chain.n && i < LEDGER_DEPTH; i++)
		tenants[p->chain.tenants[i] & (LEDGER_TENANTS - 1)].may_shrink = 1;
	tenants[0].may_shrink = 1;
	return 0;
}

/* Whether it is charged with what only the dead had, as far as is known. */
static bool has_dead_bytes(struct engine *engine, unsigned device)
{
	return __atomic_load_n(&book(engine, 0, device)->low, __ATOMIC_ACQUIRE) >
	       engine->unowned[device];
}

void engine_settled(struct engine *engine, uint64_t since)
{
	lingering_end(engine);
	/* First none, then those found: the programs add to the idle memory before they set the mark. */
	for (size_t i = 0; i < engine->n_tenants; i++)
		__atomic_store_n(&engine->state->tenants[i].may_shrink, 0, __ATOMIC_SEQ_CST);
	engine_each_process(engine, mark_may_shrink, engine->state->tenants);
	for (unsigned i = 0; i < LEDGER_DEVICES; i++)
		if (has_dead_bytes(engine, i))
			engine->state->tenants[0].may_shrink = 1;
	__atomic_store_n(&engine->state->control.settled, since, __ATOMIC_RELEASE);
}

uint64_t engine_device_ended(const struct engine *engine, unsigned device)
{
	return __atomic_load_n(&engine->state->control.ended[device], __ATOMIC_ACQUIRE);
}

int engine_device_unowned(struct engine *engine, unsigned device, uint64_t bytes, uint64_t ended)
{
	const struct audit_order unowned = {
		.kind = AUDIT_ORDER_UNOWNED, .device = device, .bytes = bytes, .moved = ended
	};

	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	engine->unowned[device] = bytes;
	/* Mostly nothing has changed; see bpf/order.h. */
	if (book(engine, 0, device)->low == bytes && engine_device_ended(engine, device) == ended)
		return 0;
	return engine_order(engine, &unowned);
}

/* --- devices and their numbers ------------------------------------------------------------------------ */

int engine_hint(struct engine *engine, pid_t pid, const uint8_t *device_of)
{
	struct audit_process *p = process_find(engine, pid);

	if (!p)
		return ENGINE_E_GONE;
	memcpy(p->hint_of, device_of, sizeof(p->hint_of));
	__atomic_store_n(&p->hinted, 1, __ATOMIC_RELEASE);
	return 0;
}

int engine_place(struct engine *engine, pid_t pid, unsigned device)
{
	struct audit_process *p = process_find(engine, pid);
	uint32_t placing = p ? __atomic_load_n(&p->placing, __ATOMIC_ACQUIRE) : 0;

	if (!placing || placing > LEDGER_DEVICES || device >= LEDGER_DEVICES)
		return ENGINE_E_GONE;
	__atomic_store_n(&p->device_of[placing - 1], device, __ATOMIC_RELEASE);
	__sync_val_compare_and_swap(&p->placing, placing, 0);
	return 0;
}

/* --- the dead ---------------------------------------------------------------------------------------- */

bool ended_see_to(struct engine *engine)
{
	bool all = true;

	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		const struct audit_process *p = process_at(engine, i);
		struct audit_order end = { .kind = AUDIT_ORDER_END,
					   .serial = p->serial,
					   .tgid = audit_process_tgid(p) };

		if (end.tgid && (p->ended || process_is_dead(end.tgid)) &&
		    engine_order(engine, &end) == ENGINE_E_CHANGED)
			all = false;
	}
	return all;
}

/* Return: whether a block of the table has become free. */
static bool table_tidy(struct engine *engine, enum audit_table table)
{
	bool any = false;

	for (uint32_t at = 0; at < AUDIT_BLOCK * AUDIT_BLOCKS; at += AUDIT_BLOCK) {
		if (!block_is_used(engine->state, table, at))
			continue;
		if (table == AUDIT_TABLE_PROCESSES)
			view_reach(engine->view, process_at(engine, at),
				   AUDIT_BLOCK * sizeof(struct audit_process));
		else
			view_reach(engine->view, slot_at(engine, at),
				   AUDIT_BLOCK * sizeof(struct audit_slot));
		any |= block_tidy(engine->state, table, at);
	}
	return any;
}

/* What is not looked at any more need not be mapped, and what is comes back by itself. */
static void tables_tidy(struct engine *engine)
{
	bool processes = table_tidy(engine, AUDIT_TABLE_PROCESSES);

	if (table_tidy(engine, AUDIT_TABLE_SLOTS) || processes)
		engine_trim(engine);
}

/* To look for them costs what the table has room for, two million, however few there are. */
static int records_drop(struct engine *engine)
{
	engine->n_stale = __atomic_load_n(&engine->state->control.n_stale, __ATOMIC_ACQUIRE);
	engine->dropped_ns = clock_now_ns(CLOCK_MONOTONIC);
	return engine_order(engine, &(struct audit_order){ .kind = AUDIT_ORDER_REAP });
}

static void dead_take_off(struct engine *engine)
{
	ended_see_to(engine);
	blocks_each(engine->state, AUDIT_TABLE_SLOTS, i) {
		const struct audit_slot *slot = slot_at(engine, i);
		uint32_t state = slot->state;

		if (state > AUDIT_SLOT_CLAIMED && process_is_dead(slot->tgid))
			audit_slot_end(engine->state, i, state);
	}
	tables_tidy(engine);
}

int engine_reap(struct engine *engine)
{
	dead_take_off(engine);
	return records_drop(engine);
}

int reap_soon(struct engine *engine)
{
	const struct audit_control *control = &engine->state->control;
	uint32_t n_stale;

	dead_take_off(engine);
	n_stale = __atomic_load_n(&control->n_stale, __ATOMIC_ACQUIRE);
	if (n_stale == engine->n_stale &&
	    clock_now_ns(CLOCK_MONOTONIC) < engine->dropped_ns + DROP_NS)
		return 0;
	return records_drop(engine);
}
