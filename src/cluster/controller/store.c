/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/controller/store.h"

#include "base/str.h"

#include <errno.h>
#include <sqlite3.h>

#define BUSY_MS	     5000
#define TRY_EVERY_MS 20

struct store {
	sqlite3 *db;
};

/* No write-ahead log: machines that share the file could not share that. */
static const char schema[] =
	"PRAGMA journal_mode = DELETE;"
	"CREATE TABLE IF NOT EXISTS services (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL,"
	" command TEXT NOT NULL, policy TEXT NOT NULL, replicas INTEGER NOT NULL, priority INTEGER NOT NULL,"
	" memory_mib INTEGER NOT NULL, compute_permille INTEGER NOT NULL, placement INTEGER NOT NULL);"
	"CREATE TABLE IF NOT EXISTS raises (service INTEGER NOT NULL, instance INTEGER NOT NULL,"
	" memory_mib INTEGER NOT NULL, PRIMARY KEY (service, instance));"
	"CREATE TRIGGER IF NOT EXISTS no_raises AFTER DELETE ON services"
	" BEGIN DELETE FROM raises WHERE service = OLD.id; END;"
	"CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL,"
	" instance TEXT NOT NULL, job INTEGER NOT NULL, words TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS lease (one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL,"
	" renewed INTEGER NOT NULL);"
	"INSERT OR IGNORE INTO lease VALUES (1, '', 0);"
	"CREATE TABLE IF NOT EXISTS nodes (name TEXT PRIMARY KEY, heard INTEGER NOT NULL,"
	" silent INTEGER NOT NULL, refused TEXT NOT NULL);"
	"CREATE TABLE IF NOT EXISTS incidents (number INTEGER PRIMARY KEY, node TEXT NOT NULL, id INTEGER NOT NULL,"
	" tenant TEXT NOT NULL, begun INTEGER NOT NULL, ended INTEGER NOT NULL, request INTEGER NOT NULL,"
	" peak INTEGER NOT NULL, policy TEXT NOT NULL, state TEXT NOT NULL, UNIQUE (node, id, begun));"
	"CREATE TRIGGER IF NOT EXISTS bound AFTER INSERT ON orders"
	" BEGIN DELETE FROM orders WHERE id <= NEW.id - 10000; END;"
	"CREATE TRIGGER IF NOT EXISTS bound_incidents AFTER INSERT ON incidents"
	" BEGIN DELETE FROM incidents WHERE node = NEW.node AND number <= (SELECT number FROM incidents"
	" WHERE node = NEW.node ORDER BY number DESC LIMIT 1 OFFSET 1000); END;";

const char *store_reason(const struct store *store)
{
	return sqlite3_errmsg(store->db);
}

void store_close(struct store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	free(store);
}

static bool has_column(sqlite3 *db, const char *table, const char *column)
{
	return sqlite3_table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL,
					     NULL) == SQLITE_OK;
}

/* Of the services, in this order: what a file of an earlier release lacks. */
static const struct {
	const char *name;
	const char *sql;
} later_columns[] = {
	{ "raise_mib", "ALTER TABLE services ADD COLUMN raise_mib INTEGER NOT NULL DEFAULT 0" },
	{ "image", "ALTER TABLE services ADD COLUMN image TEXT NOT NULL DEFAULT ''" },
};

/* Somebody else may add one in between. */
static int add_columns(sqlite3 *db)
{
	int r = SQLITE_OK;
	size_t i;

	for (i = 0; r == SQLITE_OK && i < ARRAY_SIZE(later_columns); i++) {
		if (has_column(db, "services", later_columns[i].name))
			continue;
		r = sqlite3_exec(db, later_columns[i].sql, NULL, NULL, NULL);
		if (r != SQLITE_OK && has_column(db, "services", later_columns[i].name))
			r = SQLITE_OK;
	}
	return r;
}

/* Two that make the file at once: SQLite lets neither wait for the other while its journal changes. */
static int apply_schema(sqlite3 *db)
{
	unsigned tries;
	int r = SQLITE_BUSY;

	for (tries = 0; r == SQLITE_BUSY && tries < BUSY_MS / TRY_EVERY_MS; tries++) {
		if (tries)
			usleep(TRY_EVERY_MS * 1000);
		r = sqlite3_exec(db, schema, NULL, NULL, NULL);
		if (r == SQLITE_OK)
			r = add_columns(db);
	}
	return r;
}

