/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs know of the kernel: a handful of fields, found by CO-RE wherever they lie.
 *
 * Stack: since Linux 6.13 a program with a frame of 64 bytes or more gets a private stack per CPU.
 * A sleepable program that gives up the CPU while another thread runs the same program would share it
 * and crash the kernel. So every function here keeps its frame below 64 bytes: what is larger lives in
 * the thread's own record (struct thread), and long functions are cut with `noinline`. The loader
 * reads the frames from the verifier's log and refuses to go on if one is too large. Calls may be eight
 * deep, so what only passes on is `inlined`.
 */
#ifndef AUDIT_BPF_KERNEL_H
#define AUDIT_BPF_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* As in user space: a parameter that the kernel gives and nobody needs. */
#define _unused_ __attribute__((__unused__))

#define noinline __attribute__((__noinline__))
#define inlined	 inline __attribute__((__always_inline__))

/*
 * A function that the verifier looks at once, by itself, and not again on every path that leads to it:
 * without such cuts the programs are too large for it. It takes numbers and pointers to records that may
 * be NULL as far as it knows. Weak, so that the compiler knows no more than the verifier does: clang 18
 * leaves out the mask of an index whose bounds it sees inside of the function that returned it.
 */
#define alone		     __attribute__((__noinline__, __weak__))
#define READ_ONCE(x)	     (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))

#define SIGKILL 9

/* A program that waits gives up the CPU (in bpf_copy_from_user_task()) in every so many rounds. */
#define YIELD_EVERY	      8
#define SEND_SIGNAL_DELIVERED 0 /* of the tracepoint signal_generate */

#define __core __attribute__((preserve_access_index))

struct sigset {
	unsigned long sig[1];
} __core;

struct sigpending {
	struct sigset signal;
} __core;

struct signal_struct {
	struct {
		int counter;
	} live;
} __core;

struct xol_area {
	unsigned long vaddr;
} __core;

struct uprobes_state {
	struct xol_area *xol_area;
} __core;

struct mm_struct {
	struct uprobes_state uprobes_state;
} __core;

struct user_namespace {
	struct user_namespace *parent;
	int level;
	struct {
		__u32 val;
	} owner;
} __core;

struct cred {
	struct user_namespace *user_ns;
} __core;

struct task_struct {
	int pid;
	int tgid;
	const struct cred *cred;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct sigpending pending;
} __core;

#endif
