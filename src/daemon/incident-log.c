/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/incident-log.h"

#include "base/str.h"

#include <errno.h>

#define INCIDENT_COLUMNS                                                                           \
	"id, tenant, uid, gpu, open_us, close_us, request, peak, policy, state, frozen"
#define ENTRY_COLUMNS "id, incident, time_us, action, reason, used, request, free, missing, result"

/* --- writing --- */

static void bind_incident(sqlite3_stmt *s, const void *row)
{
	const struct incident *i = row;

	history_bind_number(s, 1, i->id);
	history_bind_text(s, 2, i->tenant);
	history_bind_number(s, 3, i->uid);
	history_bind_text(s, 4, i->gpu);
	history_bind_number(s, 5, i->open_us);
	history_bind_number(s, 6, i->close_us);
	history_bind_number(s, 7, i->request_bytes);
	history_bind_number(s, 8, i->peak_bytes);
	history_bind_text(s, 9, i->policy);
	history_bind_text(s, 10, i->state);
	history_bind_text(s, 11, i->frozen ? i->frozen : "");
}

static void bind_entry(sqlite3_stmt *s, const void *row)
{
	const struct incident_entry *e = row;

	history_bind_number(s, 1, e->id);
	history_bind_number(s, 2, e->incident);
	history_bind_number(s, 3, e->time_us);
	history_bind_text(s, 4, e->action);
	history_bind_text(s, 5, e->reason);
	history_bind_number(s, 6, e->used_bytes);
	history_bind_number(s, 7, e->request_bytes);
	history_bind_number(s, 8, e->free_bytes);
	history_bind_number(s, 9, e->missing_bytes);
	history_bind_text(s, 10, e->result);
}

int incident_log_put(struct history_db *db, struct incident *incident)
{
	if (incident->id == 0)
		incident->id = history_db_next_id(db, HISTORY_INCIDENTS);
	return history_db_put(db, HISTORY_INCIDENTS, bind_incident, incident);
}

int incident_log_put_entry(struct history_db *db, struct incident_entry *entry)
{
	if (entry->id == 0)
		entry->id = history_db_next_id(db, HISTORY_ENTRIES);
	return history_db_put(db, HISTORY_ENTRIES, bind_entry, entry);
}

/* --- reading --- */

static void read_incident(sqlite3_stmt *s, struct incident *i)
{
	memset(i, 0, sizeof(*i));
	i->id = sqlite3_column_int64(s, 0);
	str_copy(i->tenant, sizeof(i->tenant), history_text(s, 1));
	i->uid = sqlite3_column_int64(s, 2);
	str_copy(i->gpu, sizeof(i->gpu), history_text(s, 3));
	i->open_us = sqlite3_column_int64(s, 4);
	i->close_us = sqlite3_column_int64(s, 5);
	i->request_bytes = sqlite3_column_int64(s, 6);
	i->peak_bytes = sqlite3_column_int64(s, 7);
	str_copy(i->policy, sizeof(i->policy), history_text(s, 8));
	str_copy(i->state, sizeof(i->state), history_text(s, 9));
	i->frozen = strdup(history_text(s, 10));
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
	const char *result = history_text(s, 9);

	return json_pack("{s:I, s:f, s:s, s:s, s:I, s:I, s:I, s:I, s:s?}", "id",
			 (json_int_t)sqlite3_column_int64(s, 0), "time",
			 sqlite3_column_int64(s, 2) / 1e6, "action", history_text(s, 3), "reason",
			 history_text(s, 4), "used", (json_int_t)sqlite3_column_int64(s, 5),
			 "request", (json_int_t)sqlite3_column_int64(s, 6), "free",
			 (json_int_t)sqlite3_column_int64(s, 7), "missing",
			 (json_int_t)sqlite3_column_int64(s, 8), "result", *result ? result : NULL);
}

int incident_log_each_open(struct history_db *db, incident_fn fn, void *userdata)
{
	struct incident i;
	sqlite3_stmt *s;

	if (history_db_select(db,
			      "SELECT " INCIDENT_COLUMNS
			      " FROM " HISTORY_BOTH("incidents") " WHERE close_us = 0 ORDER BY id",
			      &s) < 0)
		return -EIO;
	while (sqlite3_step(s) == SQLITE_ROW) {
		read_incident(s, &i);
		fn(&i, userdata);
		free(i.frozen);
	}
	sqlite3_finalize(s);
	return 0;
}

int incident_log_list(struct history_db *db, const struct incident_filter *filter, json_t **ret)
{
	json_t *list;
	sqlite3_stmt *s;

	/* The latest so many, then turned round. */
	if (history_db_select(
		    db,
		    "SELECT * FROM (SELECT " INCIDENT_COLUMNS " FROM " HISTORY_BOTH(
			    "incidents") " WHERE (?1 = '' OR tenant = ?1) AND (?2 = 0 OR uid = ?2)"
					 " AND (?3 = 0 OR close_us = 0) ORDER BY id DESC LIMIT ?4) "
					 "ORDER BY id",
		    &s) < 0)
		return -EIO;
	history_bind_text(s, 1, filter->tenant ? filter->tenant : "");
	history_bind_number(s, 2, filter->uid);
	history_bind_number(s, 3, filter->only_open);
	history_bind_number(s, 4, filter->limit);
	list = json_array();
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, incident_json(s));
	sqlite3_finalize(s);
	*ret = list;
	return 0;
}

static json_t *entries_of(struct history_db *db, uint64_t id)
{
	json_t *list = json_array();
	sqlite3_stmt *s;

	if (history_db_select(db,
			      "SELECT " ENTRY_COLUMNS
			      " FROM " HISTORY_BOTH("entries") " WHERE incident = ? ORDER BY id",
			      &s) < 0)
		return list;
	history_bind_number(s, 1, id);
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, entry_json(s));
	sqlite3_finalize(s);
	return list;
}

int incident_log_get(struct history_db *db, uint64_t id, uid_t uid, json_t **ret)
{
	sqlite3_stmt *s;
	int r = -ENOENT;

	if (history_db_select(db,
			      "SELECT " INCIDENT_COLUMNS " FROM " HISTORY_BOTH(
				      "incidents") " WHERE id = ?1 AND (?2 = 0 OR uid = ?2)",
			      &s) < 0)
		return -EIO;
	history_bind_number(s, 1, id);
	history_bind_number(s, 2, uid);
	if (sqlite3_step(s) == SQLITE_ROW) {
		*ret = incident_json(s);
		json_object_set_new(*ret, "entries", entries_of(db, id));
		r = 0;
	}
	sqlite3_finalize(s);
	return r;
}
