// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process has shared with the host, and when it is its own again.
 *
 * The rule is one: pages that the host was told of are unpinned when it has answered that nobody there
 * reaches them, or after the device's reset, and else never. So what is to be shared is entered first, the
 * host is told then, and an entry goes only with an answer. Whoever is killed while it waits leaves its
 * entry, and a session that can only be closed.
 */
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cotenant.h"

#define SLOW_CLOSE (10 * HZ)

static void session_close_work(struct work_struct *work);

struct ctn_session *ctn_session_new(struct ctn_device *device)
{
	struct ctn_session *session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	unsigned int i;

	if (!session)
		return NULL;
	kref_init(&session->ref);
	INIT_LIST_HEAD(&session->entry);
	mutex_init(&session->lock);
	xa_init_flags(&session->lanes, XA_FLAGS_ALLOC);
	xa_init_flags(&session->grants, XA_FLAGS_ALLOC1);
	for (i = 0; i < N_WAITS; i++)
		init_waitqueue_head(&session->waits[i]);
	INIT_WORK(&session->close_work, session_close_work);
	session->owner = get_pid(task_tgid(current));
	session->mm = current->mm;
	mmgrab(session->mm);
	kref_get(&device->ref);
	session->device = device;
	return session;
}

static void session_free(struct kref *ref)
{
	struct ctn_session *session = container_of(ref, struct ctn_session, ref);

	xa_destroy(&session->lanes);
	xa_destroy(&session->grants);
	put_pid(session->owner);
	mmdrop(session->mm);
	ctn_device_put(session->device);
	kfree(session);
}

void ctn_session_put(struct ctn_session *session)
{
	kref_put(&session->ref, session_free);
}

bool ctn_session_is_mine(const struct ctn_session *session)
{
	return session->mm == current->mm;
}

static bool session_is_gone(const struct ctn_session *session)
{
	return READ_ONCE(session->flags) || !ctn_device_ready(session->device);
}

/* The caller has the lock. What may be asked for now? */
static int session_check(const struct ctn_session *session)
{
	if (session_is_gone(session))
		return -ENODEV;
	switch (session->state) {
	case SESSION_OPEN:
		return 0;
	case SESSION_NEW:
		return -ENOTCONN;
	default:
		return -ENODEV;
	}
}

static int session_lock(struct ctn_session *session)
{
	int r;

	if (mutex_lock_killable(&session->lock) < 0)
		return -EINTR;
	r = session_check(session);
	if (r < 0)
		mutex_unlock(&session->lock);
	return r;
}

/*
 * The caller has the lock. Return: 0 where the host has said yes, what it said else; *ret_known is whether
 * that is known at all.
 */
static int session_ask(struct ctn_session *session, struct ctn_request *request, bool *ret_known)
{
	int r;

	request->message.session = session->id;
	r = ctn_control_ask(session->device, request);
	*ret_known = r == 0 || !request->sent;
	if (!*ret_known)
		session->state = SESSION_BROKEN;
	return r < 0 ? r : request->answer.error;
}

static void memory_drop(struct ctn_session *session, struct ctn_memory *memory, bool unpin)
{
	ctn_memory_release(session->device, memory, session->mm, unpin);
	kfree(memory);
}

static struct ctn_memory *memory_take(struct ctn_session *session, u64 address, u64 size,
				      int *ret_error)
{
	struct ctn_memory *memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);

	*ret_error = memory ? ctn_memory_pin(session->device, memory, address, size) : -ENOMEM;
	if (*ret_error == 0 || !memory)
		return memory;
	/* Nothing is pinned, but there may be a list that was to name it. */
	memory_drop(session, memory, /* unpin= */ true);
	return NULL;
}

/* The caller has the lock. @entries: where it is entered, under a number of @limit. */
static int session_share(struct ctn_session *session, u32 type, u64 address, u64 size,
			 struct xarray *entries, struct xa_limit limit, u32 *ret_id)
{
	struct ctn_request *request;
	struct ctn_memory *memory;
	bool known;
	int r;

	memory = memory_take(session, address, size, &r);
	if (!memory)
		return r;
	r = xa_alloc(entries, ret_id, memory, limit, GFP_KERNEL_ACCOUNT);
	if (r < 0) {
		memory_drop(session, memory, /* unpin= */ true);
		return r == -EBUSY ? -EDQUOT : r;
	}
	r = -ENOMEM;
	request = ctn_request_new(type, memory->pieces, memory->n_pieces);
	known = !request;
	if (request) {
		request->message.id = *ret_id;
		request->message.address = address;
		request->message.size = size;
		r = session_ask(session, request, &known);
		ctn_request_put(request);
	}
	if (r < 0 && known) {
		xa_erase(entries, *ret_id);
		memory_drop(session, memory, /* unpin= */ true);
	}
	return r;
}

