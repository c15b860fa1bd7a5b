/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspending, letting go and ending a tenant, and looking whether it worked.
 *
 * Nothing here waits: an action begins, and a timer looks at it until its result is known.
 *
 * What a batch engine has started it is told about. A suspended job is stopped here at once
 * and the engine then knows it as suspended. The end is the engine's to bring, so that it
 * starts the job elsewhere or knows it as cancelled; where it does not, it is brought here.
 */
#include "daemon/overuse.h"

#include "base/log.h"
#include "daemon/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#define MIB		 ((uint64_t)1 << 20)
#define LOOK_EVERY_US	 20000
#define FREEZE_WITHIN_MS 2000
#define TERM_GRACE_MS	 5000
#define KILL_WITHIN_MS	 5000
/* The engine may be slow to place the job elsewhere; its processes are gone long before. */
#define ANSWER_WITHIN_MS 30000

/* --- whom --- */

static const char *container_freezer(const struct resident *p)
{
	return *p->who.place.container ? p->who.place.freezer : NULL;
}

/* In a folder of the batch engine's own making are its keepers of the job as well. */
static bool is_all_of_its_cgroup(const struct tenant *t)
{
	const char *name = strrchr(t->spec.match.name, '/');

	return !t->spec.job || (name && str_after(name, "/" CGROUP_PREFIX));
}

/*
 * All of a cgroup is its tenant's. Of a user or a process tree it is those who have
 * memory of a device: a user's shell does him no harm.
 */
static int find_target(struct overuse *o, const struct tenant *t, struct target *ret)
{
	const struct selector *match = &t->spec.match;
	const struct resident *p;
	int r = 0;
	size_t i;

	if (match->kind == SELECT_CGROUP && is_all_of_its_cgroup(t))
		r = target_set_cgroup(ret, match->name);
	if (match->kind == SELECT_PID)
		r = target_add(ret, match->pid, match->start_time, NULL, NULL);
	for (i = 0; i < o->residents.n && r == 0; i++) {
		p = o->residents.items[i];
		if (resident_is_of(p, t->id) &&
		    !(match->kind == SELECT_PID && p->who.pid == match->pid))
			r = target_add(ret, p->who.pid, p->who.start_time, p->who.place.cgroup,
				       container_freezer(p));
	}
	return r;
}

/* --- what is under way --- */

static void deed_free(struct deed *deed)
{
	batch_forget(&deed->overuse->batch, deed);
	target_done(&deed->target);
	free(deed->record);
	free(deed);
}

static void finish(struct overuse *o, struct deed *deed, const char *fmt, ...) PRINTF(3, 4);

static void finish(struct overuse *o, struct deed *deed, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(deed->entry.result, sizeof(deed->entry.result), fmt, ap);
	va_end(ap);
	incident_log_put_entry(o->history, &deed->entry);
}

static void on_answer(bool good, const char *words, void *userdata)
{
	struct deed *deed = userdata;

	deed->asked = false;
	str_copy(deed->answer, sizeof(deed->answer), words);
	if (good || deed->stage != DEED_ASKED)
		return;
	target_signal(&deed->target, SIGTERM);
	deed->stage = DEED_TERM;
	deed->stage_ms = overuse_now_ms();
}

/* Return: whether its result is known. */
static bool look_at_freezing(struct overuse *o, struct deed *deed, uint64_t now_ms)
{
	unsigned long long took = now_ms - deed->begun_ms;

	if (target_is_frozen(deed->record))
		finish(o, deed, "stopped after %llu ms", took);
	else if (took >= FREEZE_WITHIN_MS)
		finish(o, deed, "not all have stopped after %llu ms", took);
	else
		return false;
	return true;
}

static const char *ended_by(enum deed_stage stage)
{
	return stage == DEED_ASKED  ? "the batch engine"
	       : stage == DEED_TERM ? "SIGTERM"
				    : "SIGKILL";
}

static bool look_at_ending(struct overuse *o, struct deed *deed, uint64_t now_ms)
{
	unsigned long long took = now_ms - deed->begun_ms;
	size_t left = target_n_left(&deed->target);

	if (left == 0) {
		if (!deed->ended_ms)
			deed->ended_ms = now_ms;
		if (deed->asked && took < ANSWER_WITHIN_MS)
			return false;
		finish(o, deed, "ended by %s after %llu ms%s%s", ended_by(deed->stage),
		       (unsigned long long)(deed->ended_ms - deed->begun_ms),
		       *deed->answer ? ": " : "", deed->answer);
		return true;
	}
	if (deed->stage != DEED_KILL && now_ms - deed->stage_ms >= TERM_GRACE_MS) {
		target_signal(&deed->target, SIGKILL);
		deed->stage = DEED_KILL;
		deed->stage_ms = now_ms;
	} else if (deed->stage == DEED_KILL && now_ms - deed->stage_ms >= KILL_WITHIN_MS) {
		finish(o, deed, "%zu processes live on after SIGKILL", left);
		return true;
	}
	return false;
}

