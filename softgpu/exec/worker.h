/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share the work of one caller.
 */
#ifndef SOFTGPU_EXEC_WORKER_H
#define SOFTGPU_EXEC_WORKER_H

#include <stdint.h>

/* No more threads than this, the callers aside. */
#define WORKERS_MAX 64

/**
 * worker_run() - let several threads do the same
 * @fn:	what each of them calls, once
 * @max:	no more threads than this
 *
 * The caller is one of them. Returns when all have returned that began; a
 * thread that would come late does not begin.
 */
void worker_run(void (*fn)(void *arg), void *arg, uint32_t max);

#endif
