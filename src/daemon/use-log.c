/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/use-log.h"

#include "base/str.h"

#include <errno.h>

#define MINUTE_US 60000000

/* A tenant on a device, in one minute, of which there were @n samples so far. */
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

void use_log_sample(struct use_log *log, const struct use_sample *sample)
{
	use_samples_add(&log->recent, sample);
}

/* @skip: how many of the oldest are left out */
struct recent {
	json_t *list;
	uint32_t tenant;
	uint64_t now_ms;
	size_t n;
	size_t skip;
};

static bool is_asked_for(const struct use_sample *s, const struct recent *recent)
{
	return !recent->tenant || s->tenant == recent->tenant;
}

static void count_recent(const struct use_sample *s, void *userdata)
{
	struct recent *recent = userdata;

	recent->n += is_asked_for(s, recent);
}

static void add_recent(const struct use_sample *s, void *userdata)
{
	struct recent *recent = userdata;

	if (!is_asked_for(s, recent))
		return;
	if (recent->skip) {
		recent->skip--;
		return;
	}
	json_array_append_new(
		recent->list,
		json_pack("{s:I, s:i, s:i, s:I, s:i}", "ago_ms",
			  (json_int_t)(recent->now_ms - MIN(s->time_ms, recent->now_ms)), "gpu",
			  (int)s->device, "pid", (int)s->pid, "memory", (json_int_t)s->bytes,
			  "utilization", (int)s->percent));
}

json_t *use_log_recent(const struct use_log *log, uint32_t tenant, uint64_t now_ms)
{
	struct recent recent = { .list = json_array(), .tenant = tenant, .now_ms = now_ms };

	use_samples_each(&log->recent, now_ms, count_recent, &recent);
	recent.skip = recent.n - MIN(recent.n, USE_LOG_RECENT_MAX);
	use_samples_each(&log->recent, now_ms, add_recent, &recent);
	return recent.list;
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

/* Who had nothing in this minute is forgotten; the others are likely to come again, in the same order. */
void use_log_flush(struct use_log *log, struct history_db *db)
{
	struct use_minute *m;
	size_t i, n_kept = 0;

	if (log->n_minutes == 0)
		return;
	history_db_begin(db);
	for (i = 0; i < log->n_minutes; i++) {
		m = &log->minutes[i];
		if (m->n == 0)
			continue;
		m->id = history_db_next_id(db, HISTORY_MINUTES);
		history_db_put(db, HISTORY_MINUTES, bind_minute, m);
		m->n = 0;
		log->minutes[n_kept++] = *m;
	}
	history_db_commit(db);
	log->n_minutes = n_kept;
}

/* Each sample tells of all in the same order: who comes next stands behind the one before. */
static struct use_minute *find_minute(struct use_log *log, const struct use_of *use)
{
	struct use_minute *m;
	size_t i;

	for (i = 0; i < log->n_minutes; i++) {
		m = &log->minutes[(log->next + i) % log->n_minutes];
		if (str_eq(m->tenant, use->tenant) && str_eq(m->gpu, use->gpu)) {
			log->next = m - log->minutes + 1;
			return m;
		}
	}
	m = reallocarray(log->minutes, log->n_minutes + 1, sizeof(*m));
	if (!m)
		return NULL;
	log->minutes = m;
	m += log->n_minutes++;
	log->next = log->n_minutes;
	*m = (struct use_minute){};
	str_copy(m->tenant, sizeof(m->tenant), use->tenant);
	str_copy(m->gpu, sizeof(m->gpu), use->gpu);
	return m;
}

static void begin_minute(struct use_minute *m, uint64_t minute, uid_t uid)
{
	m->minute = minute;
	m->uid = uid;
	m->least = UINT64_MAX;
	m->most = 0;
	m->sum = m->busy_sum = 0;
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
	if (m->n++ == 0)
		begin_minute(m, log->minute, use->uid);
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
	use_samples_done(&log->recent);
	free(log->minutes);
	memset(log, 0, sizeof(*log));
}
