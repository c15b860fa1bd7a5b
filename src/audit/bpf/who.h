/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is charged: from the current thread to its process' record and chain of tenants.
 *
 * The chain is looked up once per process and again when a binding has changed, or the process has moved
 * to another cgroup or become another user. Its charge moves along, carried by one thread (moving.h).
 */
#ifndef AUDIT_BPF_WHO_H
#define AUDIT_BPF_WHO_H

#include "event.h"
#include "moving.h"

#define WHO_CGROUP_LEVELS 16
#define WHO_SPREAD	  0x9e3779b1 /* odd: successive numbers lie far apart */
#define WHO_ROUNDS	  (1 << 16)

static noinline int chain_add(struct ledger_chain *chain, const __u32 *tenant)
{
	__u32 n = chain->n;

	if (!tenant || !*tenant || n >= LEDGER_DEPTH || ledger_chain_has(chain, *tenant))
		return 0;
	chain->tenants[n & (LEDGER_DEPTH - 1)] = *tenant;
	chain->n = n + 1;
	return 0;
}

static noinline int chain_add_cgroups(struct ledger_chain *chain)
{
	for (int level = WHO_CGROUP_LEVELS - 1; level >= 0; level--) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (id)
			chain_add(chain, bpf_map_lookup_elem(&cgroups, &id));
	}
	return 0;
}

#define WHO_NESTED 33 /* user namespaces: the kernel allows no more */

/*
 * Who made the user namespace that the current process is in, the outermost of them: a user may have
 * thousands of user ids there, and all are his. 0 where root did, or there is none.
 */
alone int namespace_maker(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct user_namespace *ns = BPF_CORE_READ(task, cred, user_ns);

	for (int i = 0; i < WHO_NESTED; i++) {
		if (BPF_CORE_READ(ns, level) <= 1)
			break;
		ns = BPF_CORE_READ(ns, parent);
	}
	return BPF_CORE_READ(ns, level) == 1 ? BPF_CORE_READ(ns, owner.val) : 0;
}

/** chain_find() - the tenants around the current process, nearest first */
alone int chain_find(struct ledger_chain *chain)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 uid = (__u32)bpf_get_current_uid_gid();
	__u32 maker = namespace_maker();

	if (!chain)
		return 0;
	chain->n = 0;
	if (tgid == READ_ONCE(control.daemon))
		return 0;
	chain_add(chain, bpf_map_lookup_elem(&trees, &tgid));
	chain_add_cgroups(chain);
	if (maker)
		chain_add(chain, bpf_map_lookup_elem(&users, &maker));
	chain_add(chain, bpf_map_lookup_elem(&users, &uid));
	if (chain->n == 0)
		chain_add(chain, &control.default_tenant);
	return chain->n;
}

/* Number of the record of a process, -1 if it has none. */
alone int process_find(__u32 tgid)
{
	__u32 *at = bpf_map_lookup_elem(&numbers, &tgid);

	return at && audit_process_tgid(PROCESS(*at)) == tgid ? *at & (AUDIT_PROCESSES - 1) : -1;
}

/* The same for the process of the current thread, which mostly knows it already. */
static noinline int process_find_own(const struct thread *t, __u32 tgid)
{
	if (audit_process_tgid(PROCESS(t->process)) == tgid)
		return t->process & (AUDIT_PROCESSES - 1);
	return process_find(tgid);
}

