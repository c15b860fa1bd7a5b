/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches: blocks over workers, a slice at a time.
 *
 * A worker takes a block, runs it for a while and takes the next. Blocks may be
 * short, so where one has ended the worker goes on with the next of the grid in
 * its place, and comes back to what all share once a slice. Meanwhile it is given
 * many that follow each other: blocks side by side write to memory side by side,
 * and of CPUs that do so at the same time each fetches in advance what the other
 * is about to write, and takes it away. Blocks of an ordinary grid start in order,
 * or in as many pieces as there are workers until one of them has to wait; more
 * are started than there are workers only when those that run poll for something,
 * since that may be what a later block has to do. All blocks of a cooperative grid
 * are started at once.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <xmmintrin.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/image.h"
#include "softgpu/exec/worker.h"
#include "softgpu/mem/space.h"

/* Instructions of threads before another block may have the worker: about a millisecond. */
#define BLOCK_SLICE (1u << 20)

/* So often the clock is looked at while one short block follows another. */
#define LOOK_AT_CLOCK (32u << 10)

/* Memory for the blocks of a grid that is not cooperative. */
#define RESIDENT_MAX_BYTES (256ull << 20)
#define RESIDENT_MIN	   4

/* A worker is given that part of its own part of what is left. */
#define SHARES_LEFT 4

#define DEFAULT_STACK_BYTES (64u << 10)

const struct exec_compiler *exec_compiler;

/* ---- making ------------------------------------------------------------------------------------- */

static bool is_dimension(const u32 dim[3], u64 max)
{
	u64 n = 1;

	for (int i = 0; i < 3; i++) {
		if (!dim[i] || n > max / dim[i])
			return false;
		n *= dim[i];
	}
	return n <= max;
}

static void set_device(struct exec_launch *launch, const struct exec_device *device)
{
	launch->device = *device;
	if (!launch->device.n_sm)
		launch->device.n_sm = 132;
	if (!launch->device.clock_khz)
		launch->device.clock_khz = 1980000;
	if (!launch->device.blocks_per_sm)
		launch->device.blocks_per_sm = 16;
}

static void set_local(struct exec_launch *launch, u32 stack_bytes)
{
	const struct image_kernel *k = image_kernel_of(launch->kernel);

	launch->local_bytes = k->kernel.local_bytes;
	if (k->needs_stack)
		launch->local_bytes += stack_bytes ? stack_bytes : DEFAULT_STACK_BYTES;
	launch->local_bytes = (launch->local_bytes + 127) / 128 * 128;
	/* Not a power of two: lanes' frames would meet in the same lines of the cache. */
	launch->local_stride = launch->local_bytes ? launch->local_bytes + 128 : 0;
}

static void set_resident(struct exec_launch *launch)
{
	u64 limit = (u64)launch->device.n_sm * launch->device.blocks_per_sm;
	u64 bytes = launch->shared_bytes +
		    launch->n_warps * (sizeof(struct warp) + launch->code->regs_bytes + 512);

	if (limit > RESIDENT_MAX_BYTES / bytes)
		limit = RESIDENT_MAX_BYTES / bytes;
	if (limit < RESIDENT_MIN)
		limit = RESIDENT_MIN;
	launch->max_resident = launch->cooperative || limit > launch->n_blocks
				       ? (u32)launch->n_blocks
				       : (u32)limit;
}

static void ready_put(struct exec_launch *launch, struct block *block)
{
	block->next = NULL;
	*launch->ready_end = block;
	launch->ready_end = &block->next;
	launch->n_ready++;
}

static struct block *ready_take(struct exec_launch *launch, u64 now)
{
	for (struct block **at = &launch->ready; *at; at = &(*at)->next) {
		struct block *block = *at;

		if (block->wake_ns > now) {
			if (block->wake_ns < launch->wake_ns)
				launch->wake_ns = block->wake_ns;
			continue;
		}
		*at = block->next;
		if (launch->ready_end == &block->next)
			launch->ready_end = at;
		launch->n_ready--;
		return block;
	}
	return NULL;
}

/* The first of what nobody was given, or gave back. */
static struct blocks *first_rest(struct exec_launch *launch)
{
	struct blocks *first = launch->rests;

	for (u32 i = 1; i < launch->n_rests; i++) {
		if (launch->rests[i].next < first->next)
			first = &launch->rests[i];
	}
	return first;
}

/*
 * With the lock held: @n of the first blocks, or fewer that follow each other. Where there are many
 * pieces already no more are made, so that there is always room for what all workers give back.
 */
static struct blocks take_first(struct exec_launch *launch, u64 n)
{
	struct blocks ret = { 0 }, *rest;

	if (!launch->n_rests)
		return ret;
	rest = first_rest(launch);
	ret = *rest;
	if (n < ret.end - ret.next && (n == 1 || launch->n_rests < WORKERS_MAX))
		ret.end = ret.next + n;
	rest->next = ret.end;
	if (rest->next == rest->end)
		*rest = launch->rests[--launch->n_rests];
	launch->n_unstarted -= ret.end - ret.next;
	return ret;
}