int store_open(const char *path, struct store **ret, char **ret_reason)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	if (sqlite3_open(path, &store->db) == SQLITE_OK &&
	    sqlite3_busy_timeout(store->db, BUSY_MS) == SQLITE_OK &&
	    apply_schema(store->db) == SQLITE_OK) {
		*ret = store;
		return 0;
	}
	*ret_reason = strdup(store_reason(store));
	store_close(store);
	return -EIO;
}

/* What stands in the place of a ? */
struct value {
	bool is_text;
	const char *text;
	int64_t number;
};

#define TEXT(t)	  ((struct value){ true, (t), 0 })
#define NUMBER(n) ((struct value){ false, NULL, (int64_t)(n) })
#define VALUES(...)                                                                                \
	(const struct value[]){ __VA_ARGS__ },                                                     \
		sizeof((const struct value[]){ __VA_ARGS__ }) / sizeof(struct value)

static int prepare(struct store *store, const char *sql, const struct value *values, size_t n,
		   sqlite3_stmt **ret)
{
	size_t i;

	if (sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) != SQLITE_OK)
		return -EIO;
	for (i = 0; i < n; i++) {
		if (values[i].is_text)
			sqlite3_bind_text(*ret, i + 1, values[i].text, -1, SQLITE_TRANSIENT);
		else
			sqlite3_bind_int64(*ret, i + 1, values[i].number);
	}
	return 0;
}

/* A statement that answers with no rows. */
static int change(struct store *store, const char *sql, const struct value *values, size_t n)
{
	sqlite3_stmt *s;
	int r;

	r = prepare(store, sql, values, n, &s);
	if (r < 0)
		return r;
	r = sqlite3_step(s) == SQLITE_DONE ? 0 : -EIO;
	sqlite3_finalize(s);
	return r;
}

/* Return: 1 if something was there to be changed, else 0, or -EIO. */
static int change_any(struct store *store, const char *sql, const struct value *values, size_t n)
{
	int r = change(store, sql, values, n);

	return r < 0 ? r : sqlite3_changes(store->db) > 0;
}

static void copy_text(char *to, size_t size, sqlite3_stmt *s, int column)
{
	str_copy(to, size, (const char *)sqlite3_column_text(s, column));
}

/* --- services --- */

static int read_service(sqlite3_stmt *s, struct service *ret)
{
	*ret = (struct service){
		.id = sqlite3_column_int64(s, 0),
		.command = strdup((const char *)sqlite3_column_text(s, 2)),
		.n_replicas = sqlite3_column_int64(s, 4),
		.priority = sqlite3_column_int64(s, 5),
		.memory_mib = sqlite3_column_int64(s, 6),
		.compute_permille = sqlite3_column_int64(s, 7),
		.order = sqlite3_column_int(s, 8),
		.raise_mib = sqlite3_column_int64(s, 9),
	};
	copy_text(ret->name, sizeof(ret->name), s, 1);
	copy_text(ret->policy, sizeof(ret->policy), s, 3);
	copy_text(ret->image, sizeof(ret->image), s, 10);
	return ret->command ? 0 : -ENOMEM;
}

static int read_raises(struct store *store, struct service *service)
{
	struct reconcile_raise *items;
	sqlite3_stmt *s;
	int r, step = SQLITE_DONE;

	r = prepare(store,
		    "SELECT instance, MIN(memory_mib, ?) FROM raises WHERE service = ?"
		    " ORDER BY instance",
		    VALUES(NUMBER(service->raise_mib), NUMBER(service->id)), &s);
	if (r < 0)
		return r;
	while (r == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		items = reallocarray(service->raises.items, service->raises.n + 1, sizeof(*items));
		if (!items) {
			r = -ENOMEM;
			break;
		}
		service->raises.items = items;
		items[service->raises.n++] = (struct reconcile_raise){ sqlite3_column_int64(s, 0),
								       sqlite3_column_int64(s, 1) };
	}
	if (r == 0 && step != SQLITE_DONE)
		r = -EIO;
	sqlite3_finalize(s);
	return r;
}

