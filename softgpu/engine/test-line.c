// SPDX-License-Identifier: Apache-2.0
/*
 * The line of turns with a clock of the test's own: what it gives whom, to the nanosecond.
 */
#include "softgpu/engine/engine.h"
#include "softgpu/engine/line.h"
#include "softgpu/util/check.h"

#include <stdio.h>
#include <stdlib.h>

#define MS	  1000000ull
#define BEGIN	  (1000 * MS)
#define CLIENTS_N 10

static struct state_file *file_new(void)
{
	struct state_file *file = aligned_alloc(64, sizeof(*file));

	if (!file)
		exit(1);
	*file = (struct state_file){ 0 };
	file->turn.a = 1;
	file->properties[0].slice_ns = 2 * MS;
	file->properties[0].sample_period_ns = 100 * MS;
	return file;
}

static uint64_t ask(struct state_file *file, int client, uint64_t ns, uint64_t ready_ns,
		    bool keeps_turn)
{
	bool lost;

	return line_ask(file, client, ns, ready_ns, keeps_turn, &lost);
}

/* A living process with one context. */
static int client_new(struct state_file *file, unsigned slot)
{
	file->slots[slot].life = 1000 + slot;
	file->slots[slot].birth = 7 * STATE_SLOTS_MAX + slot;
	if (file->n_slots <= slot)
		file->n_slots = slot + 1;
	return line_join(file, file->slots[slot].birth);
}

static uint64_t end_of(struct state_file *file, int client, uint64_t position, uint64_t now)
{
	bool known;
	uint64_t end;

	line_advance(file, now);
	end = line_end(file, client, position, &known);
	return known ? end : LINE_NEVER;
}

static void test_alone(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0);
	uint64_t at, end = BEGIN;
	bool gapless = true;

	/* 100 jobs of 3 ms, each noticed up to 4 ms late, all queued at the beginning. */
	for (unsigned i = 0; i < 100; i++) {
		at = ask(file, a, 3 * MS, end, i < 99);
		end = end_of(file, a, at, end + 3 * MS + i % 5 * MS);
		gapless = gapless && end == BEGIN + (i + 1) * 3 * MS;
	}
	check(gapless, "a lone tenant loses nothing between jobs, however late it wakes");
	check(file->busy_ns == 300 * MS, "its device time is that of its jobs");
	at = ask(file, a, MS, BEGIN + 1000 * MS, false);
	check(end_of(file, a, at, BEGIN + 1002 * MS) == BEGIN + 1001 * MS,
	      "after idling, a job begins when it is ready");
	check(file->busy_ns == 301 * MS, "idle time is nobody's");
	line_leave(file, &file->slots[0], a);
	check(file->slots[0].busy_past_ns == 301 * MS,
	      "what a client was served stays with its process");
	free(file);
}

static void test_long_ago(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0);
	uint64_t at = ask(file, a, 3600 * 1000 * MS, BEGIN, false);

	check(end_of(file, a, at, BEGIN + 7200 * 1000 * MS) == BEGIN + 3600 * 1000 * MS,
	      "an hour that nobody looked at");
	free(file);
}

static void test_rotation(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0), b = client_new(file, 1), c = client_new(file, 2);
	uint64_t end_a, end_b, end_c;

	end_a = ask(file, a, 3 * MS, BEGIN, false);
	end_b = ask(file, b, 5 * MS, BEGIN, false);
	line_advance(file, BEGIN);
	end_c = ask(file, c, 1 * MS, BEGIN + 3 * MS, false);
	line_advance(file, BEGIN + 50 * MS);
	/* In ms: b 0-2, being after client 0; a 2-4, as c is not ready; b 4-6, c 6-7, a 7-8, b 8-9
	 */
	end_a = end_of(file, a, end_a, BEGIN + 50 * MS);
	end_b = end_of(file, b, end_b, BEGIN + 50 * MS);
	end_c = end_of(file, c, end_c, BEGIN + 50 * MS);
	check(end_a == BEGIN + 8 * MS && end_b == BEGIN + 9 * MS && end_c == BEGIN + 7 * MS,
	      "contexts take turns of 2 ms");
	check(file->busy_ns == 9 * MS, "and waste nothing");
	free(file);
}

static void test_estimate(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0), b = client_new(file, 1);
	uint64_t at, early, end;
	bool known;

	ask(file, a, 100 * MS, BEGIN, false);
	line_advance(file, BEGIN);
	at = ask(file, b, 5 * MS, BEGIN, false);
	early = line_end(file, b, at, &known);
	end = end_of(file, b, at, BEGIN + 200 * MS);
	check(!known && early == end,
	      "line_end: with unchanged work, the earliest moment is the one");
	free(file);
}

/* In ms: b 0-2, being after client 0; the turn that a keeps 2-4; b from then on. */
static void test_credit(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0), b = client_new(file, 1);
	uint64_t at = ask(file, a, MS / 2, BEGIN, true), begin = BEGIN + 2 * MS;
	bool lost;

	ask(file, b, 100 * MS, BEGIN, false);
	line_advance(file, begin);
	at = line_ask(file, a, MS / 2, begin + MS / 2, false, &lost);
	check(!lost && end_of(file, a, at, begin + MS) == begin + MS,
	      "a turn that is kept serves what follows in time");
	at = line_ask(file, a, MS / 4, begin + MS + MS / 2, false, &lost);
	check(lost && end_of(file, a, at, begin + 2 * MS) == begin + MS + 3 * MS / 4,
	      "what follows later begins later");
	line_advance(file, begin + 4 * MS);
	at = line_ask(file, a, MS, begin + 5 * MS, false, &lost);
	check(lost && end_of(file, a, at, begin + 8 * MS) == begin + 7 * MS,
	      "what follows after the turn begins a new one");
	free(file);
}

