/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test-daemon FAKE-NVML: requests and files against a fake engine, without root.
 * Two devices of 80 GiB; "nobody" (65534, of group nogroup) is the user.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/fd.h"
#include "daemon/change.h"
#include "daemon/daemon.h"
#include "daemon/fake-engine.h"
#include "daemon/gate.h"
#include "daemon/overuse.h"
#include "gate/gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define GIB    (1ULL << 30)
#define NOBODY 65534

static char dir[] = "/tmp/test-daemon-XXXXXX";
static struct api_error error;

uint64_t daemon_now_us(void)
{
	return 1;
}

static uint64_t stopped_us; /* where a test says what time it is */

uint64_t daemon_monotonic_us(void)
{
	return stopped_us ? stopped_us : clock_now_us(CLOCK_MONOTONIC);
}

typedef int (*method_fn)(struct daemon *d, const struct request *q, json_t **ret);

/* Arguments as text with ' for "; the answer is dropped, only whether it was one counts. */
static bool ask(struct daemon *d, method_fn method, uid_t uid, const char *text)
{
	struct request q = { .peer = { .uid = uid }, .error = &error };
	_cleanup_free_ char *json = strdup(text);
	json_t *reply = NULL, *args;
	char *p;
	int r;

	for (p = json; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	args = json_loads(json, 0, NULL);
	q.args = args;
	memset(&error, 0, sizeof(error));
	r = method(d, &q, &reply);
	json_decref(args);
	json_decref(reply);
	return r == 0;
}

static bool refused(struct daemon *d, method_fn method, uid_t uid, const char *text, int status,
		    const char *word)
{
	return !ask(d, method, uid, text) && error.status == status && strstr(error.message, word);
}

static const struct ledger *book_of(struct daemon *d, const char *name, unsigned device)
{
	const struct tenant *t = tenants_find(&d->tenants, name);

	return t ? &fake_engine.books[ledger_index(t->number, device)] : NULL;
}

static bool has_max(struct daemon *d, const char *name, unsigned device, uint64_t bytes)
{
	const struct ledger *l = book_of(d, name, device);

	return l && l->max == bytes;
}

static bool is_bound(struct daemon *d, const char *name, enum engine_binding kind, uint64_t id)
{
	const struct tenant *t = tenants_find(&d->tenants, name);
	const struct fake_binding *b = t ? &fake_engine.bindings[t->number] : NULL;

	return b && b->bound && b->kind == kind && b->id == id;
}

static void write_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = str_format("%s/conf/tenants.d/%s", dir, name);

	file_replace(path, text, strlen(text), 0644);
}

static bool file_has(const char *name, const char *text)
{
	_cleanup_free_ char *path = str_format("%s/conf/tenants.d/%s", dir, name), *all = NULL;

	return file_read_at(AT_FDCWD, path, 65536, &all, NULL) == 0 && strstr(all, text);
}

static void daemon_start(struct daemon *d, const char *nvml)
{
	_cleanup_free_ char *conf = str_format("%s/conf", dir),
			    *state = str_format("%s/state", dir);
	_cleanup_free_ char *files = str_format("%s/conf/tenants.d", dir);

	memset(d, 0, sizeof(*d));
	fd_mkdir_parents(files, 0755);
	fd_mkdir_parents(state, 0755);
	gpu_open(nvml, &d->gpu);
	engine_open(NULL, &d->engine);
	event_log_open(":memory:", &d->events);
	tenants_init(&d->tenants, conf, state);
	d->tenants.engine = d->engine;
	d->tenants.gpu = d->gpu;
	d->tenants.events = d->events;
	d->mps_server = "/nonexistent/nvidia-cuda-mps-server";
	daemon_devices_apply(d);
	tenants_reload(&d->tenants);
}

static void daemon_stop(struct daemon *d)
{
	tenants_done(&d->tenants);
	event_log_close(d->events);
	gpu_close(d->gpu);
	charged_done(&d->charged);
	charged_done(&d->charged_before);
	running_done(&d->running);
}

