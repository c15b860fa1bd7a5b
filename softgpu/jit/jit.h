/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels as machine code.
 *
 * The interpreter (softgpu/exec) stays what a kernel is: its frames hold the registers, its
 * fragments the lanes that went different ways, its handlers say what an instruction does. Compiled
 * code is a way to get faster from one place of it to the next. At each FLOW_ENTER of the decoded
 * code - the start of every piece that lanes can come to or go on from - the running fragment may
 * leave the interpreter: compiled code carries out what follows for all lanes of the fragment at
 * once, whatever its mask, in vectors of 32, through branches and loops, as long as all of them go
 * the same way. Where they do not - a branch that only some take, a barrier, a call, an exchange of
 * lanes that are not all there, the end of the slice, a place where another fragment waits - it puts
 * the registers back and names the instruction at which the interpreter goes on. So faults, barriers,
 * divergence, turns, preemption, printing and the count of instructions are the interpreter's, and a
 * form that is not compiled is an instruction that compiled code asks the interpreter's handler for.
 *
 *	interpreter	ENTER | insn insn insn insn | BRA (some lanes) -> two fragments ...
 *	compiled	      +-> .................. --+
 *
 * Values. A register that holds the same in all lanes, or numbers at equal distances (base + lane *
 * stride), is one scalar in compiled code; that makes loop counters and addresses cheap and tells
 * which accesses are one vector in memory. Which registers are so is worked out when the code is
 * compiled, from the instructions alone (kinds.c), and tried at each entry: lanes that have come
 * together from different ways may prove it wrong, and then the interpreter does that piece.
 *
 * Who compiles. A process of its own, softgpu-jitc, which alone loads LLVM: the program may have
 * another LLVM, its memory stays what it was, and code that makes a compiler fail harms nothing. It
 * reads a request (struct jit_request and what follows) on standard input and writes a reply, which
 * has the object file and tables of entries and exits. The same two blobs are what the cache on disk
 * is made of: the key is a hash of the request, which has everything that the code depends on, the
 * layout of the interpreter's structures included.
 *
 * When. A launch never waits, unless every kernel is to be compiled before its first (JIT_ON): it
 * begins in the interpreter, which counts the instructions of threads it carries out for each kernel.
 * What comes to LOOK_COST of them for each instruction of a function is worth a look into the cache,
 * and what comes to COMPILE_COST is given to the compiler, which works beside it; a kernel that has
 * less to do never costs more than the counting. The workers look for the reply between two blocks,
 * or two turns of one, and the next launch does: no thread waits for it. From the moment the code is
 * there, whichever warp comes to its next ENTER goes on in it. Counts tell, and no clock: a busy
 * machine compiles what an idle one does, later.
 *
 * Bit for bit: the compiler is told nothing that would let it change results, a NaN is what the
 * interpreter makes of it, and instructions whose value is a matter of the host's library (sin.approx)
 * or of MXCSR go to the handler.
 */
#ifndef SOFTGPU_JIT_JIT_H
#define SOFTGPU_JIT_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jit_mode {
	JIT_OFF,
	JIT_AUTO, /* what has had much to do, beside it */
	JIT_ON,	  /* every kernel, before its first launch */
};

/**
 * jit_init() - let the images that are made from now on have compiled code
 * @mode:	whether
 * @log:	gets a line about each kernel that is not compiled; may be NULL
 *
 * Does nothing where the CPU has no AVX2 or there is no compiler.
 */
void jit_init(enum jit_mode mode, void (*log)(const char *format, ...));

/* How many functions were compiled, taken from the cache, and left to the interpreter. */
struct jit_counts {
	unsigned int n_compiled, n_cached, n_refused;
	unsigned int n_pending; /* waits for the compiler */
};

void jit_counts(struct jit_counts *ret);

/* Waits until nothing is pending. */
void jit_settle(void);

#endif
