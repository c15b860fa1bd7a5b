/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "daemon/event-log.h"

#include <errno.h>

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

int main(void)
{
	struct event_log *log;
	json_t *event;

	if (!check(event_log_open(":memory:", &log) == 0, "event_log_open: in memory"))
		return 1;
	check(add(log, "alice", 1000) == 1 && add(log, "bob", 1001) == 2 &&
		      add(log, "bob", 1001) == 3,
	      "event_log_add: numbered from 1");
	check(count(log, (struct event_filter){ .limit = 10 }) == 3,
	      "event_log_list: all for root");
	check(count(log, (struct event_filter){ .limit = 10, .after = 1, .tenant = "bob" }) == 2,
	      "event_log_list: of one tenant, after one");
	check(count(log, (struct event_filter){ .limit = 10, .uid = 1000 }) == 1,
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
	check(event_log_count(log, EVENT_REFUSED) == 3, "event_log_count: by kind");
	event_log_close(log);
	return check_result();
}
