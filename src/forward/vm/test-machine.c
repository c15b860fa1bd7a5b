// SPDX-License-Identifier: Apache-2.0
/* A guest that makes more available as fast as the broker takes it: each of its queues is left at an end. */
#include "forward/vm/machine.c"

#include "base/check.h"

#include <sys/mman.h>

#define PAGE	  4096ULL
#define USER	  0x10000000ULL
#define N_PAGES	  (3 * COTENANT_N_QUEUES + 1)
#define RING_SIZE 64
#define N_GIVEN	  3

/* The pages of a queue's table and rings; behind those of all of them is what its chains name. */
static uint64_t page_of(unsigned queue, unsigned part)
{
	return (3 * queue + part) * PAGE;
}

static void queue_begin(unsigned number)
{
	struct vhost_queue *queue = &machine.vhost.queues[number];

	*queue = (struct vhost_queue){ .vhost = &machine.vhost,
				       .kick.fd = STDIN_FILENO,
				       .call = -1,
				       .enabled = true,
				       .ring = { .ram = &machine.vhost.ram,
						 .size = RING_SIZE,
						 .user = { USER + page_of(number, 0),
							   USER + page_of(number, 1),
							   USER + page_of(number, 2) } } };
	check(virtq_find(&queue->ring) == 0, "queue %u: is found", number);
}

/*
 * A used ring over the available one, which virtq_find() refuses, stands for a guest's processor: each chain that is
 * handed back is a further one that is there.
 */
static void test_end(unsigned number)
{
	struct virtq *ring = &machine.vhost.queues[number].ring;

	ring->desc[0] = (struct vring_desc){ .addr = page_of(COTENANT_N_QUEUES, 0) };
	ring->used = (struct vring_used *)ring->avail;
	ring->avail->idx = ring->next_used = N_GIVEN;
	kicked(&machine.vhost, number);
	check(ring->next_avail == N_GIVEN && virtq_available(ring) == N_GIVEN,
	      "queue %u: as many are taken as there were when it rang", number);
}

int main(void)
{
	struct ram_region region = { .user = USER,
				     .size = N_PAGES * PAGE,
				     .fd = memfd_create("ram", 0) };
	struct event event = { .what = { 1, 1 } };
	unsigned i;

	if (region.fd < 0 || ftruncate(region.fd, (off_t)region.size) < 0 ||
	    !check(ram_set(&machine.vhost.ram, &region, 1) == 0, "ram"))
		return check_result();
	event_list_init(&machine.events);
	/* The guest's buffers have no room for it, so it stays due. */
	event_due(&machine.events, &event);
	for (i = 0; i < COTENANT_N_QUEUES; i++) {
		queue_begin(i);
		test_end(i);
	}
	check(event.is_due, "an event that found no room waits");
	return check_result();
}
