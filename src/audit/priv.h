/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share.
 */
#ifndef AUDIT_PRIV_H
#define AUDIT_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>

#include "base/base.h"
#include "engine.h"
#include "rows.h"

struct audit_bpf;
struct watch;

/** struct library - a copy that is probed: what the caller sees, and the links that do it */
struct library {
	struct engine_library public;
	int entry_link;
	int return_link;
	struct bpf_link **links;	/* where the kernel has no links of many probes */
	size_t n_links;
	struct library *next;
};

/* Newer than the headers of the oldest distribution we build on. */
#define ATTACH_UPROBE_MULTI 48

/** link_uprobes() - attach a program to places in a file. Return: the link's descriptor, or a fault */
int link_uprobes(int prog_fd, const char *path, const uint64_t *offsets, const uint64_t *cookies, size_t n,
		 bool at_return);

struct engine {
	char state_dir[PATH_MAX];
	char links_dir[PATH_MAX + 8];
	char generation_name[16];
	uint32_t generation;
	enum engine_rung rung;
	bool many_probes;
	struct audit_bpf *programs;
	struct audit_state *state;	/* shared with the programs and the holder */
		struct ring_buffer *events;
	int lock_fd;
	int epoll_fd;
	int holder_pidfd;
	pid_t holder;
	struct watch *watch;
	struct library *libraries;
	engine_event_fn on_event;
	void *userdata;
};

/** library_find_calls() - where the calls of rows.def are in a file */
struct library_call {
	uint32_t row;
	uint64_t offset;	/* in the file */
	int32_t ret_delta;
};

struct library_image {
	struct library_call *calls;
	size_t n_calls;
	char (*unknown)[64];	/* exports that look allocating and that no row knows */
	size_t n_unknown;
	char build_id[41];
};

/** library_read() - read the symbols of an ELF file. Return: 0, or -ENOEXEC if it has no call of rows.def */
int library_read(int fd, struct library_image *ret);
void library_image_done(struct library_image *image);

/** attach_file() - probe an open file; @name: how to call it */
int attach_file(struct engine *engine, const char *name, int fd);
/** attach_recorded() - probe what an earlier engine probed, with the programs of this one */
int attach_recorded(struct engine *engine);
/** attach_forget() - close links; @unpin: and take the probes off */
void attach_forget(struct engine *engine, bool unpin);

/** events_open() - deliver what the programs send */
int events_open(struct engine *engine);
/** events_tell() - an event of the engine's own */
void events_tell(struct engine *engine, enum audit_event_kind kind, uint32_t row, const char *text);

/** holder_start() - fork the holder process. Return: 0 or a fault */
int holder_start(struct engine *engine);
/** holder_stop() - end it; who is held meets the probe again */
void holder_stop(struct engine *engine);
/** holder_forget() - leave it alone until the next engine's takes its place */
void holder_forget(struct engine *engine);

/** watch_stop() - attach new copies no longer */
void watch_stop(struct engine *engine);
/** watch_dispatch() - look at what has been mapped */
int watch_dispatch(struct engine *engine);

/* What a kernel may or may not take; see features.c. */
enum feature {
	FEATURE_REGISTERS,
	FEATURE_SUPERVISED,
	FEATURE_MANY_PROBES,
	FEATURE_USER_MEMORY,
	FEATURE_PTRACE,
	FEATURE_COUNT,
};
bool feature_works(enum feature feature);

/* Maps of the programs, for those who do not know the skeleton. */
int engine_map_fd(const struct engine *engine, const char *name);

#endif
