// SPDX-License-Identifier: Apache-2.0
/*
 * Clients: the contexts of this process, and their jobs' way through the line.
 */
#include "softgpu/engine/engine.h"

#include "softgpu/engine/line.h"
#include "softgpu/engine/queue.h"
#include "softgpu/state/internal.h"
#include "softgpu/util/futex.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* What others have in the line can vanish without a word, when they are killed. */
#define NAP_NS_MAX 50000000

/* Jobs for which a turn is not kept, after one was kept for nothing. */
#define KEEP_PAUSE 16

/* For so long a job that has not begun lets more urgent ones of its context go first. */
#define HOLD_NS 100000000

/*
 * @keep_pause:	jobs until a turn is kept again; with the job that is being served
 * @aborted:	1 once nothing runs any more
 */
struct engine_client {
	struct state *state;
	struct state_file *file;
	struct state_slot *slot;
	int index;
	struct queue queue;
	unsigned keep_pause;
	_Atomic uint32_t aborted;
};

uint64_t engine_now_ns(void)
{
	return clock_now();
}

void engine_update(struct state *state, unsigned dev)
{
	line_advance(state->files[dev], clock_now());
}

int engine_client_new(struct state *state, unsigned dev, struct engine_client **ret)
{
	struct engine_client *client;

	if (state_is_forked(state))
		return STATE_E_FORKED;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->state = state;
	client->file = state->files[dev];
	client->slot = state->slots[dev];
	line_advance(client->file, engine_now_ns());
	client->index = line_join(client->file, atomic_load(&client->slot->birth));
	if (client->index < 0) {
		free(client);
		return STATE_E_BUSY;
	}
	queue_init(&client->queue);
	*ret = client;
	return 0;
}

void engine_client_free(struct engine_client *client)
{
	if (!client)
		return;
	if (!state_is_forked(client->state))
		line_leave(client->file, client->slot, client->index);
	queue_done(&client->queue);
	free(client);
}

void engine_client_abort(struct engine_client *client)
{
	atomic_store(&client->aborted, 1);
	futex_wake_all(&client->aborted);
	queue_close(&client->queue);
}

/* Timers of a thread may be 50 us late by default: ours tell the device's time. */
static void timers_sharpen(void)
{
	static _Thread_local bool done;

	if (!done)
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	done = true;
}

static void nap(struct engine_client *client, uint64_t ns)
{
	struct timespec ts;

	ns = ns < NAP_NS_MAX ? ns : NAP_NS_MAX;
	ts.tv_sec = (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	futex_wait(&client->aborted, 0, &ts);
}

static int position_wait(struct engine_client *client, uint64_t position, uint64_t *ret_end_ns)
{
	uint64_t now, end;
	bool known;

	for (;;) {
		now = clock_now();
		line_advance(client->file, now);
		end = line_end(client->file, client->index, position, &known);
		if (known && end <= now)
			break;
		if (atomic_load(&client->aborted)) {
			line_give_up(client->file, client->index);
			return ENGINE_E_ABORTED;
		}
		/* An estimate that has passed: some other's turn ends any moment. */
		nap(client, end > now ? end - now : 1000);
	}
	*ret_end_ns = end;
	return 0;
}

/* @ns of device time for a job, from its @ret_end_ns on. */
static int time_take(struct engine_client *client, struct engine_job *job, uint64_t ns, bool more)
{
	uint64_t position;
	bool lost;
	int r;

	queue_take(&client->queue, queue_level(job->priority));
	if (client->keep_pause > 0)
		client->keep_pause--;
	position = line_ask(client->file, client->index, ns, job->ret_end_ns,
			    more && client->keep_pause == 0, &lost);
	if (lost)
		client->keep_pause = KEEP_PAUSE;
	r = position_wait(client, position, &job->ret_end_ns);
	queue_give(&client->queue);
	return r;
}

static int steps_run(struct engine_client *client, struct engine_job *job)
{
	uint64_t slice = file_slice_ns(client->file), used;
	bool done = false;
	int r = 0;

	while (!done && r == 0) {
		used = 0;
		r = job->step(job->arg, slice, &used, &done);
		if (r == 0 && used > 0)
			r = time_take(client, job, used, /* more= */ false);
		if (r == 0 && !done && atomic_load(&client->aborted))
			r = ENGINE_E_ABORTED;
	}
	return r;
}

static int executed_run(struct engine_client *client, struct engine_job *job)
{
	unsigned level = queue_level(job->priority);
	int r;

	queue_begin(&client->queue, level, HOLD_NS);
	r = steps_run(client, job);
	queue_end(&client->queue, level);
	return r;
}

int engine_run(struct engine_client *client, struct engine_job *job)
{
	uint64_t now = clock_now();

	if (state_is_forked(client->state) || atomic_load(&client->aborted))
		return ENGINE_E_ABORTED;
	timers_sharpen();
	job->ret_end_ns = job->ready_ns && job->ready_ns < now ? job->ready_ns : now;
	if (job->step)
		return executed_run(client, job);
	if (job->duration_ns == 0)
		return 0;
	return time_take(client, job, job->duration_ns, job->more);
}
