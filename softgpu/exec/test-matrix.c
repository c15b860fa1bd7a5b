/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on matrices, against products computed here.
 *
 * For mma the lanes' registers are filled as the manual of PTX says, register by register; wmma, whose
 * layout is nobody's business, is loaded from memory and stored again.
 */
#include <stdio.h>
#include <string.h>

#include "softgpu/exec/half.h"
#include "softgpu/exec/test-kit.h"

#define SLOTS	 8 /* registers of a lane, eight bytes each */
#define MAX_SIDE 256

/* ---- numbers ------------------------------------------------------------------------------------ */

static u32 seed = 12345;

static int random_int(int low, int high)
{
	seed = seed * 1664525 + 1013904223;
	return low + (int)(seed >> 8) % (high - low + 1);
}

/* What elements are made of; floats get small integers. */
static const struct {
	const char *name;
	int low, high;
	u32 bits;
} types[] = {
	{ "f16", -9, 9, 16 }, { "bf16", -9, 9, 16 },  { "tf32", -9, 9, 32 }, { "f32", -9, 9, 32 },
	{ "f64", -9, 9, 64 }, { "s8", -128, 127, 8 }, { "u8", 0, 255, 8 },   { "s4", -8, 7, 4 },
	{ "u4", 0, 15, 4 },   { "b1", 0, 1, 1 },      { "s32", -9, 9, 32 },
};

static size_t type_index(const char *type)
{
	size_t i = 0;

	while (strcmp(types[i].name, type) != 0)
		i++;
	return i;
}

static int random_element(const char *type)
{
	return random_int(types[type_index(type)].low, types[type_index(type)].high);
}

static u32 bits_of_type(const char *type)
{
	return types[type_index(type)].bits;
}

/* An integer as an element; all of those used here are exact in every type. */
static u64 encode(const char *type, int v)
{
	if (!strcmp(type, "f16"))
		return half_from_double(v, PTX_RN);
	if (!strcmp(type, "bf16"))
		return bfloat_from_double(v, PTX_RN);
	if (!strcmp(type, "f32"))
		return float_bits((f32)v);
	/* The bits that tf32 does not have are not to be looked at. */
	if (!strcmp(type, "tf32"))
		return float_bits((f32)v) | 0x1fff;
	if (!strcmp(type, "f64"))
		return double_bits(v);
	return (u64)v & (bits_of_type(type) == 32 ? UINT32_MAX : (1u << bits_of_type(type)) - 1);
}

static bool equals(const char *type, u64 bits, int v)
{
	u32 n = bits_of_type(type);

	return (n < 64 ? bits & ((UINT64_C(1) << n) - 1) : bits) == encode(type, v);
}

/* ---- mma ---------------------------------------------------------------------------------------- */

/*
 * For each register of a lane the row and column of its first element, beside lane / 4 and
 * lane % 4 * elements in a register; of b the row alone. c and d are alike for all.
 */
struct shape {
	const char *shape;
	u32 m, n, k;
	const char *d, *a, *b, *c, *more;
	u32 n_a, n_b;
	int a_at[8][2];
	int b_at[4];
};

