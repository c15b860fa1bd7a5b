/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/check.h"
#include "daemon/use-samples.h"

#include <stdlib.h>

#define MIB (1ULL << 20)

/* What is expected of a visit: these, one after the other. */
struct expected {
	const struct use_sample *samples;
	size_t n;
	size_t n_same;
};

static void compare(const struct use_sample *s, void *userdata)
{
	struct expected *e = userdata;
	const struct use_sample *other = &e->samples[e->n++];

	e->n_same += s->bytes == other->bytes && s->time_ms == other->time_ms &&
		     s->pid == other->pid && s->tenant == other->tenant &&
		     s->device == other->device && s->percent == other->percent;
}

static bool are_the_same(const struct use_sample *all, size_t n)
{
	struct expected e = { .samples = all };
	struct use_samples samples = {};
	size_t i;

	for (i = 0; i < n; i++)
		use_samples_add(&samples, &all[i]);
	use_samples_each(&samples, all[n - 1].time_ms, compare, &e);
	use_samples_done(&samples);
	return e.n == n && e.n_same == n;
}

static void test_extremes(void)
{
	static const struct use_sample all[] = {
		{},
		{ .bytes = UINT64_MAX, .pid = INT32_MAX, .tenant = UINT32_MAX, .percent = 100 },
		{ .bytes = 1, .time_ms = 1, .pid = 1, .device = 15 },
		{ .bytes = 1ULL << 63, .time_ms = 600001, .tenant = 1, .percent = 255 },
		{ .bytes = 24117409, .time_ms = 600001, .pid = 4194304, .tenant = UINT32_MAX },
	};

	/* Those of ten minutes, at either end. */
	check(are_the_same(all, 3) && are_the_same(all + 2, 3),
	      "samples: the largest and the smallest numbers");
}

static void test_random(void)
{
	enum { N = 10000 };
	struct use_sample *all = calloc(N, sizeof(*all));
	size_t i;

	if (!all)
		exit(1);
	for (i = 0; i < N; i++)
		all[i] = (struct use_sample){
			.bytes = check_random_below(1ULL << check_random_below(64)),
			.time_ms = (i ? all[i - 1].time_ms : 1ULL << 40) + check_random_below(50),
			.pid = check_random_below(1 << 22),
			.tenant = check_random_below(1 << check_random_below(31)),
			.device = check_random_below(16),
			.percent = check_random_below(101),
		};
	check(are_the_same(all, N), "samples: what was kept is what is told");
	free(all);
}

struct counted {
	size_t n;
	uint64_t first_ms;
	uint64_t last_ms;
};

static void count(const struct use_sample *s, void *userdata)
{
	struct counted *c = userdata;

	if (c->n++ == 0)
		c->first_ms = s->time_ms;
	c->last_ms = s->time_ms;
}

static struct counted counted_at(const struct use_samples *samples, uint64_t now_ms)
{
	struct counted c = {};

	use_samples_each(samples, now_ms, count, &c);
	return c;
}

/* 500 processes, of 25 tenants on 8 devices, in each of which something changes each second. */
static void add_second(struct use_samples *samples, uint64_t time_ms)
{
	unsigned device, i;

	for (device = 0; device < 8; device++)
		for (i = device; i < 500; i += 8)
			use_samples_add(samples,
					&(struct use_sample){
						.bytes = check_random_below(40000) * 2 * MIB,
						.time_ms = time_ms,
						.pid = 100000 + 137 * i,
						.tenant = 1 + i / 20,
						.device = device,
						.percent = check_random_below(101),
					});
}

static void test_room(void)
{
	struct use_samples samples = {};
	struct counted c;
	unsigned i;

	for (i = 0; i < 600; i++)
		add_second(&samples, i * 1000);
	c = counted_at(&samples, 599000);
	check(c.n == 300000 && c.first_ms == 0 && c.last_ms == 599000,
	      "samples: 500 processes that change all the time have their ten minutes");
	for (; i < 2000; i++)
		add_second(&samples, i * 1000);
	c = counted_at(&samples, 1999000);
	check(c.n == 601 * 500 && c.first_ms == 1399000 && c.last_ms == 1999000,
	      "samples: and no more");
	for (i = 0; i < 500; i++)
		add_second(&samples, 1999000 + i);
	c = counted_at(&samples, 1999499);
	check(samples.n_blocks * 16384 == USE_SAMPLES_BYTES && c.n > 250000 &&
		      c.last_ms == 1999499 && c.first_ms > 1399499,
	      "samples: where there is no room the oldest go");
	use_samples_add(&samples, &(struct use_sample){ .time_ms = 3000000 });
	c = counted_at(&samples, 3000000);
	check(samples.n_blocks == 1 && c.n == 1, "samples: what is over takes no room");
	use_samples_done(&samples);
	check(!samples.oldest && !samples.newest && !samples.n_blocks, "samples: all are gone");
}

int main(void)
{
	test_extremes();
	test_random();
	test_room();
	return check_result();
}
