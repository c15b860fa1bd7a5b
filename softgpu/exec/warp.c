/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lanes of a warp do together: the second halves, when all that
 * belong to it have brought their values (barrier.c), and special registers.
 */
#include "softgpu/exec/block.h"
#include "softgpu/exec/image.h"
#include "softgpu/util/moment.h"

u64 exec_now_ns(void)
{
	return moment_now_ns(CLOCK_MONOTONIC);
}

/* ---- shfl -------------------------------------------------------------------------------------- */

/* The lane to read from; false if it is outside and the lane keeps its own value. */
static bool shfl_source(u8 mode, u32 lane, u32 b, u32 c, u32 *ret)
{
	u32 segment = c >> 8 & 31, most = (lane & segment) | (c & 31 & ~segment);
	u32 least = lane & segment;
	bool inside;
	u32 from;

	b &= 31;
	switch (mode) {
	case PTX_MODE_UP:
		from = lane - b;
		inside = (s32)from >= (s32)most;
		break;
	case PTX_MODE_DOWN:
		from = lane + b;
		inside = from <= most;
		break;
	case PTX_MODE_BFLY:
		from = lane ^ b;
		inside = from <= most;
		break;
	default:
		from = least | (b & ~segment);
		inside = from <= most;
		break;
	}
	*ret = inside ? from : lane;
	return inside;
}

static int shfl(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]), p = 0;

	FOR_LANES(l, mask) {
		u32 from;

		p |= (u32)shfl_source(in->mode, l, w->exchange_b[l], w->exchange_c[l], &from) << l;
		/* A lane that takes no part has no value: hardware leaves open which is read. */
		d[l] = (u32)w->exchange_a[w->members >> from & 1 ? from : l];
	}
	predicate_set(w, in->op[1], mask, p);
	return RUN_ON;
}

/* ---- vote, match, redux, elect ----------------------------------------------------------------- */

static u32 ballot(const struct warp *w)
{
	u32 bits = 0;

	FOR_LANES(l, w->members)
		bits |= (u32)(w->exchange_a[l] & 1) << l;
	return bits;
}

static int vote(struct warp *w, const struct insn *in, u32 mask)
{
	u32 yes = ballot(w);
	bool result = in->mode == PTX_MODE_ALL	 ? yes == w->members
		      : in->mode == PTX_MODE_ANY ? yes != 0
						 : yes == 0 || yes == w->members;

	predicate_set(w, in->op[0], mask, result ? ALL_LANES : 0);
	return RUN_ON;
}

static int vote_ballot(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]), yes = ballot(w);

	FOR_LANES(l, mask)
		d[l] = yes;
	return RUN_ON;
}

static u32 lanes_with(const struct warp *w, u64 value)
{
	u32 bits = 0;

	FOR_LANES(l, w->members)
		bits |= (u32)(w->exchange_a[l] == value) << l;
	return bits;
}

static int match_any(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]);

	FOR_LANES(l, mask)
		d[l] = lanes_with(w, w->exchange_a[l]);
	return RUN_ON;
}

static int match_all(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]);
	bool same = lanes_with(w, w->exchange_a[__builtin_ctz(w->members)]) == w->members;

	FOR_LANES(l, mask)
		d[l] = same ? w->members : 0;
	predicate_set(w, in->op[1], mask, same ? ALL_LANES : 0);
	return RUN_ON;
}

#define REDUX(name, T, expr)                                                                       \
	static int name(struct warp *w, const struct insn *in, u32 mask)                           \
	{                                                                                          \
		T *d = operand(w, in->op[0]);                                                      \
		T a = (T)w->exchange_a[__builtin_ctz(w->members)];                                 \
                                                                                                   \
		FOR_LANES(l, w->members & (w->members - 1)) {                                      \
			T b = (T)w->exchange_a[l];                                                 \
                                                                                                   \
			a = (T)(expr);                                                             \
		}                                                                                  \
		FOR_LANES(l, mask)                                                                 \
			d[l] = a;                                                                  \
		return RUN_ON;                                                                     \
	}
REDUX(redux_add, u32, a + b)
REDUX(redux_and, u32, a &b)
REDUX(redux_or, u32, a | b)
REDUX(redux_xor, u32, a ^ b)
REDUX(redux_min_u32, u32, a < b ? a : b)
REDUX(redux_max_u32, u32, a > b ? a : b)
REDUX(redux_min_s32, s32, a < b ? a : b)
REDUX(redux_max_s32, s32, a > b ? a : b)

