// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels on the device: how a launch runs and how long it takes.
 *
 * Three ways to tell the time. By its instructions: they are executed in slices, and each slice
 * costs what the device would have needed for it. By SOFTGPU_KERNEL_NS: the kernel gets that much
 * device time, whatever its grid, and is then executed for its results. By its name: a kernel
 * whose name begins with "softgpu_timed" is not executed at all; its first parameter, 64 bits,
 * is how many nanoseconds of device time it takes:
 *
 *	.visible .entry softgpu_timed(.param .u64 ns) { ret; }
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/cuda/code/launch.h"
#include "softgpu/cuda/code/printed.h"
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/cuda/stream/work.h"
#include "softgpu/engine/engine.h"
#include "softgpu/mem/room.h"
#include "softgpu/mem/view.h"

#define TIMED_PREFIX "softgpu_timed"

/* How long a slice keeps the CPU before it is asked whether anybody still wants it. */
#define SLICE_WALL_NS 5000000

/* A slice for whose cost the model is asked, so that the price of one instruction is exact. */
#define PRICE_INSTRUCTIONS 1000000

/* A kernel all of whose threads sleep is looked at this often. */
#define STALL_NS 1000000

/* A launch that is being executed. */
struct running {
	const struct context *ctx;
	const struct kernel_work *work;
	struct exec_launch *launch;
	double ns_per_instruction;
	int fault;
};

static uint64_t n_blocks_of(const struct kernel_work *work)
{
	return (uint64_t)work->grid[0] * work->grid[1] * work->grid[2];
}

static unsigned int n_threads_of(const struct kernel_work *work)
{
	return work->block[0] * work->block[1] * work->block[2];
}

/* Threads that sleep or wait for others take device time as long as they do. */
static uint64_t sleep_until(uint64_t wake_ns)
{
	struct timespec pause;
	uint64_t ns = STALL_NS, now_ns = engine_now_ns();

	if (wake_ns <= now_ns)
		return 0;
	if (wake_ns - now_ns < ns)
		ns = wake_ns - now_ns;
	pause = (struct timespec){ .tv_nsec = ns };
	nanosleep(&pause, NULL);
	return ns;
}

/* One slice: the engine's step, and outside of it with a budget that does not end. */
static int running_step(void *arg, uint64_t budget_ns, uint64_t *ret_used_ns, bool *ret_done)
{
	struct running *running = arg;
	double n_instructions = (double)budget_ns / running->ns_per_instruction;
	struct exec_budget budget = {
		.instructions = n_instructions < 1e18 ? (uint64_t)n_instructions + 1 : UINT64_MAX,
		.wall_ns = SLICE_WALL_NS,
	};
	struct exec_progress progress = { 0 };

	*ret_used_ns = 0;
	*ret_done = true;
	if (stream_cancelled(running->ctx))
		return 0;
	if (!room_left()) {
		driver_log("kernel %s: the host has no memory for what it writes",
			   running->work->function->kernel->name);
		running->fault = EXEC_FAULT_MEMORY;
		return 0;
	}

	exec_step(running->launch, &budget, &progress);
	*ret_used_ns = (uint64_t)((double)progress.instructions * running->ns_per_instruction);
	*ret_done = progress.done;
	if (progress.fault) {
		driver_log("kernel %s: %s", running->work->function->kernel->name,
			   progress.message);
		running->fault = progress.fault;
	} else if (!progress.done && progress.stalled) {
		*ret_used_ns += sleep_until(progress.wake_ns);
	}
	return 0;
}

static CUresult device_time(struct context *ctx, struct engine_job *job,
			    const struct kernel_work *work)
{
	struct stream_moment *moment = stream_moment();

	job->priority = work->has_priority ? work->priority : moment->priority;
	job->ready_ns = moment->ready_ns;
	job->more = moment->more;
	if (engine_run(ctx->client, job) != 0)
		return context_error(ctx);
	moment->end_ns = job->ret_end_ns;
	return CUDA_SUCCESS;
}

