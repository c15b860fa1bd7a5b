/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compute limits: who is probed at launches, what launches take, who gets which part.
 *
 * All of it happens on the caller's thread; the programs and the holder only read what is left in
 * the shared state. If the caller dies they go on with the costs and rates of its last word.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "priv.h"
#include "audit.skel.h"

#define MILLISECOND    1000000ULL
#define SCAN_NS	       (100 * MILLISECOND)     /* look for processes that are to be probed */
#define KEEP_NS	       (10000 * MILLISECOND)   /* probes stay so long after their need */
#define ACTIVE_NS      (500 * MILLISECOND)     /* at work is who was within this time */
#define PERIOD_NS      (500 * MILLISECOND / 3) /* until the first two samples tell */
#define PERIOD_NS_MAX  (1000 * MILLISECOND)
#define SILENT_NS      (600 * MILLISECOND) /* drivers leave out who does nothing */
#define DRAINED_BELOW  0.95
#define COST_NS_MIN    500
#define DEFAULT_WEIGHT 100
#define RECORD_PROBES \
	16	    /* as the programs: a process' record stands among so many from its id on */
#define MAX_LINKS 8 /* copies of libcuda that are probed in one process */

/** struct probed - a process whose launches are probed */
struct probed {
	pid_t pid;
	uint32_t serial;
	uint32_t work;
	uint64_t needed_ns;
	struct {
		dev_t dev;
		ino_t ino;
		int fd;
	} links[MAX_LINKS];
	size_t n_links;
	struct share_meter meters[LEDGER_DEVICES];
	uint64_t since_ns;	      /* it has been probed */
	bool started[LEDGER_DEVICES]; /* its meter */
	uint64_t sampled_ns[LEDGER_DEVICES];
	uint64_t n_launches[AUDIT_KERNELS]; /* when costs last changed */
	struct probed *next;
};

/** struct worker - a tenant on a device, lately */
struct worker {
	uint64_t active_ns;
	double used;
	uint64_t n_throttled;
};

struct launches {
	struct probed *first;
	uint64_t scanned_ns;
	bool any_limit;
	struct worker workers[LEDGER_TENANTS][LEDGER_DEVICES];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

struct launches *launches_new(void)
{
	return calloc(1, sizeof(struct launches));
}

/* --- probes
 * ---------------------------------------------------------------------------------------- */

static void probed_pin_path(const struct engine *engine, const struct probed *p, size_t i,
			    char *ret, size_t size)
{
	snprintf(ret, size, "%s/launch-%d-%u-%u-%u-%lu-%s", engine->links_dir, p->pid, p->serial,
		 major(p->links[i].dev), minor(p->links[i].dev), (unsigned long)p->links[i].ino,
		 engine->generation_name);
}

static int probed_link(struct engine *engine, struct probed *p, const struct library *l)
{
	_cleanup_free_ uint64_t *offsets = calloc(l->n_launches, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(l->n_launches, sizeof(*cookies));
	char path[32], pin[PATH_MAX + 96];
	struct probes probes = { .path = path,
				 .offsets = offsets,
				 .cookies = cookies,
				 .n = l->n_launches,
				 .pid = p->pid };
	int fd;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_launches; i++) {
		offsets[i] = l->launches[i].offset;
		cookies[i] = LAUNCH_COOKIE(l->launches[i].row, p->work);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
	fd = link_uprobes(bpf_program__fd(engine->programs->progs.on_launch), &probes);
	if (fd < 0)
		return fd;
	p->links[p->n_links].dev = l->public.dev;
	p->links[p->n_links].ino = l->public.ino;
	p->links[p->n_links].fd = fd;
	probed_pin_path(engine, p, p->n_links++, pin, sizeof(pin));
	return bpf_obj_pin(fd, pin) ? -errno : 0;
}

static bool probed_has(const struct probed *p, const struct library *l)
{
	for (size_t i = 0; i < p->n_links; i++)
		if (p->links[i].dev == l->public.dev && p->links[i].ino == l->public.ino)
			return true;
	return false;
}

/* By number alone: some file systems show another device in maps than stat() tells. */
static bool process_maps(pid_t pid, ino_t ino)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	unsigned long mapped;
	char path[32];
	size_t cap = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &cap, f) > 0)
		if (sscanf(line, "%*s %*s %*s %*s %lu", &mapped) == 1 && mapped == ino)
			return true;
	return false;
}

