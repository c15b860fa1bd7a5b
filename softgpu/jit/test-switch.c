/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is there from the n-th entry of a kernel on, for every n: what the kernel leaves in memory,
 * its count of instructions, its fault and what it prints are the same wherever it changes over.
 *
 * Until then the entry goes past compiled code as it does where there is none. Back and forth, which
 * does not happen, is tried too: it meets states in which compiled code never began by itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/test-kit.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"
#include "softgpu/jit/say.h"

#define REGS                                                                                       \
	".reg .pred %p, %q; .reg .b32 %r<10>; .reg .b64 %x<10>; .reg .f32 %f<4>; "                 \
	"ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; "                    \
	"mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; mov.u32 %r9, 0; "                    \
	"mad.wide.u32 %x1, %r3, 4, %x0; "
#define KERNEL(body)                                                                               \
	".visible .entry k(.param .u64 out)\n{\n" REGS body "\nst.global.u32 [%x1], %r9; ret;\n}\n"

#define OUT_BYTES 8192
#define ALL_UP_TO 256 /* entries: of kernels with more, as many are tried, at equal distances */
#define N_SEEDS	  16

struct subject {
	const char *name, *text;
	u32 grid, block, shared;
	u64 budget; /* instructions of a slice; 0: no limit */
	u64 limit;  /* of a kernel that does not end */
};

