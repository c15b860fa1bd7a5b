// SPDX-License-Identifier: Apache-2.0
/*
 * Probes on the launches of single processes, as pinned links.
 *
 * A process is probed before its first context where a tenant around it is paced (the programs hold it
 * there until its record says so), else when a limit is set, and at the latest 100 ms after that. Probes are
 * by process, so that nobody else who uses the same libcuda pays for them; a child of a fork is a process of
 * its own here.
 *
 * Taking probes off takes the kernel long, a tenth of a second for each where it has no links of many
 * probes. That is done by a thread which knows nothing but the descriptors.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "launch.h"

#define KEEP_NS 10000000000ULL /* probes stay so long after their need */

/* --- links ------------------------------------------------------------------------------------------- */

static int links_make(struct engine *engine, struct launch_link *link, const struct probes *probes)
{
	int prog_fd = engine->program_fds[ENGINE_LAUNCH];
	size_t n = engine->many_launches ? 1 : probes->n;

	link->fds = calloc(n, sizeof(*link->fds));
	if (!link->fds)
		return -ENOMEM;
	while (link->n_fds < n) {
		int fd = engine->many_launches ? link_uprobes(prog_fd, probes)
					       : link_uprobe(prog_fd, probes, link->n_fds);

		if (fd < 0)
			return fd;
		link->fds[link->n_fds++] = fd;
	}
	return 0;
}

static void pin_path(const struct engine *engine, const struct probed *p,
		     const struct launch_link *link, size_t i, char *ret, size_t size)
{
	snprintf(ret, size, "%s/launch-%d-%u-%u-%u-%lu-%zu-%s", engine->links_dir, p->pid,
		 p->serial, major(link->dev), minor(link->dev), (unsigned long)link->ino, i,
		 engine->generation_name);
}

static int links_pin(struct engine *engine, const struct probed *p, const struct launch_link *link)
{
	char path[PATH_MAX + 96];

	for (size_t i = 0; i < link->n_fds; i++) {
		pin_path(engine, p, link, i, path, sizeof(path));
		unlink(path);
		if (bpf_obj_pin(link->fds[i], path))
			return -errno;
	}
	return 0;
}

static void links_unpin(struct engine *engine, const struct probed *p,
			const struct launch_link *link)
{
	char path[PATH_MAX + 96];

	for (size_t i = 0; i < link->n_fds; i++) {
		pin_path(engine, p, link, i, path, sizeof(path));
		unlink(path);
	}
}

/* --- processes --------------------------------------------------------------------------------------- */

static int probed_link(struct engine *engine, struct probed *p, const struct library *l)
{
	struct launch_link *link = &p->links[p->n_links];
	_cleanup_free_ uint64_t *offsets = calloc(l->n_launches, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(l->n_launches, sizeof(*cookies));
	char path[32];
	struct probes probes = { .path = path,
				 .offsets = offsets,
				 .cookies = cookies,
				 .n = l->n_launches,
				 .pid = p->pid };
	int r;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_launches; i++) {
		offsets[i] = l->launches[i].offset;
		cookies[i] = LAUNCH_COOKIE(l->launches[i].row, p->work);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
	*link = (struct launch_link){ .dev = l->public.dev, .ino = l->public.ino };
	p->n_links++;
	r = links_make(engine, link, &probes);
	return r < 0 ? r : links_pin(engine, p, link);
}

static bool probed_has(const struct probed *p, const struct library *l)
{
	for (size_t i = 0; i < p->n_links; i++)
		if (p->links[i].dev == l->public.dev && p->links[i].ino == l->public.ino)
			return true;
	return false;
}

static int is_file(ino_t ino, void *userdata)
{
	return ino == *(const ino_t *)userdata;
}

static bool process_maps_file(pid_t pid, ino_t ino)
{
	return each_mapped_file(pid, is_file, &ino);
}

static int probed_attach(struct engine *engine, struct probed *p)
{
	int r = 0;

	for (const struct library *l = engine->libraries; l && r == 0; l = l->next)
		if (l->n_launches && p->n_links < LAUNCH_LINKS_MAX && !probed_has(p, l) &&
		    process_maps_file(p->pid, l->public.ino))
			r = probed_link(engine, p, l);
	return r;
}

static void probed_free(struct engine *engine, struct probed *p, bool unpin)
{
	for (size_t i = 0; i < p->n_links; i++) {
		if (unpin)
			links_unpin(engine, p, &p->links[i]);
		links_let_go(p->links[i].fds, p->links[i].n_fds);
		free(p->links[i].fds);
	}
	if (unpin)
		memset(work_at(engine, p->work), 0, sizeof(struct audit_work));
	free(p);
}

static uint32_t works_of(const struct engine *engine, uint32_t tenant)
{
	uint32_t n = 0;

	for (const struct probed *p = engine->launches->first; p; p = p->next) {
		const struct audit_process *process = probed_process(engine, p);

		n += process && ledger_chain_has(&process->chain, tenant);
	}
	return n;
}

/* Whether a process of these tenants may have a record of launches, by the rule of room.h. */
static bool work_is_left(const struct engine *engine, const struct ledger_chain *chain)
{
	uint32_t left = AUDIT_WORKS;

	for (const struct probed *p = engine->launches->first; p && left; p = p->next)
		left--;
	for (uint32_t i = chain->n; i-- > 0;)
		left = room_inside(left, AUDIT_TENANT_WORKS, works_of(engine, chain->tenants[i]));
	return left;
}

/*
 * A record of launches: what an engine before has left of this process, or the first that is free.
 * @ret_found:	it was left, so all that was launched since is in it
 */
static int work_claim(struct engine *engine, const struct audit_process *process, bool *ret_found)
{
	uint32_t tgid = audit_process_tgid(process), n = engine->launches->n_works, free_one = n;
	struct audit_work *work;

	for (uint32_t i = n; i-- > 0;) {
		work = work_at(engine, i);
		*ret_found = work->tgid == tgid && work->serial == process->serial;
		if (*ret_found)
			return i;
		if (!work->tgid)
			free_one = i;
	}
	*ret_found = false;
	if (free_one == AUDIT_WORKS || !work_is_left(engine, &process->chain))
		return -ENOSPC;
	engine->launches->n_works = MAX(n, free_one + 1);
	work = work_at(engine, free_one);
	memset(work, 0, sizeof(*work));
	for (size_t i = 0; i < LEDGER_DEVICES; i++)
		work->guess_ns[i] = SHARE_FIRST_NS;
	work->tgid = tgid;
	work->serial = process->serial;
	return free_one;
}

struct probed *probed_find(const struct engine *engine, pid_t pid, uint32_t serial)
{
	for (struct probed *p = engine->launches->first; p; p = p->next)
		if (p->pid == pid && p->serial == serial)
			return p;
	return NULL;
}

static int probed_new(struct engine *engine, const struct audit_process *process,
		      struct probed **ret)
{
	bool found;
	int work = work_claim(engine, process, &found);
	struct probed *p;

	if (work < 0)
		return work;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = audit_process_tgid(process);
	p->serial = process->serial;
	p->process = process - engine->state->processes;
	p->work = work;
	p->since_ns = clock_now_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < LEDGER_DEVICES; i++) {
		share_meter_begin(&p->meters[i], p->since_ns, work_at(engine, work)->charged_ns[i]);
		p->started[i] = process->whole || found;
	}
	for (size_t i = 0; i < AUDIT_KERNELS; i++)
		p->kinds[i] =
			(struct share_kind){ .doubt = SHARE_UNSURE,
					     .n_before =
						     work_at(engine, work)->kernels[i].n_launches };
	p->next = engine->launches->first;
	engine->launches->first = p;
	*ret = p;
	return 0;
}

