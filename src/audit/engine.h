/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: the BPF programs on the CUDA driver's entry points and all that keeps them going.
 *
 * It knows tenants by number, devices by number and processes by pid, and nothing of files, names of
 * users or NVML: the daemon tells it. Its state lives in maps and links pinned below a folder of a BPF
 * file system, so that the death of the daemon ends neither the books nor the limits; the next
 * engine_open() on the folder takes them over.
 *
 * One thread calls these functions. Holds and answers are carried out by a process of their own (the
 * holder), which engine_open() starts and engine_dispatch() restarts; a slow caller delays nobody, and the
 * caller's death ends no hold (a service manager must not kill it along with the daemon).
 *
 * Faults are negative errno; the positive answers are listed beside the functions.
 */
#ifndef AUDIT_ENGINE_H
#define AUDIT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit.h"

struct engine;

/* Answers. */
#define ENGINE_E_GONE	 1 /* no such process, tenant, slot or library any more */
#define ENGINE_E_FULL	 2 /* no free number left */
#define ENGINE_E_CHANGED 3 /* the process was at it meanwhile; look again */

enum engine_rung {
	ENGINE_RUNG_AUTO,
	ENGINE_RUNG_REGISTERS,
	ENGINE_RUNG_SUPERVISED,
};

/** engine_rung_name() - "auto", "registers" or "supervised" */
const char *engine_rung_name(enum engine_rung rung);

/* Room for what the kernel says of a program that it refuses. */
#define ENGINE_REFUSAL 256

/**
 * struct engine_options - how to open
 * @state_dir:		folder for the pins; if it is not on a BPF file system, one is mounted on it
 * @rung:		which rung to use; AUTO takes the best that this kernel runs
 * @failure_wait_ns:	how long a thread waits for the holder before on-failure applies, 0 for 10 s
 * @offsets_dir:	folder of *.conf with offsets for builds whose symbols do not tell, NULL for none
 * @driver_version:	what runs here; NULL where it is not known
 * @cuda_version:	likewise
 * @refusal:		ENGINE_REFUSAL bytes, filled in where the kernel's verifier refuses a program; NULL if not wanted
 * @copies_grace_ns:	how long a copy that no tenant's process maps stays probed, 0 for 10 s
 * @no_thread_records:	for a test: the programs act as if the kernel had no memory for records of threads
 * @linger_rounds:	for a test: how long the programs linger at a probe before their generation begins, else 0
 */
struct engine_options {
	const char *state_dir;
	enum engine_rung rung;
	uint64_t failure_wait_ns;
	const char *offsets_dir;
	const char *driver_version;
	const char *cuda_version;
	char *refusal;
	uint32_t linger_rounds;
	uint64_t copies_grace_ns;
	bool no_thread_records;
};

/**
 * engine_open() - load the programs, take over what is pinned below the state folder, start the holder
 *
 * Return: 0, or a fault: -EPERM without the capabilities (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE,
 * CAP_SYS_ADMIN), -EOPNOTSUPP when this kernel runs none of the rungs or not the wanted one, -EPROTO when
 * what is pinned has another layout, -EBUSY when another engine lives on the folder.
 */
int engine_open(const struct engine_options *options, struct engine **ret);

/** engine_close() - let go; probes, books and the holder stay and go on, for the next engine_open() to take over */
void engine_close(struct engine *engine);

/** engine_remove() - detach everything, remove the pins, close */
void engine_remove(struct engine *engine);

/**
 * engine_discard() - remove the pins of an engine that cannot be opened
 *
 * For books of another version, or where programs cannot be loaded any more. Its holder ends by
 * itself when it finds the pins gone.
 *
 * Return: 0, also where there is nothing; else what the kernel said about the folder.
 */
int engine_discard(const char *state_dir);

/** engine_rung_now() - how calls are answered here: registers or supervised */
enum engine_rung engine_rung_now(const struct engine *engine);

/** engine_fd() - becomes readable when engine_dispatch() has something to do */
int engine_fd(const struct engine *engine);

/**
 * engine_dispatch() - deliver events, restart the holder, attach libraries that have turned up
 *
 * Never blocks. Call it when engine_fd() is readable.
 */
int engine_dispatch(struct engine *engine);

