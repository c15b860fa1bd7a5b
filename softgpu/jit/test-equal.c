/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of instruction (softgpu/exec/forms.def), interpreted and compiled: registers, memory and
 * the count of instructions must come out the same to the bit.
 *
 * Each form stands in a scope of its own, many of them in a kernel: what it names is read from memory,
 * it is carried out, and what it names is written. Values are drawn from those that are hard (NaN,
 * infinities, denormals, both zeros, the ends of the integers, widths of shifts and what is past them)
 * and from all. How registers come to their values makes the code another, so each form is tried in
 * several manners.
 *
 * What the compiler has no code of its own for is carried out by the interpreter's handlers. These
 * forms are named, and they are as many as HANDLED says: whoever gives one of them code lowers it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/image.h"
#include "softgpu/exec/test-kit.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"
#include "softgpu/jit/unit.h"

#define HANDLED 41

static const char *const forms[] = {
#define FORM(text) text,
#include "softgpu/exec/forms.def"
#undef FORM
};

static const char *const more_forms[] = {
#define FORM(text) text,
#include "softgpu/jit/more-forms.def"
#undef FORM
};

#define N_MORE	   (sizeof(more_forms) / sizeof(more_forms[0]))
#define N_FORMS	   (sizeof(forms) / sizeof(forms[0]))
#define N_BLOCKS   16
#define N_THREADS  (N_BLOCKS * 64)
#define N_NUMBERS  12 /* of registers of a class */
#define CLASSES	   "rdfehp"
#define N_CLASSES  6
#define IN_SLOTS   (N_CLASSES * N_NUMBERS)
#define SLOT_BYTES (N_THREADS * 8u) /* the values of all threads side by side */
#define OUT_SLOTS  32
#define PLACE	   32u /* bytes of memory that an access may touch, of a thread */
#define MEM_BYTES  (N_THREADS * PLACE + 4096)
#define BATCH	   16
#define TEXT_BYTES (256u << 10)

/* How registers get their values, and addresses. */
enum manner {
	VARYING, /* each lane has its own, places are in disorder */
	UNIFORM, /* all lanes of a block have the same, a guard too */
	GUARDED, /* each its own; some lanes take part only, and some do not exist */
	ROWS,	 /* integers and places go up from lane to lane */
	N_MANNERS,
};

/* Of what all have alike no two warps may write. */
static const u32 threads_of_block[] = { 64, 32, 48, 64 };
static const char *const manner_names[] = { "varying", "uniform", "guarded", "rows" };

struct use {
	char cls;
	u32 number;
};

/* What is known of a form from its text. */
struct shape {
	const char *text;
	struct use uses[OUT_SLOTS];
	u32 n_uses;
	char address;	 /* class of the address register, or 0 */
	u32 size;	 /* bytes that it accesses */
	bool collective; /* all lanes take part, always */
	bool matrix, ends, carries, sleeps, local, writes;
};

static const struct exec_compiler *compiler;
static u64 seed;

static u64 draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The registers that forms name. */
#define FORM_REGISTERS                                                                             \
	".reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<12>; .reg .b64 %d<9>;\n"                  \
	".reg .f32 %f<9>; .reg .f64 %e<9>;"

/* ---- what a form is ------------------------------------------------------------------------------ */

static u32 type_size(const char *text)
{
	static const struct {
		const char *name;
		u32 size;
	} types[] = {
		{ "8", 1 },
		{ "16", 2 },
		{ "32", 4 },
		{ "64", 8 },
	};
	const char *end = strchr(text, ' '), *dot = end;
	u32 vec = strstr(text, ".v4.") ? 4 : strstr(text, ".v2.") ? 2 : 1;

	while (end && dot > text && *dot != '.')
		dot--;
	for (u32 i = 0; end && i < 4; i++) {
		size_t n = strlen(types[i].name);

		if ((size_t)(end - dot) == n + 2 && !memcmp(end - n, types[i].name, n))
			return vec * types[i].size;
	}
	return PLACE;
}

static void add_use(struct shape *s, char cls, u32 number)
{
	for (u32 i = 0; i < s->n_uses; i++) {
		if (s->uses[i].cls == cls && s->uses[i].number == number)
			return;
	}
	s->uses[s->n_uses++] = (struct use){ cls, number };
}