/* clang-format off */
static const struct shape multiplications[] = {
	{ "m16n8k8", 16, 8, 8, "f32", "f16", "f16", "f32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k8", 16, 8, 8, "f16", "f16", "f16", "f16", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k16", 16, 8, 16, "f32", "f16", "f16", "f32", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 8 }, { 8, 8 } }, { 0, 8 } },
	{ "m16n8k16", 16, 8, 16, "f16", "f16", "f16", "f16", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 8 }, { 8, 8 } }, { 0, 8 } },
	{ "m16n8k8", 16, 8, 8, "f32", "bf16", "bf16", "f32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k16", 16, 8, 16, "f32", "bf16", "bf16", "f32", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 8 }, { 8, 8 } }, { 0, 8 } },
	{ "m16n8k4", 16, 8, 4, "f32", "tf32", "tf32", "f32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k8", 16, 8, 8, "f32", "tf32", "tf32", "f32", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 4 }, { 8, 4 } }, { 0, 4 } },
	{ "m8n8k4", 8, 8, 4, "f64", "f64", "f64", "f64", "", 1, 1, { { 0, 0 } }, { 0 } },
	{ "m16n8k4", 16, 8, 4, "f64", "f64", "f64", "f64", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k8", 16, 8, 8, "f64", "f64", "f64", "f64", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 4 }, { 8, 4 } }, { 0, 4 } },
	{ "m16n8k16", 16, 8, 16, "f64", "f64", "f64", "f64", "", 8, 4,
	  { { 0, 0 }, { 8, 0 }, { 0, 4 }, { 8, 4 }, { 0, 8 }, { 8, 8 }, { 0, 12 }, { 8, 12 } }, { 0, 4, 8, 12 } },
	{ "m8n8k16", 8, 8, 16, "s32", "s8", "u8", "s32", "", 1, 1, { { 0, 0 } }, { 0 } },
	{ "m16n8k16", 16, 8, 16, "s32", "u8", "s8", "s32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k32", 16, 8, 32, "s32", "s8", "s8", "s32", "satfinite.", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 16 }, { 8, 16 } }, { 0, 16 } },
	{ "m8n8k32", 8, 8, 32, "s32", "s4", "u4", "s32", "", 1, 1, { { 0, 0 } }, { 0 } },
	{ "m16n8k32", 16, 8, 32, "s32", "u4", "u4", "s32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k64", 16, 8, 64, "s32", "s4", "s4", "s32", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 32 }, { 8, 32 } }, { 0, 32 } },
	{ "m8n8k128", 8, 8, 128, "s32", "b1", "b1", "s32", "", 1, 1, { { 0, 0 } }, { 0 } },
	{ "m16n8k128", 16, 8, 128, "s32", "b1", "b1", "s32", "", 2, 1, { { 0, 0 }, { 8, 0 } }, { 0 } },
	{ "m16n8k256", 16, 8, 256, "s32", "b1", "b1", "s32", "", 4, 2,
	  { { 0, 0 }, { 8, 0 }, { 0, 128 }, { 8, 128 } }, { 0, 128 } },
};
/* clang-format on */

static int a[16][MAX_SIDE], b[MAX_SIDE][8], c[16][8];

static int expected(const struct shape *s, u32 row, u32 col)
{
	int sum = c[row][col];

	for (u32 i = 0; i < s->k; i++)
		sum += bits_of_type(s->a) == 1 ? a[row][i] ^ b[i][col] : a[row][i] * b[i][col];
	return sum;
}

static void fill_matrices(const struct shape *s)
{
	for (u32 row = 0; row < s->m; row++) {
		for (u32 i = 0; i < s->k; i++)
			a[row][i] = random_element(s->a);
		for (u32 col = 0; col < s->n; col++)
			c[row][col] = random_int(-99, 99);
	}
	for (u32 i = 0; i < s->k; i++) {
		for (u32 col = 0; col < s->n; col++)
			b[i][col] = random_element(s->b);
	}
}

/* Of a register: 32 bits of elements, or one double. */
static u32 per_register(const char *type)
{
	return bits_of_type(type) > 32 ? 1 : 32 / bits_of_type(type);
}

static void fill_registers(const struct shape *s, u64 (*to)[3][SLOTS])
{
	u32 run_a = per_register(s->a), run_b = per_register(s->b), per_c = per_register(s->c);

	for (u32 l = 0; l < LANES; l++) {
		memset(to[l], 0, sizeof(to[l]));
		for (u32 r = 0; r < s->n_a; r++) {
			for (u32 i = 0; i < run_a; i++)
				to[l][0][r] |=
					encode(s->a, a[l / 4 + (u32)s->a_at[r][0]]
						      [l % 4 * run_a + i + (u32)s->a_at[r][1]])
					<< (i * bits_of_type(s->a));
		}
		for (u32 r = 0; r < s->n_b; r++) {
			for (u32 i = 0; i < run_b; i++)
				to[l][1][r] |=
					encode(s->b, b[l % 4 * run_b + i + (u32)s->b_at[r]][l / 4])
					<< (i * bits_of_type(s->b));
		}
		for (u32 e = 0; e < s->m * s->n / LANES; e++)
			to[l][2][e / per_c] |= encode(s->c, c[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2])
					       << (e % per_c * bits_of_type(s->c));
	}
}

static size_t add_list(char *text, size_t len, char name, u32 n)
{
	len += (size_t)sprintf(text + len, "{");
	for (u32 i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "%s%%%c%u", i ? ", " : "", name, i);
	return len + (size_t)sprintf(text + len, "}");
}

static const char *letter(const char *type)
{
	return !strcmp(type, "f64") || !strcmp(type, "f32") || !strcmp(type, "s32") ? type : "b32";
}