/** engine_event_fn - told of each event; @text names a library or a call where the kind has one, else "" */
typedef void (*engine_event_fn)(const struct audit_event *event, const char *text, void *userdata);
void engine_on_event(struct engine *engine, engine_event_fn fn, void *userdata);

/* --- devices ------------------------------------------------------------------------------------- */

/**
 * engine_device_set() - tell the engine of a device
 * @device:	its number, below LEDGER_DEVICES; the numbers in use start at 0 without a gap
 * @d:		what is known of it (in_use is set here)
 * @reserve:	bytes of the total that are never handed out
 */
int engine_device_set(struct engine *engine, unsigned device, const struct audit_device *d,
		      uint64_t reserve);

/** engine_device_ended() - bytes that processes had on a device when they ended, so far */
uint64_t engine_device_ended(const struct engine *engine, unsigned device);

/**
 * engine_device_unowned() - bytes used by processes that no tenant matches, as NVML tells
 * @ended:	engine_device_ended() from before the books were read and the device was asked
 *
 * What a process had when it ended is nobody's, too, until the device is heard to have it back.
 */
int engine_device_unowned(struct engine *engine, unsigned device, uint64_t bytes, uint64_t ended);

/* --- tenants ------------------------------------------------------------------------------------- */

/** engine_tenant_new() - a tenant without limits and bindings. Return: 0, ENGINE_E_FULL or -EEXIST */
int engine_tenant_new(struct engine *engine, const char *name, uint32_t *ret_tenant);
/** engine_tenant_find() - the number of a tenant, as after a restart. Return: 0 or ENGINE_E_GONE */
int engine_tenant_find(struct engine *engine, const char *name, uint32_t *ret_tenant);
/** engine_tenant_remove() - unbind and forget it; its processes go to whoever else matches them */
int engine_tenant_remove(struct engine *engine, uint32_t tenant);

/** struct engine_limits - memory limits of a tenant on a device */
struct engine_limits {
	uint64_t max_bytes; /* LEDGER_NO_LIMIT for none */
	uint64_t low_bytes; /* 0 for none */
};
/** engine_tenant_limit() - set the limits on one device; they hold from the next call on */
int engine_tenant_limit(struct engine *engine, uint32_t tenant, unsigned device,
			const struct engine_limits *limits);
/** engine_tenant_waits() - how long to hold, UINT64_MAX for ever, and what to do where nobody can hold */
int engine_tenant_waits(struct engine *engine, uint32_t tenant, uint64_t wait_max_ns,
			uint64_t wait_low_ns, enum audit_failure on_failure);

/** struct engine_compute - a tenant's part of a device's time */
struct engine_compute {
	uint32_t max_permille; /* 1000 for no limit */
	uint32_t weight;       /* against others who are at work */
};
/** engine_tenant_compute() - set it; it holds within moments, by the work of engine_compute_tick() */
int engine_tenant_compute(struct engine *engine, uint32_t tenant, unsigned device,
			  const struct engine_compute *compute);

/* What a tenant is bound to; a cgroup stands for all below it. Binding again moves the binding. */
enum engine_binding {
	ENGINE_BIND_CGROUP, /* id: the inode number of the cgroup v2 folder */
	ENGINE_BIND_UID,    /* id: user id */
	ENGINE_BIND_TREE, /* id: process id; the process, what it starts, and what it has started */
	ENGINE_BIND_DEFAULT, /* id ignored: who no other tenant matches */
};
/**
 * engine_bind(), engine_unbind() - whose the calls of such processes are from now on
 *
 * Return: 0, ENGINE_E_GONE, or a fault, as where there is no room for one more.
 */
int engine_bind(struct engine *engine, uint32_t tenant, enum engine_binding kind, uint64_t id);
int engine_unbind(struct engine *engine, enum engine_binding kind, uint64_t id);

/**
 * engine_ask_users() - whether a user's first call waits until engine_user_met(), so that he can be bound first
 * @on_failure:	what becomes of a first call that allocates when the failure wait is over
 *
 * An AUDIT_EVENT_STRANGER tells of him, and again until he is met. Who was met before is met anew.
 */
