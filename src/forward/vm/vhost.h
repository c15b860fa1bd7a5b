/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vhost-user protocol, as a back-end: QEMU connects, tells where the guest's memory and the virtqueues are,
 * and starts and stops the queues. What travels in them is not known here.
 *
 *	QEMU -- SET_MEM_TABLE (memory's descriptors), SET_VRING_* (rings, kick, call) --> vhost --> vhost_ops
 *
 * Only what a vhost-user-fs device of QEMU 7.2 and newer asks for is there; anything else ends the connection
 * or, where QEMU waits for an acknowledgement, is refused. Neither logging of dirty pages nor the transfer of a
 * device's state is offered, so QEMU refuses to save such a machine and lets it go on.
 */
#ifndef FORWARD_VM_VHOST_H
#define FORWARD_VM_VHOST_H

#include "forward/host/loop.h"
#include "forward/vm/virtq.h"

/* Control, doorbell, events: the fs device has one more queue than it is told. */
#define VHOST_MAX_QUEUES 4

struct vhost;

/**
 * struct vhost_ops - what is above it
 * @kicked:	the guest has rung a queue's bell
 * @stop:	a queue stops, or the memory goes away: when this returns nobody else reaches the guest's memory
 * @over:	the connection ended; vhost_done() is up to whom is told
 */
struct vhost_ops {
	void (*kicked)(struct vhost *vhost, unsigned queue);
	void (*stop)(struct vhost *vhost);
	void (*over)(struct vhost *vhost, int error);
};

/**
 * struct vhost_queue - a queue and its two events
 * @call:	interrupts the guest; -1: there is none
 */
struct vhost_queue {
	struct vhost *vhost;
	struct source kick;
	int call;
	bool enabled;
	struct virtq ring;
};

/**
 * struct vhost - a connection of QEMU's
 */
struct vhost {
	const struct vhost_ops *ops;
	struct source socket;
	uint64_t features;
	struct ram ram;
	struct vhost_queue queues[VHOST_MAX_QUEUES];
};

/** vhost_init() - take over a connection. Return: 0, or what the kernel said. */
int vhost_init(struct vhost *vhost, int socket, const struct vhost_ops *ops);

/** vhost_done() - end it */
void vhost_done(struct vhost *vhost);

/** vhost_queue_is_on() - has QEMU started it? */
bool vhost_queue_is_on(const struct vhost_queue *queue);

/** vhost_push() - hand a chain of a queue back, and interrupt the guest where it wants that */
void vhost_push(struct vhost_queue *queue, uint16_t head, uint32_t written);

#endif
