// SPDX-License-Identifier: Apache-2.0
/*
 * The holder process: stops threads that may not go on, and lets them go.
 *
 * It decides nothing. A program that wants its thread held or answered fills in a slot; the holder seizes
 * and interrupts the thread, lets the program return, and when the thread has stopped on its way to user
 * space either sets the answer or puts it back to the entry of its call and keeps it there. When memory
 * may have become free, when a signal came for the thread or its time is over, it lets it go; the
 * thread meets the probe again and is decided afresh. So the death of the holder loses nothing: the
 * kernel lets its threads go, and they meet the probe again, too. Only between the interrupt and the
 * stop a thread would run on into its call; for that short time the holder's death is the thread's
 * (PTRACE_O_EXITKILL).
 *
 * It outlives the daemon: held threads stay held, and are let go in their turn, while there is none. The
 * next engine's holder takes its place. Without an engine it ends when the pins are gone.
 *
 * Nothing here waits for a single thread, and everything that is to be remembered about one is in its slot.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "holder.h"

#define SWEEP_MS		  100 /* look over all slots this often while any is in use */
#define QUEUE_MS		  5   /* and over the held ones this often */
#define END_MS			  5000
#define DISMISSED_MS_MIN	  50
#define DISMISSED_MS_MAX	  (END_MS / 2)
#define WAKES_FD		  3
#define STOP_SPIN_NS		  30000 /* a thread that is to stop is waited for so long before this sleeps */
#define ALONE_MS		  100 /* if no other has come for so long */
#define HOLDER_NAME		  "cotenant-holder"
#define STOPPED_FOR_GROUP(status) ((status) >> 16 == PTRACE_EVENT_STOP)

/* --- slots by thread ------------------------------------------------------------------------------- */

static void slot_unfile(struct holder *h, uint32_t at)
{
	uint32_t *link = &h->bucket[h->filed_under[at] % BUCKETS];

	if (!h->filed_under[at])
		return;
	while (*link != at + 1)
		link = &h->next[*link - 1];
	*link = h->next[at];
	h->filed_under[at] = 0;
}

/* A slot that ends stays where it is, until it is somebody else's. */
static void slot_file(struct holder *h, uint32_t at)
{
	uint32_t tid = h->state->slots[at].tid;

	if (h->filed_under[at] == tid)
		return;
	slot_unfile(h, at);
	h->filed_under[at] = tid;
	h->next[at] = h->bucket[tid % BUCKETS];
	h->bucket[tid % BUCKETS] = at + 1;
}

static int slot_of_thread(const struct holder *h, pid_t tid)
{
	for (uint32_t at = h->bucket[tid % BUCKETS]; at; at = h->next[at - 1]) {
		const struct audit_slot *slot = &h->state->slots[at - 1];

		if (slot->tid == (uint32_t)tid && slot_state(slot) != AUDIT_SLOT_FREE)
			return at - 1;
	}
	return -1;
}

/* --- stopping -------------------------------------------------------------------------------------- */

/* Write over what a call has returned. The thread waits in the program and is not stopped. */
static void slot_write(struct holder *h, uint32_t at)
{
	const struct audit_slot *slot = &h->state->slots[at];

	for (size_t i = 0; i < AUDIT_WRITES; i++) {
		struct iovec from = { (void *)&slot->values[i], slot->width };
		struct iovec to = { (void *)(uintptr_t)slot->addresses[i], slot->width };

		if (slot->addresses[i])
			process_vm_writev(slot->tgid, &from, 1, &to, 1, 0);
	}
	audit_slot_end(h->state, at, AUDIT_SLOT_WAITING);
}

/* The next engine's holder is there: nothing is begun any more. */
static bool is_replaced(const struct holder *h)
{
	return __atomic_load_n(&h->state->control.holder, __ATOMIC_SEQ_CST) != (uint32_t)getpid();
}

static void stopping_tidy(struct holder *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n_stopping; i++)
		if (slot_state(&h->state->slots[h->stopping[i]]) == AUDIT_SLOT_STOPPING)
			h->stopping[kept++] = h->stopping[i];
	h->n_stopping = kept;
}

static void stopping_add(struct holder *h, uint32_t at)
{
	if (h->n_stopping == AUDIT_SLOTS)
		stopping_tidy(h);
	h->stopping[h->n_stopping++] = at;
}

