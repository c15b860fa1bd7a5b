/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the machine: decoded instructions, warps, and how a handler looks.
 *
 * Code is an array of struct insn, each with the function that carries it out
 * for the 32 lanes of a warp. A register is an array of 32 lanes, so that a
 * handler is a loop the compiler turns into vector instructions; a predicate
 * is a word with one bit per lane. The files with handlers are compiled
 * twice, for any x86-64 and for those with AVX2; exec_handlers() chooses.
 *
 *   frame->regs    | P: 4 bytes each | H: 64 | W: 128 | D: 256 | Q: 512 |
 *   constants      the same for immediates, one area per function
 *
 * Lanes of a warp that went different ways are fragments: a mask, a place in
 * the code, a frame. One fragment runs at a time, the one furthest behind
 * (flow.c), and two that meet become one. Nothing else is kept about
 * divergence, so lanes are free to wait for each other.
 */
#ifndef SOFTGPU_EXEC_MACHINE_H
#define SOFTGPU_EXEC_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "softgpu/exec/exec.h"
#include "softgpu/ptx/ptx.h"

#define LANES	   32
#define N_BARRIERS 16
#define ALL_LANES  UINT32_MAX
#define POLL_COST  1024 /* instructions that a look at what others may change counts for */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef unsigned __int128 u128;
typedef __int128 s128;

/*
 * Generic addresses of what is private to a block or a thread. They lie where
 * no host address can be, above the 47 bits of user space.
 */
#define SHARED_WINDOW (UINT64_C(1) << 48)
#define LOCAL_WINDOW  (SHARED_WINDOW + (UINT64_C(1) << 32))
#define PARAM_WINDOW  (SHARED_WINDOW + (UINT64_C(2) << 32))
#define WINDOW_BYTES  (UINT64_C(1) << 32)

struct warp;
struct insn;
struct exec_services;

/*
 * Carries out one instruction for the lanes in @mask, at least one. A result
 * other than 0 ends the run of this fragment: it waits, it has ended, or its
 * slice is over.
 */
typedef int exec_fn(struct warp *w, const struct insn *in, u32 mask);

enum run { RUN_ON = 0, RUN_SWITCH = 1 };

/*
 * An operand is a place in one of two areas: bit 0 tells which (0 the
 * frame's registers, 1 constants), the rest is the offset.
 */
#define OPERAND_CONST 1u
#define N_OPERANDS    6

struct insn {
	exec_fn *fn;
	u32 op[N_OPERANDS];
	u32 guard; /* operand: a predicate */
	u32 guard_xor;
	union {
		u64 imm; /* offset of a memory operand, or the bits for MXCSR */
		const struct matrix *matrix;
		const struct sampling *sampling;
	};
	union {
		exec_fn *inner;		   /* of a handler that wraps another */
		const struct insn *target; /* of a branch */
		const struct call *call;
		const struct branch_table *table;
	};
	u8 weight; /* 1; 0 for what the decoder added */
	u8 space;  /* enum ptx_space */
	u8 bytes;  /* of one element in memory */
	u8 vec;	   /* elements */
	u8 mode;   /* enum ptx_mode, or what the handler wants */
	u8 bop;	   /* enum ptx_bop */
	u8 sem;	   /* enum ptx_sem */
	u8 flags;
};

#define INSN_WIDE_ADDRESS  1  /* the address register has 64 bits */
#define INSN_FRAME_ADDRESS 2  /* no address register: imm is a place in the frame */
#define INSN_SYNC	   4  /* shfl.sync and its kin: op[5] names the lanes */
#define INSN_NEG_PRED	   8  /* the predicate operand is negated */
#define INSN_SATFINITE	   16 /* cvt: no infinity */
#define INSN_TOGETHER	   32 /* its second half is carried out once, for all lanes (matrix.c) */

