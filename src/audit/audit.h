/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The records that the BPF programs and user space share.
 *
 * All of them lie in maps that are mapped into the daemon and the holder
 * process, so either side reads them without a system call. A word that both
 * sides write is changed by atomic steps only; beside each field stands who
 * writes it. A change of layout needs a new AUDIT_LAYOUT.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include <linux/types.h>
#include "../tenant/ledger.h"
#include "../tenant/share.h"

#define AUDIT_LAYOUT	    11
#define AUDIT_PROCESSES	    16384 /* processes that are charged; a power of two */
#define AUDIT_SLOTS	    16384 /* threads that wait at the same time; a power of two */
#define AUDIT_BLOCK	    64	  /* records of either; see blocks.h */
#define AUDIT_BLOCKS	    (AUDIT_PROCESSES / AUDIT_BLOCK)
#define AUDIT_OBJECTS	    (1 << 21) /* live allocations; see room.h */
#define AUDIT_ARRIVALS	    64	      /* in cgroups, until they are looked at; a power of two */
#define AUDIT_CONTEXT_DEPTH 8	      /* contexts on one thread's stack */
#define AUDIT_NAME	    64
#define AUDIT_WRITES	    3 /* values written over one result */
#define AUDIT_NO_DEVICE	    0xff

/* What happens to a call that nobody can hold or answer. */
enum audit_failure {
	AUDIT_FAILURE_KILL,
	AUDIT_FAILURE_ALLOW,
	AUDIT_FAILURE_DENY, /* answered by the program itself; on the rung `registers` alone */
};

/* How far a user is known of whom only the daemon can say which limits he has. */
enum audit_met {
	AUDIT_MET_NOBODY, /* not at all */
	AUDIT_MET_ASKED,  /* nobody said so in the time that a call waits which allocates nothing */
	AUDIT_MET_AWAITED, /* nor within the failure wait */
	AUDIT_MET,	   /* he is bound, or no tenant */
};

/* Tables that tenants share; what one of them may take of each is in room.h. */
enum audit_table {
	AUDIT_TABLE_PROCESSES,
	AUDIT_TABLE_SLOTS,
	AUDIT_TABLES,
};

/**
 * struct audit_tenant - one tenant
 * @in_use:		0 free, 1 in use (user space)
 * @on_failure:		enum audit_failure; of tenant 0, for users whom the daemon has not met (user space)
 * @wait_max_ns:	how long an allocation beyond memory.max is held (user space)
 * @wait_low_ns:	how long one that memory.low covers or borrows is held (user space)
 * @taken:		processes charged to it, its threads that wait and so on, those of nested tenants too (both)
 * @n_objects:		its recorded allocations (BPF)
 * @events_sent:	events sent in @events_window (BPF)
 * @paced:		its processes make no context before their launches are probed (user space)
 * @may_shrink:		some of its charge may be gone without a call having told: ask the devices before refusing
 *			(both)
 * @events_window:	the tenth of a second in which @events_sent counts (BPF)
 * @events_lost:	events that were over the cap or found the ring full (BPF)
 * @name:		the daemon's name for it, so that it is found again after a restart
 */
struct audit_tenant {
	__u32 in_use;
	__u32 on_failure;
	__u64 wait_max_ns;
	__u64 wait_low_ns;
	__u32 taken[AUDIT_TABLES];
	__u32 n_objects;
	__u32 events_sent;
	__u32 paced;
	__u32 may_shrink;
	__u64 events_window;
	__u64 events_lost;
	char name[AUDIT_NAME];
};

/*
 * What a context costs with a driver that nobody has seen yet is taken to be much, so that what follows does
 * not run on borrowed memory; but no more than there is left, or nobody would ever see it.
 */
#define AUDIT_CONTEXT_UNKNOWN (~0ULL)
#define AUDIT_CONTEXT_GUESS   (512ULL << 20)

#define AUDIT_DEVICE_NAMES     5 /* what a device is called: UUID, places on the bus, serial number */
#define AUDIT_DEVICE_NAME_SIZE 96