/*
 * Take over a thread that waits in the program. One that somebody traces already cannot be had; its slot
 * stays as it is, the next sweep tries again, and in the end the program gives up.
 */
static void slot_take(struct holder *h, uint32_t at)
{
	struct audit_slot *slot = &h->state->slots[at & (AUDIT_SLOTS - 1)];

	if (slot_state(slot) != AUDIT_SLOT_WAITING || is_replaced(h))
		return;
	if (slot->ask == AUDIT_ASK_WRITE) {
		slot_write(h, at);
		return;
	}
	h->let_go[at] = 0;
	if (h->tickets[at] != slot->ticket)
		queue_remove(h, at);
	h->tickets[at] = slot->ticket;
	slot_file(h, at);
	if (ptrace(PTRACE_SEIZE, slot->tid, 0, PTRACE_O_EXITKILL)) {
		slot->failed = errno;
		return;
	}
	ptrace(PTRACE_INTERRUPT, slot->tid, 0, 0);
	if (slot_change(slot, AUDIT_SLOT_WAITING, AUDIT_SLOT_STOPPING))
		stopping_add(h, at);
}

static void registers_at_entry(const struct audit_regs *from, struct user_regs_struct *to)
{
	to->r15 = from->r15;
	to->r14 = from->r14;
	to->r13 = from->r13;
	to->r12 = from->r12;
	to->rbp = from->bp;
	to->rbx = from->bx;
	to->r11 = from->r11;
	to->r10 = from->r10;
	to->r9 = from->r9;
	to->r8 = from->r8;
	to->rax = from->ax;
	to->rcx = from->cx;
	to->rdx = from->dx;
	to->rsi = from->si;
	to->rdi = from->di;
	to->rip = from->ip;
	to->eflags = from->flags;
	to->rsp = from->sp;
	to->orig_rax = -1;
}

/*
 * Put a stopped thread back to the entry of its call, or behind it with an answer. A probe on the
 * function's return has put its own address on the stack; for a thread that meets the entry again the
 * caller's goes back there, or the kernel would stack one such probe upon the other.
 */
static bool thread_set(pid_t tid, const struct audit_slot *slot)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, 0, &registers))
		return false;
	registers_at_entry(&slot->regs, &registers);
	if (slot->ask == AUDIT_ASK_ANSWER) {
		registers.rax = slot->answer;
		registers.rip += (int32_t)slot->ret_delta;
	} else if (slot->return_address) {
		ptrace(PTRACE_POKEDATA, tid, slot->regs.sp, slot->return_address);
	}
	return ptrace(PTRACE_SETREGS, tid, 0, &registers) == 0;
}

/* Whether a signal waits that the thread takes as soon as it runs. */
static bool thread_has_signal(pid_t tid)
{
	uint64_t own = 0, shared = 0, blocked = 0;
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "SigPnd: %lx", &own);
		sscanf(line, "ShdPnd: %lx", &shared);
		if (sscanf(line, "SigBlk: %lx", &blocked) == 1)
			break;
	}
	return (own | shared) & ~blocked;
}

/* The thread has stopped on its way from the program to user space. */
static void thread_arrived(struct holder *h, uint32_t at, pid_t tid, int signal)
{
	struct audit_slot *slot = &h->state->slots[at];

	thread_set(tid, slot);
	if (slot->ask == AUDIT_ASK_ANSWER) {
		audit_slot_end(h->state, at, AUDIT_SLOT_STOPPING);
		ptrace(PTRACE_DETACH, tid, 0, signal);
		return;
	}
	if (signal || h->let_go[at]) {
		slot_change(slot, AUDIT_SLOT_STOPPING, AUDIT_SLOT_RELEASED);
		ptrace(PTRACE_DETACH, tid, 0, signal);
		return;
	}
	/* From here on the holder's death lets the thread meet the probe again. */
	ptrace(PTRACE_SETOPTIONS, tid, 0, 0);
	if (!slot_change(slot, AUDIT_SLOT_STOPPING, AUDIT_SLOT_HELD))
		return;
	queue_add(h, at);
	/* One that came before the thread had a slot, so that nobody told of it. */
	if (thread_has_signal(tid))
		slot_release(h, at, 0);
}