static int probed_attach(struct engine *engine, struct probed *p)
{
	int r = 0;

	for (const struct library *l = engine->libraries; l && r == 0; l = l->next)
		if (l->n_launches && p->n_links < MAX_LINKS && !probed_has(p, l) &&
		    process_maps(p->pid, l->public.ino))
			r = probed_link(engine, p, l);
	return r;
}

static void probed_free(struct engine *engine, struct probed *p, bool unpin)
{
	char pin[PATH_MAX + 96];

	for (size_t i = 0; i < p->n_links; i++) {
		if (unpin) {
			probed_pin_path(engine, p, i, pin, sizeof(pin));
			unlink(pin);
		}
		close(p->links[i].fd);
	}
	if (unpin)
		memset(&engine->state->works[p->work], 0, sizeof(engine->state->works[p->work]));
	free(p);
}

void launches_free(struct launches *launches)
{
	while (launches && launches->first) {
		struct probed *p = launches->first;

		launches->first = p->next;
		probed_free(NULL, p, /* unpin= */ false);
	}
	free(launches);
}

void launches_detach(struct engine *engine)
{
	while (engine->launches->first) {
		struct probed *p = engine->launches->first;

		engine->launches->first = p->next;
		probed_free(engine, p, /* unpin= */ true);
	}
}

/* A record of launches: what an engine before has left of this process, or a free one. */
static int work_claim(struct audit_state *state, const struct audit_process *process)
{
	uint32_t tgid = audit_process_tgid(process);
	int at = -1;

	for (int i = AUDIT_WORKS - 1; i >= 0; i--) {
		if (state->works[i].tgid == tgid && state->works[i].serial == process->serial)
			return i;
		if (!state->works[i].tgid)
			at = i;
	}
	if (at < 0)
		return -ENOSPC;
	memset(&state->works[at], 0, sizeof(state->works[at]));
	for (size_t i = 0; i < LEDGER_DEVICES; i++)
		state->works[at].guess_ns[i] = SHARE_FIRST_NS;
	state->works[at].tgid = tgid;
	state->works[at].serial = process->serial;
	return at;
}

static struct probed *probed_find(const struct engine *engine, pid_t pid, uint32_t serial)
{
	for (struct probed *p = engine->launches->first; p; p = p->next)
		if (p->pid == pid && p->serial == serial)
			return p;
	return NULL;
}

static int probed_new(struct engine *engine, const struct audit_process *process,
		      struct probed **ret)
{
	int work = work_claim(engine->state, process);
	struct probed *p;

	if (work < 0)
		return work;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = audit_process_tgid(process);
	p->serial = process->serial;
	p->work = work;
	for (size_t i = 0; i < LEDGER_DEVICES; i++)
		share_meter_mark(&p->meters[i], now_ns(), engine->state->works[work].charged_ns[i]);
	p->since_ns = now_ns();
	p->next = engine->launches->first;
	engine->launches->first = p;
	*ret = p;
	return 0;
}

static struct share *share_of(const struct engine *engine, uint32_t tenant, unsigned device)
{
	return &engine->state->shares[ledger_index(tenant, device)];
}

static bool is_limited(const struct engine *engine, const struct ledger_chain *chain)
{
	for (uint32_t i = 0; i < chain->n && i < LEDGER_DEPTH; i++)
		for (unsigned device = 0; device < engine->state->control.n_devices; device++)
			if (share_of(engine, chain->tenants[i], device)->stretch)
				return true;
	return false;
}

static int probe_if_limited(const struct audit_process *process, void *userdata)
{
	struct engine *engine = userdata;
	struct probed *p;

	if (!is_limited(engine, &process->chain))
		return 0;
	p = probed_find(engine, audit_process_tgid(process), process->serial);
	if (!p && probed_new(engine, process, &p) < 0)
		return 0;
	p->needed_ns = now_ns();
	/* A process that has just ended cannot be probed any more; the next scan forgets it. */
	probed_attach(engine, p);
	return 0;
}

