/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share.
 */
#ifndef AUDIT_PRIV_H
#define AUDIT_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>

#include <sys/stat.h>

#include "base/base.h"
#include "engine.h"
#include "offsets.h"
#include "blocks.h"
#include "room.h"
#include "rows.h"
#include "view.h"

struct audit_bpf;
struct watch;

/**
 * struct library_use - for whom a copy is probed
 * @kept:	for whoever may come
 * @user:	the process that was last seen to map it, 0 while none was
 * @outermost:	the outermost tenant around the first of them, 0 for nobody: its part of the copies counts
 * @used_ns:	when a process of a tenant was last seen to map it
 */
struct library_use {
	bool kept;
	pid_t user;
	uint32_t outermost;
	uint64_t used_ns;
};

/** struct library - a copy that is probed: what the caller sees, and the links that do it */
struct library {
	struct engine_library public;
	struct library_use use;
	int entry_link;
	int return_link;
	size_t n_pins; /* one for each probe, where the kernel has no links of many */
	int fd;	       /* of the file, for links to come */
	struct library_call *launches;
	size_t n_launches;
	struct library *next;
};

/* Newer than the headers of the oldest distribution we build on. */
#define ATTACH_UPROBE_MULTI 48

/** struct probes - places in a file; @pid: of the one process that they are for, 0 for all */
struct probes {
	const char *path;
	const uint64_t *offsets;
	const uint64_t *cookies;
	size_t n;
	pid_t pid;
	bool at_return;
};

/** link_uprobes() - attach a program to them. Return: the link's descriptor, or a fault */
int link_uprobes(int prog_fd, const struct probes *probes);

/** own_link() - attach a program to code of this process that nobody runs but the trial of features; the same */
int own_link(int prog_fd);

/**
 * links_let_go() - close links of probes in a thread of its own
 * @fds:	their descriptors, in this order
 * @n:		how many
 *
 * Where a link ends by this, the kernel waits until no sleepable program of any probe runs, and one
 * that holds a call runs for as long as nobody answers it: who answers calls, or is about to, must
 * not wait here.
 */
void links_let_go(const int *fds, size_t n);

/** link_uprobe() - attach a program to one of them, where the kernel has no links of many probes; the same */
int link_uprobe(int prog_fd, const struct probes *probes, size_t i);

/* The programs that are attached or run again and again. */
enum engine_program {
	ENGINE_CALL,
	ENGINE_CALL_RETURN,
	ENGINE_LAUNCH,
	ENGINE_ORDER,
	N_ENGINE_PROGRAMS,
};

#define ENGINE_MAPS 16

/** struct engine_map - a map, by its name in bpf/state.h */
struct engine_map {
	char name[16];
	int fd;
};

struct engine {
	char state_dir[PATH_MAX];
	char links_dir[PATH_MAX + 8];
	char generation_name[16];
	uint32_t generation;
	enum engine_rung rung;
	bool many_probes;	    /* one link holds all probes on a copy */
	bool many_launches;	    /* and all on the launches of a process */
	struct audit_bpf *programs; /* NULL once they are loaded and attached: it is a megabyte */
	int program_fds[N_ENGINE_PROGRAMS];
	struct engine_map maps[ENGINE_MAPS];
	size_t n_maps;
	/* Shared with the programs and the holder. Tables are looked at by the functions below alone. */
	struct audit_state *state;
	struct view *view;
	struct ring_buffer *events;	       /* NULL while there are none */
	int spare_fd;			       /* for it, meanwhile */
	const volatile uint64_t *events_taken; /* up to where the ring was read, and written */
	const volatile uint64_t *events_sent;
	uint64_t events_ns;		  /* when there were some last */
	uint32_t n_tenants;		  /* their numbers are below it */
	uint64_t unowned[LEDGER_DEVICES]; /* bytes of nobody, as the devices told last */
	uint64_t asked_ns;		  /* when they were asked last */
	int lock_fd;
	int epoll_fd;
	int holder_pidfd;
	pid_t holder;
	struct watch *watch;
	struct launches *launches;
	struct library *libraries;
	char *offsets_dir;
	char driver_version[OFFSETS_VERSION];
	char cuda_version[OFFSETS_VERSION];
	struct offsets_dir offsets;
	bool exits; /* processes have ended since the records of what they had were dropped */
	uint64_t reaped_ns;
	uint32_t n_stale; /* of audit_control, when records were last dropped */
	uint64_t dropped_ns;
	uint32_t n_unended; /* of audit_control, when it was last seen to */
	uint32_t n_unfollowed;
	int again_fd; /* a timer: something is to be tried again */
	struct engine_unprobed unprobed[ENGINE_UNPROBED]; /* the newest last */
	size_t n_unprobed;
	size_t n_untold; /* of these the last that nobody was told of */
	uint64_t copies_grace_ns;
	uint64_t copies_swept_ns;
	engine_event_fn on_event;
	void *userdata;
};