static void thread_stopped(struct holder *h, pid_t tid, int status)
{
	/* At a stop for a signal the signal is handed on; a stop of the group needs no hand. */
	int signal = STOPPED_FOR_GROUP(status) ? 0 : WSTOPSIG(status);
	int at = slot_of_thread(h, tid);
	uint32_t state = at < 0 ? AUDIT_SLOT_FREE : slot_state(&h->state->slots[at]);

	if (state == AUDIT_SLOT_STOPPING)
		thread_arrived(h, at, tid, signal);
	else if (state == AUDIT_SLOT_HELD)
		slot_release(h, at, signal);
	else
		ptrace(PTRACE_DETACH, tid, 0, signal);
}

static void threads_wait(struct holder *h)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		if (WIFSTOPPED(status))
			thread_stopped(h, tid, status);
	queue_tidy(h);
}

/*
 * A thread that is to be answered stops within some ten microseconds, which is less than it takes to sleep and to be
 * woken where the CPU has gone idle meanwhile. It is waited for if it is on another CPU than this process, which would
 * keep it from that, and if no other has come for longer than one that wants a CPU waits for it: where several come
 * there is always one that wakes this, and the CPU is better theirs.
 */
static void thread_await(struct holder *h, uint32_t at)
{
	const struct audit_slot *slot = &h->state->slots[at];
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), until = now + STOP_SPIN_NS;

	if (now - h->alone_since_ns < ALONE_MS * 1000000ULL || h->came_on == sched_getcpu())
		return;
	while (slot_state(slot) == AUDIT_SLOT_STOPPING && now < until) {
		threads_wait(h);
		now = clock_now_ns(CLOCK_MONOTONIC);
	}
}

static void threads_await(struct holder *h)
{
	stopping_tidy(h);
	if (h->n_stopping == 1 && h->state->slots[h->stopping[0]].ask == AUDIT_ASK_ANSWER)
		thread_await(h, h->stopping[0]);
}

/* --- what wakes it --------------------------------------------------------------------------------- */

static bool slot_is_signalled(const struct audit_slot *slot, uint32_t tgid, uint32_t tid)
{
	return slot->tgid == tgid && (tid == AUDIT_SIGNALLED_ANY || slot->tid == tid);
}

/* A held thread does not see its signals. */
static void signal_came(struct holder *h, uint32_t tgid, uint32_t tid)
{
	for (size_t i = 0; i < h->n_held; i++)
		if (slot_is_signalled(&h->state->slots[h->held[i]], tgid, tid))
			slot_release(h, h->held[i], 0);
	for (size_t i = 0; i < h->n_stopping; i++)
		if (slot_is_signalled(&h->state->slots[h->stopping[i]], tgid, tid))
			h->let_go[h->stopping[i]] = 1;
}

/* What comes while these are dealt with is told anew. */
static void signals_take(struct holder *h)
{
	if (!h->n_signalled)
		return;
	stopping_tidy(h);
	for (size_t i = 0; i < h->n_signalled; i++) {
		struct audit_process *p = &h->state->processes[h->signalled[i]];
		uint32_t tid =
			__atomic_exchange_n(&p->signalled, AUDIT_SIGNALLED_NONE, __ATOMIC_SEQ_CST);

		if (tid)
			signal_came(h, audit_process_tgid(p), tid);
	}
	h->n_signalled = 0;
	queue_tidy(h);
}

/* After it was taken, which is urgent. */
static void slot_came(struct holder *h, const struct audit_wake *wake)
{
	uint32_t tid = h->state->slots[wake->index & (AUDIT_SLOTS - 1)].tid;

	h->came_on = wake->cpu;
	if (tid == h->came_tid)
		return;
	h->came_tid = tid;
	h->alone_since_ns = clock_now_ns(CLOCK_MONOTONIC);
}

static int on_wake(void *userdata, void *data, _unused_ size_t size)
{
	struct holder *h = userdata;
	const struct audit_wake *wake = data;

	switch (wake->kind) {
	case AUDIT_WAKE_SLOT:
		slot_take(h, wake->index & (AUDIT_SLOTS - 1));
		slot_came(h, wake);
		break;
	case AUDIT_WAKE_FREED:
		__atomic_store_n(&h->state->control.freed, 0, __ATOMIC_SEQ_CST);
		break;
	default:
		if (h->n_signalled == AUDIT_PROCESSES)
			signals_take(h);
		h->signalled[h->n_signalled++] = wake->index & (AUDIT_PROCESSES - 1);
	}
	return 0;
}

