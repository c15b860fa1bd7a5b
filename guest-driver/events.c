// SPDX-License-Identifier: GPL-2.0-only
/* Queue 2, the host's calls; and its heartbeat, which tells that it is there. */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#include "cotenant.h"

int ctn_events_init(struct ctn_device *device)
{
	device->events = kcalloc(COTENANT_N_EVENTS, sizeof(*device->events), GFP_KERNEL);
	device->beat = (struct cotenant_beat *)get_zeroed_page(GFP_KERNEL);
	return device->events && device->beat ? 0 : -ENOMEM;
}

static int event_give(struct ctn_device *device, struct cotenant_event *event)
{
	struct scatterlist sg;

	sg_init_one(&sg, event, sizeof(*event));
	return virtqueue_add_inbuf(device->queues[COTENANT_QUEUE_EVENTS], &sg, 1, event,
				   GFP_ATOMIC);
}

int ctn_events_start(struct ctn_device *device)
{
	unsigned long flags;
	unsigned int i;
	int r = 0;

	spin_lock_irqsave(&device->events_lock, flags);
	for (i = 0; i < COTENANT_N_EVENTS && r == 0; i++)
		r = event_give(device, &device->events[i]);
	virtqueue_kick(device->queues[COTENANT_QUEUE_EVENTS]);
	spin_unlock_irqrestore(&device->events_lock, flags);
	return r;
}

/* The lock of the table keeps the session until its waiters are woken. */
static void event_tell(struct ctn_device *device, const struct cotenant_event *event)
{
	struct ctn_session *session;
	unsigned long flags;

	xa_lock_irqsave(&device->sessions, flags);
	session = xa_load(&device->sessions, event->session);
	if (session)
		ctn_session_call(session, event->lane);
	xa_unlock_irqrestore(&device->sessions, flags);
	ctn_count(device, COUNTER_CALLS);
}

static bool event_take(struct ctn_device *device, struct virtqueue *queue,
		       struct cotenant_event *ret)
{
	struct cotenant_event *event;
	unsigned int length;
	unsigned long flags;

	spin_lock_irqsave(&device->events_lock, flags);
	event = virtqueue_get_buf(queue, &length);
	if (event) {
		/* No session is 0. */
		*ret = length >= sizeof(*event) ? *event : (struct cotenant_event){ 0 };
		event_give(device, event);
		virtqueue_kick(queue);
	}
	spin_unlock_irqrestore(&device->events_lock, flags);
	return event;
}

void ctn_events_callback(struct virtqueue *queue)
{
	struct ctn_device *device = queue->vdev->priv;
	struct cotenant_event event;

	while (event_take(device, queue, &event))
		event_tell(device, &event);
}

static void beat_queue(struct ctn_device *device)
{
	queue_delayed_work(ctn_workqueue, &device->beat_work, msecs_to_jiffies(COTENANT_BEAT_MS));
}

/* A device that is being removed has its last look behind it. */
void ctn_beat_start(struct ctn_device *device)
{
	down_read(&device->life);
	if (ctn_device_ready(device))
		beat_queue(device);
	up_read(&device->life);
}

/*
 * Looks are counted and not time, because a machine that stood still for a while finds much time gone
 * by, but only one look.
 */
void ctn_beat_work(struct work_struct *work)
{
	struct ctn_device *device =
		container_of(to_delayed_work(work), struct ctn_device, beat_work);
	u64 beat = READ_ONCE(device->beat->beat);

	if (!ctn_device_ready(device))
		return;
	if (beat != device->last_beat) {
		device->last_beat = beat;
		device->n_missed = 0;
	} else if (++device->n_missed >= COTENANT_BEATS_MISSED) {
		dev_err(&device->vdev->dev, "the host is gone: every call fails from now on\n");
		ctn_device_end(device, DEVICE_LOST);
		return;
	}
	if (!xa_empty(&device->sessions))
		beat_queue(device);
	else
		device->n_missed = 0;
}
