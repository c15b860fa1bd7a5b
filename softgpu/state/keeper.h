/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread whose death tells others of the process's.
 *
 * The kernel marks the robust futexes of a thread when that thread ends, so one that lasts
 * as long as the process has to hold them. It is started with clone(), past the C library:
 * a program that leaves by pthread_exit() of its last thread still ends, because the
 * library does not know of this one, and then takes it along.
 */
#ifndef SOFTGPU_STATE_KEEPER_H
#define SOFTGPU_STATE_KEEPER_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct state;

struct keeper;

/**
 * keeper_start() - start it
 * @distance:	from each node to its futex word, in bytes
 * @begin:	called in the thread with its id before keeper_start() returns. May not use
 *		anything of the C library that is per thread.
 *
 * Return: 0, or what @begin returned or the kernel said; then no thread is left.
 */
int keeper_start(long distance,
		 int (*begin)(struct state *state, struct keeper *keeper, uint32_t tid),
		 struct state *state, struct keeper **ret);

/**
 * keeper_take() - make a futex word the keeper's; only from @begin
 * @node:	its place in the list, @distance before @word
 *
 * Return: false if the word was not @expected.
 */
bool keeper_take(struct keeper *keeper, struct robust_list *node, _Atomic uint32_t *word,
		 uint32_t expected, uint32_t tid);

/** keeper_stop() - end it, upon which the kernel marks its words; accepts NULL */
void keeper_stop(struct keeper *keeper);

/** keeper_forget() - in a forked child, which has no such thread; accepts NULL */
void keeper_forget(struct keeper *keeper);

#endif
