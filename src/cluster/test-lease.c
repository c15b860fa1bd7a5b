/* SPDX-License-Identifier: Apache-2.0 */
/* Three that want the lease, each stopped for any time between any two of its steps. */
#include "cluster/lease.h"

#include "base/check.h"
#include "base/str.h"

#define N      3
#define LENGTH 100
#define STEPS  300000

enum step { LOOK, WRITE, HEAR };

/**
 * struct one - a controller
 * @step:	what it does next
 * @looked_ms, @read, @to_write:	in between
 * @clock_ms:	its own clock is ahead by
 */
struct one {
	struct lease lease;
	enum step step;
	uint64_t looked_ms;
	struct lease_row read, to_write;
	uint64_t clock_ms;
	bool is_written;
};

static uint64_t now_ms = 1000;
static struct lease_row row;
static struct one all[N];
static unsigned long n_taken, n_acts;

static void begin(struct one *one, size_t i)
{
	*one = (struct one){ .lease = { .length_ms = LENGTH }, .clock_ms = 1000000 * (i + 1) };
	snprintf(one->lease.self, sizeof(one->lease.self), "%zu", i);
}

/* A writer of the row has it alone: either it is as it was, and is another one then, or nothing happens. */
static void write_row(struct one *one)
{
	one->is_written =
		row.n_renewed == one->read.n_renewed && str_eq(row.holder, one->read.holder);
	if (!one->is_written)
		return;
	n_taken += !str_eq(row.holder, one->to_write.holder);
	row = one->to_write;
}

static void go_on(struct one *one)
{
	switch (one->step) {
	case LOOK:
		one->looked_ms = now_ms + one->clock_ms;
		one->read = row;
		one->step = lease_look(&one->lease, &one->read, one->looked_ms, &one->to_write)
				    ? WRITE
				    : LOOK;
		break;
	case WRITE:
		write_row(one);
		one->step = HEAR;
		break;
	case HEAR:
		if (one->is_written)
			lease_wrote(&one->lease, &one->to_write, one->looked_ms);
		one->step = LOOK;
		break;
	}
}

static unsigned n_that_may_act(void)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < N; i++)
		n += lease_may_act(&all[i].lease, now_ms + all[i].clock_ms);
	return n;
}

static void test_any_order(void)
{
	unsigned most = 0;
	size_t i, step;

	for (i = 0; i < N; i++)
		begin(&all[i], i);
	for (step = 0; step < STEPS; step++) {
		unsigned n;

		/* Mostly all is quick; now and then time passes, or one is started anew. */
		now_ms += check_random_below(20) ? check_random_below(5)
						 : check_random_below(2 * LENGTH);
		i = check_random_below(N);
		if (check_random_below(500) == 0)
			begin(&all[i], i);
		go_on(&all[i]);
		n = n_that_may_act();
		n_acts += n;
		most = n > most ? n : most;
	}
	check(most == 1, "lease: no two act at once: %u", most);
	check(n_acts > STEPS / 4 && n_taken > STEPS / 1000,
	      "lease: one mostly does, and it goes from one to another: %lu of %d, %lu times",
	      n_acts, STEPS, n_taken);
}

static void test_words(void)
{
	struct lease a = { .self = "a", .length_ms = LENGTH };
	struct lease b = { .self = "b", .length_ms = LENGTH };
	struct lease_row shared = {}, to_write = {};

	check(!lease_may_act(&a, 10) && lease_look(&a, &shared, 10, &to_write) &&
		      str_eq(to_write.holder, "a"),
	      "lease: what nobody has is taken at once");
	lease_wrote(&a, &to_write, 10);
	shared = to_write;
	check(lease_may_act(&a, 109) && !lease_may_act(&a, 110),
	      "lease: it is held for its length from the look on");
	check(!lease_look(&b, &shared, 50, &to_write) && !lease_look(&b, &shared, 149, &to_write) &&
		      lease_look(&b, &shared, 150, &to_write),
	      "lease: who waits takes it when nothing has changed for as long");
	shared = to_write;
	check(!lease_look(&a, &shared, 160, &to_write) && !lease_may_act(&a, 20),
	      "lease: who has lost it sees that");
}

int main(void)
{
	test_words();
	test_any_order();
	return check_result();
}
