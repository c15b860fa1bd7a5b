// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/priv.h"
#include "base/clock.h"
#include "harness.h"

static struct bench *current;
static pid_t bench_pid;
pid_t bench_child;
struct fake *fakes;
static void *fake_library;

uint64_t clock_ns(void)
{
	return clock_now_ns(CLOCK_MONOTONIC);
}

void sleep_ms(unsigned milliseconds)
{
	struct timespec ts = { milliseconds / 1000, milliseconds % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		continue;
}

void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static int place(const struct audit_process *p, void *userdata)
{
	struct bench *b = userdata;

	if (p->placing && b->order[p->placing - 1] != AUDIT_NO_DEVICE)
		engine_place(b->engine, audit_process_tgid(p), b->order[p->placing - 1]);
	return 0;
}

static void on_event(const struct audit_event *event, const char *text, void *userdata)
{
	struct bench *b = userdata;

	if (event->kind < AUDIT_EVENT_KINDS)
		b->n_events[event->kind]++;
	if (event->kind == AUDIT_EVENT_LIBRARY && b->text && strcmp(text, b->text) == 0)
		b->n_of_text++;
	/* What the daemon finds out. */
	if (event->kind == AUDIT_EVENT_NEW_PROCESS && b->hint_late_ms != HINT_NEVER) {
		usleep(b->hint_late_ms * 1000);
		engine_hint(b->engine, event->tgid, b->hints);
	}
	if (event->kind == AUDIT_EVENT_PLACE)
		engine_each_process(b->engine, place, b);
}

static _Noreturn void skip(const char *why, int error)
{
	printf("SKIP: %s: %s\n", why, strerror(error));
	exit(SKIP);
}

void bench_open(struct bench *b, enum engine_rung rung, uint64_t total_bytes)
{
	struct engine_options options = { .rung = rung, .failure_wait_ns = PATIENCE_NS };
	struct audit_device device = { .total = total_bytes };
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(b, 0, sizeof(*b));
	memset(b->hints, AUDIT_NO_DEVICE, sizeof(b->hints));
	b->engine_wait_ns = PATIENCE_NS;
	for (unsigned i = 0; i < LEDGER_DEVICES; i++)
		b->order[i] = i;
	if (geteuid() != 0)
		skip("needs root to load BPF programs", EPERM);
	snprintf(b->state_dir, sizeof(b->state_dir), "/run/cotenant-test-%d", getpid());
	options.state_dir = b->state_dir;
	/* A test that was killed may have had the same id, and has left its books. */
	engine_discard(b->state_dir);
	r = engine_open(&options, &b->engine);
	if (r == -EPERM || r == -EOPNOTSUPP) {
		umount2(b->state_dir, MNT_DETACH);
		rmdir(b->state_dir);
		skip(rung == ENGINE_RUNG_REGISTERS ? "the rung `registers` on this kernel"
						   : "BPF programs on this machine",
		     -r);
	}
	bench_pid = getpid();
	current = b;
	CHECK(r == 0, "engine_open: %s", strerror(-r));
	engine_on_event(b->engine, on_event, b);
	CHECK(engine_device_set(b->engine, 0, &device, /* reserve= */ 0) == 0);
	CHECK(engine_tenant_new(b->engine, "tenant", &b->tenant) == 0);
}

void bench_close(struct bench *b)
{
	engine_remove(b->engine);
	current = NULL;
}

void bench_leave(struct bench *b)
{
	engine_close(b->engine);
	b->engine = NULL;
}

void bench_return_slowly(struct bench *b, uint32_t linger_rounds)
{
	struct engine_options options = { .state_dir = b->state_dir,
					  .linger_rounds = linger_rounds,
					  .failure_wait_ns = b->engine_wait_ns,
					  .copies_grace_ns = b->copies_grace_ns,
					  .no_thread_records = b->no_thread_records };
	int r;

	/* A holder that has just begun may have the lock for another moment. */
	while ((r = engine_open(&options, &b->engine)) == -EBUSY)
		usleep(1000);
	if (r < 0) {
		fprintf(stderr, "engine_open: %s\n", strerror(-r));
		engine_discard(b->state_dir);
		exit(1);
	}
	engine_on_event(b->engine, on_event, b);
}

void bench_return(struct bench *b)
{
	bench_return_slowly(b, 0);
}

void bench_abort(void)
{
	if (current && getpid() == bench_pid) {
		if (bench_child) {
			kill(bench_child, SIGKILL);
			waitpid(bench_child, NULL, 0);
		}
		if (!current->engine)
			bench_return(current);
		bench_close(current);
		/* With what the test itself takes away at its end. */
		exit(1);
	}
	_exit(1);
}

pid_t bench_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	/* Of a child that there is not, -1 would be the id, and everybody would be sent its signals. */
	CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	current = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(96);
	return 0;
}

void bench_limit(struct bench *b, uint64_t max_bytes, uint64_t wait_ns)
{
	struct engine_limits limits = { .max_bytes = max_bytes };

	CHECK(engine_tenant_limit(b->engine, b->tenant, 0, &limits) == 0);
	CHECK(engine_tenant_waits(b->engine, b->tenant, wait_ns, wait_ns, AUDIT_FAILURE_KILL) == 0);
}

void bench_failure_wait(struct bench *b, uint64_t wait_ns)
{
	b->engine_wait_ns = wait_ns;
	__atomic_store_n(&b->engine->state->control.failure_wait_ns, wait_ns, __ATOMIC_RELEASE);
}