static void test_setting(struct daemon *d)
{
	check(!fake_engine.watching, "nothing is watched where there is no tenant");
	check(ask(d, method_tenants_set, 0,
		  "{'match': 'user:nobody', 'limits': {'memory.max': '50%'}}") &&
		      has_max(d, "nobody", 0, 40 * GIB) &&
		      is_bound(d, "nobody", ENGINE_BIND_UID, NOBODY) && fake_engine.watching,
	      "set: a new tenant with half of each device");
	check(file_has("nobody.ini", "memory.max = 50%"), "set: is kept as it was written");
	check(ask(d, method_tenants_set, 0,
		  "{'tenant': 'nobody', 'limits': {'memory.max@1': '4G', "
		  "'memory.wait': '5s'}}") &&
		      has_max(d, "nobody", 0, 40 * GIB) && has_max(d, "nobody", 1, 4 * GIB) &&
		      file_has("nobody.ini", "memory.max@GPU-00000001-"),
	      "set: a device by its index, kept by its UUID");
	check(fake_engine.tenants[tenants_find(&d->tenants, "nobody")->number].wait_max_ns ==
		      5000000000,
	      "set: memory.wait reaches the engine");
	check(ask(d, method_tenants_set, 0, "{'tenant': 'nobody', 'gpu': ['1']}") &&
		      has_max(d, "nobody", 0, 0) && has_max(d, "nobody", 1, 4 * GIB),
	      "set: a device that is not named has memory.max 0");
	check(ask(d, method_tenants_set, 0,
		  "{'tenant': 'nobody', 'gpu': [], "
		  "'limits': {'memory.max@1': null}}") &&
		      has_max(d, "nobody", 1, 40 * GIB),
	      "set: null takes a limit away");
	check(refused(d, method_tenants_set, 0,
		      "{'tenant': 'nobody', 'limits': {'memory.mx': '1G'}}", 400, "memory.mx") &&
		      refused(d, method_tenants_set, 0,
			      "{'tenant': 'nobody', 'limits': {'memory.max@7': '1G'}}", 404, "7") &&
		      refused(d, method_tenants_set, 0, "{'match': 'nobody'}", 400, "nobody") &&
		      has_max(d, "nobody", 0, 40 * GIB),
	      "set: what is refused changes nothing");
	check(ask(d, method_devices_set, 0, "{'gpu': '0', 'memory.reserve': '2%'}") &&
		      fake_engine.reserve[0] == 80 * GIB / 50 && fake_engine.reserve[1] == 0,
	      "devices.set: a reserve of one device");
}

static void test_users(struct daemon *d)
{
	ask(d, method_tenants_set, 0, "{'tenant': 'nobody', 'limits': {'memory.max': '8G'}}");
	ask(d, method_tenants_set, 0, "{'match': 'cgroup:/x', 'tenant': 'x', 'limits': {}}");
	check(ask(d, method_tenants_set, NOBODY,
		  "{'match': 'user:nobody', 'limits': "
		  "{'memory.max': '2G'}}") &&
		      has_max(d, "nobody", 0, 2 * GIB) && file_has("nobody.ini", "memory.max = 8G"),
	      "a user lowers his limit; root's number stays beside it");
	check(refused(d, method_tenants_set, NOBODY,
		      "{'tenant': 'nobody', 'limits': {'memory.max': '9G'}}", 403, "8G"),
	      "a user cannot raise it above root's");
	check(refused(d, method_tenants_set, NOBODY,
		      "{'tenant': 'nobody', 'limits': {'memory.low': '1G'}}", 403, "memory.low"),
	      "a user cannot give himself a guarantee");
	check(ask(d, method_tenants_set, NOBODY,
		  "{'tenant': 'nobody', 'limits': {'memory.max': null}}") &&
		      has_max(d, "nobody", 0, 8 * GIB),
	      "a user takes back what he took off");
	check(refused(d, method_tenants_show, NOBODY, "{'tenant': 'x'}", 404, "x"),
	      "a user does not see others' tenants");
	check(refused(d, method_tenants_release, NOBODY, "{'tenant': 'nobody'}", 403, "root"),
	      "a user cannot release himself");
	check(refused(d, method_tenants_set, NOBODY, "{'match': 'user:root'}", 403, "root"),
	      "a user makes no tenants of others");
	check(strstr(tenants_find(&d->tenants, "x")->problem, "cgroup"),
	      "a cgroup that is not there is a problem that is shown");
	ask(d, method_tenants_release, 0, "{'tenant': 'x'}");
	ask(d, method_tenants_release, 0, "{'tenant': 'nobody'}");
	check(!d->tenants.first && !fake_engine.watching,
	      "release: nobody is left, nothing is watched");
}

