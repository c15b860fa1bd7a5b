/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps: all that outlives a call. Every one is pinned and shared by successive generations.
 *
 * What user space maps is one variable, so that its layout is that of audit.h and nothing else; the
 * programs index into it without a look-up.
 */
#ifndef AUDIT_BPF_STATE_H
#define AUDIT_BPF_STATE_H

#include "kernel.h"
#include "../blocks.h"
#include "../room.h"
#include "../rows.h"

/* Set before loading. */
const volatile __u32 my_generation = 0;
const volatile _Bool can_write_context = 0;
const volatile _Bool can_write_user = 0;
const volatile __u32 linger_rounds = 0;	    /* for a test: how long a hit of a probe is let pass */
const volatile __u32 max_waiting = 2;	    /* threads inside a program, see wait.h */
const volatile _Bool no_thread_records = 0; /* for a test: the kernel has no memory for them */

struct audit_state state;

#define control	  state.control
#define devices	  state.devices
#define books	  state.books
#define processes state.processes
#define slots	  state.slots

static const struct row rows[ROW_COUNT] = {
#include "../rows.def"
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AUDIT_OBJECTS);
	__type(key, struct object_key);
	__type(value, struct object);
} objects SEC(".maps");

/* Threads that wait inside a program, see wait.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} n_waiting SEC(".maps");

/* What tenants are bound to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} users SEC(".maps");

/* Users whom the daemon was asked for, bound to a tenant or not: enum audit_met. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} met SEC(".maps");

/*
 * Process id to tenant; children are entered when they are forked. The loader makes it as large as this
 * machine can have processes, so nobody's flood keeps a child of somebody else out.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} trees SEC(".maps");

/* Process id to the number of its record. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AUDIT_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, AUDIT_EVENTS_SIZE);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, AUDIT_WAKES_SIZE);
} wakes SEC(".maps");

/*
 * What is known of one thread: its stack of contexts and the call it is in. The kernel frees it with
 * the thread. Everything that would be too large for a stack frame lives here as well.
 */
struct thread {
	__u64 contexts[AUDIT_CONTEXT_DEPTH];
	__u32 n_contexts;
	__u32 device; /* of the context on top, AUDIT_NO_DEVICE while unknown */

	__u32 passed; /* generation that let the hit of a probe at `passed_sp` pass, as it had not begun */
	__u64 passed_sp;
	__u32 active; /* between entry and return of a call */
	__u32 asked; /* an answer was asked for; a return of 0 means that the call ran all the same */
	__u32 row;
	__u32 process; /* number of its record, and its serial then */
	__u32 serial;
	__u32 slot; /* number + 1 of the slot it waits in */
	__s32 ret_delta;
	__u32 call_device;
	__u32 ordinal; /* whose device is not known, and the devices that it may be: see place.h */
	__u32 candidates;
	__u64 sp;
	__u64 arguments[8]; /* six in registers; a power of two for the index */
	__u64 size;	    /* what the call asks for */
	__u64 reserved;	    /* what of this was reserved */
	__u64 pool;
	__u64 stream; /* that a pool gives to, see stream_of() */
	__u32 grows;  /* no piece that is free in the pool is known to be so large */
	__u64 credit; /* what of `size` was given back to the pool before and is not reserved again */

	struct ledger_chain chain;
	__u32 refused_by;     /* tenant */
	__u32 reason;	      /* enum audit_reason */
	struct object fresh;  /* about to be recorded */
	struct object object; /* taken by a free */
	__u64 object_handle;
	__u32 object_kind;
	__u64 scratch[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* Whose ledger is the device's. */
#define WHOLE_DEVICE 0

#define TENANT(i)      (&state.tenants[(i) & (LEDGER_TENANTS - 1)])
#define DEVICE(i)      (&devices[(i) & (LEDGER_DEVICES - 1)])
#define PROCESS(i)     (&processes[(i) & (AUDIT_PROCESSES - 1)])
#define SLOT(i)	       (&slots[(i) & (AUDIT_SLOTS - 1)])
#define ROW_AT(i)      (&rows[(i) < ROW_COUNT ? (i) : 0])
#define ARGUMENT(t, i) ((t)->arguments[(i)&7])

#endif