void engine_ask_users(struct engine *engine, bool on, enum audit_failure on_failure);
/** engine_user_met() - a user is bound by now, or is no tenant. Return: 0, or what the kernel said */
int engine_user_met(struct engine *engine, uid_t uid);

/** engine_tree_of() - the tenant whose tree a process is in; there is one. Return: 0 or ENGINE_E_GONE */
int engine_tree_of(struct engine *engine, pid_t pid, uint32_t *ret_tenant);

/* --- books --------------------------------------------------------------------------------------- */

/** engine_book() - the ledger of a tenant on a device; tenant 0 is the whole device */
int engine_book(const struct engine *engine, uint32_t tenant, unsigned device, struct ledger *ret);
/** engine_tenant() - counters and settings of a tenant. Return: 0 or ENGINE_E_GONE */
int engine_tenant(const struct engine *engine, uint32_t tenant, struct audit_tenant *ret);

typedef int (*engine_process_fn)(const struct audit_process *process, void *userdata);
/** engine_each_process() - visit every charged process until @fn returns non-zero, and return that */
int engine_each_process(const struct engine *engine, engine_process_fn fn, void *userdata);

/**
 * engine_adopt() - charge a process that is running already to whoever matches it now
 *
 * Its memory is charged by the following engine_settle(). Return: 0 or ENGINE_E_GONE.
 */
int engine_adopt(struct engine *engine, pid_t pid);

/**
 * engine_settle() - correct a process' charge by what the device says it has
 * @moved:	audit_process.moved from before the device was asked
 *
 * What a call moves while it is under way, or has moved since, the device may have counted or not; the charge
 * is corrected as far as the device's word is true either way, and never below what the process may have.
 *
 * Return: 0; ENGINE_E_GONE; ENGINE_E_CHANGED when calls have moved memory since, or give some back just now, and
 * there is more to settle for the next time.
 */
int engine_settle(struct engine *engine, pid_t pid, unsigned device, uint64_t device_bytes,
		  uint64_t moved);

/**
 * engine_settling() - before the devices are asked what their processes have
 *
 * Calls that may fit when the books are settled wait for that. Return: what to give to engine_settled().
 */
uint64_t engine_settling(const struct engine *engine);
/**
 * engine_asks_devices() - a round begins
 *
 * Who has ended by now, and lingers, has ended before the devices are asked, and pools that have grown are seen.
 */
void engine_asks_devices(struct engine *engine);
/** engine_settled() - engine_settle() was called for every process, on all devices */
void engine_settled(struct engine *engine, uint64_t since);

/**
 * engine_is_lingering() - are there processes that have ended and are charged still?
 *
 * Who has exported memory is, from its end on until engine_settled() was called for a round that began long
 * enough after it: others may have that memory, and are charged for it by engine_settle().
 */
bool engine_is_lingering(const struct engine *engine);

/** engine_lists() - a device lists a process without a record. Return: whether it lingers, and so is charged all the same */
bool engine_lists(struct engine *engine, pid_t pid);

/**
 * engine_hint() - which devices a process' numbers may stand for, by what it says itself
 * @device_of:	LEDGER_DEVICES of them, AUDIT_NO_DEVICE where it says nothing
 *
 * Nothing is allowed because of it that the devices do not confirm. Return: 0 or ENGINE_E_GONE.
 */
int engine_hint(struct engine *engine, pid_t pid, const uint8_t *device_of);

/**
 * engine_place() - the devices tell that the number which is to be placed is this device
 *
 * Return: 0, or ENGINE_E_GONE if none of the process' numbers is to be placed (audit_process.placing).
 */
int engine_place(struct engine *engine, pid_t pid, unsigned device);

/** engine_reap() - take off what processes held that died unseen, drop the records of the dead; engine_dispatch() does it now and then */
int engine_reap(struct engine *engine);

/* --- device time --------------------------------------------------------------------------------- */

/** struct engine_sample - a driver's word on one process and one period */
struct engine_sample {
	pid_t pid;
	uint64_t end_ns;  /* of the period, on the monotonic clock */
	unsigned percent; /* of the period in which it was at work */
};

/** engine_compute_samples() - take in what a device tells of its processes, each sample once; by process id, then by time */
int engine_compute_samples(struct engine *engine, unsigned device,
			   const struct engine_sample *samples, size_t n);

