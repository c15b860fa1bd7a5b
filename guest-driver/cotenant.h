/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's driver of Cotenant's virtio device: a way for processes to share memory with a worker on
 * the host. What they write there is not its affair. It sees to three things: that only memory of the
 * process itself is named, that no page is given back while the host may use it, and that nobody waits for
 * a host that is gone.
 *
 *	device.c	the device's beginning and end
 *	notify.c	where the doorbell's page is
 *	control.c	queue 0: requests and their answers
 *	doorbell.c	queue 1: submissions
 *	events.c	queue 2: calls of the host; its heartbeat
 *	session.c	what a process has shared
 *	memory.c	pinned memory
 *	file.c		/dev/cotenant0
 *	counters.c	/sys/class/misc/cotenant0/counters/
 *
 * Locks, outermost first: session->lock, device->life, device->files_lock, then spinlocks, none inside of
 * another but a wait queue's.
 */
#ifndef GUEST_DRIVER_COTENANT_H
#define GUEST_DRIVER_COTENANT_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "virtio-abi.h"

#define N_BELLS 256
#define N_WAITS 16

/*
 * DEVICE_LOST is for good: the host did not answer any more, and nobody knows what it still does with our
 * pages. DEVICE_REMOVING becomes DEVICE_RESET, after which they are ours.
 */
enum device_state {
	DEVICE_READY,
	DEVICE_LOST,
	DEVICE_REMOVING,
	DEVICE_RESET,
};

enum counter {
	COUNTER_SESSIONS,
	COUNTER_REQUESTS,
	COUNTER_DOORBELL_MAPS,
	COUNTER_DOORBELL_RECORDS,
	COUNTER_WAITS,
	COUNTER_CALLS,
	COUNTER_PINNED_PAGES,
	COUNTER_LEAKED_PAGES,
	N_COUNTERS,
};

/**
 * struct ctn_device - one device
 * @life:	held for reading while something of the device's that goes when it goes is handed out
 * @state:	changes under @state_lock only; read anywhere
 * @requests:	those that are not answered, under @control_lock
 * @bells:	records for the doorbell; those of @free_bells are not in the queue; under @bell_lock
 * @events:	buffers that the host fills, under @events_lock
 * @sessions:	by number; looked up in interrupts
 * @files:	open files, under @files_lock
 */
struct ctn_device {
	struct kref ref;
	struct virtio_device *vdev;
	struct miscdevice misc;
	char name[20];
	int index;
	struct virtqueue *queues[COTENANT_N_QUEUES];
	struct cotenant_hello hello;

	struct rw_semaphore life;
	spinlock_t state_lock;
	enum device_state state;
	wait_queue_head_t state_wait;

	spinlock_t control_lock;
	struct list_head requests;
	wait_queue_head_t control_room;

	phys_addr_t doorbell;
	struct page *no_doorbell;
	spinlock_t bell_lock;
	wait_queue_head_t bell_room;
	struct cotenant_doorbell *bells;
	u16 free_bells[N_BELLS];
	unsigned int n_free_bells;
	u64 n_rung;

	spinlock_t events_lock;
	struct cotenant_event *events;
	struct cotenant_beat *beat;
	u64 last_beat;
	unsigned int n_missed;
	struct delayed_work beat_work;

	struct xarray sessions;
	struct mutex files_lock;
	struct list_head files;

	atomic64_t counters[N_COUNTERS];
};

/* Module parameters. */
extern bool ctn_user_doorbell;
extern unsigned long ctn_max_pinned_mb;
extern struct workqueue_struct *ctn_workqueue;

static inline bool ctn_device_ready(const struct ctn_device *device)
{
	return READ_ONCE(device->state) == DEVICE_READY;
}

static inline void ctn_count(struct ctn_device *device, enum counter counter)
{
	atomic64_inc(&device->counters[counter]);
}

void ctn_device_put(struct ctn_device *device);
/* Nobody gets an answer any more; everybody who waits is woken. */
void ctn_device_end(struct ctn_device *device, enum device_state state);

/* notify.c */
int ctn_notify_find(struct ctn_device *device, unsigned int queue, phys_addr_t *ret);

/**
 * struct ctn_request - a message to the host and its answer
 * @list:	a copy of its pieces, which the host reads; NULL where message.n_pieces is 0
 * @sent:	the host knows of it
 * @answered:	@answer is the host's, not that the device was lost
 */
struct ctn_request {
	struct kref ref;
	struct list_head entry;
	struct completion done;
	struct wire_message message;
	struct wire_message answer;
	struct wire_piece *list;
	bool sent;
	bool answered;
};

