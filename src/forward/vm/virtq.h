/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's end of a virtqueue (split, little-endian, without event indices).
 *
 * Everything in it is the guest's to write at any moment: indices are compared with our own, each descriptor
 * is copied out before it is looked at, chains are followed for as many steps as the queue is long, and buffers
 * are found in the guest's memory whenever they are used.
 */
#ifndef FORWARD_VM_VIRTQ_H
#define FORWARD_VM_VIRTQ_H

#include "forward/vm/ram.h"

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIRTQ_MAX_SIZE 1024
/* Buffers of one chain: a message of 128 KiB in pages, and what it is answered into. */
#define CHAIN_MAX_BUFFERS 64

/**
 * struct virtq - a queue
 * @user:	addresses in QEMU's space, which outlive a change of the memory's regions
 * @next_avail:	which entry of the available ring we take next
 */
struct virtq {
	const struct ram *ram;
	unsigned size;
	struct {
		uint64_t desc;
		uint64_t avail;
		uint64_t used;
	} user;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t next_avail;
	uint16_t next_used;
};

struct chain_buffer {
	uint64_t guest;
	uint32_t size;
};

/**
 * struct chain - what the guest made available at once
 * @head:	by which it is handed back
 * @n_read:	buffers that we read; those that we write come after them
 */
struct chain {
	uint16_t head;
	uint16_t n_read;
	uint16_t n;
	struct chain_buffer buffers[CHAIN_MAX_BUFFERS];
};

/**
 * virtq_find() - find the rings in our memory, after their addresses, their size or the memory changed
 *
 * Return: 0, -EINVAL where they are not in the guest's memory, or one lies over what we write; then the queue has
 * nothing.
 */
int virtq_find(struct virtq *ring);

/**
 * virtq_available() - how many chains the guest has made available by now
 *
 * The guest rings after it has made more available. So whoever takes as many as there were when it rang misses none,
 * and comes to an end however many a hostile guest adds meanwhile.
 *
 * Return: 65535 at most; more than the ring has places where it is broken, which virtq_pop() says.
 */
unsigned virtq_available(const struct virtq *ring);

/**
 * virtq_pop() - take the next chain
 *
 * Return: 1; 0 where there is none; -EPROTO where the queue is broken; -E2BIG or -EINVAL where that chain
 * is no good: ret->head can be handed back.
 */
int virtq_pop(struct virtq *ring, struct chain *ret);

/** virtq_push() - hand a chain back, of whose buffers @written bytes were written */
void virtq_push(struct virtq *ring, uint16_t head, uint32_t written);

/** virtq_wants_interrupt() - is the guest to be told of what was handed back? */
bool virtq_wants_interrupt(const struct virtq *ring);

/**
 * chain_read() - copy what the guest sends
 * @skip:	bytes at its beginning that are not wanted
 *
 * Return: how many bytes there were, @size at most.
 */
size_t chain_read(const struct ram *ram, const struct chain *chain, size_t skip, void *to,
		  size_t size);

/** chain_write() - fill what the guest waits for. Return: how many bytes found room. */
size_t chain_write(const struct ram *ram, const struct chain *chain, const void *from, size_t size);

#endif
