/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Incidents and their entries, kept across restarts: who held more than its request,
 * what was done, why, and what came of it.
 *
 * A database in the state folder, which `sqlite3` can read. What cannot be written, as on
 * a full disk, stays in memory, is shown all the same, and is written when there is room.
 */
#ifndef DAEMON_INCIDENT_LOG_H
#define DAEMON_INCIDENT_LOG_H

#include "base/base.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct incident - one tenant's over-use, from first sight to the end
 * @open_us:	since the epoch; @close_us is 0 while it goes on
 * @state:	the last step in a word
 * @frozen:	what carry_resume() needs where the tenant is suspended, else ""
 */
struct incident {
	uint64_t id;
	char tenant[64];
	uid_t uid;
	char gpu[80];
	uint64_t open_us;
	uint64_t close_us;
	uint64_t request_bytes;
	uint64_t peak_bytes;
	char policy[16];
	char state[16];
	char *frozen;
};

/**
 * struct incident_entry - one action
 * @result:	what came of it; "" while it is under way
 */
struct incident_entry {
	uint64_t id;
	uint64_t incident;
	uint64_t time_us;
	const char *action;
	const char *reason;
	uint64_t used_bytes;
	uint64_t request_bytes;
	uint64_t free_bytes;
	uint64_t missing_bytes;
	char result[160];
};

struct incident_log;

/**
 * incident_log_open() - open or make the database
 * @path:	":memory:" for one that does not last
 *
 * Return: 0, -ENOMEM, or -EIO: the reason was logged at debug.
 */
int incident_log_open(const char *path, struct incident_log **ret);

/**
 * incident_log_put() - write an incident, new (its id is then 0 and is set) or changed
 *
 * Return: 0, or -EIO where not even memory takes it.
 */
int incident_log_put(struct incident_log *log, struct incident *incident);
int incident_log_put_entry(struct incident_log *log, struct incident_entry *entry);

/**
 * incident_log_each_open() - visit those that no end was written of, as after a crash
 */
typedef void (*incident_fn)(struct incident *incident, void *userdata);
int incident_log_each_open(struct incident_log *log, incident_fn fn, void *userdata);

/**
 * struct incident_filter - which incidents
 * @tenant:	NULL for all
 * @uid:	only what this user may see, or 0 (root) for all
 * @limit:	the latest so many
 */
struct incident_filter {
	const char *tenant;
	bool only_open;
	uid_t uid;
	uint64_t limit;
};

/** incident_log_list() - an array of objects, oldest first */
int incident_log_list(struct incident_log *log, const struct incident_filter *filter, json_t **ret);

/**
 * incident_log_get() - one with its entries
 *
 * Return: 0, or -ENOENT if there is none that @uid may see.
 */
int incident_log_get(struct incident_log *log, uint64_t id, uid_t uid, json_t **ret);

/** incident_log_is_spilling() - does something wait in memory for room on the disk? */
bool incident_log_is_spilling(const struct incident_log *log);

/** incident_log_set_max_pages() - for tests: the disk is full beyond so many pages; 0 for no limit
 */
void incident_log_set_max_pages(struct incident_log *log, unsigned n);

void incident_log_close(struct incident_log *log);

#endif
