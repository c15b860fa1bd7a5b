// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue 1: submissions that go through the kernel, each as a record for the host.
 *
 * A process that has the doorbell's page mapped needs none of this. Records are the kernel's, as many as the
 * queue is allowed to hold; who finds none free waits until the host has taken one.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#include "cotenant.h"

int ctn_doorbell_init(struct ctn_device *device)
{
	unsigned int i;

	device->bells = kcalloc(N_BELLS, sizeof(*device->bells), GFP_KERNEL);
	if (!device->bells)
		return -ENOMEM;
	for (i = 0; i < N_BELLS; i++)
		device->free_bells[i] = i;
	device->n_free_bells = N_BELLS;
	return 0;
}

void ctn_doorbell_callback(struct virtqueue *queue)
{
	struct ctn_device *device = queue->vdev->priv;

	wake_up_all(&device->bell_room);
}

static void take_back(struct ctn_device *device, struct virtqueue *queue)
{
	struct cotenant_doorbell *bell;
	unsigned int length;

	while ((bell = virtqueue_get_buf(queue, &length)))
		device->free_bells[device->n_free_bells++] = bell - device->bells;
}

/* Interrupts are asked for only while somebody waits for a record. */
static bool is_one_free(struct ctn_device *device, struct virtqueue *queue)
{
	virtqueue_disable_cb(queue);
	take_back(device, queue);
	if (device->n_free_bells)
		return true;
	if (!virtqueue_enable_cb(queue))
		take_back(device, queue);
	return device->n_free_bells;
}

static int ring_locked(struct ctn_device *device, u32 session, u32 lane)
{
	struct virtqueue *queue = device->queues[COTENANT_QUEUE_DOORBELL];
	struct cotenant_doorbell *bell;
	struct scatterlist sg;
	int r;

	if (!is_one_free(device, queue))
		return -ENOSPC;
	bell = &device->bells[device->free_bells[device->n_free_bells - 1]];
	*bell = (struct cotenant_doorbell){ .session = session,
					    .lane = lane,
					    .number = device->n_rung + 1 };
	sg_init_one(&sg, bell, sizeof(*bell));
	r = virtqueue_add_outbuf(queue, &sg, 1, bell, GFP_ATOMIC);
	if (r < 0)
		return r;
	device->n_free_bells--;
	device->n_rung++;
	virtqueue_kick(queue);
	return 0;
}

static int ring_once(struct ctn_device *device, u32 session, u32 lane)
{
	unsigned long flags;
	int r = -ENODEV;

	spin_lock_irqsave(&device->bell_lock, flags);
	if (ctn_device_ready(device))
		r = ring_locked(device, session, lane);
	spin_unlock_irqrestore(&device->bell_lock, flags);
	return r;
}

int ctn_doorbell_ring(struct ctn_device *device, u32 session, u32 lane)
{
	int r, rung;

	r = wait_event_killable(device->bell_room,
				(rung = ring_once(device, session, lane)) != -ENOSPC);
	if (r < 0)
		return -EINTR;
	if (rung == 0)
		ctn_count(device, COUNTER_DOORBELL_RECORDS);
	return rung;
}
