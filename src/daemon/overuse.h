/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over-use on this node: the devices are sampled, the policy decides, and what it decides
 * is carried out and written down.
 */
#ifndef DAEMON_OVERUSE_H
#define DAEMON_OVERUSE_H

#include "daemon/batch.h"
#include "daemon/daemon.h"
#include "daemon/incident-log.h"
#include "daemon/residents.h"
#include "daemon/target.h"
#include "daemon/use-log.h"
#include "policy/policy.h"

/**
 * struct live_incident - one that goes on
 * @tenant:	its id
 */
struct live_incident {
	struct live_incident *next;
	uint32_t tenant;
	struct incident row;
};

enum deed_stage {
	DEED_FREEZING, /* told to stop; not all have */
	DEED_ASKED,    /* the batch engine was told to end it */
	DEED_TERM,     /* SIGTERM was sent */
	DEED_KILL,     /* SIGKILL was sent */
};

/**
 * struct deed - an action that is under way
 * @overuse:	where it belongs
 * @incident:	whose entry it is
 * @record:	what was frozen
 * @asked:	the batch engine was told, and has not answered
 * @answer:	what it said
 * @ended_ms:	when the last process was seen gone; 0 before
 */
struct deed {
	struct deed *next;
	struct overuse *overuse;
	enum deed_stage stage;
	uint64_t incident;
	uint32_t tenant;
	struct incident_entry entry;
	struct target target;
	char *record;
	bool asked;
	char answer[BATCH_WORDS];
	uint64_t begun_ms;
	uint64_t stage_ms;
	uint64_t ended_ms;
};

/**
 * struct overuse - all of it
 * @slow_ms:	from one sample of a device to the next
 * @fast_ms:	likewise, while it is under pressure or somebody is on the way to being over
 * @due_ms:	when each device is to be sampled next
 */
struct overuse {
	struct daemon *daemon;
	struct residents residents;
	struct policy_numbers numbers;
	struct policy_state state;
	struct policy_actions actions;
	struct batch batch;
	struct history_db *history;
	struct use_log use;
	struct live_incident *live;
	struct deed *deeds;
	sd_event_source *deed_timer;
	sd_event_source *timer;
	uint64_t slow_ms;
	uint64_t fast_ms;
	uint64_t due_ms[LEDGER_DEVICES];
};

/** struct overuse_options - how to begin */
struct overuse_options {
	const char *state_dir;
	const char *batch_program;
	uint64_t slow_ms;
	uint64_t fast_ms;
};

/**
 * overuse_open() - read what an earlier life left
 *
 * Who was suspended then is let go: the policy sees anew whether that is right.
 */
int overuse_open(struct daemon *d, const struct overuse_options *options);

/**
 * overuse_let_go() - let go who a daemon suspended that is no more, as enforcement is taken away
 */
int overuse_let_go(const struct overuse_options *options);

/**
 * overuse_start() - sample from now on
 */
int overuse_start(struct daemon *d);

/**
 * overuse_is_due() - whether overuse_tick() would sample now
 */
bool overuse_is_due(const struct daemon *d);

/**
 * overuse_tick() - sample what is about to be due, as the devices were just asked for another reason
 */
void overuse_tick(struct daemon *d);

/**
 * overuse_sample() - take a sample of the devices that are due and act on it
 */
void overuse_sample(struct overuse *o, uint64_t now_ms);

/**
 * overuse_saw_work() - a device was seen at work for a process
 * @percent:	of the time
 */
void overuse_saw_work(struct overuse *o, pid_t pid, unsigned device, unsigned percent);

/**
 * overuse_live() - the incident of a tenant that goes on, or NULL
 */
struct live_incident *overuse_live(const struct overuse *o, uint32_t tenant);

/**
 * overuse_carry_out() - do what was decided, and write it down
 */
void overuse_carry_out(struct overuse *o, const struct policy_action *action);

/**
 * overuse_thaw() - let go what a record of a suspend tells of
 */
void overuse_thaw(struct overuse *o, const char *record);

/**
 * overuse_close() - let go who is suspended; incidents that go on stay open in the log
 */
void overuse_close(struct daemon *d);

uint64_t overuse_now_ms(void);

/* --- deeds --- */

/**
 * deed_suspend() - stop a tenant; the entry's result follows when it has stopped
 */
void deed_suspend(struct overuse *o, struct live_incident *live, const struct tenant *t,
		  struct incident_entry *entry);

/**
 * deed_let_go() - let a suspended tenant go on; nothing happens to one that is not
 */
void deed_let_go(struct overuse *o, struct live_incident *live);

/**
 * deed_resume() - the same as an action of its own
 */
void deed_resume(struct overuse *o, struct live_incident *live, struct incident_entry *entry);

/**
 * deed_end() - SIGTERM, a grace, SIGKILL; a suspended tenant is let go first
 */
void deed_end(struct overuse *o, struct live_incident *live, const struct tenant *t,
	      struct incident_entry *entry);

/**
 * deeds_done() - forget all that is under way
 */
void deeds_done(struct overuse *o);

#endif
