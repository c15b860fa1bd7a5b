/* SPDX-License-Identifier: Apache-2.0 */
/* This process has memory of a device, as a driver lists it that names it by one of its threads. */
#include "daemon/residents.h"

#include "base/check.h"

#include <pthread.h>

static int begun[2], over[2];

static void *thread(_unused_ void *userdata)
{
	pid_t id = gettid();
	char end;

	if (write(begun[1], &id, sizeof(id)) != sizeof(id) || read(over[0], &end, 1) != 1)
		abort();
	return NULL;
}

static bool is_listed(const struct residents *residents, uint64_t bytes)
{
	return residents->n == 1 && residents->items[0]->who.pid == getpid() &&
	       residents->items[0]->bytes[0] == bytes;
}

int main(void)
{
	struct gpu_process both[2] = { { .used_bytes = 5 }, { .used_bytes = 5 } };
	struct residents residents;
	pthread_t other;
	pid_t id = 0;

	if (!check(pipe(begun) == 0 && pipe(over) == 0 &&
			   pthread_create(&other, NULL, thread, NULL) == 0 &&
			   read(begun[0], &id, sizeof(id)) == sizeof(id) && id != getpid() &&
			   residents_init(&residents) == 0,
		   "a thread"))
		return check_result();
	both[0].pid = id;
	both[1].pid = getpid();
	residents_take(&residents, 0, both, 1);
	check(is_listed(&residents, 5), "residents: a thread's id is its process'");
	residents_take(&residents, 0, both, 2);
	check(is_listed(&residents, 5), "residents: what is told of both is there once");
	both[0].used_bytes = 3;
	residents_take(&residents, 0, both, 1);
	check(is_listed(&residents, 3), "residents: and as it is now");
	check(write(over[1], "", 1) == 1 && pthread_join(other, NULL) == 0, "the thread ends");
	residents_take(&residents, 0, both, 0);
	check(residents.n == 0, "residents: who has nothing is none");
	residents_done(&residents);
	return check_result();
}