static const struct subject subjects[] = {
	{ "a loop that lanes leave one by one",
	  KERNEL("add.u32 %r4, %r3, 1;\n"
		 "LOOP: setp.eq.u32 %p, %r4, 1; @%p bra OUT;\n"
		 "and.b32 %r5, %r4, 1; setp.eq.u32 %q, %r5, 0; @%q bra EVEN;\n"
		 "mad.lo.u32 %r4, %r4, 3, 1; bra NEXT;\n"
		 "EVEN: shr.u32 %r4, %r4, 1;\n"
		 "NEXT: add.u32 %r9, %r9, 1; bra LOOP;\n"
		 "OUT:"),
	  .grid = 1, .block = 48 },
	{ "a loop of all, a slice of it at a time",
	  KERNEL("mov.u32 %r4, 9000;\n"
		 "LOOP: mad.lo.u32 %r9, %r9, 5, %r3; sub.u32 %r4, %r4, 1;\n"
		 "setp.ne.u32 %p, %r4, 0; @%p bra LOOP;"),
	  .grid = 2, .block = 64, .budget = 1000 },
	{ "barriers, shared memory",
	  ".extern .shared .align 4 .b8 room[];\n" KERNEL(
		  "mov.u32 %r4, room; mad.lo.u32 %r5, %r0, 4, %r4; st.shared.u32 [%r5], %r3;\n"
		  "shr.u32 %r6, %r2, 1;\n"
		  "LOOP: bar.sync 0; setp.ge.u32 %p, %r0, %r6; @%p bra SKIP;\n"
		  "mad.lo.u32 %r7, %r6, 4, %r5; ld.shared.u32 %r8, [%r7];\n"
		  "ld.shared.u32 %r7, [%r5]; add.u32 %r7, %r7, %r8; st.shared.u32 [%r5], %r7;\n"
		  "SKIP: shr.u32 %r6, %r6, 1; setp.ne.u32 %p, %r6, 0; @%p bra LOOP;\n"
		  "bar.sync 0; ld.shared.u32 %r9, [%r4];"),
	  .grid = 2, .block = 128, .shared = 512 },
	{ "exchanges, votes and a last warp that is not full",
	  KERNEL("mov.u32 %r4, 16; mov.u32 %r9, %r3;\n"
		 "LOOP: activemask.b32 %r7; shfl.sync.bfly.b32 %r5|%p, %r9, %r4, 31, %r7;\n"
		 "@%p add.u32 %r9, %r9, %r5;\n"
		 "setp.gt.u32 %q, %r9, 500; vote.sync.ballot.b32 %r6, %q, %r7; xor.b32 %r9, %r9, %r6;\n"
		 "shr.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0; @%p bra LOOP;"),
	  .grid = 1, .block = 80 },
	{ "calls, of which some lanes make more",
	  ".func (.param .u32 r) down(.param .u32 n)\n{\n.reg .u32 %n, %m; .reg .pred %z;\n"
	  "ld.param.u32 %n, [n]; mov.u32 %m, 1; setp.eq.u32 %z, %n, 0; @%z bra END;\n"
	  "{ .param .u32 a; .param .u32 b; sub.u32 %m, %n, 1; st.param.u32 [a], %m;\n"
	  "call (b), down, (a); ld.param.u32 %m, [b]; }\nmad.lo.u32 %m, %m, 3, %n;\n"
	  "END: st.param.u32 [r], %m; ret;\n}\n" KERNEL(
		  "and.b32 %r4, %r0, 3; mov.u32 %r5, 4;\n"
		  "LOOP: { .param .u32 a; .param .u32 b; st.param.u32 [a], %r4;\n"
		  "call (b), down, (a); ld.param.u32 %r6, [b]; }\nadd.u32 %r9, %r9, %r6;\n"
		  "sub.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0; @%p bra LOOP;"),
	  .grid = 1, .block = 40 },
	{ "a branch table, atomics",
	  KERNEL("mov.u32 %r5, 6;\n"
		 "AGAIN: and.b32 %r4, %r3, 3; bra GO;\n"
		 "TABLE: .branchtargets L0, L1, L2, L3;\n"
		 "GO: brx.idx %r4, TABLE;\n"
		 "L0: red.global.add.u32 [%x0+4096], 3; bra END;\n"
		 "L1: atom.global.max.u32 %r6, [%x0+4100], %r3; bra END;\n"
		 "L2: add.u32 %r9, %r9, 32; bra END;\n"
		 "L3: red.global.xor.b32 [%x0+4104], %r3;\n"
		 "END: add.u32 %r3, %r3, 1; sub.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0; @%p bra AGAIN;"),
	  .grid = 2, .block = 64 },
	{ "a store of one lane that faults in the fifth round",
	  KERNEL("mov.u32 %r4, 0; mov.u64 %x2, %x1;\n"
		 "LOOP: add.u32 %r4, %r4, 1; mad.lo.u32 %r9, %r9, 7, %r4;\n"
		 "mad.lo.u32 %r5, %r4, 100, %r0; setp.eq.u32 %p, %r5, 509; @%p mov.u64 %x2, 4096;\n"
		 "st.global.u32 [%x2], %r9; setp.lt.u32 %q, %r4, 20; @%q bra LOOP;"),
	  .grid = 1, .block = 64 },
	{ "a trap of some",
	  KERNEL("mov.u32 %r4, 0;\n"
		 "LOOP: add.u32 %r4, %r4, 1; add.u32 %r9, %r9, %r3; st.global.u32 [%x1], %r9;\n"
		 "setp.gt.u32 %p, %r9, 700; @%p trap;\n"
		 "setp.lt.u32 %q, %r4, 20; @%q bra LOOP;"),
	  .grid = 1, .block = 64 },
	{ "text that lanes print",
	  ".global .align 1 .b8 format[] = { 37, 117, 32, 37, 117, 10, 0 };\n" /* "%u %u\n" */
	  ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n" KERNEL(
		  ".local .align 8 .b8 args[8]; mov.u64 %x2, args; cvta.local.u64 %x3, %x2;\n"
		  "mov.u64 %x4, format; mov.u32 %r4, 0;\n"
		  "LOOP: st.local.u32 [%x2], %r3; st.local.u32 [%x2+4], %r4;\n"
		  "add.u32 %r5, %r4, %r0; and.b32 %r5, %r5, 7; setp.ne.u32 %p, %r5, 0; @%p bra SKIP;\n"
		  "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %x4;\n"
		  "st.param.b64 [a], %x3; call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; }\n"
		  "SKIP: add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 5; @%q bra LOOP;"),
	  .grid = 1, .block = 40 },
	{ "one lane that waits for another",
	  KERNEL("setp.eq.u32 %p, %r0, 5; @%p bra SETTER;\n"
		 "WAIT: ld.volatile.global.u32 %r4, [%x0+4096]; setp.eq.u32 %q, %r4, 0; @%q bra WAIT;\n"
		 "mov.u32 %r9, 7; bra END;\n"
		 "SETTER: st.volatile.global.u32 [%x0+4096], 1; mov.u32 %r9, 8;\n"
		 "END:"),
	  .grid = 1, .block = 32 },
	{ "a kernel that does not end",
	  KERNEL("LOOP: add.u32 %r9, %r9, 1; setp.ge.u32 %p, %r9, 0; @%p bra LOOP;"), .grid = 1,
	  .block = 32, .limit = 1000000 },
};

/* ---- from which entry on --------------------------------------------------------------------------- */

static const struct exec_compiler *compiler;
static u64 n_entries, first_entry;
static u64 seed; /* 0: from the first on; else now and then */