/* f32: a number wins over NaN, unless .NaN says the contrary; flags as in the parsed instruction. */
static int redux_f32(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]), bits = 0;
	bool any = false, nan = false;
	f32 best = 0;

	FOR_LANES(l, w->members) {
		u32 v = (u32)w->exchange_a[l] & (in->imm & PTX_F_ABS ? INT32_MAX : UINT32_MAX);
		f32 f;

		memcpy(&f, &v, sizeof(f));
		if (f != f) {
			nan = true;
			continue;
		}
		if (!any || (in->bop == PTX_BOP_MIN ? f < best : f > best))
			best = f;
		any = true;
	}
	memcpy(&bits, &best, sizeof(bits));
	if (!any || (nan && (in->imm & PTX_F_NAN)))
		bits = 0x7fffffff;
	FOR_LANES(l, mask)
		d[l] = bits;
	return RUN_ON;
}

static int elect(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]), leader = (u32)__builtin_ctz(w->members);

	FOR_LANES(l, mask)
		d[l] = leader;
	predicate_set(w, in->op[1], mask, 1u << leader);
	return RUN_ON;
}

static int warp_barrier(_unused_ struct warp *w, _unused_ const struct insn *in, _unused_ u32 mask)
{
	return RUN_ON;
}

static exec_fn *find_redux(const struct ptx_insn *in)
{
	bool is_signed = in->type == PTX_S32;

	if (in->type == PTX_F32)
		return redux_f32;
	switch (in->bop) {
	case PTX_BOP_ADD:
		return redux_add;
	case PTX_BOP_AND:
		return redux_and;
	case PTX_BOP_OR:
		return redux_or;
	case PTX_BOP_XOR:
		return redux_xor;
	case PTX_BOP_MIN:
		return is_signed ? redux_min_s32 : redux_min_u32;
	default:
		return is_signed ? redux_max_s32 : redux_max_u32;
	}
}

exec_fn *find_warp_op(const struct ptx_insn *in)
{
	switch (in->op) {
	case PTX_OP_SHFL:
		return shfl;
	case PTX_OP_VOTE:
		return in->mode == PTX_MODE_BALLOT ? vote_ballot : vote;
	case PTX_OP_MATCH:
		return in->mode == PTX_MODE_ALL ? match_all : match_any;
	case PTX_OP_REDUX:
		return find_redux(in);
	case PTX_OP_ELECT:
		return elect;
	case PTX_OP_BAR:
	case PTX_OP_BARRIER:
		return in->mode == PTX_MODE_WARP ? warp_barrier : NULL;
	default:
		return NULL;
	}
}

/* ---- special registers ------------------------------------------------------------------------- */

static u64 device_clock(const struct exec_launch *launch)
{
	return exec_now_ns() * launch->device.clock_khz / 1000000;
}

/* Those that are the same for a whole block, or for the whole launch. */
static u64 block_sreg(const struct warp *w, enum ptx_sreg sreg)
{
	const struct block *block = w->block;
	const struct exec_launch *launch = block->launch;

	switch (sreg) {
	case PTX_SREG_NTID_X:
	case PTX_SREG_NTID_Y:
	case PTX_SREG_NTID_Z:
		return launch->block[sreg - PTX_SREG_NTID_X];
	case PTX_SREG_CTAID_X:
	case PTX_SREG_CTAID_Y:
	case PTX_SREG_CTAID_Z:
		return block->ctaid[sreg - PTX_SREG_CTAID_X];
	case PTX_SREG_NCTAID_X:
	case PTX_SREG_NCTAID_Y:
	case PTX_SREG_NCTAID_Z:
		return launch->grid[sreg - PTX_SREG_NCTAID_X];
	/* Clusters are of one block each. */
	case PTX_SREG_CLUSTERID_X:
	case PTX_SREG_CLUSTERID_Y:
	case PTX_SREG_CLUSTERID_Z:
		return block->ctaid[sreg - PTX_SREG_CLUSTERID_X];
	case PTX_SREG_NCLUSTERID_X:
	case PTX_SREG_NCLUSTERID_Y:
	case PTX_SREG_NCLUSTERID_Z:
		return launch->grid[sreg - PTX_SREG_NCLUSTERID_X];
	case PTX_SREG_CLUSTER_NCTAID_X:
	case PTX_SREG_CLUSTER_NCTAID_Y:
	case PTX_SREG_CLUSTER_NCTAID_Z:
	case PTX_SREG_CLUSTER_NCTARANK:
		return 1;
	case PTX_SREG_WARPID:
		return w->index;
	case PTX_SREG_NWARPID:
		return 64;
	case PTX_SREG_SMID:
		return block->index % launch->device.n_sm;
	case PTX_SREG_NSMID:
		return launch->device.n_sm;
	case PTX_SREG_GRIDID:
		return launch->id;
	case PTX_SREG_CLOCK:
	case PTX_SREG_CLOCK64:
		return device_clock(launch);
	case PTX_SREG_CLOCK_HI:
		return device_clock(launch) >> 32;
	case PTX_SREG_GLOBALTIMER:
	case PTX_SREG_GLOBALTIMER_LO:
		return moment_now_ns(CLOCK_REALTIME);
	case PTX_SREG_GLOBALTIMER_HI:
		return moment_now_ns(CLOCK_REALTIME) >> 32;
	case PTX_SREG_TOTAL_SMEM_SIZE:
	case PTX_SREG_AGGR_SMEM_SIZE:
		return launch->shared_bytes;
	case PTX_SREG_DYNAMIC_SMEM_SIZE:
		return launch->dynamic_shared_bytes;
	/* Where cooperative groups find what grid sync counts in. */
	case PTX_SREG_ENVREG1:
		return launch->workspace >> 32;
	case PTX_SREG_ENVREG2:
		return (u32)launch->workspace;
	default:
		return 0;
	}
}