int store_services(struct store *store, struct services *ret)
{
	struct services services = {};
	struct service *items;
	sqlite3_stmt *s;
	int r, step = SQLITE_DONE;

	r = prepare(store, "SELECT * FROM services ORDER BY id", VALUES(), &s);
	while (r == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		items = reallocarray(services.items, services.n + 1, sizeof(*items));
		if (!items) {
			r = -ENOMEM;
			break;
		}
		services.items = items;
		r = read_service(s, &items[services.n++]);
		if (r == 0)
			r = read_raises(store, &items[services.n - 1]);
	}
	if (r == 0 && step != SQLITE_DONE)
		r = -EIO;
	sqlite3_finalize(s);
	if (r < 0)
		services_done(&services);
	else
		*ret = services;
	return r;
}

int store_put(struct store *store, const struct service *service)
{
	return change(
		store,
		"INSERT INTO services (name, command, policy, replicas, priority, memory_mib,"
		" compute_permille, placement, raise_mib, image) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT (name) DO UPDATE SET"
		" command = excluded.command, policy = excluded.policy, replicas = excluded.replicas,"
		" priority = excluded.priority, memory_mib = excluded.memory_mib,"
		" compute_permille = excluded.compute_permille, placement = excluded.placement,"
		" raise_mib = excluded.raise_mib, image = excluded.image",
		VALUES(TEXT(service->name), TEXT(service->command), TEXT(service->policy),
		       NUMBER(service->n_replicas), NUMBER(service->priority),
		       NUMBER(service->memory_mib), NUMBER(service->compute_permille),
		       NUMBER(service->order), NUMBER(service->raise_mib), TEXT(service->image)));
}

int store_remove(struct store *store, const char *name)
{
	return change_any(store, "DELETE FROM services WHERE name = ?", VALUES(TEXT(name)));
}

int store_raise(struct store *store, uint32_t service, uint32_t instance, uint64_t memory_mib)
{
	return change(store,
		      "INSERT INTO raises VALUES (?, ?, ?) ON CONFLICT (service, instance)"
		      " DO UPDATE SET memory_mib = MAX(memory_mib, excluded.memory_mib)",
		      VALUES(NUMBER(service), NUMBER(instance), NUMBER(memory_mib)));
}

/* --- orders --- */

int store_note(struct store *store, const char *order, const char *instance, uint32_t job,
	       const char *words)
{
	return change(store,
		      "INSERT INTO orders (time, kind, instance, job, words)"
		      " VALUES (unixepoch(), ?, ?, ?, ?)",
		      VALUES(TEXT(order), TEXT(instance), NUMBER(job), TEXT(words)));
}

int store_each_note(struct store *store, unsigned n, store_note_fn fn)
{
	sqlite3_stmt *s;
	int r;

	r = prepare(
		store,
		"SELECT datetime(time, 'unixepoch', 'localtime'), kind, instance, job, words FROM"
		" (SELECT * FROM orders ORDER BY id DESC LIMIT ?) ORDER BY id",
		VALUES(NUMBER(n)), &s);
	if (r < 0)
		return r;
	while (sqlite3_step(s) == SQLITE_ROW)
		fn((const char *)sqlite3_column_text(s, 0), (const char *)sqlite3_column_text(s, 1),
		   (const char *)sqlite3_column_text(s, 2), (const char *)sqlite3_column_text(s, 3),
		   (const char *)sqlite3_column_text(s, 4));
	return sqlite3_finalize(s) == SQLITE_OK ? 0 : -EIO;
}

/* --- nodes --- */

static int insert_node(struct store *store, const struct store_node *node)
{
	return change(store, "INSERT INTO nodes VALUES (?, ?, ?, ?)",
		      VALUES(TEXT(node->name), NUMBER(node->heard_s), NUMBER(node->is_silent),
			     TEXT(node->refused)));
}

