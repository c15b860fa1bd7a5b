/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces: places, edges, filters and formats, against the formulas of the CUDA
 * programming guide.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/exec/half.h"
#include "softgpu/exec/test-kit.h"
#include "softgpu/exec/texture.h"

#define N_PLACES 64
#define WIDTH	 7
#define HEIGHT	 5
#define DEPTH	 3

/* ---- one texture, found by one handle ----------------------------------------------------------- */

#define HANDLE 0x1234567890

static struct exec_texture texture;

static const struct exec_texture *find(uint64_t handle)
{
	return handle == HANDLE ? &texture : NULL;
}

static f32 texels[DEPTH][HEIGHT][WIDTH];

/* A texture of one float an element, of so many axes. */
static void make_texture(u32 n_axes)
{
	u32 height = n_axes > 1 ? HEIGHT : 1, depth = n_axes > 2 ? DEPTH : 1;
	f32 *memory = kit_alloc(sizeof(texels));

	for (u32 z = 0; z < DEPTH; z++) {
		for (u32 y = 0; y < HEIGHT; y++) {
			for (u32 x = 0; x < WIDTH; x++)
				texels[z][y][x] = (f32)(1 + x * x + 10 * y * y + 100 * z * z);
		}
	}
	memcpy(memory, texels, sizeof(texels));
	texture = (struct exec_texture){
		.n_levels = 1,
		.format = EXEC_FORMAT_F32,
		.n_channels = 1,
		.is_float = true,
		.border = { -7, 0, 0, 0 },
	};
	texture.levels[0] = (struct exec_texels){
		.addr = (u64)(uintptr_t)memory,
		.pitch = WIDTH * 4,
		.slice = WIDTH * HEIGHT * 4,
		.width = WIDTH,
		.height = height,
		.depth = depth,
	};
}

/* ---- kernels ------------------------------------------------------------------------------------ */

/* Thread i reads four words of the place i and writes four words of the result. */
static const char head[] =
	".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 object)\n{\n"
	".reg .b64 %x<6>; .reg .b32 %r<9>; .reg .f32 %f<20>; .reg .b16 %h<9>;\n"
	"ld.param.u64 %x0, [out]; ld.param.u64 %x1, [in]; ld.param.u64 %x2, [object];\n"
	"mov.u32 %r0, %tid.x; mad.wide.u32 %x0, %r0, 16, %x0; mad.wide.u32 %x1, %r0, 16, %x1;\n"
	"ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x1]; ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%x1];\n"
	"mov.f32 %f8, 0f00000000; mov.f32 %f9, %f8; mov.f32 %f10, %f8; mov.f32 %f11, %f8;\n";
static const char tail[] = "st.global.v4.f32 [%x0], {%f8, %f9, %f10, %f11}; ret;\n}\n";

static struct exec_progress run(const char *body, f32 (*out)[4], f32 (*in)[4], u32 n)
{
	struct kit_run more = { .block = n };
	struct exec_progress p;
	f32(*memory)[4] = kit_alloc(2 * N_PLACES * sizeof(*memory));
	char text[4096];

	memcpy(memory + N_PLACES, in, n * sizeof(*in));
	snprintf(text, sizeof(text), "%s%s\n%s", head, body, tail);
	more.image = kit_image(text);
	more.params[0] = (u64)(uintptr_t)memory;
	more.params[1] = (u64)(uintptr_t)(memory + N_PLACES);
	more.params[2] = HANDLE;
	p = kit_run(&more);
	memcpy(out, memory, n * sizeof(*out));
	exec_image_free(more.image);
	return p;
}

/* ---- places and edges --------------------------------------------------------------------------- */

static const char *const sample_axes[] = {
	"",
	"tex.1d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0}];",
	"tex.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1}];",
	"tex.3d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1, %f2, %f3}];",
};
static const char *const address_names[] = { "wrap", "clamp", "mirror", "border" };

/* A coordinate as an element's number; edges as the guide's table of address modes has them. */
static f64 moved(f64 x, u32 n, enum exec_address address, bool normalized)
{
	if (!normalized)
		return x;
	if (address == EXEC_ADDRESS_WRAP)
		x = x - floor(x);
	else if (address == EXEC_ADDRESS_MIRROR)
		x = fmod(floor(x), 2) == 0 ? x - floor(x) : 1 - (x - floor(x));
	return x * n;
}

