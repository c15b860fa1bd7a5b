/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charging a process while it goes from some tenants to others.
 *
 * What a process has is charged to the tenants around it, and the sum stands in its own record. A change
 * of the charge touches all of them, one after the other, and so does a move; mixed, bytes would be
 * charged to one tenant and taken off another. So changes of the charge go on side by side, counted in
 * `charging`; who moves the process sets AUDIT_PROCESS_MOVING there, waits until the count is 0, and has
 * the record to himself.
 *
 * Either takes less than a microsecond and does not sleep, so whoever has to wait spins. The bound is for
 * the verifier, and for kernels that take the CPU away in between; then the caller does without.
 */
#ifndef AUDIT_BPF_MOVING_H
#define AUDIT_BPF_MOVING_H

#include "state.h"

#define MOVING_ROUNDS (1 << 22) /* some 20 ms */

struct moving_try {
	__u32 process;
	__u32 done;
};

static long charging_try(_unused_ __u32 i, struct moving_try *try)
{
	__u32 *charging = &PROCESS(try->process)->charging;
	__u32 was = READ_ONCE(*charging);

	try->done = !(was & AUDIT_PROCESS_MOVING) &&
		    __sync_val_compare_and_swap(charging, was, was + 1) == was;
	return try->done;
}

/** charging_begin() - the charge of a process is about to change. Return: whether it may */
alone int charging_begin(__u32 process)
{
	struct moving_try try = { .process = process };

	if (!charging_try(0, &try))
		bpf_loop(MOVING_ROUNDS, charging_try, &try, 0);
	return try.done;
}

static inlined void charging_end(__u32 process)
{
	__sync_fetch_and_sub(&PROCESS(process)->charging, 1);
}

static long moving_try(_unused_ __u32 i, struct moving_try *try)
{
	try->done = READ_ONCE(PROCESS(try->process)->charging) == AUDIT_PROCESS_MOVING;
	return try->done;
}

static inlined void moving_end(__u32 process)
{
	__sync_fetch_and_sub(&PROCESS(process)->charging, AUDIT_PROCESS_MOVING);
}

/** moving_begin() - have the record of a process to oneself. Return: whether that worked */
alone int moving_begin(__u32 process)
{
	struct moving_try try = { .process = process };
	__u32 *charging = &PROCESS(process)->charging;

	if (__sync_fetch_and_or(charging, AUDIT_PROCESS_MOVING) & AUDIT_PROCESS_MOVING)
		return 0;
	bpf_loop(MOVING_ROUNDS, moving_try, &try, 0);
	if (!try.done)
		moving_end(process);
	return try.done;
}

#endif