static u32 n_registers(const char *type, u32 elements)
{
	return elements / per_register(type);
}

/* The words around the instruction: registers in from memory, and out again. */
static void write_multiplication(const struct shape *s, char *text)
{
	const u32 n_c = n_registers(s->c, s->m * s->n / LANES),
		  n_d = n_registers(s->d, s->m * s->n / LANES);
	const struct {
		char name;
		const char *type;
		u32 n;
	} parts[] = { { 'a', letter(s->a), s->n_a },
		      { 'b', letter(s->b), s->n_b },
		      { 'c', letter(s->c), n_c } };
	size_t len = (size_t)sprintf(
		text,
		".visible .entry k(.param .u64 out)\n{\n.reg .b64 %%x<4>; .reg .b32 %%r<4>;\n"
		".reg .%s %%d<8>; ld.param.u64 %%x0, [out]; mov.u32 %%r0, %%tid.x; mad.wide.u32 %%x0, %%r0, 192, %%x0;\n",
		letter(s->d));

	for (u32 i = 0; i < 3; i++) {
		len += (size_t)sprintf(text + len, ".reg .%s %%%c<8>;\n", parts[i].type,
				       parts[i].name);
		for (u32 r = 0; r < parts[i].n; r++)
			len += (size_t)sprintf(text + len, "ld.global.%s %%%c%u, [%%x0+%u];\n",
					       parts[i].type, parts[i].name, r,
					       (i * SLOTS + r) * 8);
	}
	len += (size_t)sprintf(text + len, "mma.sync.aligned.%s.row.col.%s%s.%s.%s.%s%s ", s->shape,
			       s->more, s->d, s->a, s->b, s->c,
			       bits_of_type(s->a) == 1 ? ".xor.popc" : "");
	len = add_list(text, len, 'd', n_d);
	len += (size_t)sprintf(text + len, ", ");
	len = add_list(text, len, 'a', s->n_a);
	len += (size_t)sprintf(text + len, ", ");
	len = add_list(text, len, 'b', s->n_b);
	len += (size_t)sprintf(text + len, ", ");
	len = add_list(text, len, 'c', n_c);
	len += (size_t)sprintf(text + len, ";\n");
	for (u32 r = 0; r < n_d; r++)
		len += (size_t)sprintf(text + len, "st.global.%s [%%x0+%u], %%d%u;\n", letter(s->d),
				       r * 8, r);
	sprintf(text + len, "ret;\n}\n");
}

static struct exec_progress run(const char *text, void *memory, u32 block)
{
	struct kit_run more = { .image = kit_image(text),
				.block = block,
				.params = { (u64)(uintptr_t)memory } };
	struct exec_progress p = kit_run(&more);

	exec_image_free(more.image);
	return p;
}

static void test_multiplication(const struct shape *s)
{
	u32 per = per_register(s->d), n_wrong = 0;
	u64(*regs)[3][SLOTS];
	struct exec_progress p;
	char text[8192];

	kit_reset();
	regs = kit_alloc(LANES * sizeof(*regs));
	fill_matrices(s);
	fill_registers(s, regs);
	write_multiplication(s, text);
	p = run(text, regs, LANES);
	for (u32 l = 0; l < LANES; l++) {
		for (u32 e = 0; e < s->m * s->n / LANES; e++)
			n_wrong +=
				!equals(s->d, regs[l][0][e / per] >> (e % per * bits_of_type(s->d)),
					expected(s, l / 4 + e / 2 * 8, l % 4 * 2 + e % 2));
	}
	kit_check(p.done && !p.fault && !n_wrong, "mma %s %s of %s and %s: %u wrong %s", s->shape,
		  s->d, s->a, s->b, n_wrong, p.message);
}

/* ---- four matrices at once ---------------------------------------------------------------------- */

/* Of each: a by rows, b by rows, c and what d has to be. */
static int quad_a[4][8][4], quad_b[4][4][8], quad_c[4][8][8];

static int quad_expected(u32 i, u32 row, u32 col)
{
	int sum = quad_c[i][row][col];

	for (u32 k = 0; k < 4; k++)
		sum += quad_a[i][row][k] * quad_b[i][k][col];
	return sum;
}