/**
 * engine_compute_tick() - probe launches where a limit needs it, and no longer where it does not
 *
 * Return: whether it should be called again, with new samples, in ENGINE_COMPUTE_TICK_MS; else nothing is
 * limited, and it is enough to call it now and then.
 */
bool engine_compute_tick(struct engine *engine);
#define ENGINE_COMPUTE_TICK_MS 25

/** engine_compute_stat() - device time that a tenant was measured to use, and how it was held */
int engine_compute_stat(const struct engine *engine, uint32_t tenant, unsigned device,
			struct share *ret);

/* --- calls that wait ----------------------------------------------------------------------------- */

typedef int (*engine_slot_fn)(const struct audit_slot *slot, void *userdata);
/** engine_each_held() - visit every held call until @fn returns non-zero, and return that */
int engine_each_held(const struct engine *engine, engine_slot_fn fn, void *userdata);
/** engine_release() - let a held call be decided afresh now. Return: 0 or ENGINE_E_GONE */
int engine_release(struct engine *engine, uint64_t ticket);
/** engine_refuse() - answer a held call now. Return: 0 or ENGINE_E_GONE */
int engine_refuse(struct engine *engine, uint64_t ticket);

/* --- libraries ----------------------------------------------------------------------------------- */

/** struct engine_library - one copy of libcuda that is probed */
struct engine_library {
	dev_t dev;
	ino_t ino;
	char path[256];
	char build_id[41];
	unsigned n_calls;   /* entry points probed */
	unsigned n_unknown; /* exports that look allocating and that no row knows */
};

/** engine_attach() - probe a copy of libcuda (or libnvidia-ml). Return: 0, -ENOEXEC if it is neither */
int engine_attach(struct engine *engine, const char *path);
/**
 * engine_attach_for() - the same for a process that is about to map it
 *
 * Where no process of a tenant has it mapped a while later, the probes are taken off again.
 */
int engine_attach_for(struct engine *engine, const char *path, pid_t pid);
/** engine_detach() - take the probes off again. Return: 0 or ENGINE_E_GONE */
int engine_detach(struct engine *engine, dev_t dev, ino_t ino);
typedef int (*engine_library_fn)(const struct engine_library *library, void *userdata);
int engine_each_library(const struct engine *engine, engine_library_fn fn, void *userdata);

/** struct engine_unprobed - a copy of libcuda whose calls were not found: who uses it is unprotected */
struct engine_unprobed {
	dev_t dev;
	ino_t ino;
	char path[256];
	char build_id[41];
	char why[300];
};
#define ENGINE_UNPROBED 64
typedef int (*engine_unprobed_fn)(const struct engine_unprobed *unprobed, void *userdata);
int engine_each_unprobed(const struct engine *engine, engine_unprobed_fn fn, void *userdata);

/** struct engine_offsets - a file of offsets; @refused: why it is not used, NULL if it may be */
struct engine_offsets {
	const char *path;
	const char *build_id;
	const char *refused;
	unsigned line;
};
typedef int (*engine_offsets_fn)(const struct engine_offsets *offsets, void *userdata);
int engine_each_offsets(const struct engine *engine, engine_offsets_fn fn, void *userdata);

/** engine_offsets_reload() - read the files again, tell of those that are refused, look at all processes */
int engine_offsets_reload(struct engine *engine);

/**
 * engine_watch() - attach every copy that any process maps, from now on or no longer
 *
 * Looks at the processes that run and then at each executable mapping. A copy that no process of a
 * tenant has mapped for a while is detached. Switching it off detaches all.
 */
int engine_watch(struct engine *engine, bool on);

/** engine_row_name() - name of the call of audit_event.row or audit_slot.row */
const char *engine_row_name(unsigned row);

/* --- what this kernel offers --------------------------------------------------------------------- */

/** struct engine_feature - one thing that was tried on this kernel */
struct engine_feature {
	const char *name;
	const char *gives; /* what it is good for */
	bool works;
	char reason[128]; /* why not */
};

/** engine_features() - try them all; needs no engine. Return: how many, at most @n */
int engine_features(struct engine_feature *ret, size_t n);

#endif