static u64 lane_sreg(const struct warp *w, enum ptx_sreg sreg, u32 lane)
{
	switch (sreg) {
	case PTX_SREG_LANEID:
		return lane;
	case PTX_SREG_LANEMASK_EQ:
		return 1u << lane;
	case PTX_SREG_LANEMASK_LE:
		return (2u << lane) - 1;
	case PTX_SREG_LANEMASK_LT:
		return (1u << lane) - 1;
	case PTX_SREG_LANEMASK_GE:
		return ~((1u << lane) - 1);
	case PTX_SREG_LANEMASK_GT:
		return ~((2u << lane) - 1);
	default:
		return w->tid[sreg - PTX_SREG_TID_X][lane];
	}
}

static bool is_lane_sreg(enum ptx_sreg sreg)
{
	return sreg <= PTX_SREG_TID_Z || sreg == PTX_SREG_LANEID ||
	       (sreg >= PTX_SREG_LANEMASK_EQ && sreg <= PTX_SREG_LANEMASK_GT);
}

/* mov from a special register: imm tells which, bytes how wide the result is. */
int read_sreg(struct warp *w, const struct insn *in, u32 mask)
{
	enum ptx_sreg sreg = (enum ptx_sreg)in->imm;
	bool per_lane = is_lane_sreg(sreg);
	u8 *d = operand(w, in->op[0]);
	u64 v = 0;

	if (!per_lane)
		v = block_sreg(w, sreg);
	/* Loops that wait for a time poll as well. */
	if (sreg >= PTX_SREG_CLOCK && sreg <= PTX_SREG_GLOBALTIMER_HI)
		w->spun += 64;
	FOR_LANES(l, mask) {
		if (per_lane)
			v = lane_sreg(w, sreg, l);
		memcpy(d + l * in->bytes, &v, in->bytes);
	}
	return RUN_ON;
}

int read_activemask(struct warp *w, const struct insn *in, u32 mask)
{
	u32 *d = operand(w, in->op[0]);

	FOR_LANES(l, mask)
		d[l] = mask;
	return RUN_ON;
}

/* Dynamic shared memory follows the kernel's own: imm bytes into it. */
int read_dynamic_shared(struct warp *w, const struct insn *in, u32 mask)
{
	const struct exec_launch *launch = w->block->launch;
	u64 v = launch->shared_bytes - launch->dynamic_shared_bytes + in->imm;
	u8 *d = operand(w, in->op[0]);

	FOR_LANES(l, mask)
		memcpy(d + l * in->bytes, &v, in->bytes);
	return RUN_ON;
}

/* The address of byte imm of the frame, in the local space. */
int read_frame_address(struct warp *w, const struct insn *in, u32 mask)
{
	u64 v = w->frame->local_base + in->imm;
	u8 *d = operand(w, in->op[0]);

	FOR_LANES(l, mask)
		memcpy(d + l * in->bytes, &v, in->bytes);
	return RUN_ON;
}

static bool lane_in_space(const struct exec_image *image, u64 a, u8 space)
{
	switch (space) {
	case PTX_SPACE_SHARED:
		return a - SHARED_WINDOW < WINDOW_BYTES;
	case PTX_SPACE_LOCAL:
		return a - LOCAL_WINDOW < WINDOW_BYTES;
	case PTX_SPACE_PARAM:
		return a - PARAM_WINDOW < WINDOW_BYTES;
	case PTX_SPACE_CONST:
		return a - image->const_addr < image->const_bytes;
	default:
		return a < SHARED_WINDOW && a - image->const_addr >= image->const_bytes;
	}
}

/* isspacep */
int is_in_space(struct warp *w, const struct insn *in, u32 mask)
{
	const u64 *a = operand(w, in->op[1]);
	u32 bits = 0;

	FOR_LANES(l, mask)
		bits |= (u32)lane_in_space(w->block->launch->kernel->image, a[l], in->space) << l;
	predicate_set(w, in->op[0], mask, bits);
	return RUN_ON;
}
