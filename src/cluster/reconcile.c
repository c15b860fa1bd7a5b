/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First what runs, is ending or may begin any moment is booked; then, service by service in order of
 * their priority, those that are held; then those that are missing.
 */
#include "cluster/reconcile.h"

#include "base/array.h"

#include <errno.h>
#include <string.h>

/**
 * struct pass - what the functions below hand on to each other
 * @jobs:	in the order of their services and instances; of one instance, the one to keep first
 * @lost:	beside @jobs: it has not begun, and its place is another's or out of use
 * @services:	in the order in which they are placed
 * @n_on_node:	instances on each node of the service that is looked at
 */
struct pass {
	const struct reconcile_view *view;
	struct placement_device *books;
	struct reconcile_actions *actions;
	const struct reconcile_job **jobs;
	bool *lost;
	const struct reconcile_service **services;
	uint32_t *n_on_node;
};

/* The jobs of a service, or of one of its instances: a stretch of pass.jobs. */
struct stretch {
	const struct reconcile_job **jobs;
	size_t n;
};

static int action_add(struct pass *pass, const struct reconcile_action *action)
{
	struct reconcile_actions *actions = pass->actions;

	void *items =
		array_room(actions->items, actions->n, &actions->cap, sizeof(*actions->items));

	if (!items)
		return -ENOMEM;
	actions->items = items;
	actions->items[actions->n++] = *action;
	return 0;
}

static int order_job(struct pass *pass, enum reconcile_kind kind, enum reconcile_reason reason,
		     const struct reconcile_job *job, size_t device)
{
	return action_add(pass, &(struct reconcile_action){ kind, reason, job->id, job->service,
							    job->instance, device });
}

/* --- order --- */