static void test_templates(struct daemon *d)
{
	ask(d, method_tenants_set, 0, "{'match': 'default', 'limits': {'memory.max': '4G'}}");
	check(is_bound(d, "everyone", ENGINE_BIND_DEFAULT, 0) && has_max(d, "everyone", 0, 4 * GIB),
	      "default: who is not known yet is within the limit");
	check(tenants_meet(&d->tenants, NOBODY) == 1 && tenants_meet(&d->tenants, NOBODY) == 0 &&
		      is_bound(d, "nobody@everyone", ENGINE_BIND_UID, NOBODY) &&
		      has_max(d, "nobody@everyone", 0, 4 * GIB),
	      "default: a user who is seen gets a tenant of his own, once");
	ask(d, method_tenants_set, 0, "{'tenant': 'everyone', 'limits': {'memory.max': '5G'}}");
	check(has_max(d, "nobody@everyone", 0, 5 * GIB),
	      "default: a change reaches those who have it");
	ask(d, method_tenants_set, 0, "{'match': 'group:nogroup', 'limits': {'memory.max': '6G'}}");
	check(fake_engine.asks_users, "group: a user's first call waits until he is met");
	check(fake_engine.tenants[0].on_failure == AUDIT_FAILURE_KILL,
	      "group: who is not met in time is killed, if nothing else is said");
	ask(d, method_tenants_set, 0, "{'tenant': 'nogroup', 'limits': {'on-failure': 'allow'}}");
	check(fake_engine.tenants[0].on_failure == AUDIT_FAILURE_ALLOW,
	      "group: or let run, as it says");
	ask(d, method_tenants_set, 0, "{'match': 'group:daemon', 'limits': {'memory.max': '1G'}}");
	check(fake_engine.tenants[0].on_failure == AUDIT_FAILURE_KILL,
	      "group: of several the strictest decides");
	ask(d, method_tenants_release, 0, "{'tenant': 'daemon'}");
	check(!tenants_find(&d->tenants, "nobody@everyone") &&
		      has_max(d, "nobody@nogroup", 0, 6 * GIB),
	      "group: its members have its limits, before the default's");
	check(refused(d, method_tenants_set, 0, "{'tenant': 'nobody@nogroup', 'limits': {}}", 409,
		      "nogroup"),
	      "set: who has the limits of a template is changed there");
	ask(d, method_tenants_set, 0, "{'match': 'user:nobody', 'limits': {'memory.max': '7G'}}");
	check(!tenants_find(&d->tenants, "nobody@nogroup") && has_max(d, "nobody", 0, 7 * GIB),
	      "user: one who has his own has no other");
}

static void test_files(struct daemon *d)
{
	write_file("a.ini", "[a]\nmatch = user:root\nmemory.max = 1G\n");
	write_file("b.ini", "[b]\nmatch = user:daemon\nmemory.max = 2G\n");
	ask(d, method_daemon_reload, 0, "{}");
	check(has_max(d, "a", 0, GIB) && has_max(d, "b", 0, 2 * GIB), "files: both hold");
	write_file("a.ini", "[a]\nmatch = user:root\nmemory.max = 9G\n[z]\n");
	write_file("b.ini", "[b]\nmatch = user:daemon\nmemory.max = 3G\n");
	write_file("c.ini", "[c]\nmatch = user:daemon\n");
	ask(d, method_daemon_reload, 0, "{}");
	check(has_max(d, "b", 0, 3 * GIB),
	      "files: a bad one does not keep the others from changing");
	check(has_max(d, "a", 0, GIB), "files: what a bad one said when it was good holds on");
	check(!tenants_find(&d->tenants, "c"), "files: two that match the same are refused");
	check(refused(d, method_tenants_set, 0, "{'tenant': 'a', 'limits': {'memory.max': '2G'}}",
		      409, "line 4"),
	      "set: a file that is refused is to be mended first");
	write_file("a.ini", "[a]\nmatch = user:root\nmemory.max = 1G\n");
	write_file("c.ini", "");
	ask(d, method_daemon_reload, 0, "{}");
}

