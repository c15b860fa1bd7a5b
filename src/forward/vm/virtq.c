// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/virtq.h"

#include "base/base.h"

#include <errno.h>
#include <string.h>

/**
 * struct table - descriptors: the queue's own, or those that one of them names (indirect)
 */
struct table {
	const struct vring_desc *at;
	unsigned n;
};

/* What we hand back must not be what we are given: a used ring over the available one would make work without end. */
static bool are_apart(const void *a, size_t a_size, const void *b, size_t b_size)
{
	return (const char *)a + a_size <= (const char *)b ||
	       (const char *)b + b_size <= (const char *)a;
}

int virtq_find(struct virtq *ring)
{
	const unsigned n = ring->size;
	const size_t desc_size = n * sizeof(*ring->desc),
		     avail_size = sizeof(*ring->avail) + n * sizeof(__u16),
		     used_size = sizeof(*ring->used) + n * sizeof(*ring->used->ring);

	ring->desc = ram_at_user(ring->ram, ring->user.desc, desc_size);
	ring->avail = ram_at_user(ring->ram, ring->user.avail, avail_size);
	ring->used = ram_at_user(ring->ram, ring->user.used, used_size);
	if (n && ring->desc && ring->avail && ring->used && ring->user.desc % 16 == 0 &&
	    ring->user.avail % 2 == 0 && ring->user.used % 4 == 0 &&
	    are_apart(ring->used, used_size, ring->avail, avail_size) &&
	    are_apart(ring->used, used_size, ring->desc, desc_size))
		return 0;
	ring->avail = NULL;
	return -EINVAL;
}

static int chain_add(struct chain *chain, const struct vring_desc *desc)
{
	if (chain->n == CHAIN_MAX_BUFFERS)
		return -E2BIG;
	if (!(desc->flags & VRING_DESC_F_WRITE)) {
		if (chain->n != chain->n_read)
			return -EINVAL;
		chain->n_read++;
	}
	chain->buffers[chain->n++] = (struct chain_buffer){ desc->addr, desc->len };
	return 0;
}

/* The table that a descriptor names. It cannot name a further one. */
static int enter(const struct ram *ram, const struct vring_desc *desc, struct table *table)
{
	if (desc->len == 0 || desc->len % sizeof(*desc) ||
	    desc->len / sizeof(*desc) > VIRTQ_MAX_SIZE || desc->addr % sizeof(__u64))
		return -EINVAL;
	table->n = desc->len / sizeof(*desc);
	table->at = ram_at(ram, desc->addr, desc->len);
	return table->at ? 0 : -EINVAL;
}

static int collect(struct virtq *ring, struct chain *chain)
{
	struct table table = { ring->desc, ring->size };
	bool indirect = false;
	unsigned next = chain->head, steps;
	struct vring_desc desc;
	int r;

	for (steps = 0; steps <= table.n; steps++) {
		memcpy(&desc, (const void *)&table.at[next], sizeof(desc));
		if (desc.flags & VRING_DESC_F_INDIRECT) {
			r = indirect || desc.flags & VRING_DESC_F_NEXT
				    ? -EINVAL
				    : enter(ring->ram, &desc, &table);
			if (r < 0)
				return r;
			indirect = true;
			next = 0;
			steps = 0;
			continue;
		}
		r = chain_add(chain, &desc);
		if (r < 0)
			return r;
		if (!(desc.flags & VRING_DESC_F_NEXT))
			return 0;
		next = desc.next;
		if (next >= table.n)
			return -EINVAL;
	}
	return -EINVAL;
}

unsigned virtq_available(const struct virtq *ring)
{
	if (!ring->avail)
		return 0;
	return (uint16_t)(__atomic_load_n(&ring->avail->idx, __ATOMIC_ACQUIRE) - ring->next_avail);
}

int virtq_pop(struct virtq *ring, struct chain *ret)
{
	unsigned available = virtq_available(ring);
	int r;

	if (available == 0)
		return 0;
	if (available > ring->size)
		return -EPROTO;
	ret->n = ret->n_read = 0;
	ret->head = __atomic_load_n(&ring->avail->ring[ring->next_avail % ring->size],
				    __ATOMIC_RELAXED);
	if (ret->head >= ring->size)
		return -EPROTO;
	ring->next_avail++;
	r = collect(ring, ret);
	return r < 0 ? r : 1;
}

void virtq_push(struct virtq *ring, uint16_t head, uint32_t written)
{
	if (!ring->avail)
		return;
	ring->used->ring[ring->next_used % ring->size] = (struct vring_used_elem){ head, written };
	__atomic_store_n(&ring->used->idx, ++ring->next_used, __ATOMIC_RELEASE);
}

bool virtq_wants_interrupt(const struct virtq *ring)
{
	/* The guest may have begun to wait after we handed back: its flag is read after our index is written. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ring->avail && !(__atomic_load_n(&ring->avail->flags, __ATOMIC_RELAXED) &
				VRING_AVAIL_F_NO_INTERRUPT);
}

size_t chain_read(const struct ram *ram, const struct chain *chain, size_t skip, void *to,
		  size_t size)
{
	const struct chain_buffer *b = chain->buffers, *end = b + chain->n_read;
	size_t done = 0, n;
	const uint8_t *at;

	for (; b < end && done < size; b++) {
		if (skip >= b->size) {
			skip -= b->size;
			continue;
		}
		at = ram_at(ram, b->guest, b->size);
		if (!at)
			break;
		n = MIN(b->size - skip, size - done);
		memcpy((uint8_t *)to + done, at + skip, n);
		done += n;
		skip = 0;
	}
	return done;
}

size_t chain_write(const struct ram *ram, const struct chain *chain, const void *from, size_t size)
{
	const struct chain_buffer *b = chain->buffers + chain->n_read,
				  *end = chain->buffers + chain->n;
	size_t done = 0, n;
	uint8_t *at;

	for (; b < end && done < size; b++) {
		at = ram_at(ram, b->guest, b->size);
		if (!at)
			break;
		n = MIN(b->size, size - done);
		memcpy(at, (const uint8_t *)from + done, n);
		done += n;
	}
	return done;
}
