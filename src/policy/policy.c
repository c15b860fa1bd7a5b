/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample goes through in this order: who is over (count), which devices lack memory
 * (pressure), who is taken for that (victims), and then each case one step further.
 * Room for all cases and actions is made first, so that nothing can fail half-way.
 */
#include "policy/policy.h"

#include "policy/pressure.h"

#include <errno.h>
#include <string.h>

const struct policy_numbers policy_defaults = {
	.n_over = 3,
	.n_clear = 5,
	.tolerance_permille = 30,
	.tolerance_bytes = 256ULL << 20,
	.pressure_permille = 50,
	.pressure_bytes = 1ULL << 30,
	.foresight_ms = 5000,
	.evict_after_ms = 5000,
	.suspend_deadline_ms = 30000,
	.kill_after_ms = 10000,
	.gap_ms = 10000,
	.n_evictions = 3,
	.window_ms = 600000,
};

/* Of one case in one sample at most: a warning and a step, or a resume and the end. */
#define ACTIONS_OF_CASE 2

/**
 * struct policy_case - what is remembered of a tenant
 * @tenant:	in this sample; NULL once it is gone
 * @n_over:	samples in a row above its request and the tolerance, per device
 * @n_within:	samples in a row within it
 * @open:	there is an incident
 * @held:	it was told that the next step is not taken
 * @step:	the last one taken
 * @step_ms:	when, or when the ladder began anew
 * @device:	where it is over by the most in this sample
 * @is_over:	on a device that is known, or @device means nothing
 * @is_urgent:	it is one of those who are taken in this sample, for @why
 * @last:	the numbers of its latest action, for the one that ends it
 */
struct policy_case {
	uint32_t id;
	const struct policy_tenant *tenant;
	uint8_t n_over[LEDGER_DEVICES];
	uint8_t n_within[LEDGER_DEVICES];
	bool open;
	bool held;
	bool suspended;
	enum ladder_step step;
	uint64_t step_ms;
	uint64_t open_ms;
	unsigned device;
	bool is_over;
	bool is_urgent;
	enum policy_reason why;
	struct policy_action last;
};

/* What the functions below hand on to each other while one sample is taken in. */
struct deciding {
	const struct policy_numbers *numbers;
	struct policy_state *state;
	const struct policy_sample *sample;
	struct policy_actions *actions;
	struct pressure pressure[LEDGER_DEVICES];
	unsigned n_devices;
	uint64_t now_ms;
};

static const char *const kind_names[N_POLICY_KINDS] = {
	[POLICY_WARN] = "warn",	  [POLICY_SUSPEND] = "suspend", [POLICY_EVICT] = "evict",
	[POLICY_KILL] = "kill",	  [POLICY_RESUME] = "resume",	[POLICY_HELD] = "held",
	[POLICY_CLEAR] = "clear",
};

static const char *const reason_names[N_POLICY_REASONS] = {
#define POLICY_REASON(id, name, words) [POLICY_##id] = name,
#include "policy/reasons.def"
#undef POLICY_REASON
};

const char *policy_kind_name(enum policy_kind kind)
{
	return kind_names[kind];
}

const char *policy_reason_name(enum policy_reason reason)
{
	return reason_names[reason];
}

/* --- room --- */

/* Tenants mostly come in the same order as the last time: @hint is looked at first. */
static struct policy_case *find_case(struct policy_state *state, uint32_t id, size_t hint)
{
	size_t i;

	if (hint < state->n_cases && state->cases[hint].id == id)
		return &state->cases[hint];
	for (i = 0; i < state->n_cases; i++) {
		if (state->cases[i].id == id)
			return &state->cases[i];
	}
	return NULL;
}

static int make_room(struct policy_state *state, const struct policy_sample *sample,
		     struct policy_actions *actions)
{
	size_t most = state->n_cases + sample->n_tenants;
	void *p;

	p = reallocarray(state->cases, most + 1, sizeof(*state->cases));
	if (!p)
		return -ENOMEM;
	state->cases = p;
	if (actions->cap >= most * ACTIONS_OF_CASE)
		return 0;
	p = reallocarray(actions->items, most * ACTIONS_OF_CASE, sizeof(*actions->items));
	if (!p)
		return -ENOMEM;
	actions->items = p;
	actions->cap = most * ACTIONS_OF_CASE;
	return 0;
}

/* --- actions --- */

static uint64_t excess_of(const struct policy_use *use)
{
	return use->used_bytes > use->request_bytes ? use->used_bytes - use->request_bytes : 0;
}