static void fill_quads(void)
{
	for (u32 i = 0; i < 4; i++) {
		for (u32 row = 0; row < 8; row++) {
			for (u32 col = 0; col < 8; col++)
				quad_c[i][row][col] = random_int(-99, 99);
			for (u32 k = 0; k < 4; k++) {
				quad_a[i][row][k] = random_element("f16");
				quad_b[i][k][row] = random_element("f16");
			}
		}
	}
}

/* Row and column of an element of c and d in a lane, as the manual has them. */
static void quad_sum_place(const char *type, u32 lane, u32 i, u32 *row, u32 *col)
{
	bool halves = !strcmp(type, "f16");

	*row = (halves ? lane % 4 : (lane & 1) + (i & 2)) + (lane < 16 ? 0 : 4);
	*col = halves ? i : (i & 4) + (lane & 2) + (i & 1);
}

/* An element of a or b: @i of a lane that has a row of it, or a column. */
static int quad_source(char part, bool row_major, u32 lane, u32 i)
{
	u32 m = lane % 16 / 4, high = lane < 16 ? 0 : 4;

	if (part == 'a')
		return row_major ? quad_a[m][lane % 4 + high][i] : quad_a[m][i + high][lane % 4];
	return row_major ? quad_b[m][lane % 4][i + high] : quad_b[m][i][lane % 4 + high];
}

static void add_element(u64 *regs, const char *type, u32 i, int v)
{
	regs[i / per_register(type)] |= encode(type, v)
					<< (i % per_register(type) * bits_of_type(type));
}

static void test_quads(const char *d, const char *c, bool a_rows, bool b_rows)
{
	/* The instruction's registers are those of such a shape with eight elements a lane. */
	struct shape s = { "m8n8k4", 32, 8, 4, d, "f16", "f16", c, "", 2, 2, { { 0 } }, { 0 } };
	u32 per = per_register(d), n_wrong = 0, row, col;
	u64(*regs)[3][SLOTS];
	struct exec_progress p;
	char text[8192], layout[16], *at;

	kit_reset();
	regs = kit_alloc(LANES * sizeof(*regs));
	fill_quads();
	for (u32 l = 0; l < LANES; l++) {
		for (u32 i = 0; i < 4; i++) {
			add_element(regs[l][0], "f16", i, quad_source('a', a_rows, l, i));
			add_element(regs[l][1], "f16", i, quad_source('b', b_rows, l, i));
		}
		for (u32 i = 0; i < 8; i++) {
			quad_sum_place(c, l, i, &row, &col);
			add_element(regs[l][2], c, i, quad_c[l % 16 / 4][row][col]);
		}
	}
	write_multiplication(&s, text);
	snprintf(layout, sizeof(layout), ".%s.%s.", a_rows ? "row" : "col", b_rows ? "row" : "col");
	at = strstr(text, ".row.col.");
	memcpy(at, layout, strlen(layout));
	p = run(text, regs, LANES);
	for (u32 l = 0; l < LANES; l++) {
		for (u32 i = 0; i < 8; i++) {
			quad_sum_place(d, l, i, &row, &col);
			n_wrong += !equals(d, regs[l][0][i / per] >> (i % per * bits_of_type(d)),
					   quad_expected(l % 16 / 4, row, col));
		}
	}
	kit_check(p.done && !p.fault && !n_wrong, "mma of four matrices%s%s from %s: %u wrong %s",
		  layout, d, c, n_wrong, p.message);
}

static void test_all_quads(void)
{
	for (u32 layouts = 0; layouts < 4; layouts++) {
		test_quads("f32", "f32", layouts & 1, layouts & 2);
		test_quads("f16", "f16", layouts & 1, layouts & 2);
		test_quads("f32", "f16", layouts & 1, layouts & 2);
	}
}

/* A sum beyond 32 bits: it wraps, or stays at the end. */
static void test_saturation(void)
{
	static const char format[] =
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %%r<9>; .reg .b64 %%x; ld.param.u64 %%x, [out];\n"
		"mov.u32 %%r0, 0x7f7f7f7f; mov.u32 %%r1, 0x7fffff00;\n"
		"mma.sync.aligned.m8n8k16.row.col.%ss32.s8.s8.s32 {%%r2, %%r3}, {%%r0}, {%%r0}, {%%r1, %%r1};\n"
		"st.global.u32 [%%x], %%r2; ret;\n}\n";
	char text[512];
	u32 *out;

	for (u32 sat = 0; sat < 2; sat++) {
		kit_reset();
		out = kit_alloc(64);
		snprintf(text, sizeof(text), format, sat ? "satfinite." : "");
		run(text, out, LANES);
		kit_check(*out == (sat ? 0x7fffffffu : 0x7fffff00u + 16 * 127 * 127), "mma %s: %x",
			  sat ? "stays at the greatest sum" : "wraps around", *out);
	}
}

