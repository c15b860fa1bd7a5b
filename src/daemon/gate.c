/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second gate, on the side of the daemon: keepers, reports, and the comparison of books and
 * device.
 */
#include "daemon/gate.h"

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/process.h"
#include "gate/gate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

/* The ioctl has been let go when it is reported; until then the device has done it. */
#define LOOK_AFTER_US 20000
/* As many rounds of settling as a look takes, and how much longer than that nobody looks. */
#define LOOK_ROUNDS 2
#define LOOK_PAUSES 4
/* So many reports at a time, then others have their turn. */
#define REPORTS_AT_ONCE 32

/*
 * What no call explains and is no evasion: code and its stacks, and what allocations of less than a
 * block leave of theirs. On top of it comes what others made who have ended, and what contexts cost, as
 * far as it was seen, and so much each at most: what was seen may have been an evader's.
 */
#define MARGIN_BYTES  (256ULL << 20)
#define CONTEXT_BYTES (512ULL << 20)

/* struct reported - a process that is to be looked at; @first_us, @last_us: when reports of it came since the last time */
struct reported {
	uint32_t pid;
	uint64_t first_us;
	uint64_t last_us;
};

struct gate {
	char path[PATH_MAX];
	int fd;
	sd_event_source *reports;
	sd_event_source *look;
	struct reported *reported; /* by process id */
	size_t n_reported;
	size_t cap_reported;
	struct gate_counts counts;
};

/* --- what a report leads to ----------------------------------------------------------------------
 */

static bool is_unexplained(const struct daemon *d, const struct charged *p, unsigned device)
{
	uint64_t seen = d->context_bytes[device];
	uint64_t context = seen ? MIN(seen, CONTEXT_BYTES) : CONTEXT_BYTES;
	uint64_t inherited = MIN(p->inherited[device], p->overhead[device]);

	return p->overhead[device] - inherited > MARGIN_BYTES + p->n_contexts[device] * context;
}

/* The nearest tenant of a process that is beyond its memory.max, 0 for none. */
static uint32_t tenant_beyond_max(struct daemon *d, const struct charged *p, unsigned device)
{
	struct ledger book;
	uint32_t i;

	for (i = 0; i < p->chain.n && i < LEDGER_DEPTH; i++) {
		if (engine_book(d->engine, p->chain.tenants[i], device, &book) == 0 &&
		    book.current > book.max)
			return p->chain.tenants[i];
	}
	return 0;
}

static void note(struct daemon *d, const struct charged *p, unsigned device, uint32_t beyond_max,
		 bool killed)
{
	const struct tenant *t = tenants_by_number(&d->tenants, p->chain.tenants[0]);
	const struct tenant *beyond = tenants_by_number(&d->tenants, beyond_max);
	struct event event = { .kind = EVENT_UNEXPLAINED,
			       .uid = EVENT_NO_UID,
			       .pid = p->pid,
			       .gpu = d->gpu->devices[device].uuid,
			       .size = p->overhead[device],
			       .tenant = t ? t->spec.name : NULL,
			       .left = EVENT_NO_NUMBER,
			       .wait_ms = EVENT_NO_NUMBER };
	char name[PROCESS_NAME_SIZE], size[QUANTITY_TEXT];
	_cleanup_free_ char *text = NULL;

	process_name(event.pid, name);
	process_uid(event.pid, &event.uid);
	text = str_format(
		"process %d (%s) has %s of the device that none of its calls explains%s%s%s",
		event.pid, name, size_print_short(p->overhead[device], size),
		beyond ? ", beyond memory.max of " : "", beyond ? beyond->spec.name : "",
		killed ? "; it was killed" : "; it is charged");
	event.text = text;
	event_log_add(d->events, &event, NULL);
}

/* Return: whether it was ended. */
static bool judge(struct daemon *d, const struct charged *p, unsigned device)
{
	uint32_t beyond = tenant_beyond_max(d, p, device);
	struct audit_tenant settings;
	bool kills;

	kills = beyond && engine_tenant(d->engine, beyond, &settings) == 0 &&
		settings.on_failure != AUDIT_FAILURE_ALLOW;
	note(d, p, device, beyond, kills);
	if (kills)
		kill(p->pid, SIGKILL);
	return kills;
}