/** builds_init() - read the files of offsets */
int builds_init(struct engine *engine, const struct engine_options *options);
void builds_done(struct engine *engine);
/**
 * builds_complete() - add to a copy's calls what a file of offsets knows of its build
 *
 * Return: 0; -ENOEXEC if no call at all is known, so that there is nothing to probe.
 */
int builds_complete(struct engine *engine, const char *path, int fd, const struct stat *st,
		    struct library_image *image);
/** builds_tell_unprobed() - a copy cannot be probed, for @why; told once. @build_id: "" where it is not known */
void builds_tell_unprobed(struct engine *engine, const char *path, const struct stat *st,
			  const char *build_id, const char *why);
/** builds_why() - a fault of attach_file() in words */
const char *builds_why(int r);
/** builds_tell_again() - tell of those that nobody was there to be told of */
void builds_tell_again(struct engine *engine);
/** builds_is_unprobed() - is this a copy of libcuda whose calls were not found? */
bool builds_is_unprobed(struct engine *engine, dev_t dev, ino_t ino);

/** reap_soon() - as engine_reap(), but records are dropped only where something has ended, or long ago */
int reap_soon(struct engine *engine);
/** ended_see_to() - end what no program could end. Return: whether all of it is done */
bool ended_see_to(struct engine *engine);
/** engine_order() - have a program change the books. Return: 0 or ENGINE_E_*, or a fault */
int engine_order(struct engine *engine, const struct audit_order *order);
/** process_is_exiting() - has a process begun to end, or is it gone? */
bool process_is_exiting(pid_t pid);
/** lingering_inherit() - the overhead of a process was settled: as far as it has grown it may be what others left behind */
void lingering_inherit(struct engine *engine, struct audit_process *p, unsigned device,
		       uint64_t overhead_before);
/** lingering_end() - the devices were asked: let go of those that had ended before */
void lingering_end(struct engine *engine);
/** trees_follow() - enter children of trees that the programs could not enter */
void trees_follow(struct engine *engine);

/** frames_check() - whether the verifier's log tells of small frames only. Return: 0 or -ENOTSUP */
int frames_check(const char *log);
/** verifier_reason() - of a program that was refused, the line of the verifier's log that says why; "" where none does */
void verifier_reason(const char *log, char *ret, size_t cap);

/** attach_file() - probe an open file; @name: how to call it. Return: as engine_attach(); -EDQUOT where there is no room */
int attach_file(struct engine *engine, const char *name, int fd, const struct library_use *use);
/** library_find() - the copy that is this file, NULL if it is not probed */
struct library *library_find(const struct engine *engine, dev_t dev, ino_t ino);

/** copies_recorded() - probe what an earlier engine probed, with the programs of this one */
void copies_recorded(struct engine *engine);
/** copies_use_by() - a process maps a copy now, or is about to */
struct library_use copies_use_by(struct engine *engine, pid_t pid);
/** copies_have_room() - whether one more may be probed for those who use it, by the rule of room.h */
bool copies_have_room(const struct engine *engine, const struct library_use *use);
/** copies_sweep() - take probes off copies that no tenant uses any more; does so now and then */
void copies_sweep(struct engine *engine);
/** process_is_tenants() - whether a process is charged to somebody, or would be at its first call */
bool process_is_tenants(struct engine *engine, pid_t pid);
typedef int (*ino_fn)(ino_t ino, void *userdata);
/**
 * each_mapped_file() - visit the numbers of the files that a process maps until @fn returns non-zero
 *
 * Of numbers alone: some file systems show another device in maps than stat() tells. Return: what @fn returned.
 */
int each_mapped_file(pid_t pid, ino_fn fn, void *userdata);
typedef int (*pid_fn)(struct engine *engine, pid_t pid, void *userdata);
/** each_pid() - visit all processes until @fn returns non-zero, and return that */
int each_pid(struct engine *engine, pid_fn fn, void *userdata);
/**
 * attach_see_through() - wait until all hits of probes that have begun are over
 *
 * Since Linux 6.12 a hit goes through the programs as the list is while it does: it may not meet one
 * that is attached meanwhile, nor one that is taken away. Should our generation begin, or the one before
 * be taken away, in the middle of it, nobody would count the call. A link's end is told when all such
 * hits are over. (Older kernels attach and detach only between hits.) A call that waits for this engine
 * is such a hit, too, and has long been seen; so the wait is bounded.
 */
void attach_see_through(struct engine *engine);
/** attach_forget() - close links; @unpin: and take the probes off */
void attach_forget(struct engine *engine, bool unpin);

/** events_open() - deliver what the programs send */
int events_open(struct engine *engine);
void events_close(struct engine *engine);
/** events_tell() - an event of the engine's own */
void events_tell(struct engine *engine, enum audit_event_kind kind, uint32_t row, const char *text);