/** audit_name_hash() - of a name of a device, whichever case its letters have; never 0 */
static inline __attribute__((always_inline)) __u64 audit_name_hash(const char *name)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	for (__u32 i = 0; i < AUDIT_DEVICE_NAME_SIZE && name[i]; i++)
		hash = (hash ^ (name[i] | 0x20)) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

/**
 * struct audit_device - one device (user space writes all)
 * @uuid:		its identity
 * @in_use:		whether this number names a device
 * @nvml_index:		its number in NVML, ~0 for one that has none
 * @total:		bytes that it has
 * @context_bytes:	what a process' first context is taken to cost until the books are settled, or
 *			AUDIT_CONTEXT_UNKNOWN
 * @names:		hashes of what it is called in NVML, 0 for none
 *
 * What all tenants together use of it, and what nobody owns (its low), is the ledger of tenant 0; its
 * max is the total less the reserve.
 */
struct audit_device {
	__u8 uuid[16];
	__u32 in_use;
	__u32 nvml_index;
	__u64 total;
	__u64 context_bytes;
	__u64 names[AUDIT_DEVICE_NAMES];
};

enum audit_process_state {
	AUDIT_PROCESS_FREE,
	AUDIT_PROCESS_CLAIMED, /* being filled in */
	AUDIT_PROCESS_LIVE,
	AUDIT_PROCESS_LINGERS, /* has ended, and is charged until it is known who has what it had */
};

#define AUDIT_PROCESS_MOVING (1U << 31)

/**
 * struct audit_process - one process that is charged
 * @owner:		its id in the initial pid namespace, shifted left by 32, and enum audit_process_state
 * @serial:		never used twice; part of the key of everything that belongs to it
 * @bindings:		for which state of the bindings @chain was found
 * @cgroup:		its cgroup when @chain was found
 * @user:		its user then
 * @chain:		whom it is charged to
 * @charging:		changes of its charge under way, and AUDIT_PROCESS_MOVING: see bpf/charge.h
 * @probed:		generation whose probes are on its launches (user space, and BPF when it gives up waiting)
 * @moved:		bytes of calls that have ended, so far: by what came since, an earlier word of a device is off
 * @use:		bytes its calls account for, per device
 * @overhead:		bytes the device says it has beyond that, per device (user space, and taken off by BPF)
 * @idle:		bytes given back that the device may keep; charged beside @use until the device has less
 * @pending:		bytes of @use that the device may not have: of calls under way, which take them or give them
 *			back just now, managed memory, graphs not launched
 * @epoch:		grows when part of @idle was found to be gone: nobody knows whose (BPF)
 * @n_giving:		calls under way that give back nobody knows how much
 * @exports:		it has handed memory of its own to whoever may open it
 * @grows:		one of its pools may have grown since the devices were asked (both)
 * @listed:		of one that lingers: a device lists it still (user space)
 * @ended_ns:		of one that lingers: when it ended, on the monotonic clock
 * @inherited:		bytes of @overhead that others have made who have ended since (user space)
 * @claimed:		bytes that others have inherited from it (user space)
 * @n_contexts:		live contexts per device
 * @device_of:		device of each of its ordinals, AUDIT_NO_DEVICE while unknown
 * @hint_of:		what they may be, by what it says itself (user space)
 * @hinted:		@hint_of is filled in (user space)
 * @seen_on:		a bit for each device that says it has something of it (user space)
 * @placing:		ordinal + 1 whose device is to be found out (programs; user space when it is)
 * @whole:		it waited at its first context for @probed, so that no launch of it went by unseen
 * @ended:		it has ended, or called exec, while somebody changed its charge: what it had is still charged
 * @signalled:		of which thread the holder is told that a signal came; see enum audit_signalled (both)
 */