/* The caller has the lock. */
static int session_unshare(struct ctn_session *session, u32 type, struct xarray *entries, u32 id)
{
	struct ctn_memory *memory = xa_load(entries, id);
	struct ctn_request *request;
	bool known;
	int r;

	if (!memory)
		return -ENOENT;
	request = ctn_request_new(type, NULL, 0);
	if (!request)
		return -ENOMEM;
	request->message.id = id;
	r = session_ask(session, request, &known);
	ctn_request_put(request);
	if (r < 0)
		return r;
	xa_erase(entries, id);
	memory_drop(session, memory, /* unpin= */ true);
	return 0;
}

/* The caller has the lock. */
static int open_ask(struct ctn_session *session, struct cotenant_ioc_open *args, bool *ret_known)
{
	struct ctn_request *request;
	int r;

	request = ctn_request_new(WIRE_SESSION_OPEN, session->base.pieces, session->base.n_pieces);
	*ret_known = true;
	if (!request)
		return -ENOMEM;
	request->message.size = WIRE_HEAP_SIZE;
	request->message.id = pid_nr(session->owner);
	request->message.magic = WIRE_MAGIC;
	memcpy(request->message.hash, args->hash, sizeof(args->hash));
	r = session_ask(session, request, ret_known);
	if (*ret_known)
		memcpy(args->hash, request->answer.hash, sizeof(args->hash));
	ctn_request_put(request);
	return r;
}

static void session_forget(struct ctn_session *session)
{
	if (session->id)
		xa_erase_irq(&session->device->sessions, session->id);
	session->id = 0;
}

static int session_enter(struct ctn_session *session)
{
	struct xa_limit limit = XA_LIMIT(1, session->device->hello.max_sessions - 1);
	int r;

	r = xa_alloc_irq(&session->device->sessions, &session->id, session, limit, GFP_KERNEL);
	return r == -EBUSY ? -EDQUOT : r;
}

/* The caller has the lock. */
static int open_locked(struct ctn_session *session, struct cotenant_ioc_open *args)
{
	struct ctn_device *device = session->device;
	bool known = true;
	int r;

	if (session_is_gone(session))
		return -ENODEV;
	if (session->state != SESSION_NEW)
		return -EALREADY;
	r = ctn_memory_pin(device, &session->base, args->block, SESSION_SIZE);
	if (r == 0)
		r = ctn_memory_pin(device, &session->base, args->heap, WIRE_HEAP_SIZE);
	if (r == 0)
		r = session_enter(session);
	if (r == 0) {
		/* A host that is gone is noticed from here on. */
		ctn_beat_start(device);
		r = open_ask(session, args, &known);
	}
	if (r == 0) {
		session->state = SESSION_OPEN;
		ctn_count(device, COUNTER_SESSIONS);
	} else if (known) {
		session_forget(session);
		ctn_memory_release(device, &session->base, session->mm, /* unpin= */ true);
	}
	return r;
}

int ctn_session_open(struct ctn_session *session, struct cotenant_ioc_open *args)
{
	u32 version = args->version;
	int r;

	args->version = COTENANT_ABI_VERSION;
	args->flags = 0;
	if (version != COTENANT_ABI_VERSION)
		return -EPROTO;
	if (mutex_lock_killable(&session->lock) < 0)
		return -EINTR;
	r = open_locked(session, args);
	mutex_unlock(&session->lock);
	if (r == 0 && session->device->doorbell)
		args->flags = COTENANT_OPEN_DOORBELL;
	return r;
}

int ctn_session_lane_add(struct ctn_session *session, struct cotenant_ioc_lane *args)
{
	struct xa_limit limit = XA_LIMIT(0, session->device->hello.max_lanes - 1);
	int r;

	r = session_lock(session);
	if (r < 0)
		return r;
	r = session_share(session, WIRE_LANE_ADD, args->address, LANE_SIZE, &session->lanes, limit,
			  &args->id);
	mutex_unlock(&session->lock);
	return r;
}

int ctn_session_lane_remove(struct ctn_session *session, u32 id)
{
	int r;

	r = session_lock(session);
	if (r < 0)
		return r;
	r = session_unshare(session, WIRE_LANE_REMOVE, &session->lanes, id);
	/* Whoever has the number next was not called. */
	if (r == 0)
		clear_bit(id, session->called);
	mutex_unlock(&session->lock);
	return r;
}

int ctn_session_grant(struct ctn_session *session, struct cotenant_ioc_grant *args)
{
	struct xa_limit limit = XA_LIMIT(1, session->device->hello.max_grants - 1);
	int r;

	r = session_lock(session);
	if (r < 0)
		return r;
	r = session_share(session, WIRE_GRANT, args->address, args->size, &session->grants, limit,
			  &args->id);
	mutex_unlock(&session->lock);
	return r;
}