/* A matrix that lies in registers of all lanes. Where its elements are, matrix.c says. */
struct fragment_shape {
	u8 type;   /* enum ptx_type */
	u8 layout; /* enum ptx_layout */
	u8 rows;
	u8 run;	 /* elements side by side in a lane */
	u8 bits; /* of an element */
	u16 cols;
	u8 n_regs;
	u8 reg_bytes;
	u32 regs[8]; /* operands */
};

/* What an instruction on matrices works on; op[0] is its address, op[1] the stride. */
struct matrix {
	struct fragment_shape d, a, b, c;
	u64 offset;
	bool by_cols; /* in memory a column of d is in one piece; of eight by eight: transposed */
	bool satfinite;
	u8 bop;
	u8 round; /* enum ptx_round: of doubles */
};

/* What an instruction on a texture or surface has of operands: more than fit beside it. */
struct sampling {
	u8 op;	     /* enum ptx_op */
	u8 geometry; /* enum ptx_geometry */
	u8 what;     /* component, enum ptx_outside or enum ptx_query */
	u8 mode;     /* where the level comes from */
	u8 type;     /* of the values */
	bool whole;  /* coordinates are integers */
	u8 bytes;    /* of a value in memory */
	u8 lane_bytes;
	u8 n_values, n_coords, n_derivatives;
	u32 object;
	u32 values[4]; /* results, or of sust what is written */
	u32 coords[4];
	u32 level;
	u32 dx[3], dy[3];
};

struct branch_table {
	u32 n;
	const struct insn *targets[];
};

/*
 * What an instruction means, beside how it is carried out: for who compiles.
 * Handlers do not look at it.
 */
struct insn_shape {
	u16 op; /* enum ptx_op; PTX_OP_NONE: only the handler knows */
	u8 type, stype;
	u8 cmp, round;
	u8 reads, writes; /* sets of op[] that are registers or constants */
	u32 flags;	  /* PTX_F_*, and SHAPE_* */
};

#define SHAPE_KNOWN (1u << 31) /* a parameter at a place that the text names */
#define SHAPE_FLUSH (1u << 30) /* of cvt from f32 to f32: denormals to zeros */
#define SHAPE_CLAMP (1u << 29) /* of cvt from a float to its own type: into [0, 1] */

struct jit_code;

/* What who compiles knows of a function; softgpu/jit guards it. */
struct jit_state {
	_Atomic u64 work; /* instructions of threads, of launches of this kernel */
	_Atomic u64 next; /* at how many there is something to do again */
	u8 stage;
	u32 seen; /* the last walk that has come by */
};

/* A function's code, decoded. */
struct code {
	const char *name;
	struct insn *insns;
	const struct insn_shape *shapes; /* of each; NULL where nobody compiles */
	u32 n_insns;
	u32 n_enters;
	u32 class_start[PTX_N_CLASSES], class_count[PTX_N_CLASSES]; /* places of registers */
	u32 scalars;		 /* after the registers: one word for each, of compiled code */
	struct jit_code *jit[2]; /* once it is compiled; the second for launches in rows */
	struct jit_state jit_state[2];
	u8 *constants;
	u32 n_constants; /* bytes */
	u32 regs_bytes;
	u32 n_words;	 /* 32-bit registers in it, the decoder's own not counted */
	u32 local_bytes; /* the frame's part of local memory */
	u32 local_align;
	u32 n_params; /* formal parameters and results: places in registers or in the frame */
	const struct call_slot *params;
	u32 n_rets;
	const struct call_slot *rets;
	struct code **callees; /* that it names; to measure the stack */
	u32 n_callees;
	u32 local_need; /* with the deepest chain of calls, once it is measured */
	bool deep;	/* the chain's length is not known */
	bool visiting;
	bool measured;
};

/* A value that is handed over in a call: in a register, or in the local frame. */
struct call_slot {
	bool in_reg;
	u32 operand; /* in_reg */
	u32 lane_bytes;
	u32 offset; /* otherwise */
	u32 size;
};

