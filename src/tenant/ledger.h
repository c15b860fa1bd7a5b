/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The arithmetic of the books: one ledger per tenant and device.
 *
 * The same header compiles into the BPF programs and into user space, and both
 * work on the same memory at the same time, so every change is one atomic step
 * and no step takes a lock. `current` holds what is charged and what is
 * reserved by calls that have not returned yet; a call that the driver refuses
 * gives its reservation back. Nothing here knows where a ledger lives or what
 * time it is.
 *
 * The hard thing is the chain. A process is charged to several tenants at once
 * and must fit each of them. The walk goes from the nearest tenant outwards, so
 * that a tenant which floods against its own limit never touches the ledger of
 * the one around it, and looks before it adds, so that a refusal by an outer
 * tenant raises no inner counter even for a moment in the ordinary case.
 */
#ifndef TENANT_LEDGER_H
#define TENANT_LEDGER_H

#include <linux/types.h>

#define LEDGER_TENANTS	1024 /* a power of two; tenant 0 stands for the whole device */
#define LEDGER_DEVICES	16   /* a power of two */
#define LEDGER_DEPTH	8    /* tenants around one process */
#define LEDGER_NO_LIMIT (~0ULL)

/* Answers of the functions below. */
#define LEDGER_E_OVER  1 /* does not fit now */
#define LEDGER_E_NEVER 2 /* could not fit even if all else were freed */
#define LEDGER_E_BUSY  3 /* too many others changed the ledger meanwhile; ask again */

/* Compare-and-swap is tried this often: a BPF program may not loop without a bound. */
#define LEDGER_TRIES 64

/**
 * struct ledger - what one tenant uses of one device
 * @current:	bytes charged and reserved
 * @peak:	highest value that @current ever had
 * @max:	memory.max, LEDGER_NO_LIMIT when there is none
 * @low:	memory.low, 0 when there is none
 * @n_refused:	calls that were answered instead of run
 * @n_held:	calls that had to wait
 * @n_queued:	calls that wait now, kept by the holder process
 */
struct ledger {
	__u64 current;
	__u64 peak;
	__u64 max;
	__u64 low;
	__u64 n_refused;
	__u64 n_held;
	__u64 n_queued;
	__u64 unused;
};

/*
 * For BPF the steps on one ledger are functions that the verifier looks at once, by themselves (it takes
 * their argument to be possibly NULL), and those on a chain are looked at where they are called.
 */
#ifdef __bpf__
#define LEDGER_STEP __attribute__((__noinline__))
#define LEDGER_WALK static __attribute__((__noinline__, unused))
#else
#define LEDGER_STEP static inline __attribute__((unused))
#define LEDGER_WALK static inline __attribute__((unused))
#endif

/** ledger_index() - where the ledger of a tenant on a device stands in the table of all */
static inline __attribute__((always_inline)) __u32 ledger_index(__u32 tenant, __u32 device)
{
	__u64 index =
		(tenant & (LEDGER_TENANTS - 1)) * LEDGER_DEVICES + (device & (LEDGER_DEVICES - 1));

#ifdef __bpf__
	/* Older verifiers lose the bounds in the sum, and the compiler knows that they hold: say it once more. */
	__asm__ volatile("%0 &= %1" : "+r"(index) : "i"(LEDGER_TENANTS * LEDGER_DEVICES - 1));
#endif
	return index;
}

/** ledger_left() - bytes that still fit under memory.max */
static inline __attribute__((always_inline)) __u64 ledger_left(const struct ledger *l)
{
	__u64 max = *(volatile const __u64 *)&l->max;
	__u64 current = *(volatile const __u64 *)&l->current;

	return current < max ? max - current : 0;
}

static inline __attribute__((always_inline)) void ledger_raise_peak(struct ledger *l, __u64 now)
{
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 peak = *(volatile __u64 *)&l->peak;

		if (now <= peak || __sync_val_compare_and_swap(&l->peak, peak, now) == peak)
			return;
	}
}

/**
 * ledger_reserve() - add @bytes if they fit under memory.max
 *
 * Return: 0, LEDGER_E_OVER, LEDGER_E_NEVER or LEDGER_E_BUSY; nothing was added then.
 */
LEDGER_STEP int ledger_reserve(struct ledger *l, __u64 bytes)
{
	if (!l)
		return LEDGER_E_BUSY;
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 max = *(volatile __u64 *)&l->max;
		__u64 current = *(volatile __u64 *)&l->current;

		if (bytes > max)
			return LEDGER_E_NEVER;
		if (current > max || bytes > max - current)
			return LEDGER_E_OVER;
		if (__sync_val_compare_and_swap(&l->current, current, current + bytes) == current) {
			ledger_raise_peak(l, current + bytes);
			return 0;
		}
	}
	return LEDGER_E_BUSY;
}

