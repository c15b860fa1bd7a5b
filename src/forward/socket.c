// SPDX-License-Identifier: Apache-2.0
#include "forward/socket.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(SOCKET_MAX_FDS * sizeof(int))];
};

int socket_send(int fd, const struct wire_message *message, const int *fds, size_t n_fds)
{
	struct iovec part = { (void *)message, sizeof(*message) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = { 0 };

	if (n_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
	}
	while (sendmsg(fd, &header, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

size_t socket_take_fds(struct msghdr *header, int *fds, size_t max)
{
	struct cmsghdr *c;
	size_t i, n, n_taken = 0;
	int fd;

	for (c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n_taken < max)
				fds[n_taken++] = fd;
			else
				close(fd);
		}
	}
	return n_taken;
}

int socket_receive(int fd, struct socket_message *ret)
{
	struct iovec part = { &ret->message, sizeof(ret->message) };
	union control control;
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t n;

	ret->n_fds = 0;
	do {
		n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	ret->n_fds = socket_take_fds(&header, ret->fds, SOCKET_MAX_FDS);
	if ((size_t)n != sizeof(ret->message) || header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		socket_message_done(ret);
		return -EPROTO;
	}
	return 0;
}

int socket_pair_new(int type, int *ret_ours, int *ret_theirs)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

void socket_message_done(struct socket_message *message)
{
	size_t i;

	for (i = 0; i < message->n_fds; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	message->n_fds = 0;
}