static int execute(struct store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

/* Whatever has been written in between is there whole, or not at all. */
static int end_transaction(struct store *store, int r)
{
	if (r == 0)
		r = execute(store, "COMMIT");
	if (r < 0)
		execute(store, "ROLLBACK");
	return r;
}

int store_set_nodes(struct store *store, const struct store_node *nodes, size_t n)
{
	size_t i;
	int r;

	r = execute(store, "BEGIN IMMEDIATE; DELETE FROM nodes");
	for (i = 0; r == 0 && i < n; i++)
		r = insert_node(store, &nodes[i]);
	return end_transaction(store, r);
}

int store_nodes(struct store *store, struct store_node **ret, size_t *ret_n)
{
	_cleanup_free_ struct store_node *nodes = NULL;
	struct store_node *more;
	sqlite3_stmt *s;
	size_t n = 0;
	int r;

	r = prepare(store, "SELECT name, heard, silent, refused FROM nodes ORDER BY name", VALUES(),
		    &s);
	while (r == 0 && sqlite3_step(s) == SQLITE_ROW) {
		more = reallocarray(nodes, n + 1, sizeof(*nodes));
		if (!more) {
			r = -ENOMEM;
			break;
		}
		nodes = more;
		nodes[n] = (struct store_node){ .heard_s = sqlite3_column_int64(s, 1),
						.is_silent = sqlite3_column_int(s, 2) };
		copy_text(nodes[n].name, sizeof(nodes->name), s, 0);
		copy_text(nodes[n++].refused, sizeof(nodes->refused), s, 3);
	}
	if (sqlite3_finalize(s) != SQLITE_OK && r == 0)
		r = -EIO;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(nodes);
	*ret_n = n;
	return 0;
}

/* --- incidents --- */

/* A node's numbers begin anew where its files were lost; when it began tells the two apart. */
static int put_incident(struct store *store, const struct store_incident *incident)
{
	const struct report_incident *i = &incident->incident;

	return change(
		store,
		"INSERT INTO incidents (node, id, tenant, begun, ended, request, peak, policy, state)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (node, id, begun) DO UPDATE SET"
		" ended = excluded.ended, peak = excluded.peak, state = excluded.state",
		VALUES(TEXT(incident->node), NUMBER(i->id), TEXT(i->tenant), NUMBER(i->begun_s),
		       NUMBER(i->ended_s), NUMBER(i->request_bytes), NUMBER(i->peak_bytes),
		       TEXT(i->policy), TEXT(i->state)));
}

int store_put_incidents(struct store *store, const struct store_incident *incidents, size_t n)
{
	size_t i;
	int r;

	r = execute(store, "BEGIN IMMEDIATE");
	for (i = 0; r == 0 && i < n; i++)
		r = put_incident(store, &incidents[i]);
	return end_transaction(store, r);
}

static void read_incident(sqlite3_stmt *s, struct store_incident *ret)
{
	struct report_incident *i = &ret->incident;

	*ret = (struct store_incident){};
	copy_text(ret->node, sizeof(ret->node), s, 0);
	i->id = sqlite3_column_int64(s, 1);
	copy_text(i->tenant, sizeof(i->tenant), s, 2);
	i->begun_s = sqlite3_column_int64(s, 3);
	i->ended_s = sqlite3_column_int64(s, 4);
	i->request_bytes = sqlite3_column_int64(s, 5);
	i->peak_bytes = sqlite3_column_int64(s, 6);
	copy_text(i->policy, sizeof(i->policy), s, 7);
	copy_text(i->state, sizeof(i->state), s, 8);
}

int store_each_incident(struct store *store, unsigned n, store_incident_fn fn)
{
	struct store_incident incident;
	sqlite3_stmt *s;
	int r;

	r = prepare(
		store,
		"SELECT node, id, tenant, begun, ended, request, peak, policy, state FROM"
		" (SELECT * FROM incidents ORDER BY begun DESC, number DESC LIMIT ?) ORDER BY begun, number",
		VALUES(NUMBER(n)), &s);
	if (r < 0)
		return r;
	while (sqlite3_step(s) == SQLITE_ROW) {
		read_incident(s, &incident);
		fn(&incident);
	}
	return sqlite3_finalize(s) == SQLITE_OK ? 0 : -EIO;
}

/* --- the lease --- */

int store_read_lease(struct store *store, struct lease_row *ret)
{
	sqlite3_stmt *s;
	int r;

	r = prepare(store, "SELECT holder, renewed FROM lease", VALUES(), &s);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	if (sqlite3_step(s) == SQLITE_ROW) {
		copy_text(ret->holder, sizeof(ret->holder), s, 0);
		ret->n_renewed = sqlite3_column_int64(s, 1);
	}
	return sqlite3_finalize(s) == SQLITE_OK ? 0 : -EIO;
}

int store_write_lease(struct store *store, const struct lease_row *read,
		      const struct lease_row *row)
{
	return change_any(
		store, "UPDATE lease SET holder = ?, renewed = ? WHERE holder = ? AND renewed = ?",
		VALUES(TEXT(row->holder), NUMBER(row->n_renewed), TEXT(read->holder),
		       NUMBER(read->n_renewed)));
}
