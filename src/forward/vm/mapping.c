// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/mapping.h"

#include "base/base.h"
#include "base/log.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static void finish(struct mapping *m, int error)
{
	if (!m->pieces)
		return;
	free(TAKE_PTR(m->pieces));
	m->finished(m, error);
}

/* As many pieces as a message has room for. */
static int tell(struct mapping *m)
{
	static struct mapper_job job;
	const struct ram_region *region;
	const struct wire_piece *piece;

	job.n = 0;
	while (m->told < m->n && job.n < MAPPER_MAX_PIECES) {
		piece = &m->pieces[m->told++];
		region = ram_region_of(m->ram, piece->address, piece->size);
		if (!region)
			return -EFAULT;
		job.pieces[job.n++] =
			(struct mapper_piece){ m->told_address, piece->size,
					       region->offset + (piece->address - region->guest) };
		m->told_address += piece->size;
	}
	if (send(m->control.fd, &job, offsetof(struct mapper_job, pieces[job.n]), MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

/*
 * Is it the next mapping that was asked for? Only numbers are compared, which the kernel has in registers,
 * so nobody can change them afterwards.
 *
 * Return: the descriptor that it is of, or -1.
 */
static int expected(const struct mapping *m, const struct seccomp_data *data)
{
	const struct ram_region *region;
	const struct wire_piece *piece;

	if (!m->pieces || m->next == m->n)
		return -1;
	piece = &m->pieces[m->next];
	region = ram_region_of(m->ram, piece->address, piece->size);
	if (!region || data->args[0] != m->address || data->args[1] != piece->size ||
	    data->args[2] != (PROT_READ | PROT_WRITE) ||
	    data->args[3] != (MAP_SHARED | MAP_FIXED) || data->args[4] != MAPPER_MEMORY ||
	    data->args[5] != region->offset + (piece->address - region->guest))
		return -1;
	return region->fd;
}

static int put_descriptor(struct mapping *m, uint64_t id, int fd)
{
	struct seccomp_notif_addfd add = { .id = id,
					   .flags = SECCOMP_ADDFD_FLAG_SETFD,
					   .srcfd = (uint32_t)fd,
					   .newfd = MAPPER_MEMORY };

	return ioctl(m->listener.fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 0;
}

static void listener_ready(struct source *source)
{
	struct mapping *m = container_of(source, struct mapping, listener);
	struct seccomp_notif question = { 0 };
	struct seccomp_notif_resp answer = { 0 };
	int fd, r;

	if (ioctl(source->fd, SECCOMP_IOCTL_NOTIF_RECV, &question) < 0) {
		/* Whoever asked was killed meanwhile; its end is told elsewhere. */
		if (errno != EINTR && errno != ENOENT)
			source_remove(source);
		return;
	}
	fd = expected(m, &question.data);
	r = fd < 0 ? -EPERM : put_descriptor(m, question.id, fd);
	answer.id = question.id;
	if (r == 0) {
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		m->address += m->pieces[m->next++].size;
	} else {
		answer.error = r;
	}
	ioctl(source->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void exited(struct source *source)
{
	struct mapping *m = container_of(source, struct mapping, exit);
	siginfo_t info;

	waitid(P_PIDFD, (id_t)source->fd, &info, WEXITED);
	source_close(&m->exit);
	source_close(&m->control);
	source_close(&m->listener);
	finish(m, -ENODEV);
	m->gone(m);
}

static int introduced(struct mapping *m, const int *fds, size_t n_fds)
{
	int r;

	if (n_fds != 2 || m->exit.fd >= 0)
		return -EPROTO;
	r = source_add(&m->listener, fds[0], listener_ready);
	if (r < 0) {
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	r = source_add(&m->exit, fds[1], exited);
	if (r < 0)
		close(fds[1]);
	return r;
}

/* Return: its word, with the descriptors that come along. */
static int receive(int fd, int *ret_error, int *ret_fds, size_t *ret_n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec part = { ret_error, sizeof(*ret_error) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);

	*ret_n = 0;
	if (n < 0)
		return -errno;
	c = n > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS) {
		*ret_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(c), *ret_n * sizeof(int));
	}
	return n == sizeof(*ret_error) ? 0 : -EPIPE;
}

static int went_on(struct mapping *m, int error)
{
	if (error || !m->pieces || m->next != m->told)
		return error < 0 ? error : -EPROTO;
	if (m->told < m->n)
		return tell(m);
	finish(m, 0);
	return 0;
}

static void control_ready(struct source *source)
{
	struct mapping *m = container_of(source, struct mapping, control);
	int error, fds[2], r;
	size_t i, n;

	r = receive(source->fd, &error, fds, &n);
	if (r == -EAGAIN)
		return;
	if (r == 0 && m->listener.fd < 0)
		r = error ? error : introduced(m, fds, n);
	else
		for (i = 0; i < n; i++)
			close(fds[i]);
	if (r == 0 && n == 0)
		r = went_on(m, error);
	if (r < 0) {
		log_debug(r, "a mapper ends");
		source_close(&m->control);
		mapping_end(m);
		finish(m, r);
	}
}

int mapping_init(struct mapping *m, int control, const struct ram *ram,
		 void (*finished)(struct mapping *mapping, int error),
		 void (*gone)(struct mapping *mapping))
{
	int r;

	*m = (struct mapping){ .ram = ram,
			       .control.fd = -1,
			       .listener.fd = -1,
			       .exit.fd = -1,
			       .finished = finished,
			       .gone = gone };
	r = source_add(&m->control, control, control_ready);
	if (r < 0)
		close(control);
	return r;
}

int mapping_begin(struct mapping *m, uint64_t address, struct wire_piece *pieces, size_t n)
{
	int r;

	if (m->pieces || m->listener.fd < 0) {
		free(pieces);
		return m->pieces ? -EBUSY : -ENODEV;
	}
	m->pieces = pieces;
	m->n = n;
	m->told = m->next = 0;
	m->address = m->told_address = address;
	r = tell(m);
	if (r < 0)
		free(TAKE_PTR(m->pieces));
	return r;
}

bool mapping_end(struct mapping *m)
{
	if (m->exit.fd < 0) {
		source_close(&m->control);
		return false;
	}
	syscall(SYS_pidfd_send_signal, m->exit.fd, SIGKILL, NULL, 0);
	return true;
}

void mapping_end_now(struct mapping *m)
{
	siginfo_t info;

	if (mapping_end(m))
		waitid(P_PIDFD, (id_t)m->exit.fd, &info, WEXITED);
	source_close(&m->exit);
	source_close(&m->control);
	source_close(&m->listener);
	free(TAKE_PTR(m->pieces));
}
