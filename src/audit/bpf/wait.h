/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many threads may wait inside a program at once for what user space finds out.
 *
 * A program cannot sleep: who waits in one keeps a CPU busy. When hundreds of processes start together, those
 * that wait for the daemon would keep the CPU from it, and from the processes that it looks at. So no more
 * wait than half of the CPUs can carry, and two at least (max_waiting). The others go on as they would after
 * the longest wait: with what is likeliest, the books on the safe side until they are settled.
 */
#ifndef AUDIT_BPF_WAIT_H
#define AUDIT_BPF_WAIT_H

#include "state.h"

/** wait_begin() - be one of those who wait. Return: whether there is room; then wait_end() is to follow */
static inlined int wait_begin(void)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&n_waiting, &zero);

	if (!n)
		return 0;
	if (__sync_fetch_and_add(n, 1) < max_waiting)
		return 1;
	__sync_fetch_and_sub(n, 1);
	return 0;
}

static inlined void wait_end(void)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&n_waiting, &zero);

	if (n)
		__sync_fetch_and_sub(n, 1);
}

#endif