/* What a lost wake, or the death of the holder before, has left. */
static void sweep(struct holder *h)
{
	uint64_t lost = h->state->control.wakes_lost;

	if (!h->state->control.taken[AUDIT_TABLE_SLOTS])
		return;
	blocks_each(h->state, AUDIT_TABLE_SLOTS, i)
		if (slot_state(&h->state->slots[i]) == AUDIT_SLOT_WAITING)
			slot_take(h, i);
	if (lost == h->wakes_lost)
		return;
	/* A signal may be among what was lost: let all go, they come back. */
	h->wakes_lost = lost;
	for (size_t i = 0; i < h->n_held; i++)
		slot_release(h, h->held[i], 0);
	queue_tidy(h);
}

static void signals_drain(const struct holder *h)
{
	struct signalfd_siginfo info[16];

	while (read(h->signal_fd, info, sizeof(info)) > 0)
		continue;
}

/* Whether any slot is between these states of its life. */
static bool is_any_slot(const struct holder *h, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < AUDIT_SLOTS; i++) {
		uint32_t state = slot_state(&h->state->slots[i]);

		if (state >= first && state <= last)
			return true;
	}
	return false;
}

static bool is_stopping_any(const struct holder *h)
{
	return is_any_slot(h, AUDIT_SLOT_STOPPING, AUDIT_SLOT_STOPPING);
}

/* Without a daemon around, one that was removed meanwhile, or has no holder any more, has taken its pins along. */
static void look_for_dismissal(struct holder *h, uint64_t now)
{
	if (!h->dismissed_ns &&
	    (h->state->control.dismissed || (getppid() != h->parent && access(h->pin, F_OK))))
		h->dismissed_ns = now;
}

/* No probe does anything any more: whoever is held goes on into his call, and whoever waits is held no longer. */
static void let_all_go(struct holder *h)
{
	for (size_t i = 0; i < h->n_held; i++)
		slot_release(h, h->held[i], 0);
	queue_tidy(h);
}

/*
 * What has begun is seen through: the holder's death would be that of a thread which it is stopping. After a
 * dismissal some are still on their way here; one that cannot be had keeps nobody for long.
 */
static bool is_done(const struct holder *h, uint64_t now)
{
	if (is_replaced(h) ||
	    (h->dismissed_ns && now >= h->dismissed_ns + DISMISSED_MS_MAX * 1000000ULL))
		return !is_stopping_any(h);
	return h->dismissed_ns && now >= h->dismissed_ns + DISMISSED_MS_MIN * 1000000ULL &&
	       !is_any_slot(h, AUDIT_SLOT_CLAIMED, AUDIT_SLOT_HELD);
}

static void holder_loop(struct holder *h)
{
	struct pollfd fds[] = {
		{ .fd = WAKES_FD, .events = POLLIN },
		{ .fd = h->signal_fd, .events = POLLIN },
	};
	uint64_t next_sweep = 0;

	for (;;) {
		uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

		if (is_done(h, now))
			return;
		h->state->control.heartbeat_ns = now;
		if (now >= next_sweep) {
			look_for_dismissal(h, now);
			sweep(h);
			next_sweep = now + SWEEP_MS * 1000000ULL;
		}
		if (h->dismissed_ns)
			let_all_go(h);
		poll(fds, ARRAY_SIZE(fds), h->n_held ? QUEUE_MS : SWEEP_MS);
		ring_buffer__consume(h->wakes);
		signals_drain(h);
		signals_take(h);
		threads_wait(h);
		threads_await(h);
		queue_run(h);
	}
}

/*
 * Held threads wait for the holder: it goes first where the kernel lets it, and what it has used once stays
 * in memory. Not all that it has: most of that is the daemon's, from before the fork.
 */
