/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: QEMU and a guest's kernel in one, without a virtual machine. */
#ifndef FORWARD_VM_FAKE_FRONT_H
#define FORWARD_VM_FAKE_FRONT_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRONT_QUEUES	 3
#define FRONT_QUEUE_SIZE 64

/* Two regions of one file: from 0, and from 4 GiB on. */
#define FRONT_REGION_SIZE (64ULL << 20)
#define FRONT_HIGH	  (4ULL << 30)

/**
 * struct front_queue - the guest's end of a virtqueue
 * @n_sent:	chains made available
 * @n_taken:	used entries that were looked at
 */
struct front_queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	int kick;
	int call;
	uint16_t n_sent;
	uint16_t n_taken;
};

/**
 * struct front - the machine
 * @ram:	its memory: the low region and behind it the high one
 * @next:	guest-physical address of the low region that nothing has yet
 */
struct front {
	int socket;
	int memory;
	uint8_t *ram;
	uint64_t next;
	struct front_queue queues[FRONT_QUEUES];
};

/** front_start() - on a connection to a back-end, up to running queues. Return: did it answer as it should? */
bool front_start(struct front *front, int socket);

/** front_ask() - a request of the protocol that has a number for an answer. Return: the number, UINT64_MAX on failure */
uint64_t front_ask(struct front *front, uint32_t request, const void *payload, size_t size);

/** front_tell() - a request with an acknowledgement. Return: was it obeyed? */
bool front_tell(struct front *front, uint32_t request, const void *payload, size_t size, int fd);

/** front_stop() - stop a queue, as before a reset. Return: how many chains the back-end has taken. */
unsigned front_stop(struct front *front, unsigned queue);

/** front_alloc() - memory of the low region, in pages; guest-physical */
uint64_t front_alloc(struct front *front, uint64_t size);

/** front_at() - where guest-physical memory is here */
void *front_at(const struct front *front, uint64_t guest);

/**
 * front_send() - make a chain available: @n_read bytes for the host at @read, then room for @n_write
 *
 * Return: where the room is, guest-physical.
 */
uint64_t front_send(struct front *front, unsigned queue, const void *read, size_t n_read,
		    size_t n_write);

/** front_kick() - ring a queue's bell */
void front_kick(struct front *front, unsigned queue);

/** front_wait() - until a chain comes back. Return: how many bytes were written, or -1 after a while. */
int front_wait(struct front *front, unsigned queue, int timeout_ms);

#endif
