/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "daemon/event-log.h"
#include "daemon/event-owners.h"

#include <errno.h>
#include <time.h>

static uint64_t add(struct event_log *log, const char *tenant, uid_t uid)
{
	struct event e = { .kind = EVENT_REFUSED,
			   .tenant = tenant,
			   .uid = uid,
			   .size = 1 << 20,
			   .left = 0,
			   .wait_ms = EVENT_NO_NUMBER,
			   .text = "it's \"text\"" };
	uint64_t id = 0;

	event_log_add(log, &e, &id);
	return id;
}

static size_t count(struct event_log *log, struct event_filter filter)
{
	json_t *list = NULL;
	size_t n;

	if (event_log_list(log, &filter, &list) < 0)
		return SIZE_MAX;
	n = json_array_size(list);
	json_decref(list);
	return n;
}

static void test_keeping(void)
{
	struct event_log *log;
	json_t *event;

	if (!check(event_log_open(":memory:", &log) == 0, "event_log_open: in memory"))
		return;
	check(add(log, "alice", 1000) == 1 && add(log, "bob", 1001) == 2 &&
		      add(log, "bob", 1001) == 3,
	      "event_log_add: numbered from 1");
	event_log_flush(log);
	check(add(log, "carol", 1002) == 4 && event_log_last(log) == 4,
	      "event_log_add: after a flush");
	check(count(log, (struct event_filter){ .limit = 10 }) == 4,
	      "event_log_list: all for root, written or not");
	check(count(log, (struct event_filter){ .limit = 10, .after = 1, .tenant = "bob" }) == 2,
	      "event_log_list: of one tenant, after one");
	check(count(log, (struct event_filter){ .limit = 10, .uid = 1000 }) == 1 &&
		      count(log, (struct event_filter){ .limit = 10, .uid = 1002 }) == 1,
	      "event_log_list: a user's own");
	check(count(log, (struct event_filter){ .limit = 2 }) == 2,
	      "event_log_list: at most so many");
	check(event_log_get(log, 2, 1000, &event) == -ENOENT &&
		      event_log_get(log, 9, 0, &event) == -ENOENT,
	      "event_log_get: not others', none that is not there");
	check(event_log_get(log, 2, 1001, &event) == 0 &&
		      json_integer_value(json_object_get(event, "size")) == 1 << 20 &&
		      json_is_null(json_object_get(event, "wait_ms")) &&
		      json_is_string(json_object_get(event, "why")),
	      "event_log_get: with its words; what is not known is null");
	json_decref(event);
	check(event_log_count(log, EVENT_REFUSED) == 4, "event_log_count: by kind");
	event_log_close(log);
}

static void flood(struct event_log *log, uid_t uid, int n)
{
	int i;

	for (i = 0; i < n; i++)
		add(log, "flood", uid);
	event_log_flush(log);
}

/* By the log's own clock: that of time() is a tick behind it, and for so long in the second before. */
static time_t second_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

static void test_flood_of_a_user(void)
{
	time_t begun = second_now();
	struct event_log *log;
	size_t n;

	if (event_log_open(":memory:", &log) < 0)
		return;
	add(log, "bob", 1001);
	flood(log, 1000, 20 * EVENTS_A_SECOND);
	n = count(log, (struct event_filter){ .limit = 100000, .uid = 1000 });
	check(n >= EVENTS_A_SECOND &&
		      n <= (size_t)(second_now() - begun + 1) * (EVENTS_A_SECOND + 1),
	      "flood: of a user no more in a second than %d", EVENTS_A_SECOND);
	check(count(log, (struct event_filter){ .limit = 10, .tenant = "bob" }) == 1,
	      "flood: another's events are there");
	event_log_close(log);
}

/* As many owners as it takes to have more than are kept, each below its bound. */
static void test_too_many(const char *path)
{
	struct event_log *log;
	size_t n;

	if (event_log_open(path, &log) < 0)
		return;
	add(log, "bob", 1001);
	for (uid_t uid = 2000; uid < 2000 + EVENTS_KEPT / EVENTS_A_SECOND + 20; uid++)
		flood(log, uid, EVENTS_A_SECOND);
	n = count(log, (struct event_filter){ .limit = 1000000 });
	check(n <= EVENTS_KEPT + 3 * EVENTS_A_SECOND && n > EVENTS_KEPT / 10 * 8,
	      "too many: %zu are kept of %llu", n, (unsigned long long)event_log_last(log));
	check(count(log, (struct event_filter){ .limit = 10, .tenant = "bob" }) == 1,
	      "too many: the oldest of all stays, as its owner has no other");
	event_log_close(log);

	check(event_log_open(path, &log) == 0 &&
		      count(log, (struct event_filter){ .limit = 1000000 }) == n,
	      "too many: they are there after a restart");
	check(add(log, "bob", 1001) == event_log_last(log) && event_log_last(log) > EVENTS_KEPT,
	      "too many: numbers go on");
	event_log_close(log);
}

static void test_full_disk(const char *path)
{
	struct event_log_state state;
	struct event_log *log;
	uint64_t before;
	int i;

	if (event_log_open(path, &log) < 0)
		return;
	before = event_log_last(log);
	event_log_set_max_pages(log, 1);
	for (i = 0; i < 100; i++)
		add(log, "full", 3000);
	event_log_flush(log);
	event_log_state(log, &state);
	check(state.n_waiting == 100 && *state.reason && state.n_lost == 0,
	      "full disk: they wait in memory (%s)", state.reason);
	check(count(log, (struct event_filter){ .limit = 200, .tenant = "full" }) == 100 &&
		      count(log, (struct event_filter){ .limit = 200, .after = before }) == 100,
	      "full disk: they are shown");
	/* Of one owner no more are taken in a second. */
	for (uid_t uid = 4000; uid < 4000 + EVENTS_KEPT_WAITING / EVENTS_A_SECOND + 1; uid++) {
		for (i = 0; i < EVENTS_A_SECOND; i++)
			add(log, "more", uid);
	}
	event_log_flush(log);
	event_log_state(log, &state);
	check(state.n_waiting == EVENTS_KEPT_WAITING && state.n_lost == 100 + EVENTS_A_SECOND,
	      "full disk: what is too much for memory is counted: %llu",
	      (unsigned long long)state.n_lost);
	event_log_set_max_pages(log, 0);
	add(log, "room", 3001);
	event_log_flush(log);
	event_log_state(log, &state);
	check(state.n_waiting <= 1 && !*state.reason,
	      "full disk: all is written when there is room");
	check(event_log_count(log, EVENT_LOST) == 1, "full disk: and how many are lost is told");
	event_log_close(log);

	check(event_log_open(path, &log) == 0 &&
		      count(log, (struct event_filter){ .limit = 100000, .after = before }) ==
			      EVENTS_KEPT_WAITING + 2,
	      "full disk: they are there after a restart");
	event_log_close(log);
}

int main(void)
{
	char dir[] = "/tmp/test-event-log-XXXXXX", path[64], other[64];

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/a.db", dir);
	snprintf(other, sizeof(other), "%s/b.db", dir);
	test_keeping();
	test_flood_of_a_user();
	test_too_many(path);
	test_full_disk(other);
	unlink(path);
	unlink(other);
	rmdir(dir);
	return check_result();
}
