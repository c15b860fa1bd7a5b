/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that parse, run with whatever they do: the input chooses
 * instructions from a list, registers, numbers and where to jump. Nothing of
 * it may crash, run past its budget or touch other memory than the device's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/exec/test-kit.h"
#include "softgpu/exec/texture.h"
#include "softgpu/ptx/ptx.h"

/*
 * Letters behind $ stand for: w d h p registers of 32, 64, 16 bits and
 * predicates, i a number, l a label, m an address in device memory that was
 * made so before, c one of the comparisons.
 */
/* clang-format off */
static const char *const templates[] = {
	"add.s32 $w, $w, $w", "sub.s64 $d, $d, $d", "mul.lo.s32 $w, $w, $i", "mul.hi.u64 $d, $d, $d",
	"mad.wide.s32 $d, $w, $w, $d", "div.s32 $w, $w, $w", "rem.u64 $d, $d, $d", "add.s16 $h, $h, $h",
	"add.cc.u32 $w, $w, $w", "addc.cc.u32 $w, $w, $w", "subc.u64 $d, $d, $d", "bfe.s64 $d, $d, $w, $w",
	"bfi.b32 $w, $w, $w, $w, $w", "prmt.b32 $w, $w, $w, $w", "lop3.b32 $w, $w, $w, $w, 0x96",
	"shf.l.wrap.b32 $w, $w, $w, $w", "shl.b64 $d, $d, $w", "shr.s16 $h, $h, $w", "popc.b64 $w, $d",
	"fns.b32 $w, $w, $w, $w", "vadd4.s32.u32.s32.sat $w, $w, $w, $w", "dp4a.s32.u32 $w, $w, $w, $w",
	"setp.$c.s32 $p, $w, $w", "setp.$c.and.u64 $p|$p, $d, $d, !$p", "selp.b32 $w, $w, $w, $p",
	"@$p mov.u32 $w, $i", "@!$p add.u64 $d, $d, $d", "not.pred $p, $p", "setp.lt.f32 $p, $w, $w",
	"add.rz.ftz.f32 $w, $w, $w", "fma.rn.f64 $d, $d, $d, $d", "div.rn.f32 $w, $w, $w",
	"sqrt.rm.f64 $d, $d", "ex2.approx.f32 $w, $w", "lg2.approx.f32 $w, $w", "sin.approx.f32 $w, $w",
	"fma.rn.f16x2 $w, $w, $w, $w", "min.NaN.f16 $h, $h, $h", "cvt.rzi.s32.f64 $w, $d",
	"cvt.rni.u64.f32 $d, $w", "cvt.rn.f16.f32 $h, $w", "cvt.sat.s8.s64 $h, $d", "cvt.rn.f32.u64 $w, $d",
	"mov.b64 {$w, $w}, $d", "mov.b64 $d, {$w, $w}", "mov.u32 $w, %laneid", "mov.u32 $w, %clock",
	"ld.global.u32 $w, [$m]", "st.global.u64 [$m], $d", "ld.global.v4.u32 {$w, $w, $w, $w}, [$m]",
	"ld.u8 $h, [$d]", "ld.global.b64 $d, [$d+$i]", "st.u32 [$d], $w", "st.global.s8 [$m], $h",
	"atom.global.add.u32 $w, [$m], $w", "atom.global.cas.b64 $d, [$m], $d, $d",
	"red.global.max.s32 [$m], $w", "atom.global.add.f32 $w, [$m], $w",
	"and.b32 $w, $w, 252; ld.shared.u32 $w, [$w]", "st.shared.u32 [$w], $w",
	"mov.u64 $d, depot; cvta.local.u64 $d, $d", "st.local.u32 [depot+8], $w", "ld.local.u64 $d, [$d]",
	"mov.u64 $d, shared; cvta.shared.u64 $d, $d", "isspacep.shared $p, $d",
	"shfl.sync.bfly.b32 $w|$p, $w, $w, 31, -1", "shfl.sync.idx.b32 $w, $w, $w, $w, $w",
	"vote.sync.ballot.b32 $w, $p, -1", "vote.sync.any.pred $p, $p, $w", "match.any.sync.b64 $w, $d, -1",
	"match.all.sync.b32 $w|$p, $w, $w", "redux.sync.add.s32 $w, $w, -1", "activemask.b32 $w",
	"bar.warp.sync $w", "bar.sync 0", "bar.sync 1, 64", "bar.arrive 1, 64", "bar.red.popc.u32 $w, 2, $p",
	"bar.sync $w", "membar.gl", "nanosleep.u32 $i", "bra $l", "@$p bra $l", "@!$p bra $l",
	"brx.idx $w, targets", "call ($w), twice, ($w)", "call ($w), deep, ($w)", "call ($w), $d, ($w), proto",
	"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {$w, $w}, {$w}, {$w}, {$w, $w}",
	"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$d, $d}, {$d}, {$d}, {$d, $d}",
	"wmma.load.a.sync.aligned.col.m16n16k16.global.s8 {$w, $w}, [$m], $w",
	"wmma.store.d.sync.aligned.row.m8n8k32.s32 [$d], {$w, $w}",
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {$w, $w}, [$w]",
	"stmatrix.sync.aligned.m8n8.x1.b16 [$d], {$w}", "movmatrix.sync.aligned.m8n8.trans.b16 $w, $w",
	"tex.2d.v4.f32.f32 {$w, $w, $w, $w}, [1, {$w, $w}]", "tld4.a.2d.v4.u32.f32 {$w, $w, $w, $w}, [1, {$w, $w}]",
	"tex.level.3d.v4.s32.f32 {$w, $w, $w, $w}, [$d, {$w, $w, $w, $w}], $w",
	"tex.cube.v4.f32.f32 {$w, $w, $w, $w}, [1, {$w, $w, $w, $w}]", "suld.b.2d.b32.clamp {$w}, [1, {$w, $w}]",
	"sust.b.a1d.b8.zero [1, {$w, $w}], {$h}", "txq.level.depth.b32 $w, [1], $w",
	"mov.u64 $d, twice", "@$p exit", "@$p ret", "@$p trap",
};
/* clang-format on */

