/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a worker. */
#ifndef FORWARD_HOST_SPAWN_H
#define FORWARD_HOST_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

/* Descriptors that a worker finds. The mapper's is there only where it is to have one. */
#define WORKER_SOCKET 3
#define WORKER_MAPPER 4

/**
 * struct worker_program - what executes
 * @worker:	the program
 * @driver:	the libcuda that it loads
 */
struct worker_program {
	const char *worker;
	const char *driver;
};

/**
 * struct worker - a worker that begins
 * @socket:	our end of its socket
 * @pidfd:	readable when it has ended
 * @mapper:	our end of its mapper's socket, or -1
 */
struct worker {
	pid_t pid;
	int socket;
	int pidfd;
	int mapper;
};

/**
 * worker_start() - start one
 * @mapped:	with a mapper
 *
 * Return: 0, or what the kernel said.
 */
int worker_start(const struct worker_program *program, bool mapped, struct worker *ret);

#endif