/* An element that may be beyond the edge. */
static bool number(s64 *i, u32 n, enum exec_address address, bool normalized)
{
	if (address == EXEC_ADDRESS_BORDER)
		return *i >= 0 && *i < n;
	if (address == EXEC_ADDRESS_WRAP && normalized)
		*i = (*i + n) % n;
	else
		*i = *i < 0 ? 0 : *i >= n ? n - 1 : *i;
	return true;
}

static f64 element(const s64 at[3], const u32 sizes[3])
{
	s64 i[3] = { at[0], at[1], at[2] };

	for (u32 axis = 0; axis < 3; axis++) {
		if (sizes[axis] > 1 &&
		    !number(&i[axis], sizes[axis], (enum exec_address)texture.address[axis],
			    texture.normalized))
			return (f64)texture.border[0];
	}
	return (f64)texels[i[2]][i[1]][i[0]];
}

static f64 expected(const f32 place[4], u32 n_axes)
{
	const u32 sizes[3] = { WIDTH, n_axes > 1 ? HEIGHT : 1, n_axes > 2 ? DEPTH : 1 };
	s64 low[3] = { 0 };
	f64 fraction[3] = { 0 }, sum = 0;

	for (u32 axis = 0; axis < n_axes; axis++) {
		f64 x = moved((f64)place[axis], sizes[axis],
			      (enum exec_address)texture.address[axis], texture.normalized);

		if (texture.linear)
			x -= 0.5;
		low[axis] = (s64)floor(x);
		fraction[axis] = texture.linear ? round((x - floor(x)) * 256) / 256 : 0;
	}
	for (u32 corner = 0; corner < 8; corner++) {
		f64 weight = 1;
		s64 at[3];

		for (u32 axis = 0; axis < 3; axis++) {
			bool up = corner >> axis & 1;

			weight *= up ? fraction[axis] : 1 - fraction[axis];
			at[axis] = low[axis] + up;
		}
		if (weight > 0)
			sum += weight * element(at, sizes);
	}
	return sum;
}

/* Places of an irregular raster from far below to far above. */
static void choose_places(f32 (*in)[4], bool normalized)
{
	for (u32 i = 0; i < N_PLACES; i++) {
		for (u32 axis = 0; axis < 3; axis++) {
			f32 v = (f32)((i * (axis + 3) * 37) % N_PLACES) / N_PLACES * 15.0f - 4.0f +
				0.013f * (f32)i;

			in[i][axis] = normalized ? v / 6.0f : v;
		}
		in[i][3] = 0;
	}
}

static void test_places(u32 n_axes, enum exec_address address, bool normalized, bool linear)
{
	f32 in[N_PLACES][4], out[N_PLACES][4];
	struct exec_progress p;
	u32 n_wrong = 0;

	kit_reset();
	make_texture(n_axes);
	texture.linear = linear;
	texture.normalized = normalized;
	memset(texture.address, address, sizeof(texture.address));
	choose_places(in, normalized);
	p = run(sample_axes[n_axes], out, in, N_PLACES);
	for (u32 i = 0; i < N_PLACES; i++) {
		f64 want = expected(in[i], n_axes);
		/* Mirrored, a fraction may be rounded to the other side. */
		f64 room = address == EXEC_ADDRESS_MIRROR && linear ? 0.5 : fabs(want) * 0x1p-22;

		n_wrong += fabs((f64)out[i][0] - want) > room || out[i][1] != 0;
	}
	kit_check(p.done && !p.fault && !n_wrong, "%ud, %s, %s, %s: %u wrong %s", n_axes,
		  address_names[address], normalized ? "normalised" : "by elements",
		  linear ? "linear" : "points", n_wrong, p.message);
}

static void test_all_places(void)
{
	for (u32 n_axes = 1; n_axes <= 3; n_axes++) {
		for (u32 i = 0; i < 16; i++)
			test_places(n_axes, (enum exec_address)(i & 3), i & 4, i & 8);
	}
}

/* ---- other instructions ------------------------------------------------------------------------- */