static CUresult run_timed(struct context *ctx, const struct kernel_work *work, uint64_t duration_ns)
{
	struct engine_job job = { .duration_ns = duration_ns };

	return device_time(ctx, &job, work);
}

/* Executes outside of device time, which has been had. */
static void run_for_results(struct running *running)
{
	uint64_t used_ns;
	bool done = false;

	while (!done)
		running_step(running, UINT64_MAX, &used_ns, &done);
}

static CUresult run_executed(struct context *ctx, struct running *running)
{
	struct engine_job job = { .step = running_step, .arg = running };

	return device_time(ctx, &job, running->work);
}

static CUresult running_begin(struct running *running, struct context *ctx,
			      const struct kernel_work *work)
{
	const struct softgpu_device_config *config = &ctx->device->config;
	struct exec_launch_args args = {
		.kernel = work->function->kernel,
		.grid = { work->grid[0], work->grid[1], work->grid[2] },
		.block = { work->block[0], work->block[1], work->block[2] },
		.dynamic_shared_bytes = work->shared_bytes,
		.params = work->params,
		.cooperative = work->cooperative,
		.device = {
			.n_sm = config->n_sms,
			.clock_khz = config->clock_mhz * 1000,
		},
		.space = space_view_blocks(ctx->view),
		.heap = ctx->modules->heap,
		.stack_bytes = ctx->limits[CU_LIMIT_STACK_SIZE],
		.print = printed_add,
		.print_arg = ctx,
	};

	*running = (struct running){ .ctx = ctx, .work = work };
	if (exec_launch_new(&args, &running->launch) < 0)
		return CUDA_ERROR_LAUNCH_FAILED;
	running->ns_per_instruction =
		(double)engine_work_ns(config, PRICE_INSTRUCTIONS, n_blocks_of(work),
				       n_threads_of(work)) /
		PRICE_INSTRUCTIONS;
	return CUDA_SUCCESS;
}

static CUresult kernel_run(struct context *ctx, void *params)
{
	const struct kernel_work *work = params;
	struct running running;
	uint64_t timed_ns;
	CUresult r;

	if (strncmp(work->function->kernel->name, TIMED_PREFIX, strlen(TIMED_PREFIX)) == 0 &&
	    work->function->kernel->param_bytes >= sizeof(timed_ns)) {
		memcpy(&timed_ns, work->params, sizeof(timed_ns));
		return run_timed(ctx, work, timed_ns);
	}

	r = running_begin(&running, ctx, work);
	if (r != CUDA_SUCCESS)
		return r;
	if (driver.config.kernel_ns_given) {
		r = run_timed(ctx, work, driver.config.kernel_ns);
		if (r == CUDA_SUCCESS)
			run_for_results(&running);
	} else {
		r = run_executed(ctx, &running);
	}
	exec_launch_free(running.launch);

	if (running.fault == EXEC_FAULT_MEMORY)
		return CUDA_ERROR_LAUNCH_FAILED;
	return running.fault ? (CUresult)running.fault : r;
}

static CUresult kernel_copy(void *to, const void *from)
{
	const struct kernel_work *source = from;
	struct kernel_work *work = to;

	work->params = work->space;
	if (source->params != source->space) {
		work->params = malloc(work->function->kernel->param_bytes);
		if (!work->params)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(work->params, source->params, work->function->kernel->param_bytes);
	}
	module_ref(work->function->module);
	return CUDA_SUCCESS;
}

static void kernel_release(void *params)
{
	struct kernel_work *work = params;

	if (work->params != work->space)
		free(work->params);
	module_unref(work->function->module);
}

const struct work_class work_kernel = {
	.type = CU_GRAPH_NODE_TYPE_KERNEL,
	.size = sizeof(struct kernel_work),
	.run = kernel_run,
	.copy = kernel_copy,
	.release = kernel_release,
};
