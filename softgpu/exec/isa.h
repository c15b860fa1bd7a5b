/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files with handlers exist twice; this is the choice between them.
 */
#ifndef SOFTGPU_EXEC_ISA_H
#define SOFTGPU_EXEC_ISA_H

#include "softgpu/exec/machine.h"

struct exec_isa {
	void (*warp_loop)(struct warp *w);
	exec_fn *(*find_int)(const struct ptx_insn *in);
	exec_fn *(*find_bits)(const struct ptx_insn *in);
	exec_fn *(*find_float)(const struct ptx_insn *in);
	exec_fn *(*find_half)(const struct ptx_insn *in);
	exec_fn *(*find_cvt)(const struct ptx_insn *in);
	exec_fn *(*find_mem)(const struct ptx_insn *in, bool absolute);
	exec_fn *(*find_narrow)(u32 from_bytes, u32 to_bytes);
	exec_fn *(*find_widen)(u32 from_bytes, u32 to_bytes, bool is_signed);
	exec_fn *(*find_float_clamp)(const struct ptx_insn *in); /* for .sat; NULL without */
	exec_fn *(*find_half_clamp)(const struct ptx_insn *in);	 /* .sat and .relu */
	exec_fn *(*find_flush)(enum ptx_type type);
	exec_fn *with_control; /* runs insn.inner with the MXCSR bits of insn.imm */
};

/* What suits this CPU. */
extern const struct exec_isa *exec_isa;

/* For tests: images made from now on run on what any x86-64 has. */
void exec_use_base_isa(void);

#endif