static void look_at(struct daemon *d, uint32_t pid)
{
	const struct charged *p = charged_find(&d->charged, pid);
	unsigned i;

	if (!p || p->chain.n == 0)
		return;
	for (i = 0; i < daemon_n_devices(d); i++) {
		if (is_unexplained(d, p, i) && judge(d, p, i))
			return;
	}
}

/*
 * Looks at those whose first report is old enough. Who was reported again a moment ago may have been
 * let go only now, and is looked at once more.
 */
static void look_at_reported(struct daemon *d, uint64_t now_us)
{
	struct gate *gate = d->gate;
	struct reported *r;
	size_t i, n = 0;

	for (i = 0; i < gate->n_reported; i++) {
		r = &gate->reported[i];
		if (r->first_us + LOOK_AFTER_US <= now_us) {
			look_at(d, r->pid);
			if (r->last_us + LOOK_AFTER_US <= now_us)
				continue;
			r->first_us = r->last_us;
		}
		gate->reported[n++] = *r;
	}
	gate->n_reported = n;
}

static int look_soon(struct daemon *d)
{
	uint64_t now_us = daemon_monotonic_us();
	uint64_t rest_us = d->settled_us + (uint64_t)LOOK_PAUSES * LOOK_ROUNDS * d->settle_took_us;
	uint64_t due_us = MAX(now_us + LOOK_AFTER_US, rest_us);

	if (d->gate->n_reported == 0 || sd_event_source_get_enabled(d->gate->look, NULL) > 0)
		return 0;
	sd_event_source_set_time_relative(d->gate->look, due_us - now_us);
	return sd_event_source_set_enabled(d->gate->look, SD_EVENT_ONESHOT);
}

static int on_look(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	uint64_t now_us = daemon_monotonic_us();
	struct daemon *d = userdata;
	int i;

	/* A process that has been around the probes alone is adopted by the first, and charged by
	 * the next. */
	for (i = 0; i < LOOK_ROUNDS; i++)
		daemon_settle(d);
	daemon_read_books(d, UINT64_MAX);
	look_at_reported(d, now_us);
	d->gate->counts.n_looks++;
	daemon_answer_waiters(d, /* all= */ false);
	return look_soon(d);
}

/* Where it stands, or would stand. */
static size_t place_of(const struct gate *gate, uint32_t pid)
{
	size_t low = 0, high = gate->n_reported, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (gate->reported[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Without memory it is left out, and reports its next allocation. */
static void add_reported(struct gate *gate, uint32_t pid)
{
	uint64_t now_us = daemon_monotonic_us();
	size_t at = place_of(gate, pid);
	struct reported *r;

	if (at == gate->n_reported || gate->reported[at].pid != pid) {
		r = array_room(gate->reported, gate->n_reported, &gate->cap_reported, sizeof(*r));
		if (!r)
			return;
		gate->reported = r;
		r += at;
		memmove(r + 1, r, (gate->n_reported++ - at) * sizeof(*r));
		*r = (struct reported){ .pid = pid, .first_us = now_us };
	}
	gate->reported[at].last_us = now_us;
}

static int on_reports(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents,
		      void *userdata)
{
	struct gate_report report;
	struct daemon *d = userdata;
	int i;

	for (i = 0; i < REPORTS_AT_ONCE; i++) {
		if (recv(fd, &report, sizeof(report), MSG_DONTWAIT) != sizeof(report))
			break;
		d->gate->counts.n_reports++;
		d->gate->counts.n_asked += report.n_asked;
		add_reported(d->gate, report.pid);
	}
	return look_soon(d);
}

struct gate_counts gate_counts(const struct daemon *d)
{
	return d->gate ? d->gate->counts : (struct gate_counts){};
}

/* --- keepers -------------------------------------------------------------------------------------
 */

#define KEEPER_NAME "cotenant-gate"

/*
 * Is somebody keeping this very listener? Keepers are nobody's children, and those of an earlier daemon
 * are not known to this one: the kernel is asked of each whether its listener is the same file.
 */
static bool is_kept(int listener)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	char name[PROCESS_NAME_SIZE];
	struct dirent *entry;
	bool kept = false;

	while (dir && !kept && (entry = readdir(dir))) {
		pid_t pid = strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		process_name(pid, name);
		kept = str_eq(name, KEEPER_NAME) &&
		       syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, listener, STDIN_FILENO) == 0;
	}
	return kept;
}

/*
 * Twice forked, so that it is nobody's child whom a restarted daemon would have to know. It has its
 * name and the listener from its parent: is_kept() finds it from now on.
 */
static int keeper_start(const struct gate *gate, int listener, dev_t device)
{
	sigset_t none;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return waitpid(pid, NULL, 0) < 0 ? -errno : 0;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, KEEPER_NAME);
	dup2(listener, STDIN_FILENO);
	syscall(SYS_close_range, 1, ~0U, 0);
	if (fork() != 0)
		_exit(0);
	setsid();
	gate_keep(STDIN_FILENO, device, gate->path);
	_exit(0);
}

