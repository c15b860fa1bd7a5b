/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compute limits: who gets which part of a device's time.
 *
 * Samples of the driver come in, expected costs and rates go out. All of it happens on the caller's
 * thread; the programs and the holder only read what is left in the shared state. If the caller dies
 * they go on with the costs and rates of its last word.
 */
#include <errno.h>

#include "launch.h"

#define MILLISECOND   1000000ULL
#define SCAN_NS	      (100 * MILLISECOND)     /* look for processes that are to be probed */
#define ACTIVE_NS     (500 * MILLISECOND)     /* at work is who was within this time */
#define PERIOD_NS     (500 * MILLISECOND / 3) /* until the first two samples tell */
#define PERIOD_NS_MAX (1000 * MILLISECOND)
#define LATE_NS	      (60 * MILLISECOND)  /* a tick, another until it is asked for, and some */
#define QUIET_NS      (300 * MILLISECOND) /* a sample that is there comes sooner */
#define AHEAD_NS                                                                                   \
	(300 * MILLISECOND) /* of its rate may be in flight: a sample is up to 200 ms old */
#define DRAINED_BELOW  0.95
#define DEFAULT_WEIGHT 100

/* --- measured ----------------------------------------------------------------------------------------- */

/* All tenants around a process launch nothing more before @until. */
static void tenants_hold(struct engine *engine, const struct probed *p, unsigned device,
			 uint64_t until)
{
	const struct audit_process *process = probed_process(engine, p);

	for (uint32_t i = 0; process && i < process->chain.n && i < LEDGER_DEPTH; i++)
		share_hold(share_of(engine, process->chain.tenants[i], device), until);
}

/*
 * A process that was running when a limit was set may have seconds of work queued of which nothing is
 * known. It launches nothing more until that has run.
 */
static void meter_start(struct engine *engine, struct probed *p, unsigned device,
			const struct share_sample *sample)
{
	p->started[device] = sample->drained && sample->begin_ns > p->since_ns;
	costs_skip(engine, p, device);
	if (p->started[device])
		share_meter_start(&p->meters[device], sample);
	else if (sample->busy_ns)
		tenants_hold(engine, p, device, sample->end_ns + 2 * PERIOD_NS);
}

static void sample_apply(struct engine *engine, struct probed *p, unsigned device,
			 const struct share_sample *sample, bool quiet)
{
	const struct audit_process *process = probed_process(engine, p);
	struct share_meter *meter = &p->meters[device];
	double correction;

	p->sampled_ns[device] = sample->end_ns;
	p->quiet_ns[device] = 0;
	if (!p->started[device]) {
		meter_start(engine, p, device, sample);
		return;
	}
	correction = share_meter_sample(meter, sample);
	correction +=
		share_meter_scale(meter, costs_learn(engine, p, device, sample, correction, quiet));
	for (uint32_t i = 0; process && i < process->chain.n && i < LEDGER_DEPTH; i++)
		share_correct(share_of(engine, process->chain.tenants[i], device),
			      clock_now_ns(CLOCK_MONOTONIC), correction);
}

/* Drivers leave out who does nothing. What has not shown for a while has run by now, and took next to nothing. */
static void quiet_apply(struct engine *engine, struct probed *p, unsigned device, uint64_t now)
{
	struct share_sample idle = {
		.begin_ns = p->sampled_ns[device],
		.end_ns = p->quiet_ns[device],
		.drained = true,
	};
	const struct audit_kernel *kernels = work_at(engine, p->work)->kernels;

	if (!p->sampled_ns[device] || now <= p->sampled_ns[device] + QUIET_NS)
		return;
	if (!p->quiet_ns[device]) {
		p->quiet_ns[device] = now;
		for (size_t i = 0; i < AUDIT_KERNELS; i++)
			if (kernels[i].device == device)
				p->n_quiet[i] = kernels[i].n_launches;
	} else if (now > p->quiet_ns[device] + QUIET_NS) {
		sample_apply(engine, p, device, &idle, /* quiet= */ true);
	}
}

