/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tenants held and did of the devices: the samples of the last ten minutes in memory,
 * and what comes of each minute in the database of history.
 *
 * A sample that tells the same of a process as the one before is not kept twice: between
 * two that are kept, nothing changed.
 */
#ifndef DAEMON_USE_LOG_H
#define DAEMON_USE_LOG_H

#include "daemon/history-db.h"
#include "daemon/use-samples.h"

#include <jansson.h>
#include <sys/types.h>

/**
 * struct use_log - begins as zeros
 * @recent:	samples of the last ten minutes
 * @minutes:	of the minute that is under way, per tenant and device
 * @next:	where of these the next one that is asked for is likely to be
 * @minute:	its number since the epoch
 */
struct use_log {
	struct use_samples recent;
	struct use_minute *minutes;
	size_t n_minutes;
	size_t next;
	uint64_t minute;
};

/**
 * use_log_sample() - keep a sample of a process in which something changed
 */
void use_log_sample(struct use_log *log, const struct use_sample *sample);

/** struct use_of - what a tenant has of a device in a sample */
struct use_of {
	const char *tenant;
	uid_t uid;
	const char *gpu;
	uint64_t bytes;
	double busy_percent;
};

/**
 * use_log_minute() - count a sample of a tenant; when a minute is over, it is written first
 * @now_us:	since the epoch
 */
void use_log_minute(struct use_log *log, struct history_db *db, uint64_t now_us,
		    const struct use_of *use);

/**
 * use_log_flush() - write the minute that is under way
 */
void use_log_flush(struct use_log *log, struct history_db *db);

/* So many samples are told at once: a user may ask, and each is an object of some hundred bytes. */
#define USE_LOG_RECENT_MAX 65536U

/**
 * use_log_recent() - the latest USE_LOG_RECENT_MAX samples of a tenant, oldest first, as an array of objects
 * @tenant:	by its id; 0 for all
 */
json_t *use_log_recent(const struct use_log *log, uint32_t tenant, uint64_t now_ms);

/**
 * use_log_minutes() - the latest minutes of a tenant, oldest first
 * @uid:	only what this user may see, or 0 (root) for all
 *
 * Return: 0, or -EIO.
 */
int use_log_minutes(struct history_db *db, const char *tenant, uid_t uid, uint64_t limit,
		    json_t **ret);

void use_log_done(struct use_log *log);

#endif