/* Rounding: a product of halves is exact, the sum of two is not. */
static void test_rounding(void)
{
	static const char text[] =
		".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %x;\n"
		"ld.param.u64 %x, [out]; mov.u32 %r0, 0x3c013c01; mov.f32 %f0, 0f4B800000; mov.u32 %r1, 0x3c01;\n"
		"mov.u32 %r2, 0;\n"
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r0, %r0}, {%r1}, "
		"{%f0, %f0, %f0, %f0};\n"
		"st.global.f32 [%x], %f1; ret;\n}\n";
	f64 half = (f64)half_to_float(0x3c01), sum = 16777216;
	f32 *out;

	kit_reset();
	out = kit_alloc(64);
	run(text, out, LANES);
	sum += 4 * half * half;
	kit_check(*out == (f32)sum, "mma: the sum of all products is rounded once: %a",
		  (double)*out);
}

/* 1 + 2^-60, of doubles, as each rounding has it. */
static void test_directions(void)
{
	static const char format[] =
		".visible .entry k(.param .u64 out)\n{\n.reg .f64 %%d<9>; .reg .b64 %%x; ld.param.u64 %%x, [out];\n"
		"mov.f64 %%d0, 0d3ff0000000000000; mov.f64 %%d1, 0d3c30000000000000;\n"
		"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64%s {%%d2, %%d3}, {%%d0}, {%%d1}, {%%d0, %%d0};\n"
		"st.global.f64 [%%x], %%d2; ret;\n}\n";
	static const struct {
		const char *word;
		f64 sum;
	} cases[] = { { "", 1 }, { ".rn", 1 }, { ".rz", 1 }, { ".rm", 1 }, { ".rp", 1 + 0x1p-50 } };
	char text[512];
	f64 *out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kit_reset();
		out = kit_alloc(64);
		snprintf(text, sizeof(text), format, cases[i].word);
		run(text, out, LANES);
		kit_check(*out == cases[i].sum, "wmma of doubles%s: %a", cases[i].word, *out);
	}
}

/* ---- wmma --------------------------------------------------------------------------------------- */

struct tile_case {
	const char *shape;
	u32 m, n, k;
	const char *d, *a, *c;
	char a_layout, b_layout, d_layout;
	bool shared;
};

/* clang-format off */
static const struct tile_case tiles[] = {
	{ "m16n16k16", 16, 16, 16, "f32", "f16", "f32", 'r', 'c', 'r', false },
	{ "m16n16k16", 16, 16, 16, "f16", "f16", "f16", 'c', 'r', 'c', true },
	{ "m16n16k16", 16, 16, 16, "f16", "f16", "f32", 'r', 'r', 'r', false },
	{ "m32n8k16", 32, 8, 16, "f32", "f16", "f32", 'r', 'r', 'c', true },
	{ "m8n32k16", 8, 32, 16, "f32", "f16", "f16", 'c', 'c', 'r', false },
	{ "m16n16k16", 16, 16, 16, "f32", "bf16", "f32", 'r', 'c', 'r', true },
	{ "m32n8k16", 32, 8, 16, "f32", "bf16", "f32", 'c', 'c', 'c', false },
	{ "m8n32k16", 8, 32, 16, "f32", "bf16", "f32", 'r', 'r', 'r', false },
	{ "m16n16k16", 16, 16, 16, "s32", "s8", "s32", 'r', 'c', 'r', false },
	{ "m32n8k16", 32, 8, 16, "s32", "u8", "s32", 'c', 'r', 'c', true },
	{ "m8n32k16", 8, 32, 16, "s32", "s8", "s32", 'c', 'c', 'r', false },
	{ "m16n16k8", 16, 16, 8, "f32", "tf32", "f32", 'r', 'c', 'r', false },
	{ "m16n16k8", 16, 16, 8, "f32", "tf32", "f32", 'c', 'r', 'c', true },
	{ "m8n8k4", 8, 8, 4, "f64", "f64", "f64", 'r', 'c', 'r', false },
	{ "m8n8k4", 8, 8, 4, "f64", "f64", "f64", 'c', 'r', 'c', true },
	{ "m8n8k32", 8, 8, 32, "s32", "s4", "s32", 'r', 'c', 'r', false },
	{ "m8n8k32", 8, 8, 32, "s32", "u4", "s32", 'r', 'c', 'c', true },
};
/* clang-format on */