static void test_no_credit_alone(void)
{
	struct state_file *file = file_new();
	int a = client_new(file, 0);
	uint64_t at = ask(file, a, MS / 2, BEGIN, true);
	bool lost;

	line_advance(file, BEGIN);
	at = line_ask(file, a, MS / 4, BEGIN + MS, true, &lost);
	check(!lost && end_of(file, a, at, BEGIN + 3 * MS) == BEGIN + MS + MS / 4,
	      "a lone tenant keeps no turn, so it loses none");
	check(file->busy_ns == 3 * MS / 4, "and was busy for its jobs alone");
	free(file);
}

static void test_dead_and_stopped(void)
{
	struct state_file *file = file_new();
	int dead = client_new(file, 0), stopped = client_new(file, 1), a = client_new(file, 2);
	uint64_t at;

	ask(file, dead, 100 * MS, BEGIN, true);
	ask(file, stopped, 1 * MS, BEGIN, true);
	at = ask(file, a, 20 * MS, BEGIN, false);
	line_advance(file, BEGIN);
	file->slots[0].life = FUTEX_OWNER_DIED;
	/* At most one turn each was given to the two before. */
	check(end_of(file, a, at, BEGIN + 100 * MS) <= BEGIN + 24 * MS,
	      "a dead or stopped process loses the device by the clock");
	free(file);
}

struct tenant {
	int client;
	uint64_t position;
	uint64_t end;
	uint64_t wakes_at; /* when it notices that its job is over */
	uint64_t served;
};

/* Ten tenants whose threads wake up late by a fixed sequence of 0 to 1.5 ms. */
static void tenants_run(struct state_file *file, struct tenant *tenants, uint64_t job_ns,
			bool queued, uint64_t until)
{
	uint64_t random = 1;
	bool known;

	for (uint64_t now = BEGIN; now < until; now += 50000) {
		line_advance(file, now);
		for (unsigned i = 0; i < CLIENTS_N; i++) {
			struct tenant *t = &tenants[i];
			uint64_t end = line_end(file, t->client, t->position, &known);

			if (!known || end > now)
				continue;
			if (!t->wakes_at) {
				random = random * 6364136223846793005ull + 1442695040888963407ull;
				t->wakes_at = now + (random >> 33) % 1500000;
			}
			if (now < t->wakes_at)
				continue;
			t->position = ask(file, t->client, job_ns, queued ? end : now, queued);
			t->wakes_at = 0;
		}
	}
}

static void test_shares(uint64_t job_ns, bool queued, const char *what)
{
	struct state_file *file = file_new();
	struct tenant tenants[CLIENTS_N] = { 0 };
	uint64_t busy = 0, served;
	bool fair = true;

	for (unsigned i = 0; i < CLIENTS_N; i++) {
		tenants[i].client = client_new(file, i);
		tenants[i].position = ask(file, tenants[i].client, job_ns, BEGIN, queued);
	}
	tenants_run(file, tenants, job_ns, queued, BEGIN + 10000 * MS);
	for (unsigned i = 0; i < CLIENTS_N; i++) {
		served = file->clients[tenants[i].client].served.b;
		busy += served;
		fair = fair && served >= 950 * MS && served <= 1050 * MS;
	}
	printf("# %s: %llu of 10000 ms busy\n", what, busy / 1000000ull);
	check(fair && busy >= 9999 * MS && busy == file->busy_ns, what);
	free(file);
}

static void test_damage(void)
{
	struct state_file *file = file_new();
	uint64_t at;
	int a;

	file->turn = (struct pair){ .a = UINT64_MAX / 2, .b = 1ull << 60 };
	file->clients[0].served = (struct pair){ .a = UINT64_MAX / 4, .b = 5 };
	line_advance(file, BEGIN);
	a = client_new(file, 0);
	at = ask(file, a, 1 * MS, BEGIN, false);
	check(end_of(file, a, at, BEGIN + 1 * MS) == BEGIN + 1 * MS,
	      "turns in the far future, written by somebody else, hold nobody up");
	free(file);
}

static void test_work(void)
{
	struct softgpu_device_config device = { .n_sms = 100, .clock_mhz = 1000 };

	/* A full device: 100 SMs x 128 lanes x 1 GHz = 12,800 a nanosecond. */
	check(engine_work_ns(&device, 12800000, 1000, 512) == 1001, "engine_work_ns: full device");
	check(engine_work_ns(&device, 1000, 1, 1) == 4001, "engine_work_ns: a single thread");
	check(engine_work_ns(&device, 12800000, 1, 512) == 100001,
	      "engine_work_ns: one block, one SM");
	check(engine_work_ns(&device, 0, 1, 1) == 0, "engine_work_ns: nothing");
}

int main(void)
{
	test_alone();
	test_long_ago();
	test_rotation();
	test_estimate();
	test_credit();
	test_no_credit_alone();
	test_dead_and_stopped();
	test_shares(1 * MS, true, "ten tenants, queued kernels of 1 ms: equal shares of 100 %");
	test_shares(7 * MS, true, "ten tenants, queued kernels of 7 ms: equal shares of 100 %");
	test_shares(1 * MS, false, "ten tenants that synchronise after each kernel of 1 ms");
	test_shares(20 * MS, false, "ten tenants that synchronise after each kernel of 20 ms");
	test_damage();
	test_work();
	return n_failed != 0;
}