static void act(struct deciding *x, struct policy_case *c, enum policy_kind kind,
		enum policy_reason reason)
{
	struct policy_action *a = &x->actions->items[x->actions->n++];

	*a = c->last;
	a->kind = kind;
	a->reason = reason;
	a->id = c->id;
	a->open_ms = c->open_ms;
	if (c->tenant) {
		a->device = c->device;
		a->request_bytes = c->tenant->use[c->device].request_bytes;
		a->used_bytes = c->tenant->use[c->device].used_bytes;
		a->free_bytes = x->sample->devices[c->device].free_bytes;
		a->missing_bytes = x->pressure[c->device].missing_bytes;
	}
	c->last = *a;
}

/* The ladder begins anew: from here on the grace counts again. */
static void begin_ladder(struct deciding *x, struct policy_case *c)
{
	c->step = LADDER_WARN;
	c->step_ms = x->now_ms;
	c->held = false;
}

static void resume(struct deciding *x, struct policy_case *c, enum policy_reason reason)
{
	act(x, c, POLICY_RESUME, reason);
	c->suspended = false;
	begin_ladder(x, c);
	/* It must be seen over-using again before it is acted on again. */
	memset(c->n_over, 0, sizeof(c->n_over));
}

/* --- who is over --- */

static void count(struct deciding *x, struct policy_case *c, unsigned device)
{
	const struct policy_use *use = &c->tenant->use[device];
	uint64_t tolerance = MAX((uint64_t)((unsigned __int128)use->request_bytes *
					    x->numbers->tolerance_permille / 1000),
				 x->numbers->tolerance_bytes);

	if (!x->sample->devices[device].known || !use->known)
		return;
	if (excess_of(use) > tolerance) {
		c->n_over[device] = MIN(c->n_over[device] + 1, UINT8_MAX);
		c->n_within[device] = 0;
	} else if (excess_of(use) == 0) {
		c->n_over[device] = 0;
		c->n_within[device] = MIN(c->n_within[device] + 1, UINT8_MAX);
	} else {
		c->n_over[device] = 0;
		c->n_within[device] = 0;
	}
}

static bool is_over_on(const struct deciding *x, const struct policy_case *c, unsigned device)
{
	return x->sample->devices[device].known && c->tenant->use[device].known &&
	       c->n_over[device] >= x->numbers->n_over;
}

static void find_worst(struct deciding *x, struct policy_case *c)
{
	const struct policy_use *use = c->tenant->use;
	unsigned i;

	c->is_over = false;
	for (i = 0; i < x->n_devices; i++) {
		if (!is_over_on(x, c, i))
			continue;
		if (!c->is_over || excess_of(&use[i]) > excess_of(&use[c->device]))
			c->device = i;
		c->is_over = true;
	}
}

static void count_all(struct deciding *x, struct policy_case *c)
{
	unsigned i;

	for (i = 0; i < x->n_devices; i++) {
		count(x, c, i);
		if (x->sample->devices[i].known && c->n_over[i] > 0 &&
		    c->n_over[i] < x->numbers->n_over)
			x->state->devices[i].is_tense = true;
	}
	find_worst(x, c);
	if (!c->is_over || c->open)
		return;
	c->open = true;
	c->open_ms = x->now_ms;
	begin_ladder(x, c);
	act(x, c, POLICY_WARN, POLICY_OVER);
}

/* Above its request and tolerance in the latest sample that could tell. */
static bool is_above(const struct deciding *x, const struct policy_case *c)
{
	unsigned i;

	for (i = 0; i < x->n_devices; i++) {
		if (c->n_over[i] > 0)
			return true;
	}
	return false;
}

static bool is_clear(const struct deciding *x, const struct policy_case *c)
{
	unsigned i;

	for (i = 0; i < x->n_devices; i++) {
		if (c->n_within[i] < x->numbers->n_clear)
			return false;
	}
	return true;
}

/* --- who is taken where memory is missing --- */

static bool is_being_ended(const struct deciding *x, const struct policy_case *c)
{
	return c->open && c->step >= LADDER_EVICT &&
	       x->now_ms - c->step_ms < x->numbers->kill_after_ms;
}

static bool can_be_taken(const struct deciding *x, const struct policy_case *c, unsigned device)
{
	return c->tenant && c->open && !c->is_urgent && !is_being_ended(x, c) &&
	       c->tenant->ladder.to > LADDER_WARN && is_over_on(x, c, device);
}