static void test_runs(struct daemon *d)
{
	_cleanup_free_ char *args = NULL;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	args = str_format("{'pid': %d, 'command': '/bin/a b', 'limits': {'memory.max': '1G'}}",
			  child);
	check(refused(d, method_run_begin, NOBODY, args, 403, "not yours") || getuid() == NOBODY,
	      "run: not somebody else's process");
	check(ask(d, method_run_begin, getuid(), args), "run: a process of one's own");
	free(args);
	args = str_format("a-b-%d", child);
	check(has_max(d, args, 0, GIB) && tenants_find(&d->tenants, args)->uid == getuid(),
	      "run: is named after the command and belongs to the caller");
	tenants_collect(&d->tenants);
	check(tenants_find(&d->tenants, args), "run: stays while the process lives");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tenants_collect(&d->tenants);
	check(!tenants_find(&d->tenants, args), "run: goes with its last process");
}

/* What the last word of a run says is read when nobody knows it any more. */
static void test_last_events(struct daemon *d)
{
	struct audit_event last = { .kind = AUDIT_EVENT_FAILED_KILL, .tgid = INT32_MAX };
	const struct event_filter filter = { .tenant = "last-words", .limit = 10 };
	const struct tenant *t;
	json_t *events = NULL;
	size_t i, n_killed = 0;

	ask(d, method_tenants_set, 0,
	    "{'match': 'cgroup:/last-words', 'tenant': 'last-words', 'limits': {'memory.max': '1G'}}");
	t = tenants_find(&d->tenants, "last-words");
	last.tenant = t ? t->number : 0;
	check(last.tenant && ask(d, method_tenants_release, 0, "{'tenant': 'last-words'}"),
	      "events: a tenant is released");
	daemon_on_engine_event(&last, "", d);
	event_log_list(d->events, &filter, &events);
	for (i = 0; i < json_array_size(events); i++)
		n_killed += str_eq(
			json_string_value(json_object_get(json_array_get(events, i), "kind")),
			"killed");
	check(n_killed == 1, "events: its last one is told by its name");
	json_decref(events);
	ask(d, method_tenants_set, 0, "{'match': 'cgroup:/next', 'tenant': 'next'}");
	t = tenants_find(&d->tenants, "next");
	check(t && t->number == last.tenant, "events: another one has its number");
	check(ask(d, method_tenants_release, 0, "{'tenant': 'next'}"), "events: and is released");
}

static pid_t waiting_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	return child;
}

static bool begin_job(struct daemon *d, pid_t pid, int job, int uid)
{
	_cleanup_free_ char *args = str_format(
		"{'pid': %d, 'job': %d, 'uid': %d, 'limits': {'memory.low': '1G'}}", pid, job, uid);

	return ask(d, method_job_begin, 0, args);
}

static void test_jobs(struct daemon *d)
{
	pid_t first = waiting_child(), second = waiting_child();
	const struct tenant *t;
	int status;

	check(!begin_job(d, first, 0, 33) && error.status == 400, "jobs: none has the number 0");
	if (!begin_job(d, first, 7, 33)) {
		printf("skip 'jobs': may not make a cgroup\n");
		goto out;
	}
	t = tenants_find(&d->tenants, "job-7");
	check(t && t->uid == 33 && t->spec.job == 7 && t->spec.match.kind == SELECT_CGROUP,
	      "jobs: the first process makes the tenant, and it is the user's");
	check(begin_job(d, second, 7, 33) && tenants_find(&d->tenants, "job-7") == t,
	      "jobs: another one joins");
	check(!begin_job(d, second, 7, 34) && error.status == 409, "jobs: but not another user's");
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	tenants_collect(&d->tenants);
	check(tenants_find(&d->tenants, "job-7"), "jobs: one stays while a process of it lives");
	check(ask(d, method_job_end, 0, "{'job': 8}") && ask(d, method_job_end, 0, "{'job': 7}") &&
		      waitpid(second, &status, 0) == second && WIFSIGNALED(status) &&
		      WTERMSIG(status) == SIGTERM,
	      "jobs: one is ended, and no other");
	tenants_collect(&d->tenants);
	check(!tenants_find(&d->tenants, "job-7"), "jobs: and goes with the last");
	return;
out:
	kill(first, SIGKILL);
	kill(second, SIGKILL);
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
}