#define PLACE_BYTES 8192 /* of each matrix in memory */

static int ta[32][32], tb[32][32], tc[32][32];

/* In memory: rows or columns, with a stride of four (of bytes' parts: 32) elements more than they have. */
static u32 stride_of(const char *type, char layout, u32 rows, u32 cols)
{
	return (layout == 'r' ? cols : rows) + (bits_of_type(type) < 8 ? 32 : 4);
}

static void put_element(u8 *to, const char *type, u64 at, int v)
{
	u64 bits = encode(type, v);
	u32 n = bits_of_type(type);

	if (n < 8)
		to[at * n / 8] |= (u8)(bits << (at * n % 8));
	else
		memcpy(to + at * n / 8, &bits, n / 8);
}

static void put_matrix(u8 *to, const char *type, char layout, u32 rows, u32 cols, int m[32][32])
{
	u64 stride = stride_of(type, layout, rows, cols);

	for (u32 r = 0; r < rows; r++) {
		for (u32 col = 0; col < cols; col++)
			put_element(to, type, layout == 'r' ? r * stride + col : col * stride + r,
				    m[r][col]);
	}
}

static void random_matrix(const char *type, u32 rows, u32 cols, int m[32][32])
{
	for (u32 r = 0; r < rows; r++) {
		for (u32 col = 0; col < cols; col++)
			m[r][col] = random_element(type);
	}
}

static u32 wmma_registers(const char *type, u32 elements, bool source)
{
	return source && !strcmp(type, "f16") ? 8 : n_registers(type, elements / LANES);
}

static const char *layout_word(char layout)
{
	return layout == 'r' ? "row" : "col";
}

static void write_tile(const struct tile_case *t, char *text)
{
	const char *space = t->shared ? "shared" : "global", *base = t->shared ? "%r1" : "%x0";
	bool halves = !strcmp(t->a, "f16");
	const struct {
		char name, layout;
		const char *type;
		u32 rows, cols;
		bool source;
	} parts[] = {
		{ 'a', t->a_layout, t->a, t->m, t->k, true },
		{ 'b', t->b_layout, t->a, t->k, t->n, true },
		{ 'c', t->d_layout, t->c, t->m, t->n, false },
	};
	u32 n[4];
	size_t len = (size_t)sprintf(
		text,
		".shared .align 32 .b8 place[%u];\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .b64 %%x<4>; .reg .b32 %%r<9>; .reg .pred %%p; .reg .%s %%d<8>;\n"
		"ld.param.u64 %%x0, [out]; mov.u32 %%r1, place; mov.u32 %%r2, %%tid.x; shl.b32 %%r2, %%r2, 2;\n"
		"COPY: cvt.u64.u32 %%x1, %%r2; add.u64 %%x1, %%x1, %%x0; ld.global.u32 %%r3, [%%x1]; add.u32 %%r4, %%r2, %%r1;\n"
		"st.shared.u32 [%%r4], %%r3; add.u32 %%r2, %%r2, 128; setp.lt.u32 %%p, %%r2, %u; @%%p bra COPY; bar.sync 0;\n",
		4 * PLACE_BYTES, letter(t->d), 4 * PLACE_BYTES);

	for (u32 i = 0; i < 3; i++) {
		n[i] = wmma_registers(parts[i].type, parts[i].rows * parts[i].cols,
				      parts[i].source);
		len += (size_t)sprintf(
			text + len, ".reg .%s %%%c<8>;\nwmma.load.%c.sync.aligned.%s.%s.%s.%s ",
			letter(parts[i].type), parts[i].name, parts[i].name,
			layout_word(parts[i].layout), t->shape, space, parts[i].type);
		len = add_list(text, len, parts[i].name, n[i]);
		len += (size_t)sprintf(
			text + len, ", [%s+%u], %u;\n", base, (i + 1) * PLACE_BYTES,
			stride_of(parts[i].type, parts[i].layout, parts[i].rows, parts[i].cols));
	}
	n[3] = wmma_registers(t->d, t->m * t->n, false);
	len += (size_t)sprintf(text + len, "wmma.mma.sync.aligned.%s.%s.%s.%s",
			       layout_word(t->a_layout), layout_word(t->b_layout), t->shape, t->d);
	len += halves ? (size_t)sprintf(text + len, ".%s ", t->c)
		      : (size_t)sprintf(text + len, ".%s.%s.%s ", t->a, t->a, t->c);
	len = add_list(text, len, 'd', n[3]);
	for (u32 i = 0; i < 3; i++) {
		len += (size_t)sprintf(text + len, ", ");
		len = add_list(text, len, parts[i].name, n[i]);
	}
	len += (size_t)sprintf(text + len, ";\nwmma.store.d.sync.aligned.%s.%s.global.%s [%%x0], ",
			       layout_word(t->d_layout), t->shape, t->d);
	len = add_list(text, len, 'd', n[3]);
	sprintf(text + len, ", %u;\nret;\n}\n", stride_of(t->d, t->d_layout, t->m, t->n));
}

