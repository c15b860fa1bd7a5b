/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every write is of a whole row by its number, so that a row that the disk did not take
 * can be kept in the attached memory database and replace there, or be replaced, later.
 * Readers see both, the one in memory first.
 */
#include "daemon/incident-log.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>

/* Some 20 MB on the disk, and in memory no more than a bad day's worth. */
#define KEEP_INCIDENTS 20000
#define KEEP_IN_MEMORY 2000
#define CUT_EVERY      500

struct incident_log {
	sqlite3 *db;
	uint64_t last_incident;
	uint64_t last_entry;
	unsigned n_since_cut;
	bool spilling;
};

#define TABLES(db)                                                                             \
	"CREATE TABLE IF NOT EXISTS " db ".incidents (id INTEGER PRIMARY KEY, tenant TEXT,"    \
	" uid INTEGER, gpu TEXT, open_us INTEGER, close_us INTEGER, request INTEGER,"          \
	" peak INTEGER, policy TEXT, state TEXT, frozen TEXT);"                                \
	"CREATE TABLE IF NOT EXISTS " db ".entries (id INTEGER PRIMARY KEY, incident INTEGER," \
	" time_us INTEGER, action TEXT, reason TEXT, used INTEGER, request INTEGER,"           \
	" free INTEGER, missing INTEGER, result TEXT);"                                        \
	"CREATE INDEX IF NOT EXISTS " db ".entries_of ON entries (incident);"

static const char schema[] = "PRAGMA main.journal_mode = WAL;"
			     "PRAGMA main.synchronous = NORMAL;"
			     "ATTACH ':memory:' AS spill;" TABLES("main") TABLES("spill");

#define INCIDENT_COLUMNS \
	"id, tenant, uid, gpu, open_us, close_us, request, peak, policy, state, frozen"
#define ENTRY_COLUMNS "id, incident, time_us, action, reason, used, request, free, missing, result"

/* Both databases as one, without what memory knows better. */
#define BOTH(table)                                                          \
	"(SELECT * FROM spill." table " UNION ALL SELECT * FROM main." table \
	" WHERE id NOT IN (SELECT id FROM spill." table "))"

static int db_error(struct incident_log *log, const char *what)
{
	return log_debug(-EIO, "incidents: %s: %s", what, sqlite3_errmsg(log->db));
}

static uint64_t highest(struct incident_log *log, const char *table)
{
	_cleanup_free_ char *sql = str_format("SELECT max(id) FROM %s", table);
	sqlite3_stmt *s;
	uint64_t id = 0;

	if (!sql || sqlite3_prepare_v2(log->db, sql, -1, &s, NULL) != SQLITE_OK)
		return 0;
	if (sqlite3_step(s) == SQLITE_ROW)
		id = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return id;
}

int incident_log_open(const char *path, struct incident_log **ret)
{
	struct incident_log *log = calloc(1, sizeof(*log));
	int r = 0;

	if (!log)
		return -ENOMEM;
	if (sqlite3_open(path, &log->db) != SQLITE_OK)
		r = db_error(log, path);
	if (r == 0)
		sqlite3_busy_timeout(log->db, 200);
	if (r == 0 && sqlite3_exec(log->db, schema, NULL, NULL, NULL) != SQLITE_OK)
		r = db_error(log, path);
	if (r < 0) {
		incident_log_close(log);
		return r;
	}
	log->last_incident = highest(log, "incidents");
	log->last_entry = highest(log, "entries");
	*ret = log;
	return 0;
}

/* --- writing --- */

/* As many rows as are kept, and no entry without its incident. */
static void cut(struct incident_log *log)
{
	_cleanup_free_ char *sql = NULL;

	if (++log->n_since_cut < CUT_EVERY)
		return;
	log->n_since_cut = 0;
	sql = str_format("DELETE FROM main.incidents WHERE id <= %" PRIu64 " - %d;"
			 "DELETE FROM main.entries WHERE id <= %" PRIu64 " - 10 * %d;"
			 "DELETE FROM spill.incidents WHERE id <= %" PRIu64 " - %d;"
			 "DELETE FROM spill.entries WHERE id <= %" PRIu64 " - 10 * %d;",
			 log->last_incident, KEEP_INCIDENTS, log->last_entry, KEEP_INCIDENTS,
			 log->last_incident, KEEP_IN_MEMORY, log->last_entry, KEEP_IN_MEMORY);
	if (sql)
		sqlite3_exec(log->db, sql, NULL, NULL, NULL);
}

