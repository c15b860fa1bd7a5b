/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two copies of the handlers suits this CPU.
 */
#include <cpuid.h>

#include "softgpu/exec/isa.h"

#define COPY(isa)                                                                                  \
	void warp_loop_##isa(struct warp *w);                                                      \
	exec_fn *find_int_##isa(const struct ptx_insn *in);                                        \
	exec_fn *find_bits_##isa(const struct ptx_insn *in);                                       \
	exec_fn *find_float_##isa(const struct ptx_insn *in);                                      \
	exec_fn *find_half_##isa(const struct ptx_insn *in);                                       \
	exec_fn *find_cvt_##isa(const struct ptx_insn *in);                                        \
	exec_fn *find_mem_##isa(const struct ptx_insn *in, bool absolute);                         \
	exec_fn *find_narrow_##isa(u32 from_bytes, u32 to_bytes);                                  \
	exec_fn *find_widen_##isa(u32 from_bytes, u32 to_bytes, bool is_signed);                   \
	exec_fn *find_float_clamp_##isa(const struct ptx_insn *in);                                \
	exec_fn *find_half_clamp_##isa(const struct ptx_insn *in);                                 \
	exec_fn *find_flush_##isa(enum ptx_type type);                                             \
	exec_fn with_control_##isa;                                                                \
	static const struct exec_isa isa = {                                                       \
		.warp_loop = warp_loop_##isa,                                                      \
		.find_int = find_int_##isa,                                                        \
		.find_bits = find_bits_##isa,                                                      \
		.find_float = find_float_##isa,                                                    \
		.find_half = find_half_##isa,                                                      \
		.find_cvt = find_cvt_##isa,                                                        \
		.find_mem = find_mem_##isa,                                                        \
		.find_narrow = find_narrow_##isa,                                                  \
		.find_widen = find_widen_##isa,                                                    \
		.find_float_clamp = find_float_clamp_##isa,                                        \
		.find_half_clamp = find_half_clamp_##isa,                                          \
		.find_flush = find_flush_##isa,                                                    \
		.with_control = with_control_##isa,                                                \
	};
COPY(base)
COPY(avx2)

const struct exec_isa *exec_isa = &base;

/* Not every compiler has a name for these two. */
static bool has_f16c_and_lzcnt(void)
{
	unsigned int a, b, c = 0, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C))
		return false;
	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}

__attribute__((constructor)) static void choose(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("popcnt") && has_f16c_and_lzcnt())
		exec_isa = &avx2;
}

void exec_use_base_isa(void)
{
	exec_isa = &base;
}
