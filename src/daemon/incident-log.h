/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Incidents and their entries in the database of history: who held more than its request,
 * what was done, why, and what came of it.
 */
#ifndef DAEMON_INCIDENT_LOG_H
#define DAEMON_INCIDENT_LOG_H

#include "daemon/history-db.h"

#include <jansson.h>
#include <sys/types.h>

/**
 * struct incident - one tenant's over-use, from first sight to the end
 * @open_us:	since the epoch; @close_us is 0 while it goes on
 * @state:	the last step in a word
 * @frozen:	what overuse_thaw() needs where the tenant is suspended, else ""
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

/**
 * incident_log_put() - write an incident, new (its id is then 0 and is set) or changed
 *
 * Return: 0, or -EIO where not even memory takes it.
 */
int incident_log_put(struct history_db *db, struct incident *incident);
int incident_log_put_entry(struct history_db *db, struct incident_entry *entry);

/**
 * incident_log_each_open() - visit those that no end was written of, as after a crash
 */
typedef void (*incident_fn)(struct incident *incident, void *userdata);
int incident_log_each_open(struct history_db *db, incident_fn fn, void *userdata);

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
int incident_log_list(struct history_db *db, const struct incident_filter *filter, json_t **ret);

/**
 * incident_log_get() - one with its entries
 *
 * Return: 0, or -ENOENT if there is none that @uid may see.
 */
int incident_log_get(struct history_db *db, uint64_t id, uid_t uid, json_t **ret);

#endif
