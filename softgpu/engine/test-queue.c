// SPDX-License-Identifier: Apache-2.0
#include "softgpu/engine/queue.h"
#include "softgpu/util/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct queue queue;
static char order[16]; /* who had the device time, or ended */
static size_t n_order;

struct job {
	char name;
	int priority;
	pthread_t thread;
};

#define JOB(name_, priority_)                                                                      \
	{                                                                                          \
		.name = (name_), .priority = (priority_)                                           \
	}

static void note(char name)
{
	order[n_order++] = name;
	order[n_order] = '\0';
}

static size_t n_waiters(void)
{
	size_t n = 0;

	pthread_mutex_lock(&queue.lock);
	for (const struct queue_waiter *waiter = queue.waiters; waiter; waiter = waiter->next)
		n++;
	pthread_mutex_unlock(&queue.lock);
	return n;
}

static void *take(void *arg)
{
	const struct job *job = arg;

	queue_take(&queue, queue_level(job->priority));
	note(job->name);
	queue_give(&queue);
	return NULL;
}

static void test_order(void)
{
	struct job jobs[] = {
		JOB('a', 0), JOB('b', -1), JOB('c', 0), JOB('d', -5), JOB('e', -1), JOB('f', -100),
	};
	const size_t n = sizeof(jobs) / sizeof(jobs[0]);

	n_order = 0;
	queue_take(&queue, 0);
	for (size_t i = 0; i < n; i++) {
		pthread_create(&jobs[i].thread, NULL, take, &jobs[i]);
		while (n_waiters() < i + 1)
			usleep(100);
	}
	queue_give(&queue);
	for (size_t i = 0; i < n; i++)
		pthread_join(jobs[i].thread, NULL);
	check(strcmp(order, "fdbeac") == 0, "queue_take: urgent ones first, else as they came");
	check(!queue.busy && !queue.waiters, "queue_give: the last one leaves it free");
}

static void *begin(void *arg)
{
	struct job *job = arg;

	queue_begin(&queue, queue_level(job->priority), /* hold_ns= */ 3600000000000);
	note(job->name);
	queue_end(&queue, queue_level(job->priority));
	return NULL;
}

static void test_begin(void)
{
	struct job low = JOB('l', 0), high = JOB('h', -5);

	n_order = 0;
	queue_begin(&queue, 2, 0);
	pthread_create(&low.thread, NULL, begin, &low);
	pthread_create(&high.thread, NULL, begin, &high);
	pthread_join(high.thread, NULL);
	queue_end(&queue, 2);
	pthread_join(low.thread, NULL);
	check(strcmp(order, "hl") == 0, "queue_begin: waits for what is more urgent, not for less");

	n_order = 0;
	queue_begin(&queue, 2, 0);
	queue_begin(&queue, 1, 1000000);
	check(true, "queue_begin: not for ever");
	pthread_create(&low.thread, NULL, begin, &low);
	queue_close(&queue);
	pthread_join(low.thread, NULL);
	check(strcmp(order, "l") == 0, "queue_close: nobody is held any more");
	queue_end(&queue, 1);
	queue_end(&queue, 2);
}

int main(void)
{
	queue_init(&queue);
	test_order();
	test_begin();
	queue_done(&queue);
	return n_failed != 0;
}