/* What waits in memory goes to the disk in one piece, or stays. */
static void write_spilled(struct incident_log *log)
{
	static const char sql[] =
		"BEGIN;"
		"INSERT OR REPLACE INTO main.incidents SELECT * FROM spill.incidents;"
		"INSERT OR REPLACE INTO main.entries SELECT * FROM spill.entries;"
		"DELETE FROM spill.incidents; DELETE FROM spill.entries;"
		"COMMIT;";

	if (!log->spilling)
		return;
	if (sqlite3_exec(log->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		log->spilling = false;
	else
		sqlite3_exec(log->db, "ROLLBACK", NULL, NULL, NULL);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_number(sqlite3_stmt *s, int at, uint64_t number)
{
	sqlite3_bind_int64(s, at, MIN(number, (uint64_t)INT64_MAX));
}

static void bind_incident(sqlite3_stmt *s, const void *row)
{
	const struct incident *i = row;

	bind_number(s, 1, i->id);
	bind_text(s, 2, i->tenant);
	bind_number(s, 3, i->uid);
	bind_text(s, 4, i->gpu);
	bind_number(s, 5, i->open_us);
	bind_number(s, 6, i->close_us);
	bind_number(s, 7, i->request_bytes);
	bind_number(s, 8, i->peak_bytes);
	bind_text(s, 9, i->policy);
	bind_text(s, 10, i->state);
	bind_text(s, 11, i->frozen ? i->frozen : "");
}

static void bind_entry(sqlite3_stmt *s, const void *row)
{
	const struct incident_entry *e = row;

	bind_number(s, 1, e->id);
	bind_number(s, 2, e->incident);
	bind_number(s, 3, e->time_us);
	bind_text(s, 4, e->action);
	bind_text(s, 5, e->reason);
	bind_number(s, 6, e->used_bytes);
	bind_number(s, 7, e->request_bytes);
	bind_number(s, 8, e->free_bytes);
	bind_number(s, 9, e->missing_bytes);
	bind_text(s, 10, e->result);
}

typedef void (*bind_fn)(sqlite3_stmt *s, const void *row);

static int put_into(struct incident_log *log, const char *sql, bind_fn bind, const void *row)
{
	sqlite3_stmt *s;
	int r = 0;

	if (sqlite3_prepare_v2(log->db, sql, -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "insert");
	bind(s, row);
	if (sqlite3_step(s) != SQLITE_DONE)
		r = db_error(log, "insert");
	sqlite3_finalize(s);
	return r;
}

static int put(struct incident_log *log, const char *to_disk, const char *to_memory, bind_fn bind,
	       const void *row)
{
	write_spilled(log);
	cut(log);
	/* While older rows wait, newer ones wait behind them. */
	if (!log->spilling && put_into(log, to_disk, bind, row) == 0)
		return 0;
	if (!log->spilling)
		log_warn(-EIO, "incidents cannot be written (%s): they are kept in memory",
			 sqlite3_errmsg(log->db));
	log->spilling = true;
	return put_into(log, to_memory, bind, row);
}

#define PUT(db, table, values) "INSERT OR REPLACE INTO " db "." table " VALUES (" values ")"
#define TEN_VALUES	       "?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

int incident_log_put(struct incident_log *log, struct incident *incident)
{
	if (incident->id == 0)
		incident->id = ++log->last_incident;
	return put(log, PUT("main", "incidents", TEN_VALUES ", ?"),
		   PUT("spill", "incidents", TEN_VALUES ", ?"), bind_incident, incident);
}

int incident_log_put_entry(struct incident_log *log, struct incident_entry *entry)
{
	if (entry->id == 0)
		entry->id = ++log->last_entry;
	return put(log, PUT("main", "entries", TEN_VALUES), PUT("spill", "entries", TEN_VALUES),
		   bind_entry, entry);
}

/* --- reading --- */

static const char *text_at(sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return text ? text : "";
}

static void read_incident(sqlite3_stmt *s, struct incident *i)
{
	memset(i, 0, sizeof(*i));
	i->id = sqlite3_column_int64(s, 0);
	str_copy(i->tenant, sizeof(i->tenant), text_at(s, 1));
	i->uid = sqlite3_column_int64(s, 2);
	str_copy(i->gpu, sizeof(i->gpu), text_at(s, 3));
	i->open_us = sqlite3_column_int64(s, 4);
	i->close_us = sqlite3_column_int64(s, 5);
	i->request_bytes = sqlite3_column_int64(s, 6);
	i->peak_bytes = sqlite3_column_int64(s, 7);
	str_copy(i->policy, sizeof(i->policy), text_at(s, 8));
	str_copy(i->state, sizeof(i->state), text_at(s, 9));
	i->frozen = strdup(text_at(s, 10));
}

static json_t *incident_json(sqlite3_stmt *s)
{
	struct incident i;
	json_t *o;

	read_incident(s, &i);
	o = json_pack("{s:I, s:s, s:s, s:f, s:o, s:I, s:I, s:s, s:s}", "id", (json_int_t)i.id,
		      "tenant", i.tenant, "UUID", i.gpu, "time", i.open_us / 1e6, "ended",
		      i.close_us ? json_real(i.close_us / 1e6) : json_null(), "request",
		      (json_int_t)i.request_bytes, "peak", (json_int_t)i.peak_bytes, "policy",
		      i.policy, "state", i.state);
	free(i.frozen);
	return o;
}

static json_t *entry_json(sqlite3_stmt *s)
{
	const char *result = text_at(s, 9);

	return json_pack("{s:I, s:f, s:s, s:s, s:I, s:I, s:I, s:I, s:s?}", "id",
			 (json_int_t)sqlite3_column_int64(s, 0), "time",
			 sqlite3_column_int64(s, 2) / 1e6, "action", text_at(s, 3), "reason",
			 text_at(s, 4), "used", (json_int_t)sqlite3_column_int64(s, 5), "request",
			 (json_int_t)sqlite3_column_int64(s, 6), "free",
			 (json_int_t)sqlite3_column_int64(s, 7), "missing",
			 (json_int_t)sqlite3_column_int64(s, 8), "result", *result ? result : NULL);
}

int incident_log_each_open(struct incident_log *log, incident_fn fn, void *userdata)
{
	struct incident i;
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(log->db,
			       "SELECT " INCIDENT_COLUMNS
			       " FROM " BOTH("incidents") " WHERE close_us = 0 ORDER BY id",
			       -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "select");
	while (sqlite3_step(s) == SQLITE_ROW) {
		read_incident(s, &i);
		fn(&i, userdata);
		free(i.frozen);
	}
	sqlite3_finalize(s);
	return 0;
}

int incident_log_list(struct incident_log *log, const struct incident_filter *filter, json_t **ret)
{
	json_t *list;
	sqlite3_stmt *s;

	/* The latest so many, then turned round. */
	if (sqlite3_prepare_v2(
		    log->db,
		    "SELECT * FROM (SELECT " INCIDENT_COLUMNS " FROM " BOTH(
			    "incidents") " WHERE (?1 = '' OR tenant = ?1) AND (?2 = 0 OR uid = ?2)"
					 " AND (?3 = 0 OR close_us = 0) ORDER BY id DESC LIMIT ?4) "
					 "ORDER BY id",
		    -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "select");
	bind_text(s, 1, filter->tenant ? filter->tenant : "");
	bind_number(s, 2, filter->uid);
	bind_number(s, 3, filter->only_open);
	bind_number(s, 4, filter->limit);
	list = json_array();
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, incident_json(s));
	sqlite3_finalize(s);
	*ret = list;
	return 0;
}

static json_t *entries_of(struct incident_log *log, uint64_t id)
{
	json_t *list = json_array();
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(log->db,
			       "SELECT " ENTRY_COLUMNS
			       " FROM " BOTH("entries") " WHERE incident = ? ORDER BY id",
			       -1, &s, NULL) != SQLITE_OK)
		return list;
	bind_number(s, 1, id);
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, entry_json(s));
	sqlite3_finalize(s);
	return list;
}

int incident_log_get(struct incident_log *log, uint64_t id, uid_t uid, json_t **ret)
{
	sqlite3_stmt *s;
	int r = -ENOENT;

	if (sqlite3_prepare_v2(log->db,
			       "SELECT " INCIDENT_COLUMNS
			       " FROM " BOTH("incidents") " WHERE id = ?1 AND (?2 = 0 OR uid = ?2)",
			       -1, &s, NULL) != SQLITE_OK)
		return db_error(log, "select");
	bind_number(s, 1, id);
	bind_number(s, 2, uid);
	if (sqlite3_step(s) == SQLITE_ROW) {
		*ret = incident_json(s);
		json_object_set_new(*ret, "entries", entries_of(log, id));
		r = 0;
	}
	sqlite3_finalize(s);
	return r;
}

bool incident_log_is_spilling(const struct incident_log *log)
{
	return log->spilling;
}

void incident_log_set_max_pages(struct incident_log *log, unsigned n)
{
	_cleanup_free_ char *sql =
		str_format("PRAGMA main.max_page_count = %u", n ? n : (unsigned)INT32_MAX);

	if (sql)
		sqlite3_exec(log->db, sql, NULL, NULL, NULL);
}

void incident_log_close(struct incident_log *log)
{
	if (!log)
		return;
	write_spilled(log);
	sqlite3_close(log->db);
	free(log);
}
