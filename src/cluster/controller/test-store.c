/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/controller/store.h"

#include "base/check.h"
#include "base/str.h"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>

static unsigned n_notes;

static void on_note(_unused_ const char *when, const char *order, const char *instance,
		    const char *job, const char *words)
{
	n_notes += str_eq(order, "submit") && str_eq(instance, "web.0") && str_eq(job, "7") &&
		   str_eq(words, "n1 g0");
}

static bool put(struct store *store, const char *name, uint32_t n_replicas)
{
	struct service service = { .command = (char *)"sleep 1",
				   .image = "serve:2",
				   .policy = "evict",
				   .n_replicas = n_replicas,
				   .priority = 100,
				   .memory_mib = 1024,
				   .compute_permille = 300,
				   .order = PLACEMENT_SPREAD,
				   .raise_mib = 2048 };

	str_copy(service.name, sizeof(service.name), name);
	return store_put(store, &service) == 0;
}

static uint64_t request_of(struct store *store, const char *name, uint32_t instance)
{
	_cleanup_(services_done) struct services services = {};

	return store_services(store, &services) == 0 && service_find(&services, name)
		       ? service_request_mib(service_find(&services, name), instance)
		       : 0;
}

static void test_raises(struct store *store)
{
	_cleanup_(services_done) struct services services = {};
	uint32_t id;

	put(store, "grows", 9);
	store_services(store, &services);
	id = service_find(&services, "grows")->id;
	check(request_of(store, "grows", 7) == 1024,
	      "store: an instance asks for what its service does");
	check(store_raise(store, id, 7, 1500) == 0 && store_raise(store, id, 2, 9000) == 0 &&
		      store_raise(store, id, 7, 1200) == 0,
	      "store: instances are raised");
	check(request_of(store, "grows", 7) == 1500 && request_of(store, "grows", 2) == 2048 &&
		      request_of(store, "grows", 3) == 1024 && request_of(store, "web", 7) == 1024,
	      "store: and ask for that, and no further than they may");
	check(put(store, "grows", 1) && request_of(store, "grows", 7) == 1500,
	      "store: also when the service is changed");
	check(store_remove(store, "grows") == 1 && put(store, "grows", 1) &&
		      request_of(store, "grows", 7) == 1024,
	      "store: until it is removed");
	store_remove(store, "grows");
}

static void test_nodes(struct store *store)
{
	const struct store_node both[] = { { "n1", 7, false, "" }, { "n2", 0, true, "lies" } };
	_cleanup_free_ struct store_node *one = NULL;
	struct store_node *read = NULL;
	size_t n = 0;

	check(store_set_nodes(store, both, 2) == 0 && store_nodes(store, &read, &n) == 0 &&
		      n == 2 && read[0].heard_s == 7 && !read[0].is_silent && read[1].is_silent &&
		      str_eq(read[1].refused, "lies"),
	      "store: nodes as they are");
	free(read);
	check(store_set_nodes(store, both, 1) == 0 && store_nodes(store, &one, &n) == 0 && n == 1,
	      "store: and no others");
}

static struct store_incident latest;
static unsigned n_incidents, n_of_first;

static void on_incident(const struct store_incident *incident)
{
	latest = *incident;
	n_incidents++;
	n_of_first += str_eq(incident->node, "n1");
}

static void test_incidents(struct store *store)
{
	struct store_incident incidents[] = {
		{ "n1", { 3, "job-7", 10, 0, 100, 200, "evict", "warn" } },
		{ "n2", { 3, "job-8", 11, 0, 100, 300, "warn", "warn" } },
	};

	size_t i;

	check(store_put_incidents(store, incidents, 2) == 0, "store: incidents of two nodes");
	incidents[1].incident.ended_s = 20;
	incidents[1].incident.peak_bytes = 400;
	check(store_put_incidents(store, &incidents[1], 1) == 0 &&
		      store_each_incident(store, 10, on_incident) == 0 && n_incidents == 2 &&
		      str_eq(latest.node, "n2") && latest.incident.ended_s == 20 &&
		      latest.incident.peak_bytes == 400,
	      "store: what has changed of one is changed");
	incidents[1].incident.begun_s = 30;
	n_incidents = 0;
	check(store_put_incidents(store, &incidents[1], 1) == 0 &&
		      store_each_incident(store, 10, on_incident) == 0 && n_incidents == 3,
	      "store: a node that counts anew has new ones");
	for (i = 0; i < 1100; i++) {
		incidents[1].incident.id = i;
		store_put_incidents(store, &incidents[1], 1);
	}
	n_incidents = n_of_first = 0;
	check(store_each_incident(store, 5000, on_incident) == 0 && n_of_first == 1 &&
		      n_incidents == 1001,
	      "store: a node that has too many pushes out none of another's");
}

static void test_lease(struct store *store)
{
	struct lease_row none = {}, read = {}, mine = { "me", 1 };

	check(store_read_lease(store, &read) == 0 && !*read.holder && read.n_renewed == 0,
	      "store: nobody has the lease at first");
	check(store_write_lease(store, &read, &mine) == 1 &&
		      store_write_lease(store, &none, &mine) == 0,
	      "store: one of two takes it");
	check(store_read_lease(store, &read) == 0 && str_eq(read.holder, "me") &&
		      read.n_renewed == 1,
	      "store: and has it");
}

/* As the first releases made it. */
static const char old_services[] =
	"CREATE TABLE services (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL,"
	" command TEXT NOT NULL, policy TEXT NOT NULL, replicas INTEGER NOT NULL, priority INTEGER NOT NULL,"
	" memory_mib INTEGER NOT NULL, compute_permille INTEGER NOT NULL, placement INTEGER NOT NULL);"
	"INSERT INTO services VALUES (3, 'old', 'sleep 2', 'warn', 1, 100, 512, 0, 1)";