struct audit_process {
	__u64 owner;
	__u32 serial;
	__u32 bindings;
	__u64 cgroup;
	struct ledger_chain chain;
	__u32 charging;
	__u32 probed;
	__u64 moved;
	__u64 use[LEDGER_DEVICES];
	__u64 overhead[LEDGER_DEVICES];
	__u64 idle[LEDGER_DEVICES];
	__u64 pending[LEDGER_DEVICES];
	__u32 epoch[LEDGER_DEVICES];
	__u32 n_contexts[LEDGER_DEVICES];
	__u8 device_of[LEDGER_DEVICES];
	__u8 hint_of[LEDGER_DEVICES];
	__u32 hinted;
	__u32 seen_on;
	__u32 placing;
	__u32 whole;
	__u32 ended;
	__u32 signalled;
	__u32 n_giving;
	__u32 user;
	__u32 exports;
	__u32 listed;
	__u32 grows;
	__u32 unused;
	__u64 ended_ns;
	__u64 inherited[LEDGER_DEVICES];
	__u64 claimed[LEDGER_DEVICES];
};

/* Beside the id of a thread. */
enum audit_signalled {
	AUDIT_SIGNALLED_NONE,
	AUDIT_SIGNALLED_ANY = 0xffffffff, /* several threads, or the process */
};

/** audit_process_tgid() - the process that a record is of, 0 when the record is free */
static inline __attribute__((always_inline)) __u32 audit_process_tgid(const struct audit_process *p)
{
	__u64 owner = *(volatile const __u64 *)&p->owner;

	return (__u32)owner == AUDIT_PROCESS_LIVE ? owner >> 32 : 0;
}

/* Registers at the entry of a call, in the order of the kernel's pt_regs. */
struct audit_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};

enum audit_slot_state {
	AUDIT_SLOT_FREE,
	AUDIT_SLOT_CLAIMED,  /* the program fills it in */
	AUDIT_SLOT_WAITING,  /* the thread waits in the program for the holder process */
	AUDIT_SLOT_STOPPING, /* the holder has asked for a stop and let the program go */
	AUDIT_SLOT_HELD,     /* stopped at the entry of the call, costs nothing */
	AUDIT_SLOT_RELEASED, /* let go; it meets the probe again and keeps its place in the queue */
	AUDIT_SLOT_TURN,     /* the same, and is decided when it does */
};

enum audit_ask {
	AUDIT_ASK_HOLD,	  /* keep it until memory is free or its time is over, then answer */
	AUDIT_ASK_ANSWER, /* answer it now */
	AUDIT_ASK_WRITE,  /* write `values` over what the call has returned */
};

enum audit_reason {
	AUDIT_REASON_NONE,
	AUDIT_REASON_MAX,     /* beyond memory.max of `tenant` */
	AUDIT_REASON_DEVICE,  /* the device has no memory left */
	AUDIT_REASON_QUEUE,   /* others wait already */
	AUDIT_REASON_COMPUTE, /* a launch beyond the compute share of `tenant` */
	AUDIT_REASON_PROBES, /* a process whose launches are to be probed before its first context */
	AUDIT_REASON_USER,   /* a user whom the daemon has not met */
};

/**
 * struct audit_slot - one thread that the holder process has to do with
 *
 * One per thread, claimed by the program, freed by the holder (or by the
 * program when the thread dies).
 */
struct audit_slot {
	__u32 state;
	__u32 tid;
	__u32 tgid;
	__u32 ask;
	__u32 reason;
	__u32 tenant; /* who refused */
	__u32 device;
	__u32 row;
	__u32 answer;	 /* the code to return */
	__u32 ret_delta; /* from the entry to a `ret` byte */
	__u32 failed;	 /* errno of the last try to stop it */
	__u32 process;	 /* number of the process' record */
	__u64 ticket;	 /* place in the queue: lower is older */
	__u64 size;
	__u64 begin_ns;
	__u64 deadline_ns;
	__u64 return_address; /* the word at the stack pointer */
	struct ledger_chain chain;
	struct ledger_chain counted;   /* whose room it takes */
	__u32 width;		       /* bytes of each of `values` */
	__u64 addresses[AUDIT_WRITES]; /* AUDIT_ASK_WRITE: where to write, 0 for nowhere */
	__u64 values[AUDIT_WRITES];
	struct audit_regs regs;
};