static const struct audit_process *process_of(const struct engine *engine, const struct probed *p)
{
	for (uint32_t i = 0; i < RECORD_PROBES; i++) {
		const struct audit_process *process =
			&engine->state->processes[(p->pid + i) & (AUDIT_PROCESSES - 1)];

		if (process->serial == p->serial && audit_process_tgid(process) == (uint32_t)p->pid)
			return process;
	}
	return NULL;
}

void launches_meet(struct engine *engine, pid_t pid)
{
	for (uint32_t i = 0; engine->many_probes && i < RECORD_PROBES; i++) {
		const struct audit_process *process =
			&engine->state->processes[(pid + i) & (AUDIT_PROCESSES - 1)];

		if (audit_process_tgid(process) == (uint32_t)pid)
			probe_if_limited(process, engine);
	}
}

/* Let go of processes that are gone or have not needed it for a while. */
static void probes_sweep(struct engine *engine, uint64_t now)
{
	for (struct probed **at = &engine->launches->first; *at;) {
		struct probed *p = *at;

		if (process_of(engine, p) && now < p->needed_ns + KEEP_NS) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		probed_free(engine, p, /* unpin= */ true);
	}
}

/* --- costs
 * ----------------------------------------------------------------------------------------- */

/* Kinds that were launched since costs last changed were to blame. */
static void costs_change(struct engine *engine, struct probed *p, unsigned device, double factor)
{
	struct audit_work *work = &engine->state->works[p->work];
	double charged = 0, n = 0;

	if (factor == 1)
		return;
	for (size_t i = 0; i < AUDIT_KERNELS; i++) {
		struct audit_kernel *k = &work->kernels[i];
		uint64_t cost = k->cost_ns ? k->cost_ns : work->guess_ns[device];
		uint64_t launches = k->n_launches - p->n_launches[i];

		if (!k->key || k->device != device || !launches)
			continue;
		p->n_launches[i] = k->n_launches;
		k->cost_ns = MAX((uint64_t)(cost * factor), (uint64_t)COST_NS_MIN);
		charged += (double)launches * k->cost_ns;
		n += launches;
	}
	/* The next new kind is likely to be as those before, with some caution. */
	if (n > 0)
		work->guess_ns[device] =
			MIN(MAX((uint64_t)(2 * charged / n), (uint64_t)COST_NS_MIN),
			    (uint64_t)SHARE_FIRST_NS);
}

