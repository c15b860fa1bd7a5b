/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables of one form: `spill`, in memory, has what is not on the disk yet, which is always
 * the latest; `main` has the rest.
 */
#include "daemon/event-log.h"

#include "base/log.h"
#include "base/str.h"
#include "daemon/event-owners.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <time.h>

/* The oldest are looked for when so many have come. */
#define CUT_EVERY 2000
/* A disk that was full is asked again. */
#define RETRY_AFTER_S 1

/*
 * @n_waiting:	rows of spill
 * @reason:	why they stay there
 * @retry_s:	when the disk is asked again
 * @n_lost_told:	of @n_lost, what an event tells of
 */
struct event_log {
	sqlite3 *db;
	sqlite3_stmt *insert;
	uint64_t last_id;
	uint64_t n_of_kind[N_EVENT_KINDS];
	uint64_t n_since_cut;
	uint64_t n_waiting;
	uint64_t n_lost;
	uint64_t n_lost_told;
	uint64_t retry_s;
	char reason[100];
	struct event_owners owners;
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

#define FORM                                                                                       \
	"time_us INTEGER, kind TEXT, tenant TEXT, uid INTEGER, gpu TEXT, pid INTEGER, call TEXT,"  \
	" reason TEXT, size INTEGER, left INTEGER, wait_ms INTEGER, text TEXT"

static const char schema[] =
	"PRAGMA main.journal_mode = WAL;"
	"PRAGMA main.synchronous = NORMAL;"
	"PRAGMA main.cache_size = -256;"
	"ATTACH ':memory:' AS spill;"
	"CREATE TABLE IF NOT EXISTS main.events (id INTEGER PRIMARY KEY AUTOINCREMENT, " FORM ");"
	"CREATE INDEX IF NOT EXISTS main.events_of_user ON events (uid);"
	"CREATE INDEX IF NOT EXISTS main.events_of_tenant ON events (tenant);"
	"CREATE TABLE spill.events (id INTEGER PRIMARY KEY, " FORM ");";

#define COLUMNS "id, time_us, kind, tenant, gpu, pid, call, reason, size, left, wait_ms, text"

const char *event_kind_name(enum event_kind kind)
{
	return kinds[kind].name;
}

/* One clock for all: that of time() is a tick behind, so that a second would be over and begin once more. */
static struct timespec time_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

static int db_error(struct event_log *log, const char *what)
{
	return log_debug(-EIO, "events: %s: %s", what, sqlite3_errmsg(log->db));
}

static int execute(struct event_log *log, const char *sql)
{
	return sqlite3_exec(log->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(log, sql);
}

static int prepare(struct event_log *log, const char *sql, sqlite3_stmt **ret)
{
	return sqlite3_prepare_v2(log->db, sql, -1, ret, NULL) == SQLITE_OK ? 0
									    : db_error(log, sql);
}

/* --- opening --- */

static int read_last(struct event_log *log)
{
	sqlite3_stmt *s;
	int r;

	/* The table of numbers knows those that are no more, too. */
	r = prepare(log, "SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'events'", &s);
	if (r < 0)
		return r;
	if (sqlite3_step(s) == SQLITE_ROW)
		log->last_id = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return 0;
}

static int read_owners(struct event_log *log)
{
	struct event_owner *owner;
	sqlite3_stmt *s;
	int r;

	r = prepare(log, "SELECT uid, tenant, count(*) FROM main.events GROUP BY uid, tenant", &s);
	if (r < 0)
		return r;
	while (sqlite3_step(s) == SQLITE_ROW) {
		owner = event_owners_get(&log->owners, sqlite3_column_int64(s, 0),
					 (const char *)sqlite3_column_text(s, 1));
		if (owner)
			event_owners_keep(&log->owners, owner, sqlite3_column_int64(s, 2));
	}
	sqlite3_finalize(s);
	return 0;
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
	if (r == 0)
		r = execute(log, schema);
	if (r == 0)
		r = read_last(log);
	if (r == 0)
		r = read_owners(log);
	if (r == 0)
		r = prepare(
			log,
			"INSERT INTO spill.events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			&log->insert);
	if (r < 0) {
		event_log_close(log);
		return r;
	}
	*ret = log;
	return 0;
}

void event_log_trim(struct event_log *log)
{
	sqlite3_db_release_memory(log->db);
}

void event_log_close(struct event_log *log)
{
	if (!log)
		return;
	if (log->insert) {
		log->retry_s = 0;
		event_log_flush(log);
	}
	sqlite3_finalize(log->insert);
	sqlite3_close(log->db);
	event_owners_done(&log->owners);
	free(log);
}

/* --- adding --- */

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

static int insert(struct event_log *log, const struct event *event, const struct timespec *now)
{
	sqlite3_stmt *s = log->insert;
	int r = 0;

	sqlite3_bind_int64(s, 1, log->last_id + 1);
	sqlite3_bind_int64(s, 2, now->tv_sec * 1000000LL + now->tv_nsec / 1000);
	bind_text(s, 3, kinds[event->kind].name);
	bind_text(s, 4, event->tenant);
	sqlite3_bind_int64(s, 5, event->uid);
	bind_text(s, 6, event->gpu);
	bind_number(s, 7, event->pid ? (uint64_t)event->pid : EVENT_NO_NUMBER);
	bind_text(s, 8, event->call);
	bind_text(s, 9, event->reason);
	bind_number(s, 10, event->size);
	bind_number(s, 11, event->left);
	bind_number(s, 12, event->wait_ms);
	bind_text(s, 13, event->text);
	if (sqlite3_step(s) != SQLITE_DONE)
		r = db_error(log, "insert");
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return r;
}

static int add(struct event_log *log, const struct event *event, struct event_owner *owner,
	       const struct timespec *now)
{
	int r = insert(log, event, now);

	if (r < 0) {
		log->n_lost++;
		return r;
	}
	log->last_id++;
	log->n_waiting++;
	log->n_since_cut++;
	event_owners_keep(&log->owners, owner, 1);
	return 0;
}

int event_log_add(struct event_log *log, const struct event *event, uint64_t *ret_id)
{
	struct event_owner *owner = event_owners_get(&log->owners, event->uid, event->tenant);
	struct timespec now = time_now();
	int r;

	if (!owner)
		return -ENOMEM;
	log->n_of_kind[event->kind]++;
	/* What is about nobody is the daemon's own. */
	if ((owner->uid || *owner->tenant) && !event_owners_take(&log->owners, owner, now.tv_sec))
		return EVENT_E_LEFT_OUT;
	r = add(log, event, owner, &now);
	if (r == 0 && ret_id)
		*ret_id = log->last_id;
	return r;
}

bool event_log_leaves_out(struct event_log *log, uid_t uid, const char *tenant)
{
	struct event_owner *owner = event_owners_get(&log->owners, uid, tenant);

	return owner && event_owners_is_over(&log->owners, owner, time_now().tv_sec);
}

/* An event about the log itself. */
static void add_own(struct event_log *log, enum event_kind kind, uid_t uid, const char *tenant,
		    const char *text)
{
	struct event event = { .kind = kind,
			       .uid = uid,
			       .tenant = tenant,
			       .text = text,
			       .size = EVENT_NO_NUMBER,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };
	struct event_owner *owner = event_owners_get(&log->owners, uid, tenant);
	struct timespec now = time_now();

	log->n_of_kind[kind]++;
	if (owner && text)
		add(log, &event, owner, &now);
}

static void tell_left_out(struct event_log *log, uint64_t second)
{
	const struct event_owner *owner;
	uint64_t n;

	while ((owner = event_owners_next_left_out(&log->owners, second, &n))) {
		_cleanup_free_ char *tenant = *owner->tenant ? strdup(owner->tenant) : NULL;
		_cleanup_free_ char *text = str_format(
			"%" PRIu64 " more events came within a second than the %d that are kept", n,
			EVENTS_A_SECOND);

		add_own(log, EVENT_LEFT_OUT, owner->uid ? owner->uid : EVENT_NO_UID, tenant, text);
	}
}

static void tell_lost(struct event_log *log)
{
	_cleanup_free_ char *text = NULL;

	if (log->n_lost == log->n_lost_told)
		return;
	text = str_format("%" PRIu64 " events could not be kept while the disk took none",
			  log->n_lost - log->n_lost_told);
	log->n_lost_told = log->n_lost;
	add_own(log, EVENT_LOST, EVENT_NO_UID, NULL, text);
}

/* --- what is too much --- */

/* The oldest @n of an owner in a table. Return: how many there were. */
static uint64_t drop_oldest(struct event_log *log, const struct event_owner *owner, uint64_t n)
{
	static const char of_user[] = "DELETE FROM main.events WHERE id IN (SELECT id FROM"
				      " main.events WHERE uid = ?1 ORDER BY id LIMIT ?3)";
	/* Of no user: root's, or 4294967295, nobody's. */
	static const char of_tenant[] =
		"DELETE FROM main.events WHERE id IN (SELECT id FROM main.events WHERE tenant IS"
		" nullif(?2, '') AND uid IN (0, 4294967295) ORDER BY id LIMIT ?3)";
	sqlite3_stmt *s;
	uint64_t n_gone = 0;

	if (prepare(log, owner->uid ? of_user : of_tenant, &s) < 0)
		return 0;
	sqlite3_bind_int64(s, 1, owner->uid);
	bind_text(s, 2, owner->tenant);
	sqlite3_bind_int64(s, 3, n);
	if (sqlite3_step(s) == SQLITE_DONE)
		n_gone = sqlite3_changes(log->db);
	sqlite3_finalize(s);
	return n_gone;
}

/* Brings all to nine tenths of what is kept, so that it is long until the next time. */
static void cut(struct event_log *log)
{
	struct event_owner *owner;
	uint64_t level;
	size_t i;

	if (log->n_since_cut < CUT_EVERY)
		return;
	log->n_since_cut = 0;
	if (log->owners.n_kept <= EVENTS_KEPT)
		return;
	level = event_owners_level(&log->owners, EVENTS_KEPT / 10 * 9);
	execute(log, "BEGIN");
	for (i = 0; i < log->owners.n; i++) {
		owner = &log->owners.items[i];
		if (owner->n_kept > level)
			event_owners_keep(&log->owners, owner,
					  -(int64_t)drop_oldest(log, owner, owner->n_kept - level));
	}
	execute(log, "COMMIT");
	event_owners_drop_empty(&log->owners);
}

/* --- to the disk --- */

static void keep_in_memory(struct event_log *log, uint64_t second)
{
	const char *reason = sqlite3_errmsg(log->db);
	sqlite3_stmt *s;

	if (!*log->reason)
		log_warn(-EIO, "events cannot be written (%s): they are kept in memory", reason);
	str_copy(log->reason, sizeof(log->reason), reason);
	log->retry_s = second + RETRY_AFTER_S;
	execute(log, "ROLLBACK");
	if (log->n_waiting <= EVENTS_KEPT_WAITING)
		return;
	if (prepare(log, "DELETE FROM spill.events WHERE id <= ?", &s) < 0)
		return;
	sqlite3_bind_int64(s, 1, log->last_id - EVENTS_KEPT_WAITING);
	if (sqlite3_step(s) == SQLITE_DONE) {
		log->n_lost += sqlite3_changes(log->db);
		log->n_waiting -= sqlite3_changes(log->db);
	}
	sqlite3_finalize(s);
}

static int move_to_disk(struct event_log *log)
{
	int r;

	r = execute(log, "BEGIN; INSERT INTO main.events SELECT * FROM spill.events;"
			 " DELETE FROM spill.events; COMMIT");
	if (r < 0)
		return r;
	log->n_waiting = 0;
	if (*log->reason)
		log_info("events are written again");
	log->reason[0] = '\0';
	return 0;
}

void event_log_flush(struct event_log *log)
{
	uint64_t second = time_now().tv_sec;

	tell_left_out(log, second);
	if (log->n_waiting == 0)
		return;
	if (*log->reason && second < log->retry_s && log->n_waiting <= EVENTS_KEPT_WAITING)
		return;
	if (move_to_disk(log) < 0) {
		keep_in_memory(log, second);
		return;
	}
	tell_lost(log);
	cut(log);
}

void event_log_state(const struct event_log *log, struct event_log_state *ret)
{
	*ret = (struct event_log_state){ log->n_waiting, log->n_lost, log->reason };
}

uint64_t event_log_last(const struct event_log *log)
{
	return log->last_id;
}

void event_log_set_max_pages(struct event_log *log, unsigned n)
{
	_cleanup_free_ char *sql =
		str_format("PRAGMA main.max_page_count = %d", n ? (int)n : INT32_MAX);

	log->retry_s = 0;
	if (sql)
		execute(log, sql);
}

/* --- reading --- */

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

/*
 * What a filter asks for is in the text, so that each query has an index to go by: that of
 * numbers, which is in both others as well.
 */
static int add_latest(struct event_log *log, const char *from, const struct event_filter *filter,
		      json_t *list)
{
	_cleanup_free_ char *sql = str_format("SELECT " COLUMNS " FROM %s.events WHERE id > ?1%s%s"
					      " ORDER BY id DESC LIMIT ?4",
					      from, filter->tenant ? " AND tenant = ?2" : "",
					      filter->uid ? " AND uid = ?3" : "");
	sqlite3_stmt *s;
	int r;

	r = sql ? prepare(log, sql, &s) : -ENOMEM;
	if (r < 0)
		return r;
	bind_number(s, 1, filter->after);
	if (filter->tenant)
		bind_text(s, 2, filter->tenant);
	if (filter->uid)
		sqlite3_bind_int64(s, 3, filter->uid);
	bind_number(s, 4, filter->limit - MIN(filter->limit, (uint64_t)json_array_size(list)));
	while (sqlite3_step(s) == SQLITE_ROW)
		json_array_append_new(list, row(s));
	sqlite3_finalize(s);
	return 0;
}

static json_t *turned_round(json_t *list)
{
	json_t *turned = json_array();
	size_t i;

	for (i = json_array_size(list); i > 0; i--)
		json_array_append(turned, json_array_get(list, i - 1));
	json_decref(list);
	return turned;
}

int event_log_list(struct event_log *log, const struct event_filter *filter, json_t **ret)
{
	json_t *list = json_array();
	int r;

	/* The latest first; what is in memory is later than what is on the disk. */
	r = add_latest(log, "spill", filter, list);
	if (r == 0 && json_array_size(list) < filter->limit)
		r = add_latest(log, "main", filter, list);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	*ret = turned_round(list);
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
	static const char sql[] =
		"SELECT " COLUMNS " FROM spill.events WHERE id = ?1 AND (?2 = 0 OR uid = ?2)"
		" UNION ALL "
		"SELECT " COLUMNS " FROM main.events WHERE id = ?1 AND (?2 = 0 OR uid = ?2)";
	sqlite3_stmt *s;
	int r = -ENOENT;

	if (prepare(log, sql, &s) < 0)
		return -EIO;
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
