// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/vhost.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/socket.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	GET_QUEUE_NUM = 17,
	SET_VRING_ENABLE = 18,
};

/* Of the header's flags. */
#define VERSION	     1U
#define VERSION_MASK 3U
#define IS_REPLY     4U
#define WANTS_REPLY  8U

#define F_PROTOCOL_FEATURES (1ULL << 30)
#define P_MQ		    (1ULL << 0)
#define P_REPLY_ACK	    (1ULL << 3)

#define FEATURES                                                                                   \
	(1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC | F_PROTOCOL_FEATURES)
#define PROTOCOL_FEATURES (P_MQ | P_REPLY_ACK)

/* In a queue's number that comes with a descriptor: there is none. */
#define QUEUE_MASK 0xffU
#define NO_FD	   0x100U

struct header {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
};

struct memory_region {
	uint64_t guest;
	uint64_t size;
	uint64_t user;
	uint64_t offset;
};

struct memory_table {
	uint32_t n;
	uint32_t padding;
	struct memory_region regions[RAM_MAX_REGIONS];
};

struct ring_state {
	uint32_t queue;
	uint32_t number;
};

struct ring_address {
	uint32_t queue;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};

/**
 * struct message - a request as it came
 * @n_fds:	descriptors that nobody has taken over yet, the last ones of @fds
 */
struct message {
	struct header header;
	union {
		uint64_t number;
		struct memory_table memory;
		struct ring_state state;
		struct ring_address address;
	};
	size_t n_fds;
	int fds[RAM_MAX_REGIONS];
};

#define PAYLOAD_MAX sizeof(((struct message *)NULL)->memory)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(TAKE_FD(*fd));
}

static void message_done(struct message *m)
{
	while (m->n_fds)
		close(m->fds[--m->n_fds]);
}

/* The rest of a message comes behind what was read: QEMU sends each at once. */
static int read_rest(int fd, void *to, size_t size)
{
	ssize_t n = size ? recv(fd, to, size, MSG_WAITALL) : 0;

	return n == (ssize_t)size ? 0 : -EPIPE;
}

static int receive(int fd, struct message *m)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(RAM_MAX_REGIONS * sizeof(int))];
	} control;
	struct iovec part = { &m->header, sizeof(m->header) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t n;

	memset(m, 0, sizeof(*m));
	n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	if (n < 0)
		return -errno;
	m->n_fds = socket_take_fds(&header, m->fds, RAM_MAX_REGIONS);
	if (n != sizeof(m->header))
		return n == 0 ? -EPIPE : -EPROTO;
	if ((m->header.flags & VERSION_MASK) != VERSION || m->header.flags & IS_REPLY ||
	    header.msg_flags & MSG_CTRUNC || m->header.size > PAYLOAD_MAX)
		return -EPROTO;
	return read_rest(fd, &m->number, m->header.size);
}

