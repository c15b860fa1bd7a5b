// SPDX-License-Identifier: Apache-2.0
/*
 * Nothing in the ring is believed: positions are checked against our own, and a record is copied out
 * before anything of it is looked at. A guest that breaks the rules of the ring loses its session; it
 * can only have meant to.
 *
 * Between two records the thread looks at the ring for a while before it sleeps, because a sleeper costs
 * the guest a system call and the next record a wake-up. How long adapts to whether it helps.
 *
 * Guest and worker of one machine may be on one CPU, and should: to wake an idle one can take longer than a short call
 * does there and back. So the guest rings by a pipe, whose reader the kernel wakes where the writer is, and leaves the
 * CPU to the lane's thread, which gives it back with the answer. Where calls follow each other the kernel has the two
 * on different CPUs soon, and each finds the other at work.
 */
#include "forward/host/lane.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "forward/host/command.h"
#include "forward/host/order.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/*
 * The least is longer than a doorbell takes the guest: a thread that sleeps again before the guest is back from
 * ringing would have each record ring anew.
 */
#define SPIN_MAX_NS 50000ULL
#define SPIN_MIN_NS 10000ULL

struct host_lane {
	struct lane *lane;
	uint8_t *ring;
	struct wire_reply *reply;
	struct session_block *session;
	uint32_t id;
	struct lane_bells bells;
	void (*ended)(uint32_t id, void *memory);
	uint64_t tail, executed;
	uint64_t spin_ns;
	uint32_t sleeps;
	unsigned seed;
	_Atomic bool stop;
	struct wire_record record;
	uint64_t body[WIRE_RECORD_MAX / sizeof(uint64_t)];
	uint64_t answer[REPLY_MAX / sizeof(uint64_t)];
};

static pthread_mutex_t lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_lane *lanes[WIRE_MAX_LANES];

static _Noreturn void session_is_broken(const char *why)
{
	log_err(0, "a guest's process broke the protocol (%s): its session ends", why);
	_exit(3);
}

static uint64_t head_of(const struct host_lane *l)
{
	return __atomic_load_n(&l->lane->guest.head, __ATOMIC_ACQUIRE);
}

/* Return: did something come? */
static bool spin(struct host_lane *l)
{
	uint64_t start = clock_now_ns(CLOCK_MONOTONIC);

	do {
		for (int i = 0; i < 32; i++) {
			if (head_of(l) != l->tail) {
				l->spin_ns = MIN(2 * l->spin_ns, SPIN_MAX_NS);
				return true;
			}
			__builtin_ia32_pause();
		}
	} while (clock_now_ns(CLOCK_MONOTONIC) - start < l->spin_ns);
	l->spin_ns = MAX(l->spin_ns / 2, SPIN_MIN_NS);
	return false;
}

