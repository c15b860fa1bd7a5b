// SPDX-License-Identifier: Apache-2.0
/*
 * Users of whom only the daemon can say which limits they have: the first call of one whom it has not met waits
 * for its word, is asked for again, and is decided without it when that does not come in time.
 */
#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#define USER	    61021
#define SUB_UID	    161021 /* his, in a namespace that he makes */
#define GROUP_BYTES (300 * MIB)
#define SHORT_NS    (300 * MILLISECOND)
#define HELD_NS	    (1300 * MILLISECOND) /* so long that the holder has it in the end */
#define LONG_NS	    (10 * PATIENCE_NS)

/* What a stranger tells. */
struct told {
	volatile unsigned long n_ran; /* calls that the driver has seen */
	volatile int in_namespace;
	volatile int is_mapped;
};

static struct told *told;
static uint32_t group;

/* What the daemon does: it answers from the n-th time on that it is asked, 0 for never. */
static unsigned answer_at;
static bool is_member;
static unsigned n_asked;
static uint64_t asked_for;

static void on_event(const struct audit_event *event, _unused_ const char *text, void *userdata)
{
	struct bench *b = userdata;

	b->n_events[event->kind]++;
	if (event->kind != AUDIT_EVENT_STRANGER)
		return;
	n_asked++;
	asked_for = event->size;
	if (!answer_at || n_asked < answer_at)
		return;
	/* Who was asked for twice before anybody came has run when the second is heard. */
	if (n_asked == answer_at)
		CHECK(told->n_ran == 0, "he did not wait");
	if (is_member)
		CHECK(engine_bind(b->engine, group, ENGINE_BIND_UID, event->size) == 0);
	CHECK(engine_user_met(b->engine, event->size) == 0);
}

static void begin(struct bench *b, unsigned at, bool member, enum audit_failure on_failure)
{
	/* What the case before has raised is told by now. */
	bench_pump(b, 0);
	engine_unbind(b->engine, ENGINE_BIND_UID, USER);
	engine_ask_users(b->engine, /* on= */ true, on_failure);
	memset(told, 0, sizeof(*told));
	answer_at = at;
	is_member = member;
	n_asked = 0;
}

/* --- strangers --------------------------------------------------------------------------------------- */

static void count(void)
{
	told->n_ran++;
}

static long allocate(unsigned long bytes)
{
	unsigned long address;

	return CUDA("cuMemAlloc_v2", &address, bytes);
}

/* Beyond the limit of the group nothing is given. */
static int ask_as_member(void)
{
	if (allocate(GROUP_BYTES + MIB) != OUT_OF_MEMORY || told->n_ran)
		return 2;
	return allocate(GROUP_BYTES) ? 3 : 0;
}

static int member(_unused_ void *userdata)
{
	return become(USER) ? ask_as_member() : 1;
}

static int nobody(_unused_ void *userdata)
{
	if (!become(USER))
		return 1;
	return allocate(2 * GROUP_BYTES) || allocate(2 * GROUP_BYTES) ? 2 : 0;
}

static int ask_once(_unused_ void *userdata)
{
	if (!become(USER))
		return 1;
	return allocate(GROUP_BYTES);
}

static int look_and_ask(_unused_ void *userdata)
{
	unsigned long free_bytes, total_bytes;

	if (!become(USER) || CUDA("cuMemGetInfo_v2", &free_bytes, &total_bytes) || told->n_ran != 1)
		return 1;
	return allocate(GROUP_BYTES);
}

static int member_in_namespace(_unused_ void *userdata)
{
	if (!become(USER) || unshare(CLONE_NEWUSER))
		return 1;
	told->in_namespace = 1;
	while (!told->is_mapped)
		usleep(1000);
	return become(1) ? ask_as_member() : 4;
}

/* --- cases ------------------------------------------------------------------------------------------- */

/* A process of nobody's. */
static pid_t start(int (*fn)(void *))
{
	pid_t pid = bench_fork();

	if (pid)
		return pid;
	close_range(3, ~0U, 0);
	_exit(fn(NULL));
}

static int result_of(struct bench *b, int (*fn)(void *))
{
	return tenant_wait(b, start(fn));
}

static void case_member(struct bench *b)
{
	int code;

	begin(b, /* at= */ 2, /* member= */ true, AUDIT_FAILURE_KILL);
	code = result_of(b, member);
	CHECK(code == 0, "%d", code);
	CHECK(n_asked == 2 && asked_for == USER, "asked for %lu, %u times", asked_for, n_asked);
	printf("ok 'users: a first call waits for the limit of its user, and is asked for again'\n");

	begin(b, 1, false, AUDIT_FAILURE_KILL);
	CHECK(result_of(b, nobody) == 0 && result_of(b, nobody) == 0);
	CHECK(n_asked == 1, "%u times", n_asked);
	printf("ok 'users: who is no tenant goes on, and is asked for once'\n");
}