/* The largest excess first, then the lowest priority. */
static bool goes_before(const struct policy_case *a, const struct policy_case *b, unsigned device)
{
	uint64_t of_a = excess_of(&a->tenant->use[device]);
	uint64_t of_b = excess_of(&b->tenant->use[device]);

	if (of_a != of_b)
		return of_a > of_b;
	if (a->tenant->priority != b->tenant->priority)
		return a->tenant->priority < b->tenant->priority;
	return a->id < b->id;
}

static struct policy_case *next_victim(struct deciding *x, unsigned device)
{
	struct policy_case *c, *best = NULL;
	size_t i;

	for (i = 0; i < x->state->n_cases; i++) {
		c = &x->state->cases[i];
		if (can_be_taken(x, c, device) && (!best || goes_before(c, best, device)))
			best = c;
	}
	return best;
}

/*
 * As many as it takes. One whose ladder ends with a suspend is stopped so that it does
 * not grow, but nothing comes free by that: the next is taken as well.
 */
static void take_victims(struct deciding *x, unsigned device)
{
	const struct pressure *p = &x->pressure[device];
	struct policy_case *c;
	uint64_t covered = 0;
	size_t i;

	for (i = 0; i < x->state->n_cases; i++) {
		c = &x->state->cases[i];
		if (c->tenant && (is_being_ended(x, c) ||
				  (c->is_urgent && c->tenant->ladder.to >= LADDER_EVICT)))
			covered += c->tenant->use[device].used_bytes;
	}
	while (covered < p->missing_bytes && (c = next_victim(x, device))) {
		c->is_urgent = true;
		c->why = p->reason;
		if (c->tenant->ladder.to >= LADDER_EVICT)
			covered += c->tenant->use[device].used_bytes;
	}
}

/* --- one step further --- */

static unsigned n_ended_lately(struct deciding *x, struct policy_memory *m)
{
	unsigned i, n = 0;

	for (i = 0; i < m->n_evicted; i++) {
		if (x->now_ms - m->evicted_ms[i] < x->numbers->window_ms)
			m->evicted_ms[n++] = m->evicted_ms[i];
	}
	m->n_evicted = n;
	return n;
}

/* Return: whether one more may be ended on its device; then it is counted. */
static bool spend_budget(struct deciding *x, const struct policy_case *c)
{
	struct policy_memory *m = &x->state->devices[c->device];

	/* The kill behind an eviction, and another try, are of the same ending. */
	if (c->step >= LADDER_EVICT)
		return true;
	if (n_ended_lately(x, m) >= MIN(x->numbers->n_evictions, (unsigned)POLICY_MAX_EVICTIONS))
		return false;
	m->evicted_ms[m->n_evicted++] = x->now_ms;
	return true;
}

static uint64_t delay_of(const struct deciding *x, const struct policy_case *c)
{
	switch (c->step) {
	case LADDER_WARN:
		return c->is_urgent ? 0 : c->tenant->grace_ms;
	case LADDER_SUSPEND:
		return c->is_urgent ? x->numbers->evict_after_ms : x->numbers->suspend_deadline_ms;
	default:
		return x->numbers->kill_after_ms;
	}
}

static enum policy_reason reason_of(const struct policy_case *c)
{
	if (c->step >= LADDER_EVICT)
		return POLICY_STILL_THERE;
	if (c->is_urgent)
		return c->why;
	return c->step == LADDER_SUSPEND ? POLICY_DEADLINE : POLICY_GRACE;
}

static bool is_past_deadline(const struct deciding *x, const struct policy_case *c)
{
	return c->suspended && x->now_ms - c->step_ms >= x->numbers->suspend_deadline_ms;
}

static void take_step(struct deciding *x, struct policy_case *c, enum ladder_step step)
{
	static const enum policy_kind kinds[N_LADDER_STEPS] = {
		[LADDER_WARN] = POLICY_WARN,
		[LADDER_SUSPEND] = POLICY_SUSPEND,
		[LADDER_EVICT] = POLICY_EVICT,
		[LADDER_KILL] = POLICY_KILL,
	};

	act(x, c, kinds[step], reason_of(c));
	c->step = step;
	c->step_ms = x->now_ms;
	c->suspended = step == LADDER_SUSPEND;
}

/* It is over on a device that could be asked. */
static void go_on(struct deciding *x, struct policy_case *c)
{
	enum ladder_step next = ladder_next(c->tenant->ladder, c->step);

	/* What did not end by the last step is tried again. */
	if (next == N_LADDER_STEPS && c->step >= LADDER_EVICT)
		next = c->step;
	if (next == N_LADDER_STEPS || x->now_ms - c->step_ms < delay_of(x, c)) {
		if (is_past_deadline(x, c))
			resume(x, c, POLICY_DEADLINE);
		return;
	}
	if (next < LADDER_EVICT || spend_budget(x, c)) {
		take_step(x, c, next);
		return;
	}
	if (is_past_deadline(x, c)) {
		resume(x, c, POLICY_DEADLINE);
	} else if (!c->held) {
		act(x, c, POLICY_HELD, POLICY_BUDGET);
		c->held = true;
	}
}

