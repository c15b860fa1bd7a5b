/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled code in the program's process: asked for, loaded, entered.
 */
#ifndef SOFTGPU_JIT_CODE_H
#define SOFTGPU_JIT_CODE_H

#include "softgpu/exec/block.h"
#include "softgpu/exec/machine.h"
#include "softgpu/jit/request.h"

typedef u32 jit_fn(struct warp *w, u8 *in, u8 *out, u64 *scalars, u32 entry, u32 mask, u32 stop);

/* A compiled function; freed with what it holds. */
struct jit_code {
	jit_fn *fn;
	void *text; /* mapped */
	size_t text_size;
	u32 n_entries, n_exits, n_values;
	struct jit_entry *entries;
	struct jit_exit *exits;
	u8 *ends;	 /* of each exit: what the end counts for that it is at; 0: it is at none */
	bool from_start; /* entry 0 is the kernel's start, and needs nothing */
	struct jit_value *values;
};

/* ---- flatten.c ----------------------------------------------------------------------------------- */

/* The request for a function; the caller frees it. NULL: no memory. */
struct jit_request *jit_flatten(const struct code *code, bool rows);

/* ---- load.c -------------------------------------------------------------------------------------- */

/* Makes code of a reply of @size bytes; NULL with a reason if it is not what it should be. */
struct jit_code *jit_load(const struct jit_reply *reply, size_t size, const struct code *code,
			  const char **ret_why);
void jit_free(struct jit_code *jit);

/* ---- client.c ------------------------------------------------------------------------------------ */

/*
 * Asks the compiler's process for one function, while nothing else is asked. The request is needed
 * until the answer is there. false, with a reason: nobody can be asked.
 */
bool jit_ask(const struct jit_request *request, const char **ret_why);

/*
 * Goes on with it, and @wait until it is over. Return: whether it is. The caller frees the reply;
 * NULL, with a reason: there is none.
 */
bool jit_answer(bool wait, struct jit_reply **ret, const char **ret_why);

/* Lets go of the process, whatever it is at; the next is another. */
void jit_forget_compiler(void);

/* Is there a compiler? */
bool jit_found(void);

/* Tells one build of it from another. */
u64 jit_compiler(void);

/* ---- enter.c ------------------------------------------------------------------------------------- */

extern const struct exec_services jit_services;

/* Also where it is not worth it: for tests. */
extern bool jit_always;

int jit_enter(struct warp *w, const struct insn *in, const struct jit_code *jit);
bool jit_pass(struct warp *w, const struct jit_code *jit);

#endif
