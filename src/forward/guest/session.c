// SPDX-License-Identifier: Apache-2.0
#include "forward/guest/session.h"

#include "base/base.h"
#include "forward/guest/callback.h"
#include "forward/guest/lane-wait.h"
#include "forward/guest/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum phase {
	PHASE_NEW,
	PHASE_READY,
	PHASE_FORKED,
	PHASE_LOST,
};

static const struct carrier *const carriers[] = { &carrier_unix, &carrier_device };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int phase;
static const struct carrier *carrier;
static struct session_block *block;
static void *heap;
static int service_call = -1;
static bool synchronous;
static pthread_key_t lane_key;
/* Tickets given out to posted records of all threads. */
static _Atomic uint64_t n_posted;
static __thread struct guest_lane *own_lane;
/* For COTENANT_STATS: calls that waited, doorbells, bytes that the program's copies made twice. */
static _Atomic uint64_t n_asked, n_kicks, n_copied;

static void in_child(void)
{
	/* Another thread may have had the lock when the process was copied. */
	pthread_mutex_init(&lock, NULL);
	if (atomic_load(&phase) == PHASE_READY)
		atomic_store(&phase, PHASE_FORKED);
	own_lane = NULL;
}

static void lane_end(void *arg)
{
	struct guest_lane *l = arg;

	own_lane = NULL;
	pthread_mutex_lock(&lock);
	if (atomic_load(&phase) == PHASE_READY)
		carrier->lane_remove(&l->carrier);
	pthread_mutex_unlock(&lock);
	free(l);
}

static CUresult result_of(int error)
{
	switch (error) {
	case 0:
		return CUDA_SUCCESS;
	case -EPROTO:
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case -EDQUOT:
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case -ENODEV:
		return DEVICE_LOST;
	default:
		return CUDA_ERROR_NO_DEVICE;
	}
}

/* The caller has the lock. */
static int open_locked(void)
{
	int r = -ENOENT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(carriers) && r == -ENOENT; i++) {
		carrier = carriers[i];
		r = carrier->open(&block, &heap, &service_call);
	}
	if (r < 0) {
		guest_log("no GPU over the %s: %s", carrier->name, strerrordesc_np(-r));
		return r;
	}
	synchronous = getenv("COTENANT_SYNC") && strcmp(getenv("COTENANT_SYNC"), "0") != 0;
	pthread_key_create(&lane_key, lane_end);
	pthread_atfork(NULL, NULL, in_child);
	atomic_store(&phase, PHASE_READY);
	return 0;
}

CUresult session_open(void)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (atomic_load(&phase) == PHASE_NEW)
		r = result_of(open_locked());
	pthread_mutex_unlock(&lock);
	return r == CUDA_SUCCESS ? session_check() : r;
}

CUresult session_check(void)
{
	if (callback_is_running())
		return CUDA_ERROR_NOT_PERMITTED;
	switch (atomic_load_explicit(&phase, memory_order_acquire)) {
	case PHASE_READY:
		return CUDA_SUCCESS;
	case PHASE_LOST:
		return DEVICE_LOST;
	default:
		return CUDA_ERROR_NOT_INITIALIZED;
	}
}

CUresult session_lose(void)
{
	int was = PHASE_READY;

	if (atomic_compare_exchange_strong(&phase, &was, PHASE_LOST))
		guest_log("the host's side is gone: every call fails from now on");
	return DEVICE_LOST;
}

void *session_heap(void)
{
	return heap;
}

struct session_block *session_block_get(void)
{
	return block;
}

int session_service_wait(void)
{
	return carrier->wait(service_call, -1);
}

bool session_is_synchronous(void)
{
	return synchronous;
}

void session_count_copied(size_t size)
{
	atomic_fetch_add_explicit(&n_copied, size, memory_order_relaxed);
}

int session_grant(void *address, uint64_t size, bool keep, uint32_t *ret_id)
{
	int r;

	pthread_mutex_lock(&lock);
	r = carrier->grant(address, size, keep, ret_id);
	pthread_mutex_unlock(&lock);
	return r;
}

int session_revoke(uint32_t id)
{
	int r;

	pthread_mutex_lock(&lock);
	r = carrier->revoke(id);
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult lane_new(struct guest_lane **ret)
{
	struct guest_lane *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	r = carrier->lane_add(&l->carrier);
	pthread_mutex_unlock(&lock);
	if (r < 0) {
		free(l);
		return r == -ENODEV ? session_lose() : result_of(r);
	}
	l->lane = l->carrier.memory;
	l->reply = (const struct wire_reply *)((uint8_t *)l->lane + LANE_REPLY_OFFSET);
	l->ring = (uint8_t *)l->lane + LANE_RING_OFFSET;
	pthread_setspecific(lane_key, l);
	*ret = own_lane = l;
	return CUDA_SUCCESS;
}

CUresult lane_get(struct guest_lane **ret)
{
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!own_lane)
		return lane_new(ret);
	*ret = own_lane;
	return CUDA_SUCCESS;
}