static void test_one(const char *what, const char *body, const f32 place[4], const f32 want[4])
{
	f32 in[N_PLACES][4] = { 0 }, out[N_PLACES][4] = { 0 };
	struct exec_progress p;

	memcpy(in[0], place, sizeof(in[0]));
	p = run(body, out, in, 1);
	kit_check(p.done && !p.fault && !memcmp(out[0], want, sizeof(out[0])), "%s: %g %g %g %g %s",
		  what, (f64)out[0][0], (f64)out[0][1], (f64)out[0][2], (f64)out[0][3], p.message);
}

#define PLACE(...) ((const f32[4]){ __VA_ARGS__ })

static void test_kinds(void)
{
	kit_reset();
	make_texture(3);
	test_one("tex with whole coordinates",
		 "cvt.rzi.s32.f32 %r4, %f0; cvt.rzi.s32.f32 %r5, %f1;\n"
		 "tex.2d.v4.f32.s32 {%f8, %f9, %f10, %f11}, [%x2, {%r4, %r5}];",
		 PLACE(3, 2), PLACE(texels[0][2][3]));
	texture.is_layered = true;
	test_one(
		"tex.a2d of layer 2",
		"mov.u32 %r4, 2; tex.a2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%r4, %f0, %f1, %f1}];",
		PLACE(3.5f, 2.5f), PLACE(texels[2][2][3]));
	texture.is_layered = false;
	test_one("tld4.r goes around from the lower left",
		 "tld4.r.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1}];", PLACE(3, 2),
		 PLACE(texels[0][2][2], texels[0][2][3], texels[0][1][3], texels[0][1][2]));
	texture.is_buffer = true;
	test_one("a line is zero outside",
		 "mov.u32 %r4, 7; tex.1d.v4.f32.s32 {%f8, %f9, %f10, %f11}, [%x2, {%r4}];",
		 PLACE(0), PLACE(0));
	test_one("txq",
		 "txq.width.b32 %r4, [%x2]; txq.height.b32 %r5, [%x2]; cvt.rn.f32.u32 %f8, %r4;\n"
		 "cvt.rn.f32.u32 %f9, %r5;",
		 PLACE(0), PLACE(WIDTH, HEIGHT));
}

/* Level l is half as large as the one before it, and 100 * l everywhere. */
static void test_levels(void)
{
	kit_reset();
	make_texture(2);
	texture.n_levels = 3;
	texture.most_level = 9;
	texture.normalized = true;
	for (u32 l = 0; l < 3; l++) {
		f32 *memory = kit_alloc(64 * 4);

		for (u32 i = 0; i < 64; i++)
			memory[i] = (f32)(100 * l);
		texture.levels[l] =
			(struct exec_texels){ (u64)(uintptr_t)memory, 32, 256, 8 >> l, 8 >> l, 1 };
	}
#define LEVEL "tex.level.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1}], %f2;"
	test_one("tex.level takes the nearest level", LEVEL, PLACE(0.5f, 0.5f, 1.4f), PLACE(100));
	test_one("tex.level beyond the last", LEVEL, PLACE(0.5f, 0.5f, 7), PLACE(200));
	texture.linear_levels = true;
	test_one("tex.level mixes two levels", LEVEL, PLACE(0.5f, 0.5f, 1.25f), PLACE(125));
	texture.bias = 0.5f;
	test_one("tex.level with a bias", LEVEL, PLACE(0.5f, 0.5f, 1.25f), PLACE(175));
	texture.bias = 0;
	test_one(
		"tex.grad: two elements a step are level 1",
		"mov.f32 %f4, 0f3e800000; mov.f32 %f5, 0f00000000;\n"
		"tex.grad.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1}], {%f4, %f5}, {%f5, %f5};",
		PLACE(0.5f, 0.5f), PLACE(100));
	test_one("tex of a mipmapped texture reads the first",
		 "tex.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1}];", PLACE(0.5f, 0.5f),
		 PLACE(0));
}

/* Each face has its number. */
/* Faces of so many elements a side, which are numbered one after the other. */
static void texture_cubes(u32 side, u32 n_faces)
{
	u32 n = side * side * n_faces;
	f32 *memory;

	kit_reset();
	memory = kit_alloc(n * 4);
	for (u32 i = 0; i < n; i++)
		memory[i] = (f32)i;
	texture = (struct exec_texture){
		.n_levels = 1,
		.format = EXEC_FORMAT_F32,
		.n_channels = 1,
		.is_float = true,
		.normalized = true,
		.is_layered = true,
	};
	texture.levels[0] = (struct exec_texels){
		(u64)(uintptr_t)memory, side * 4, side * side * 4, side, side, n_faces
	};
}

