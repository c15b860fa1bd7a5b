/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/history-db.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>

/* Rows are cut when so many have been written. */
#define CUT_EVERY 500

/* What is kept on the disk, some 50 MB in all, and in memory while the disk is full. */
static const struct {
	const char *name;
	const char *columns;
	const char *values;
	unsigned n_on_disk;
	unsigned n_in_memory;
} tables[N_HISTORY_TABLES] = {
	[HISTORY_INCIDENTS] = { "incidents",
				"tenant TEXT, uid INTEGER, gpu TEXT, open_us INTEGER, close_us "
				"INTEGER,"
				" request INTEGER, peak INTEGER, policy TEXT, state TEXT, frozen "
				"TEXT",
				"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", 20000, 2000 },
	[HISTORY_ENTRIES] = { "entries",
			      "incident INTEGER, time_us INTEGER, action TEXT, reason TEXT, used "
			      "INTEGER,"
			      " request INTEGER, free INTEGER, missing INTEGER, result TEXT",
			      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?", 200000, 20000 },
	[HISTORY_MINUTES] = { "minutes",
			      "minute INTEGER, tenant TEXT, uid INTEGER, gpu TEXT, samples INTEGER,"
			      " least INTEGER, mean INTEGER, most INTEGER, busy REAL",
			      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?", 300000, 20000 },
};

/*
 * @in_piece:	between begin and commit
 */
struct history_db {
	sqlite3 *db;
	uint64_t last_id[N_HISTORY_TABLES];
	unsigned n_since_cut;
	bool spilling;
	bool in_piece;
};

static int db_error(struct history_db *db, const char *what)
{
	return log_debug(-EIO, "history: %s: %s", what, sqlite3_errmsg(db->db));
}

static int execute(struct history_db *db, const char *sql)
{
	return sqlite3_exec(db->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(db, sql);
}

static int make_table(struct history_db *db, enum history_table t)
{
	_cleanup_free_ char *sql =
		str_format("CREATE TABLE IF NOT EXISTS main.%s (id INTEGER PRIMARY KEY, %s);"
			   "CREATE TABLE IF NOT EXISTS spill.%s (id INTEGER PRIMARY KEY, %s);",
			   tables[t].name, tables[t].columns, tables[t].name, tables[t].columns);

	return sql ? execute(db, sql) : -ENOMEM;
}

static uint64_t highest(struct history_db *db, enum history_table t)
{
	_cleanup_free_ char *sql = str_format("SELECT max(id) FROM main.%s", tables[t].name);
	sqlite3_stmt *s;
	uint64_t id = 0;

	if (!sql || history_db_select(db, sql, &s) < 0)
		return 0;
	if (sqlite3_step(s) == SQLITE_ROW)
		id = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return id;
}

static int prepare(struct history_db *db)
{
	int t, r;

	sqlite3_busy_timeout(db->db, 200);
	r = execute(db, "PRAGMA main.journal_mode = WAL; PRAGMA main.synchronous = NORMAL;"
			"PRAGMA main.cache_size = -256;"
			"ATTACH ':memory:' AS spill;");
	for (t = 0; r == 0 && t < N_HISTORY_TABLES; t++) {
		r = make_table(db, t);
		db->last_id[t] = highest(db, t);
	}
	if (r == 0)
		r = execute(db, "CREATE INDEX IF NOT EXISTS main.entries_of ON entries (incident);"
				"CREATE INDEX IF NOT EXISTS main.minutes_of ON minutes (tenant);");
	return r;
}

int history_db_open(const char *path, struct history_db **ret)
{
	struct history_db *db = calloc(1, sizeof(*db));
	int r = 0;

	if (!db)
		return -ENOMEM;
	if (sqlite3_open(path, &db->db) != SQLITE_OK)
		r = db_error(db, path);
	if (r == 0)
		r = prepare(db);
	if (r < 0) {
		history_db_close(db);
		return r;
	}
	*ret = db;
	return 0;
}

uint64_t history_db_next_id(struct history_db *db, enum history_table table)
{
	return ++db->last_id[table];
}

/* --- writing --- */

static void cut(struct history_db *db)
{
	int t;

	if (++db->n_since_cut < CUT_EVERY)
		return;
	db->n_since_cut = 0;
	for (t = 0; t < N_HISTORY_TABLES; t++) {
		_cleanup_free_ char *sql =
			str_format("DELETE FROM main.%s WHERE id <= %" PRId64 ";"
				   "DELETE FROM spill.%s WHERE id <= %" PRId64 ";",
				   tables[t].name, (int64_t)db->last_id[t] - tables[t].n_on_disk,
				   tables[t].name, (int64_t)db->last_id[t] - tables[t].n_in_memory);

		if (sql)
			execute(db, sql);
	}
}

/* What waits in memory goes to the disk in one piece, or stays. */
static void write_spilled(struct history_db *db)
{
	struct text sql = {};
	int t;

	if (!db->spilling || db->in_piece)
		return;
	text_add(&sql, "BEGIN;");
	for (t = 0; t < N_HISTORY_TABLES; t++)
		text_addf(&sql,
			  "INSERT OR REPLACE INTO main.%s SELECT * FROM spill.%s; DELETE FROM "
			  "spill.%s;",
			  tables[t].name, tables[t].name, tables[t].name);
	text_add(&sql, "COMMIT;");
	if (!sql.failed && execute(db, sql.data) == 0)
		db->spilling = false;
	else
		execute(db, "ROLLBACK");
	text_done(&sql);
}

static int put_into(struct history_db *db, const char *where, enum history_table table,
		    history_bind_fn bind, const void *row)
{
	_cleanup_free_ char *sql = str_format("INSERT OR REPLACE INTO %s.%s VALUES (%s)", where,
					      tables[table].name, tables[table].values);
	sqlite3_stmt *s;
	int r;

	r = sql ? history_db_select(db, sql, &s) : -ENOMEM;
	if (r < 0)
		return r;
	bind(s, row);
	if (sqlite3_step(s) != SQLITE_DONE)
		r = db_error(db, "insert");
	sqlite3_finalize(s);
	return r;
}

static void begin_spilling(struct history_db *db)
{
	if (!db->spilling)
		log_warn(-EIO, "history cannot be written (%s): it is kept in memory",
			 sqlite3_errmsg(db->db));
	db->spilling = true;
}

int history_db_put(struct history_db *db, enum history_table table, history_bind_fn bind,
		   const void *row)
{
	write_spilled(db);
	if (!db->in_piece)
		cut(db);
	/* While older rows wait, newer ones wait behind them; so do the rows of a piece. */
	if (!db->spilling && !db->in_piece) {
		if (put_into(db, "main", table, bind, row) == 0)
			return 0;
		begin_spilling(db);
	}
	return put_into(db, "spill", table, bind, row);
}

void history_db_begin(struct history_db *db)
{
	db->in_piece = true;
}

void history_db_commit(struct history_db *db)
{
	bool spilled_before = db->spilling;

	db->in_piece = false;
	db->spilling = true;
	write_spilled(db);
	if (db->spilling && !spilled_before) {
		db->spilling = false;
		begin_spilling(db);
	}
	cut(db);
}

/* --- reading --- */

int history_db_select(struct history_db *db, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(db->db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : db_error(db, sql);
}

bool history_db_is_spilling(const struct history_db *db)
{
	return db->spilling;
}

void history_db_set_max_pages(struct history_db *db, unsigned n)
{
	_cleanup_free_ char *sql =
		str_format("PRAGMA main.max_page_count = %d", n ? (int)n : INT32_MAX);

	if (sql)
		execute(db, sql);
}

void history_db_trim(struct history_db *db)
{
	sqlite3_db_release_memory(db->db);
}

void history_db_close(struct history_db *db)
{
	if (!db)
		return;
	write_spilled(db);
	sqlite3_close(db->db);
	free(db);
}

void history_bind_text(sqlite3_stmt *s, int at, const char *text)
{
	sqlite3_bind_text(s, at, text ? text : "", -1, SQLITE_TRANSIENT);
}

void history_bind_number(sqlite3_stmt *s, int at, uint64_t number)
{
	sqlite3_bind_int64(s, at, MIN(number, (uint64_t)INT64_MAX));
}

const char *history_text(sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return text ? text : "";
}
