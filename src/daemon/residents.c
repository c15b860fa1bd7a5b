/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/residents.h"

#include "base/array.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

int residents_init(struct residents *residents)
{
	memset(residents, 0, sizeof(*residents));
	residents->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	residents->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return residents->proc_fd < 0 || residents->epoll_fd < 0 ? -errno : 0;
}

static void resident_free(struct resident *p)
{
	if (!p)
		return;
	/* Closing takes it out of the epoll set as well. */
	if (p->pidfd >= 0)
		close(p->pidfd);
	assoc_process_done(&p->who);
	free(p);
}

DEFINE_CLEANUP(struct resident *, resident_free)

/* Where a process stands, or would stand. */
static size_t place_of(const struct residents *residents, pid_t pid)
{
	size_t low = 0, high = residents->n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (residents->items[mid]->who.pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct resident *residents_find(const struct residents *residents, pid_t pid)
{
	size_t at = place_of(residents, pid);

	return at < residents->n && residents->items[at]->who.pid == pid ? residents->items[at]
									 : NULL;
}

bool resident_is_of(const struct resident *resident, uint32_t tenant)
{
	unsigned i;

	for (i = 0; i < resident->n_tenants; i++) {
		if (resident->tenants[i] == tenant)
			return true;
	}
	return false;
}

/* Devices tell of work now and then: what is not told anew is over. */
#define WORK_LASTS_MS 2000

unsigned resident_busy(const struct resident *resident, unsigned device, uint64_t now_ms)
{
	bool lately = now_ms - resident->worked_ms[device] <= WORK_LASTS_MS;

	return lately ? resident->percent[device] : 0;
}

static void remove_at(struct residents *residents, size_t at)
{
	resident_free(residents->items[at]);
	residents->n--;
	memmove(&residents->items[at], &residents->items[at + 1],
		(residents->n - at) * sizeof(*residents->items));
}

static void drop_dead(struct residents *residents)
{
	struct epoll_event events[64];
	int i, n;

	do {
		n = epoll_wait(residents->epoll_fd, events, ARRAY_SIZE(events), 0);
		for (i = 0; i < n; i++)
			remove_at(residents, place_of(residents, events[i].data.u32));
	} while (n == ARRAY_SIZE(events));
}

static int insert(struct residents *residents, struct resident *p)
{
	void *items = array_room(residents->items, residents->n, &residents->cap,
				 sizeof(*residents->items));
	size_t at = place_of(residents, p->who.pid);

	if (!items)
		return -ENOMEM;
	residents->items = items;
	memmove(&residents->items[at + 1], &residents->items[at],
		(residents->n - at) * sizeof(*residents->items));
	residents->items[at] = p;
	residents->n++;
	return 0;
}

/*
 * The descriptor first: what is read afterwards is of that process, unless it has died
 * meanwhile, and then the next look at the descriptors tells.
 */
static struct resident *add(struct residents *residents, pid_t pid)
{
	_cleanup_(resident_freep) struct resident *p = calloc(1, sizeof(*p));
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = pid };
	int r;

	if (!p)
		return NULL;
	p->is_new = true;
	p->pidfd = fd_of_process(pid);
	if (p->pidfd < 0)
		return NULL;
	r = assoc_of_pid(residents->proc_fd, pid, &p->who);
	if (r != 0) {
		if (r < 0)
			log_debug(r, "process %d: cannot tell whose it is", pid);
		return NULL;
	}
	if (epoll_ctl(residents->epoll_fd, EPOLL_CTL_ADD, p->pidfd, &event) < 0 ||
	    insert(residents, p) < 0)
		return NULL;
	return TAKE_PTR(p);
}

static void forget_device(struct residents *residents, unsigned device)
{
	size_t i;

	for (i = 0; i < residents->n; i++) {
		residents->items[i]->listed &= ~(1U << device);
		residents->items[i]->unknown &= ~(1U << device);
		residents->items[i]->bytes[device] = 0;
	}
}

static void drop_unlisted(struct residents *residents)
{
	size_t i;

	for (i = residents->n; i > 0; i--) {
		if (!residents->items[i - 1]->listed)
			remove_at(residents, i - 1);
	}
}

/* A driver may name a process by any of its threads. */
static struct resident *find_or_add(struct residents *residents, pid_t id)
{
	struct resident *p = residents_find(residents, id);
	pid_t pid;

	if (p)
		return p;
	pid = assoc_process_of(residents->proc_fd, id);
	if (pid && pid != id)
		p = residents_find(residents, pid);
	return p || !pid ? p : add(residents, pid);
}

static void take(struct residents *residents, const struct gpu_process *g, unsigned device)
{
	struct resident *p = find_or_add(residents, g->pid);

	if (!p)
		return;
	p->listed |= 1U << device;
	if (g->used_bytes == GPU_UNKNOWN)
		p->unknown |= 1U << device;
	else
		p->bytes[device] = MAX(p->bytes[device], g->used_bytes);
}

void residents_take(struct residents *residents, unsigned device, const struct gpu_process *list,
		    size_t n)
{
	size_t i;

	drop_dead(residents);
	forget_device(residents, device);
	for (i = 0; i < n; i++)
		take(residents, &list[i], device);
	drop_unlisted(residents);
	drop_dead(residents);
}

void residents_done(struct residents *residents)
{
	size_t i;

	for (i = 0; i < residents->n; i++)
		resident_free(residents->items[i]);
	free(residents->items);
	if (residents->epoll_fd >= 0)
		close(residents->epoll_fd);
	if (residents->proc_fd >= 0)
		close(residents->proc_fd);
}
