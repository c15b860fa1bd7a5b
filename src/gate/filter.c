// SPDX-License-Identifier: Apache-2.0
/*
 * The filter: the few ioctls that gate_decode() wants to see are reported, all else runs at once.
 *
 * It cannot see which file they are for; another driver's of the same numbers wait for the keeper's look
 * and nothing more. 32-bit and x32 system calls lead to the same driver and are reported as well.
 */
#include "gate/gate.h"

#include "base/base.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define NR_IOCTL      16
#define NR_IOCTL_X32  (0x40000000 | 514)
#define NR_IOCTL_I386 54

#define LOAD(field)	  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_IF(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (n), 0)
#define RETURN(value)	  BPF_STMT(BPF_RET | BPF_K, (value))

int gate_filter(void)
{
	struct sock_filter filter[] = {
		/*  0 */ LOAD(nr),
		/*  1 */ SKIP_IF(NR_IOCTL, 3),
		/*  2 */ SKIP_IF(NR_IOCTL_X32, 2),
		/*  3 */ SKIP_IF(NR_IOCTL_I386, 1),
		/*  4 */ RETURN(SECCOMP_RET_ALLOW),
		/*  5 */ LOAD(args[1]),
		/*  6: UVM's semaphore pool */
		/*  6 */ SKIP_IF(68, 8),
		/*  7 */ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
		/*  8: allocate, allocate memory, heap, duplicate, import, wrapped */
		/*  8 */ SKIP_IF('F' << 8 | 0x2b, 6),
		/*  9 */ SKIP_IF('F' << 8 | 0x27, 5),
		/* 10 */ SKIP_IF('F' << 8 | 0x4a, 4),
		/* 11 */ SKIP_IF('F' << 8 | 0x34, 3),
		/* 12 */ SKIP_IF('F' << 8 | 0x5d, 2),
		/* 13 */ SKIP_IF('F' << 8 | 211, 1),
		/* 14 */ RETURN(SECCOMP_RET_ALLOW),
		/* 15 */ RETURN(SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };
	int fd;

	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program);
	if (fd < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			     &program);
	return fd < 0 ? -errno : fd;
}