/* Whoever else is charged for the process does not know of the group either. */
static void case_tenants_around(struct bench *b)
{
	int code;

	begin(b, 1, true, AUDIT_FAILURE_KILL);
	code = tenant_wait(b, tenant_fork(b, member, NULL));
	CHECK(code == 0 && n_asked == 1, "%d, asked %u times", code, n_asked);
	begin(b, 1, true, AUDIT_FAILURE_KILL);
	CHECK(engine_bind(b->engine, b->tenant, ENGINE_BIND_DEFAULT, 0) == 0);
	code = result_of(b, member);
	CHECK(code == 0 && n_asked == 1, "%d, asked %u times", code, n_asked);
	CHECK(engine_unbind(b->engine, ENGINE_BIND_DEFAULT, 0) == 0);
	printf("ok 'users: within a tenant, or the default, as well'\n");
}

static void write_map(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && dprintf(fd, "0 %d 1\n1 %d 1\n", USER, SUB_UID) > 0, "%s: %s", path,
	      strerror(errno));
	close(fd);
}

static void case_namespace(struct bench *b)
{
	pid_t pid;
	int code;

	begin(b, 1, true, AUDIT_FAILURE_KILL);
	pid = start(member_in_namespace);
	CHECK(WAIT_UNTIL(b, told->in_namespace));
	write_map(pid, "uid_map");
	write_map(pid, "gid_map");
	told->is_mapped = 1;
	code = tenant_wait(b, pid);
	CHECK(code == 0 && asked_for == USER, "%d, asked for %lu", code, asked_for);
	printf("ok 'users: in a namespace who made it is asked for'\n");
}

static int is_held(_unused_ const struct audit_slot *slot, _unused_ void *userdata)
{
	return 1;
}

/* It is no thread in a program that the next daemon would have to wait for, as before Linux 6.13. */
static void case_no_daemon(struct bench *b)
{
	pid_t pid;
	int code;

	begin(b, 0, true, AUDIT_FAILURE_KILL);
	pid = start(member);
	CHECK(WAIT_UNTIL(b, engine_each_held(b->engine, is_held, NULL)));
	bench_leave(b);
	bench_return(b);
	answer_at = 1;
	n_asked = 0;
	engine_on_event(b->engine, on_event, b);
	code = tenant_wait(b, pid);
	CHECK(code == 0, "%d", code);
	printf("ok 'users: who comes while there is no daemon waits for one'\n");
}

static void case_signals(struct bench *b)
{
	static const int signals[] = { SIGKILL, SIGTERM };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		pid_t pid;
		int status;

		begin(b, 0, false, AUDIT_FAILURE_KILL);
		pid = start(ask_once);
		CHECK(WAIT_UNTIL(b, n_asked));
		kill(pid, signals[i]);
		CHECK(WAIT_UNTIL(b, waitpid(pid, &status, WNOHANG) == pid));
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i] && !told->n_ran);
	}
	printf("ok 'users: one who waits can be ended'\n");
}

/* Nobody answers. */
static void case_failure(struct bench *b)
{
	bool answers = engine_rung_now(b->engine) == ENGINE_RUNG_REGISTERS;
	int code;

	bench_failure_wait(b, HELD_NS);
	begin(b, 0, false, AUDIT_FAILURE_KILL);
	code = result_of(b, look_and_ask);
	CHECK(code == 128 + SIGKILL && told->n_ran == 1, "%d, %lu ran", code, told->n_ran);
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_FAILED_KILL] == 1));
	printf("ok 'users: without an answer what allocates is the end of its process, no other call is'\n");

	bench_failure_wait(b, SHORT_NS);
	begin(b, 0, false, AUDIT_FAILURE_DENY);
	code = result_of(b, ask_once);
	CHECK(code == (answers ? OUT_OF_MEMORY : 128 + SIGKILL) && !told->n_ran, "%d, %lu ran",
	      code, told->n_ran);
	CHECK(WAIT_UNTIL(b, answers ? b->n_events[AUDIT_EVENT_FAILED_DENY] == 1
				    : b->n_events[AUDIT_EVENT_FAILED_KILL] == 2));
	printf("ok 'users: or is %s where it is to be denied'\n",
	       answers ? "refused" : "that, too,");

	begin(b, 0, false, AUDIT_FAILURE_ALLOW);
	CHECK(result_of(b, ask_once) == 0 && told->n_ran == 1);
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_FAILED_ALLOW] == 1));
	n_asked = 0;
	CHECK(result_of(b, ask_once) == 0 && told->n_ran == 2);
	bench_pump(b, 0);
	CHECK(n_asked == 0, "%u times", n_asked);
	printf("ok 'users: or is let run, and nobody waits for it again'\n");
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, GROUP_BYTES, 0);
	fake_open(&b, argv[1]);
	told = shared_memory(sizeof(*told));
	fakes->inside = count;
	engine_on_event(b.engine, on_event, &b);
	group = b.tenant;
	CHECK(engine_tenant_new(b.engine, "around", &b.tenant) == 0);
	bench_limit(&b, 4 * GROUP_BYTES, 0);
	bench_failure_wait(&b, LONG_NS);
	case_member(&b);
	case_tenants_around(&b);
	case_namespace(&b);
	case_no_daemon(&b);
	case_signals(&b);
	case_failure(&b);
	CHECK(bench_current(&b) == 0 && b.n_events[AUDIT_EVENT_RAN] == 0);
	bench_close(&b);
	return 0;
}