static struct shape shape_of(const char *text)
{
	struct shape s = { .text = text, .size = type_size(text) };

	for (const char *at = strchr(text, '%'); at; at = strchr(at + 1, '%')) {
		if (at > text && at[-1] == '[')
			s.address = at[1];
		else
			add_use(&s, at[1], (u32)atoi(at + 2));
	}
	s.matrix = !strncmp(text, "wmma", 4);
	s.ends = !strcmp(text, "exit") || !strcmp(text, "ret");
	s.collective = s.matrix || strstr(text, ".sync") || !strncmp(text, "bar", 3);
	s.carries = strstr(text, ".cc.") || !strncmp(text, "addc", 4) ||
		    !strncmp(text, "subc", 4) || !strncmp(text, "madc", 4);
	s.sleeps = !strncmp(text, "nanosleep", 9);
	s.local = strstr(text, "[lo]") || strstr(text, ".local.");
	s.writes =
		!strncmp(text, "st.", 3) || !strncmp(text, "atom", 4) || !strncmp(text, "red.", 4);
	return s;
}

/* ---- forms without code of their own ------------------------------------------------------------- */

static const char plain_head[] =
	".const .align 16 .b8 co[16];\n.func device()\n{\nret;\n}\n"
	".visible .entry k(.param .align 16 .b8 p0[32])\n{\n" FORM_REGISTERS "\n"
	".local .align 16 .b8 lo[32]; .param .align 16 .b8 q0[32];\nL0:\n";

static bool is_own(const struct unit *u, const struct jit_insn *in)
{
	return in->kind == JIT_BRANCH || in->kind == JIT_JOIN || in->kind == JIT_ENTER ||
	       form_is_native(u, in);
}

static u32 count_handled(const char *form)
{
	char text[2048];
	struct exec_image *image;
	struct jit_request *request;
	struct unit u;
	u32 n = 0;

	snprintf(text, sizeof(text), "%s%s;\nret;\n}\n", plain_head, form);
	kit_reset();
	image = kit_image(text);
	request = jit_flatten(image_kernel_of(exec_kernel_at(image, 0))->code, /* rows= */ true);
	if (!request || !unit_read(&u, request, request->size))
		abort();
	for (u32 i = 0; i < request->n_insns; i++)
		n += !is_own(&u, &u.insns[i]);
	unit_done(&u);
	free(request);
	exec_image_free(image);
	return n;
}

static void test_handled(void)
{
	u32 always = count_handled("add.s32 %r1, %r2, %r3"), n = 0;

	for (size_t i = 0; i < N_FORMS; i++) {
		if (count_handled(forms[i]) <= always)
			continue;
		printf("handled: %s\n", forms[i]);
		n++;
	}
	kit_check(n == HANDLED, "%u of %zu forms have no code of their own, and %u had none before",
		  n, N_FORMS, HANDLED);
}

/* ---- the text of a kernel ------------------------------------------------------------------------ */

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->at, t->left, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->left)
		abort();
	t->at += n;
	t->left -= (size_t)n;
}

static u32 slot_of(char cls, u32 number)
{
	return (u32)(strchr(CLASSES, cls) - CLASSES) * N_NUMBERS + number;
}

static const char *type_of(char cls)
{
	static const char *const types[] = { "b32", "b64", "f32", "f64", "b16", "b32" };

	return types[strchr(CLASSES, cls) - CLASSES];
}

static u32 bytes_of(char cls)
{
	static const u8 bytes[] = { 4, 8, 4, 8, 2, 4 };

	return bytes[strchr(CLASSES, cls) - CLASSES];
}

static void say_read(struct text *t, const struct use *use, enum manner manner)
{
	u32 offset = SLOT_BYTES * slot_of(use->cls, use->number);

	if (use->cls == 'p') {
		say(t, "ld.global.b32 %%w, [%%i4+%u]; and.b32 %%w, %%w, 1; ", offset);
		say(t, "setp.ne.u32 %%p%u, %%w, 0;\n", use->number);
		return;
	}
	say(t, "ld.global.%s %%%c%u, [%%i%u+%u];\n", type_of(use->cls), use->cls, use->number,
	    bytes_of(use->cls), offset);
	if (manner != ROWS)
		return;
	if (use->cls == 'r')
		say(t, "mad.lo.s32 %%r%u, %%x, %u, %%r%u;\n", use->number, use->number + 1,
		    use->number);
	if (use->cls == 'd')
		say(t, "mul.wide.u32 %%y, %%x, %u; add.s64 %%d%u, %%d%u, %%y;\n", use->number + 1,
		    use->number, use->number);
}