/* Device time that a process used counts for each of its tenants. */
static void usage_add(struct engine *engine, const struct audit_process *process, unsigned device,
		      const struct share_sample *s)
{
	for (uint32_t i = 0; i < process->chain.n && i < LEDGER_DEPTH; i++) {
		struct worker *w = &engine->launches->workers[process->chain.tenants[i]][device];

		share_of(engine, process->chain.tenants[i], device)->usage_ns += s->busy_ns;
		w->used += (double)s->busy_ns / (s->end_ns - s->begin_ns);
		if (s->busy_ns)
			w->active_ns = s->end_ns;
	}
}

struct sample_search {
	struct engine *engine;
	unsigned device;
	const struct engine_sample *samples;
	size_t n;
	double busy;   /* of the whole device */
	size_t n_busy; /* processes that are at work */
};

/* The first sample of a process, or of the next. */
static size_t first_of(const struct sample_search *search, uint32_t tgid)
{
	size_t low = 0, high = search->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if ((uint32_t)search->samples[mid].pid < tgid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int sample_process(const struct audit_process *process, void *userdata)
{
	struct sample_search *search = userdata;
	struct engine *engine = search->engine;

	for (size_t i = first_of(search, audit_process_tgid(process)); i < search->n; i++) {
		const struct engine_sample *from = &search->samples[i];
		struct probed *p;
		struct share_sample s = { .end_ns = from->end_ns,
					  .begin_ns = from->end_ns - PERIOD_NS };

		if ((uint32_t)from->pid != audit_process_tgid(process))
			break;
		p = probed_find(engine, from->pid, process->serial);
		if (p && p->sampled_ns[search->device] && p->sampled_ns[search->device] < s.end_ns)
			s.begin_ns = MAX(p->sampled_ns[search->device], s.end_ns - PERIOD_NS_MAX);
		s.busy_ns = (s.end_ns - s.begin_ns) * from->percent / 100;
		s.turns = MIN(from->percent / 100.0 * (double)search->n_busy, 1.0);
		s.late = clock_now_ns(CLOCK_MONOTONIC) > s.end_ns + LATE_NS;
		/* The device had time left, or the process did not take its turns. */
		s.drained = search->busy < DRAINED_BELOW ||
			    from->percent / 100.0 < 0.8 / (double)search->n_busy;
		usage_add(engine, process, search->device, &s);
		if (p)
			sample_apply(engine, p, search->device, &s, /* quiet= */ false);
	}
	return 0;
}

int engine_compute_samples(struct engine *engine, unsigned device,
			   const struct engine_sample *samples, size_t n)
{
	struct sample_search search = { engine, device, samples, n, 0, 0 };

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		search.busy += samples[i].percent / 100.0;
		search.n_busy += samples[i].percent > 0;
	}
	search.n_busy = MAX(search.n_busy, (size_t)1);
	for (size_t i = 0; i < engine->n_tenants; i++)
		engine->launches->workers[i][device].used = 0;
	return engine_each_process(engine, sample_process, &search);
}

/* As fast as the tenants around a process let it go, 0 where none is limited. */
static double rate_of(const struct engine *engine, const struct audit_process *process,
		      unsigned device)
{
	uint32_t stretch = 0;

	for (uint32_t i = 0; i < process->chain.n && i < LEDGER_DEPTH; i++)
		stretch =
			MAX(stretch, share_of(engine, process->chain.tenants[i], device)->stretch);
	return stretch ? MIN((double)SHARE_ONE / stretch, 1.0) : 0;
}

/*
 * What is in flight is bounded: where others take the device, launches at a tenant's full rate would
 * queue, and all that would run at once when the others end.
 */
static void flight_bound(struct engine *engine, const struct probed *p, unsigned device,
			 uint64_t now)
{
	const struct audit_process *process = probed_process(engine, p);
	double rate = process && p->started[device] ? rate_of(engine, process, device) : 0;

	/* Of a process that no driver has told of for a while, it is not known what has run. */
	if (now <= p->sampled_ns[device] + AHEAD_NS && rate > 0 &&
	    share_meter_in_flight(&p->meters[device]) > rate * AHEAD_NS + SHARE_FIRST_NS)
		tenants_hold(engine, p, device, now + 2 * ENGINE_COMPUTE_TICK_MS * MILLISECOND);
}

/* Marks of what was charged; samples are compared with them. */
static void meters_mark(struct engine *engine, uint64_t now)
{
	for (struct probed *p = engine->launches->first; p; p = p->next)
		for (unsigned i = 0; i < engine->state->control.n_devices; i++) {
			share_meter_mark(&p->meters[i], now,
					 work_at(engine, p->work)->charged_ns[i]);
			costs_count(engine, p, i, now);
			quiet_apply(engine, p, i, now);
			flight_bound(engine, p, i, now);
		}
}

/* --- rates ----------------------------------------------------------------------------------------------- */

static double max_of(const struct share *s)
{
	return s->max_permille ? s->max_permille / 1000.0 : 1;
}

static uint32_t weight_of(const struct share *s)
{
	return s->weight ? s->weight : DEFAULT_WEIGHT;
}

/**
 * struct division - who gets which part of one device
 * @parents:	of each tenant, the one around it; 0 for none
 * @has_inside:	others are inside it
 * @rates:	what each of those at work gets
 * @limited:	and whether it is held to that
 * @by_weight:	weights differ among the tenants of the device, at work or not
 */
struct division {
	struct engine *engine;
	unsigned device;
	uint64_t now;
	uint32_t parents[LEDGER_TENANTS];
	bool has_inside[LEDGER_TENANTS];
	double rates[LEDGER_TENANTS];
	bool limited[LEDGER_TENANTS];
	bool by_weight;
};

static bool weights_differ(const struct engine *engine, unsigned device)
{
	for (uint32_t i = 1; i < engine->n_tenants; i++)
		if (engine->state->tenants[i].in_use &&
		    weight_of(share_of(engine, i, device)) != DEFAULT_WEIGHT)
			return true;
	return false;
}

static int parents_note(const struct audit_process *process, void *userdata)
{
	struct division *d = userdata;

	for (uint32_t i = 0; i + 1 < process->chain.n && i + 1 < LEDGER_DEPTH; i++) {
		d->parents[process->chain.tenants[i]] = process->chain.tenants[i + 1];
		d->has_inside[process->chain.tenants[i + 1]] = true;
	}
	return 0;
}

static bool is_at_work(const struct division *d, uint32_t tenant)
{
	return d->engine->state->tenants[tenant].in_use &&
	       d->now <= d->engine->launches->workers[tenant][d->device].active_ns + ACTIVE_NS;
}

static struct share_claim claim_of(struct division *d, uint32_t tenant)
{
	struct worker *w = &d->engine->launches->workers[tenant][d->device];
	const struct share *s = share_of(d->engine, tenant, d->device);
	struct share_claim claim = { .weight = weight_of(s),
				     .max = max_of(s),
				     .used = w->used,
				     .waits = s->n_throttled != w->n_throttled ||
					      s->due_ns > d->now };

	w->n_throttled = s->n_throttled;
	return claim;
}

/*
 * Divide what a tenant has, or the whole device for 0, among those at work right inside. Weights are
 * enforced only where they differ.
 */
static void rates_divide(struct division *d, uint32_t parent, double whole, unsigned depth)
{
	struct share_claim claims[LEDGER_TENANTS];
	uint32_t tenants[LEDGER_TENANTS];
	bool differ = false;
	size_t n = 0;

	for (uint32_t i = 1; i < d->engine->n_tenants; i++) {
		if (d->parents[i] != parent || !is_at_work(d, i))
			continue;
		claims[n] = claim_of(d, i);
		differ |= claims[n].weight != claims[0].weight;
		tenants[n++] = i;
	}
	share_divide(claims, n, whole);
	for (size_t i = 0; i < n; i++) {
		d->rates[tenants[i]] = claims[i].ret_rate;
		d->limited[tenants[i]] = differ;
		if (d->has_inside[tenants[i]] && depth < LEDGER_DEPTH)
			rates_divide(d, tenants[i], claims[i].ret_rate, depth + 1);
	}
}

/*
 * The rate of a tenant, 0 for none. Where weights differ, who is alone has the whole device, but what it
 * queues is bounded, or others who come would wait for seconds of work.
 */
static double rate_for(const struct division *d, uint32_t tenant, const struct share *s)
{
	if (d->limited[tenant])
		return MIN(d->rates[tenant], max_of(s));
	if (s->max_permille)
		return max_of(s);
	return d->by_weight && d->engine->state->tenants[tenant].in_use ? SHARE_LOOSE : 0;
}

static void rate_set(struct division *d, uint32_t tenant)
{
	struct share *s = share_of(d->engine, tenant, d->device);
	double rate = rate_for(d, tenant, s);

	if (rate > 0 || s->stretch)
		share_set_rate(s, d->now, rate > 0 ? share_stretch(rate) : 0);
}

static void rates_set(struct engine *engine, unsigned device, uint64_t now)
{
	static struct division division;
	struct division *d = &division;

	/* Too large for the stack. One thread calls the engine. */
	*d = (struct division){ .engine = engine, .device = device, .now = now };
	d->by_weight = weights_differ(engine, device);
	engine_each_process(engine, parents_note, d);
	rates_divide(d, /* parent= */ 0, /* whole= */ 1, /* depth= */ 0);
	for (uint32_t i = 1; i < engine->n_tenants; i++)
		rate_set(d, i);
}

/*
 * Tell the programs whose processes wait at their first context for their launches to be probed: those of
 * tenants with compute.max, and where weights differ, all, as any of them may have to be held.
 *
 * Return: whether there are any.
 */
static bool tenants_pace(struct engine *engine)
{
	bool by_weight = false, any = false;

	for (unsigned device = 0; device < engine->state->control.n_devices; device++)
		by_weight |= weights_differ(engine, device);
	for (uint32_t i = 1; i < engine->n_tenants; i++) {
		bool paced = by_weight;

		if (!engine->state->tenants[i].in_use)
			continue;
		for (unsigned device = 0; device < engine->state->control.n_devices; device++)
			paced |= share_of(engine, i, device)->max_permille > 0;
		__atomic_store_n(&engine->state->tenants[i].paced, paced, __ATOMIC_RELEASE);
		any |= paced;
	}
	return any;
}

/* Where nobody has a limit all rates are taken away once, those of an earlier engine too. */
static void rates_see_to(struct engine *engine, uint64_t now)
{
	struct launches *l = engine->launches;

	if (!l->any_limit && l->no_rates)
		return;
	for (unsigned i = 0; i < engine->state->control.n_devices; i++)
		rates_set(engine, i, now);
	l->no_rates = !l->any_limit;
}

bool engine_compute_tick(struct engine *engine)
{
	struct launches *l = engine->launches;
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	meters_mark(engine, now);
	if (now >= l->scanned_ns + SCAN_NS) {
		l->scanned_ns = now;
		l->any_limit = tenants_pace(engine);
		rates_see_to(engine, now);
		if (l->any_limit)
			probes_scan(engine);
		probes_sweep(engine, now);
	}
	return l->any_limit || l->first;
}

int engine_tenant_compute(struct engine *engine, uint32_t tenant, unsigned device,
			  const struct engine_compute *compute)
{
	struct share *s;

	if (tenant == 0 || tenant >= LEDGER_TENANTS || device >= LEDGER_DEVICES)
		return -EINVAL;
	s = share_of(engine, tenant, device);
	/* None at all would hold a launch for ever. */
	s->max_permille = compute->max_permille < 1000 ? MAX(compute->max_permille, 1U) : 0;
	s->weight = compute->weight;
	/* At once, as its processes are let go when they are probed, not when rates are next divided. */
	if (!s->stretch && (s->max_permille || weights_differ(engine, device))) {
		engine->launches->no_rates = false;
		share_set_rate(s, clock_now_ns(CLOCK_MONOTONIC),
			       share_stretch(s->max_permille ? max_of(s) : SHARE_LOOSE));
	}
	tenants_pace(engine);
	return 0;
}

int engine_compute_stat(const struct engine *engine, uint32_t tenant, unsigned device,
			struct share *ret)
{
	if (tenant == 0 || tenant >= LEDGER_TENANTS || device >= LEDGER_DEVICES)
		return ENGINE_E_GONE;
	*ret = *share_of(engine, tenant, device);
	return 0;
}
