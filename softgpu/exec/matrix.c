/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lanes of a warp do with a matrix that they hold together: wmma, mma, ldmatrix and their kin.
 *
 * All of mma's layouts are one. A matrix is made of tiles of eight rows; lane l has a run of elements of
 * row l / 4 of each tile, the one that begins at column l % 4 * run; tiles follow each other down the
 * rows first. Four runs make a tile's width:
 *
 *	a of m16n8k16, halves, run 2		tile 0: columns 0 to 7	tile 2: columns 8 to 15
 *	   rows 0 to 7				l0 l0 l1 l1 l2 l2 l3 l3	l0 l0 l1 l1 ...
 *						l4 l4 l5 l5 ...
 *	   rows 8 to 15				tile 1			tile 3
 *
 * b is kept by its columns, so that it looks like a. Where the layout is not told, as for wmma, it is
 * the same. Elements that wmma has more than once follow each other, and only the first are read.
 *
 * The four matrices of m8n8k4 lie below each other, each with lanes 4 * i to 4 * i + 3 and those 16 further
 * on, which have the lower half of its rows, or of what are its rows in b.
 *
 * Products of 16-bit floats and tf32 are exact in a double, and so is nearly every sum of them: a result
 * is rounded once. The manual asks for the precision of float only. Doubles are fused one by one.
 */
#include <math.h>
#include <xmmintrin.h>

#include "softgpu/exec/access.h"
#include "softgpu/exec/half.h"

#define MAX_ELEMENTS (16 * 64)

/* The registers of each lane, wherever its fragment of the warp is. */
struct lanes {
	u8 *base[LANES][2];
	u32 there;
};

static void lanes_find(struct warp *w, const struct insn *in, u32 there, struct lanes *ret)
{
	ret->there = there;
	for (u32 l = 0; l < LANES; l++) {
		ret->base[l][0] = w->base[0];
		ret->base[l][1] = w->base[1];
	}
	/* Nobody waits if all have come at once. */
	for (u32 i = 0; i < w->n_fragments; i++) {
		const struct fragment *f = &w->fragments[i];

		if (f->state != FRAGMENT_WARP_SYNC || f->wait != in)
			continue;
		FOR_LANES(l, f->mask) {
			ret->base[l][0] = f->frame->regs;
			ret->base[l][1] = f->frame->code->constants;
		}
	}
}

static u8 *lane_register(const struct lanes *at, u32 operand, u32 lane, u32 bytes)
{
	return at->base[lane][operand & OPERAND_CONST] + (operand & ~OPERAND_CONST) + lane * bytes;
}

/* ---- elements ----------------------------------------------------------------------------------- */

static u32 n_elements(const struct fragment_shape *s)
{
	return (u32)s->rows * s->cols / LANES;
}

/* The same of one of four matrices of eight rows. */
static u32 quad_place(const struct fragment_shape *s, u32 lane, u32 e)
{
	u32 first = lane % 16 / 4 * 8 + lane / 16 * 4;

	switch (s->layout) {
	case PTX_LAYOUT_ROWS:
		return (first + lane % 4) * s->cols + e;
	case PTX_LAYOUT_COLS:
		return (first + e) * s->cols + lane % 4;
	default:
		return (first + (lane & 1) + (e & 2)) * s->cols + (e & 4) + (lane & 2) + (e & 1);
	}
}

/* Which element of the matrix, row by row, is a lane's number @e? */
static u32 element_place(const struct fragment_shape *s, u32 lane, u32 e)
{
	u32 tile = e / s->run, down = s->rows / 8u;
	u32 row = lane / 4 + 8 * (tile % down);
	u32 col = lane % 4 * s->run + e % s->run + 4 * s->run * (tile / down);

	return s->layout == PTX_LAYOUT_TILES ? row * s->cols + col : quad_place(s, lane, e);
}

static u64 element_mask(const struct fragment_shape *s)
{
	return s->bits < 64 ? (UINT64_C(1) << s->bits) - 1 : UINT64_MAX;
}

