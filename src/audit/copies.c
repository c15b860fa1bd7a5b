// SPDX-License-Identifier: Apache-2.0
/*
 * Which copies of libraries are probed, and for how long.
 *
 * A copy stays probed while a process of a tenant maps it, and for a while after that. The administrator's
 * are kept. One user can make copies without end, so there is a part of the room for each.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "priv.h"

#define GRACE_NS      10000000000ULL
#define SWEEPS_A_TIME 4 /* in a time of grace */

/* --- room -------------------------------------------------------------------------------------------- */

struct library_use copies_use_by(struct engine *engine, pid_t pid)
{
	struct library_use use = { .user = pid, .used_ns = clock_now_ns(CLOCK_MONOTONIC) };
	struct ledger_chain chain;
	uint64_t cgroup;
	uid_t user;

	if (chain_of_pid(engine, pid, &chain, &cgroup, &user) == 0 && chain.n)
		use.outermost = chain.tenants[chain.n - 1];
	return use;
}

bool copies_have_room(const struct engine *engine, const struct library_use *use)
{
	uint32_t n_all = 0, n_own = 0;

	for (const struct library *l = engine->libraries; l; l = l->next) {
		n_all += !l->use.kept;
		n_own += !l->use.kept && l->use.outermost == use->outermost;
	}
	return use->kept ||
	       room_inside(room_left(AUDIT_LIBRARIES, n_all), AUDIT_TENANT_LIBRARIES, n_own);
}

/* --- how long ---------------------------------------------------------------------------------------- */

bool process_is_tenants(struct engine *engine, pid_t pid)
{
	struct ledger_chain chain;
	uint64_t cgroup;
	uid_t user;

	return chain_of_pid(engine, pid, &chain, &cgroup, &user) == 0 && chain.n;
}

/**
 * struct sweep - looking for users of copies
 * @n_unused:	copies of which none was found yet
 */
struct sweep {
	struct engine *engine;
	uint64_t now_ns;
	pid_t pid;
	size_t n_unused;
};

static bool library_is_unused(const struct library *l, const struct sweep *sweep)
{
	return !l->use.kept && l->use.used_ns != sweep->now_ns;
}

static int library_note_user(ino_t ino, void *userdata)
{
	struct sweep *sweep = userdata;

	for (struct library *l = sweep->engine->libraries; l; l = l->next) {
		if (l->public.ino != ino || !library_is_unused(l, sweep))
			continue;
		l->use.user = sweep->pid;
		l->use.used_ns = sweep->now_ns;
		sweep->n_unused--;
	}
	return sweep->n_unused == 0;
}

/* Whatever a tenant's process maps is found by one look at it. */
static int libraries_look_for_users(struct engine *engine, pid_t pid, void *userdata)
{
	struct sweep *sweep = userdata;

	sweep->pid = pid;
	return process_is_tenants(engine, pid) ? each_mapped_file(pid, library_note_user, sweep)
					       : 0;
}

/* Mostly whoever used a copy a moment ago still does, and nobody else has to be looked at. */
static void libraries_find_users(struct engine *engine, struct sweep *sweep)
{
	for (struct library *l = engine->libraries; l; l = l->next)
		sweep->n_unused += library_is_unused(l, sweep);
	for (struct library *l = engine->libraries; l; l = l->next)
		if (l->use.user && library_is_unused(l, sweep))
			libraries_look_for_users(engine, l->use.user, sweep);
	if (sweep->n_unused)
		each_pid(engine, libraries_look_for_users, sweep);
}

void copies_sweep(struct engine *engine)
{
	uint64_t grace = engine->copies_grace_ns ? engine->copies_grace_ns : GRACE_NS;
	struct sweep sweep = { .engine = engine, .now_ns = clock_now_ns(CLOCK_MONOTONIC) };
	struct library *next;

	if (sweep.now_ns < engine->copies_swept_ns + grace / SWEEPS_A_TIME)
		return;
	engine->copies_swept_ns = sweep.now_ns;
	libraries_find_users(engine, &sweep);
	for (struct library *l = engine->libraries; l; l = next) {
		next = l->next;
		if (!library_is_unused(l, &sweep) || sweep.now_ns <= l->use.used_ns + grace)
			continue;
		engine_detach(engine, l->public.dev, l->public.ino);
		watch_forget(engine);
	}
}

/* --- after a restart --------------------------------------------------------------------------------- */

/* The file itself, whatever stands under its name by now: whoever maps it must not be without probes. */
static int recorded_open(struct engine *engine, const struct audit_library *known)
{
	int fd = open(known->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == known->ino && st.st_dev == known->dev)
		return fd;
	if (fd >= 0)
		close(fd);
	return watch_open_mapped(engine, known->dev, known->ino);
}

/* A copy that is no library any more, or cannot be probed, is its owner's loss and nobody else's. */
static void recorded_attach(struct engine *engine, struct audit_library *at)
{
	const struct audit_library known = *at;
	const struct library_use use = { .kept = known.kept,
					 .outermost = known.outermost,
					 .used_ns = clock_now_ns(CLOCK_MONOTONIC) };
	_cleanup_close_ int fd = recorded_open(engine, &known);
	int r = fd < 0 ? fd : attach_file(engine, known.path, fd, &use);
	struct stat st;

	if (r == 0)
		return;
	memset(at, 0, sizeof(*at));
	if (fd >= 0 && fstat(fd, &st) == 0)
		builds_tell_unprobed(engine, known.path, &st, "", builds_why(r));
}

void copies_recorded(struct engine *engine)
{
	for (size_t i = 0; i < AUDIT_LIBRARIES; i++)
		if (library_at(engine, i)->ino)
			recorded_attach(engine, library_at(engine, i));
}