static void advance(struct deciding *x, struct policy_case *c)
{
	if (!c->open)
		return;
	if (!is_above(x, c)) {
		if (c->suspended)
			resume(x, c, POLICY_WITHIN);
		else
			begin_ladder(x, c);
	}
	if (c->suspended && c->tenant->ladder.to < LADDER_SUSPEND)
		resume(x, c, POLICY_CHANGED);
	if (is_clear(x, c)) {
		act(x, c, POLICY_CLEAR, POLICY_WITHIN);
		c->open = false;
	} else if (c->is_over && is_above(x, c)) {
		go_on(x, c);
	} else if (is_past_deadline(x, c)) {
		resume(x, c, POLICY_DEADLINE);
	}
}

/* --- taking a sample in --- */

static void take_time(struct deciding *x)
{
	struct policy_state *s = x->state;
	size_t i;

	x->now_ms = s->begun ? MAX(x->sample->now_ms, s->now_ms) : x->sample->now_ms;
	if (s->begun && x->now_ms - s->now_ms > x->numbers->gap_ms) {
		for (i = 0; i < s->n_cases; i++) {
			memset(s->cases[i].n_over, 0, sizeof(s->cases[i].n_over));
			memset(s->cases[i].n_within, 0, sizeof(s->cases[i].n_within));
		}
		for (i = 0; i < LEDGER_DEVICES; i++)
			s->devices[i].n_free = 0;
	}
	s->now_ms = x->now_ms;
	s->begun = true;
}

static void take_devices(struct deciding *x)
{
	const struct policy_device *d;
	struct policy_memory *m;
	unsigned i;

	for (i = 0; i < x->n_devices; i++) {
		d = &x->sample->devices[i];
		m = &x->state->devices[i];
		if (!d->known)
			continue;
		pressure_remember(m, x->now_ms, d->free_bytes);
		x->pressure[i] = pressure_of(x->numbers, m, d);
		m->is_tense = x->pressure[i].on;
	}
}

static void take_tenants(struct deciding *x)
{
	struct policy_state *s = x->state;
	struct policy_case *c;
	size_t i;

	for (i = 0; i < s->n_cases; i++) {
		s->cases[i].tenant = NULL;
		s->cases[i].is_urgent = false;
	}
	for (i = 0; i < x->sample->n_tenants; i++) {
		c = find_case(s, x->sample->tenants[i].id, i);
		if (!c) {
			c = &s->cases[s->n_cases++];
			memset(c, 0, sizeof(*c));
			c->id = x->sample->tenants[i].id;
		}
		c->tenant = &x->sample->tenants[i];
	}
}

static void drop_gone(struct deciding *x)
{
	struct policy_state *s = x->state;
	size_t i, n = 0;

	for (i = 0; i < s->n_cases; i++) {
		if (s->cases[i].tenant)
			s->cases[n++] = s->cases[i];
		else if (s->cases[i].open)
			act(x, &s->cases[i], POLICY_CLEAR, POLICY_GONE);
	}
	s->n_cases = n;
}

int policy_decide(const struct policy_numbers *numbers, struct policy_state *state,
		  const struct policy_sample *sample, struct policy_actions *ret)
{
	struct deciding x = { numbers, state, sample, ret,
			      .n_devices = MIN(sample->n_devices, (unsigned)LEDGER_DEVICES) };
	unsigned device;
	size_t i;
	int r;

	r = make_room(state, sample, ret);
	if (r < 0)
		return r;
	ret->n = 0;
	take_time(&x);
	take_devices(&x);
	take_tenants(&x);
	drop_gone(&x);
	for (i = 0; i < state->n_cases; i++)
		count_all(&x, &state->cases[i]);
	for (device = 0; device < x.n_devices; device++) {
		if (x.pressure[device].on)
			take_victims(&x, device);
	}
	for (i = 0; i < state->n_cases; i++)
		advance(&x, &state->cases[i]);
	return 0;
}

void policy_actions_done(struct policy_actions *actions)
{
	free(actions->items);
	memset(actions, 0, sizeof(*actions));
}

void policy_state_done(struct policy_state *state)
{
	free(state->cases);
	memset(state, 0, sizeof(*state));
}
