/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the compiler's process may work at a request.
 *
 * What counts is time of the CPU. A machine that is busy with others, or stands still, takes as long
 * as it takes: what is compiled must not depend on it. The wall's clock only ends what hangs without
 * working, and whoever waits for the answer waits a little longer than that.
 */
#ifndef SOFTGPU_JIT_LIMIT_H
#define SOFTGPU_JIT_LIMIT_H

#define LIMIT_CPU_MS  20000
#define LIMIT_WALL_MS 600000
#define LIMIT_WAIT_S  (LIMIT_WALL_MS / 1000 + 30)

/**
 * limit_begin() - from now on the process is ended when one of the times is over
 * @cpu_ms:	of the CPU, by SIGPROF
 * @wall_ms:	of the wall's clock, by SIGALRM
 *
 * Whatever whoever has started the process has set up for these signals is undone.
 */
void limit_begin(unsigned int cpu_ms, unsigned int wall_ms);
void limit_end(void);

#endif