/* Has it a seccomp filter at all? Whose listener is whose the kernel does not tell. */
static bool has_filter(pid_t pid)
{
	_cleanup_free_ char *status = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return file_read_at(AT_FDCWD, path, 65536, &status, NULL) == 0 &&
	       strstr(status, "\nSeccomp:\t2\n");
}

/* A keeper is root's: what else it might be handed must not keep it busy, or be held open by it. */
static int take_listener(const struct request *q, pid_t pid, int *ret)
{
	_cleanup_close_ int pidfd = syscall(SYS_pidfd_open, pid, 0), fd = -1;

	if (pidfd >= 0)
		fd = syscall(SYS_pidfd_getfd, pidfd, (int)api_arg_uint(q->args, "fd", 0), 0);
	if (fd < 0)
		return api_fail(q->error, API_E_FAULT, "cannot take the listener: %s",
				strerrordesc_np(errno));
	if (!gate_is_listener(fd) || !has_filter(pid))
		return api_fail(q->error, API_E_BAD_REQUEST,
				"that is no listener of a seccomp filter of process %d", pid);
	/* One keeper each: or a user could start as many as he likes, all of them root's. */
	if (is_kept(fd))
		return api_fail(q->error, API_E_CONFLICT, "the gate of process %d is kept already",
				pid);
	*ret = TAKE_FD(fd);
	return 0;
}

int method_run_gate(struct daemon *d, const struct request *q, json_t **ret)
{
	const char *path = api_arg_string(q->args, "device");
	_cleanup_close_ int listener = -1;
	pid_t pid = api_arg_uint(q->args, "pid", 0);
	struct stat st = {};
	uid_t uid;
	int r;

	if (process_uid(pid, &uid) < 0)
		return api_fail(q->error, API_E_NOT_FOUND, "there is no process %d", pid);
	if (q->peer.uid != 0 && uid != q->peer.uid)
		return api_fail(q->error, API_E_FORBIDDEN, "process %d is not yours", pid);
	if (!d->engine || !d->gate)
		return api_fail(q->error, API_E_CONFLICT,
				"nothing enforces limits here, and so no gate helps");
	if (path && (stat(path, &st) < 0 || !S_ISCHR(st.st_mode)))
		return api_fail(q->error, API_E_BAD_REQUEST, "%s is no character device", path);
	if (take_listener(q, pid, &listener) < 0)
		return -EINVAL;
	r = keeper_start(d->gate, listener, st.st_rdev);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "cannot keep the gate: %s",
				strerrordesc_np(-r));
	*ret = json_pack("{s:b}", "kept", true);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------------
 */

static int listen_at(struct gate *gate)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int r;

	if (!str_copy(address.sun_path, sizeof(address.sun_path), gate->path))
		return -ENAMETOOLONG;
	gate->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (gate->fd < 0)
		return -errno;
	unlink(gate->path);
	mask = umask(0177);
	r = bind(gate->fd, (void *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	return r;
}

int gate_open(struct daemon *d, const char *state_dir)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	int r;

	if (!gate)
		return -ENOMEM;
	gate->fd = -1;
	d->gate = gate;
	snprintf(gate->path, sizeof(gate->path), "%s/gate", state_dir);
	r = listen_at(gate);
	if (r >= 0)
		r = sd_event_add_io(d->loop, &gate->reports, gate->fd, EPOLLIN, on_reports, d);
	if (r >= 0)
		r = sd_event_add_time_relative(d->loop, &gate->look, CLOCK_MONOTONIC, 0, 1000,
					       on_look, d);
	if (r >= 0)
		r = sd_event_source_set_enabled(gate->look, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

void gate_close(struct daemon *d)
{
	struct gate *gate = d->gate;

	if (!gate)
		return;
	sd_event_source_unref(gate->reports);
	sd_event_source_unref(gate->look);
	if (gate->fd >= 0)
		close(gate->fd);
	free(gate->reported);
	free(gate);
	d->gate = NULL;
}
