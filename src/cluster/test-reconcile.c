/* SPDX-License-Identifier: Apache-2.0 */
/* One rule a case: two nodes of a device each, and what is ordered in words. */
#include "cluster/reconcile.h"

#include "base/check.h"

#include <string.h>

#define HELD	RECONCILE_HELD
#define PENDING RECONCILE_PENDING
#define RUNNING RECONCILE_RUNNING
#define ENDING	RECONCILE_ENDING
#define NOWHERE RECONCILE_NO_DEVICE

static struct placement_device devices[2];
static struct placement_device books[2];

static const struct reconcile_service one = { 1, 1, 0, 10000, 300, PLACEMENT_BINPACK, NULL };
static const struct reconcile_service two = { 1, 2, 0, 10000, 300, PLACEMENT_SPREAD, NULL };

static struct reconcile_job job(uint32_t id, uint32_t instance, enum reconcile_state state,
				size_t device)
{
	return (struct reconcile_job){
		id, 1, instance, state, device, 10000, 300, PLACEMENT_NO_NODE
	};
}

/* "submit 1.0 at 0, cancel 7 unwanted" */
static const char *orders(const struct reconcile_service *services, size_t n_services,
			  const struct reconcile_job *jobs, size_t n_jobs)
{
	const struct reconcile_view view = { services, n_services, jobs, n_jobs, devices, 2, 2 };
	struct reconcile_actions actions = { 0 };
	static char text[400];
	size_t len = 0;

	text[0] = '\0';
	if (reconcile(&view, books, &actions))
		return "failed";
	for (size_t i = 0; i < actions.n; i++) {
		const struct reconcile_action *a = &actions.items[i];

		len += snprintf(text + len, sizeof(text) - len, "%s%s ", i ? ", " : "",
				reconcile_kind_name(a->kind));
		if (a->job)
			len += snprintf(text + len, sizeof(text) - len, "%u", a->job);
		else
			len += snprintf(text + len, sizeof(text) - len, "%u.%u", a->service,
					a->instance);
		if (a->device != NOWHERE)
			len += snprintf(text + len, sizeof(text) - len, " at %zu", a->device);
		if (a->reason != RECONCILE_WANTED)
			len += snprintf(text + len, sizeof(text) - len, " %s",
					reconcile_reason_name(a->reason));
	}
	reconcile_actions_done(&actions);
	return text;
}

static void is(const struct reconcile_service *service, const struct reconcile_job *jobs,
	       size_t n_jobs, const char *expected, const char *what)
{
	const char *ordered = orders(service, service ? 1 : 0, jobs, n_jobs);

	check(strcmp(ordered, expected) == 0, "%s: %s", what, ordered);
}

#define JOBS(...)                                                                                  \
	(struct reconcile_job[]){ __VA_ARGS__ },                                                   \
		ARRAY_SIZE(((struct reconcile_job[]){ __VA_ARGS__ }))

static void test_life(void)
{
	is(&two, NULL, 0, "submit 1.0 at 0, submit 1.1 at 1", "none there");
	is(&two, JOBS(job(7, 0, HELD, 0), job(8, 1, PENDING, 1)), "release 7 at 0", "one held");
	is(&two, JOBS(job(7, 0, RUNNING, 0), job(8, 1, PENDING, 1)), "", "all is well");
	is(&two, JOBS(job(8, 1, RUNNING, 0)), "submit 1.0 at 1", "one gone");
	is(&one, JOBS(job(7, 0, RUNNING, 0), job(8, 1, RUNNING, 1)), "cancel 8 at 1 unwanted",
	   "one too many");
	is(NULL, JOBS(job(7, 0, RUNNING, 0), job(8, 1, HELD, 1), job(9, 2, ENDING, 1)),
	   "cancel 7 at 0 unwanted, cancel 8 at 1 unwanted", "the service is gone");
}

static void test_two_of_one(void)
{
	is(&one, JOBS(job(9, 0, HELD, 0), job(7, 0, HELD, 1)),
	   "cancel 9 at 0 second, release 7 at 1", "two held");
	is(&one, JOBS(job(7, 0, HELD, 0), job(9, 0, RUNNING, 1)), "cancel 7 at 0 second",
	   "one runs, one held");
	is(&one, JOBS(job(7, 0, ENDING, 0)), "", "one ending, and nobody takes its place yet");
	is(&one, JOBS(job(7, 0, ENDING, 0), job(8, 0, HELD, 1)), "", "held until it is gone");
}

static void test_places(void)
{
	struct reconcile_job moved = job(7, 0, HELD, NOWHERE);
	struct reconcile_job foreign = job(5, 0, RUNNING, 0);

	moved.avoid_node = 0;
	is(&one, &moved, 1, "move 7 at 1 lost-place", "moved away from its node");
	moved.memory_mib = 50000;
	is(&one, &moved, 1, "wait 7", "no room elsewhere");
	foreign.service = 0;
	foreign.memory_mib = 35000;
	is(&one, JOBS(foreign, job(7, 0, PENDING, 0)), "cancel 7 at 0 lost-place",
	   "somebody else has its room");
	is(&one, JOBS(foreign, job(7, 0, HELD, 0)), "move 7 at 1 lost-place", "not begun yet");
	is(NULL, &foreign, 1, "", "others' jobs are left alone");
	check(books[0].booked_mib == 35000, "and counted");
	devices[0].usable = false;
	is(&one, JOBS(job(7, 0, RUNNING, 0)), "", "nothing is ended on a node that is silent");
	is(&one, JOBS(job(7, 0, PENDING, 0)), "cancel 7 at 0 lost-place",
	   "nor does it begin there");
	is(&two, NULL, 0, "submit 1.0 at 1, submit 1.1 at 1", "nor is anything placed there");
	devices[0].usable = true;
}

static void test_priority(void)
{
	const struct reconcile_service services[] = {
		{ 3, 3, 0, 20000, 100, PLACEMENT_BINPACK, NULL },
		{ 2, 1, 5, 30000, 100, PLACEMENT_BINPACK, NULL },
	};
	const char *ordered = orders(services, 2, NULL, 0);

	check(strcmp(ordered, "submit 2.0 at 0, submit 3.0 at 1, wait 3.1") == 0,
	      "who has more priority is placed first: %s", ordered);
}

static void test_raised(void)
{
	struct reconcile_raise raise = { 0, 30000 };
	const struct reconcile_raises raises = { &raise, 1 };
	struct reconcile_service service = two;

	service.raises = &raises;
	is(&service, NULL, 0, "submit 1.0 at 0, submit 1.1 at 1", "one that was evicted once");
	check(books[0].booked_mib == 30000 && books[1].booked_mib == 10000,
	      "asks for what it held then");
	raise.memory_mib = 50000;
	is(&service, NULL, 0, "wait 1.0, submit 1.1 at 0", "it waits alone");
	raise.memory_mib = 5000;
	is(&service, JOBS(job(8, 1, RUNNING, 1)), "submit 1.0 at 0",
	   "its service asks for more now");
	check(books[0].booked_mib == 10000, "and so does it");
}

int main(void)
{
	for (size_t i = 0; i < 2; i++)
		devices[i] =
			(struct placement_device){ i, true, placement_bookable_mib(40960), 0, 0 };
	test_life();
	test_two_of_one();
	test_places();
	test_priority();
	test_raised();
	return check_result();
}