static void test_cube(void)
{
	static const f32 directions[6][4] = { { 2, 0.5f, -1 },	{ -2, 0.5f, -1 }, { 0.5f, 2, -1 },
					      { 0.5f, -2, -1 }, { 0.5f, 1, 2 },	  { 0.5f, 1, -2 } };

	texture_cubes(1, 12);
	for (u32 face = 0; face < 6; face++) {
		test_one("tex.cube finds the face",
			 "tex.cube.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1, %f2, %f3}];",
			 directions[face], PLACE((f32)face));
		test_one(
			"tex.acube finds it in the second cube",
			"mov.u32 %r4, 1; tex.acube.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%r4, %f0, %f1, %f2}];",
			directions[face], PLACE((f32)(6 + face)));
	}
}

/* The middle of each face, of four elements. */
static void test_cube_gather(void)
{
	static const f32 directions[6][4] = { { 1, 0, 0 },  { -1, 0, 0 }, { 0, 1, 0 },
					      { 0, -1, 0 }, { 0, 0, 1 },  { 0, 0, -1 } };

	texture_cubes(2, 6);
	for (u32 face = 0; face < 6; face++) {
		f32 first = (f32)(4 * face);

		test_one(
			"tld4.cube goes around on a face",
			"tld4.r.cube.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0, %f1, %f2, %f3}];",
			directions[face], PLACE(first + 2, first + 3, first + 1, first));
	}
}

/* ---- formats ------------------------------------------------------------------------------------ */

static const struct {
	const char *what;
	u8 format, n_channels;
	bool is_float, srgb;
	u8 bytes[8];
	f32 want[4];
} formats[] = {
	{ "bytes as floats",
	  EXEC_FORMAT_U8,
	  4,
	  true,
	  false,
	  { 0, 255, 51, 102 },
	  { 0, 1, 0.2f, 0.4f } },
	{ "signed bytes as floats", EXEC_FORMAT_S8, 2, true, false, { 0x80, 127 }, { -1, 1 } },
	{ "16 bits as floats", EXEC_FORMAT_U16, 2, true, false, { 0xff, 0xff, 0, 0 }, { 1, 0 } },
	{ "signed 16 bits as floats", EXEC_FORMAT_S16, 1, true, false, { 0x01, 0x80 }, { -1 } },
	{ "halves", EXEC_FORMAT_F16, 2, true, false, { 0, 0x3c, 0, 0xc0 }, { 1, -2 } },
	{ "sRGB", EXEC_FORMAT_U8, 4, true, true, { 255, 0, 0, 51 }, { 1, 0, 0, 0.2f } },
	{ "bytes", EXEC_FORMAT_U8, 4, false, false, { 1, 2, 3, 255 }, { 1, 2, 3, 255 } },
	{ "signed bytes", EXEC_FORMAT_S8, 2, false, false, { 0xff, 5 }, { -1, 5 } },
	{ "signed 16 bits", EXEC_FORMAT_S16, 1, false, false, { 0, 0x80 }, { -32768 } },
	{ "words", EXEC_FORMAT_S32, 2, false, false, { 0xfe, 0xff, 0xff, 0xff, 9 }, { -2, 9 } },
};

static void test_formats(void)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		u8 *memory;

		kit_reset();
		memory = kit_alloc(16);
		memcpy(memory, formats[i].bytes, sizeof(formats[i].bytes));
		texture = (struct exec_texture){
			.n_levels = 1,
			.format = formats[i].format,
			.n_channels = formats[i].n_channels,
			.is_float = formats[i].is_float,
			.is_srgb = formats[i].srgb,
		};
		texture.levels[0] = (struct exec_texels){ (u64)(uintptr_t)memory, 16, 16, 1, 1, 1 };
		test_one(
			formats[i].what,
			formats[i].is_float
				? "tex.1d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x2, {%f0}];"
				: "tex.1d.v4.s32.f32 {%r4, %r5, %r6, %r7}, [%x2, {%f0}]; cvt.rn.f32.s32 %f8, %r4;\n"
				  "cvt.rn.f32.s32 %f9, %r5; cvt.rn.f32.s32 %f10, %r6; cvt.rn.f32.s32 %f11, %r7;",
			PLACE(0), formats[i].want);
	}
}

