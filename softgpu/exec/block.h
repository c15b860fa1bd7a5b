/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch while it runs: what its blocks share, and what handlers ask of it.
 */
#ifndef SOFTGPU_EXEC_BLOCK_H
#define SOFTGPU_EXEC_BLOCK_H

#include <pthread.h>

#include "softgpu/exec/machine.h"
#include "softgpu/exec/worker.h"

/* Text that kernels print, kept until exec_step() returns. */
struct print_buffer {
	pthread_mutex_t lock;
	char *text;
	size_t len, size;
};

#define N_RESTS (2 * WORKERS_MAX)

/* Blocks of the grid, from one on and before another. */
struct blocks {
	u64 next, end;
};

struct exec_launch {
	const struct exec_kernel *kernel;
	const struct code *code;
	u32 grid[3];
	u32 block[3];
	u32 n_threads; /* of a block */
	u32 n_warps;
	u32 shared_bytes;
	u32 dynamic_shared_bytes;
	u8 *params;
	u32 param_bytes;
	const u8 *space;
	struct exec_heap *heap;
	bool cooperative;
	bool rows; /* the lanes of each warp differ in %tid.x alone, which counts them */
	struct exec_device device;
	u32 local_bytes;  /* of local memory per thread */
	u32 local_stride; /* from one thread's to the next one's */
	u64 id;
	u64 workspace; /* device address, of the grid sync */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
	struct print_buffer printed;

	u64 n_blocks;

	/* What the workers share; lock guards it. In other lines of the cache than what they read all the time. */
	u8 apart[64];
	pthread_mutex_t lock;
	struct blocks rests[N_RESTS]; /* that nobody has, and which were not started */
	u32 n_rests;
	u64 n_unstarted; /* in them */
	bool one_by_one; /* a block has waited, maybe for one that another worker was given */
	u64 n_left;	 /* blocks that have not ended, as far as workers have told */
	u32 n_resident;	 /* started and not ended */
	u32 max_resident;
	u32 n_running;	     /* resident blocks that a worker has right now */
	_Atomic u32 n_ready; /* the others, */
	struct block *ready; /* oldest first */
	struct block **ready_end;
	struct block *unused; /* blocks that have ended, for the next to start */
	bool prefer_new;      /* the last block polled: what it waits for may not have started */
	u64 instructions;     /* of the slice */
	u64 budget;
	u64 deadline_ns;
	bool tried;  /* a worker has looked for a block in this slice */
	u64 wake_ns; /* when the first of the blocks that wait may go on */
	int fault;
	char message[160];
};

/* ---- block.c: a block from start to end -------------------------------------------------------- */

/* NULL if there is no memory for it. */
struct block *block_new(struct exec_launch *launch);
void block_free(struct block *block);

/* Puts a block to the start of the kernel, as the one of @index in the grid. */
void block_start(struct block *block, u64 index);

/* What a run of a block came to. */
struct block_progress {
	u64 executed; /* instructions of threads */
	u64 spun;     /* what polling was charged on top */
	bool ended;
	bool waits; /* all its threads wait; block->wake_ns says until when */
	int fault;
	char message[160];
};

/*
 * Runs a block until @budget instructions are used up, the time is @deadline_ns
 * (0: no limit), or it ends, waits or faults.
 */
void block_run(struct block *block, u64 budget, u64 deadline_ns, struct block_progress *ret);

/* ---- faults: they leave the handler, and block_run() returns ---------------------------------------- */