#define N_TEMPLATES (sizeof(templates) / sizeof(templates[0]))
#define N_LABELS    8

static const char before[] =
	".version 8.6\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 shared[256];\n"
	".func (.reg .b32 %o) twice(.reg .b32 %i)\n{\nadd.u32 %o, %i, %i; ret;\n}\n"
	".func (.reg .b32 %o) deep(.reg .b32 %i)\n{\n.reg .b32 %a; .reg .pred %p; .local .b8 room[40];\n"
	"setp.eq.u32 %p, %i, 0; mov.u32 %o, 1; @%p ret; sub.u32 %a, %i, 1; call (%o), deep, (%a); ret;\n}\n"
	".visible .entry k(.param .u64 memory)\n{\n"
	".reg .b32 %w<8>; .reg .b64 %d<8>; .reg .b16 %h<4>; .reg .pred %p<4>; .reg .b64 %base;\n"
	".local .align 8 .b8 depot[64]; ld.param.u64 %base, [memory];\n"
	"mov.u32 %w0, %tid.x; mov.u32 %w1, %ctaid.x; mul.wide.u32 %d0, %w0, 16; add.u64 %d1, %base, %d0;\n"
	"proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
	"targets: .branchtargets L0, L1, L2, L3;\n";

/* Any handle below 8 is this one, whose numbers the input chooses. */
static struct exec_texture texture;

static const struct exec_texture *find_texture(uint64_t handle)
{
	return handle < 8 ? &texture : NULL;
}

/* The input, byte by byte; zeros after its end. */
struct input {
	const u8 *at, *end;
};

static u32 next(struct input *in, u32 n)
{
	return in->at < in->end ? *in->at++ % n : 0;
}

