/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libcuda.so.1 asks the compiler's process, and what that answers.
 *
 * Request:	struct jit_request | instructions | operands | constants
 * Reply:	struct jit_reply | entries | exits | values | object file
 *
 * Both are in the host's byte order: they never leave it. The compiler trusts the request as little
 * as it trusts a kernel, and the reply is checked as one that a cache file may hold.
 */
#ifndef SOFTGPU_JIT_REQUEST_H
#define SOFTGPU_JIT_REQUEST_H

#include <stdint.h>

#define JIT_MAGIC     0x54494a53u /* "SJIT" */
#define JIT_VERSION   3
#define JIT_N_CLASSES 5 /* as enum ptx_class */
#define JIT_N_OPS     6
#define JIT_CONST     1u /* bit 0 of an operand: it lies among the constants */
#define JIT_SYMBOL    "kernel"

/* What may be done with an instruction. */
enum jit_kind {
	JIT_PLAIN, /* by its shape; else the interpreter's handler is called */
	JIT_LOAD,
	JIT_STORE,
	JIT_ATOMIC, /* atom and red: args are address, old value, one or two sources */
	JIT_PARAM,  /* load from a known place of the kernel's parameters */
	JIT_SREG,   /* imm: enum ptx_sreg */
	JIT_WARP,   /* an exchange between lanes; where it has no code of its own, as JIT_STOP */
	JIT_ACTIVE, /* which lanes are here */
	JIT_CALL,   /* only the handler knows what it does, but it returns to where it was called */
	JIT_BRANCH, /* target: an instruction */
	JIT_STOP,   /* the interpreter goes on from here */
	JIT_LEAVE,  /* the same, and nothing comes behind it */
	JIT_JOIN,   /* fragments meet here */
	JIT_ENTER,  /* imm: number of the entry */
};

/* jit_insn.mode of JIT_STOP: behind it come others than the next instruction. */
#define JIT_STOP_ANYWHERE 1

struct jit_insn {
	uint8_t kind;
	uint8_t weight;
	uint8_t n_reads, n_writes; /* in operands[], reads first */
	uint32_t operands;
	uint16_t op; /* enum ptx_op */
	uint8_t type, stype;
	uint8_t cmp, round;
	uint8_t bop, sem;
	uint32_t flags; /* PTX_F_* */
	uint32_t args[JIT_N_OPS];
	uint32_t guard, guard_xor;
	uint64_t imm;
	uint32_t target;
	uint8_t space, bytes, vec, mode;
	uint8_t insn_flags; /* INSN_* */
	uint8_t control;    /* needs another MXCSR */
	uint8_t unused[6];
};

/* Where compiled code finds what it needs, in bytes; of the structures of softgpu/exec. */
struct jit_layout {
	uint32_t warp_executed, warp_spun, warp_slice_end, warp_block, warp_services, warp_tid;
	uint32_t block_shared, block_shared_size, block_ctaid, block_launch;
	uint32_t launch_params, launch_grid, launch_block;
	uint32_t warp_space, services_run;
	uint32_t warp_frame, frame_local_base;
	uint32_t warp_local, warp_local_stride, warp_local_size;
};

struct jit_request {
	uint32_t magic, version;
	uint32_t size; /* all of it */
	uint32_t n_insns, n_operands, constant_bytes;
	uint32_t n_enters;
	uint32_t rows; /* blocks whose x dimension is a multiple of the warp: tid.x counts lanes */
	uint32_t class_start[JIT_N_CLASSES], class_count[JIT_N_CLASSES];
	uint32_t cpu[8]; /* whatever tells CPUs apart */
	struct jit_layout layout;
};

/* A register that is alive at an entry or exit. */
struct jit_value {
	uint32_t place;	 /* offset of its lanes in the frame */
	uint32_t scalar; /* number of its word among the scalars */
	uint8_t cls;
	uint8_t is_affine; /* one word stands for all lanes; else they are in the frame */
	uint16_t unused;
	int64_t stride; /* from lane to lane */
};

struct jit_entry {
	uint32_t first, n; /* of the values */
};

#define JIT_NOT_KEPT UINT32_MAX

struct jit_exit {
	uint32_t first, n;
	uint32_t pc; /* the instruction */
	uint32_t
		entry; /* where compiled code is entered next, with these very values; or JIT_NOT_KEPT */
};

struct jit_reply {
	uint32_t magic, version;
	uint32_t size; /* all of it */
	uint32_t n_entries, n_exits, n_values;
	uint32_t object_offset, object_size;
	uint64_t request_hash;
	uint64_t checksum; /* of all behind this structure */
	char refusal[64];  /* why there is no object; empty if there is one */
};

/* FNV-1a, 64 bits: against accidents, not against attackers, who cannot write where it is read. */
static inline uint64_t jit_hash(uint64_t hash, const void *data, uint64_t size)
{
	const uint8_t *at = data;

	for (uint64_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#define JIT_HASH_START UINT64_C(0xcbf29ce484222325)

#endif