/* Fill in a record that was claimed. */
alone int process_init(__u32 process, const struct ledger_chain *chain, __u64 cgroup, __u32 user)
{
	struct audit_process *p = PROCESS(process);

	if (!chain)
		return 0;
	p->serial = __sync_fetch_and_add(&control.next_serial, 1) + 1;
	p->bindings = READ_ONCE(control.bindings);
	p->cgroup = cgroup;
	p->user = user;
	p->exports = p->listed = p->grows = 0;
	p->probed = 0;
	p->whole = 0;
	for (int i = 0; i < LEDGER_DEVICES; i++) {
		p->use[i] = 0;
		p->overhead[i] = 0;
		p->idle[i] = 0;
		p->pending[i] = 0;
		p->inherited[i] = 0;
		p->claimed[i] = 0;
		p->epoch[i] = 0;
		p->n_contexts[i] = 0;
		p->device_of[i] = AUDIT_NO_DEVICE;
		p->hint_of[i] = AUDIT_NO_DEVICE;
	}
	p->hinted = p->seen_on = p->placing = 0;
	p->signalled = AUDIT_SIGNALLED_NONE;
	p->n_giving = 0;
	p->ended = 0;
	p->chain = *chain;
	room_count(&state, chain, AUDIT_TABLE_PROCESSES, 1);
	return 0;
}

struct process_claim {
	__u32 at;
	__u32 tgid;
	__u32 done;
};

static long process_try(_unused_ __u32 i, struct process_claim *claim)
{
	__u64 claimed = (__u64)claim->tgid << 32 | AUDIT_PROCESS_CLAIMED;

	claim->at = (claim->at + 1) & (AUDIT_PROCESSES - 1);
	claim->done = __sync_val_compare_and_swap(&PROCESS(claim->at)->owner, AUDIT_PROCESS_FREE,
						  claimed) == AUDIT_PROCESS_FREE;
	return claim->done;
}

/**
 * process_claim() - a new record for a process
 *
 * Return: its number; -1 if there is none to be had, or if somebody else has just made one.
 */
alone int process_claim(__u32 tgid, const struct ledger_chain *chain, __u64 cgroup, __u32 user)
{
	__u32 random = READ_ONCE(control.next_serial) * WHO_SPREAD;
	struct process_claim claim = { .at = blocks_start(&state, AUDIT_TABLE_PROCESSES, random),
				       .tgid = tgid };
	struct audit_process *p;

	if (!chain || !room_is_left(&state, chain, AUDIT_TABLE_PROCESSES))
		return -1;
	bpf_loop(AUDIT_PROCESSES, process_try, &claim, 0);
	if (!claim.done)
		return -1;
	p = PROCESS(claim.at);
	block_use(&state, AUDIT_TABLE_PROCESSES, claim.at);
	if (bpf_map_update_elem(&numbers, &tgid, &claim.at, BPF_NOEXIST)) {
		WRITE_ONCE(p->owner, AUDIT_PROCESS_FREE);
		return -1;
	}
	process_init(claim.at, chain, cgroup, user);
	WRITE_ONCE(p->owner, (__u64)tgid << 32 | AUDIT_PROCESS_LIVE);
	return claim.at;
}

/* A new record for the current process, whose chain is in t->chain; -1 if there is none to be had. */
alone int process_new(struct thread *t, __u32 tgid)
{
	int at;

	if (!t)
		return -1;
	at = process_claim(tgid, &t->chain, bpf_get_current_cgroup_id(),
			   (__u32)bpf_get_current_uid_gid());
	if (at >= 0)
		event_send(AUDIT_EVENT_NEW_PROCESS, t, t->chain.tenants[0], AUDIT_REASON_NONE, 0);
	return at;
}

static noinline int process_move_charge(struct audit_process *p, const struct ledger_chain *to,
					__u32 device)
{
	__u64 bytes = READ_ONCE(p->use[device & (LEDGER_DEVICES - 1)]) +
		      READ_ONCE(p->idle[device & (LEDGER_DEVICES - 1)]) +
		      READ_ONCE(p->overhead[device & (LEDGER_DEVICES - 1)]);

	if (!bytes)
		return 0;
	ledger_chain_uncharge(books, &p->chain, device, bytes);
	ledger_chain_charge(books, to, device, bytes);
	return 0;
}

alone int process_change_chain(__u32 process, const struct ledger_chain *to)
{
	struct audit_process *p = PROCESS(process);

	if (!to)
		return 0;
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		process_move_charge(p, to, i);
	room_count(&state, to, AUDIT_TABLE_PROCESSES, 1);
	room_count(&state, &p->chain, AUDIT_TABLE_PROCESSES, -1);
	p->chain = *to;
	return 0;
}