static void gather(const struct lanes *at, const struct fragment_shape *s, u64 *ret)
{
	u32 per = 8u * s->reg_bytes / s->bits, n = n_elements(s);
	u64 mask = element_mask(s);

	for (u32 l = 0; l < LANES; l++) {
		for (u32 e = 0; e < n; e++) {
			u64 v = 0;

			if (at->there >> l & 1)
				memcpy(&v, lane_register(at, s->regs[e / per], l, s->reg_bytes),
				       s->reg_bytes);
			ret[element_place(s, l, e)] = v >> (e % per * s->bits) & mask;
		}
	}
}

/* Every register of the lanes that are there, with repeated elements where it has more than there are. */
static void scatter(const struct lanes *at, const struct fragment_shape *s, const u64 *values)
{
	u32 per = 8u * s->reg_bytes / s->bits, n = n_elements(s);

	FOR_LANES(l, at->there) {
		for (u32 r = 0; r < s->n_regs; r++) {
			u64 v = 0;

			for (u32 i = 0; i < per; i++)
				v |= values[element_place(s, l, (r * per + i) % n)]
				     << (i * s->bits);
			memcpy(lane_register(at, s->regs[r], l, s->reg_bytes), &v, s->reg_bytes);
		}
	}
}

/* ---- multiplication ----------------------------------------------------------------------------- */

static f64 as_double(u8 type, u64 bits)
{
	switch (type) {
	case PTX_F16:
		return (f64)half_to_float((u16)bits);
	case PTX_BF16:
		return (f64)bfloat_to_float((u16)bits);
	case PTX_TF32:
		/* The lower 13 bits are not there. */
		return (f64)float_of_bits((u32)bits & ~0x1fffu);
	case PTX_F32:
		return (f64)float_of_bits((u32)bits);
	default:
		return double_of_bits(bits);
	}
}

static u64 from_double(u8 type, f64 v)
{
	if (type == PTX_F16)
		return half_from_double(v, PTX_RN);
	if (type == PTX_F32)
		return v != v ? 0x7fffffff : float_bits((f32)v);
	return double_bits(v);
}

/* As the host's own instructions round while this is set; returns what to put back. */
static u32 set_rounding(u8 round)
{
	u32 before = _mm_getcsr();

	_mm_setcsr((before & ~0x6000u) | (round == PTX_RM   ? 0x2000
					  : round == PTX_RP ? 0x4000
					  : round == PTX_RZ ? 0x6000
							    : 0));
	return before;
}

__attribute__((noinline)) /* the rounding is set around it */
static void
multiply_floats(const struct matrix *m, const u64 *a, const u64 *b, const u64 *c, u64 *d)
{
	f64 x[MAX_ELEMENTS], y[MAX_ELEMENTS];
	u32 k = m->a.cols;

	for (u32 i = 0; i < m->a.rows * k; i++)
		x[i] = as_double(m->a.type, a[i]);
	for (u32 i = 0; i < m->b.rows * k; i++)
		y[i] = as_double(m->b.type, b[i]);
	for (u32 row = 0; row < m->d.rows; row++) {
		for (u32 col = 0; col < m->d.cols; col++) {
			/* Of four matrices, that one's columns. */
			u32 first = m->b.rows > m->d.cols ? row / 8 * 8 : 0;
			const f64 *p = &x[row * k], *q = &y[(first + col) * k];
			f64 sum = as_double(m->c.type, c[row * m->d.cols + col]);

			for (u32 i = 0; i < k; i++)
				sum = m->d.type == PTX_F64 ? fma(p[i], q[i], sum)
							   : sum + p[i] * q[i];
			d[row * m->d.cols + col] = from_double(m->d.type, sum);
		}
	}
}

static s64 as_integer(u8 type, u64 bits)
{
	switch (type) {
	case PTX_S8:
		return (s8)bits;
	case PTX_S4:
		return (s64)(bits ^ 8) - 8;
	case PTX_S32:
		return (s32)bits;
	default:
		return (s64)bits;
	}
}