static void raise_priority(void)
{
	struct sched_param param = { .sched_priority = 1 };

	sched_setscheduler(0, SCHED_FIFO, &param);
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static bool is_holder(pid_t pid)
{
	char path[32], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = '\0';
	fclose(f);
	return strcmp(name, HOLDER_NAME "\n") == 0;
}

/*
 * There is one reader of the wakes. The one before first sees through what it has begun, as its death is
 * that of a thread which it is stopping; the threads that it holds meet their probes and come to us.
 */
static void holder_end(pid_t before)
{
	struct pollfd fd = { .events = POLLIN };

	if (!before || !is_holder(before))
		return;
	fd.fd = syscall(SYS_pidfd_open, before, 0);
	/* It takes no other signal, and wakes by this one. */
	kill(before, SIGCHLD);
	if (fd.fd >= 0 && poll(&fd, 1, END_MS) == 0) {
		kill(before, SIGKILL);
		poll(&fd, 1, END_MS);
	}
	if (fd.fd >= 0)
		close(fd.fd);
}

static int holder_set_up(struct holder *h)
{
	sigset_t mask;

	sigfillset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	h->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	raise_priority();
	holder_end(__atomic_exchange_n(&h->state->control.holder, getpid(), __ATOMIC_SEQ_CST));
	queue_inherit(h);
	for (size_t i = 0; i < AUDIT_PROCESSES; i++)
		h->state->processes[i].signalled = AUDIT_SIGNALLED_NONE;
	h->state->control.freed = 0;
	h->wakes_lost = h->state->control.wakes_lost;
	h->wakes = ring_buffer__new(WAKES_FD, on_wake, h, NULL);
	if (h->signal_fd < 0 || !h->wakes)
		return -errno;
	return 0;
}

/* Nothing of the daemon's is to stay open here: its lock, its clients, and the pipe of whoever hears what it says. */
static int files_let_go(int wakes_fd)
{
	int null;

	if (dup2(wakes_fd, WAKES_FD) < 0 || close_range(WAKES_FD + 1, ~0U, 0))
		return -errno;
	null = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > WAKES_FD)
		close(null);
	return 0;
}

static _Noreturn void holder_main(const struct engine *engine, int wakes_fd, pid_t parent)
{
	static struct holder holder;

	/* While the map is still open. */
	if (view_whole(engine->view) || files_let_go(wakes_fd) < 0)
		_exit(1);
	prctl(PR_SET_NAME, HOLDER_NAME);
	setsid();
	signal(SIGCHLD, SIG_DFL);
	holder.state = engine->state;
	holder.parent = parent;
	snprintf(holder.pin, sizeof(holder.pin), "%s/maps/state", engine->state_dir);
	if (holder_set_up(&holder) == 0)
		holder_loop(&holder);
	_exit(1);
}

int holder_start(struct engine *engine)
{
	struct epoll_event event = { .events = EPOLLIN };
	int wakes_fd = engine_map_fd(engine, "wakes");
	pid_t parent = getpid();

	engine->holder = fork();
	if (engine->holder < 0)
		return -errno;
	if (engine->holder == 0)
		holder_main(engine, wakes_fd, parent);
	engine->holder_pidfd = syscall(SYS_pidfd_open, engine->holder, 0);
	if (engine->holder_pidfd < 0)
		return -errno;
	event.data.fd = engine->holder_pidfd;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->holder_pidfd, &event) ? -errno
											: 0;
}

void holder_forget(struct engine *engine)
{
	if (engine->holder_pidfd >= 0)
		close(engine->holder_pidfd);
	engine->holder_pidfd = -1;
}

/* Its parent's: it has ended, or is killed. */
static void holder_collect(struct engine *engine, int wait_ms)
{
	struct pollfd fd = { .fd = engine->holder_pidfd, .events = POLLIN };

	if (fd.fd < 0 || poll(&fd, 1, wait_ms) == 0)
		kill(engine->holder, SIGKILL);
	waitpid(engine->holder, NULL, 0);
	holder_forget(engine);
	engine->holder = 0;
}

void holder_stop(struct engine *engine)
{
	if (engine->holder > 0)
		holder_collect(engine, /* wait_ms= */ 0);
}

void holder_dismiss(struct engine *engine)
{
	if (engine->holder <= 0)
		return;
	__atomic_store_n(&engine->state->control.dismissed, 1, __ATOMIC_SEQ_CST);
	holder_collect(engine, END_MS);
}