static void sleep_until_kicked(struct host_lane *l)
{
	char bytes[64];

	__atomic_store_n(&l->lane->bell.sleeps, ++l->sleeps, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (head_of(l) == l->tail && !atomic_load(&l->stop))
		while (read(l->bells.kick, bytes, sizeof(bytes)) < 0 && errno == EINTR)
			;
	__atomic_store_n(&l->lane->bell.sleeps, ++l->sleeps, __ATOMIC_SEQ_CST);
}

/* Return: is there a record? Not where the lane is to end. */
static bool wait_for_record(struct host_lane *l)
{
	while (head_of(l) == l->tail) {
		if (atomic_load(&l->stop))
			return false;
		if (!spin(l))
			sleep_until_kicked(l);
	}
	return true;
}

/* Copies the next record out and frees its place. Return: is it one to execute? */
static bool take_record(struct host_lane *l)
{
	uint64_t available = head_of(l) - l->tail, offset = l->tail % LANE_RING_SIZE;
	uint64_t room = LANE_RING_SIZE - offset, whole;

	if (available > LANE_RING_SIZE || available < LANE_ALIGN)
		session_is_broken("a position outside of the ring");
	memcpy(&l->record, l->ring + offset, sizeof(l->record));
	whole = ((uint64_t)l->record.size + LANE_ALIGN - 1) & ~(uint64_t)(LANE_ALIGN - 1);
	if (l->record.size < sizeof(l->record) || l->record.size > WIRE_RECORD_MAX ||
	    whole > available || whole > room)
		session_is_broken("a record of impossible size");
	if (l->record.call != WIRE_PAD)
		memcpy(l->body, l->ring + offset + sizeof(l->record),
		       l->record.size - sizeof(l->record));
	l->tail += whole;
	__atomic_store_n(&l->lane->host.tail, l->tail, __ATOMIC_RELEASE);
	return l->record.call != WIRE_PAD;
}

static void tell_cpu(struct host_lane *l)
{
	if (l->bells.beside)
		__atomic_store_n(&l->lane->host.cpu, (uint32_t)(sched_getcpu() + 1),
				 __ATOMIC_RELAXED);
}

static void answer(struct host_lane *l, const struct command *command, CUresult result)
{
	struct wire_reply head = { l->record.number, result, command->reply_size };

	memcpy(l->reply, &head, sizeof(head));
	memcpy(l->reply + 1, l->answer, command->reply_size);
	__atomic_store_n(&l->lane->host.replied, l->record.number, __ATOMIC_RELEASE);
}

static void note_error(struct host_lane *l, CUresult result)
{
	__atomic_store_n(&l->lane->host.error, result, __ATOMIC_RELAXED);
	__atomic_store_n(&l->lane->host.error_call, l->record.call, __ATOMIC_RELAXED);
	__atomic_store_n(&l->lane->host.n_errors, l->lane->host.n_errors + 1, __ATOMIC_RELEASE);
	log_debug(0, "%s failed: %d", wire_call_name(l->record.call), result);
}

/* @answered: nothing is left for it to wait for. */
static void call_guest(struct host_lane *l, bool answered)
{
	uint64_t one = 1;
	uint32_t waits;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	waits = __atomic_load_n(&l->lane->guest.waits, __ATOMIC_RELAXED);
	if (waits == 0)
		return;
	if (waits == LANE_SLEEPS && write(l->bells.call, &one, sizeof(one)) < 0)
		log_debug(-errno, "cannot call the guest");
	if (answered && l->bells.beside)
		sched_yield();
}

/* For tests of the order between lanes: COTENANT_JITTER_US in the worker's environment delays each command. */
static void jitter(struct host_lane *l)
{
	const char *most = getenv("COTENANT_JITTER_US");

	if (most && atoi(most) > 0)
		usleep((useconds_t)rand_r(&l->seed) % (useconds_t)atoi(most));
}

static void execute_record(struct host_lane *l)
{
	bool reply = l->record.flags & WIRE_F_REPLY,
	     posted = !reply && !(l->record.flags & WIRE_F_AWAITED);
	struct command command = { .call = l->record.call,
				   .body = (const uint8_t *)l->body,
				   .size = l->record.size - sizeof(l->record),
				   .reply = (uint8_t *)l->answer };
	uint64_t before;
	CUresult result;

	jitter(l);
	before = order_wait(l->record.ticket);
	if (posted && before != l->record.ticket)
		session_is_broken("a ticket that was used before");
	result = command_execute(&command);
	if (posted) {
		__atomic_store_n(&l->session->host.issued, l->record.ticket + 1, __ATOMIC_RELEASE);
		order_done(l->record.ticket);
	}
	if (!reply && result != CUDA_SUCCESS)
		note_error(l, result);
	tell_cpu(l);
	__atomic_store_n(&l->lane->host.executed, ++l->executed, __ATOMIC_RELEASE);
	if (reply)
		answer(l, &command, result);
	call_guest(l, reply || head_of(l) == l->tail);
}

static void bells_close(const struct lane_bells *bells)
{
	close(bells->kick);
	if (bells->kick_end >= 0)
		close(bells->kick_end);
	close(bells->call);
}

static void lane_free(struct host_lane *l)
{
	bells_close(&l->bells);
	free(l);
}

static void *lane_main(void *arg)
{
	struct host_lane *l = arg;
	void (*ended)(uint32_t id, void *memory) = l->ended;
	void *memory = l->lane;
	uint32_t id = l->id;

	while (wait_for_record(l))
		if (take_record(l))
			execute_record(l);
	/* Whoever stopped it may still be about to kick it. */
	pthread_mutex_lock(&lanes_lock);
	pthread_mutex_unlock(&lanes_lock);
	lane_free(l);
	ended(id, memory);
	return NULL;
}

static int lane_start(struct host_lane *l)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = -pthread_create(&thread, &attributes, lane_main, l);
	pthread_attr_destroy(&attributes);
	return r;
}

static int lane_enter(struct host_lane *l)
{
	int r;

	if (l->id >= WIRE_MAX_LANES)
		return -EINVAL;
	pthread_mutex_lock(&lanes_lock);
	r = lanes[l->id] ? -EEXIST : lane_start(l);
	if (r == 0)
		lanes[l->id] = l;
	pthread_mutex_unlock(&lanes_lock);
	return r;
}

int lane_add(uint32_t id, void *memory, const struct lane_bells *bells,
	     struct session_block *session, void (*ended)(uint32_t id, void *memory))
{
	struct host_lane *l = calloc(1, sizeof(*l));
	uint8_t *at = memory;
	int r;

	if (!l) {
		munmap(memory, LANE_SIZE);
		bells_close(bells);
		return -ENOMEM;
	}
	l->lane = memory;
	l->reply = (struct wire_reply *)(at + LANE_REPLY_OFFSET);
	l->ring = at + LANE_RING_OFFSET;
	l->id = id;
	l->bells = *bells;
	l->session = session;
	l->ended = ended;
	l->spin_ns = SPIN_MAX_NS;
	l->seed = id;
	r = lane_enter(l);
	if (r < 0) {
		munmap(memory, LANE_SIZE);
		lane_free(l);
	}
	return r;
}

static void wake(const struct host_lane *l)
{
	int r;

	if (l->bells.kick_end < 0)
		r = shutdown(l->bells.kick, SHUT_RD);
	else
		r = (int)write(l->bells.kick_end, "", 1);
	if (r < 0)
		log_debug(-errno, "cannot wake a lane");
}

int lane_remove(uint32_t id)
{
	struct host_lane *l = NULL;

	if (id >= WIRE_MAX_LANES)
		return -ENOENT;
	pthread_mutex_lock(&lanes_lock);
	l = TAKE_PTR(lanes[id]);
	if (l) {
		atomic_store(&l->stop, true);
		wake(l);
	}
	pthread_mutex_unlock(&lanes_lock);
	return l ? 0 : -ENOENT;
}