static bool has_problem(struct daemon *d, const char *name, const char *word)
{
	const struct tenant *t = tenants_find(&d->tenants, name);

	return t && strstr(t->problem, word);
}

static bool warns(struct daemon *d, const char *name, const char *word)
{
	json_t *warnings = change_warnings(d, tenants_find(&d->tenants, name));
	bool found = false;

	for (size_t i = 0; i < json_array_size(warnings); i++)
		found |= !!strstr(json_string_value(json_array_get(warnings, i)), word);
	json_decref(warnings);
	return found;
}

/* The engine keeps to eight tenants of a process, the nearest: its user's must be among them. */
static void test_nesting(struct daemon *d)
{
	static const char path[] = "/0/1/2/3/4/5/6/7";
	unsigned i, n_taken = 0;

	for (i = 1; i < sizeof(path) / 2; i++) {
		_cleanup_free_ char *args = str_format("{'match': 'cgroup:%.*s', 'tenant': 'n%u'}",
						       2 * (i + 1), path, i);

		if (n_taken == i - 1 && ask(d, method_tenants_set, 0, args))
			n_taken++;
		else if (i == n_taken + 1)
			check(error.status == 409 && strstr(error.message, "one in the other"),
			      "nesting: one too many is refused");
	}
	check(n_taken == TENANTS_OF_CGROUPS && n_taken + 2 == LEDGER_DEPTH,
	      "nesting: there is room left for a tree's tenant and a user's");
	check(ask(d, method_tenants_set, 0, "{'match': 'cgroup:/0/beside'}"),
	      "nesting: what is beside counts nothing");
	check(ask(d, method_tenants_set, 0, "{'match': 'cgroup:/0', 'tenant': 'n0'}") &&
		      warns(d, "n0", "n6, which is inside: 6 tenants") &&
		      has_problem(d, "n6", "one too many") && !has_problem(d, "n5", "one too many"),
	      "nesting: a new one around all leaves out the innermost, and says so");
	check(ask(d, method_tenants_release, 0, "{'tenant': 'n3'}") &&
		      !has_problem(d, "n6", "one too many"),
	      "nesting: with one less it is in again");
	for (i = 0; i <= n_taken; i++) {
		_cleanup_free_ char *args = str_format("{'tenant': 'n%u'}", i);

		ask(d, method_tenants_release, 0, args);
	}
	ask(d, method_tenants_release, 0, "{'tenant': 'beside'}");
}

/* Where a command gets no cgroup it would have to leave the tree, and root's limits with it. */
static void test_trees(struct daemon *d)
{
	_cleanup_free_ char *args = NULL, *run = NULL;
	pid_t child = fork();
	bool began;

	if (child == 0) {
		pause();
		_exit(0);
	}
	args = str_format("{'match': 'pid:%d', 'tenant': 'tree'}", child);
	check(ask(d, method_tenants_set, 0, args) && is_bound(d, "tree", ENGINE_BIND_TREE, child),
	      "trees: a process and what it starts");
	free(args);
	args = str_format("{'match': 'pid:%d', 'tenant': 'other'}", child);
	check(refused(d, method_tenants_set, 0, args, 409, "part of tenant 'tree'"),
	      "trees: no second tenant of the same");
	run = str_format("{'pid': %d, 'tenant': 'run'}", child);
	began = ask(d, method_run_begin, getuid(), run);
	check((began && tenants_find(&d->tenants, "run")->spec.match.kind == SELECT_CGROUP) ||
		      (!began && error.status == 409),
	      "trees: a run in one gets a cgroup or is refused");
	check(is_bound(d, "tree", ENGINE_BIND_TREE, child), "trees: and the tree keeps it");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	tenants_collect(&d->tenants);
	check(!tenants_find(&d->tenants, "tree") && !tenants_find(&d->tenants, "run"),
	      "trees: all go with the process");
}

