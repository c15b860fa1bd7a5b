// SPDX-License-Identifier: Apache-2.0
/*
 * What is called here after the filter is there must not touch errno or anything else of the thread that started
 * the mapper, because they share its storage: hence system calls by hand.
 */
#include "forward/host/mapper.h"

#include "base/base.h"
#include "forward/host/sandbox.h"
#include "forward/host/spawn.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define STACK_SIZE (64 << 10)

#define NOT_YET 1

static struct mapper_job job;
/* What mapper_start() waits for: 0, or what went wrong. */
static _Atomic int started = NOT_YET;

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static _Noreturn void leave(void)
{
	for (;;)
		call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static int map(void)
{
	const struct mapper_piece *piece;
	long r = 0;
	size_t i;

	for (i = 0; i < job.n && i < MAPPER_MAX_PIECES && r >= 0; i++) {
		piece = &job.pieces[i];
		r = call(SYS_mmap, (long)piece->address, (long)piece->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, MAPPER_MEMORY, (long)piece->offset);
		/* An address is above all errors, and one of the upper half of the space is none. */
		if (r < 0 && r > -4096)
			return (int)r;
	}
	return 0;
}

static _Noreturn void serve(void)
{
	int error;

	while (call(SYS_read, WORKER_MAPPER, (long)&job, sizeof(job), 0, 0, 0) > 0) {
		error = map();
		if (call(SYS_write, WORKER_MAPPER, (long)&error, sizeof(error), 0, 0, 0) < 0)
			break;
	}
	leave();
}

#define LOAD(offset)	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define EQUALS(value, t, f) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (t), (f))
#define RETURN(value)	    BPF_STMT(BPF_RET | BPF_K, (value))

/* Lines of the filter; a jump counts from the line behind it. */
enum {
	ASK = 9,
	BROKER_ONLY,
	KILL = 12,
	ALLOW,
};

/* It talks with the broker, and asks it for mappings. Return: the listener, or what the kernel said. */
static int filter(void)
{
	struct sock_filter filter[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		EQUALS(AUDIT_ARCH_X86_64, 0, KILL - 2),
		LOAD(offsetof(struct seccomp_data, nr)),
		EQUALS(SYS_mmap, ASK - 4, 0),
		EQUALS(SYS_close, ALLOW - 5, 0),
		EQUALS(SYS_exit_group, ALLOW - 6, 0),
		EQUALS(SYS_read, BROKER_ONLY - 7, 0),
		EQUALS(SYS_write, BROKER_ONLY - 8, 0),
		EQUALS(SYS_sendmsg, BROKER_ONLY - 9, KILL - 9),
		[ASK] = RETURN(SECCOMP_RET_USER_NOTIF),
		[BROKER_ONLY] = LOAD(offsetof(struct seccomp_data, args[0])),
		EQUALS(WORKER_MAPPER, ALLOW - BROKER_ONLY - 2, 0),
		[KILL] = RETURN(SECCOMP_RET_KILL_PROCESS),
		[ALLOW] = RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	return (int)call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			 (long)&program, 0, 0, 0);
}

static int introduce(int listener, int pidfd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	int error = 0, fds[] = { listener, pidfd };
	struct iovec part = { &error, sizeof(error) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	long r;

	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	r = call(SYS_sendmsg, WORKER_MAPPER, (long)&header, 0, 0, 0, 0);
	call(SYS_close, listener, 0, 0, 0, 0, 0);
	call(SYS_close, pidfd, 0, 0, 0, 0, 0);
	return r < 0 ? (int)r : 0;
}

/*
 * It keeps one capability, with which its filter lets it do nothing: what /proc has of a process, such as its descriptors,
 * is not for those that have fewer capabilities than it, and the worker has none.
 */
static int mapper_main(_unused_ void *arg)
{
	int pidfd, listener, r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "cotenant-mapper");
	close(WORKER_SOCKET);
	pidfd = (int)call(SYS_pidfd_open, call(SYS_getpid, 0, 0, 0, 0, 0, 0), 0, 0, 0, 0, 0);
	r = pidfd < 0 ? pidfd : sandbox_drop(CAP_WAKE_ALARM);
	listener = r < 0 ? r : filter();
	r = listener < 0 ? listener : introduce(listener, pidfd);
	atomic_store(&started, r);
	if (r < 0)
		leave();
	serve();
}

int mapper_start(void)
{
	uint8_t *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int r;

	if (stack == MAP_FAILED)
		return -errno;
	/* A child of the broker's, which hears of its end as of the worker's. */
	if (clone(mapper_main, stack + STACK_SIZE, CLONE_VM | CLONE_PARENT | SIGCHLD, NULL) < 0)
		return -errno;
	while ((r = atomic_load(&started)) == NOT_YET)
		usleep(100);
	close(WORKER_MAPPER);
	return r;
}