/* Waits until @word has come to @value. */
static CUresult wait_for(struct guest_lane *l, const __u64 *word, uint64_t value)
{
	bool woken = l->woken;
	int r = 0;

	l->woken = false;
	if (!woken && (lane_look(word, value) || lane_spin(word, value, LANE_FIRST_SPINS)))
		return CUDA_SUCCESS;
	if (l->carrier.beside && lane_yield(l->lane, word, value, woken && !l->carrier.apart))
		return CUDA_SUCCESS;
	if (lane_spin(word, value, LANE_SPINS))
		return CUDA_SUCCESS;
	while (r == 0 || r == -ETIMEDOUT) {
		__atomic_store_n(&l->lane->guest.waits, LANE_SLEEPS, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (lane_reached(word, value))
			break;
		r = carrier->wait(l->carrier.call, 1000);
	}
	__atomic_store_n(&l->lane->guest.waits, 0, __ATOMIC_RELAXED);
	return lane_reached(word, value) ? CUDA_SUCCESS : session_lose();
}

static CUresult room_wait(struct guest_lane *l, uint64_t size)
{
	uint64_t end = l->head + size;

	if (end <= LANE_RING_SIZE)
		return CUDA_SUCCESS;
	return wait_for(l, &l->lane->host.tail, end - LANE_RING_SIZE);
}

static void publish(struct guest_lane *l, uint64_t size)
{
	uint32_t sleeps;

	l->head += size;
	__atomic_store_n(&l->lane->guest.head, l->head, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleeps = __atomic_load_n(&l->lane->bell.sleeps, __ATOMIC_RELAXED);
	if (!l->carrier.each && (sleeps % 2 == 0 || sleeps == l->rung))
		return;
	l->rung = sleeps;
	l->woken = true;
	carrier->kick(&l->carrier);
	atomic_fetch_add_explicit(&n_kicks, 1, memory_order_relaxed);
}

static uint64_t aligned(uint64_t size)
{
	return (size + LANE_ALIGN - 1) & ~(uint64_t)(LANE_ALIGN - 1);
}

static CUresult pad(struct guest_lane *l, uint64_t size)
{
	struct wire_record record = { .size = (uint32_t)size, .call = WIRE_PAD };
	CUresult r = room_wait(l, size);

	if (r != CUDA_SUCCESS)
		return r;
	memcpy(l->ring + l->head % LANE_RING_SIZE, &record, sizeof(record));
	publish(l, size);
	return CUDA_SUCCESS;
}

CUresult lane_begin(struct guest_lane *l, unsigned call, size_t size, void **ret_body)
{
	uint64_t whole = aligned(sizeof(struct wire_record) + size);
	uint64_t left = LANE_RING_SIZE - l->head % LANE_RING_SIZE;
	struct wire_record *record;
	CUresult r = CUDA_SUCCESS;

	if (whole > left)
		r = pad(l, left);
	if (r == CUDA_SUCCESS)
		r = room_wait(l, whole);
	if (r != CUDA_SUCCESS)
		return r;
	record = (struct wire_record *)(l->ring + l->head % LANE_RING_SIZE);
	record->size = (uint32_t)(sizeof(*record) + size);
	record->call = (uint16_t)call;
	l->writing = whole;
	*ret_body = record + 1;
	return CUDA_SUCCESS;
}

static void send_record(struct guest_lane *l, uint16_t flags, uint64_t ticket)
{
	struct wire_record *record = (struct wire_record *)(l->ring + l->head % LANE_RING_SIZE);

	record->flags = flags;
	record->ticket = ticket;
	record->number = ++l->n_sent;
	publish(l, l->writing);
}

void lane_post(struct guest_lane *l)
{
	send_record(l, 0, atomic_fetch_add(&n_posted, 1));
}

void lane_post_awaited(struct guest_lane *l)
{
	send_record(l, WIRE_F_AWAITED, atomic_load(&n_posted));
}

static CUresult ask(struct guest_lane *l, uint64_t ticket, const uint8_t **ret_data,
		    size_t *ret_size)
{
	CUresult r;

	atomic_fetch_add_explicit(&n_asked, 1, memory_order_relaxed);
	send_record(l, WIRE_F_REPLY, ticket);
	r = wait_for(l, &l->lane->host.replied, l->n_sent);
	if (r != CUDA_SUCCESS)
		return r;
	/* Every record was executed: those of this lane, and those posted before by any other. */
	if (l->reply->number != l->n_sent || l->lane->host.executed != l->n_sent ||
	    l->reply->size > LANE_REPLY_SIZE - sizeof(*l->reply)) {
		guest_log("%llu commands sent, %llu executed", (unsigned long long)l->n_sent,
			  (unsigned long long)l->lane->host.executed);
		return session_lose();
	}
	if (ret_data) {
		*ret_data = (const uint8_t *)(l->reply + 1);
		*ret_size = l->reply->size;
	}
	return l->reply->result;
}

CUresult lane_ask(struct guest_lane *l, const uint8_t **ret_data, size_t *ret_size)
{
	return ask(l, atomic_load(&n_posted), ret_data, ret_size);
}

CUresult lane_ask_at_once(struct guest_lane *l)
{
	return ask(l, /* ticket= */ 0, NULL, NULL);
}

CUresult lane_wait_executed(struct guest_lane *l, uint64_t number)
{
	return wait_for(l, &l->lane->host.executed, number);
}

CUresult lane_error(struct guest_lane *l, CUresult result)
{
	uint64_t n = __atomic_load_n(&l->lane->host.n_errors, __ATOMIC_ACQUIRE);
	CUresult error;

	if (n == l->n_errors)
		return result;
	l->n_errors = n;
	error = l->lane->host.error;
	guest_log("%s failed with %d, told by a later call",
		  wire_call_name(l->lane->host.error_call), error);
	return result != CUDA_SUCCESS ? result : error;
}

__attribute__((destructor)) static void say_stats(void)
{
	if (getenv("COTENANT_STATS") && block)
		guest_log("%llu posted, %llu asked, %llu doorbells, %llu bytes copied on the way",
			  (unsigned long long)atomic_load(&n_posted),
			  (unsigned long long)atomic_load(&n_asked),
			  (unsigned long long)atomic_load(&n_kicks),
			  (unsigned long long)atomic_load(&n_copied));
}