enum audit_event_kind {
	AUDIT_EVENT_INSUFFICIENT, /* an allocation does not fit: a hold begins, or it is answered */
	AUDIT_EVENT_REFUSED,	  /* answered CUDA_ERROR_OUT_OF_MEMORY */
	AUDIT_EVENT_ADMITTED,	  /* ran after it had been held */
	AUDIT_EVENT_EXIT,	  /* a charged process is gone */
	AUDIT_EVENT_SETTLE,	  /* memory may have changed in a way arguments do not tell */
	AUDIT_EVENT_NEW_PROCESS,  /* a process is charged for the first time */
	AUDIT_EVENT_FAILED_KILL,  /* nobody could answer: killed */
	AUDIT_EVENT_FAILED_ALLOW, /* nobody could answer: allowed */
	AUDIT_EVENT_FAILED_DENY,  /* nobody could hold it: answered */
	AUDIT_EVENT_DEVICE_UNKNOWN, /* charged to a guessed device */
	AUDIT_EVENT_PLACE, /* on which device a process has made a context is to be found out */
	AUDIT_EVENT_ELSEWHERE, /* not on the device that it had said, and beyond a limit there: killed */
	AUDIT_EVENT_UNRECORDED, /* no room for a record: charged until the process ends */
	AUDIT_EVENT_RAN,	/* a call that was to be answered has run all the same */
	AUDIT_EVENT_THROTTLED,	/* launches are held to the share of `tenant`; told now and then */
	AUDIT_EVENT_UNPACED, /* nobody probed the launches of a process in time: they run as they come */
	AUDIT_EVENT_STRANGER, /* a user is seen whom nobody has said whose member he is: `size` */
	AUDIT_EVENT_LIBRARY,  /* user space: a copy of libcuda is probed now */
	AUDIT_EVENT_UNKNOWN_CALL, /* user space: an export that looks allocating and that no row knows */
	AUDIT_EVENT_UNPROBED,	     /* user space: a copy of libcuda whose calls were not found */
	AUDIT_EVENT_OFFSETS_REFUSED, /* user space: a file of offsets is not used */
	AUDIT_EVENT_KINDS,
};

#define AUDIT_EVENTS_SIZE (1 << 20)

/* In each of these a tenant's events are counted anew, and those beyond its cap are not sent. */
#define AUDIT_EVENT_WINDOW_NS 100000000ULL

/**
 * struct audit_event - what a program tells the daemon
 * @tenant:	whom it is about; 0 in AUDIT_EVENT_FAILED_* of a user who was not met
 * @size:	bytes that the call asks for; of a user who was not met, his id
 */
struct audit_event {
	__u32 kind;
	__u32 tgid;
	__u32 tid;
	__u32 tenant;
	__u32 device;
	__u32 row;
	__u32 reason;
	__u32 code;
	__u64 time_ns;
	__u64 size;
	__u64 left;
	__u64 wait_ns;
	__u64 ticket;
};

enum audit_wake_kind {
	AUDIT_WAKE_SLOT,   /* `index` needs the holder */
	AUDIT_WAKE_FREED,  /* memory was freed while somebody waited */
	AUDIT_WAKE_SIGNAL, /* a signal for a process, or for its thread `signalled` */
};

/* Room for all wakes that there may be: one a slot, one a process and one more, of 16 bytes with the header. */
#define AUDIT_WAKES_SIZE (1 << 20)

/** struct audit_wake - what a program tells the holder process; @index: of the slot or the process' record; @cpu: where */
struct audit_wake {
	__u32 kind;
	__u32 index;
	__u32 cpu;
};