/** ledger_charge() - add @bytes whether they fit or not: memory that exists already */
LEDGER_STEP int ledger_charge(struct ledger *l, __u64 bytes)
{
	if (!l)
		return 0;
	ledger_raise_peak(l, __sync_fetch_and_add(&l->current, bytes) + bytes);
	return 0;
}

/**
 * ledger_uncharge() - take @bytes off, never below zero
 *
 * Each charge is taken off once, by whoever removes the record of it, so there
 * is always enough; the bound keeps a fault of ours from showing as 17 TB.
 *
 * Return: the bytes that were taken off.
 */
LEDGER_STEP __u64 ledger_uncharge(struct ledger *l, __u64 bytes)
{
	if (!l)
		return 0;
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 current = *(volatile __u64 *)&l->current;
		__u64 taken = bytes < current ? bytes : current;

		if (__sync_val_compare_and_swap(&l->current, current, current - taken) == current)
			return taken;
	}
	__sync_fetch_and_sub(&l->current, bytes);
	return bytes;
}

/**
 * struct ledger_chain - the tenants around a process, nearest first
 * @n:		how many there are
 * @tenants:	their numbers
 */
struct ledger_chain {
	__u32 n;
	__u16 tenants[LEDGER_DEPTH];
};

/** ledger_chain_has() - whether a tenant is in a chain */
LEDGER_WALK int ledger_chain_has(const struct ledger_chain *chain, __u32 tenant)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < chain->n && chain->tenants[i] == tenant)
			return 1;
	return 0;
}

/** ledger_chain_undo() - take @bytes off the first @n tenants of a chain */
LEDGER_WALK int ledger_chain_undo(struct ledger *books, const struct ledger_chain *chain, __u32 n,
				  __u32 device, __u64 bytes)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		if (i >= n)
			break;
		ledger_uncharge(&books[ledger_index(chain->tenants[i], device)], bytes);
	}
	return 0;
}

/**
 * ledger_chain_fits() - whether @bytes fit every tenant of a chain just now
 * @ret_index:	where in the chain the first that refuses stands
 */
LEDGER_WALK int ledger_chain_fits(struct ledger *books, const struct ledger_chain *chain,
				  __u32 device, __u64 bytes, __u32 *ret_index)
{
	int r = 0;

	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		const struct ledger *l;

		if (i >= chain->n)
			break;
		l = &books[ledger_index(chain->tenants[i], device)];
		if (bytes > l->max) {
			*ret_index = i;
			return LEDGER_E_NEVER;
		}
		if (r == 0 && bytes > ledger_left(l)) {
			*ret_index = i;
			r = LEDGER_E_OVER;
		}
	}
	return r;
}

/**
 * ledger_chain_reserve() - reserve @bytes with every tenant of a chain, or with none
 * @books:	the table of all ledgers
 * @chain:	whom to charge
 * @device:	on which device
 * @bytes:	how much
 * @ret_index:	where in the chain the tenant that refused stands, on any answer but 0
 *
 * Return: as ledger_reserve().
 */
LEDGER_WALK int ledger_chain_reserve(struct ledger *books, const struct ledger_chain *chain,
				     __u32 device, __u64 bytes, __u32 *ret_index)
{
	int r = ledger_chain_fits(books, chain, device, bytes, ret_index);

	if (r)
		return r;
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		if (i >= chain->n)
			break;
		r = ledger_reserve(&books[ledger_index(chain->tenants[i], device)], bytes);
		if (r) {
			*ret_index = i;
			ledger_chain_undo(books, chain, i, device, bytes);
			return r;
		}
	}
	return 0;
}

/** ledger_chain_charge() - charge @bytes to every tenant of a chain, whether they fit or not */
LEDGER_WALK int ledger_chain_charge(struct ledger *books, const struct ledger_chain *chain,
				    __u32 device, __u64 bytes)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		if (i >= chain->n)
			break;
		ledger_charge(&books[ledger_index(chain->tenants[i], device)], bytes);
	}
	return 0;
}

/** ledger_chain_uncharge() - take @bytes off every tenant of a chain */
static inline __attribute__((always_inline)) int
ledger_chain_uncharge(struct ledger *books, const struct ledger_chain *chain, __u32 device,
		      __u64 bytes)
{
	return ledger_chain_undo(books, chain, chain->n, device, bytes);
}

/** ledger_chain_left() - bytes that the tightest tenant of a chain still has */
LEDGER_WALK __u64 ledger_chain_left(const struct ledger *books, const struct ledger_chain *chain,
				    __u32 device)
{
	__u64 left = LEDGER_NO_LIMIT;

	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		__u64 here;

		if (i >= chain->n)
			break;
		here = ledger_left(&books[ledger_index(chain->tenants[i], device)]);
		if (here < left)
			left = here;
	}
	return left;
}

#endif