static void test_trees_in_trees(struct daemon *d)
{
	_cleanup_free_ char *args = NULL;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	args = str_format("{'match': 'pid:%d', 'tenant': 'below'}", child);
	ask(d, method_tenants_set, 0, args);
	free(args);
	args = str_format("{'match': 'pid:%d', 'tenant': 'above'}", (int)getpid());
	check(ask(d, method_tenants_set, 0, args) && warns(d, "above", "below, which process") &&
		      !warns(d, "below", "which process"),
	      "trees: it is said who is not charged to a new one around");
	ask(d, method_tenants_release, 0, "{'tenant': 'above'}");
	ask(d, method_tenants_release, 0, "{'tenant': 'below'}");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A keeper would hold it open as root, and read it again and again if it is always readable. */
static void test_gate_of_other_files(struct daemon *d)
{
	static const char *const names[] = { "/dev/zero", "/proc/self/exe", "a pipe" };
	int pipe_ends[2];

	if (pipe(pipe_ends) < 0)
		exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_close_ int file =
			*names[i] == '/' ? open(names[i], O_RDONLY | O_CLOEXEC) : dup(pipe_ends[0]);
		_cleanup_free_ char *args =
			str_format("{'pid': %d, 'fd': %d}", (int)getpid(), file);

		check(refused(d, method_run_gate, getuid(), args, 400, "no listener"),
		      "gate: not %s", names[i]);
	}
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* The child tells the number that its listener has, and waits. The keeper ends with it. */
static void test_gate_of_a_filter(struct daemon *d)
{
	_cleanup_free_ char *args = NULL;
	int told[2], listener;
	pid_t child;

	if (pipe(told) < 0 || (child = fork()) < 0)
		exit(1);
	if (child == 0) {
		listener = gate_filter();
		if (write(told[1], &listener, sizeof(listener)) == sizeof(listener))
			pause();
		_exit(0);
	}
	if (read(told[0], &listener, sizeof(listener)) != sizeof(listener))
		exit(1);
	args = str_format("{'pid': %d, 'fd': %d}", child, listener);
	if (listener < 0)
		printf("no filter to be had here: %s\n", strerror(-listener));
	else
		check(ask(d, method_run_gate, getuid(), args), "gate: a filter's listener is kept");
	if (listener >= 0 && syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, 0, 0) == 0)
		check(refused(d, method_run_gate, getuid(), args, 409, "kept already"),
		      "gate: and once is enough");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(told[0]);
	close(told[1]);
}

static int sender_of_reports(const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/gate", state);
	if (fd < 0 || connect(fd, (void *)&address, sizeof(address)) < 0)
		exit(1);
	return fd;
}

#define FLOODERS 1000
#define FLOODS	 20
/* No process has such an id, nor have we. */
#define BEYOND_PIDS (1U << 22)

/* Ours is one of many that are reported, and the only one to whom something happens. */
static void test_flood_of_reports(struct daemon *d, const char *state)
{
	uint64_t begun_us = daemon_monotonic_us(), most;
	_cleanup_close_ int fd = sender_of_reports(state);
	struct gate_report report = { .n_asked = 3 };
	struct gate_counts counts;
	int i;

	fake_engine.processes[0] =
		(struct audit_process){ .owner = (uint64_t)getpid() << 32 | AUDIT_PROCESS_LIVE,
					.chain = { .tenants = { LEDGER_TENANTS - 1 }, .n = 1 },
					.overhead = { 5 * GIB } };
	fake_engine.n_processes = 1;
	for (i = 0; i < FLOODERS * FLOODS; i++) {
		report.pid = i == FLOODERS / 2 ? (uint32_t)getpid() : BEYOND_PIDS + i % FLOODERS;
		while (send(fd, &report, sizeof(report), MSG_DONTWAIT) < 0)
			sd_event_run(d->loop, 0);
	}
	while (event_log_count(d->events, EVENT_UNEXPLAINED) == 0 ||
	       gate_counts(d).n_reports < FLOODERS * FLOODS)
		sd_event_run(d->loop, 1000);
	counts = gate_counts(d);
	most = (daemon_monotonic_us() - begun_us) / 20000 + 1;
	check(counts.n_asked == 3ULL * FLOODERS * FLOODS, "gate: all that is reported is counted");
	check(counts.n_looks > 0 && counts.n_looks <= most,
	      "gate: %u reports lead to %llu looks, at most one in 20 ms", FLOODERS * FLOODS,
	      (unsigned long long)counts.n_looks);
	check(event_log_count(d->events, EVENT_UNEXPLAINED) == 1,
	      "gate: and who is one of a thousand is found");
	fake_engine.n_processes = 0;
}