/**
 * struct audit_control - one of these, shared by all generations of the programs
 * @layout:		AUDIT_LAYOUT of whoever made the maps
 * @generation:		only the programs loaded with this number act; 0 for none
 * @bindings:		grows when a binding of a tenant changes
 * @n_devices:		devices are 0 .. @n_devices - 1
 * @default_tenant:	who is charged for a process that no other tenant matches, 0 for nobody
 * @holder:		process id of the holder
 * @daemon:		process id of the daemon, which is nobody's: it must see the devices as they are
 * @dismissed:		no program acts any more: the holder lets everybody go and ends
 * @heartbeat_ns:	when the holder was last seen, on the monotonic clock
 * @failure_wait_ns:	how long a thread waits for a holder
 * @next_serial:	for processes
 * @next_ticket:	for slots
 * @taken:		of each table, by all tenants
 * @blocks:		a bit for each block of a table that may be in use; see blocks.h (both)
 * @arrivals:		the last processes that were put into a cgroup: which of them it is, from 1 on, << 32 | id
 *			(programs)
 * @n_arrivals:		how many were (programs)
 * @n_stale:		how often something has ended that records were of: a process, a context, a credit; they are
 *			dropped later (programs)
 * @n_chunks:		of records of allocations; see room.h
 * @freed:		the holder is told that memory was freed, and has not looked yet (both)
 * @n_unfollowed:	children of trees that could not be entered
 * @n_unended:		ends of processes that are left to the engine
 * @n_lingering:	processes that have ended and are charged still (programs)
 * @wakes_lost:		wakes that found the ring full
 * @ask_users:		a user's first call waits until the daemon has met him, see bpf/user.h (user space)
 * @settle_wanted:	how often a thread has asked for the books to be settled
 * @settled:		@settle_wanted as it was before the books were settled last (user space)
 * @ended:		bytes that processes had on each device when they ended, so far (programs)
 */
struct audit_control {
	__u32 layout;
	__u32 generation;
	__u32 bindings;
	__u32 n_devices;
	__u32 default_tenant;
	__u32 holder;
	__u64 heartbeat_ns;
	__u64 failure_wait_ns;
	__u64 next_ticket;
	__u64 wakes_lost;
	__u32 next_serial;
	__u32 daemon;
	__u32 dismissed;
	__u32 taken[AUDIT_TABLES];
	__u32 n_chunks;
	__u32 freed;
	__u32 n_unfollowed;
	__u32 n_unended;
	__u32 ask_users;
	__u64 settle_wanted;
	__u64 settled;
	__u64 ended[LEDGER_DEVICES];
	__u64 blocks[AUDIT_TABLES][AUDIT_BLOCKS / 64];
	__u64 arrivals[AUDIT_ARRIVALS];
	__u32 n_arrivals;
	__u32 n_stale;
	__u32 n_lingering;
	__u32 unused;
};

#define AUDIT_LIBRARIES	   256
#define AUDIT_LIBRARY_PATH 256

/** struct audit_library - a copy of a library that is probed; see struct library_use (user space) */
struct audit_library {
	__u64 dev;
	__u64 ino;
	__u32 kept;
	__u32 outermost;
	char path[AUDIT_LIBRARY_PATH];
};

#define AUDIT_WORKS   1024 /* processes whose launches are probed; a power of two */
#define AUDIT_KERNELS 128  /* kinds of launches of one process; a power of two */

/**
 * struct audit_kernel - launches of one kind
 * @key:	function and number of blocks, hashed; 0 for a free place (programs)
 * @cost_ns:	device time that one is expected to take, 0 while unknown (user space)
 * @n_launches:	so far (programs)
 * @device:	of the first (programs)
 */
struct audit_kernel {
	__u64 key;
	__u64 cost_ns;
	__u64 n_launches;
	__u32 device;
	__u32 unused;
};

/**
 * struct audit_work - launches of one process
 * @tgid:	the process, 0 for a free place (user space)
 * @serial:	of its record, as the id may be used again (user space)
 * @guess_ns:	what a launch of a new kind is taken to cost (user space)
 * @charged_ns:	what its launches were charged in all (programs)
 */