static void sample_apply(struct engine *engine, struct probed *p, unsigned device,
			 const struct share_sample *sample)
{
	const struct audit_process *process = process_of(engine, p);
	struct share_finding f;

	p->sampled_ns[device] = sample->end_ns;
	if (!p->started[device]) {
		p->started[device] = sample->drained && sample->begin_ns > p->since_ns;
		if (p->started[device])
			share_meter_start(&p->meters[device], sample);
		return;
	}
	f = share_meter_sample(&p->meters[device], sample);
	costs_change(engine, p, device, f.factor);
	for (uint32_t i = 0; process && i < process->chain.n && i < LEDGER_DEPTH; i++)
		share_correct(share_of(engine, process->chain.tenants[i], device), now_ns(),
			      f.correction_ns);
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

static int sample_process(const struct audit_process *process, void *userdata)
{
	struct sample_search *search = userdata;
	struct engine *engine = search->engine;

	for (size_t i = 0; i < search->n; i++) {
		const struct engine_sample *from = &search->samples[i];
		struct probed *p;
		struct share_sample s = { .end_ns = from->end_ns,
					  .begin_ns = from->end_ns - PERIOD_NS };

		if ((uint32_t)from->pid != audit_process_tgid(process))
			continue;
		p = probed_find(engine, from->pid, process->serial);
		if (p && p->sampled_ns[search->device] && p->sampled_ns[search->device] < s.end_ns)
			s.begin_ns = MAX(p->sampled_ns[search->device], s.end_ns - PERIOD_NS_MAX);
		s.busy_ns = (s.end_ns - s.begin_ns) * from->percent / 100;
		/* The device had time left, or the process did not take its turns. */
		s.drained = search->busy < DRAINED_BELOW ||
			    from->percent / 100.0 < 0.8 / (double)search->n_busy;
		usage_add(engine, process, search->device, &s);
		if (p)
			sample_apply(engine, p, search->device, &s);
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
	for (size_t i = 0; i < LEDGER_TENANTS; i++)
		engine->launches->workers[i][device].used = 0;
	return engine_each_process(engine, sample_process, &search);
}

/* Marks of what was charged; and who is left out of the samples did nothing. */
static void meters_mark(struct engine *engine, uint64_t now)
{
	for (struct probed *p = engine->launches->first; p; p = p->next)
		for (unsigned i = 0; i < engine->state->control.n_devices; i++) {
			struct share_sample idle = { p->sampled_ns[i], now - SILENT_NS / 2, 0,
						     true };

			share_meter_mark(&p->meters[i], now,
					 engine->state->works[p->work].charged_ns[i]);
			if (p->sampled_ns[i] && now > p->sampled_ns[i] + SILENT_NS)
				sample_apply(engine, p, i, &idle);
		}
}

/* --- rates
 * ----------------------------------------------------------------------------------------- */

static double max_of(const struct share *s)
{
	return s->max_permille ? s->max_permille / 1000.0 : 1;
}

static void rate_set(struct share *s, uint64_t now, double rate, bool limited)
{
	share_set_rate(s, now, limited ? share_stretch(rate) : 0);
}

/* Weights count among tenants that are at work, and only where they differ. */
static size_t claims_collect(struct engine *engine, unsigned device, uint64_t now,
			     struct share_claim *claims, uint32_t *tenants)
{
	size_t n = 0;
	bool differ = false;

	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		struct worker *w = &engine->launches->workers[i][device];
		const struct share *s = share_of(engine, i, device);

		if (!engine->state->tenants[i].in_use || now > w->active_ns + ACTIVE_NS)
			continue;
		claims[n] = (struct share_claim){ .weight = s->weight ? s->weight : DEFAULT_WEIGHT,
						  .max = max_of(s),
						  .used = w->used,
						  .waits = s->n_throttled != w->n_throttled ||
							   s->due_ns > now };
		w->n_throttled = s->n_throttled;
		differ |= claims[n].weight != claims[0].weight;
		tenants[n++] = i;
	}
	return differ ? n : 0;
}

static void rates_set(struct engine *engine, unsigned device, uint64_t now)
{
	struct share_claim claims[LEDGER_TENANTS];
	uint32_t tenants[LEDGER_TENANTS];
	size_t n = claims_collect(engine, device, now, claims, tenants), at = 0;

	share_divide(claims, n);
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		struct share *s = share_of(engine, i, device);
		double rate = max_of(s);
		bool limited = s->max_permille > 0;

		if (at < n && tenants[at] == i) {
			rate = MIN(rate, claims[at++].ret_rate);
			limited = true;
		}
		if (limited || s->stretch)
			rate_set(s, now, rate, limited);
		engine->launches->any_limit |= limited;
	}
}

static bool any_weight(const struct engine *engine, unsigned device)
{
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		const struct share *s = share_of(engine, i, device);

		if (s->max_permille || (s->weight && s->weight != DEFAULT_WEIGHT))
			return true;
	}
	return false;
}

int engine_compute_tick(struct engine *engine)
{
	struct launches *l = engine->launches;
	uint64_t now = now_ns();
	bool wanted = false;

	if (!engine->many_probes)
		return -EOPNOTSUPP;
	meters_mark(engine, now);
	if (now < l->scanned_ns + SCAN_NS)
		return l->any_limit || l->first;
	l->scanned_ns = now;
	l->any_limit = false;
	for (unsigned i = 0; i < engine->state->control.n_devices; i++) {
		rates_set(engine, i, now);
		wanted |= any_weight(engine, i);
	}
	if (l->any_limit)
		engine_each_process(engine, probe_if_limited, engine);
	probes_sweep(engine, now);
	l->any_limit |= wanted;
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
	if (s->max_permille && !s->stretch)
		rate_set(s, now_ns(), max_of(s), /* limited= */ true);
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