static void say_write(struct text *t, const struct use *use, u32 slot)
{
	if (use->cls == 'p')
		say(t, "selp.b32 %%w, 1, 0, %%p%u; st.global.b32 [%%o4+%u], %%w;\n", use->number,
		    SLOT_BYTES * slot);
	else
		say(t, "st.global.%s [%%o%u+%u], %%%c%u;\n", type_of(use->cls), bytes_of(use->cls),
		    SLOT_BYTES * slot, use->cls, use->number);
}

/* The register of an address: a place among those of the form. */
static void say_address(struct text *t, const struct shape *s, enum manner manner, u32 index)
{
	u32 stride = manner == ROWS ? s->size : PLACE;

	if (s->matrix) {
		/* Of each warp a kilobyte: they may come in any order. */
		say(t,
		    "shr.u32 %%w, %%g, 5; mul.wide.u32 %%y, %%w, 1024; add.s64 %%d1, %%ma, %%y;\n"
		    "add.s64 %%d1, %%d1, %u; mov.u32 %%r9, 16;\n",
		    index * MEM_BYTES);
		return;
	}
	if (s->local) {
		say(t, "and.b32 %%w, %%spot, 3; mad.lo.u32 %%w, %%w, 8, %%la; ");
		say(t, s->address == 'd' ? "cvt.u64.u32 %%d1, %%w;\n" : "mov.u32 %%r1, %%w;\n");
		return;
	}
	if (s->address == 'd')
		say(t,
		    "mul.wide.u32 %%y, %%%s, %u; add.s64 %%y, %%y, %u; add.s64 %%d1, %%ma, %%y;\n",
		    manner == ROWS ? "g" : "place", stride, index * MEM_BYTES);
	else
		say(t, "mov.u32 %%w, sh; mad.lo.u32 %%r1, %%%s, %u, %%w;\n",
		    manner == ROWS ? "x" : "spot", stride);
}

/* A thread's own piece of shared or local memory, from a register of 64 bits or into one. */
static void say_private(struct text *t, bool local, bool write)
{
	const char *space = local ? "local" : "shared", *at = local ? "%la" : "%sa";

	for (u32 i = 0; i < PLACE / 8; i++) {
		if (write)
			say(t, "ld.global.b64 %%y, [%%i8+%u]; st.%s.b64 [%s+%u], %%y;\n",
			    SLOT_BYTES * slot_of('d', 5 + i), space, at, 8 * i);
		else
			say(t, "ld.%s.b64 %%y, [%s+%u]; st.global.b64 [%%o8+%u], %%y;\n", space, at,
			    8 * i, SLOT_BYTES * (OUT_SLOTS - 4 + i));
	}
}

static void say_form(struct text *t, const struct shape *s, enum manner manner, u32 index)
{
	say(t, "{\n%s .param .align 16 .b8 q0[32];\n", FORM_REGISTERS);
	for (u32 i = 0; i < s->n_uses; i++)
		say_read(t, &s->uses[i], manner);
	if (s->address)
		say_address(t, s, manner, index);
	if (s->sleeps)
		say(t, "mov.u32 %%r1, 20;\n");
	if (s->carries)
		say(t, "add.cc.u32 %%w, %%w, %%spot;\n");
	if ((manner == GUARDED || manner == UNIFORM) && !s->collective)
		say(t, "@%%go ");
	say(t, "%s;\nL0:\n", s->text);
	if (s->carries)
		say(t, "addc.u32 %%w, 0, 0; st.global.b32 [%%o4+%u], %%w;\n",
		    SLOT_BYTES * s->n_uses);
	for (u32 i = 0; i < s->n_uses; i++)
		say_write(t, &s->uses[i], i);
	if (s->writes && (s->local || s->address == 'r'))
		say_private(t, s->local, /* write= */ false);
	for (u32 size = 2; size <= 8; size *= 2)
		say(t, "add.s64 %%o%u, %%o%u, %u;\n", size, size, SLOT_BYTES * OUT_SLOTS);
	say(t, "}\n");
}

