// SPDX-License-Identifier: Apache-2.0
#include "softgpu/state/keeper.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

enum phase {
	PHASE_BEGINNING,
	PHASE_HOLDING,
	PHASE_STOPPING,
};

/*
 * Mapped as one piece with the stack behind it.
 * @tid:	cleared by the kernel when the thread is gone
 */
struct keeper {
	struct robust_list_head list;
	_Atomic uint32_t phase;
	_Atomic uint32_t tid;
	int result;
	struct state *state;
	int (*begin)(struct state *state, struct keeper *keeper, uint32_t tid);
	uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
};

/*
 * A system call without the C library's errno: it is the thread's that started us, which
 * may be gone.
 */
static long bare_syscall(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return r;
}

static void word_wait(_Atomic uint32_t *word, uint32_t value, int op)
{
	bare_syscall(SYS_futex, (long)word, op, value, 0);
}

static void word_wake(_Atomic uint32_t *word)
{
	bare_syscall(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, 0);
}

static int keeper_main(void *arg)
{
	struct keeper *keeper = arg;
	uint32_t tid = (uint32_t)bare_syscall(SYS_gettid, 0, 0, 0, 0);

	bare_syscall(SYS_set_robust_list, (long)&keeper->list, sizeof(keeper->list), 0, 0);
	keeper->result = keeper->begin(keeper->state, keeper, tid);
	atomic_store(&keeper->phase, keeper->result ? PHASE_STOPPING : PHASE_HOLDING);
	word_wake(&keeper->phase);
	while (atomic_load(&keeper->phase) == PHASE_HOLDING)
		word_wait(&keeper->phase, PHASE_HOLDING, FUTEX_WAIT | FUTEX_PRIVATE_FLAG);
	return 0;
}

bool keeper_take(struct keeper *keeper, struct robust_list *node, _Atomic uint32_t *word,
		 uint32_t expected, uint32_t tid)
{
	bool taken;

	/*
	 * As the kernel wants it: announced before the word changes. Killed in between, it
	 * looks at the announced word too and marks it only if it holds our id.
	 */
	atomic_signal_fence(memory_order_seq_cst);
	*(struct robust_list *volatile *)&keeper->list.list_op_pending = node;
	taken = atomic_compare_exchange_strong(word, &expected, tid);
	if (taken) {
		node->next = keeper->list.list.next;
		*(struct robust_list *volatile *)&keeper->list.list.next = node;
	}
	*(struct robust_list *volatile *)&keeper->list.list_op_pending = NULL;
	return taken;
}

/* Signals of the program must find the program's threads: all are blocked in ours. */
static int thread_start(struct keeper *keeper)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = clone(keeper_main, keeper->stack + STACK_BYTES, flags, keeper, &keeper->tid, NULL,
		  &keeper->tid);
	r = r < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int keeper_start(long distance,
		 int (*begin)(struct state *state, struct keeper *keeper, uint32_t tid),
		 struct state *state, struct keeper **ret)
{
	struct keeper *keeper = mmap(NULL, sizeof(*keeper), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (keeper == MAP_FAILED)
		return -ENOMEM;
	keeper->list.list.next = &keeper->list.list;
	keeper->list.futex_offset = distance;
	keeper->state = state;
	keeper->begin = begin;
	r = thread_start(keeper);
	if (r < 0) {
		keeper_forget(keeper);
		return r;
	}
	while (atomic_load(&keeper->phase) == PHASE_BEGINNING)
		word_wait(&keeper->phase, PHASE_BEGINNING, FUTEX_WAIT | FUTEX_PRIVATE_FLAG);
	r = keeper->result;
	if (r)
		keeper_stop(keeper);
	else
		*ret = keeper;
	return r;
}

void keeper_stop(struct keeper *keeper)
{
	uint32_t tid;

	if (!keeper)
		return;
	atomic_store(&keeper->phase, PHASE_STOPPING);
	word_wake(&keeper->phase);
	/* The kernel clears the word after it has marked the list, and wakes as if shared. */
	while ((tid = atomic_load(&keeper->tid)))
		word_wait(&keeper->tid, tid, FUTEX_WAIT);
	keeper_forget(keeper);
}

void keeper_forget(struct keeper *keeper)
{
	if (keeper)
		munmap(keeper, sizeof(*keeper));
}