static int write_letter(char *text, size_t size, struct input *in, char letter)
{
	static const char *const cmp[] = { "eq", "ne", "lt", "le", "gt", "ge" };

	switch (letter) {
	case 'h':
	case 'p':
		return snprintf(text, size, "%%%c%u", letter, next(in, 4));
	case 'i':
		return snprintf(text, size, "%d", (int)next(in, 256) - 100);
	case 'l':
		return snprintf(text, size, "L%u", next(in, N_LABELS));
	case 'm':
		return snprintf(text, size, "%%base+%u", 16 * next(in, 256));
	case 'c':
		return snprintf(text, size, "%s", cmp[next(in, 6)]);
	default:
		return snprintf(text, size, "%%%c%u", letter, next(in, 8));
	}
}

static size_t write_insn(char *text, size_t size, struct input *in)
{
	const char *t = templates[next(in, N_TEMPLATES)];
	size_t len = 0;

	for (; *t; t++) {
		if (*t == '$')
			len += (size_t)write_letter(text + len, size - len, in, *++t);
		else
			text[len++] = *t;
	}
	text[len++] = ';';
	text[len++] = '\n';
	return len;
}

static size_t write_program(char *text, size_t size, struct input *in)
{
	size_t len = (size_t)snprintf(text, size, "%s", before);

	for (u32 i = 0; i < N_LABELS; i++) {
		u32 n = next(in, 8);

		len += (size_t)snprintf(text + len, size - len, "L%u:\n", i);
		for (u32 k = 0; k <= n; k++)
			len += write_insn(text + len, size - len, in);
	}
	return len + (size_t)snprintf(text + len, size - len, "ret;\n}\n");
}

/* In the device's memory, or partly so. */
static void choose_texture(struct input *in, u64 memory)
{
	texture = (struct exec_texture){
		.n_levels = 1 + next(in, 3),
		.format = (u8)next(in, EXEC_FORMAT_F32 + 1),
		.n_channels = (u8)(1u << next(in, 3)),
		.is_float = next(in, 2),
		.linear = next(in, 2),
		.linear_levels = next(in, 2),
		.normalized = next(in, 2),
		.is_buffer = next(in, 2),
		.most_level = 3,
	};
	for (u32 i = 0; i < 3; i++)
		texture.address[i] = (u8)next(in, 4);
	for (u32 l = 0; l < texture.n_levels; l++)
		texture.levels[l] = (struct exec_texels){
			memory + 16 * next(in, 256),
			16 * next(in, 16),
			16 * next(in, 64),
			1 + next(in, 40),
			1 + next(in, 20),
			1 + next(in, 10),
		};
}

static void run(struct exec_image *image, u64 memory)
{
	struct exec_launch_args args = {
		.kernel = exec_kernel_at(image, 0),
		.grid = { 3, 1, 1 },
		.block = { 48, 1, 1 },
		.params = &memory,
		.stack_bytes = 4096,
	};
	struct exec_budget budget = { .instructions = 20000 };
	struct exec_launch *launch;
	struct exec_progress p;

	if (exec_launch_new(&args, &launch))
		abort();
	for (u32 i = 0; i < 4; i++) {
		exec_step(launch, &budget, &p);
		/* A slice may be late by as much as each worker's block had left of its turn. */
		if (p.instructions > 20000 + 4 * 200000)
			abort();
		if (p.done || p.stalled)
			break;
	}
	exec_launch_free(launch);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static bool ready;
	static char text[65536];
	struct input in = { data, data + size };
	struct ptx_module *module;
	struct exec_image *image;
	char log[256] = "";
	struct ptx_log plog = { .text = log, .cap = sizeof(log) };
	u64 memory;

	if (!ready) {
		kit_init();
		exec_find_texture = exec_find_surface = find_texture;
		exec_set_workers(1);
		ready = true;
	}
	kit_reset();
	if (ptx_parse(text, write_program(text, sizeof(text), &in), &plog, &module)) {
		/* The list above is at fault then, not the machine. */
		fprintf(stderr, "%s\n%s\n", text, log);
		abort();
	}
	if (exec_image_new(&module, 1, &kit_place, log, sizeof(log), &image)) {
		fprintf(stderr, "%s\n%s\n", text, log);
		abort();
	}
	ptx_module_free(module);
	memory = (u64)(uintptr_t)kit_alloc(8192);
	choose_texture(&in, memory);
	run(image, memory);
	exec_image_free(image);
	return 0;
}