static void say_head(struct text *t, enum manner manner)
{
	say(t,
	    ".const .align 16 .u32 co[4] = { 0x7fc12345, 0x80000001, 0xfff80000, 7 };\n"
	    ".shared .align 16 .b8 sh[%u];\n.func device()\n{\nret;\n}\n"
	    ".visible .entry k(.param .align 16 .b8 p0[32], .param .u64 in, .param .u64 out, "
	    ".param .u64 mem)\n{\n"
	    ".reg .b32 %%x, %%g, %%b, %%w, %%place, %%spot, %%sa, %%la; "
	    ".reg .b64 %%in, %%out, %%ma, %%y, %%i2, %%i4, %%i8, %%o2, %%o4, %%o8; .reg .pred %%go;\n"
	    ".local .align 16 .b8 lo[32];\n",
	    64 * PLACE);
	say(t,
	    "mov.u32 %%x, %%tid.x; mov.u32 %%b, %%ctaid.x; shl.b32 %%g, %%b, 6; "
	    "add.u32 %%g, %%g, %%x;\n"
	    "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; ld.param.u64 %%ma, [mem];\n"
	    "mov.u32 %%sa, sh; mad.lo.u32 %%sa, %%x, %u, %%sa; mov.u32 %%la, lo;\n",
	    PLACE);
	for (u32 size = 2; size <= 8; size *= 2)
		say(t,
		    "mul.wide.u32 %%y, %%%s, %u; add.s64 %%i%u, %%in, %%y;\n"
		    "mul.wide.u32 %%y, %%g, %u; add.s64 %%o%u, %%out, %%y;\n",
		    manner == UNIFORM || manner == ROWS ? "b" : "g", size, size, size, size);
	say_private(t, /* local= */ false, /* write= */ true);
	say_private(t, /* local= */ true, /* write= */ true);
	say(t, "ld.global.b32 %%place, [%%i4+%u]; ld.global.b32 %%spot, [%%i4+%u];\n",
	    SLOT_BYTES * slot_of('p', 10), SLOT_BYTES * slot_of('p', 9));
	say(t, "ld.global.b32 %%w, [%%i4+%u]; and.b32 %%w, %%w, 1; setp.ne.u32 %%go, %%w, 0;\n",
	    SLOT_BYTES * slot_of('p', 11));
}

/* ---- values -------------------------------------------------------------------------------------- */

static u64 hard_double(void)
{
	static const u64 values[] = {
		0,
		UINT64_C(1) << 63,
		1,
		UINT64_C(0x800fffffffffffff),
		UINT64_C(0x0010000000000000),
		UINT64_C(0x7ff0000000000000),
		UINT64_C(0xfff0000000000000),
		UINT64_C(0x7ff8000000000000),
		UINT64_C(0xfff8000000000123),
		UINT64_C(0x7ff0000000000001),
		UINT64_C(0x7fefffffffffffff),
		UINT64_C(0x3ff0000000000000),
		UINT64_C(0xbff0000000000000),
		UINT64_C(0x3fe0000000000000),
		UINT64_C(0x4004000000000000),
		UINT64_C(0x41dfffffffc00000),
		UINT64_C(0x41e0000000000000),
		UINT64_C(0xc1e0000000000000),
		UINT64_C(0x41f0000000000000),
		UINT64_C(0x43e0000000000000),
		UINT64_C(0x43f0000000000000),
		UINT64_C(0xc3e0000000000000),
		UINT64_C(0x7fffffffffffffff),
	};

	return values[draw() % (sizeof(values) / sizeof(values[0]))];
}

static u64 hard_float(void)
{
	static const u32 values[] = {
		0,	    0x80000000, 1,	    0x807fffff, 0x00800000, 0x7f800000, 0xff800000,
		0x7fc00000, 0xffc00123, 0x7f800001, 0x7f7fffff, 0x3f800000, 0xbf800000, 0x3f000000,
		0x3f7fffff, 0x40200000, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff, 0x4f800000,
		0x5f000000, 0x5f800000, 0xdf000000, 0x7fffffff, 0x43000000, 0xc3008000, 0x33800000,
	};

	return values[draw() % (sizeof(values) / sizeof(values[0]))];
}

