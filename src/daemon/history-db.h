/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of what was: incidents, their entries, and what tenants held minute by minute.
 *
 * A file in the state folder, which `sqlite3` can read. What cannot be written, as on a
 * full disk, stays in memory, is shown all the same, and is written when there is room.
 * Every write is of a whole row by its number, so that a row that the disk did not take
 * can wait in the attached memory database, and replace or be replaced later.
 */
#ifndef DAEMON_HISTORY_DB_H
#define DAEMON_HISTORY_DB_H

#include "base/base.h"

#include <sqlite3.h>
#include <stdbool.h>

enum history_table {
	HISTORY_INCIDENTS,
	HISTORY_ENTRIES,
	HISTORY_MINUTES,
	N_HISTORY_TABLES,
};

struct history_db;

/**
 * history_db_open() - open or make the database
 * @path:	":memory:" for one that does not last
 *
 * Return: 0, -ENOMEM, or -EIO: the reason was logged at debug.
 */
int history_db_open(const char *path, struct history_db **ret);

/**
 * history_db_next_id() - a number for a new row of a table
 */
uint64_t history_db_next_id(struct history_db *db, enum history_table table);

/**
 * history_db_put() - write a row, or write it anew
 * @bind:	sets the columns of @row, in the order of the table; the first is the number
 *
 * The oldest rows go when there are too many.
 *
 * Return: 0, or -EIO where not even memory takes it.
 */
typedef void (*history_bind_fn)(sqlite3_stmt *s, const void *row);
int history_db_put(struct history_db *db, enum history_table table, history_bind_fn bind,
		   const void *row);

/**
 * history_db_begin() - several rows follow, to be written in one piece
 *
 * Ended by history_db_commit(); that such a piece does not fit loses none of its rows.
 */
void history_db_begin(struct history_db *db);
void history_db_commit(struct history_db *db);

/* A table of both databases as one, without what memory knows better. */
#define HISTORY_BOTH(table)                                                                        \
	"(SELECT * FROM spill." table " UNION ALL SELECT * FROM main." table                       \
	" WHERE id NOT IN (SELECT id FROM spill." table "))"

/**
 * history_db_select() - prepare a query
 * @ret:	the caller finalizes it
 *
 * Return: 0, or -EIO.
 */
int history_db_select(struct history_db *db, const char *sql, sqlite3_stmt **ret);

/**
 * history_db_is_spilling() - does something wait in memory for room on the disk?
 */
bool history_db_is_spilling(const struct history_db *db);

/**
 * history_db_set_max_pages() - for tests: the disk is full beyond so many pages; 0 for no limit
 */
void history_db_set_max_pages(struct history_db *db, unsigned n);

void history_db_close(struct history_db *db);

/** history_db_trim() - free what is kept of the file in memory, and is read again where it is needed */
void history_db_trim(struct history_db *db);

/* Binding and reading columns; a text that is not there is "". */
void history_bind_text(sqlite3_stmt *s, int at, const char *text);
void history_bind_number(sqlite3_stmt *s, int at, uint64_t number);
const char *history_text(sqlite3_stmt *s, int at);

#endif