static int on_time(sd_event_source *s, _unused_ uint64_t usec, void *userdata)
{
	struct overuse *o = userdata;
	uint64_t now_ms = overuse_now_ms();
	struct deed **p = &o->deeds, *deed;

	while ((deed = *p)) {
		if (!(deed->stage == DEED_FREEZING ? look_at_freezing(o, deed, now_ms)
						   : look_at_ending(o, deed, now_ms))) {
			p = &deed->next;
			continue;
		}
		*p = deed->next;
		deed_free(deed);
	}
	if (!o->deeds) {
		o->deed_timer = sd_event_source_unref(o->deed_timer);
		return 0;
	}
	sd_event_source_set_time_relative(s, LOOK_EVERY_US);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void deed_add(struct overuse *o, struct deed *deed)
{
	deed->next = o->deeds;
	o->deeds = deed;
	if (!o->deed_timer && o->daemon->loop)
		sd_event_add_time_relative(o->daemon->loop, &o->deed_timer, CLOCK_MONOTONIC,
					   LOOK_EVERY_US, LOOK_EVERY_US / 4, on_time, o);
}

static struct deed *deed_new(struct overuse *o, const struct live_incident *live,
			     const struct incident_entry *entry, enum deed_stage stage)
{
	struct deed *deed = calloc(1, sizeof(*deed));

	if (!deed)
		return NULL;
	deed->overuse = o;
	deed->stage = stage;
	deed->tenant = live->tenant;
	deed->incident = live->row.id;
	deed->entry = *entry;
	deed->begun_ms = deed->stage_ms = overuse_now_ms();
	return deed;
}

static void fail(struct overuse *o, struct incident_entry *entry, const char *what, int r)
{
	snprintf(entry->result, sizeof(entry->result), "%s: %s", what,
		 r == -EBUSY ? "the daemon itself is in its cgroup" : strerrordesc_np(-r));
	incident_log_put_entry(o->history, entry);
}

/* --- the actions --- */

/* It has stopped whatever the engine says; that must know when the job is let go, too. */
static int tell_of_suspend(struct overuse *o, uint32_t job, char **record)
{
	_cleanup_free_ char *line = batch_record(job), *both = NULL;

	if (batch_tell(&o->batch, "suspend", job, NULL, NULL, NULL) < 0)
		return 0;
	both = line ? str_format("%s%s", *record, line) : NULL;
	if (!both)
		return -ENOMEM;
	free(*record);
	*record = TAKE_PTR(both);
	return 0;
}

void deed_suspend(struct overuse *o, struct live_incident *live, const struct tenant *t,
		  struct incident_entry *entry)
{
	struct deed *deed = deed_new(o, live, entry, DEED_FREEZING);
	int r = deed ? find_target(o, t, &deed->target) : -ENOMEM;

	if (r == 0)
		r = target_freeze(&deed->target, &deed->record);
	if (r == 0 && t->spec.job)
		r = tell_of_suspend(o, t->spec.job, &deed->record);
	if (deed && deed->record) {
		free(live->row.frozen);
		live->row.frozen = strdup(deed->record);
		incident_log_put(o->history, &live->row);
	}
	if (r < 0) {
		fail(o, entry, "not stopped", r);
		if (deed)
			deed_free(deed);
		return;
	}
	incident_log_put_entry(o->history, &deed->entry);
	deed_add(o, deed);
}

/* What was about to stop it looks no longer. */
static void drop_freezing(struct overuse *o, uint32_t tenant)
{
	struct deed **p = &o->deeds, *deed;

	while ((deed = *p)) {
		if (deed->tenant != tenant || deed->stage != DEED_FREEZING) {
			p = &deed->next;
			continue;
		}
		finish(o, deed, "let go before all had stopped");
		*p = deed->next;
		deed_free(deed);
	}
}

void deed_let_go(struct overuse *o, struct live_incident *live)
{
	drop_freezing(o, live->tenant);
	if (!live->row.frozen)
		return;
	overuse_thaw(o, live->row.frozen);
	free(live->row.frozen);
	live->row.frozen = NULL;
	incident_log_put(o->history, &live->row);
}

void deed_resume(struct overuse *o, struct live_incident *live, struct incident_entry *entry)
{
	deed_let_go(o, live);
	str_copy(entry->result, sizeof(entry->result), "goes on");
	incident_log_put_entry(o->history, entry);
}

static bool is_being_ended(const struct overuse *o, uint32_t tenant)
{
	const struct deed *deed;

	for (deed = o->deeds; deed; deed = deed->next) {
		if (deed->tenant == tenant && deed->stage != DEED_FREEZING)
			return true;
	}
	return false;
}

void deed_end(struct overuse *o, struct live_incident *live, const struct tenant *t,
	      struct incident_entry *entry)
{
	char peak[24];
	struct deed *deed;
	int r;

	if (is_being_ended(o, live->tenant)) {
		str_copy(entry->result, sizeof(entry->result), "is being ended already");
		incident_log_put_entry(o->history, entry);
		return;
	}
	deed = deed_new(o, live, entry, DEED_TERM);
	r = deed ? find_target(o, t, &deed->target) : -ENOMEM;
	deed_let_go(o, live);
	if (r < 0) {
		fail(o, entry, "not ended", r);
		if (deed)
			deed_free(deed);
		return;
	}
	incident_log_put_entry(o->history, &deed->entry);
	snprintf(peak, sizeof(peak), "%" PRIu64, (live->row.peak_bytes + MIB - 1) / MIB);
	/* The action's name is the engine's word for it. */
	r = t->spec.job ? batch_tell(&o->batch, entry->action, t->spec.job, peak, on_answer, deed)
			: -EOPNOTSUPP;
	if (r == 0) {
		deed->stage = DEED_ASKED;
		deed->asked = true;
	} else {
		if (r != -EOPNOTSUPP)
			snprintf(deed->answer, sizeof(deed->answer), "%.60s cannot be started: %s",
				 o->batch.program, strerrordesc_np(-r));
		target_signal(&deed->target, SIGTERM);
	}
	deed_add(o, deed);
}

void deeds_done(struct overuse *o)
{
	struct deed *deed;

	while ((deed = o->deeds)) {
		o->deeds = deed->next;
		deed_free(deed);
	}
	o->deed_timer = sd_event_source_unref(o->deed_timer);
}