static s64 product(const struct matrix *m, u64 a, u64 b)
{
	if (m->a.type == PTX_B1)
		return __builtin_popcount((u32)(m->bop == PTX_BOP_AND ? a & b : a ^ b));
	return as_integer(m->a.type, a) * as_integer(m->b.type, b);
}

static void multiply_integers(const struct matrix *m, const u64 *a, const u64 *b, const u64 *c,
			      u64 *d)
{
	u32 k = m->a.cols;

	for (u32 row = 0; row < m->d.rows; row++) {
		for (u32 col = 0; col < m->d.cols; col++) {
			s64 sum = as_integer(PTX_S32, c[row * m->d.cols + col]);

			for (u32 i = 0; i < k; i++)
				sum += product(m, a[row * k + i], b[col * k + i]);
			if (m->satfinite)
				sum = sum < INT32_MIN	? INT32_MIN
				      : sum > INT32_MAX ? INT32_MAX
							: sum;
			d[row * m->d.cols + col] = (u32)sum;
		}
	}
}

int matrix_multiply(struct warp *w, const struct insn *in, u32 mask)
{
	u64 a[MAX_ELEMENTS], b[MAX_ELEMENTS], c[MAX_ELEMENTS], d[MAX_ELEMENTS];
	const struct matrix *m = in->matrix;
	struct lanes at;

	u32 control;

	lanes_find(w, in, mask, &at);
	gather(&at, &m->a, a);
	gather(&at, &m->b, b);
	gather(&at, &m->c, c);
	control = set_rounding(m->round);
	if (m->d.type == PTX_S32)
		multiply_integers(m, a, b, c, d);
	else
		multiply_floats(m, a, b, c, d);
	_mm_setcsr(control);
	scatter(&at, &m->d, d);
	return RUN_ON;
}

/* ---- memory ------------------------------------------------------------------------------------- */

static u64 lane_address(const struct lanes *at, const struct insn *in, u32 lane)
{
	u64 a = 0;
	u32 bytes = in->flags & INSN_WIDE_ADDRESS ? 8 : 4;

	memcpy(&a, lane_register(at, in->op[0], lane, bytes), bytes);
	a += in->matrix->offset;
	if (bytes == 4)
		a = (u32)a;
	return in->space == PTX_SPACE_SHARED && a < WINDOW_BYTES ? SHARED_WINDOW + a : a;
}

static u8 *checked(struct warp *w, u32 lane, u64 addr, u32 size, bool write)
{
	u64 addresses[LANES];

	if (addr & (size - 1)) {
		for (u32 l = 0; l < LANES; l++)
			addresses[l] = addr;
		exec_fault_misaligned(w, addresses, 1u << lane, size);
	}
	return access_lane(w, addr, lane, size, write);
}

/* Between memory and registers, in pieces that are in one piece on both sides. */
static void transfer(struct warp *w, const struct insn *in, const struct lanes *at, bool write)
{
	const struct matrix *m = in->matrix;
	const struct fragment_shape *s = &m->d;
	u32 per = m->by_cols ? 1 : 8u * s->reg_bytes / s->bits, size = per * s->bits / 8,
	    n = n_elements(s);
	u32 pieces = 8u * s->reg_bytes / s->bits / per;
	u32 unit = s->type == PTX_B1 ? 1 : s->bits; /* of the stride */

	FOR_LANES(l, at->there) {
		u64 base = lane_address(at, in, l);
		u32 stride;

		memcpy(&stride, lane_register(at, in->op[1], l, 4), 4);
		for (u32 p = 0; p < s->n_regs * pieces; p++) {
			u32 place = element_place(s, l, p * per % n), row = place / s->cols,
			    col = place % s->cols;
			u64 bit = m->by_cols ? ((u64)col * stride + row) * s->bits
					     : (u64)row * stride * unit + col * s->bits;
			u8 *memory = checked(w, l, base + bit / 8, size, write);
			u8 *reg = lane_register(at, s->regs[p / pieces], l, s->reg_bytes) +
				  p % pieces * size;

			memcpy(write ? memory : reg, write ? reg : memory, size);
		}
	}
}