static void test_gate(struct daemon *d)
{
	_cleanup_free_ char *state = str_format("%s/state", dir);

	if (sd_event_new(&d->loop) < 0 || gate_open(d, state) < 0)
		exit(1);
	test_flood_of_reports(d, state);
	test_gate_of_other_files(d);
	test_gate_of_a_filter(d);
	gate_close(d);
	d->loop = sd_event_unref(d->loop);
}

/* As many as a program can make that loads and unloads code: each may have changed what no argument tells. */
static void test_settling(struct daemon *d)
{
	struct audit_event settle = { .kind = AUDIT_EVENT_SETTLE };
	uint64_t before = d->n_settled, begun_us = daemon_monotonic_us(), longest;
	int i;

	if (sd_event_new(&d->loop) < 0)
		exit(1);
	daemon_on_engine_event(&settle, "", d);
	sd_event_run(d->loop, UINT64_MAX);
	check(d->n_settled == before + 1, "settling: what was asked for is done");
	for (i = 0; i < 10000; i++) {
		daemon_on_engine_event(&settle, "", d);
		sd_event_run(d->loop, 0);
	}
	while (d->settling)
		sd_event_run(d->loop, UINT64_MAX);
	longest = (daemon_monotonic_us() - begun_us) / 20000 + 2;
	check(d->n_settled - before <= longest,
	      "settling: 10,000 who ask get %llu rounds, at most one in 20 ms",
	      (unsigned long long)(d->n_settled - before));
	d->loop = sd_event_unref(d->loop);
}

/* Those that the library lists are charged. */
static void charge_listed(const struct tenant *t, int n)
{
	int i;

	for (i = 0; i < n; i++)
		fake_engine.processes[i] =
			(struct audit_process){ .owner = (uint64_t)(1000 + i) << 32 |
							 AUDIT_PROCESS_LIVE,
						.serial = i + 1,
						.chain = { .tenants = { t->number }, .n = 1 } };
	fake_engine.n_processes = n;
}

/* A tick later. Return: how often devices were asked for their processes. */
static unsigned n_listed_by_tick(struct daemon *d, const unsigned *n_listed)
{
	unsigned before = *n_listed;

	stopped_us += 500000;
	daemon_settle_changes(d);
	return *n_listed - before;
}

/* To list processes is what a look at a device costs: it is done where there is something to be seen. */
static void test_quiet(struct daemon *d, const char *nvml)
{
	void *fake = dlopen(nvml, RTLD_NOW | RTLD_NOLOAD);
	const unsigned *n_listed = fake ? dlsym(fake, "fake_n_listed") : NULL;
	unsigned long long *used = fake ? dlsym(fake, "fake_used") : NULL;
	const unsigned all = 2;

	if (!n_listed || !used)
		exit(1);
	stopped_us = clock_now_us(CLOCK_MONOTONIC);
	charge_listed(tenants_find(&d->tenants, "nobody"), 100);
	daemon_settle(d);
	n_listed_by_tick(d, n_listed);
	n_listed_by_tick(d, n_listed);
	daemon_settle(d);
	check(n_listed_by_tick(d, n_listed) == 0,
	      "settling: nothing is listed again while nothing changes");
	check(n_listed_by_tick(d, n_listed) == all, "settling: but once a second it is");
	check(n_listed_by_tick(d, n_listed) == 0, "settling: and not in between");
	daemon_settle(d);
	*used += 4096;
	check(n_listed_by_tick(d, n_listed) == all,
	      "settling: at once where the devices have other memory in use");
	fake_engine.processes[57].moved += 4096;
	check(n_listed_by_tick(d, n_listed) == all, "settling: and where the books have changed");
	fake_engine.n_processes -= 2; /* the last does not tell what it has */
	check(n_listed_by_tick(d, n_listed) == all && n_listed_by_tick(d, n_listed) == all,
	      "settling: each time while a process is nobody's");
	fake_engine.n_processes = 0;
	stopped_us = 0;
	dlclose(fake);
}