/* What a worker is given at a time: less towards the end, so that all end together. */
static struct blocks take_share(struct exec_launch *launch)
{
	struct blocks ret;
	u64 share;

	pthread_mutex_lock(&launch->lock);
	share = launch->n_unstarted / (SHARES_LEFT * launch->n_running);
	ret = take_first(launch, share && !launch->one_by_one ? share : 1);
	pthread_mutex_unlock(&launch->lock);
	return ret;
}

static void give_back(struct exec_launch *launch, const struct blocks *rest)
{
	if (rest->next == rest->end)
		return;
	assert(launch->n_rests < N_RESTS);
	launch->rests[launch->n_rests++] = *rest;
	launch->n_unstarted += rest->end - rest->next;
}

/* Starts the next of a worker's in the place of one that has ended; false: there is none. */
static bool start_in(struct exec_launch *launch, struct blocks *mine, struct block *block)
{
	if (mine->next == mine->end)
		*mine = take_share(launch);
	if (mine->next == mine->end)
		return false;
	block_start(block, mine->next++);
	return true;
}

static void put_unused(struct exec_launch *launch, struct block *block)
{
	block->next = launch->unused;
	launch->unused = block;
}

/* NULL: no memory. With the lock held, and one left. */
static struct block *start_block(struct exec_launch *launch)
{
	struct block *block = launch->unused;

	if (block)
		launch->unused = block->next;
	else
		block = block_new(launch);
	if (!block)
		return NULL;
	block_start(block, take_first(launch, 1).next);
	launch->n_resident++;
	return block;
}

/* All blocks of a cooperative grid, and the words in which it counts arrivals. */
static int start_cooperative(struct exec_launch *launch)
{
	const struct exec_place *place = &launch->kernel->image->place;
	int r;

	r = place->alloc(place->arg, 256, 256, &launch->workspace);
	if (r)
		return r;
	memset((void *)(uintptr_t)launch->workspace, 0, 256);
	while (launch->n_unstarted) {
		struct block *block = start_block(launch);

		if (!block)
			return -ENOMEM;
		ready_put(launch, block);
	}
	return 0;
}

static int launch_init(struct exec_launch *launch, const struct exec_launch_args *args)
{
	const struct exec_kernel *k = args->kernel;
	static _Atomic u64 next_id = 1;

	pthread_mutex_init(&launch->lock, NULL);
	pthread_mutex_init(&launch->printed.lock, NULL);
	launch->ready_end = &launch->ready;
	launch->kernel = k;
	launch->code = image_kernel_of(k)->code;
	launch->rows = args->block[0] % LANES == 0 || (args->block[1] == 1 && args->block[2] == 1);
	if (exec_compiler)
		exec_compiler->launched(image_kernel_of(k)->code, launch->rows);
	memcpy(launch->grid, args->grid, sizeof(launch->grid));
	memcpy(launch->block, args->block, sizeof(launch->block));
	launch->n_blocks = (u64)args->grid[0] * args->grid[1] * args->grid[2];
	launch->n_left = launch->n_blocks;
	give_back(launch, &(struct blocks){ 0, launch->n_blocks });
	launch->n_threads = args->block[0] * args->block[1] * args->block[2];
	launch->n_warps = (launch->n_threads + LANES - 1) / LANES;
	launch->dynamic_shared_bytes = args->dynamic_shared_bytes;
	launch->shared_bytes = (k->shared_bytes + 15) / 16 * 16 + args->dynamic_shared_bytes;
	launch->cooperative = args->cooperative;
	launch->heap = args->heap;
	launch->print = args->print;
	launch->print_arg = args->print_arg;
	launch->space = args->space ? args->space : space_blocks;
	launch->id = next_id++;
	set_device(launch, &args->device);
	set_local(launch, args->stack_bytes);
	set_resident(launch);
	/* Vector parameters are read in one piece. */
	launch->param_bytes = k->param_bytes;
	launch->params = calloc(1, k->param_bytes + 16);
	if (!launch->params)
		return -ENOMEM;
	if (k->param_bytes)
		memcpy(launch->params, args->params, k->param_bytes);
	return launch->cooperative ? start_cooperative(launch) : 0;
}

int exec_launch_new(const struct exec_launch_args *args, struct exec_launch **ret)
{
	struct exec_launch *launch;
	int r;

	if (!is_dimension(args->grid, UINT64_C(1) << 62) || !is_dimension(args->block, 1024) ||
	    args->dynamic_shared_bytes > (UINT32_C(1) << 30))
		return -EINVAL;
	launch = calloc(1, sizeof(*launch));
	if (!launch)
		return -ENOMEM;
	r = launch_init(launch, args);
	if (r) {
		exec_launch_free(launch);
		return r;
	}
	*ret = launch;
	return 0;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		block_free(block);
		block = next;
	}
}

void exec_launch_free(struct exec_launch *launch)
{
	if (!launch)
		return;
	free_blocks(launch->ready);
	free_blocks(launch->unused);
	if (launch->workspace)
		launch->kernel->image->place.free(launch->kernel->image->place.arg,
						  launch->workspace);
	free(launch->params);
	free(launch->printed.text);
	pthread_mutex_destroy(&launch->lock);
	pthread_mutex_destroy(&launch->printed.lock);
	free(launch);
}