static int tile_sum(const struct tile_case *t, u32 row, u32 col)
{
	int sum = tc[row][col];

	for (u32 i = 0; i < t->k; i++)
		sum += ta[row][i] * tb[i][col];
	return sum;
}

static void test_tile(const struct tile_case *t)
{
	u32 n_wrong = 0, bytes = bits_of_type(t->d) / 8;
	struct exec_progress p;
	char text[8192];
	u8 *memory;

	kit_reset();
	memory = kit_alloc(4 * PLACE_BYTES);
	random_matrix(t->a, t->m, t->k, ta);
	random_matrix(t->a, t->k, t->n, tb);
	random_matrix("f16", t->m, t->n, tc);
	put_matrix(memory + PLACE_BYTES, t->a, t->a_layout, t->m, t->k, ta);
	put_matrix(memory + 2 * PLACE_BYTES, t->a, t->b_layout, t->k, t->n, tb);
	put_matrix(memory + 3 * PLACE_BYTES, t->c, t->d_layout, t->m, t->n, tc);
	write_tile(t, text);
	p = run(text, memory, LANES);
	for (u32 r = 0; r < t->m; r++) {
		for (u32 col = 0; col < t->n; col++) {
			u64 stride = stride_of(t->d, t->d_layout, t->m, t->n), v = 0;

			memcpy(&v,
			       memory + (t->d_layout == 'r' ? r * stride + col : col * stride + r) *
						bytes,
			       bytes);
			n_wrong += !equals(t->d, v, tile_sum(t, r, col));
		}
	}
	kit_check(p.done && !p.fault && !n_wrong, "wmma %s %s of %s, %c %c %c, %s: %u wrong %s",
		  t->shape, t->d, t->a, t->a_layout, t->b_layout, t->d_layout,
		  t->shared ? "shared" : "global", n_wrong, p.message);
}

/* ---- rows of halves ----------------------------------------------------------------------------- */

/* Halves of shared memory are numbered; matrix i of x4 has the rows at 64 * i + 8 * row. */
static const char rows_head[] =
	".shared .align 16 .b8 place[1024];\n.visible .entry k(.param .u64 out)\n{\n"
	".reg .b64 %x<4>; .reg .b32 %r<20>; ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, place;\n"
	"mad.lo.u32 %r2, %r0, 16, %r1; shl.b32 %r3, %r0, 3; mad.lo.u32 %r4, %r3, 0x10001, 0x10000;\n"
	"st.shared.u32 [%r2], %r4; add.u32 %r4, %r4, 0x20002; st.shared.u32 [%r2+4], %r4;\n"
	"add.u32 %r4, %r4, 0x20002; st.shared.u32 [%r2+8], %r4; add.u32 %r4, %r4, 0x20002;\n"
	"st.shared.u32 [%r2+12], %r4; bar.sync 0; mad.wide.u32 %x1, %r0, 16, %x0;\n";

static u32 pair_at(u32 matrix, u32 lane, bool transposed)
{
	u32 across = lane % 4 * 2, down = lane / 4;

	if (transposed)
		return (64 * matrix + across * 8 + down) | (64 * matrix + (across + 1) * 8 + down)
								   << 16;
	return (64 * matrix + down * 8 + across) | (64 * matrix + down * 8 + across + 1) << 16;
}

