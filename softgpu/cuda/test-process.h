/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests with two processes: each plays a role, and they talk through a socket. A driver that was
 * set up does not survive fork(), so both come from a process that has not called cuInit().
 */
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "softgpu/cuda/memory/test-memory.h"

/* Sends bytes, and a descriptor unless it is -1. */
static inline void test_send(int socket, const void *data, size_t n, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec bytes = { (void *)data, n };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	CHECK(sendmsg(socket, &message, 0) == (ssize_t)n);
}

/* Return: the descriptor that came along, or -1. */
static inline int test_receive(int socket, void *data, size_t n)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec bytes = { data, n };
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int fd = -1;

	CHECK(recvmsg(socket, &message, MSG_WAITALL) == (ssize_t)n);
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* "I am so far" and waiting for it. */
static inline void test_signal(int socket)
{
	test_send(socket, "", 1, /* fd= */ -1);
}

static inline void test_wait(int socket)
{
	char byte;

	test_receive(socket, &byte, 1);
}

static inline pid_t test_role(void (*role)(int socket), int socket, int socket_of_other)
{
	pid_t pid = child_new();

	if (pid == 0) {
		/* So that whoever waits here sees when the other one has ended early. */
		close(socket_of_other);
		role(socket);
		_exit(0);
	}

	return pid;
}

/* Runs both roles to their ends; one may be killed on the way if the other says so by a signal. */
static inline void test_roles(void (*first)(int socket), void (*second)(int socket))
{
	int sockets[2], status;
	pid_t pids[2];

	fflush(stdout);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	pids[0] = test_role(first, sockets[0], sockets[1]);
	pids[1] = test_role(second, sockets[1], sockets[0]);
	close(sockets[0]);
	close(sockets[1]);
	for (int i = 0; i < 2; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	}
}

/* What came back late comes back within 100 ms; a loaded machine gets a minute. */
static inline void test_wait_used(size_t bytes)
{
	for (int i = 0; i < 6000 && test_used() != bytes; i++)
		usleep(10000);
	CHECK(test_used() == bytes);
}