static void test_old_file(void)
{
	_cleanup_(services_done) struct services services = {};
	char folder[] = "/tmp/test-store-XXXXXX";
	_cleanup_free_ char *path = mkdtemp(folder) ? str_format("%s/db", folder) : NULL;
	_cleanup_free_ char *reason = NULL;
	struct store *store;
	sqlite3 *db;

	check(path && sqlite3_open(path, &db) == SQLITE_OK &&
		      sqlite3_exec(db, old_services, NULL, NULL, NULL) == SQLITE_OK &&
		      sqlite3_close(db) == SQLITE_OK,
	      "store: there is an old file");
	if (!check(store_open(path, &store, &reason) == 0, "store: it opens"))
		return;
	check(put(store, "new", 1) && store_services(store, &services) == 0 && services.n == 2 &&
		      str_eq(service_find(&services, "old")->command, "sleep 2") &&
		      str_eq(service_find(&services, "old")->image, "") &&
		      str_eq(service_find(&services, "new")->image, "serve:2"),
	      "store: its services have no image, new ones may");
	store_close(store);
	check(store_open(path, &store, &reason) == 0, "store: it opens again");
	store_close(store);
	unlink(path);
	rmdir(folder);
}

/* --- a disk that is full --- */

static bool mount_small_disk(const char *folder)
{
	return unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", folder, "tmpfs", 0, "size=1m") == 0;
}

static void fill(const char *path)
{
	static const char bytes[4096];
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	close(fd);
}

static void test_nothing_is_written(struct store *store, uint32_t id)
{
	struct lease_row read = {}, mine = { "me", 1 };

	check(!put(store, "more", 1) && strstr(store_reason(store), "full"),
	      "full disk: no service is added: %s", store_reason(store));
	check(!put(store, "web", 9) && store_remove(store, "web") < 0 &&
		      store_raise(store, id, 0, 1500) < 0 &&
		      store_note(store, "submit", "web.0", 7, "n1 g0") < 0,
	      "full disk: nor changed, removed, raised, nor is an order written down");
	check(store_read_lease(store, &read) == 0 && store_write_lease(store, &read, &mine) < 0,
	      "full disk: nobody takes the lease");
}

static void test_full_disk(const char *folder)
{
	_cleanup_free_ char *path = str_format("%s/db", folder);
	_cleanup_free_ char *filler = str_format("%s/filler", folder), *reason = NULL;
	_cleanup_(services_done) struct services services = {};
	struct store *store;

	if (!check(store_open(path, &store, &reason) == 0 && put(store, "web", 2) &&
			   store_services(store, &services) == 0 && services.n == 1,
		   "full disk: there is a service"))
		return;
	fill(filler);
	test_nothing_is_written(store, services.items[0].id);
	store_close(store);
	services_done(&services);
	check(store_open(path, &store, &reason) == 0 && store_services(store, &services) == 0 &&
		      services.n == 1 && services.items[0].n_replicas == 2 &&
		      request_of(store, "web", 0) == 1024,
	      "full disk: what was there is read, also by who opens it anew");
	unlink(filler);
	check(put(store, "web", 9) && put(store, "more", 1) &&
		      store_raise(store, services.items[0].id, 0, 1500) == 0 &&
		      request_of(store, "web", 0) == 1500,
	      "full disk: all is as ever when there is room");
	store_close(store);
}

/* The last test: what it mounts nobody else sees. */
static void test_small_disk(void)
{
	char folder[] = "/tmp/test-store-XXXXXX";

	if (!check(mkdtemp(folder) != NULL, "full disk: there is a folder"))
		return;
	if (mount_small_disk(folder)) {
		test_full_disk(folder);
		umount(folder);
	} else {
		printf("skip 'a full disk': may not mount\n");
	}
	rmdir(folder);
}

int main(void)
{
	_cleanup_(services_done) struct services services = {};
	_cleanup_free_ char *reason = NULL;
	struct store *store;
	uint32_t first;

	check(store_open("/nowhere/at/all.db", &store, &reason) < 0 && reason,
	      "store: a file that cannot be made is told: %s", reason ? reason : "-");
	if (!check(store_open(":memory:", &store, &reason) == 0, "store: opens"))
		return check_result();
	check(put(store, "web", 2) && put(store, "batch", 1) && put(store, "web", 3),
	      "store: adds and changes");
	check(store_services(store, &services) == 0 && services.n == 2 &&
		      service_find(&services, "web")->n_replicas == 3 &&
		      str_eq(service_find(&services, "web")->command, "sleep 1") &&
		      service_find(&services, "web")->order == PLACEMENT_SPREAD &&
		      str_eq(service_find(&services, "web")->image, "serve:2") &&
		      service_find(&services, "web")->raise_mib == 2048,
	      "store: reads what was written");
	first = service_find(&services, "batch")->id;
	check(store_remove(store, "batch") == 1 && store_remove(store, "batch") == 0,
	      "store: takes out, once");
	services_done(&services);
	put(store, "batch", 1);
	check(store_services(store, &services) == 0 && service_find(&services, "batch")->id > first,
	      "store: a number is never another service's");
	check(store_note(store, "submit", "web.0", 7, "n1 g0") == 0 &&
		      store_each_note(store, 10, on_note) == 0 && n_notes == 1,
	      "store: keeps orders");
	test_raises(store);
	test_nodes(store);
	test_incidents(store);
	test_lease(store);
	test_old_file();
	store_close(store);
	test_small_disk();
	return check_result();
}