_Noreturn void exec_fault(struct warp *w, u32 lane, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
_Noreturn void exec_fault_address(struct warp *w, u64 addr, u32 lane, u64 size, bool write);
_Noreturn void exec_fault_misaligned(struct warp *w, const u64 *addresses, u32 mask, u64 size);

/* ---- flow.c: lanes that go different ways ------------------------------------------------------- */

/* Runs the warp until its slice is over or none of its lanes is ready. */
void warp_run(struct warp *w, u64 slice);

/* Sends the lanes in @mask to another place in the same frame; the others go on. */
int warp_split(struct warp *w, u32 mask, const struct insn *target);

/* Looks for fragments at the same place, and for one that is further behind. */
int warp_meet(struct warp *w);

/* Leaves only @mask in the running fragment; the others go on at @rest. */
void warp_keep(struct warp *w, u32 mask, const struct insn *rest);

/* The running fragment's lanes in @mask wait in @in. */
int warp_wait(struct warp *w, u32 mask, enum fragment_state state, const struct insn *in);

/* The lanes in @mask are no longer in the running fragment, somebody else has taken them. */
int warp_leave(struct warp *w, u32 mask);

/* Adds lanes that are ready, to the fragment at that place if there is one. */
void fragment_add(struct warp *w, u32 mask, const struct insn *pc, struct frame *frame);

exec_fn flow_join, flow_enter, flow_bra, flow_brx, flow_nanosleep, flow_trap;

/* Ends the turn of the running fragment, which goes on at w->pc. */
int warp_pause(struct warp *w);

/* ---- call.c ------------------------------------------------------------------------------------- */

exec_fn flow_call, flow_ret, flow_exit, flow_alloca, flow_stacksave, flow_stackrestore;

/* ---- compiled code ------------------------------------------------------------------------------- */

/* What compiled code finds through its warp. */
struct exec_services {
	void (*run)(struct warp *w, u32 index, u32 mask); /* carries out one instruction */
};

/* Who compiles: softgpu/jit. */
struct exec_compiler {
	const struct exec_services *services;
	/* Before every launch of a kernel. */
	void (*launched)(struct code *code, bool rows);
	/* A worker has carried out so many instructions of threads for one; it holds no lock. */
	void (*worked)(struct code *code, bool rows, u64 n);
	/* There is compiled code for launches like this one: code->jit[] was set, at any moment. */
	int (*enter)(struct warp *w, const struct insn *in, const struct jit_code *jit);
	/*
	 * Takes a warp that was just started as far as compiled code goes. Whether all its lanes
	 * came to the end of the kernel, with which nothing was done yet.
	 */
	bool (*pass)(struct warp *w, const struct jit_code *jit);
	/* The function goes, and what was compiled of it. */
	void (*forget)(struct code *code);
};

/* NULL: nobody. To be set before the first image is made. */
extern const struct exec_compiler *exec_compiler;

/* What has been compiled of a function by now, or NULL. */
static inline const struct jit_code *compiled_code(const struct code *code, bool rows)
{
	return __atomic_load_n(&code->jit[rows], __ATOMIC_ACQUIRE);
}

/* ---- barrier.c: the block's barriers; warp.c: waiting inside a warp ------------------------------ */

exec_fn flow_barrier, warp_sync;

/* After threads have ended: lets go who waits for nobody else any more. */
void block_check_barriers(struct block *block);
void warp_check_sync(struct warp *w);

/* Handlers for what lanes of a warp do together, and for special registers. */
exec_fn *find_warp_op(const struct ptx_insn *in);
exec_fn *find_atom(const struct ptx_insn *in);
exec_fn read_sreg, read_activemask, read_dynamic_shared, read_frame_address, is_in_space;

/* ---- device-heap.c -------------------------------------------------------------------------------- */

/* A multiple of @align in device memory, or 0 if there is no such piece; @heap may be NULL. */
u64 heap_take(struct exec_heap *heap, u64 size, u64 align);

/* false: no piece begins there. */
bool heap_give(struct exec_heap *heap, u64 addr);

/* ---- matrix.c ------------------------------------------------------------------------------------- */

exec_fn matrix_multiply, matrix_load, matrix_store, matrix_rows_load, matrix_rows_store,
	matrix_transpose;

/* Is it an instruction on matrices? */
static inline bool is_matrix(const struct insn *in)
{
	return in->fn == warp_sync && in->flags & INSN_TOGETHER;
}

/* Does it leave its matrix d in registers, and not in memory? */
static inline bool matrix_writes(const struct insn *in)
{
	return in->inner != matrix_store && in->inner != matrix_rows_store;
}

/* ---- texture.c, surface.c ------------------------------------------------------------------------- */

exec_fn texture_sample, texture_gather, texture_query, surface_load, surface_store,
	surface_store_formatted;

/* Is it one of those? */
static inline bool is_sampling(const struct insn *in)
{
	return in->fn == texture_sample || in->fn == texture_gather || in->fn == texture_query ||
	       in->fn == surface_load || in->fn == surface_store ||
	       in->fn == surface_store_formatted;
}

/* ---- exec-video.c -------------------------------------------------------------------------------- */

exec_fn *find_video(const struct ptx_insn *in);
void video_describe(const struct ptx_insn *in, struct insn *ret);

/* ---- mbarrier.c ----------------------------------------------------------------------------------- */

exec_fn *find_mbarrier(enum ptx_mode mode);

/* ---- print.c ------------------------------------------------------------------------------------ */

/* vprintf: the number of conversions, as the device's function returns */
u32 print_format(struct warp *w, u32 lane, u64 format, u64 args);

/* A string in a thread's memory, cut to @size. */
void print_string(struct warp *w, u32 lane, u64 addr, char *ret, u32 size);

void print_add(struct exec_launch *launch, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Gives the text to the launch's owner. */
void print_flush(struct exec_launch *launch);

/* The clock of nanosleep and of deadlines: CLOCK_MONOTONIC. */
u64 exec_now_ns(void);

#endif