/* A job that is ending is not kept, but until it is gone nobody takes its place. */
static int keep_rank(const struct reconcile_job *job)
{
	static const int ranks[] = {
		[RECONCILE_RUNNING] = 0,
		[RECONCILE_PENDING] = 1,
		[RECONCILE_HELD] = 2,
		[RECONCILE_ENDING] = 3,
	};

	return ranks[job->state];
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_jobs(const void *a, const void *b)
{
	const struct reconcile_job *x = *(const struct reconcile_job *const *)a;
	const struct reconcile_job *y = *(const struct reconcile_job *const *)b;

	if (x->service != y->service)
		return COMPARE(x->service, y->service);
	if (x->instance != y->instance)
		return COMPARE(x->instance, y->instance);
	if (keep_rank(x) != keep_rank(y))
		return COMPARE(keep_rank(x), keep_rank(y));
	return COMPARE(x->id, y->id);
}

static int compare_services(const void *a, const void *b)
{
	const struct reconcile_service *x = *(const struct reconcile_service *const *)a;
	const struct reconcile_service *y = *(const struct reconcile_service *const *)b;

	if (x->priority != y->priority)
		return COMPARE(y->priority, x->priority);
	return COMPARE(x->id, y->id);
}

/* Where the jobs from a service and instance on begin. */
static size_t jobs_from(const struct pass *pass, uint32_t service, uint64_t instance)
{
	size_t low = 0, high = pass->view->n_jobs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct reconcile_job *job = pass->jobs[middle];

		if (job->service < service || (job->service == service && job->instance < instance))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct stretch jobs_of_service(const struct pass *pass, uint32_t service)
{
	size_t begin = jobs_from(pass, service, 0);
	size_t end = jobs_from(pass, service, UINT64_MAX);

	return (struct stretch){ pass->jobs + begin, end - begin };
}

/* Those of the first job's instance, at the beginning of a stretch. */
static struct stretch first_instance(struct stretch jobs)
{
	size_t n = 1;

	while (n < jobs.n && jobs.jobs[n]->instance == jobs.jobs[0]->instance)
		n++;
	return (struct stretch){ jobs.jobs, n };
}

static struct stretch after(struct stretch jobs, struct stretch first)
{
	return (struct stretch){ jobs.jobs + first.n, jobs.n - first.n };
}

/* --- what is taken --- */

static struct placement_device *device_of(const struct pass *pass, const struct reconcile_job *job)
{
	return job->device < pass->view->n_devices ? &pass->books[job->device] : NULL;
}

static struct placement_request request_of(const struct pass *pass, const struct reconcile_job *job,
					   enum placement_order order)
{
	return (struct placement_request){ job->memory_mib, job->compute_permille, order,
					   job->avoid_node, pass->n_on_node };
}

static void book(const struct pass *pass, const struct reconcile_job *job)
{
	struct placement_device *device = device_of(pass, job);

	if (device)
		placement_book(device, job->memory_mib, job->compute_permille);
}

static bool has_room(const struct pass *pass, const struct reconcile_job *job)
{
	const struct placement_device *device = device_of(pass, job);
	struct placement_request request = request_of(pass, job, PLACEMENT_BINPACK);

	return device && placement_check(device, &request) == PLACEMENT_FITS;
}

static void book_those_in(const struct pass *pass, enum reconcile_state state)
{
	for (size_t i = 0; i < pass->view->n_jobs; i++)
		if (pass->jobs[i]->state == state)
			book(pass, pass->jobs[i]);
}

/*
 * Those that are released and have not begun. Slurm may have given their room to somebody else's job, or
 * lost the node: then they would wait for ever. What they ask for stays booked until they are gone, as
 * Slurm may start them before it hears of that.
 */
static void book_pending(const struct pass *pass)
{
	for (size_t i = 0; i < pass->view->n_jobs; i++) {
		const struct reconcile_job *job = pass->jobs[i];

		if (job->state != RECONCILE_PENDING)
			continue;
		pass->lost[i] = !has_room(pass, job);
		book(pass, job);
	}
}

/* --- what should not be --- */

/* From one of an instance on. Those that are ending anyway come last. */
static int cancel_from(struct pass *pass, struct stretch jobs, size_t from,
		       enum reconcile_reason reason)
{
	for (size_t i = from; i < jobs.n && jobs.jobs[i]->state != RECONCILE_ENDING; i++) {
		int r = order_job(pass, RECONCILE_CANCEL, reason, jobs.jobs[i],
				  jobs.jobs[i]->device);

		if (r < 0)
			return r;
	}
	return 0;
}

static int cancel_unserved(struct pass *pass)
{
	const struct reconcile_view *view = pass->view;
	size_t i = jobs_from(pass, 1, 0);

	while (i < view->n_jobs) {
		struct stretch jobs = jobs_of_service(pass, pass->jobs[i]->service);
		bool known = false;
		int r;

		for (size_t j = 0; j < view->n_services && !known; j++)
			known = view->services[j].id == jobs.jobs[0]->service;
		for (i += jobs.n; !known && jobs.n; jobs = after(jobs, first_instance(jobs))) {
			r = cancel_from(pass, first_instance(jobs), 0, RECONCILE_UNWANTED);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* --- what is held --- */

/* @others: of the same instance */
static int release_or_move(struct pass *pass, const struct reconcile_service *service,
			   const struct reconcile_job *job, struct stretch others)
{
	struct placement_request request = request_of(pass, job, service->order);
	size_t device;

	if (has_room(pass, job)) {
		book(pass, job);
		/* One that is ending is the instance until it is gone. */
		if (others.jobs[others.n - 1]->state == RECONCILE_ENDING)
			return 0;
		return order_job(pass, RECONCILE_RELEASE, RECONCILE_WANTED, job, job->device);
	}
	if (placement_find(pass->books, pass->view->n_devices, &request, &device))
		return order_job(pass, RECONCILE_WAIT, RECONCILE_WANTED, job, RECONCILE_NO_DEVICE);
	placement_book(&pass->books[device], job->memory_mib, job->compute_permille);
	return order_job(pass, RECONCILE_MOVE, RECONCILE_LOST_PLACE, job, device);
}

static int look_at_instance(struct pass *pass, const struct reconcile_service *service,
			    struct stretch jobs)
{
	const struct reconcile_job *first = jobs.jobs[0];
	int r;

	if (first->instance >= service->n_replicas)
		return cancel_from(pass, jobs, 0, RECONCILE_UNWANTED);
	r = cancel_from(pass, jobs, 1, RECONCILE_SECOND);
	if (r == 0 && first->state == RECONCILE_HELD)
		r = release_or_move(pass, service, first, jobs);
	else if (r == 0 && pass->lost[jobs.jobs - pass->jobs])
		r = order_job(pass, RECONCILE_CANCEL, RECONCILE_LOST_PLACE, first, first->device);
	return r;
}

static void count_on_nodes(const struct pass *pass, struct stretch jobs, int by)
{
	for (size_t i = 0; i < jobs.n; i++) {
		const struct placement_device *device = device_of(pass, jobs.jobs[i]);

		if (device)
			pass->n_on_node[device->node] += by;
	}
}

static int look_at_service(struct pass *pass, const struct reconcile_service *service)
{
	struct stretch all = jobs_of_service(pass, service->id), rest = all;
	int r = 0;

	count_on_nodes(pass, all, 1);
	while (rest.n && r == 0) {
		r = look_at_instance(pass, service, first_instance(rest));
		rest = after(rest, first_instance(rest));
	}
	count_on_nodes(pass, all, -1);
	return r;
}

/* --- what is missing --- */

static int compare_raises(const void *key, const void *member)
{
	const struct reconcile_raise *raise = member;

	return COMPARE(*(const uint32_t *)key, raise->instance);
}

uint64_t reconcile_request_mib(uint64_t memory_mib, const struct reconcile_raises *raises,
			       uint32_t instance)
{
	const struct reconcile_raise *raise = NULL;

	if (raises && raises->n)
		raise = bsearch(&instance, raises->items, raises->n, sizeof(*raises->items),
				compare_raises);
	return raise ? MAX(memory_mib, raise->memory_mib) : memory_mib;
}

/* Return: 0; PLACEMENT_E_NO_ROOM, and no other instance of the service has room either. */
static int submit(struct pass *pass, const struct reconcile_service *service, uint32_t instance)
{
	const uint64_t memory_mib =
		reconcile_request_mib(service->memory_mib, service->raises, instance);
	const struct placement_request request = { memory_mib, service->compute_permille,
						   service->order, PLACEMENT_NO_NODE,
						   pass->n_on_node };
	struct reconcile_action action = {
		RECONCILE_SUBMIT, RECONCILE_WANTED, 0, service->id, instance, RECONCILE_NO_DEVICE
	};
	int r;

	if (placement_find(pass->books, pass->view->n_devices, &request, &action.device)) {
		action.kind = RECONCILE_WAIT;
		r = action_add(pass, &action);
		/* One that asks for more than the others says nothing of them. */
		return r < 0 || memory_mib > service->memory_mib ? r : PLACEMENT_E_NO_ROOM;
	}
	placement_book(&pass->books[action.device], memory_mib, service->compute_permille);
	pass->n_on_node[pass->books[action.device].node]++;
	return action_add(pass, &action);
}

static int submit_missing(struct pass *pass, const struct reconcile_service *service)
{
	struct stretch jobs = jobs_of_service(pass, service->id);
	size_t at = 0;
	int r = 0;

	count_on_nodes(pass, jobs, 1);
	for (uint32_t i = 0; i < service->n_replicas && r == 0; i++) {
		if (at < jobs.n && jobs.jobs[at]->instance == i) {
			while (at < jobs.n && jobs.jobs[at]->instance == i)
				at++;
			continue;
		}
		r = submit(pass, service, i);
	}
	/* Those just submitted were counted as well. */
	memset(pass->n_on_node, 0, pass->view->n_nodes * sizeof(*pass->n_on_node));
	return r < 0 ? r : 0;
}

/* --- one after the other --- */

static int each_service(struct pass *pass,
			int (*look)(struct pass *pass, const struct reconcile_service *service))
{
	for (size_t i = 0; i < pass->view->n_services; i++) {
		int r = look(pass, pass->services[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int pass_run(struct pass *pass)
{
	int r;

	book_those_in(pass, RECONCILE_RUNNING);
	book_those_in(pass, RECONCILE_ENDING);
	book_pending(pass);
	r = cancel_unserved(pass);
	if (r == 0)
		r = each_service(pass, look_at_service);
	if (r == 0)
		r = each_service(pass, submit_missing);
	return r;
}

int reconcile(const struct reconcile_view *view, struct placement_device *books,
	      struct reconcile_actions *ret)
{
	_cleanup_free_ const struct reconcile_job **jobs = NULL;
	_cleanup_free_ const struct reconcile_service **services = NULL;
	_cleanup_free_ uint32_t *n_on_node = NULL;
	_cleanup_free_ bool *lost = NULL;

	ret->n = 0;
	jobs = calloc(view->n_jobs + 1, sizeof(struct reconcile_job *));
	services = calloc(view->n_services + 1, sizeof(struct reconcile_service *));
	n_on_node = calloc(view->n_nodes + 1, sizeof(*n_on_node));
	lost = calloc(view->n_jobs + 1, sizeof(*lost));
	if (!jobs || !services || !n_on_node || !lost)
		return -ENOMEM;
	for (size_t i = 0; i < view->n_jobs; i++)
		jobs[i] = &view->jobs[i];
	for (size_t i = 0; i < view->n_services; i++)
		services[i] = &view->services[i];
	qsort(jobs, view->n_jobs, sizeof(*jobs), compare_jobs);
	qsort(services, view->n_services, sizeof(*services), compare_services);
	memcpy(books, view->devices, view->n_devices * sizeof(*books));
	return pass_run(&(struct pass){ view, books, ret, jobs, lost, services, n_on_node });
}

void reconcile_actions_done(struct reconcile_actions *actions)
{
	free(actions->items);
	*actions = (struct reconcile_actions){ 0 };
}

const char *reconcile_kind_name(enum reconcile_kind kind)
{
	static const char *const names[] = {
		[RECONCILE_SUBMIT] = "submit", [RECONCILE_RELEASE] = "release",
		[RECONCILE_MOVE] = "move",     [RECONCILE_CANCEL] = "cancel",
		[RECONCILE_WAIT] = "wait",
	};

	return names[kind];
}

const char *reconcile_reason_name(enum reconcile_reason reason)
{
	static const char *const names[] = {
		[RECONCILE_WANTED] = "wanted",
		[RECONCILE_UNWANTED] = "unwanted",
		[RECONCILE_SECOND] = "second",
		[RECONCILE_LOST_PLACE] = "lost-place",
	};

	return names[reason];
}
