/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's kernel is to be told, until it has a buffer for it. Each is told once, however often it came. */
#ifndef FORWARD_VM_EVENT_H
#define FORWARD_VM_EVENT_H

#include "forward/vm/vhost.h"

#include "forward/virtio-abi.h"

/**
 * struct event - something that may be due again and again
 * @what:	how the guest is told
 */
struct event {
	struct event *next;
	bool is_due;
	struct cotenant_event what;
};

/** struct event_list - those that are due, the oldest first */
struct event_list {
	struct event *first;
	struct event **end;
};

void event_list_init(struct event_list *list);

/** event_due() - it is to be told */
void event_due(struct event_list *list, struct event *event);

/** event_forget() - it is not, before its memory goes */
void event_forget(struct event_list *list, struct event *event);

/** events_tell() - as many as the guest has buffers for. Return: 0, or -EPROTO where the queue is broken. */
int events_tell(struct event_list *list, struct vhost_queue *queue);

#endif
