/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "daemon/use-log.h"

#define MINUTE 60000000ULL

static size_t n_recent(const struct use_log *log, uint32_t tenant, uint64_t now_ms)
{
	json_t *list = use_log_recent(log, tenant, now_ms);
	size_t n = json_array_size(list);

	json_decref(list);
	return n;
}

static void test_recent(void)
{
	struct use_log log = {};
	struct use_sample s = { .pid = 7, .tenant = 1, .bytes = 5 };
	unsigned i;

	for (i = 0; i < 1000; i++) {
		s.time_ms = i * 1000;
		s.tenant = 1 + i % 2;
		use_log_sample(&log, &s);
	}
	check(n_recent(&log, 0, s.time_ms) == 601, "recent: ten minutes are kept");
	check(n_recent(&log, 1, s.time_ms) == 300, "recent: of one tenant");
	use_log_done(&log);
}

static void test_much(void)
{
	struct use_log log = {};
	struct use_sample s = { .tenant = 1 };
	json_t *list;

	for (s.pid = 1; s.pid <= (int)USE_LOG_RECENT_MAX + 100; s.pid++)
		use_log_sample(&log, &s);
	list = use_log_recent(&log, 1, 0);
	check(json_array_size(list) == USE_LOG_RECENT_MAX &&
		      json_integer_value(json_object_get(json_array_get(list, 0), "pid")) == 101,
	      "recent: where there are too many, the latest");
	json_decref(list);
	use_log_done(&log);
}

static void test_minutes(void)
{
	struct use_of a = {
		.tenant = "a", .uid = 5, .gpu = "GPU-1", .bytes = 100, .busy_percent = 50
	};
	struct use_log log = {};
	struct history_db *db;
	json_t *list = NULL, *first, *last;

	history_db_open(":memory:", &db);
	use_log_minute(&log, db, 10 * MINUTE, &a);
	a.bytes = 300;
	a.busy_percent = 0;
	use_log_minute(&log, db, 10 * MINUTE + 30000000, &a);
	check(use_log_minutes(db, "a", 0, 10, &list) == 0 && json_array_size(list) == 0,
	      "minutes: not before it is over");
	json_decref(list);
	use_log_minute(&log, db, 11 * MINUTE, &a);
	use_log_minutes(db, "a", 5, 10, &list);
	first = json_array_get(list, 0);
	check(json_array_size(list) == 1 &&
		      json_integer_value(json_object_get(first, "time")) == 600 &&
		      json_integer_value(json_object_get(first, "samples")) == 2 &&
		      json_integer_value(json_object_get(first, "least")) == 100 &&
		      json_integer_value(json_object_get(first, "mean")) == 200 &&
		      json_integer_value(json_object_get(first, "most")) == 300 &&
		      json_number_value(json_object_get(first, "utilization")) == 25,
	      "minutes: what came of it");
	json_decref(list);
	use_log_minute(&log, db, 4 * MINUTE, &a);
	use_log_minutes(db, "a", 0, 10, &list);
	check(json_array_size(list) == 2, "minutes: a clock that was set back loses none");
	last = json_array_get(list, 1);
	check(json_integer_value(json_object_get(last, "samples")) == 1 &&
		      json_integer_value(json_object_get(last, "least")) == 300 &&
		      json_integer_value(json_object_get(last, "most")) == 300 &&
		      json_number_value(json_object_get(last, "utilization")) == 0,
	      "minutes: each is counted by itself");
	json_decref(list);
	use_log_minutes(db, "a", 6, 10, &list);
	check(json_array_size(list) == 0, "minutes: not of others");
	json_decref(list);
	use_log_done(&log);
	history_db_close(db);
}

/* A number of the last minute of a tenant. */
static json_int_t latest(struct history_db *db, const char *tenant, const char *member)
{
	json_t *list = NULL;
	json_int_t number;

	use_log_minutes(db, tenant, 0, 1, &list);
	number = json_integer_value(json_object_get(json_array_get(list, 0), member));
	json_decref(list);
	return number;
}

/* Tenants come and go, and the order in which they are told of changes. */
static void test_many(void)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct use_of use = { .gpu = "GPU-1" };
	struct use_log log = {};
	struct history_db *db;
	unsigned i, minute;

	history_db_open(":memory:", &db);
	for (minute = 1; minute <= 4; minute++) {
		for (i = 0; i < 8; i++) {
			use.tenant = names[(i * minute + i / 4) % 4];
			use.bytes = *use.tenant;
			if (minute != 2 || *use.tenant != 'b')
				use_log_minute(&log, db, minute * MINUTE, &use);
		}
	}
	use_log_flush(&log, db);
	check(latest(db, "a", "mean") == 'a' && latest(db, "a", "time") == 240 &&
		      latest(db, "a", "samples") == 4 && latest(db, "b", "samples") == 4,
	      "minutes: whatever the order");
	check(latest(db, "c", "time") == 180 && latest(db, "d", "time") == 180 &&
		      latest(db, "c", "samples") == 2,
	      "minutes: who had nothing has none");
	use_log_flush(&log, db);
	check(log.n_minutes == 0, "minutes: and is forgotten");
	use_log_done(&log);
	history_db_close(db);
}

int main(void)
{
	test_recent();
	test_much();
	test_minutes();
	test_many();
	return check_result();
}
