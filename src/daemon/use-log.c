/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/use-log.h"

#include "base/str.h"

#include <errno.h>

#define KEEP_MS 600000
/* 32 bytes each: 2 MiB at the most, where hundreds of processes change all the time. */
#define MAX_SAMPLES 65536
#define MINUTE_US   60000000

/* A tenant on a device, in one minute. */
struct use_minute {
	uint64_t id;
	uint64_t minute;
	char tenant[64];
	uid_t uid;
	char gpu[80];
	unsigned n;
	uint64_t least;
	uint64_t most;
	double sum;
	double busy_sum;
};

/* --- the last ten minutes --- */

static struct use_sample *at(const struct use_log *log, size_t i)
{
	return &log->samples[(log->first + i) % log->cap];
}

static void drop_oldest(struct use_log *log)
{
	log->first = (log->first + 1) % log->cap;
	log->n--;
}

/* Twice as many, in order from the beginning. */
static bool grow(struct use_log *log)
{
	size_t cap = MAX(2 * log->cap, (size_t)256), i;
	struct use_sample *samples;

	if (cap > MAX_SAMPLES)
		return false;
	samples = calloc(cap, sizeof(*samples));
	if (!samples)
		return false;
	for (i = 0; i < log->n; i++)
		samples[i] = *at(log, i);
	free(log->samples);
	log->samples = samples;
	log->first = 0;
	log->cap = cap;
	return true;
}

void use_log_sample(struct use_log *log, const struct use_sample *sample)
{
	while (log->n > 0 && sample->time_ms - at(log, 0)->time_ms > KEEP_MS)
		drop_oldest(log);
	if (log->n == log->cap && !grow(log)) {
		if (log->cap == 0)
			return;
		drop_oldest(log);
	}
	*at(log, log->n++) = *sample;
}

json_t *use_log_recent(const struct use_log *log, uint32_t tenant, uint64_t now_ms)
{
	json_t *list = json_array();
	const struct use_sample *s;
	size_t i;

	for (i = 0; i < log->n; i++) {
		s = at(log, i);
		if (tenant && s->tenant != tenant)
			continue;
		json_array_append_new(
			list, json_pack("{s:I, s:i, s:i, s:I, s:i}", "ago_ms",
					(json_int_t)(now_ms - MIN(s->time_ms, now_ms)), "gpu",
					(int)s->device, "pid", (int)s->pid, "memory",
					(json_int_t)s->bytes, "utilization", (int)s->percent));
	}
	return list;
}

/* --- minutes --- */

static void bind_minute(sqlite3_stmt *s, const void *row)
{
	const struct use_minute *m = row;

	history_bind_number(s, 1, m->id);
	history_bind_number(s, 2, m->minute * 60);
	history_bind_text(s, 3, m->tenant);
	history_bind_number(s, 4, m->uid);
	history_bind_text(s, 5, m->gpu);
	history_bind_number(s, 6, m->n);
	history_bind_number(s, 7, m->least);
	history_bind_number(s, 8, m->sum / m->n);
	history_bind_number(s, 9, m->most);
	sqlite3_bind_double(s, 10, m->busy_sum / m->n);
}

void use_log_flush(struct use_log *log, struct history_db *db)
{
	size_t i;

	if (log->n_minutes == 0)
		return;
	history_db_begin(db);
	for (i = 0; i < log->n_minutes; i++) {
		log->minutes[i].id = history_db_next_id(db, HISTORY_MINUTES);
		history_db_put(db, HISTORY_MINUTES, bind_minute, &log->minutes[i]);
	}
	history_db_commit(db);
	log->n_minutes = 0;
}

static struct use_minute *find_minute(struct use_log *log, const struct use_of *use)
{
	struct use_minute *m;
	size_t i;

	for (i = 0; i < log->n_minutes; i++) {
		m = &log->minutes[i];
		if (str_eq(m->tenant, use->tenant) && str_eq(m->gpu, use->gpu))
			return m;
	}
	m = reallocarray(log->minutes, log->n_minutes + 1, sizeof(*m));
	if (!m)
		return NULL;
	log->minutes = m;
	m += log->n_minutes++;
	*m = (struct use_minute){ .minute = log->minute, .uid = use->uid, .least = UINT64_MAX };
	str_copy(m->tenant, sizeof(m->tenant), use->tenant);
	str_copy(m->gpu, sizeof(m->gpu), use->gpu);
	return m;
}

void use_log_minute(struct use_log *log, struct history_db *db, uint64_t now_us,
		    const struct use_of *use)
{
	struct use_minute *m;

	/* A clock that was set back begins another minute as well. */
	if (log->minute != now_us / MINUTE_US)
		use_log_flush(log, db);
	log->minute = now_us / MINUTE_US;
	m = find_minute(log, use);
	if (!m)
		return;
	m->n++;
	m->sum += use->bytes;
	m->busy_sum += use->busy_percent;
	m->least = MIN(m->least, use->bytes);
	m->most = MAX(m->most, use->bytes);
}

int use_log_minutes(struct history_db *db, const char *tenant, uid_t uid, uint64_t limit,
		    json_t **ret)
{
	json_t *list;
	sqlite3_stmt *s;

	if (history_db_select(
		    db,
		    "SELECT * FROM (SELECT id, minute, gpu, samples, least, mean, most, busy"
		    " FROM " HISTORY_BOTH("minutes") " WHERE tenant = ?1 AND (?2 = 0 OR uid = ?2)"
						     " ORDER BY id DESC LIMIT ?3) ORDER BY id",
		    &s) < 0)
		return -EIO;
	history_bind_text(s, 1, tenant);
	history_bind_number(s, 2, uid);
	history_bind_number(s, 3, limit);
	list = json_array();
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list,
				      json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:f}", "time",
						(json_int_t)sqlite3_column_int64(s, 1), "UUID",
						history_text(s, 2), "samples",
						(json_int_t)sqlite3_column_int64(s, 3), "least",
						(json_int_t)sqlite3_column_int64(s, 4), "mean",
						(json_int_t)sqlite3_column_int64(s, 5), "most",
						(json_int_t)sqlite3_column_int64(s, 6),
						"utilization", sqlite3_column_double(s, 7)));
	sqlite3_finalize(s);
	*ret = list;
	return 0;
}

void use_log_done(struct use_log *log)
{
	free(log->samples);
	free(log->minutes);
	memset(log, 0, sizeof(*log));
}