/** holder_start() - fork the holder process. Return: 0 or a fault */
int holder_start(struct engine *engine);
/** holder_stop() - end it now; who is held meets the probe again */
void holder_stop(struct engine *engine);
/** holder_dismiss() - end it when it has let everybody go, as no program acts any more */
void holder_dismiss(struct engine *engine);
/** holder_forget() - leave it alone until the next engine's takes its place */
void holder_forget(struct engine *engine);

/** launches_new() - whose launches are probed, and what they were measured to take */
struct launches *launches_new(void);
/** launches_free() - the pinned probes stay; accepts NULL */
void launches_free(struct launches *launches);
/** launches_meet() - a process is charged for the first time: probe it before it launches, if it is limited */
void launches_meet(struct engine *engine, pid_t pid);
/** launches_take_over() - probe with this engine's programs what an engine before has probed */
void launches_take_over(struct engine *engine);
/** launches_detach() - take all probes on launches off */
void launches_detach(struct engine *engine);

/** watch_stop() - attach new copies no longer */
void watch_stop(struct engine *engine);
/** watch_again() - look at all that is mapped as if for the first time */
void watch_again(struct engine *engine);
/** watch_forget() - look at all files again that are mapped from now on, and at the tenants' now and then */
void watch_forget(struct engine *engine);
/** watch_open_mapped() - open a file that some process maps, whatever has become of its name. Return: it, or -ENOENT */
int watch_open_mapped(struct engine *engine, dev_t dev, ino_t ino);
/** watch_look() - look at what has been mapped, and at nothing else: whoever maps a copy runs on meanwhile */
void watch_look(struct engine *engine);
/** watch_dispatch() - look at those who may have become tenants' */
void watch_dispatch(struct engine *engine);

/** process_find() - the record of a process, NULL if it has none */
struct audit_process *process_find(const struct engine *engine, pid_t pid);

/** engine_trim() - keep mapped what each look needs; tables are mapped again as far as they are looked at */
void engine_trim(struct engine *engine);

/** book() - the ledger of a tenant on a device */
static inline struct ledger *book(const struct engine *engine, uint32_t tenant, unsigned device)
{
	struct ledger *at = &engine->state->books[ledger_index(tenant, device)];

	return view_reach(engine->view, at, sizeof(*at));
}

/*
 * Records of tables by number. What these hand out is mapped until engine_trim(), and so until the next
 * engine_dispatch().
 */

/** process_at() - the record of this number */
static inline struct audit_process *process_at(const struct engine *engine, uint32_t number)
{
	struct audit_process *at = &engine->state->processes[number & (AUDIT_PROCESSES - 1)];

	return view_reach(engine->view, at, sizeof(*at));
}

/** slot_at() - the slot of this number */
static inline struct audit_slot *slot_at(const struct engine *engine, uint32_t number)
{
	struct audit_slot *at = &engine->state->slots[number & (AUDIT_SLOTS - 1)];

	return view_reach(engine->view, at, sizeof(*at));
}

/** work_at() - the record of launches of this number */
static inline struct audit_work *work_at(const struct engine *engine, uint32_t number)
{
	struct audit_work *at = &engine->state->works[number & (AUDIT_WORKS - 1)];

	return view_reach(engine->view, at, sizeof(*at));
}

/** library_at() - what is remembered of copies, by number */
static inline struct audit_library *library_at(const struct engine *engine, size_t number)
{
	struct audit_library *at = &engine->state->libraries[number % AUDIT_LIBRARIES];

	return view_reach(engine->view, at, sizeof(*at));
}

/** share_of() - a tenant's part of a device's time */
static inline struct share *share_of(const struct engine *engine, uint32_t tenant, unsigned device)
{
	struct share *at = &engine->state->shares[ledger_index(tenant, device)];

	return view_reach(engine->view, at, sizeof(*at));
}

/** tenant_get() - a tenant that is in use, else NULL */
struct audit_tenant *tenant_get(const struct engine *engine, uint32_t tenant);
/** tenants_count() - find out which numbers are in use, as an earlier engine has left them */
void tenants_count(struct engine *engine);
/** tenant_clear() - no use and no limits on any device */
void tenant_clear(struct engine *engine, uint32_t tenant);

/**
 * chain_of_pid() - the tenants around a process, as the programs find them
 * @ret_cgroup:	its cgroup, untouched on hosts without cgroup v2
 * @ret_user:	whose it is
 *
 * Return: 0 or ENGINE_E_GONE.
 */
int chain_of_pid(struct engine *engine, pid_t pid, struct ledger_chain *ret, uint64_t *ret_cgroup,
		 uid_t *ret_user);

/* What a kernel may or may not take; see features.c. */
enum feature {
	FEATURE_REGISTERS,
	FEATURE_SUPERVISED,
	FEATURE_MANY_PROBES,
	FEATURE_MANY_THREADS,
	FEATURE_USER_MEMORY,
	FEATURE_PTRACE,
	FEATURE_COUNT,
};
bool feature_works(enum feature feature);

/* Maps of the programs, for those who do not know the skeleton. */
int engine_map_fd(const struct engine *engine, const char *name);

#endif