struct audit_work {
	__u32 tgid;
	__u32 serial;
	__u64 guess_ns[LEDGER_DEVICES];
	__u64 charged_ns[LEDGER_DEVICES];
	struct audit_kernel kernels[AUDIT_KERNELS];
};

enum audit_order_kind {
	AUDIT_ORDER_ADOPT, /* charge a process to `chain`: a new record for it, or the one it has moves */
	AUDIT_ORDER_SETTLE,  /* what the device says of a process */
	AUDIT_ORDER_UNOWNED, /* what the device says of processes that are nobody's */
	AUDIT_ORDER_END,     /* a process has died unseen */
	AUDIT_ORDER_LET_GO,  /* what one that lingers had is somebody else's now, or gone */
	AUDIT_ORDER_REAP,    /* drop the records of what went with its process or context */
};

/**
 * struct audit_order - a change of the books that user space wants (user space)
 *
 * It is written here and carried out by a program, as that is finished whatever happens to who asked for
 * it. Nobody but the engine that has the lock gives orders.
 */
struct audit_order {
	__u32 kind;
	__u32 tgid;
	__u32 device;
	__u32 serial; /* of the process' record that is meant */
	__s32 result; /* 0, or ENGINE_E_* (programs) */
	union {
		__u32 user;    /* of the process that is to be charged */
		__u32 process; /* number of the record of one that lingers */
	};
	__u64 bytes;
	/* Of the process, or `ended` of the device, before that was asked; from then on (programs) what came since. */
	__u64 moved;
	__u64 firm; /* bytes in use that the device has for certain (programs) */
	__u64 cgroup;
	struct ledger_chain chain;
};

/** struct audit_state - all that is shared but the records of single allocations */
struct audit_state {
	struct audit_control control;
	struct audit_order order;
	struct audit_tenant tenants[LEDGER_TENANTS];
	struct audit_device devices[LEDGER_DEVICES];
	struct ledger books[LEDGER_TENANTS * LEDGER_DEVICES];
	struct audit_process processes[AUDIT_PROCESSES];
	struct audit_slot slots[AUDIT_SLOTS];
	struct audit_library libraries[AUDIT_LIBRARIES];
	struct share shares[LEDGER_TENANTS * LEDGER_DEVICES];
	struct audit_work works[AUDIT_WORKS];
};

/* What a process owns beside plain bytes. */
enum object_kind {
	OBJECT_MEMORY = 1, /* by address */
	OBJECT_PHYSICAL,   /* by handle: counts = references | mappings << 32 */
	OBJECT_MAPPING,	   /* by address: parent = handle */
	OBJECT_ARRAY,
	OBJECT_CONTEXT, /* size = bytes that end with it, used = bytes that may outlive it, parent = pending
				 * ones; of a primary context once more under its ordinal: parent = context */
	OBJECT_POOL, /* by handle: on which device it is */
	OBJECT_CREDIT, /* by pool and stream: size = bytes given back there, used = the largest piece of
			* them as far as is known, counts = how many pieces are as large */
	OBJECT_CURRENT_POOL, /* by device: parent = pool */
	OBJECT_GRAPH,	     /* size = bytes of its allocation nodes */
	OBJECT_EXEC,	     /* an executable graph */
	OBJECT_CAPTURE, /* by stream: size = bytes asked for while capturing, parent = graph if told */
	OBJECT_NVML,	/* an NVML device handle */
};

/** struct object_key - key of the map of objects: what a process with this serial calls a thing */
struct object_key {
	__u64 handle;
	__u32 serial;
	__u32 kind;
};

struct object {
	__u64 size;
	__u64 used;
	__u64 parent;
	__u64 context;
	__u64 counts;
	__u32 device;
	__u32 process; /* number of its record, which has the serial of the key while it lives */
	__u16 nearest; /* whose room it takes, and of the tenants around that the outermost */
	__u16 outermost;
	__u32 epoch; /* of a context: how often it was reset; else, of its context or credit then */
};

#endif
