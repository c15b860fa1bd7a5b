/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events: what happened, kept across restarts, numbered from 1.
 *
 * They lie in a database in the state folder. New ones are in memory first and go there in
 * one piece with event_log_flush(), which a round of the loop ends with; what a crash cuts
 * off is lost, none before it. While the disk is full they stay in memory, are shown all the
 * same, and follow when there is room; how many that were too many for memory is told.
 *
 * The oldest go when there are too many, but never one owner's for those of another (see
 * event-owners.h).
 */
#ifndef DAEMON_EVENT_LOG_H
#define DAEMON_EVENT_LOG_H

#include "base/base.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

enum event_kind {
#define EVENT_KIND(id, name, why, what_to_do) EVENT_##id,
#include "daemon/event-kinds.def"
#undef EVENT_KIND
	N_EVENT_KINDS,
};

/* An event of nobody: only root sees it. */
#define EVENT_NO_UID ((uid_t)-1)

/* A number that an event does not have. */
#define EVENT_NO_NUMBER UINT64_MAX

/**
 * struct event - one event
 * @tenant:	NULL if it is about none; so are @gpu, @call and @reason
 * @uid:	who may see it besides root
 * @pid:	0 if it is about no process
 * @size:	bytes asked for, EVENT_NO_NUMBER if none; so are @left and @wait_ms
 * @text:	a sentence for people
 */
struct event {
	enum event_kind kind;
	const char *tenant;
	uid_t uid;
	const char *gpu;
	pid_t pid;
	const char *call;
	const char *reason;
	uint64_t size;
	uint64_t left;
	uint64_t wait_ms;
	const char *text;
};

struct event_log;

/**
 * event_log_open() - open or make the database
 * @path:	":memory:" for one that does not last
 *
 * Return: 0, or -EIO: the reason was logged at debug.
 */
int event_log_open(const char *path, struct event_log **ret);

/**
 * event_log_add() - note an event
 * @ret_id:	its number; may be NULL
 *
 * Return: 0; EVENT_E_LEFT_OUT if its owner has raised too many within this second, which is
 * told in sum; -EIO where not even memory takes it.
 */
#define EVENT_E_LEFT_OUT 1
int event_log_add(struct event_log *log, const struct event *event, uint64_t *ret_id);

/**
 * event_log_leaves_out() - would an event of this owner be left out? It is counted if so.
 *
 * For whoever raises many, before he takes the pains of describing one.
 */
bool event_log_leaves_out(struct event_log *log, uid_t uid, const char *tenant);

/**
 * event_log_flush() - write what came since the last time
 */
void event_log_flush(struct event_log *log);

/**
 * struct event_log_state - how it is with the disk
 * @n_waiting:	events in memory that are not on the disk
 * @n_lost:	events of this life that were too many for memory
 * @reason:	why the disk does not take them; "" while it does
 */
struct event_log_state {
	uint64_t n_waiting;
	uint64_t n_lost;
	const char *reason;
};
/**
 * event_log_state() - how it is now; the reason is the log's, until its next call
 */
void event_log_state(const struct event_log *log, struct event_log_state *ret);

/**
 * event_log_last() - the number of the latest event
 */
uint64_t event_log_last(const struct event_log *log);

/**
 * struct event_filter - which events
 * @after:	only higher numbers
 * @tenant:	only of this tenant, or NULL
 * @uid:	only what this user may see, or 0 (root) for all
 * @limit:	at most so many, the latest
 */
struct event_filter {
	uint64_t after;
	const char *tenant;
	uid_t uid;
	uint64_t limit;
};

/**
 * event_log_list() - events as an array of objects, oldest first
 */
int event_log_list(struct event_log *log, const struct event_filter *filter, json_t **ret);

/**
 * event_log_get() - one event as an object, with the words of its kind
 *
 * Return: 0, or -ENOENT if there is none that @uid may see.
 */
int event_log_get(struct event_log *log, uint64_t id, uid_t uid, json_t **ret);

/**
 * event_log_count() - how many of a kind since the daemon's start
 */
uint64_t event_log_count(const struct event_log *log, enum event_kind kind);

/**
 * event_kind_name() - as in event-kinds.def: "refused"
 */
const char *event_kind_name(enum event_kind kind);

/**
 * event_log_set_max_pages() - for tests: the disk is full beyond so many pages; 0 for no limit
 */
void event_log_set_max_pages(struct event_log *log, unsigned n);

/* So many events are kept in all, about 30 MB, and so many in memory while the disk is full. */
#define EVENTS_KEPT	    100000
#define EVENTS_KEPT_WAITING 10000

void event_log_close(struct event_log *log);

/** event_log_trim() - free what is kept of the file in memory, and is read again where it is needed */
void event_log_trim(struct event_log *log);

#endif
