// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue 0: requests and their answers.
 *
 * A request has two users, who asked and the queue. Who asked may be killed and go; the queue's part stays
 * until the host has answered or the device was reset, because the host may still write the answer.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/virtio_config.h>

#include "cotenant.h"

static void request_free(struct kref *ref)
{
	struct ctn_request *request = container_of(ref, struct ctn_request, ref);

	kvfree(request->list);
	kfree(request);
}

void ctn_request_put(struct ctn_request *request)
{
	kref_put(&request->ref, request_free);
}

struct ctn_request *ctn_request_new(u32 type, const struct wire_piece *pieces, u32 n_pieces)
{
	struct ctn_request *request = kzalloc(sizeof(*request), GFP_KERNEL);

	if (!request)
		return NULL;
	kref_init(&request->ref);
	INIT_LIST_HEAD(&request->entry);
	init_completion(&request->done);
	request->message.type = type;
	request->message.n_pieces = n_pieces;
	if (n_pieces) {
		request->list = kvmalloc_array(n_pieces, sizeof(*pieces), GFP_KERNEL);
		if (!request->list) {
			ctn_request_put(request);
			return NULL;
		}
		memcpy(request->list, pieces, n_pieces * sizeof(*pieces));
	}
	return request;
}

static struct page *page_of(const void *at)
{
	return is_vmalloc_addr(at) ? vmalloc_to_page(at) : virt_to_page(at);
}

/* Message and list, page by page: a list that is long lies in pages that are nowhere near each other. */
static int request_map(struct ctn_request *request, struct sg_table *ret)
{
	size_t left = request->message.n_pieces * sizeof(*request->list);
	const void *at = request->list;
	struct scatterlist *sg;
	unsigned int n = 1;
	int r;

	if (left)
		n += DIV_ROUND_UP(offset_in_page(at) + left, PAGE_SIZE);
	r = sg_alloc_table(ret, n, GFP_KERNEL);
	if (r < 0)
		return r;
	sg = ret->sgl;
	sg_set_buf(sg, &request->message, sizeof(request->message));
	while (left) {
		size_t size = min_t(size_t, left, PAGE_SIZE - offset_in_page(at));

		sg = sg_next(sg);
		sg_set_page(sg, page_of(at), size, offset_in_page(at));
		at += size;
		left -= size;
	}
	return 0;
}

static int request_enqueue(struct ctn_device *device, struct ctn_request *request,
			   struct scatterlist *out)
{
	struct virtqueue *queue = device->queues[COTENANT_QUEUE_CONTROL];
	struct scatterlist in, *sgs[] = { out, &in };
	bool notify = false;
	unsigned long flags;
	int r = -ENODEV;

	sg_init_one(&in, &request->answer, sizeof(request->answer));
	spin_lock_irqsave(&device->control_lock, flags);
	if (ctn_device_ready(device))
		r = virtqueue_add_sgs(queue, sgs, 1, 1, request, GFP_ATOMIC);
	if (r == 0) {
		request->sent = true;
		kref_get(&request->ref);
		list_add_tail(&request->entry, &device->requests);
		/* Under the lock, as the queue goes when the state has changed. */
		notify = virtqueue_kick_prepare(queue);
		if (notify)
			virtqueue_notify(queue);
	}
	spin_unlock_irqrestore(&device->control_lock, flags);
	return r;
}

int ctn_control_send(struct ctn_device *device, struct ctn_request *request)
{
	struct sg_table table;
	int r, sent;

	r = request_map(request, &table);
	if (r < 0)
		return r;
	ctn_count(device, COUNTER_REQUESTS);
	r = wait_event_killable(device->control_room,
				(sent = request_enqueue(device, request, table.sgl)) != -ENOSPC);
	sg_free_table(&table);
	return r < 0 ? -EINTR : sent;
}

static int request_result(const struct ctn_request *request)
{
	return request->answered ? 0 : -ENODEV;
}

int ctn_control_await(struct ctn_request *request, unsigned long timeout)
{
	if (!wait_for_completion_timeout(&request->done, timeout))
		return -ETIMEDOUT;
	return request_result(request);
}

int ctn_control_ask(struct ctn_device *device, struct ctn_request *request)
{
	int r = ctn_control_send(device, request);

	if (r < 0)
		return r;
	if (wait_for_completion_killable(&request->done) < 0)
		return -EINTR;
	return request_result(request);
}

/* What comes from the host is no error of ours: it has to be one that a system call may answer. */
static void request_answered(struct ctn_request *request, unsigned int length)
{
	if (length < sizeof(request->answer) || request->answer.error > 0 ||
	    request->answer.error < -MAX_ERRNO)
		request->answer.error = -EIO;
	request->answered = true;
	complete(&request->done);
}

void ctn_control_callback(struct virtqueue *queue)
{
	struct ctn_device *device = queue->vdev->priv;
	struct ctn_request *request;
	unsigned int length;
	unsigned long flags;

	spin_lock_irqsave(&device->control_lock, flags);
	while ((request = virtqueue_get_buf(queue, &length))) {
		if (!list_empty(&request->entry)) {
			list_del_init(&request->entry);
			request_answered(request, length);
		}
		ctn_request_put(request);
	}
	spin_unlock_irqrestore(&device->control_lock, flags);
	wake_up_all(&device->control_room);
}

/* The state has changed before: nothing new is sent. */
void ctn_control_end(struct ctn_device *device)
{
	struct ctn_request *request, *next;
	unsigned long flags;

	spin_lock_irqsave(&device->control_lock, flags);
	list_for_each_entry_safe(request, next, &device->requests, entry) {
		list_del_init(&request->entry);
		complete(&request->done);
	}
	spin_unlock_irqrestore(&device->control_lock, flags);
	wake_up_all(&device->control_room);
}

/* After the device's reset: the queue's part of what was never answered. */
void ctn_control_free_unused(struct ctn_device *device)
{
	struct ctn_request *request;

	while ((request = virtqueue_detach_unused_buf(device->queues[COTENANT_QUEUE_CONTROL])))
		ctn_request_put(request);
}
