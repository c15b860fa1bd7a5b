/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <inttypes.h>
#include <string.h>

#define MIB (1ULL << 20)

/* The sample that is judged, and what was done to each tenant in it. */
struct looking {
	struct judge *judge;
	const struct policy_sample *sample;
	bool did[JUDGE_TENANTS][N_POLICY_KINDS];
	bool is_victim[JUDGE_TENANTS];
	uint64_t missing[JUDGE_DEVICES];
};

static void wrong(struct looking *l, size_t tenant, const char *what)
{
	if (l->judge->n_wrong++ < 10)
		printf("at %" PRIu64 " ms, tenant %zu: %s\n", l->sample->now_ms, tenant, what);
}

/* --- what the samples tell --- */

static int mark_of(const struct policy_use *use)
{
	uint64_t tolerance = use->request_bytes / 100 * 3;

	if (use->request_bytes == POLICY_NO_REQUEST || use->used_bytes <= use->request_bytes)
		return -1;
	if (tolerance < 256 * MIB)
		tolerance = 256 * MIB;
	return use->used_bytes - use->request_bytes > tolerance ? 1 : 0;
}

static bool row(const int *marks, int n, int mark)
{
	while (n--) {
		if (marks[n] != mark)
			return false;
	}
	return true;
}

static bool is_over(const struct looking *l, size_t tenant, unsigned device)
{
	return l->sample->devices[device].known && l->sample->tenants[tenant].use[device].known &&
	       row(l->judge->tenants[tenant].marks[device], 3, 1);
}

static bool is_over_anywhere(const struct looking *l, size_t tenant)
{
	return is_over(l, tenant, 0) || is_over(l, tenant, 1);
}

static void remember(struct looking *l, size_t tenant, unsigned device)
{
	const struct policy_use *use = &l->sample->tenants[tenant].use[device];
	int *marks = l->judge->tenants[tenant].marks[device];

	if (!l->sample->devices[device].known || !use->known)
		return;
	memmove(marks + 1, marks, (JUDGE_HISTORY - 1) * sizeof(*marks));
	marks[0] = mark_of(use);
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t missing_on(struct looking *l, unsigned device)
{
	const struct policy_device *d = &l->sample->devices[device];
	uint64_t *bytes = l->judge->free_bytes[device], *ms = l->judge->free_ms[device];
	uint64_t missing = 0, floor = at_least(d->total_bytes / 20, 1024 * MIB);
	double falls;

	if (!d->known)
		return 0;
	memmove(bytes + 1, bytes, 2 * sizeof(*bytes));
	memmove(ms + 1, ms, 2 * sizeof(*ms));
	bytes[0] = d->free_bytes;
	ms[0] = l->sample->now_ms;
	l->judge->n_free[device]++;
	if (d->free_bytes < floor)
		missing = floor - d->free_bytes;
	if (d->wanted_bytes > d->free_bytes)
		missing = at_least(missing, d->wanted_bytes - d->free_bytes);
	if (l->judge->n_free[device] >= 3 && bytes[0] < bytes[1] && bytes[1] < bytes[2]) {
		falls = (double)(bytes[2] - bytes[0]) * 5000 / (ms[0] - ms[2]);
		if (falls > bytes[0])
			missing = at_least(missing, falls - bytes[0]);
	}
	return missing;
}

/* --- who should be taken --- */

static uint64_t excess(const struct looking *l, size_t tenant, unsigned device)
{
	const struct policy_use *use = &l->sample->tenants[tenant].use[device];

	return use->used_bytes - use->request_bytes;
}

static bool is_ending(const struct looking *l, size_t tenant)
{
	const struct judged *j = &l->judge->tenants[tenant];

	return j->ended && l->sample->now_ms - j->ended_ms < 10000;
}

static bool comes_before(const struct looking *l, size_t a, size_t b, unsigned device)
{
	const struct policy_tenant *t = l->sample->tenants;

	if (excess(l, a, device) != excess(l, b, device))
		return excess(l, a, device) > excess(l, b, device);
	return t[a].priority != t[b].priority ? t[a].priority < t[b].priority : t[a].id < t[b].id;
}

/* What comes free before it is its turn: by those before it in line, and by another device's. */
static uint64_t covered_before(const struct looking *l, size_t tenant, unsigned device)
{
	uint64_t covered = 0;
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++) {
		const struct policy_tenant *t = &l->sample->tenants[i];

		if (i == tenant)
			continue;
		if (is_ending(l, i))
			covered += t->use[device].used_bytes;
		else if (t->ladder.to >= LADDER_EVICT &&
			 (l->is_victim[i] ||
			  (is_over(l, i, device) && comes_before(l, i, tenant, device))))
			covered += t->use[device].used_bytes;
	}
	return covered;
}