/* A fifth is no half: it is rounded. */
static void test_halves(void)
{
	f32 fifth = half_to_float(half_from_double(51.0 / 255, PTX_RN));
	f32 two = half_to_float(half_from_double(102.0 / 255, PTX_RN));
	static const u8 bytes[4] = { 0, 255, 51, 102 };
	u8 *memory;

	kit_reset();
	memory = kit_alloc(16);
	memcpy(memory, bytes, sizeof(bytes));
	texture = (struct exec_texture){
		.n_levels = 1,
		.format = EXEC_FORMAT_U8,
		.n_channels = 4,
		.is_float = true,
	};
	texture.levels[0] = (struct exec_texels){ (u64)(uintptr_t)memory, 16, 16, 1, 1, 1 };
	test_one("tex gives halves",
		 "tex.1d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%x2, {%f0}]; cvt.f32.f16 %f8, %h0;\n"
		 "cvt.f32.f16 %f9, %h1; cvt.f32.f16 %f10, %h2; cvt.f32.f16 %f11, %h3;",
		 PLACE(0), PLACE(0, 1, fifth, two));
	test_one("tex gives pairs of halves",
		 "tex.1d.v2.f16x2.f32 {%r4, %r5}, [%x2, {%f0}]; mov.b32 {%h0, %h1}, %r4;\n"
		 "mov.b32 {%h2, %h3}, %r5; cvt.f32.f16 %f8, %h0; cvt.f32.f16 %f9, %h1;\n"
		 "cvt.f32.f16 %f10, %h2; cvt.f32.f16 %f11, %h3;",
		 PLACE(0), PLACE(0, 1, fifth, two));
}

/* ---- surfaces ----------------------------------------------------------------------------------- */

static void test_surfaces(void)
{
	const f32 *memory;

	kit_reset();
	make_texture(3);
	memory = (const f32 *)(uintptr_t)texture.levels[0].addr;
	test_one("suld reads at a byte",
		 "mov.u32 %r4, 8; mov.u32 %r5, 3;\n"
		 "suld.b.2d.b32.trap {%r6}, [%x2, {%r4, %r5}]; mov.b32 %f8, %r6;",
		 PLACE(0), PLACE(texels[0][3][2]));
	test_one(
		"suld.v2 of 3d",
		"mov.u32 %r4, 8; mov.u32 %r5, 3; mov.u32 %r6, 1;\n"
		"suld.b.3d.v2.b32.trap {%r6, %r7}, [%x2, {%r4, %r5, %r6, %r6}]; mov.b32 %f8, %r6; mov.b32 %f9, %r7;",
		PLACE(0), PLACE(texels[1][3][2], texels[1][3][3]));
	test_one("suld outside, zero",
		 "mov.u32 %r4, -4; mov.u32 %r5, 3;\n"
		 "suld.b.2d.b32.zero {%r6}, [%x2, {%r4, %r5}]; mov.b32 %f8, %r6;",
		 PLACE(0), PLACE(0));
	test_one("suld outside, clamp",
		 "mov.u32 %r4, 400; mov.u32 %r5, -3;\n"
		 "suld.b.2d.b32.clamp {%r6}, [%x2, {%r4, %r5}]; mov.b32 %f8, %r6;",
		 PLACE(0), PLACE(texels[0][0][6]));
	test_one("sust.b16 and sust.a2d",
		 "mov.u32 %r4, 4; mov.u32 %r5, 2; mov.u32 %r6, 1; mov.u16 %h0, 0x4248;\n"
		 "sust.b.a2d.b32.trap [%x2, {%r6, %r4, %r5, %r5}], {%f0}; mov.u32 %r4, 2;\n"
		 "sust.b.2d.b16.trap [%x2, {%r4, %r5}], {%h0}; mov.u32 %r4, 4000;\n"
		 "sust.b.2d.b32.zero [%x2, {%r4, %r5}], {%f0};",
		 PLACE(77), PLACE(0));
	kit_check(memory[WIDTH * HEIGHT + 2 * WIDTH + 1] == 77 &&
			  float_bits(memory[2 * WIDTH]) >> 16 == 0x4248,
		  "what sust has written");
}