enum builtin {
	BUILTIN_NONE,
	BUILTIN_VPRINTF,
	BUILTIN_ASSERTFAIL,
	BUILTIN_NESTED, /* what kernels that launch kernels want of the driver */
	BUILTIN_MALLOC, /* this and those behind it are of the heap */
	BUILTIN_ALIGNED_MALLOC,
	BUILTIN_FREE,
};

struct call {
	const struct code *code; /* NULL where the callee comes from a register */
	u8 builtin;		 /* enum builtin */
	const char *name;	 /* of a builtin function */
	u32 callee;		 /* operand: address of a function */
	u32 n_args;
	const struct call_slot *args;
	u32 n_rets;
	const struct call_slot *rets;
};

/* One activation of a function by the lanes that called together. */
struct frame {
	struct frame *parent;
	const struct code *code;
	const struct call *call; /* that made it; NULL for the kernel's */
	const struct insn *ret;	 /* where the caller goes on */
	u32 live;		 /* lanes that are still in it */
	u32 depth;
	u32 local_base;
	u32 size; /* of the allocation, for the warp's books */
	u32 kept; /* compiled code has left values in the scalars: for which entry, from 1 */
	struct frame *next, **link; /* the warp's list of them, but for the kernel's */
	u32 top[LANES];		    /* end of what each lane has in local memory; alloca moves it */
	u8 regs[] __attribute__((aligned(64)));
};

enum fragment_state {
	FRAGMENT_READY,
	FRAGMENT_BARRIER,   /* waits at a barrier of the block */
	FRAGMENT_WARP_SYNC, /* waits for other lanes of its warp */
	FRAGMENT_SLEEP,
};

struct fragment {
	const struct insn *pc; /* where it goes on; after the instruction it waits in */
	struct frame *frame;
	u32 mask;
	u8 state;
	u8 barrier;		 /* FRAGMENT_BARRIER: which */
	u32 members;		 /* FRAGMENT_WARP_SYNC: lanes it waits for */
	const struct insn *wait; /* the instruction it waits in */
	u64 wake_ns;		 /* FRAGMENT_SLEEP: of CLOCK_MONOTONIC */
};

/* What a warp has learnt about an entry of compiled code. */
struct warp_entry {
	u8 patience, pass_by;
};

#define WARP_ENTRIES 64

struct warp {
	/* Hot: what every handler looks at. base[0] is the frame's, base[1] constants. */
	u8 *base[2];
	const struct insn *pc;
	u32 active;  /* lanes of the running fragment */
	u32 on_mask; /* the mask that on[] shows */
	u64 executed;
	u64 slice_end; /* of executed + spun */
	u64 spun;      /* what polling was charged on top, so that waiting costs a turn */
	struct frame *frame;
	struct block *block;
	u8 *local; /* lane 0's local memory */
	u32 local_stride;
	u32 local_size;
	const u8 *space; /* what of global memory may be touched, as space_blocks */
	const struct exec_services *services; /* for compiled code */

	s32 on[LANES] __attribute__((aligned(64))); /* -1 for the lanes in on_mask, else 0 */
	u32 tid[3][LANES] __attribute__((aligned(64)));

	/* What lanes hand each other in shfl, vote, match and redux. */
	u64 exchange_a[LANES];
	u32 exchange_b[LANES];
	u32 exchange_c[LANES];

	u32 index; /* in the block */
	u32 lanes; /* those that exist */
	u32 alive; /* those that have not ended */
	u32 n_fragments;
	u32 current;
	u32 turn;	 /* lanes that may run in this slice; all, if it is not a forced turn */
	u32 last_turn;	 /* first lane of the last forced turn */
	u32 last_led;	 /* lane that the last group of a brx.idx was chosen by */
	u32 members;	 /* for the second half of a warp-wide operation: who takes part */
	bool sleeping;	 /* a fragment may be FRAGMENT_SLEEP */
	bool is_new;	 /* nothing has changed since it was made or started */
	u32 frame_bytes; /* held by frames other than the kernel's */
	u32 barrier_arrived[N_BARRIERS];
	struct warp_entry entries[WARP_ENTRIES];
	struct fragment fragments[LANES];
	struct frame *kernel_frame;
	struct frame *frames; /* all others */
};

