// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that are charged: adopting those that run, settling by the device's number, taking off what
 * the dead held whose end no program has seen.
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

int engine_each_process(const struct engine *engine, engine_process_fn fn, void *userdata)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++) {
		int r;

		if (!audit_process_tgid(&engine->state->processes[i]))
			continue;
		r = fn(&engine->state->processes[i], userdata);
		if (r)
			return r;
	}
	return 0;
}

/* Charge a process to another chain, as the programs do at a call. */
static void process_move(struct engine *engine, struct audit_process *p, const struct ledger_chain *to)
{
	if (__sync_val_compare_and_swap(&p->moving, 0, 1))
		return;
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		uint64_t bytes = p->use[i] + p->overhead[i];

		ledger_chain_uncharge(engine->state->books, &p->chain, i, bytes);
		ledger_chain_charge(engine->state->books, to, i, bytes);
	}
	if (p->chain.n)
		__sync_fetch_and_sub(&engine->state->tenants[p->chain.tenants[0]].n_processes, 1);
	if (to->n)
		__sync_fetch_and_add(&engine->state->tenants[to->tenants[0]].n_processes, 1);
	p->chain = *to;
	__sync_lock_release(&p->moving);
}

static int process_new(struct engine *engine, pid_t pid, const struct ledger_chain *chain, uint64_t cgroup)
{
	uint64_t claimed = (uint64_t)pid << 32 | AUDIT_PROCESS_CLAIMED;

	for (uint32_t i = 0; i < PROCESS_PROBES; i++) {
		struct audit_process *p = &engine->state->processes[(pid + i) & (AUDIT_PROCESSES - 1)];

		if (__sync_val_compare_and_swap(&p->owner, AUDIT_PROCESS_FREE, claimed) != AUDIT_PROCESS_FREE)
			continue;
		memset((char *)p + sizeof(p->owner), 0, sizeof(*p) - sizeof(p->owner));
		memset(p->device_of, AUDIT_NO_DEVICE, sizeof(p->device_of));
		p->serial = __sync_add_and_fetch(&engine->state->control.next_serial, 1);
		p->bindings = engine->state->control.bindings;
		p->cgroup = cgroup;
		p->chain = *chain;
		__sync_fetch_and_add(&engine->state->tenants[chain->tenants[0]].n_processes, 1);
		__atomic_store_n(&p->owner, (uint64_t)pid << 32 | AUDIT_PROCESS_LIVE, __ATOMIC_RELEASE);
		return 0;
	}
	return ENGINE_E_FULL;
}

int engine_adopt(struct engine *engine, pid_t pid)
{
	struct audit_process *p = process_find(engine->state, pid);
	struct ledger_chain chain;
	uint64_t cgroup = 0;
	int r = chain_of_pid(engine, pid, &chain, &cgroup);

	if (r)
		return r;
	if (p)
		process_move(engine, p, &chain);
	else if (chain.n)
		r = process_new(engine, pid, &chain, cgroup);
	return r;
}

static void overhead_change(struct engine *engine, const struct audit_process *p, unsigned device, uint64_t from,
			    uint64_t to)
{
	if (to > from) {
		ledger_chain_charge(engine->state->books, &p->chain, device, to - from);
		ledger_charge(book(engine, 0, device), to - from);
	} else {
		ledger_chain_uncharge(engine->state->books, &p->chain, device, from - to);
		ledger_uncharge(book(engine, 0, device), from - to);
	}
}

int engine_settle(struct engine *engine, pid_t pid, unsigned device, uint64_t device_bytes, uint64_t n_changes)
{
	struct audit_process *p = process_find(engine->state, pid);
	uint64_t api, wanted, now;

	if (!p)
		return ENGINE_E_GONE;
	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	api = p->use[device];
	if (__atomic_load_n(&p->n_changes, __ATOMIC_ACQUIRE) != n_changes)
		return ENGINE_E_CHANGED;
	wanted = device_bytes > api ? device_bytes - api : 0;
	now = p->overhead[device];
	overhead_change(engine, p, device, now, wanted);
	/* If the process has ended meanwhile, its overhead was taken off as it was: the change is taken back. */
	if (!__sync_bool_compare_and_swap(&p->overhead[device], now, wanted))
		overhead_change(engine, p, device, wanted, now);
	return 0;
}

/* --- the dead ---------------------------------------------------------------------------------------- */

static bool process_is_dead(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) != 0;
}

/* Take off all that a dead process was charged: what the programs do when they see the end. */
static void process_end(struct engine *engine, struct audit_process *p, uint32_t tgid)
{
	uint64_t live = (uint64_t)tgid << 32 | AUDIT_PROCESS_LIVE;
	uint64_t claimed = (uint64_t)tgid << 32 | AUDIT_PROCESS_CLAIMED;

	if (!__sync_bool_compare_and_swap(&p->owner, live, claimed))
		return;
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		uint64_t bytes = __sync_lock_test_and_set(&p->use[i], 0) +
				 __sync_lock_test_and_set(&p->overhead[i], 0);

		ledger_chain_uncharge(engine->state->books, &p->chain, i, bytes);
		ledger_uncharge(book(engine, 0, i), bytes);
	}
	if (p->chain.n)
		__sync_fetch_and_sub(&engine->state->tenants[p->chain.tenants[0]].n_processes, 1);
	p->serial = 0;
	__atomic_store_n(&p->owner, AUDIT_PROCESS_FREE, __ATOMIC_RELEASE);
}

static bool serial_lives(const struct engine *engine, uint32_t serial)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++)
		if (engine->state->processes[i].serial == serial)
			return true;
	return false;
}

/* Records of allocations whose process is gone. */
static void objects_reap(struct engine *engine)
{
	int fd = engine_map_fd(engine, "objects");
	struct object_key key, next;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;
	uint32_t last_serial = 0;
	bool lives = false;

	while (more) {
		struct object object;

		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (key.serial != last_serial) {
			last_serial = key.serial;
			lives = serial_lives(engine, key.serial);
		}
		if (!lives && bpf_map_lookup_elem(fd, &key, &object) == 0 && bpf_map_delete_elem(fd, &key) == 0)
			__sync_fetch_and_sub(&engine->state->tenants[object.tenant % LEDGER_TENANTS].n_objects, 1);
	}
}

int engine_reap(struct engine *engine)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++) {
		struct audit_process *p = &engine->state->processes[i];
		uint32_t tgid = audit_process_tgid(p);

		if (tgid && process_is_dead(tgid))
			process_end(engine, p, tgid);
	}
	for (uint32_t i = 0; i < AUDIT_SLOTS; i++) {
		const struct audit_slot *slot = &engine->state->slots[i];
		uint32_t state = slot->state;

		if (state > AUDIT_SLOT_CLAIMED && process_is_dead(slot->tgid))
			audit_slot_end(engine->state, i, state);
	}
	objects_reap(engine);
	return 0;
}