static int reply(struct vhost *v, struct message *m, size_t size)
{
	struct iovec parts[] = { { &m->header, sizeof(m->header) }, { &m->number, size } };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };

	m->header.flags = VERSION | IS_REPLY;
	m->header.size = (uint32_t)size;
	return sendmsg(v->socket.fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int reply_number(struct vhost *v, struct message *m, uint64_t number)
{
	m->number = number;
	return reply(v, m, sizeof(number));
}

static struct vhost_queue *queue_of(struct vhost *v, uint64_t number)
{
	return number < VHOST_MAX_QUEUES ? &v->queues[number] : NULL;
}

bool vhost_queue_is_on(const struct vhost_queue *queue)
{
	return queue->enabled && queue->kick.fd >= 0 && queue->ring.avail;
}

static void kick_ready(struct source *source)
{
	struct vhost_queue *queue = container_of(source, struct vhost_queue, kick);
	uint64_t n;

	if (read(source->fd, &n, sizeof(n)) < 0)
		return;
	if (vhost_queue_is_on(queue))
		queue->vhost->ops->kicked(queue->vhost, (unsigned)(queue - queue->vhost->queues));
}

/* The rings may have been filled before the bell was there. */
static void begin(struct vhost_queue *queue)
{
	if (vhost_queue_is_on(queue))
		queue->vhost->ops->kicked(queue->vhost, (unsigned)(queue - queue->vhost->queues));
}

static int set_memory(struct vhost *v, struct message *m)
{
	struct ram_region regions[RAM_MAX_REGIONS];
	size_t i, n = m->memory.n;
	int r;

	if (n > RAM_MAX_REGIONS || n != m->n_fds ||
	    m->header.size < offsetof(struct memory_table, regions[n]))
		return -EPROTO;
	for (i = 0; i < n; i++) {
		const struct memory_region *from = &m->memory.regions[i];

		regions[i] = (struct ram_region){ .guest = from->guest,
						  .user = from->user,
						  .size = from->size,
						  .offset = from->offset,
						  .fd = m->fds[i] };
	}
	m->n_fds = 0;
	r = ram_set(&v->ram, regions, n);
	for (i = 0; i < VHOST_MAX_QUEUES; i++)
		if (v->queues[i].ring.user.desc)
			virtq_find(&v->queues[i].ring);
	return r;
}

static int set_ring_number(struct vhost *v, const struct message *m)
{
	struct vhost_queue *queue = queue_of(v, m->state.queue);
	uint32_t n = m->state.number;

	if (!queue || n == 0 || n > VIRTQ_MAX_SIZE || (n & (n - 1)))
		return -EINVAL;
	queue->ring.size = n;
	queue->ring.avail = NULL;
	return 0;
}

static int set_ring_address(struct vhost *v, const struct message *m)
{
	struct vhost_queue *queue = queue_of(v, m->address.queue);
	int r;

	if (!queue)
		return -EINVAL;
	queue->ring.user.desc = m->address.desc;
	queue->ring.user.avail = m->address.avail;
	queue->ring.user.used = m->address.used;
	r = virtq_find(&queue->ring);
	if (r < 0)
		log_warn(r, "a guest's queue %u lies outside of its memory, or over itself",
			 m->address.queue);
	else
		queue->ring.next_used = __atomic_load_n(&queue->ring.used->idx, __ATOMIC_RELAXED);
	return r;
}

static int set_ring_base(struct vhost *v, const struct message *m)
{
	struct vhost_queue *queue = queue_of(v, m->state.queue);

	if (!queue || m->state.number > UINT16_MAX)
		return -EINVAL;
	queue->ring.next_avail = (uint16_t)m->state.number;
	return 0;
}

/* QEMU stops a queue, and resets the guest when all have answered: until then its memory is as it was. */
static int get_ring_base(struct vhost *v, struct message *m)
{
	struct vhost_queue *queue = queue_of(v, m->state.queue);

	if (!queue)
		return -EINVAL;
	v->ops->stop(v);
	source_close(&queue->kick);
	close_fd(&queue->call);
	m->state.number = queue->ring.next_avail;
	queue->ring.avail = NULL;
	queue->ring.user.desc = 0;
	return reply(v, m, sizeof(m->state));
}

/* Return: the descriptor that belongs to a queue, -1 where QEMU says that there is none, or -EINVAL. */
static int queue_fd(struct vhost *v, struct message *m, struct vhost_queue **ret)
{
	*ret = queue_of(v, m->number & QUEUE_MASK);
	if (!*ret)
		return -EINVAL;
	if (m->number & NO_FD)
		return -1;
	if (m->n_fds != 1)
		return -EINVAL;
	m->n_fds = 0;
	return m->fds[0];
}

static int set_ring_kick(struct vhost *v, struct message *m)
{
	struct vhost_queue *queue;
	int fd = queue_fd(v, m, &queue), r;

	/* A queue without a bell would have to be polled. */
	if (fd < 0)
		return -EINVAL;
	source_close(&queue->kick);
	r = source_add(&queue->kick, fd, kick_ready);
	if (r < 0) {
		close(fd);
		return r;
	}
	begin(queue);
	return 0;
}

static int set_ring_call(struct vhost *v, struct message *m)
{
	struct vhost_queue *queue;
	int fd = queue_fd(v, m, &queue);

	if (fd < -1)
		return fd;
	close_fd(&queue->call);
	queue->call = fd;
	return 0;
}

static int set_ring_enable(struct vhost *v, const struct message *m)
{
	struct vhost_queue *queue = queue_of(v, m->state.queue);

	if (!queue)
		return -EINVAL;
	queue->enabled = m->state.number == 1;
	begin(queue);
	return 0;
}

static int set_features(struct vhost *v, uint64_t features)
{
	unsigned i;

	if (features & ~FEATURES)
		return -EINVAL;
	v->features = features;
	/* Without the protocol's own features queues are enabled from the beginning. */
	for (i = 0; i < VHOST_MAX_QUEUES && !(features & F_PROTOCOL_FEATURES); i++)
		v->queues[i].enabled = true;
	return 0;
}

/* Requests that nothing but an acknowledgement answers. */
static int obey(struct vhost *v, struct message *m)
{
	switch (m->header.request) {
	case SET_FEATURES:
		return set_features(v, m->number);
	case SET_PROTOCOL_FEATURES:
		return m->number & ~PROTOCOL_FEATURES ? -EINVAL : 0;
	case SET_OWNER:
	case RESET_OWNER:
	case SET_VRING_ERR:
		return 0;
	case SET_MEM_TABLE:
		return set_memory(v, m);
	case SET_VRING_NUM:
		return set_ring_number(v, m);
	case SET_VRING_ADDR:
		return set_ring_address(v, m);
	case SET_VRING_BASE:
		return set_ring_base(v, m);
	case SET_VRING_KICK:
		return set_ring_kick(v, m);
	case SET_VRING_CALL:
		return set_ring_call(v, m);
	case SET_VRING_ENABLE:
		return set_ring_enable(v, m);
	default:
		return -EOPNOTSUPP;
	}
}

static int serve(struct vhost *v, struct message *m)
{
	bool wants_reply = m->header.flags & WANTS_REPLY;
	int r;

	switch (m->header.request) {
	case GET_FEATURES:
		return reply_number(v, m, FEATURES);
	case GET_PROTOCOL_FEATURES:
		return reply_number(v, m, PROTOCOL_FEATURES);
	case GET_QUEUE_NUM:
		return reply_number(v, m, VHOST_MAX_QUEUES);
	case GET_VRING_BASE:
		return get_ring_base(v, m);
	default:
		break;
	}
	r = obey(v, m);
	if (r < 0)
		log_warn(r, "QEMU's request %u", m->header.request);
	return wants_reply ? reply_number(v, m, r < 0) : r;
}

static void socket_ready(struct source *source)
{
	struct vhost *v = container_of(source, struct vhost, socket);
	struct message m;
	int r;

	r = receive(source->fd, &m);
	if (r == 0)
		r = serve(v, &m);
	message_done(&m);
	if (r < 0)
		v->ops->over(v, r);
}

int vhost_init(struct vhost *v, int socket, const struct vhost_ops *ops)
{
	unsigned i;

	*v = (struct vhost){ .ops = ops };
	for (i = 0; i < VHOST_MAX_QUEUES; i++)
		v->queues[i] = (struct vhost_queue){
			.vhost = v, .kick.fd = -1, .call = -1, .ring.ram = &v->ram
		};
	return source_add(&v->socket, socket, socket_ready);
}

void vhost_done(struct vhost *v)
{
	unsigned i;

	for (i = 0; i < VHOST_MAX_QUEUES; i++) {
		source_close(&v->queues[i].kick);
		close_fd(&v->queues[i].call);
	}
	ram_done(&v->ram);
	source_close(&v->socket);
}

void vhost_push(struct vhost_queue *queue, uint16_t head, uint32_t written)
{
	uint64_t one = 1;

	virtq_push(&queue->ring, head, written);
	if (queue->call >= 0 && virtq_wants_interrupt(&queue->ring) &&
	    write(queue->call, &one, sizeof(one)) < 0)
		log_debug(-errno, "cannot interrupt the guest");
}