/* A named barrier of a block, in one of its phases. */
struct barrier {
	u32 expected; /* threads, 0 where nobody named a number: all that live */
	u32 n_true;   /* bar.red: lanes that came with a true predicate, */
	u32 n_false;  /* and with a false one */
};

struct block {
	struct exec_launch *launch;
	u64 index;
	u32 ctaid[3];
	u32 n_warps;
	u32 n_alive; /* warps with living lanes */
	u32 turn;    /* the warp that runs next */
	bool fresh;  /* none of the warps has been started */
	u8 *shared;
	u32 shared_size;
	u8 *local;
	size_t local_bytes;
	struct barrier barriers[N_BARRIERS];
	u32 barriers_used; /* a set of those that are in use */
	u64 wake_ns;	   /* after a run without progress: when to look again */
	struct block *next;
	struct warp **warps;
};

/* ---- operands -------------------------------------------------------------------------------- */

static inline void *operand(const struct warp *w, u32 op)
{
	return w->base[op & OPERAND_CONST] + (op & ~OPERAND_CONST);
}

static inline u32 predicate(const struct warp *w, u32 op)
{
	u32 bits;

	memcpy(&bits, operand(w, op), sizeof(bits));
	return bits;
}

static inline void predicate_set(struct warp *w, u32 op, u32 mask, u32 bits)
{
	u32 *p = operand(w, op);

	*p = (*p & ~mask) | (bits & mask);
}

/* The lanes of a mask as an array: 0 or -1. */
static inline const s32 *lanes_on(struct warp *w, u32 mask)
{
	if (w->on_mask != mask) {
		for (int l = 0; l < LANES; l++)
			w->on[l] = -(s32)(mask >> l & 1);
		w->on_mask = mask;
	}
	return w->on;
}

/* Bits of 32 bytes that are 0 or -1. */
static inline u32 lanes_pack(const s8 *t)
{
	typedef char v16 __attribute__((vector_size(16)));
	v16 lo, hi;

	memcpy(&lo, t, 16);
	memcpy(&hi, t + 16, 16);
	return (u32)__builtin_ia32_pmovmskb128(lo) | (u32)__builtin_ia32_pmovmskb128(hi) << 16;
}

/* A loop over lanes without dependencies between them, whatever arrays it touches. */
#ifdef __clang__
#define LANE_LOOP _Pragma("clang loop vectorize(assume_safety)") for (int l = 0; l < LANES; l++)
#else
#define LANE_LOOP _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)
#endif

/* d[l] = expr for the lanes in mask; expr is evaluated for all of them. */
#define SET_LANES(T, d, expr)                                                                      \
	do {                                                                                       \
		if (mask == ALL_LANES) {                                                           \
			LANE_LOOP(d)[l] = (expr);                                                  \
		} else {                                                                           \
			const s32 *on_ = lanes_on(w, mask);                                        \
			LANE_LOOP                                                                  \
			{                                                                          \
				T r_ = (expr);                                                     \
				(d)[l] = on_[l] ? r_ : (d)[l];                                     \
			}                                                                          \
		}                                                                                  \
	} while (0)

/* The lanes of a mask, one by one. */
#define FOR_LANES(l, mask)                                                                         \
	for (u32 m_ = (mask), l; m_ && (l = (u32)__builtin_ctz(m_), true); m_ &= m_ - 1)

/* ---- handlers, compiled twice ----------------------------------------------------------------- */

#ifndef EXEC_ISA
#define EXEC_ISA base
#endif
#define EXEC_PASTE_(a, b) a##_##b
#define EXEC_PASTE(a, b)  EXEC_PASTE_(a, b)
#define PER_ISA(name)	  EXEC_PASTE(name, EXEC_ISA)

#endif
