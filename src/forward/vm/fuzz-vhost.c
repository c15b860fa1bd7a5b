// SPDX-License-Identifier: Apache-2.0
/*
 * A broken QEMU against the back-end. The input is requests, each a byte of which, a byte of how many descriptors
 * come along, a byte of the payload's size and the payload.
 */
#include "forward/vm/vhost.h"

#include "base/base.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define MAX_FDS	    8
#define MEMORY_SIZE (1 << 20)
#define N_REQUESTS  44

static int theirs = -1;
static bool is_over;

static void kicked(struct vhost *v, unsigned queue)
{
	struct chain chain;
	uint8_t bytes[64];
	int r, left = 64;

	while (left-- > 0 && (r = virtq_pop(&v->queues[queue].ring, &chain)) != 0 && r != -EPROTO) {
		if (r == 1)
			chain_write(&v->ram, &chain, bytes,
				    chain_read(&v->ram, &chain, 0, bytes, sizeof(bytes)));
		vhost_push(&v->queues[queue], chain.head, 0);
	}
}

static void stop(_unused_ struct vhost *v)
{
}

static void over(_unused_ struct vhost *v, _unused_ int error)
{
	is_over = true;
}

static const struct vhost_ops ops = { .kicked = kicked, .stop = stop, .over = over };

/* Memory for those that may be regions, an event for those that may be bells. */
static int descriptor(uint8_t request)
{
	int fd;

	if (request != 5)
		return eventfd(0, EFD_NONBLOCK);
	fd = memfd_create("ram", 0);
	if (fd < 0 || ftruncate(fd, MEMORY_SIZE) < 0)
		abort();
	return fd;
}

static void send_request(uint8_t request, unsigned n_fds, const uint8_t *payload, uint32_t size)
{
	uint32_t head[] = { request, 1 | (size & 1 ? 8 : 0), size };
	struct iovec parts[] = { { head, sizeof(head) }, { (void *)payload, size } };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control = { .header = { CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	int fds[MAX_FDS];
	unsigned i;

	for (i = 0; i < n_fds; i++)
		fds[i] = descriptor(request);
	if (n_fds) {
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	}
	if (sendmsg(theirs, &message, MSG_NOSIGNAL) < 0)
		is_over = true;
	for (i = 0; i < n_fds; i++)
		close(fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vhost v;
	uint8_t answers[512];
	uint32_t n;
	int pair[2];

	log_init("fuzz", LOG_EMERG);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || vhost_init(&v, pair[0], &ops) < 0)
		abort();
	theirs = pair[1];
	is_over = false;
	while (!is_over && size >= 3) {
		n = (uint32_t)MIN((size_t)data[2], size - 3);
		send_request(data[0] % N_REQUESTS, data[1] % (MAX_FDS + 1), data + 3, n);
		/* It would wait for what could not be sent. */
		if (!is_over)
			v.socket.ready(&v.socket);
		while (recv(theirs, answers, sizeof(answers), MSG_DONTWAIT) > 0)
			;
		data += 3 + n;
		size -= 3 + n;
	}
	vhost_done(&v);
	close(theirs);
	return 0;
}