static noinline int chain_is(const struct ledger_chain *chain, const struct ledger_chain *other)
{
	if (chain->n != other->n)
		return 0;
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < chain->n && chain->tenants[i] != other->tenants[i])
			return 0;
	return 1;
}

/**
 * process_move() - charge a process to @to from now on, with all that it has
 *
 * Mostly that is the chain that it has, as each start of a daemon binds all tenants anew; then nothing is
 * taken off and put back, or others could have it meanwhile.
 *
 * Return: 0 if somebody else is just moving it.
 */
alone int process_move(__u32 process, const struct ledger_chain *to, __u64 cgroup, __u32 user)
{
	struct audit_process *p = PROCESS(process);
	__u32 now = READ_ONCE(control.bindings);

	if (!to || !moving_begin(process))
		return 0;
	if (!chain_is(&p->chain, to))
		process_change_chain(process, to);
	p->cgroup = cgroup;
	p->user = user;
	p->bindings = now;
	moving_end(process);
	return 1;
}

/* Who it is now; another user than before may be one whom the daemon has not met. */
static inlined int process_become(__u32 process, struct thread *t, __u32 user)
{
	int is_other = PROCESS(process)->user != user;

	process_move(process, &t->chain, bpf_get_current_cgroup_id(), user);
	if (is_other)
		event_send(AUDIT_EVENT_NEW_PROCESS, t, t->chain.tenants[0], AUDIT_REASON_NONE, 0);
	return 0;
}

struct process_wait {
	__u64 sp;
	__u32 tgid;
	int at;
};

static long process_look(__u32 i, struct process_wait *w)
{
	char byte;

	w->at = process_find(w->tgid);
	if (i % YIELD_EVERY == 0)
		bpf_copy_from_user_task(&byte, 1, (void *)w->sp, bpf_get_current_task_btf(), 0);
	return w->at >= 0;
}

/* Another thread of the process has claimed its record and is about to fill it in. */
alone int process_await(__u32 tgid, __u64 sp)
{
	struct process_wait w = { .sp = sp, .tgid = tgid, .at = -1 };

	bpf_loop(WHO_ROUNDS, process_look, &w, 0);
	return w.at;
}

/**
 * process_get() - number of the current process' record, with its chain up to date
 *
 * Return: -1 if nobody is charged for it, -2 if somebody is, t->chain, but no record is to be had.
 */
static noinline int process_get(struct thread *t, __u64 sp)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 user = (__u32)bpf_get_current_uid_gid();
	int at = process_find_own(t, tgid);
	struct audit_process *p = PROCESS(at);

	if (at >= 0 && p->bindings == READ_ONCE(control.bindings) &&
	    p->cgroup == bpf_get_current_cgroup_id() && p->user == user)
		return at;
	chain_find(&t->chain);
	if (at >= 0) {
		process_become(at, t, user);
		return at;
	}
	if (t->chain.n == 0)
		return -1;
	at = process_new(t, tgid);
	if (at < 0)
		at = process_await(tgid, sp);
	/* What stood in the way may have been the record of a dead process of the same id. */
	if (at < 0)
		at = process_new(t, tgid);
	return at >= 0 ? at : -2;
}

/** process_device_of() - the device behind one of a process' ordinals, the likeliest while it is not known */
alone int process_device_of(__u32 process, __u32 ordinal)
{
	struct audit_process *p = PROCESS(process);
	__u32 n = READ_ONCE(control.n_devices);
	__u8 known;

	if (ordinal >= LEDGER_DEVICES)
		return 0;
	known = p->device_of[ordinal & (LEDGER_DEVICES - 1)];
	if (known != AUDIT_NO_DEVICE)
		return known;
	known = p->hint_of[ordinal & (LEDGER_DEVICES - 1)];
	if (known != AUDIT_NO_DEVICE)
		return known;
	/* One device: no question. Several: the order of the driver. */
	return n > 1 && ordinal < n ? ordinal : 0;
}

#endif
