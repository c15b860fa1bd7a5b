/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads of this process: made when first needed, asleep when
 * nobody calls, shared by all callers.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sched.h>
#include <stddef.h>

#include "softgpu/exec/exec.h"
#include "softgpu/exec/worker.h"

/* A call of worker_run() that still takes helpers. */
struct task {
	void (*fn)(void *arg);
	void *arg;
	uint32_t wanted;  /* helpers that may still come */
	uint32_t helping; /* helpers that have come and not gone */
	struct task *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t task_added = PTHREAD_COND_INITIALIZER;
static pthread_cond_t helper_gone = PTHREAD_COND_INITIALIZER;
static struct task *tasks;
static uint32_t n_threads; /* that were made */
static uint32_t n_workers; /* callers included; 0: not known yet */

static uint32_t count_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

static struct task *task_for_helper(void)
{
	for (struct task *t = tasks; t; t = t->next) {
		if (t->wanted)
			return t;
	}
	return NULL;
}

static void *help(_unused_ void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct task *t = task_for_helper();

		if (!t) {
			pthread_cond_wait(&task_added, &lock);
			continue;
		}
		t->wanted--;
		t->helping++;
		pthread_mutex_unlock(&lock);
		t->fn(t->arg);
		pthread_mutex_lock(&lock);
		if (--t->helping == 0)
			pthread_cond_broadcast(&helper_gone);
	}
	return NULL;
}

/* After fork() only the thread that called it is there. */
static void forget_threads(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&task_added, NULL);
	pthread_cond_init(&helper_gone, NULL);
	tasks = NULL;
	n_threads = 0;
}

/* With the lock held. What cannot be made is done without. */
static void make_threads(uint32_t n)
{
	static bool watched;
	sigset_t all, old;
	pthread_attr_t attr;

	if (!watched) {
		pthread_atfork(NULL, NULL, forget_threads);
		watched = true;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (n_threads < n) {
		pthread_t thread;

		if (pthread_create(&thread, &attr, help, NULL))
			break;
		n_threads++;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void task_remove(const struct task *task)
{
	for (struct task **at = &tasks; *at; at = &(*at)->next) {
		if (*at == task) {
			*at = task->next;
			return;
		}
	}
}

void worker_run(void (*fn)(void *arg), void *arg, uint32_t max)
{
	struct task task = { .fn = fn, .arg = arg };

	pthread_mutex_lock(&lock);
	if (!n_workers)
		n_workers = count_cpus();
	if (n_workers > WORKERS_MAX)
		n_workers = WORKERS_MAX;
	task.wanted = (max < n_workers ? max : n_workers) - 1;
	if (task.wanted) {
		make_threads(n_workers - 1);
		task.next = tasks;
		tasks = &task;
		pthread_cond_broadcast(&task_added);
	}
	pthread_mutex_unlock(&lock);

	fn(arg);
	if (max == 1)
		return;

	pthread_mutex_lock(&lock);
	task_remove(&task);
	while (task.helping)
		pthread_cond_wait(&helper_gone, &lock);
	pthread_mutex_unlock(&lock);
}

void exec_set_workers(unsigned int n)
{
	pthread_mutex_lock(&lock);
	n_workers = n;
	pthread_mutex_unlock(&lock);
}
