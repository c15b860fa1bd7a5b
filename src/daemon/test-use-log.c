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
	for (i = 0; i < 100000; i++)
		use_log_sample(&log, &s);
	check(n_recent(&log, 0, s.time_ms) == 65536, "recent: and no more than fit");
	use_log_done(&log);
}

static void test_minutes(void)
{
	struct use_of a = {
		.tenant = "a", .uid = 5, .gpu = "GPU-1", .bytes = 100, .busy_percent = 50
	};
	struct use_log log = {};
	struct history_db *db;
	json_t *list = NULL, *first;

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
	json_decref(list);
	use_log_minutes(db, "a", 6, 10, &list);
	check(json_array_size(list) == 0, "minutes: not of others");
	json_decref(list);
	use_log_done(&log);
	history_db_close(db);
}

int main(void)
{
	test_recent();
	test_minutes();
	return check_result();
}