void bench_unowned(struct bench *b, unsigned device, uint64_t bytes)
{
	CHECK(engine_device_unowned(b->engine, device, bytes,
				    engine_device_ended(b->engine, device)) == 0);
}

uint64_t bench_current(struct bench *b)
{
	struct ledger ledger;

	CHECK(engine_book(b->engine, b->tenant, 0, &ledger) == 0);
	return ledger.current;
}

void bench_pump(struct bench *b, unsigned milliseconds)
{
	uint64_t end = clock_ns() + milliseconds * MILLISECOND;
	struct pollfd fd = { .fd = engine_fd(b->engine), .events = POLLIN };

	do {
		poll(&fd, 1, milliseconds < 10 ? milliseconds : 10);
		CHECK(engine_dispatch(b->engine) == 0);
	} while (clock_ns() < end);
}

void fake_open(struct bench *b, const char *path)
{
	int r;

	fake_library = dlopen(path, RTLD_NOW);
	CHECK(fake_library, "%s", dlerror());
	fakes = dlsym(fake_library, "fake");
	CHECK(fakes);
	r = engine_attach(b->engine, path);
	CHECK(r == 0, "engine_attach: %s", strerror(-r));
}

void *fake_fn(const char *name)
{
	void *fn = dlsym(fake_library, name);

	CHECK(fn, "%s", name);
	return fn;
}

/* long call_checked(void *fn, const unsigned long *arguments, unsigned long *ret_damage) */
__asm__(".globl call_checked\n .type call_checked, @function\n"
	"call_checked:\n"
	"push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"push %rdx\n push %rdx\n" /* where damage is counted; twice for the alignment */
	"mov %rdi, %rax\n mov %rsi, %r10\n"
	"movabs $0x5a5a1234cafe5678, %rbx\n push %rbx\n" /* canary */
	"mov %rsp, %r15\n"
	"mov 0(%r10), %rdi\n mov 8(%r10), %rsi\n mov 16(%r10), %rdx\n"
	"mov 24(%r10), %rcx\n mov 32(%r10), %r8\n mov 40(%r10), %r9\n"
	"mov $0xb1, %rbx\n mov $0xb2, %rbp\n mov $0xb3, %r12\n mov $0xb4, %r13\n mov $0xb5, %r14\n"
	"call *%rax\n"
	"mov $0, %ecx\n"
	"cmp %rsp, %r15\n je 1f\n inc %ecx\n 1:\n"
	"cmp $0xb1, %rbx\n je 1f\n inc %ecx\n 1:\n"
	"cmp $0xb2, %rbp\n je 1f\n inc %ecx\n 1:\n"
	"cmp $0xb3, %r12\n je 1f\n inc %ecx\n 1:\n"
	"cmp $0xb4, %r13\n je 1f\n inc %ecx\n 1:\n"
	"cmp $0xb5, %r14\n je 1f\n inc %ecx\n 1:\n"
	"pop %rbx\n movabs $0x5a5a1234cafe5678, %rdx\n"
	"cmp %rbx, %rdx\n je 1f\n inc %ecx\n 1:\n"
	"pop %rdx\n pop %rdx\n add %rcx, (%rdx)\n"
	"pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"ret\n .size call_checked, . - call_checked\n");

long cuda(const char *name, ...)
{
	unsigned long arguments[6], damage = 0;
	va_list ap;
	long code;

	va_start(ap, name);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(ap, unsigned long);
	va_end(ap);
	code = call_checked(fake_fn(name), arguments, &damage) & 0xffffffff;
	if (damage) {
		fprintf(stderr, "%s: %lu registers or stack words are damaged\n", name, damage);
		_exit(99);
	}
	return code;
}

static char cgroup[64];

/* Who was in it may just be ending. */
static void cgroup_remove(void)
{
	for (int i = 0; i < 200 && rmdir(cgroup) && errno == EBUSY; i++)
		usleep(10000);
}

uint64_t cgroup_make(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	struct stat st;

	snprintf(cgroup, sizeof(cgroup), "%s/cotenant-audit-%d", roots[access(roots[0], F_OK) != 0],
		 getpid());
	CHECK(mkdir(cgroup, 0755) == 0 && stat(cgroup, &st) == 0, "%s: %s", cgroup,
	      strerror(errno));
	atexit(cgroup_remove);
	return st.st_ino;
}

void cgroup_set(const char *file, int value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && dprintf(fd, "%d", value) > 0, "%s: %s", path, strerror(errno));
	close(fd);
}

/* The kernel forgets the wish to end with one's parent. Who outlives a test keeps its output open. */
bool become(uid_t user)
{
	return setgid(user) == 0 && setuid(user) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

pid_t tenant_fork(struct bench *b, int (*fn)(void *), void *userdata)
{
	int go[2];
	char byte = 0;
	pid_t pid;

	CHECK(pipe2(go, O_CLOEXEC) == 0);
	pid = bench_fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(98);
		/* The engine's lock and maps are not the tenant's, but some look at the books from here. */
		if (view_whole(b->engine->view))
			_exit(97);
		close_range(3, ~0U, 0);
		_exit(fn(userdata));
	}
	close(go[0]);
	CHECK(engine_bind(b->engine, b->tenant, ENGINE_BIND_TREE, pid) == 0);
	CHECK(write(go[1], &byte, 1) == 1);
	close(go[1]);
	return pid;
}

int tenant_wait(struct bench *b, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		bench_pump(b, 1);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
