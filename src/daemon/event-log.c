/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/event-log.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <sqlite3.h>
#include <time.h>

/* About 30 MB. Cut when a tenth more has come together. */
#define KEEP_EVENTS 100000

struct event_log {
	sqlite3 *db;
	uint64_t n_of_kind[N_EVENT_KINDS];
	uint64_t n_since_cut;
};

static const struct {
	const char *name;
	const char *why;
	const char *what_to_do;
} kinds[N_EVENT_KINDS] = {
#define EVENT_KIND(id, name, why, what_to_do) { name, why, what_to_do },
#include "daemon/event-kinds.def"
#undef EVENT_KIND
};

static const char schema[] =
	"PRAGMA journal_mode = WAL;"
	"PRAGMA synchronous = NORMAL;"
	"CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, time_us INTEGER,"
	" kind TEXT, tenant TEXT, uid INTEGER, gpu TEXT, pid INTEGER, call TEXT, reason TEXT,"
	" size INTEGER, left INTEGER, wait_ms INTEGER, text TEXT);";

#define COLUMNS "id, time_us, kind, tenant, gpu, pid, call, reason, size, left, wait_ms, text"

const char *event_kind_name(enum event_kind kind)
{
	return kinds[kind].name;
}

static int db_error(struct event_log *log, const char *what)
{
	return log_debug(-EIO, "events: %s: %s", what, sqlite3_errmsg(log->db));
}

int event_log_open(const char *path, struct event_log **ret)
{
	struct event_log *log = calloc(1, sizeof(*log));
	int r = 0;

	if (!log)
		return -ENOMEM;
	if (sqlite3_open(path, &log->db) != SQLITE_OK)
		r = db_error(log, path);
	if (r == 0)
		sqlite3_busy_timeout(log->db, 1000);
	if (r == 0 && sqlite3_exec(log->db, schema, NULL, NULL, NULL) != SQLITE_OK)
		r = db_error(log, path);
	if (r < 0) {
		event_log_close(log);
		return r;
	}
	*ret = log;
	return 0;
}

void event_log_close(struct event_log *log)
{
	if (!log)
		return;
	sqlite3_close(log->db);
	free(log);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(s, at);
}

static void bind_number(sqlite3_stmt *s, int at, uint64_t number)
{
	if (number == EVENT_NO_NUMBER)
		sqlite3_bind_null(s, at);
	else
		sqlite3_bind_int64(s, at, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

static void cut(struct event_log *log)
{
	if (++log->n_since_cut < KEEP_EVENTS / 10)
		return;
	log->n_since_cut = 0;
	sqlite3_exec(log->db,
		     "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - 100000", NULL,
		     NULL, NULL);
}

int event_log_add(struct event_log *log, const struct event *event, uint64_t *ret_id)
{
	struct timespec now;
	sqlite3_stmt *s;
	int r = 0;

	if (sqlite3_prepare_v2(log->db,
			       "INSERT INTO events (time_us, kind, tenant, uid, gpu, pid, call,"
			       " reason, size, left, wait_ms, text)"
			       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			       -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "insert");
	clock_gettime(CLOCK_REALTIME, &now);
	sqlite3_bind_int64(s, 1, now.tv_sec * 1000000LL + now.tv_nsec / 1000);
	bind_text(s, 2, kinds[event->kind].name);
	bind_text(s, 3, event->tenant);
	sqlite3_bind_int64(s, 4, event->uid);
	bind_text(s, 5, event->gpu);
	bind_number(s, 6, event->pid ? (uint64_t)event->pid : EVENT_NO_NUMBER);
	bind_text(s, 7, event->call);
	bind_text(s, 8, event->reason);
	bind_number(s, 9, event->size);
	bind_number(s, 10, event->left);
	bind_number(s, 11, event->wait_ms);
	bind_text(s, 12, event->text);
	if (sqlite3_step(s) != SQLITE_DONE)
		r = db_error(log, "insert");
	sqlite3_finalize(s);
	log->n_of_kind[event->kind]++;
	cut(log);
	if (r == 0 && ret_id)
		*ret_id = sqlite3_last_insert_rowid(log->db);
	return r;
}

static json_t *column(sqlite3_stmt *s, int i)
{
	switch (sqlite3_column_type(s, i)) {
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(s, i));
	case SQLITE_TEXT:
		return json_string((const char *)sqlite3_column_text(s, i));
	default:
		return json_null();
	}
}

static json_t *row(sqlite3_stmt *s)
{
	json_t *object = json_object();
	int i;

	for (i = 0; i < sqlite3_column_count(s); i++) {
		if (str_eq(sqlite3_column_name(s, i), "time_us"))
			json_object_set_new(object, "time",
					    json_real(sqlite3_column_int64(s, i) / 1e6));
		else
			json_object_set_new(object, sqlite3_column_name(s, i), column(s, i));
	}
	return object;
}

int event_log_list(struct event_log *log, const struct event_filter *filter, json_t **ret)
{
	json_t *list = json_array();
	sqlite3_stmt *s;

	/* The latest so many, then turned round. */
	if (sqlite3_prepare_v2(log->db,
			       "SELECT * FROM (SELECT " COLUMNS " FROM events WHERE id > ?1"
			       " AND (?2 IS NULL OR tenant = ?2) AND (?3 = 0 OR uid = ?3)"
			       " ORDER BY id DESC LIMIT ?4) ORDER BY id",
			       -1, &s, NULL) != SQLITE_OK) {
		json_decref(list);
		return db_error(log, "select");
	}
	bind_number(s, 1, filter->after);
	bind_text(s, 2, filter->tenant);
	sqlite3_bind_int64(s, 3, filter->uid);
	bind_number(s, 4, filter->limit);
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, row(s));
	sqlite3_finalize(s);
	*ret = list;
	return 0;
}

static void add_words(json_t *object)
{
	const char *kind = json_string_value(json_object_get(object, "kind"));
	size_t i;

	for (i = 0; i < N_EVENT_KINDS; i++) {
		if (!kind || !str_eq(kind, kinds[i].name))
			continue;
		json_object_set_new(object, "why", json_string(kinds[i].why));
		json_object_set_new(object, "what_to_do", json_string(kinds[i].what_to_do));
	}
}

int event_log_get(struct event_log *log, uint64_t id, uid_t uid, json_t **ret)
{
	sqlite3_stmt *s;
	int r = -ENOENT;

	if (sqlite3_prepare_v2(log->db,
			       "SELECT " COLUMNS " FROM events WHERE id = ?1"
			       " AND (?2 = 0 OR uid = ?2)",
			       -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "select");
	bind_number(s, 1, id);
	sqlite3_bind_int64(s, 2, uid);
	if (sqlite3_step(s) == SQLITE_ROW) {
		*ret = row(s);
		add_words(*ret);
		r = 0;
	}
	sqlite3_finalize(s);
	return r;
}

uint64_t event_log_count(const struct event_log *log, enum event_kind kind)
{
	return log->n_of_kind[kind];
}
