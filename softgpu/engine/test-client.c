// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs in real time: one process with several streams, then ten processes. What is checked
 * are sums of device time, which do not depend on how busy the machine is.
 */
#include "softgpu/engine/engine.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-dir.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS	  1000000ull
#define TENANTS_N 10
#define JOBS_N	  40

static struct softgpu_config config;

static struct state *attached_new(void)
{
	struct state *state;

	if (state_open(&config, STATE_CONFIGURE, &state) != 0 || state_attach(state) != 0) {
		printf("NOT OK 'state_open'\n");
		exit(1);
	}
	return state;
}

static struct engine_client *client_new(struct state *state)
{
	struct engine_client *client;

	if (engine_client_new(state, 0, &client) != 0)
		exit(1);
	return client;
}

/* Uses 2.5 ms in three steps. */
static int step_thrice(void *arg, _unused_ uint64_t budget_ns, uint64_t *ret_used_ns,
		       bool *ret_done)
{
	int *n = arg;

	(*n)++;
	*ret_used_ns = *n < 3 ? MS : MS / 2;
	*ret_done = *n == 3;
	return 0;
}

static int step_fault(_unused_ void *arg, _unused_ uint64_t budget_ns,
		      _unused_ uint64_t *ret_used_ns, _unused_ bool *ret_done)
{
	return 700;
}

static int step_for_ever(_unused_ void *arg, _unused_ uint64_t budget_ns, uint64_t *ret_used_ns,
			 _unused_ bool *ret_done)
{
	*ret_used_ns = 1;
	return 0;
}

static void test_one(void)
{
	struct state *state = attached_new();
	struct engine_client *client = client_new(state);
	struct engine_job timed = { .duration_ns = 3 * MS }, executed = { .step = step_thrice };
	struct engine_job fault = { .step = step_fault }, empty = { 0 };
	uint64_t begin = engine_now_ns();
	int n_steps = 0;

	executed.arg = &n_steps;
	check(engine_run(client, &timed) == 0 && timed.ret_end_ns >= begin + 3 * MS &&
		      timed.ret_end_ns <= engine_now_ns(),
	      "engine_run: returns when the device is done, not before");
	executed.ready_ns = timed.ret_end_ns;
	check(engine_run(client, &executed) == 0 && n_steps == 3, "engine_run: until step is done");
	check(executed.ret_end_ns == timed.ret_end_ns + 5 * MS / 2,
	      "engine_run: what follows at once begins where its predecessor ended");
	check(engine_run(client, &fault) == 700, "engine_run: a fault of step");
	check(engine_run(client, &empty) == 0, "engine_run: no time at all");
	check(state_busy_ns(state, 0) == 11 * MS / 2, "the device was busy as long as the jobs");
	engine_client_free(client);
	check(state_busy_ns(state, 0) == 11 * MS / 2, "and is when the client has gone");
	state_close(state);
}

static void *run_thread(void *arg)
{
	struct engine_job timed = { .duration_ns = 3600 * 1000 * MS };

	return (void *)(intptr_t)engine_run(arg, &timed);
}

static void *step_thread(void *arg)
{
	struct engine_job job = { .step = step_for_ever };

	return (void *)(intptr_t)engine_run(arg, &job);
}

static void test_abort(void)
{
	struct state *state = attached_new();
	struct engine_client *client = client_new(state);
	pthread_t a, b, c;
	void *ra, *rb, *rc;
	struct engine_job job = { .duration_ns = 1 };

	pthread_create(&a, NULL, run_thread, client);
	pthread_create(&b, NULL, run_thread, client);
	pthread_create(&c, NULL, step_thread, client);
	usleep(3000);
	engine_client_abort(client);
	pthread_join(a, &ra);
	pthread_join(b, &rb);
	pthread_join(c, &rc);
	check((intptr_t)ra == ENGINE_E_ABORTED && (intptr_t)rb == ENGINE_E_ABORTED &&
		      (intptr_t)rc == ENGINE_E_ABORTED,
	      "engine_client_abort: ends jobs of all streams");
	check(engine_run(client, &job) == ENGINE_E_ABORTED, "engine_run: nothing runs any more");
	engine_client_free(client);
	state_close(state);
}

/* A tenant with queued kernels of 1 ms. */
static int tenant(unsigned n_jobs)
{
	struct state *state = attached_new();
	struct engine_client *client = client_new(state);
	struct engine_job job = { .duration_ns = MS };
	int r = 0;

	for (unsigned i = 0; i < n_jobs && r == 0; i++) {
		job.more = i + 1 < n_jobs;
		r = engine_run(client, &job);
		job.ready_ns = job.ret_end_ns;
	}
	engine_client_free(client);
	state_close(state);
	return r;
}

static void test_ten(void)
{
	struct state *state = attached_new();
	uint64_t before = state_busy_ns(state, 0), busy;
	pid_t pids[TENANTS_N];
	int status, n_good = 0;

	fflush(stdout);
	for (int i = 0; i < TENANTS_N; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(tenant(JOBS_N));
	}
	for (int i = 0; i < TENANTS_N; i++) {
		waitpid(pids[i], &status, 0);
		n_good += status == 0;
	}
	busy = state_busy_ns(state, 0) - before;
	check(n_good == TENANTS_N, "ten processes with 40 kernels each");
	/* A turn that is kept for more is given whole: 1 ms at most is never asked for. */
	check(busy >= TENANTS_N * JOBS_N * MS && busy <= TENANTS_N * (JOBS_N + 1) * MS,
	      "the device was busy for all their kernels, and nothing else");
	state_close(state);
}

static void test_killed(void)
{
	struct state *state = attached_new();
	struct engine_client *client;
	struct engine_job job = { .duration_ns = 10 * MS };
	pid_t stopped, killed;

	fflush(stdout);
	stopped = fork();
	if (stopped == 0)
		_exit(tenant(1000000));
	killed = fork();
	if (killed == 0)
		_exit(tenant(1000000));
	usleep(10000);
	kill(stopped, SIGSTOP);
	kill(killed, SIGKILL);
	client = client_new(state);
	check(engine_run(client, &job) == 0, "a stopped and a killed process stall nobody");
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	waitpid(killed, NULL, 0);
	engine_client_free(client);
	state_close(state);
}

int main(void)
{
	config_default(&config);
	strcpy(config.dir, "/tmp/softgpu-engine-XXXXXX");
	if (!mkdtemp(config.dir))
		return 1;
	test_one();
	test_abort();
	test_ten();
	test_killed();
	test_dir_remove(config.dir);
	return n_failed != 0;
}