/* ---- running ------------------------------------------------------------------------------------ */

/*
 * However late the workers come to it, a slice looks for a block once: one in which nothing was tried
 * looks like one in which nothing can go on.
 */
static bool slice_over(const struct exec_launch *launch)
{
	return launch->fault || !launch->n_left || launch->instructions >= launch->budget ||
	       (launch->tried && launch->deadline_ns && exec_now_ns() >= launch->deadline_ns);
}

static struct block *take_new(struct exec_launch *launch)
{
	struct block *block;

	if (!launch->n_unstarted || launch->n_resident >= launch->max_resident)
		return NULL;
	block = start_block(launch);
	/* Without memory for one more, those that are there have to do. */
	if (!block)
		launch->max_resident = launch->n_resident;
	if (!block && !launch->n_resident)
		launch->fault = EXEC_FAULT_MEMORY;
	return block;
}

static struct block *take_block(struct exec_launch *launch)
{
	struct block *block = NULL;

	launch->tried = true;
	launch->wake_ns = UINT64_MAX;
	if (launch->prefer_new)
		block = take_new(launch);
	launch->prefer_new = false;
	if (!block)
		block = ready_take(launch, launch->ready ? exec_now_ns() : 0);
	return block ? block : take_new(launch);
}

/* What a worker has done since it took a block. */
struct turn {
	u64 executed;		    /* instructions */
	u64 n_ended;		    /* blocks before the last */
	struct blocks mine;	    /* that it was given, and has not started */
	struct block_progress last; /* of the block that it has now */
};

/* Runs a block, and in its place those that follow, while nobody else waits for the worker. */
static void run_blocks(struct exec_launch *launch, struct block *block, u64 budget,
		       struct turn *ret)
{
	u64 used = 0, look = LOOK_AT_CLOCK;

	ret->executed = 0;
	ret->mine = (struct blocks){ 0 };
	for (ret->n_ended = 0;; ret->n_ended++) {
		block_run(block, budget - used, launch->deadline_ns, &ret->last);
		ret->executed += ret->last.executed;
		used += ret->last.executed + ret->last.spun;
		if (!ret->last.ended || used >= budget || launch->n_ready)
			return;
		if (launch->deadline_ns && used >= look) {
			if (exec_now_ns() >= launch->deadline_ns)
				return;
			look = used + LOOK_AT_CLOCK;
		}
		if (!start_in(launch, &ret->mine, block))
			return;
	}
}

static void put_block(struct exec_launch *launch, struct block *block, const struct turn *turn)
{
	const struct block_progress *p = &turn->last;

	launch->instructions += turn->executed;
	launch->n_left -= turn->n_ended;
	give_back(launch, &turn->mine);
	if (p->fault && !launch->fault) {
		launch->fault = p->fault;
		memcpy(launch->message, p->message, sizeof(launch->message));
	}
	if (p->ended) {
		launch->n_left--;
		launch->n_resident--;
		put_unused(launch, block);
		return;
	}
	launch->prefer_new = p->spun > p->executed || p->waits;
	launch->one_by_one |= launch->prefer_new;
	if (!p->waits)
		block->wake_ns = 0;
	ready_put(launch, block);
}

/* What each worker does in a slice. */
static void work(void *arg)
{
	struct exec_launch *launch = arg;
	u32 control = _mm_getcsr();

	/* The program's thread may have rounding and flushing of its own. */
	_mm_setcsr(0x1f80);
	pthread_mutex_lock(&launch->lock);
	while (!slice_over(launch)) {
		u64 left = launch->budget - launch->instructions;
		struct block *block = take_block(launch);
		struct turn turn;

		if (!block)
			break;
		launch->n_running++;
		pthread_mutex_unlock(&launch->lock);
		run_blocks(launch, block, left < BLOCK_SLICE ? left : BLOCK_SLICE, &turn);
		if (exec_compiler)
			exec_compiler->worked(image_kernel_of(launch->kernel)->code, launch->rows,
					      turn.executed);
		pthread_mutex_lock(&launch->lock);
		launch->n_running--;
		put_block(launch, block, &turn);
	}
	pthread_mutex_unlock(&launch->lock);
	_mm_setcsr(control);
}

void exec_step(struct exec_launch *launch, const struct exec_budget *budget,
	       struct exec_progress *ret)
{
	launch->instructions = 0;
	launch->budget = budget->instructions;
	launch->deadline_ns = budget->wall_ns ? exec_now_ns() + budget->wall_ns : 0;
	launch->tried = false;
	launch->wake_ns = UINT64_MAX;
	worker_run(work, launch, launch->n_left > 1 ? (u32)-1 : 1);

	*ret = (struct exec_progress){
		.instructions = launch->instructions,
		.done = !launch->n_left || launch->fault,
		.fault = launch->fault,
	};
	memcpy(ret->message, launch->message, sizeof(ret->message));
	ret->stalled = !ret->done && !launch->instructions;
	ret->wake_ns = launch->wake_ns;
	print_flush(launch);
}