int ctn_session_revoke(struct ctn_session *session, u32 id)
{
	int r;

	r = session_lock(session);
	if (r < 0)
		return r;
	r = session_unshare(session, WIRE_REVOKE, &session->grants, id);
	mutex_unlock(&session->lock);
	return r;
}

/* Without the lock, as it is the way of every submission: the host knows which lanes there are. */
int ctn_session_ring(struct ctn_session *session, u32 lane)
{
	int r;

	r = session_check(session);
	if (r < 0)
		return r;
	if (lane >= WIRE_MAX_LANES)
		return -EINVAL;
	return ctn_doorbell_ring(session->device, session->id, lane);
}

static unsigned int call_number(u32 lane)
{
	return lane == COTENANT_EVENT_SERVICE ? WIRE_MAX_LANES : lane;
}

static bool is_called(struct ctn_session *session, unsigned int number)
{
	return test_and_clear_bit(number, session->called) || session_is_gone(session);
}

int ctn_session_wait(struct ctn_session *session, const struct cotenant_ioc_wait *args)
{
	unsigned int number = call_number(args->lane);
	long left =
		args->timeout_ms < 0 ? MAX_SCHEDULE_TIMEOUT : msecs_to_jiffies(args->timeout_ms);
	int r;

	if (number > WIRE_MAX_LANES || args->timeout_ms < -1)
		return -EINVAL;
	r = session_check(session);
	if (r < 0)
		return r;
	ctn_count(session->device, COUNTER_WAITS);
	left = wait_event_interruptible_timeout(session->waits[number % N_WAITS],
						is_called(session, number), left);
	if (left < 0)
		return -EINTR;
	if (session_is_gone(session))
		return -ENODEV;
	return left ? 0 : -ETIMEDOUT;
}

void ctn_session_wake(struct ctn_session *session)
{
	unsigned int i;

	for (i = 0; i < N_WAITS; i++)
		wake_up_all(&session->waits[i]);
}

void ctn_session_call(struct ctn_session *session, u32 lane)
{
	unsigned int number = call_number(lane);

	if (lane == COTENANT_EVENT_LOST) {
		set_bit(SESSION_LOST, &session->flags);
		ctn_session_wake(session);
	} else if (number <= WIRE_MAX_LANES) {
		set_bit(number, session->called);
		wake_up_all(&session->waits[number % N_WAITS]);
	}
}

/* Return: may the pages be used for something else? */
static bool close_ask(struct ctn_session *session)
{
	struct ctn_device *device = session->device;
	struct ctn_request *request;
	int r;

	request = ctn_request_new(WIRE_SESSION_CLOSE, NULL, 0);
	if (!request)
		return false;
	request->message.session = session->id;
	r = ctn_control_send(device, request);
	if (r == 0)
		r = ctn_control_await(request, SLOW_CLOSE);
	if (r == -ETIMEDOUT) {
		dev_warn(&device->vdev->dev,
			 "session %u: the host does not let go of %llu pages yet\n", session->id,
			 session->base.n_pages);
		r = ctn_control_await(request, MAX_SCHEDULE_TIMEOUT);
	}
	ctn_request_put(request);
	return r == 0;
}

/* Return: may the pages be used for something else? Waits until that is known. */
static bool session_close(struct ctn_session *session)
{
	struct ctn_device *device = session->device;

	if (session->state == SESSION_NEW || session->state == SESSION_CLOSED)
		return true;
	if (close_ask(session))
		return true;
	wait_event(device->state_wait, READ_ONCE(device->state) != DEVICE_REMOVING);
	return READ_ONCE(device->state) == DEVICE_RESET;
}

static void entries_drop(struct ctn_session *session, struct xarray *entries, bool unpin)
{
	struct ctn_memory *memory;
	unsigned long i;

	xa_for_each(entries, i, memory) {
		xa_erase(entries, i);
		memory_drop(session, memory, unpin);
	}
}

static void session_close_work(struct work_struct *work)
{
	struct ctn_session *session = container_of(work, struct ctn_session, close_work);
	bool unpin;

	/* Whoever has the lock waits for the host, or is about to see that the session has ended. */
	mutex_lock(&session->lock);
	unpin = session_close(session);
	session->state = SESSION_CLOSED;
	entries_drop(session, &session->lanes, unpin);
	entries_drop(session, &session->grants, unpin);
	ctn_memory_release(session->device, &session->base, session->mm, unpin);
	session_forget(session);
	mutex_unlock(&session->lock);
	ctn_session_put(session);
}

void ctn_session_end(struct ctn_session *session)
{
	if (test_and_set_bit(SESSION_ENDED, &session->flags))
		return;
	ctn_session_wake(session);
	kref_get(&session->ref);
	queue_work(ctn_workqueue, &session->close_work);
}
