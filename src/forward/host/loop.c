// SPDX-License-Identifier: Apache-2.0
#include "forward/host/loop.h"

#include "base/base.h"

#include <errno.h>
#include <sys/epoll.h>

static int loop_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int source_add(struct source *source, int fd, void (*ready)(struct source *source))
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };
	int loop = loop_fd();

	source->fd = -1;
	source->ready = ready;
	if (loop < 0)
		return loop;
	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	source->fd = fd;
	return 0;
}

int source_remove(struct source *source)
{
	if (source->fd >= 0)
		epoll_ctl(loop_fd(), EPOLL_CTL_DEL, source->fd, NULL);
	return TAKE_FD(source->fd);
}

void source_close(struct source *source)
{
	int fd = source_remove(source);

	if (fd >= 0)
		close(fd);
}

int loop_once(void)
{
	struct epoll_event event;
	struct source *source;
	int loop = loop_fd(), n;

	if (loop < 0)
		return loop;
	n = epoll_wait(loop, &event, 1, -1);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	source = event.data.ptr;
	source->ready(source);
	return 0;
}
