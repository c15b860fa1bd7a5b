// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/event.h"

#include <errno.h>

void event_list_init(struct event_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

void event_due(struct event_list *list, struct event *event)
{
	if (event->is_due)
		return;
	event->is_due = true;
	event->next = NULL;
	*list->end = event;
	list->end = &event->next;
}

void event_forget(struct event_list *list, struct event *event)
{
	struct event **at = &list->first;

	if (!event->is_due)
		return;
	while (*at != event)
		at = &(*at)->next;
	*at = event->next;
	if (!*at)
		list->end = at;
	event->is_due = false;
}

int events_tell(struct event_list *list, struct vhost_queue *queue)
{
	unsigned n = virtq_available(&queue->ring);
	struct event *event;
	struct chain chain;
	int r = 0;

	for (; n && vhost_queue_is_on(queue) && (event = list->first); n--) {
		r = virtq_pop(&queue->ring, &chain);
		if (r == 0 || r == -EPROTO)
			return r;
		/* A buffer that is none is the guest's own loss; the event waits for a better one. */
		if (r < 0 || chain_write(queue->ring.ram, &chain, &event->what,
					 sizeof(event->what)) != sizeof(event->what)) {
			vhost_push(queue, chain.head, 0);
			continue;
		}
		vhost_push(queue, chain.head, sizeof(event->what));
		event_forget(list, event);
	}
	return 0;
}