static u64 hard_half(void)
{
	static const u16 values[] = {
		0,	0x8000, 1,	0x83ff, 0x0400, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01,
		0x7bff, 0x3c00, 0xbc00, 0x3800, 0x4100, 0x57f8, 0x5800, 0xd808, 0x7fff, 0xffff,
	};

	return values[draw() % (sizeof(values) / sizeof(values[0]))];
}

static u64 hard_word(u32 bits)
{
	static const u64 low[] = { 0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 255 };

	switch (draw() % 4) {
	case 0:
		return low[draw() % (sizeof(low) / sizeof(low[0]))];
	case 1:
		return (UINT64_C(1) << (bits - 1)) - draw() % 2;
	case 2:
		return UINT64_MAX - draw() % 3;
	default:
		return UINT64_C(1) << draw() % bits;
	}
}

static u64 value_of(char cls)
{
	u64 how = draw() % 4;

	if (how == 0)
		return draw();
	switch (cls) {
	case 'e':
		return how == 1 ? draw() % 4096 << 40 ^ UINT64_C(0x3ff0000000000000)
				: hard_double();
	case 'f':
		return how == 1 ? draw() % 65536 << 12 ^ 0x3f800000 : hard_float();
	case 'h':
		return how == 1 ? hard_word(16) : hard_half();
	case 'd':
		return hard_word(64);
	case 'p':
		return draw();
	default:
		return hard_word(32);
	}
}

static void put(u8 *in, char cls, u32 number, u32 thread, u64 v)
{
	u32 bytes = bytes_of(cls);

	memcpy(in + SLOT_BYTES * slot_of(cls, number) + thread * bytes, &v, bytes);
}

static void fill(u8 *in, u8 *mem, u32 n_forms)
{
	seed = UINT64_C(0x9e3779b97f4a7c15);
	for (u32 i = 0; i < N_THREADS; i++) {
		/* Places are in disorder, some are of two lanes, but never past sixteen lanes. */
		u32 place = i ^ (i / 16 % 2 ? 5 : 0) ^ (i % 8 == 3 && i >= N_BLOCKS);

		for (const char *cls = CLASSES; *cls; cls++) {
			for (u32 number = 0; number < N_NUMBERS; number++)
				put(in, *cls, number, i, value_of(*cls));
		}
		put(in, 'p', 10, i, place);
		put(in, 'p', 9, i, place % 64);
	}
	for (u32 i = 0; i < n_forms * MEM_BYTES; i += 8) {
		u64 v = i / 8 % 2 ? value_of('e') : value_of('f') | value_of('f') << 32;

		memcpy(mem + i, &v, sizeof(v));
	}
}

/* ---- both ways ----------------------------------------------------------------------------------- */

struct batch {
	struct shape shapes[BATCH];
	u32 n;
};

struct outcome {
	u8 *bytes; /* of out, then of mem */
	struct exec_progress progress;
};

static size_t out_bytes(const struct batch *b)
{
	return (size_t)b->n * OUT_SLOTS * SLOT_BYTES;
}

static struct outcome run(const struct batch *b, const char *text, enum manner manner,
			  const struct exec_compiler *with)
{
	size_t mem_bytes = (size_t)b->n * MEM_BYTES;
	struct kit_run run = { .grid = N_BLOCKS, .block = threads_of_block[manner] };
	struct outcome ret = { .bytes = malloc(out_bytes(b) + mem_bytes) };
	u8 *in, *out, *mem;

	if (!ret.bytes)
		abort();
	kit_reset();
	exec_compiler = with;
	run.image = kit_image(text);
	in = kit_alloc(IN_SLOTS * SLOT_BYTES);
	out = kit_alloc(out_bytes(b));
	mem = kit_alloc(mem_bytes);
	fill(in, mem, b->n);
	for (u32 i = 0; i < 4; i++)
		run.params[i] = draw();
	run.params[4] = (u64)(uintptr_t)in;
	run.params[5] = (u64)(uintptr_t)out;
	run.params[6] = (u64)(uintptr_t)mem;
	ret.progress = kit_run(&run);
	exec_image_free(run.image);
	exec_compiler = compiler;
	memcpy(ret.bytes, out, out_bytes(b));
	memcpy(ret.bytes + out_bytes(b), mem, mem_bytes);
	return ret;
}