/* The devices say that we have so much of the first, and are not asked again. */
static void has_memory(struct daemon *d, uint64_t bytes)
{
	struct running_list *lists = d->running.lists;

	lists[0].items = reallocarray(lists[0].items, 1, sizeof(*lists[0].items));
	if (!lists[0].items)
		exit(1);
	lists[0].items[0] = (struct gpu_process){ .pid = getpid(), .used_bytes = bytes };
	lists[0].n = lists[0].cap = 1;
	lists[1].n = 0;
	lists[0].asked_us = lists[1].asked_us = UINT64_MAX;
	lists[0].knows_memory = lists[1].knows_memory = true;
}

static size_t n_samples(struct daemon *d, uint32_t tenant, uint64_t now_ms)
{
	json_t *list = use_log_recent(&d->overuse->use, tenant, now_ms);
	size_t n = json_array_size(list);

	json_decref(list);
	return n;
}

static void test_history(struct daemon *d)
{
	const struct overuse_options options = { .state_dir = dir,
						 .slow_ms = 1000,
						 .fast_ms = 1000 };
	const struct tenant *t = tenants_find(&d->tenants, "nobody");

	if (!t || overuse_open(d, &options) < 0)
		exit(1);
	has_memory(d, GIB);
	overuse_sample(d->overuse, 1000);
	check(n_samples(d, 0, 1000) == 1 && n_samples(d, t->id, 1000) == 0,
	      "history: who is not charged yet is nobody's");
	fake_engine.processes[0] =
		(struct audit_process){ .owner = (uint64_t)getpid() << 32 | AUDIT_PROCESS_LIVE,
					.chain = { .tenants = { t->number }, .n = 1 } };
	fake_engine.n_processes = 1;
	d->books_read_us = 0;
	overuse_sample(d->overuse, 2000);
	check(n_samples(d, t->id, 2000) == 1, "history: and its tenant's when it is charged");
	overuse_sample(d->overuse, 3000);
	check(n_samples(d, 0, 3000) == 2, "history: what is as before is not kept again");
	fake_engine.n_processes = 0;
	overuse_close(d);
	running_done(&d->running);
	memset(&d->running, 0, sizeof(d->running));
}

static void test_restart(struct daemon *d, const char *nvml)
{
	uint32_t number = tenants_find(&d->tenants, "nobody")->number, stray;

	engine_tenant_new(d->engine, "stray", &stray);
	daemon_stop(d);
	daemon_start(d, nvml);
	check(tenants_find(&d->tenants, "nobody") &&
		      tenants_find(&d->tenants, "nobody")->number == number,
	      "restart: a tenant finds its books");
	check(!fake_engine.tenants[stray].in_use, "restart: whom nobody wants any more is removed");
	ask(d, method_tenants_release, 0, "{'tenant': 'nobody'}");
	check(tenants_meet(&d->tenants, NOBODY) == 1, "restart: templates work on");
	daemon_stop(d);
	daemon_start(d, nvml);
	check(tenants_find(&d->tenants, "nobody@nogroup"),
	      "restart: so do those who had their limits");
}

static void remove_tree(void)
{
	_cleanup_free_ char *command = str_format("rm -rf '%s'", dir);

	if (system(command) != 0)
		printf("cannot remove %s\n", dir);
}

int main(_unused_ int argc, char **argv)
{
	struct daemon d;

	if (!mkdtemp(dir))
		return 1;
	daemon_start(&d, argv[1]);
	test_setting(&d);
	test_users(&d);
	test_templates(&d);
	test_files(&d);
	test_runs(&d);
	test_last_events(&d);
	test_nesting(&d);
	test_jobs(&d);
	test_trees(&d);
	test_trees_in_trees(&d);
	test_gate(&d);
	test_settling(&d);
	test_quiet(&d, argv[1]);
	test_history(&d);
	test_restart(&d, argv[1]);
	daemon_stop(&d);
	remove_tree();
	return check_result();
}