static void find_victims(struct looking *l, unsigned device)
{
	bool victim[JUDGE_TENANTS] = {};
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++)
		victim[i] = l->missing[device] > 0 && is_over(l, i, device) && !is_ending(l, i) &&
			    l->sample->tenants[i].ladder.to > LADDER_WARN &&
			    covered_before(l, i, device) < l->missing[device];
	for (i = 0; i < JUDGE_TENANTS; i++)
		l->is_victim[i] |= victim[i];
}

/* --- the rules --- */

static void judge_beginning(struct looking *l, size_t tenant)
{
	struct judged *j = &l->judge->tenants[tenant];

	if (!j->open && is_over_anywhere(l, tenant) != l->did[tenant][POLICY_WARN])
		wrong(l, tenant, "is over and was not warned, or warned and not over");
	if (j->open && l->did[tenant][POLICY_WARN])
		wrong(l, tenant, "was warned twice");
	if (l->did[tenant][POLICY_WARN]) {
		j->open = true;
		j->quiet_ms = l->sample->now_ms;
		l->judge->n_incidents++;
	}
}

static void judge_end(struct looking *l, size_t tenant)
{
	struct judged *j = &l->judge->tenants[tenant];
	bool within = row(j->marks[0], 5, -1) && row(j->marks[1], 5, -1);

	if (l->did[tenant][POLICY_CLEAR] != (j->open && within))
		wrong(l, tenant, "five in a row within its request end it, and nothing else");
}

static bool was_acted_on(const struct looking *l, size_t tenant)
{
	const bool *did = l->did[tenant];

	return did[POLICY_SUSPEND] || did[POLICY_EVICT] || did[POLICY_KILL];
}

static void judge_safety(struct looking *l, size_t tenant)
{
	const struct policy_tenant *t = &l->sample->tenants[tenant];
	const struct judged *j = &l->judge->tenants[tenant];

	if (!was_acted_on(l, tenant))
		return;
	if (!is_over_anywhere(l, tenant))
		wrong(l, tenant, "was acted on and is not over");
	if (l->did[tenant][POLICY_SUSPEND] &&
	    (t->ladder.from > LADDER_SUSPEND || t->ladder.to < LADDER_SUSPEND))
		wrong(l, tenant, "was suspended, and its ladder has no such step");
	if (l->did[tenant][POLICY_EVICT] &&
	    (t->ladder.from > LADDER_EVICT || t->ladder.to < LADDER_EVICT))
		wrong(l, tenant, "was evicted, and its ladder has no such step");
	if (l->did[tenant][POLICY_KILL] && t->ladder.to < LADDER_KILL)
		wrong(l, tenant, "was killed, and its ladder has no such step");
	if (!j->suspended && !j->ended && !l->is_victim[tenant] &&
	    l->sample->now_ms - j->quiet_ms < t->grace_ms)
		wrong(l, tenant, "was acted on within its grace, and nobody lacked memory");
}

/* Something must have been done by now; that it was held is something. */
static void judge_progress(struct looking *l, size_t tenant)
{
	const struct policy_tenant *t = &l->sample->tenants[tenant];
	const struct judged *j = &l->judge->tenants[tenant];
	uint64_t now = l->sample->now_ms;
	bool done = was_acted_on(l, tenant) || l->did[tenant][POLICY_HELD] ||
		    l->did[tenant][POLICY_RESUME] || j->held;

	if (!j->open || !is_over_anywhere(l, tenant) || t->ladder.to == LADDER_WARN || j->ended)
		return;
	if (!j->suspended && !done && (l->is_victim[tenant] || now - j->quiet_ms >= t->grace_ms))
		wrong(l, tenant, "is over, and nothing was done");
	if (j->suspended && !done && l->is_victim[tenant] && t->ladder.to > LADDER_SUSPEND &&
	    now - j->suspended_ms >= 5000)
		wrong(l, tenant, "is suspended under pressure for 5 s, and nothing followed");
}

static void judge_suspend(struct looking *l, size_t tenant)
{
	const struct judged *j = &l->judge->tenants[tenant];
	bool ends = l->did[tenant][POLICY_RESUME] || l->did[tenant][POLICY_EVICT] ||
		    l->did[tenant][POLICY_KILL];
	bool above = j->marks[0][0] == 1 || j->marks[1][0] == 1;

	if (l->did[tenant][POLICY_RESUME] && !j->suspended)
		wrong(l, tenant, "was let go and not suspended");
	if (j->suspended && !ends && l->sample->now_ms - j->suspended_ms >= 30000)
		wrong(l, tenant, "is suspended beyond the deadline");
	if (j->suspended && !ends && !above)
		wrong(l, tenant, "is within its request and suspended still");
}