static void test_rows(const char *what, const char *body, u32 n, bool transposed)
{
	char text[2048];
	u32 n_wrong = 0;
	u32 *out;

	kit_reset();
	out = kit_alloc(4096);
	snprintf(text, sizeof(text), "%s%s\nret;\n}\n", rows_head, body);
	run(text, out, LANES);
	for (u32 l = 0; l < LANES; l++) {
		for (u32 i = 0; i < n; i++)
			n_wrong += out[4 * l + i] != pair_at(i, l, transposed);
	}
	kit_check(!n_wrong, "%s: %u wrong", what, n_wrong);
}

static void test_all_rows(void)
{
	test_rows(
		"ldmatrix.x1",
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2]; st.global.u32 [%x1], %r10;",
		1, false);
	test_rows("ldmatrix.x2.trans",
		  "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r2];\n"
		  "st.global.v2.u32 [%x1], {%r10, %r11};",
		  2, true);
	test_rows("ldmatrix.x4 at a generic address, into its own address",
		  "cvt.u64.u32 %x2, %r2; cvta.shared.u64 %x2, %x2;\n"
		  "ldmatrix.sync.aligned.m8n8.x4.b16 {%r2, %r11, %r12, %r13}, [%x2];\n"
		  "st.global.v4.u32 [%x1], {%r2, %r11, %r12, %r13};",
		  4, false);
	test_rows(
		"ldmatrix.x4.trans",
		"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r10, %r11, %r12, %r13}, [%r2];\n"
		"st.global.v4.u32 [%x1], {%r10, %r11, %r12, %r13};",
		4, true);
	test_rows("movmatrix",
		  "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];\n"
		  "movmatrix.sync.aligned.m8n8.trans.b16 %r11, %r10; st.global.u32 [%x1], %r11;",
		  1, true);
	test_rows(
		"stmatrix.trans turns what ldmatrix.trans has turned",
		"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r2]; bar.warp.sync -1;\n"
		"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r2], {%r10, %r11}; bar.warp.sync -1;\n"
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r12, %r13}, [%r2];\n"
		"st.global.v2.u32 [%x1], {%r12, %r13};",
		2, false);
}

/* ---- together, and faults ----------------------------------------------------------------------- */

/* Both halves of the warp come from elsewhere, one much later, and call the function from two places. */
static const char apart_text[] =
	".func (.reg .b32 %o) once(.reg .b32 %i)\n{\n.reg .b32 %z<4>; mov.u32 %z0, 0;\n"
	"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%o, %z1}, {%i}, {%i}, {%z0, %z0}; ret;\n}\n"
	".visible .entry k(.param .u64 out)\n{\n.reg .b64 %x<4>; .reg .b32 %r<9>; .reg .pred %p;\n"
	"ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %x1, %r0, 4, %x0; mov.u32 %r1, 0x01010101;\n"
	"setp.lt.u32 %p, %r0, 16; @%p bra LOW; mov.u32 %r3, 0;\n"
	"LATE: add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 3000; @%p bra LATE; call (%r2), once, (%r1); bra END;\n"
	"LOW: call (%r2), once, (%r1);\n"
	"END: st.global.u32 [%x1], %r2; ret;\n}\n";

static void test_together(void)
{
	u32 n_wrong = 0;
	u32 *out;

	kit_reset();
	out = kit_alloc(256);
	run(apart_text, out, LANES);
	for (u32 l = 0; l < LANES; l++)
		n_wrong += out[l] != 16;
	kit_check(!n_wrong, "lanes that come to mma on two ways, from two calls: %u wrong",
		  n_wrong);
}

static void check_fault(const char *what, const char *body, int fault)
{
	char text[1024];
	struct exec_progress p;

	kit_reset();
	snprintf(text, sizeof(text), "%s%s\nret;\n}\n", rows_head, body);
	p = run(text, kit_alloc(256), LANES);
	kit_check(p.done && p.fault == fault, "%s: %d (%s)", what, p.fault, p.message);
}

int main(void)
{
	kit_init();
	for (size_t i = 0; i < sizeof(multiplications) / sizeof(multiplications[0]); i++)
		test_multiplication(&multiplications[i]);
	test_all_quads();
	test_saturation();
	test_rounding();
	test_directions();
	for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++)
		test_tile(&tiles[i]);
	test_all_rows();
	test_together();
	check_fault("ldmatrix of a row that is not aligned",
		    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2+8];",
		    EXEC_FAULT_MISALIGNED);
	check_fault(
		"wmma.store to nowhere",
		"wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [64], {%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0};",
		EXEC_FAULT_ADDRESS);
	return kit_result();
}
