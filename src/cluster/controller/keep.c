/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nothing is remembered from one look to the next but that a failed order may still arrive: after
 * one, and at the start, nothing is ordered until it has arrived or never will.
 */
#include "cluster/controller/keep.h"

#include "cluster/controller/hold.h"
#include "cluster/controller/orders.h"
#include "cluster/controller/telling.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

/**
 * struct keep - the controller while it runs
 * @hold:	the right to give orders
 * @listener:	NULL where no node reports
 * @quiet_until_ms:	nothing is ordered before; by a clock that stands while the machine sleeps, as what is
 *			on its way here does
 * @has_complained:	what does not work is in the log, since it worked last
 * @told:	what was written of the nodes
 */
struct keep {
	const struct keep_options *options;
	struct store *store;
	struct hold hold;
	struct listener *listener;
	uint64_t quiet_until_ms;
	bool has_complained;
	struct telling told;
};

static volatile int is_over;

static void on_signal(_unused_ int signal)
{
	is_over = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static void pause_ms(uint64_t ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (!is_over)
		nanosleep(&time, NULL);
}

static void view_of(const struct services *services, const struct world *world,
		    struct reconcile_service *wanted, struct reconcile_view *ret)
{
	size_t i;

	for (i = 0; i < services->n; i++) {
		const struct service *s = &services->items[i];

		wanted[i] =
			(struct reconcile_service){ s->id,	   s->n_replicas,	s->priority,
						    s->memory_mib, s->compute_permille, s->order,
						    &s->raises };
	}
	*ret = (struct reconcile_view){
		wanted,		services->n,	  world->jobs,	  world->n_jobs,
		world->devices, world->n_devices, world->n_nodes,
	};
}

static int carry_out(struct store *store, const struct services *services,
		     const struct world *world, const struct reconcile_action *action)
{
	const struct service *service = service_by_id(services, action->service);
	char words[ORDER_WORDS] = "", instance[SERVICE_NAME + 16];
	uint32_t job = 0;
	int r;

	if (action->kind == RECONCILE_WAIT)
		return 0;
	r = order_send(world, service, action, &job, words);
	snprintf(instance, sizeof(instance), "%s.%" PRIu32, service ? service->name : "?",
		 action->instance);
	log_info("%s %s, job %" PRIu32 ": %s", reconcile_kind_name(action->kind), instance, job,
		 words);
	if (store_note(store, reconcile_kind_name(action->kind), instance, job, words) < 0)
		log_warn(0, "the order is not written down: %s", store_reason(store));
	return r;
}

/* Whoever has lost the lease gives no order any more, also not the rest of those that are due. */
static int order_all(struct keep *k, const struct services *services, const struct world *world)
{
	_cleanup_free_ struct placement_device *books =
		calloc(world->n_devices + 1, sizeof(*books));
	_cleanup_free_ struct reconcile_service *wanted = calloc(services->n + 1, sizeof(*wanted));
	struct reconcile_actions actions = {};
	struct reconcile_view view;
	size_t i;
	int r;

	if (!books || !wanted)
		return -ENOMEM;
	view_of(services, world, wanted, &view);
	r = reconcile(&view, books, &actions);
	for (i = 0; r == 0 && i < actions.n && hold_may_act(&k->hold); i++)
		r = carry_out(k->store, services, world, &actions.items[i]);
	reconcile_actions_done(&actions);
	return r;
}

/*
 * Slurm knows it of the job alone, and where that is lost with its node, or is ended, the instance is
 * another job. So it is written down before the job is given a device.
 */
static int note_raises(struct store *store, const struct services *services,
		       const struct world *world)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < world->n_jobs; i++) {
		const struct reconcile_job *job = &world->jobs[i];

		if (world->job_names[i].is_raised &&
		    job->memory_mib > service_request_mib(service_by_id(services, job->service),
							  job->instance))
			r = store_raise(store, job->service, job->instance, job->memory_mib);
	}
	return r;
}

/* --- again and again --- */

/* What goes on fills no log. */
static int complain(struct keep *k, int r, const char *what, const char *why)
{
	if (!k->has_complained)
		log_err(r, "%s%s%s", what, why ? ": " : "", why ? why : "");
	k->has_complained = true;
	return r;
}

/* Return: 0, or a fault, after which orders may still be on their way. */
static int look_once(struct keep *k)
{
	_cleanup_(services_done) struct services services = {};
	const char *reason = NULL;
	struct world world;
	int r;

	r = store_services(k->store, &services);
	if (r < 0)
		return complain(k, r, "cannot read the services", store_reason(k->store));
	r = world_load(&services, &world, &reason);
	if (r < 0)
		return complain(k, r, "Slurm does not answer", reason);
	r = note_raises(k->store, &services, &world);
	if (r < 0)
		complain(k, r, "a raised request is not written down", store_reason(k->store));
	if (r == 0 && k->listener)
		r = listener_learn(k->listener, &world);
	if (r == 0 && clock_now_ms(CLOCK_MONOTONIC) >= k->quiet_until_ms)
		r = order_all(k, &services, &world);
	world_done(&world);
	k->has_complained = r < 0 && k->has_complained;
	return r;
}

static void be_quiet(struct keep *k)
{
	k->quiet_until_ms = clock_now_ms(CLOCK_MONOTONIC) + k->options->settle_ms;
}

static int start_listening(struct keep *k)
{
	int r;

	r = store_set_nodes(k->store, NULL, 0);
	if (r < 0)
		return log_err(r, "cannot write to %s: %s", k->options->path,
			       store_reason(k->store));
	if (k->options->listen.address)
		r = listener_start(&k->options->listen, &k->listener);
	return r < 0 ? log_err(r, "cannot listen on %s", k->options->listen.address) : 0;
}

/* Who stands by hears nobody: what nodes say is for the one who gives the orders to write down. */
static void stop_listening(struct keep *k)
{
	listener_stop(k->listener);
	k->listener = NULL;
	telling_done(&k->told);
}

static int act_once(struct keep *k)
{
	int r;

	r = hold_renew(&k->hold, k->store);
	if (r == -EAGAIN)
		stop_listening(k);
	/* What cannot be renewed ends by itself, and with it the orders. */
	if (r < 0)
		return 0;
	if (r > 0) {
		be_quiet(k);
		r = start_listening(k);
	}
	if (r < 0)
		return r;
	if (look_once(k) < 0)
		be_quiet(k);
	if (k->listener)
		telling_write(&k->told, k->listener, k->store);
	return 0;
}

int keep_services(const struct keep_options *options)
{
	struct keep keep = { .options = options };
	_cleanup_free_ char *reason = NULL;
	int r;

	catch_signals();
	r = hold_lock(&keep.hold, options->path, options->lease_ms, &is_over);
	if (r == 0 && !is_over) {
		r = store_open(options->path, &keep.store, &reason);
		if (r < 0)
			log_err(r, "cannot open %s%s%s", options->path, reason ? ": " : "",
				reason ? reason : "");
	}
	while (r == 0 && !is_over) {
		r = act_once(&keep);
		pause_ms(options->interval_ms);
	}
	stop_listening(&keep);
	store_close(keep.store);
	hold_done(&keep.hold);
	return r;
}
