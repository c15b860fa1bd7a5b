/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "daemon/incident-log.h"

#include <errno.h>

static struct incident incident(const char *tenant, uid_t uid)
{
	struct incident i = {
		.uid = uid, .open_us = 1000000, .request_bytes = 1 << 30, .peak_bytes = 3 << 20
	};

	str_copy(i.tenant, sizeof(i.tenant), tenant);
	str_copy(i.gpu, sizeof(i.gpu), "GPU-1");
	str_copy(i.state, sizeof(i.state), "warn");
	return i;
}

static size_t count(struct history_db *log, struct incident_filter filter)
{
	json_t *list = NULL;
	size_t n;

	filter.limit = 10000;
	if (incident_log_list(log, &filter, &list) < 0)
		return SIZE_MAX;
	n = json_array_size(list);
	json_decref(list);
	return n;
}

static size_t n_entries(struct history_db *log, uint64_t id)
{
	json_t *o = NULL;
	size_t n;

	if (incident_log_get(log, id, 0, &o) < 0)
		return SIZE_MAX;
	n = json_array_size(json_object_get(o, "entries"));
	json_decref(o);
	return n;
}

static void count_open(struct incident *i, void *userdata)
{
	*(unsigned *)userdata += str_eq(i->frozen, "cgroup /a") ? 10 : 1;
}

static void test_keeping(const char *path)
{
	struct incident a = incident("alice", 1000), b = incident("bob", 1001);
	struct incident_entry e = { .incident = 1, .action = "warn", .reason = "over-request" };
	struct history_db *log;
	json_t *o = NULL;
	unsigned open = 0;

	check(history_db_open(path, &log) == 0, "open: a new one");
	a.frozen = (char *)"cgroup /a";
	check(incident_log_put(log, &a) == 0 && incident_log_put(log, &b) == 0 && a.id == 1 &&
		      b.id == 2,
	      "put: numbered from 1");
	check(incident_log_put_entry(log, &e) == 0 && e.id == 1, "put: an entry");
	str_copy(e.result, sizeof(e.result), "told");
	incident_log_put_entry(log, &e);
	check(n_entries(log, 1) == 1 && n_entries(log, 2) == 0, "put: again changes it");
	check(count(log, (struct incident_filter){}) == 2 &&
		      count(log, (struct incident_filter){ .uid = 1001 }) == 1 &&
		      count(log, (struct incident_filter){ .tenant = "bob" }) == 1,
	      "list: all, a user's own, a tenant's");
	check(incident_log_get(log, 1, 1001, &o) == -ENOENT &&
		      incident_log_get(log, 9, 0, &o) == -ENOENT,
	      "get: not of others, nor what is not there");
	b.close_us = 2000000;
	incident_log_put(log, &b);
	check(count(log, (struct incident_filter){ .only_open = true }) == 1,
	      "list: those that go on");
	history_db_close(log);

	check(history_db_open(path, &log) == 0, "open: again");
	incident_log_each_open(log, count_open, &open);
	check(open == 10, "open: what was suspended is known");
	b = incident("carol", 7);
	incident_log_put(log, &b);
	check(b.id == 3, "open: numbers go on");
	history_db_close(log);
}

static void test_full_disk(const char *path)
{
	struct history_db *log;
	struct incident i;
	unsigned n;

	history_db_open(path, &log);
	history_db_set_max_pages(log, 10);
	for (n = 0; n < 1000; n++) {
		i = incident("x", 0);
		if (incident_log_put(log, &i) != 0)
			break;
	}
	check(n == 1000 && history_db_is_spilling(log), "full disk: goes on in memory");
	check(count(log, (struct incident_filter){ .tenant = "x" }) == 1000,
	      "full disk: all are shown");
	i.close_us = 5;
	incident_log_put(log, &i);
	check(count(log, (struct incident_filter){ .tenant = "x", .only_open = true }) == 999,
	      "full disk: a change is shown once");
	history_db_set_max_pages(log, 0);
	i = incident("x", 0);
	check(incident_log_put(log, &i) == 0 && !history_db_is_spilling(log),
	      "full disk: written once there is room");
	history_db_close(log);
	history_db_open(path, &log);
	check(count(log, (struct incident_filter){ .tenant = "x" }) == 1001,
	      "full disk: nothing is lost");
	history_db_close(log);
}

int main(void)
{
	char dir[] = "/tmp/test-incidents-XXXXXX";
	_cleanup_free_ char *path = NULL, *command = NULL;
	struct history_db *log;

	if (!check(mkdtemp(dir) != NULL, "a folder"))
		return 1;
	path = str_format("%s/history.db", dir);
	test_keeping(path);
	test_full_disk(path);
	check(history_db_open("/nowhere/x.db", &log) == -EIO, "open: no such folder");
	command = str_format("rm -r %s", dir);
	check(system(command) == 0, "the folder goes");
	return check_result();
}