struct ctn_request *ctn_request_new(u32 type, const struct wire_piece *pieces, u32 n_pieces);
void ctn_request_put(struct ctn_request *request);
/*
 * Sends it and waits. Return: 0 where request->answer is the host's, -EINTR where the caller is being
 * killed (the request goes on), -ENODEV, or why it could not be sent.
 */
int ctn_control_ask(struct ctn_device *device, struct ctn_request *request);
/* The same, whatever happens to the caller, for at most that time: -ETIMEDOUT after it. */
int ctn_control_send(struct ctn_device *device, struct ctn_request *request);
int ctn_control_await(struct ctn_request *request, unsigned long timeout);
void ctn_control_callback(struct virtqueue *queue);
void ctn_control_end(struct ctn_device *device);
void ctn_control_free_unused(struct ctn_device *device);

/* doorbell.c */
int ctn_doorbell_init(struct ctn_device *device);
void ctn_doorbell_callback(struct virtqueue *queue);
/* Return: 0, -EINTR, -ENODEV. */
int ctn_doorbell_ring(struct ctn_device *device, u32 session, u32 lane);

/* events.c */
int ctn_events_init(struct ctn_device *device);
int ctn_events_start(struct ctn_device *device);
void ctn_events_callback(struct virtqueue *queue);
void ctn_beat_start(struct ctn_device *device);
void ctn_beat_work(struct work_struct *work);

/**
 * struct ctn_memory - pinned memory of a process
 */
struct ctn_memory {
	u64 address;
	u64 n_pages;
	struct wire_piece *pieces;
	u32 n_pieces;
	u32 room;
};

/* Pins what is there in addition to what it has. The caller's process is the owner. */
int ctn_memory_pin(struct ctn_device *device, struct ctn_memory *memory, u64 address, u64 size);
/* Where @unpin is not set the pages stay as they are, for ever. */
void ctn_memory_release(struct ctn_device *device, struct ctn_memory *memory, struct mm_struct *mm,
			bool unpin);

/* What a session's process may not do any more, and what it has not done yet. */
enum session_state {
	SESSION_NEW,
	SESSION_OPEN,
	/* Somebody was killed while it waited for an answer: what the host has is not known. */
	SESSION_BROKEN,
	SESSION_CLOSED,
};

#define SESSION_ENDED 0
#define SESSION_LOST  1

/**
 * struct ctn_session - an open file
 * @owner:	the process that it belongs to
 * @mapping:	of the file, to take the doorbell away
 * @lock:	guards @state, @base, @lanes and @grants, and is held while the host is asked
 * @flags:	SESSION_ENDED, SESSION_LOST
 * @called:	lanes that the host has called; the last is the service thread
 */
struct ctn_session {
	struct kref ref;
	struct ctn_device *device;
	struct list_head entry;
	struct pid *owner;
	struct mm_struct *mm;
	struct address_space *mapping;
	u32 id;
	unsigned long flags;

	struct mutex lock;
	enum session_state state;
	struct ctn_memory base;
	struct xarray lanes;
	struct xarray grants;

	DECLARE_BITMAP(called, WIRE_MAX_LANES + 1);
	wait_queue_head_t waits[N_WAITS];
	struct work_struct close_work;
};

struct ctn_session *ctn_session_new(struct ctn_device *device);
void ctn_session_put(struct ctn_session *session);
int ctn_session_open(struct ctn_session *session, struct cotenant_ioc_open *args);
int ctn_session_lane_add(struct ctn_session *session, struct cotenant_ioc_lane *args);
int ctn_session_lane_remove(struct ctn_session *session, u32 id);
int ctn_session_grant(struct ctn_session *session, struct cotenant_ioc_grant *args);
int ctn_session_revoke(struct ctn_session *session, u32 id);
int ctn_session_ring(struct ctn_session *session, u32 lane);
int ctn_session_wait(struct ctn_session *session, const struct cotenant_ioc_wait *args);
/* From an interrupt: the host calls. */
void ctn_session_call(struct ctn_session *session, u32 lane);
void ctn_session_wake(struct ctn_session *session);
/* The owner has closed it, or has ended. What it has shared goes when the host has let go of it. */
void ctn_session_end(struct ctn_session *session);
bool ctn_session_is_mine(const struct ctn_session *session);

extern const struct file_operations ctn_file_operations;
extern const struct attribute_group *ctn_counter_groups[];

#endif