static u64 word_at(const u8 *bytes, size_t at)
{
	u64 v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

/* The first word that differs; @size if none does. */
static size_t difference(const u8 *a, const u8 *b, size_t size)
{
	size_t at = 0;

	while (at < size && word_at(a, at) == word_at(b, at))
		at += 8;
	return at;
}

static bool compare_form(const struct batch *b, u32 i, enum manner manner, const u8 *a, const u8 *c)
{
	size_t part = OUT_SLOTS * SLOT_BYTES, start = i * part, at;
	const struct shape *s = &b->shapes[i];

	at = difference(a + start, c + start, part);
	if (at < part) {
		u32 slot = (u32)(at / SLOT_BYTES);
		struct use use = slot < s->n_uses ? s->uses[slot] : (struct use){ 'd', slot };

		printf("%s, %s: thread %zu, %c%u: interpreted %016llx, compiled %016llx\n", s->text,
		       manner_names[manner], at % SLOT_BYTES / bytes_of(use.cls), use.cls,
		       use.number, (unsigned long long)word_at(a, start + at),
		       (unsigned long long)word_at(c, start + at));
		return false;
	}
	start = out_bytes(b) + i * MEM_BYTES;
	at = difference(a + start, c + start, MEM_BYTES);
	if (at < MEM_BYTES)
		printf("%s, %s: memory at %zu: interpreted %016llx, compiled %016llx\n", s->text,
		       manner_names[manner], at, (unsigned long long)word_at(a, start + at),
		       (unsigned long long)word_at(c, start + at));
	return at == MEM_BYTES;
}

/* How many of them differ. */
static u32 compare_batch(const struct batch *b, enum manner manner)
{
	char *text = malloc(TEXT_BYTES);
	struct text t = { text, TEXT_BYTES };
	struct outcome interpreted, compiled;
	u32 n = 0;

	if (!text)
		abort();
	say_head(&t, manner);
	for (u32 i = 0; i < b->n; i++)
		say_form(&t, &b->shapes[i], manner, i);
	say(&t, "ret;\n}\n");
	interpreted = run(b, text, manner, NULL);
	compiled = run(b, text, manner, compiler);
	for (u32 i = 0; i < b->n; i++)
		n += !compare_form(b, i, manner, interpreted.bytes, compiled.bytes);
	if (!interpreted.progress.done || interpreted.progress.fault ||
	    compiled.progress.fault != interpreted.progress.fault ||
	    compiled.progress.instructions != interpreted.progress.instructions) {
		printf("%s, %s: fault %d and %d, %llu and %llu instructions\n", b->shapes[0].text,
		       manner_names[manner], interpreted.progress.fault, compiled.progress.fault,
		       (unsigned long long)interpreted.progress.instructions,
		       (unsigned long long)compiled.progress.instructions);
		n++;
	}
	free(interpreted.bytes);
	free(compiled.bytes);
	free(text);
	return n;
}

static void test_equal(enum manner manner, const char *part)
{
	struct batch b = { .n = 0 };
	u32 n_differ = 0, n = 0;

	for (size_t i = 0; i < N_FORMS + N_MORE; i++) {
		const char *form = i < N_FORMS ? forms[i] : more_forms[i - N_FORMS];
		struct shape s = shape_of(form);

		if (!strstr(form, part))
			continue;
		n++;
		/* Behind the end of a thread nothing would be seen of the others. */
		if (b.n && (s.ends || b.n == BATCH)) {
			n_differ += compare_batch(&b, manner);
			b.n = 0;
		}
		b.shapes[b.n++] = s;
		if (s.ends) {
			n_differ += compare_batch(&b, manner);
			b.n = 0;
		}
	}
	if (b.n)
		n_differ += compare_batch(&b, manner);
	kit_check(!n_differ, "%u forms, %s: %u differ", n, manner_names[manner], n_differ);
}

static void log_line(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

/* With a word, only those that have it in them. */
int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	struct jit_counts counts;

	/* Not what an earlier run has left. */
	setenv("XDG_CACHE_HOME", /* no folder: */ "/dev/null", 1);
	kit_init();
	jit_always = true;
	jit_init(JIT_ON, log_line);
	if (!exec_compiler)
		return 77;
	compiler = exec_compiler;
	if (argc < 2)
		test_handled();
	for (enum manner m = 0; m < N_MANNERS; m++)
		test_equal(m, part);
	jit_counts(&counts);
	kit_check(counts.n_compiled && !counts.n_refused, "all of them were compiled");
	return kit_result();
}
