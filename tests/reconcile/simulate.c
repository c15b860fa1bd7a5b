/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate [SEED [STEPS]]: services are kept running on a cluster where everything fails, the one who
 * sends the orders included, between any two of them. At each step no device is over what it has and
 * no instance is released twice; whenever it is calm for a while, every instance runs that has room.
 */
#include "world.h"

#include "base/check.h"

#include <string.h>

#define CALM_EVERY 500
#define CALM_STEPS 400
#define IN_FLIGHT  4

/**
 * struct controller - who sends the orders
 * @actions:	still to be sent, from @next on
 * @in_flight:	sent and not answered; they arrive late, or never
 * @waits:	until those have arrived or never will
 */
struct controller {
	struct reconcile_actions actions;
	size_t next;
	struct reconcile_action in_flight[IN_FLIGHT];
	size_t n_in_flight;
	bool waits;
};

struct tally {
	unsigned long n_orders, n_deaths, n_late, n_calm, n_running, n_waiting, n_cut;
	const char *wrong_order;
};

static void start_anew(struct controller *c)
{
	c->next = c->actions.n = 0;
	c->waits = true;
}

/* An order that is on its way arrives, or never does. */
static void flight_end(struct world *w, struct controller *c)
{
	if (!c->n_in_flight) {
		c->waits = false;
		return;
	}
	c->n_in_flight--;
	if (world_random(w, 2))
		world_obey(w, &c->in_flight[c->n_in_flight]);
}

static void order_send(struct world *w, struct controller *c, struct tally *tally)
{
	const struct reconcile_action *order = &c->actions.items[c->next++];

	tally->n_orders++;
	if (order->kind == RECONCILE_WAIT)
		return;
	if (world_random(w, 25) == 0 && c->n_in_flight < IN_FLIGHT) {
		c->in_flight[c->n_in_flight++] = *order;
		tally->n_late++;
		/* What was submitted may come at any time: there are two of it then, at worst. */
		if (order->kind != RECONCILE_SUBMIT)
			start_anew(c);
		return;
	}
	world_obey(w, order);
}

/* Nothing is brought to a node that is not heard, and nothing that runs there is ended for that. */
static const char *wrong_order(const struct reconcile_view *view,
			       const struct reconcile_action *order)
{
	if (order->kind == RECONCILE_CANCEL) {
		for (size_t i = 0; i < view->n_jobs; i++)
			if (view->jobs[i].id == order->job &&
			    view->jobs[i].state == RECONCILE_RUNNING &&
			    order->reason == RECONCILE_LOST_PLACE)
				return "what runs is ended because its node is not heard";
		return NULL;
	}
	return order->device == RECONCILE_NO_DEVICE || view->devices[order->device].usable
		       ? NULL
		       : "something is brought to a node that is not heard";
}

static void judge_orders(const struct world *w, const struct reconcile_view *view,
			 const struct reconcile_actions *orders, struct tally *tally)
{
	for (size_t i = 0; i < orders->n && !tally->wrong_order; i++)
		tally->wrong_order = wrong_order(view, &orders->items[i]);
	for (size_t i = 0; i < WORLD_NODES && orders->n; i++)
		tally->n_cut += w->cut[i];
}

/* One thing that the controller does. Return: false where nothing is left to do. */
static bool controller_step(struct world *w, struct controller *c, struct tally *tally)
{
	struct placement_device books[WORLD_DEVICES];
	struct reconcile_view view;

	if (c->waits) {
		flight_end(w, c);
		return true;
	}
	if (c->next < c->actions.n) {
		order_send(w, c, tally);
		return true;
	}
	view = world_view(w);
	if (reconcile(&view, books, &c->actions))
		abort();
	judge_orders(w, &view, &c->actions, tally);
	c->next = 0;
	for (size_t i = 0; i < c->actions.n; i++)
		if (c->actions.items[i].kind != RECONCILE_WAIT)
			return true;
	c->next = c->actions.n;
	return false;
}

/* --- the judge --- */

static bool is_released(const struct reconcile_job *job)
{
	return job->state != RECONCILE_HELD;
}

/* Of the services' own jobs on a device; others' may have come since. */
static bool is_over(const struct world *w, size_t device)
{
	uint64_t memory_mib = 0, permille = 0;

	for (size_t i = 0; i < w->n_jobs; i++) {
		const struct reconcile_job *job = &w->jobs[i];

		if (job->device != device || !is_released(job) || !job->service)
			continue;
		memory_mib += job->memory_mib;
		permille += job->compute_permille;
	}
	return memory_mib > w->devices[device].bookable_mib || permille > PLACEMENT_WHOLE_PERMILLE;
}

static unsigned n_jobs_of(const struct world *w, uint32_t service, uint32_t instance,
			  bool (*counts)(const struct reconcile_job *job))
{
	unsigned n = 0;

	for (size_t i = 0; i < w->n_jobs; i++)
		n += w->jobs[i].service == service && w->jobs[i].instance == instance &&
		     counts(&w->jobs[i]);
	return n;
}