static bool needs_probes(const struct engine *engine, const struct ledger_chain *chain)
{
	for (uint32_t i = 0; i < chain->n && i < LEDGER_DEPTH; i++) {
		if (engine->state->tenants[chain->tenants[i]].paced)
			return true;
		for (unsigned device = 0; device < engine->state->control.n_devices; device++)
			if (share_of(engine, chain->tenants[i], device)->stretch)
				return true;
	}
	return false;
}

/* There is no record to be had for its launches: it does not wait for one. */
static void process_let_be(struct engine *engine, struct audit_process *process)
{
	struct audit_event event = { .kind = AUDIT_EVENT_UNPACED,
				     .tgid = audit_process_tgid(process),
				     .tenant = process->chain.tenants[0],
				     .reason = AUDIT_REASON_PROBES,
				     .time_ns = clock_now_ns(CLOCK_MONOTONIC) };

	if (process->probed == engine->generation)
		return;
	process->probed = engine->generation;
	if (engine->on_event)
		engine->on_event(&event, "", engine->userdata);
}

/* A process that has just ended cannot be probed any more; the next scan forgets it. */
static void process_probe(struct engine *engine, struct audit_process *process)
{
	struct probed *p = probed_find(engine, audit_process_tgid(process), process->serial);

	if (!p && probed_new(engine, process, &p) < 0) {
		process_let_be(engine, process);
		return;
	}
	p->needed_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (probed_attach(engine, p) == 0)
		__atomic_store_n(&process->probed, engine->generation, __ATOMIC_RELEASE);
}

void probes_scan(struct engine *engine)
{
	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		struct audit_process *process = process_at(engine, i);

		if (audit_process_tgid(process) && needs_probes(engine, &process->chain))
			process_probe(engine, process);
	}
}

struct audit_process *probed_process(const struct engine *engine, const struct probed *p)
{
	struct audit_process *process = process_at(engine, p->process);

	return audit_process_tgid(process) == (uint32_t)p->pid && process->serial == p->serial
		       ? process
		       : NULL;
}

void launches_meet(struct engine *engine, pid_t pid)
{
	struct audit_process *process = process_find(engine, pid);

	if (process && needs_probes(engine, &process->chain))
		process_probe(engine, process);
}

void probes_sweep(struct engine *engine, uint64_t now)
{
	for (struct probed **at = &engine->launches->first; *at;) {
		struct audit_process *process = probed_process(engine, *at);
		struct probed *p = *at;

		if (process && now < p->needed_ns + KEEP_NS) {
			at = &p->next;
			continue;
		}
		if (process)
			process->probed = process->whole = 0;
		*at = p->next;
		probed_free(engine, p, /* unpin= */ true);
	}
}

/* --- life -------------------------------------------------------------------------------------------- */

struct launches *launches_new(void)
{
	return calloc(1, sizeof(struct launches));
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

/* What was left of processes that ended while there was no engine goes. */
static void works_take_over(struct engine *engine)
{
	for (uint32_t i = 0; i < AUDIT_WORKS; i++) {
		struct audit_work *work = work_at(engine, i);
		const struct audit_process *p =
			work->tgid ? process_find(engine, work->tgid) : NULL;

		if (p && p->serial == work->serial)
			engine->launches->n_works = i + 1;
		else
			memset(work, 0, sizeof(*work));
	}
}

void launches_take_over(struct engine *engine)
{
	works_take_over(engine);
	probes_scan(engine);
}