static bool is_there(u64 n)
{
	u64 x = (n + 1) * seed;

	if (!seed)
		return n >= first_entry;
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x >> 63;
}

static int enter(struct warp *w, const struct insn *in, const struct jit_code *jit)
{
	/* Values that compiled code has kept for itself are not in the frame. */
	bool there = is_there(n_entries++) || w->frame->kept;

	return there ? compiler->enter(w, in, jit) : RUN_ON;
}

/* A warp that starts may go all the way. */
static bool pass(struct warp *w, const struct jit_code *jit)
{
	return is_there(n_entries++) && compiler->pass(w, jit);
}

/* ---- runs ------------------------------------------------------------------------------------------ */

struct outcome {
	struct exec_progress p;
	u8 *out;
	char *printed;
};

static struct outcome run(const struct subject *s, const struct exec_image *image, u8 *out)
{
	struct kit_run run = {
		.image = (struct exec_image *)image,
		.grid = s->grid,
		.block = s->block,
		.shared = s->shared,
		.budget = s->budget,
		.limit = s->limit,
		.params = { (u64)(uintptr_t)out },
	};
	struct outcome o = { .out = malloc(OUT_BYTES) };

	n_entries = 0;
	memset(out, 0, OUT_BYTES);
	o.p = kit_run(&run);
	o.printed = strdup(kit_printed());
	if (!o.out || !o.printed)
		abort();
	memcpy(o.out, out, OUT_BYTES);
	return o;
}

static void outcome_free(struct outcome *o)
{
	free(o->out);
	free(o->printed);
}

/* What does not end is left at the end of a slice, which may be a little later. */
static bool same(const struct subject *s, const struct outcome *a, const struct outcome *b)
{
	return a->p.done == b->p.done && a->p.fault == b->p.fault &&
	       (s->limit || a->p.instructions == b->p.instructions) &&
	       !strcmp(a->p.message, b->p.message) && !strcmp(a->printed, b->printed) &&
	       !memcmp(a->out, b->out, OUT_BYTES);
}

static bool same_here(const struct subject *s, const struct exec_image *image, u8 *out,
		      const struct outcome *want)
{
	struct outcome o = run(s, image, out);
	bool ok = same(s, &o, want);

	if (!ok)
		printf("from entry %llu, seed %llu: %llu instructions and not %llu, fault %d and not %d, "
		       "'%s' and not '%s'; %s\n",
		       (unsigned long long)first_entry, (unsigned long long)seed,
		       (unsigned long long)o.p.instructions,
		       (unsigned long long)want->p.instructions, o.p.fault, want->p.fault,
		       o.p.message, want->p.message,
		       memcmp(o.out, want->out, OUT_BYTES) ? "other results" : "the same results");
	outcome_free(&o);
	return ok;
}

static void test_subject(const struct subject *s)
{
	struct exec_image *image = kit_image(s->text);
	u8 *out = kit_alloc(OUT_BYTES);
	u64 n, n_tried = 0, n_same = 0;
	struct outcome want;

	seed = 0;
	first_entry = UINT64_MAX;
	want = run(s, image, out);
	n = n_entries;
	for (u64 i = 0; i <= n; i += n < ALL_UP_TO ? 1 : n / ALL_UP_TO) {
		first_entry = i;
		n_tried++;
		n_same += same_here(s, image, out, &want);
	}
	kit_check(n && n_same == n_tried, "%s: from each of %llu of %llu entries on", s->name,
		  (unsigned long long)n_tried, (unsigned long long)n);
	n_same = 0;
	for (seed = 1; seed <= N_SEEDS; seed++)
		n_same += same_here(s, image, out, &want);
	kit_check(n_same == N_SEEDS, "%s: back and forth", s->name);
	outcome_free(&want);
	exec_image_free(image);
	kit_reset();
}

int main(void)
{
	struct exec_compiler mine;
	struct jit_counts counts;

	setenv("XDG_CACHE_HOME", /* no folder: */ "/dev/null", 1);
	jit_always = true;
	jit_init(JIT_ON, say);
	if (!exec_compiler)
		return 77;
	kit_init();
	exec_set_workers(1);
	compiler = exec_compiler;
	mine = *compiler;
	mine.enter = enter;
	mine.pass = pass;
	exec_compiler = &mine;
	for (u32 i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		test_subject(&subjects[i]);
	jit_counts(&counts);
	kit_check(!counts.n_refused && counts.n_compiled > sizeof(subjects) / sizeof(subjects[0]),
		  "%u functions were compiled", counts.n_compiled);
	return kit_result();
}