int matrix_load(struct warp *w, const struct insn *in, u32 mask)
{
	struct lanes at;

	lanes_find(w, in, mask, &at);
	transfer(w, in, &at, /* write= */ false);
	return RUN_ON;
}

int matrix_store(struct warp *w, const struct insn *in, u32 mask)
{
	struct lanes at;

	lanes_find(w, in, mask, &at);
	transfer(w, in, &at, /* write= */ true);
	return RUN_ON;
}

/* ---- eight rows of eight halves ----------------------------------------------------------------- */

#define SIDE 8

/* Where a lane's two halves are in the matrix, or in the transposed one. */
static u16 *half_of_lane(u16 rows[SIDE][SIDE], u32 lane, u32 i, bool transposed)
{
	u32 across = lane % 4 * 2 + i, down = lane / 4;

	return transposed ? &rows[across][down] : &rows[down][across];
}

static void rows_to_lanes(const struct lanes *at, u32 operand, u16 rows[SIDE][SIDE],
			  bool transposed)
{
	FOR_LANES(l, at->there) {
		u16 pair[2] = { *half_of_lane(rows, l, 0, transposed),
				*half_of_lane(rows, l, 1, transposed) };

		memcpy(lane_register(at, operand, l, 4), pair, sizeof(pair));
	}
}

static void rows_from_lanes(const struct lanes *at, u32 operand, u16 rows[SIDE][SIDE],
			    bool transposed)
{
	memset(rows, 0, SIDE * sizeof(*rows));
	FOR_LANES(l, at->there) {
		u16 pair[2];

		memcpy(pair, lane_register(at, operand, l, 4), sizeof(pair));
		*half_of_lane(rows, l, 0, transposed) = pair[0];
		*half_of_lane(rows, l, 1, transposed) = pair[1];
	}
}

/* Lane 8 * i + r names the place of row r of matrix i. */
static u8 *row_place(struct warp *w, const struct insn *in, const struct lanes *at, u32 i, u32 row,
		     bool write)
{
	u32 lane = SIDE * i + row;

	if (!(at->there >> lane & 1))
		return NULL;
	return checked(w, lane, lane_address(at, in, lane), SIDE * sizeof(u16), write);
}

int matrix_rows_load(struct warp *w, const struct insn *in, u32 mask)
{
	const struct matrix *m = in->matrix;
	u16 rows[4][SIDE][SIDE] = { 0 };
	struct lanes at;

	lanes_find(w, in, mask, &at);
	/* All of them first: a result may be the register with the addresses. */
	for (u32 i = 0; i < m->d.n_regs; i++) {
		for (u32 r = 0; r < SIDE; r++) {
			const u8 *from = row_place(w, in, &at, i, r, /* write= */ false);

			if (from)
				memcpy(rows[i][r], from, sizeof(rows[i][r]));
		}
	}
	for (u32 i = 0; i < m->d.n_regs; i++)
		rows_to_lanes(&at, m->d.regs[i], rows[i], m->by_cols);
	return RUN_ON;
}

int matrix_rows_store(struct warp *w, const struct insn *in, u32 mask)
{
	const struct matrix *m = in->matrix;
	u16 rows[SIDE][SIDE];
	struct lanes at;

	lanes_find(w, in, mask, &at);
	for (u32 i = 0; i < m->d.n_regs; i++) {
		rows_from_lanes(&at, m->d.regs[i], rows, m->by_cols);
		for (u32 r = 0; r < SIDE; r++) {
			u8 *to = row_place(w, in, &at, i, r, /* write= */ true);

			if (to)
				memcpy(to, rows[r], sizeof(rows[r]));
		}
	}
	return RUN_ON;
}

int matrix_transpose(struct warp *w, const struct insn *in, u32 mask)
{
	const struct matrix *m = in->matrix;
	u16 rows[SIDE][SIDE];
	struct lanes at;

	lanes_find(w, in, mask, &at);
	rows_from_lanes(&at, m->a.regs[0], rows, /* transposed= */ false);
	rows_to_lanes(&at, m->d.regs[0], rows, /* transposed= */ true);
	return RUN_ON;
}