static void judge_budget(struct looking *l, const struct policy_action *a, size_t tenant)
{
	struct judge *judge = l->judge;
	unsigned i, n = 0;

	if ((a->kind != POLICY_EVICT && a->kind != POLICY_KILL) || judge->tenants[tenant].ended)
		return;
	for (i = 0; i < judge->n_ended[a->device] && i < 64; i++)
		n += l->sample->now_ms - judge->ended_ms[a->device][i] < 600000;
	if (n >= 3)
		wrong(l, tenant, "was ended, the fourth of its device in ten minutes");
	judge->ended_ms[a->device][judge->n_ended[a->device]++ % 64] = l->sample->now_ms;
}

/* Who is let go must be seen over-using again. */
static void forget_over(struct judged *j)
{
	unsigned device, i;

	for (device = 0; device < JUDGE_DEVICES; device++) {
		for (i = 0; i < JUDGE_HISTORY; i++) {
			if (j->marks[device][i] == 1)
				j->marks[device][i] = 0;
		}
	}
}

static void take_note(struct looking *l, size_t tenant)
{
	struct judged *j = &l->judge->tenants[tenant];
	const bool *did = l->did[tenant];
	uint64_t now = l->sample->now_ms;
	bool above = j->marks[0][0] == 1 || j->marks[1][0] == 1;

	if (did[POLICY_RESUME]) {
		j->suspended = j->held = false;
		j->quiet_ms = now;
		forget_over(j);
	}
	if (did[POLICY_SUSPEND]) {
		j->suspended = true;
		j->suspended_ms = now;
	}
	if (did[POLICY_EVICT] || did[POLICY_KILL]) {
		j->ended = true;
		j->suspended = false;
		j->ended_ms = now;
	}
	j->held |= did[POLICY_HELD];
	if (!above && !did[POLICY_RESUME]) {
		j->quiet_ms = now;
		j->ended = j->held = false;
	}
	if (did[POLICY_CLEAR])
		j->open = false;
}

static size_t place_of(const struct policy_sample *sample, uint32_t id)
{
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++) {
		if (sample->tenants[i].id == id)
			return i;
	}
	return JUDGE_TENANTS;
}

static void take_actions(struct looking *l, const struct policy_actions *actions)
{
	const struct policy_action *a;
	size_t i, tenant;

	for (i = 0; i < actions->n; i++) {
		a = &actions->items[i];
		l->judge->n_actions[a->kind]++;
		tenant = place_of(l->sample, a->id);
		if (tenant == JUDGE_TENANTS) {
			if (a->kind != POLICY_CLEAR || a->reason != POLICY_GONE)
				wrong(l, tenant, "an action on who is gone");
			continue;
		}
		l->did[tenant][a->kind] = true;
		judge_budget(l, a, tenant);
	}
}

void judge_sample(struct judge *judge, const struct policy_sample *sample,
		  const struct policy_actions *actions, const bool gone[JUDGE_TENANTS])
{
	struct looking l = { .judge = judge, .sample = sample };
	unsigned device;
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++) {
		if (gone[i])
			memset(&judge->tenants[i], 0, sizeof(judge->tenants[i]));
		/* Samples with a gap between are not in a row. */
		if (sample->now_ms - judge->last_ms > 10000)
			memset(judge->tenants[i].marks, 0, sizeof(judge->tenants[i].marks));
	}
	if (sample->now_ms - judge->last_ms > 10000)
		memset(judge->n_free, 0, sizeof(judge->n_free));
	judge->last_ms = sample->now_ms;
	for (i = 0; i < JUDGE_TENANTS; i++) {
		for (device = 0; device < JUDGE_DEVICES; device++)
			remember(&l, i, device);
	}
	take_actions(&l, actions);
	for (device = 0; device < JUDGE_DEVICES; device++) {
		l.missing[device] = missing_on(&l, device);
		find_victims(&l, device);
	}
	for (i = 0; i < JUDGE_TENANTS; i++) {
		judge_beginning(&l, i);
		judge_safety(&l, i);
		judge_progress(&l, i);
		judge_suspend(&l, i);
		judge_end(&l, i);
		take_note(&l, i);
	}
}
