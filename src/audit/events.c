// SPDX-License-Identifier: Apache-2.0
/*
 * What happens: events of the programs and of the engine, the holder's life, new mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "priv.h"

#define REAP_AFTER_EXIT_NS 500000000ULL
#define REAP_NS		   10000000000ULL
#define AGAIN_NS	   5000000
#define RING_KEPT_NS	   1000000000ULL

static int on_event(void *userdata, void *data, size_t size)
{
	struct engine *engine = userdata;
	const struct audit_event *event = data;

	if (size >= sizeof(*event) && event->kind == AUDIT_EVENT_NEW_PROCESS)
		launches_meet(engine, event->tgid);
	if (size >= sizeof(*event) && event->kind == AUDIT_EVENT_EXIT)
		engine->exits = true;
	if (engine->on_event && size >= sizeof(struct audit_event))
		engine->on_event(data, "", engine->userdata);
	return 0;
}

/* Soon after processes have ended, and once in a while as word of an end may have been lost. */
static int reap_now_and_then(struct engine *engine)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	if (now < engine->reaped_ns + (engine->exits ? REAP_AFTER_EXIT_NS : REAP_NS))
		return 0;
	engine->reaped_ns = now;
	engine->exits = false;
	return reap_soon(engine);
}

/* What the programs could not do; if it cannot be done yet, it is tried again in a moment. */
static void left_see_to(struct engine *engine)
{
	const struct audit_control *control = &engine->state->control;
	const struct itimerspec moment = { .it_value.tv_nsec = AGAIN_NS };
	uint32_t n_unended = __atomic_load_n(&control->n_unended, __ATOMIC_ACQUIRE);
	uint32_t n_unfollowed = __atomic_load_n(&control->n_unfollowed, __ATOMIC_ACQUIRE);

	if (n_unfollowed != engine->n_unfollowed)
		trees_follow(engine);
	engine->n_unfollowed = n_unfollowed;
	if (n_unended == engine->n_unended)
		return;
	if (ended_see_to(engine))
		engine->n_unended = n_unended;
	else
		timerfd_settime(engine->again_fd, 0, &moment, NULL);
}

/* --- the ring -------------------------------------------------------------------------------------- */

static const volatile uint64_t *position_map(int fd, int rights, off_t page)
{
	return mmap(NULL, getpagesize(), rights, MAP_SHARED, fd, page * getpagesize());
}

static void position_unmap(const volatile uint64_t *position)
{
	if (position && position != MAP_FAILED)
		munmap((void *)position, getpagesize());
}

/*
 * The kernel puts all of a ring into the memory of who maps it, twice over, and mostly it is empty: what
 * stays mapped is the two numbers that tell so. The descriptor that libbpf opens for itself is kept as well,
 * as events are read also when none is left.
 */
static void ring_unmap(struct engine *engine)
{
	ring_buffer__free(engine->events);
	engine->events = NULL;
	if (engine->spare_fd < 0)
		engine->spare_fd = fcntl(engine->epoll_fd, F_DUPFD_CLOEXEC, 0);
}

static int ring_map(struct engine *engine)
{
	if (engine->spare_fd >= 0)
		close(engine->spare_fd);
	engine->spare_fd = -1;
	engine->events = ring_buffer__new(engine_map_fd(engine, "events"), on_event, engine, NULL);
	return engine->events ? 0 : -errno;
}

static int ring_open(struct engine *engine)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = engine_map_fd(engine, "events");

	engine->events_taken = position_map(fd, PROT_READ | PROT_WRITE, 0);
	engine->events_sent = position_map(fd, PROT_READ, 1);
	if (engine->events_taken == MAP_FAILED || engine->events_sent == MAP_FAILED)
		return -errno;
	event.data.fd = fd;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int ring_take(struct engine *engine)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);
	int r = 0;

	if (__atomic_load_n(engine->events_sent, __ATOMIC_ACQUIRE) == *engine->events_taken) {
		if (now > engine->events_ns + RING_KEPT_NS)
			ring_unmap(engine);
		return 0;
	}
	engine->events_ns = now;
	if (!engine->events)
		r = ring_map(engine);
	return r < 0 ? r : ring_buffer__consume(engine->events);
}

void events_close(struct engine *engine)
{
	ring_buffer__free(engine->events);
	if (engine->spare_fd >= 0)
		close(engine->spare_fd);
	position_unmap(engine->events_taken);
	position_unmap(engine->events_sent);
}

static int again_open(struct engine *engine)
{
	struct epoll_event event = { .events = EPOLLIN };

	engine->again_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (engine->again_fd < 0)
		return -errno;
	event.data.fd = engine->again_fd;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->again_fd, &event) ? -errno : 0;
}

int events_open(struct engine *engine)
{
	int r = again_open(engine);

	return r < 0 ? r : ring_open(engine);
}

void events_tell(struct engine *engine, enum audit_event_kind kind, uint32_t row, const char *text)
{
	struct audit_event event = { .kind = kind, .row = row };

	if (!engine->on_event)
		return;
	event.time_ns = clock_now_ns(CLOCK_MONOTONIC);
	engine->on_event(&event, text, engine->userdata);
}

const char *engine_row_name(unsigned row)
{
	return library_call_name(row);
}

void engine_on_event(struct engine *engine, engine_event_fn fn, void *userdata)
{
	engine->on_event = fn;
	engine->userdata = userdata;
	builds_tell_again(engine);
}

static void timer_drain(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) > 0)
		continue;
}

int engine_dispatch(struct engine *engine)
{
	struct epoll_event ready[16];
	int n = epoll_wait(engine->epoll_fd, ready, ARRAY_SIZE(ready), 0);
	int r = 0;

	/* Whoever woke us: a look at the rings costs two loads a CPU, and a late one costs calls. */
	watch_look(engine);
	for (int i = 0; i < n && r >= 0; i++) {
		if (ready[i].data.fd == engine->holder_pidfd) {
			holder_stop(engine);
			r = holder_start(engine);
		} else if (ready[i].data.fd == engine->again_fd) {
			timer_drain(engine->again_fd);
		}
	}
	if (r >= 0)
		r = ring_take(engine);
	left_see_to(engine);
	if (r < 0)
		return r;
	watch_dispatch(engine);
	copies_sweep(engine);
	r = reap_now_and_then(engine);
	return r < 0 ? r : 0;
}