static const char *wrong_now(const struct world *w)
{
	for (size_t i = 0; i < WORLD_DEVICES; i++)
		if (is_over(w, i))
			return "a device is over what it has";
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].service &&
		    n_jobs_of(w, w->jobs[i].service, w->jobs[i].instance, is_released) > 1)
			return "an instance is there twice";
	return NULL;
}

static bool is_any(_unused_ const struct reconcile_job *job)
{
	return true;
}

static bool is_running(const struct reconcile_job *job)
{
	return job->state == RECONCILE_RUNNING;
}

/* Whether any device would have room for one more of a service: reckoned from the jobs alone. */
static bool would_fit(struct world *w, const struct reconcile_service *service)
{
	struct placement_device books[WORLD_DEVICES];
	struct placement_request request = { service->memory_mib, service->compute_permille,
					     PLACEMENT_SPREAD, PLACEMENT_NO_NODE, NULL };
	size_t device;

	world_view(w);
	memcpy(books, w->devices, sizeof(books));
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].device != RECONCILE_NO_DEVICE)
			placement_book(&books[w->jobs[i].device], w->jobs[i].memory_mib,
				       w->jobs[i].compute_permille);
	return placement_find(books, WORLD_DEVICES, &request, &device) == 0;
}

static const char *wrong_of(struct world *w, const struct reconcile_service *service,
			    struct tally *tally)
{
	for (uint32_t i = 0; i < service->n_replicas; i++) {
		unsigned n = n_jobs_of(w, service->id, i, is_any);

		if (n > 1)
			return "an instance has two jobs";
		tally->n_running += n_jobs_of(w, service->id, i, is_running);
		tally->n_waiting += n == 0;
		if (n == 0 && would_fit(w, service))
			return "an instance is missing that has room";
	}
	return NULL;
}

static bool is_wanted(const struct world *w, const struct reconcile_job *job)
{
	for (size_t i = 0; i < w->n_services; i++)
		if (w->services[i].id == job->service)
			return job->instance < w->services[i].n_replicas;
	return !job->service;
}

static const char *wrong_when_calm(struct world *w, struct tally *tally)
{
	for (size_t i = 0; i < w->n_jobs; i++) {
		const struct reconcile_job *job = &w->jobs[i];
		bool is_silent = job->device != RECONCILE_NO_DEVICE &&
				 w->silent[w->devices[job->device].node];

		if (!is_wanted(w, job) && !is_silent)
			return "a job is there that should not be";
		if (job->service && job->state == RECONCILE_PENDING)
			return "a job waits for ever";
	}
	for (size_t i = 0; i < w->n_services; i++) {
		const char *wrong = wrong_of(w, &w->services[i], tally);

		if (wrong)
			return wrong;
	}
	return NULL;
}

/* --- history --- */

static const char *calm(struct world *w, struct controller *c, struct tally *tally)
{
	int n_idle = 0;

	/* Idle twice: what ended after the first time may have made room. */
	for (int i = 0; i < CALM_STEPS && n_idle < 2; i++) {
		const char *wrong;

		n_idle = controller_step(w, c, tally) ? 0 : n_idle + 1;
		world_go_on(w);
		wrong = wrong_now(w);
		if (wrong)
			return wrong;
	}
	if (n_idle < 2)
		return "orders without end";
	tally->n_calm++;
	return wrong_when_calm(w, tally);
}

static void happen(struct world *w, struct controller *c, struct tally *tally)
{
	unsigned what = world_random(w, 100);

	if (!c->waits && c->n_in_flight && world_random(w, 8) == 0)
		flight_end(w, c);
	if (what < 3) {
		start_anew(c);
		tally->n_deaths++;
	} else if (what < 20) {
		world_disturb(w);
	} else if (what < 40) {
		world_go_on(w);
	} else {
		controller_step(w, c, tally);
	}
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	unsigned long n_steps = argc > 2 ? strtoul(argv[2], NULL, 0) : 1000000;
	struct controller c = { 0 };
	struct tally tally = { 0 };
	const char *wrong = NULL;
	unsigned long step;
	struct world w;

	world_init(&w, seed);
	for (step = 1; step <= n_steps && !wrong; step++) {
		happen(&w, &c, &tally);
		wrong = tally.wrong_order ? tally.wrong_order : wrong_now(&w);
		if (!wrong && step % CALM_EVERY == 0)
			wrong = calm(&w, &c, &tally);
	}
	check(!wrong, "seed %lu, %lu steps: %s", seed, step - 1,
	      wrong ? wrong : "all as it should be");
	printf("%lu orders, %lu late or lost, %lu deaths of who sends them, %lu times with a node cut off; calm %lu times, then %lu "
	       "ran and %lu had no room\n",
	       tally.n_orders, tally.n_late, tally.n_deaths, tally.n_cut, tally.n_calm,
	       tally.n_running, tally.n_waiting);
	check(tally.n_running > tally.n_calm && tally.n_waiting > 0 && tally.n_cut > 0,
	      "there was something to do");
	reconcile_actions_done(&c.actions);
	return check_result();
}
