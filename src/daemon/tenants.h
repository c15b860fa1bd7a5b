/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenants that there are: what files, runs and templates ask for, brought
 * into the engine.
 *
 * Three folders say what is wanted: tenants.d (an administrator's), run.d (what
 * `cotenant run` and `adopt --pid` made) and lowered.d (what users took off their
 * own limits). `group:` and `default` tenants are templates: each user whom they
 * match gets a tenant of his own, "alice@students".
 *
 * Who is not known yet is charged to the default template itself, so that a new
 * user's first call is within a limit; his own tenant is made a moment later.
 */
#ifndef DAEMON_TENANTS_H
#define DAEMON_TENANTS_H

#include "audit/engine.h"
#include "daemon/config.h"
#include "daemon/event-log.h"
#include "daemon/released.h"
#include "gpu/gpu.h"

enum tenant_origin {
	TENANT_OF_FILE,
	TENANT_OF_RUN,
	TENANT_OF_TEMPLATE,
};

/**
 * struct tenant - one tenant
 * @spec:		name, whom it matches, limits
 * @lowered:		what its user took off
 * @template:		for TENANT_OF_TEMPLATE: whose limits it has
 * @uid:		whose it is: he sees it and may lower it; TENANT_NO_OWNER for nobody
 * @id:			never used twice in this life of the daemon
 * @number:		in the engine; 0 where it is not there
 * @bound:		the engine charges its processes; else @problem says why not
 * @bound_id:		with @binding: what it is bound to
 * @last_active_us:	when one of its processes was last seen at work on a device; 0 for never
 * @wanted:		used while the list is brought up to date
 */
struct tenant {
	struct tenant *next;
	struct tenant_spec spec;
	struct limits lowered;
	enum tenant_origin origin;
	char template[TENANT_NAME_SIZE];
	uid_t uid;
	uint32_t id;
	uint32_t number;
	bool bound;
	enum engine_binding binding;
	uint64_t bound_id;
	char problem[160];
	uint64_t last_active_us[LEDGER_DEVICES];
	bool wanted;
};

/**
 * struct tenant_told - how events call a tenant
 * @name:	"" for none
 * @uid:	who may see it
 */
struct tenant_told {
	char name[TENANT_NAME_SIZE];
	uid_t uid;
};

/**
 * struct tenants - all of them
 * @last_id:	of a tenant, given out so far
 * @any_sets_compute:	one of them has a limit or a weight of device time
 * @any_of_cgroup:	one of them is a cgroup's
 * @n_changes:	how often they have changed
 * @watching:	the engine looks at every mapping
 * @released:	cgroups of runs that were released
 * @gone:	by number in the engine, those that were removed from it last; NULL while none was
 * @engine:	NULL where the kernel does not let us; then limits are kept, not enforced
 */
struct tenants {
	struct tenant *first;
	uint32_t last_id;
	struct config files;
	struct config runs;
	struct config lowered;
	bool any_sets_compute;
	bool any_of_cgroup;
	bool watching;
	unsigned n_changes;
	struct released released;
	struct tenant_told *gone;
	struct engine *engine;
	struct gpu *gpu;
	struct event_log *events;
};

/**
 * tenants_init() - over the folders; nothing is read yet
 */
int tenants_init(struct tenants *tenants, const char *config_dir, const char *state_dir);

/**
 * tenants_reload() - read the folders again and bring the engine to what they say
 *
 * Tenants that the engine has from an earlier life and nobody wants are removed.
 */
int tenants_reload(struct tenants *tenants);

/**
 * tenants_apply() - the same without reading: after one of the folders was edited
 */
int tenants_apply(struct tenants *tenants);

/**
 * tenants_retry() - bind those whose cgroup has come, or has gone and come again
 */
void tenants_retry(struct tenants *tenants);

/**
 * tenants_collect() - forget runs whose last process has ended, and cgroups of those that were released
 */
void tenants_collect(struct tenants *tenants);

/**
 * tenants_remove_cgroups() - take the empty cgroups of what ran away, where no daemon is to come that would
 *
 * Return: 0, or a fault.
 */
int tenants_remove_cgroups(const char *state_dir);

/**
 * tenants_collect_one() - forget a run if its last process has ended; @t may be gone then
 */
void tenants_collect_one(struct tenants *tenants, const struct tenant *t);

/**
 * tenants_meet() - a user was seen: make his tenant where a template matches him
 *
 * Return: 1 if one was made, 0 if not, or a fault.
 */
int tenants_meet(struct tenants *tenants, uid_t uid);

/**
 * tenants_find(), tenants_by_number() - a tenant, or NULL: also of number 0, which all share that have none
 */
struct tenant *tenants_find(const struct tenants *tenants, const char *name);
struct tenant *tenants_by_number(const struct tenants *tenants, uint32_t number);

/**
 * tenants_told_as() - how events call the tenant that the engine knows by a number
 *
 * Also one that is gone, as its last events are read when it is, until its number is another's.
 *
 * Return: whether there is or was one.
 */
bool tenants_told_as(const struct tenants *tenants, uint32_t number, struct tenant_told *ret);

/**
 * tenants_release_run() - its processes go on in the cgroup that was made for them; that goes with the last
 */
void tenants_release_run(struct tenants *tenants, const struct tenant *t);

/**
 * tenants_of_uid() - the tenant that stands for a user: his own, or that of a template
 */
struct tenant *tenants_of_uid(const struct tenants *tenants, uid_t uid);

/*
 * A process is charged to so many tenants at most, the nearest first: that of its tree, those of
 * cgroups around it, and its user's. This is what is left for the cgroups, so that nothing that nests
 * in a user's limit can push it out.
 */
#define TENANTS_OF_CGROUPS (LEDGER_DEPTH - 2)

/**
 * tenants_around() - how many tenants are this cgroup, or one around it
 */
unsigned tenants_around(const struct tenants *tenants, const char *cgroup);

/**
 * tenant_is_visible() - may this user see it?
 */
bool tenant_is_visible(const struct tenant *tenant, uid_t uid);

/**
 * tenant_limits() - what holds on a device, what its user took off included
 */
void tenant_limits(const struct tenants *tenants, const struct tenant *tenant, unsigned device,
		   struct device_limits *ret);

/**
 * tenants_can_deny() - can the kernel answer a call by itself, so that on-failure=deny has a meaning?
 */
bool tenants_can_deny(const struct tenants *tenants);
#define TENANTS_CANNOT_DENY                                                                          \
	"on-failure=deny needs a kernel that lets a program answer calls (rung registers); here it " \
	"is kill or allow"

/**
 * tenant_sets_compute() - has it a limit or a weight of its own for device time?
 */
bool tenant_sets_compute(const struct tenant *tenant);

/**
 * tenants_note() - raise an event about a tenant
 */
void tenants_note(struct tenants *tenants, enum event_kind kind, const struct tenant *tenant,
		  const char *fmt, ...) PRINTF(4, 5);

void tenants_done(struct tenants *tenants);

#endif