/* What is written at the second of three elements, from these words. */
static const struct {
	const char *what;
	u8 format, n_channels;
	const char *values, *vec;
	u8 want[8];
} stores[] = {
	{ "sust.p of bytes", EXEC_FORMAT_U8, 4, "{200, 300, 0, -1}", ".v4", { 200, 255, 0, 255 } },
	{ "sust.p of signed bytes", EXEC_FORMAT_S8, 2, "{-200, 100, 1, 1}", ".v4", { 0x80, 100 } },
	{ "sust.p of signed 16 bits",
	  EXEC_FORMAT_S16,
	  2,
	  "{-2, 99999}",
	  ".v2",
	  { 0xfe, 0xff, 0xff, 0x7f } },
	{ "sust.p of halves",
	  EXEC_FORMAT_F16,
	  2,
	  "{0x3f800000, 0xc0000000}",
	  ".v2",
	  { 0, 0x3c, 0, 0xc0 } },
	{ "sust.p of words", EXEC_FORMAT_U32, 1, "0x12345678", "", { 0x78, 0x56, 0x34, 0x12 } },
	{ "sust.p of less than there is",
	  EXEC_FORMAT_U16,
	  4,
	  "{7, 70000}",
	  ".v2",
	  { 7, 0, 255, 255 } },
};

static void test_formatted_stores(void)
{
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		u32 element = stores[i].n_channels * exec_format_bytes(stores[i].format);
		f32 in[1][4] = { 0 }, out[1][4];
		struct exec_progress p;
		u8 *memory, expected[24];
		char body[256];

		kit_reset();
		memory = kit_alloc(sizeof(expected));
		memset(memory, 0xaa, sizeof(expected));
		memcpy(expected, memory, sizeof(expected));
		memcpy(expected + element, stores[i].want, element);
		texture = (struct exec_texture){
			.n_levels = 1,
			.format = stores[i].format,
			.n_channels = stores[i].n_channels,
		};
		texture.levels[0] = (struct exec_texels){ (u64)(uintptr_t)memory, 24, 24, 3, 1, 1 };
		snprintf(body, sizeof(body),
			 "mov.u32 %%r4, 1; sust.p.1d%s.b32.trap [%%x2, {%%r4}], %s;\n"
			 "sust.p.1d%s.b32.zero [%%x2, {3}], %s;",
			 stores[i].vec, stores[i].values, stores[i].vec, stores[i].values);
		p = run(body, out, in, 1);
		kit_check(p.done && !p.fault && !memcmp(memory, expected, sizeof(expected)), "%s%s",
			  stores[i].what, p.message);
	}
}

static void check_fault(const char *what, const char *body, int fault)
{
	f32 in[N_PLACES][4] = { 0 }, out[N_PLACES][4];
	struct exec_progress p = run(body, out, in, 1);

	kit_check(p.done && p.fault == fault, "%s: %d (%s)", what, p.fault, p.message);
}

static void test_faults(void)
{
	kit_reset();
	make_texture(2);
	check_fault("suld outside, trap",
		    "mov.u32 %r4, 28; suld.b.1d.b32.trap {%r6}, [%x2, {%r4}];", EXEC_FAULT_TRAP);
	check_fault("sust between elements",
		    "mov.u32 %r4, 2; sust.b.1d.b32.trap [%x2, {%r4}], {%r4};",
		    EXEC_FAULT_MISALIGNED);
	check_fault("a number that is no texture",
		    "mov.u64 %x3, 5; tex.1d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%x3, {%f0}];",
		    EXEC_FAULT_ADDRESS);
	texture.levels[0].addr = 4096;
	check_fault("a texture whose memory is gone", sample_axes[2], EXEC_FAULT_ADDRESS);
}

int main(void)
{
	kit_init();
	exec_find_texture = find;
	exec_find_surface = find;
	test_all_places();
	test_kinds();
	test_levels();
	test_cube();
	test_cube_gather();
	test_formats();
	test_halves();
	test_surfaces();
	test_formatted_stores();
	test_faults();
	return kit_result();
}
