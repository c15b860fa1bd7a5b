/* SPDX-License-Identifier: Apache-2.0 */
/* The broker that executes CUDA calls of a command or of a virtual machine, as a verb starts it. */
#ifndef CTL_BROKER_H
#define CTL_BROKER_H

#include "ctl/ctl.h"

#include <signal.h>

/**
 * struct broker - a broker, and where its parts are
 * @dir:	made for the socket, and removed with it; empty where the caller names the socket
 * @dir_fd:	it, locked: who finds it without is told that nobody needs it any more
 * @program:	what executes CUDA calls, besides the worker that it starts
 * @pid:	0 until it was started
 * @ready:	it writes a line here when it listens
 * @tenant:	its name as a tenant, or NULL
 */
struct broker {
	char dir[32];
	int dir_fd;
	char *socket_path;
	char *program;
	char *worker;
	char *library_dir;
	pid_t pid;
	int ready;
	char *tenant;
};

/**
 * broker_init() - find its parts, and a place for its socket
 * @socket_path: where it is to listen; NULL: in a new folder
 *
 * Return: 0, or EXIT_NO_TENANT, and why is said.
 */
int broker_init(const struct ctl *ctl, struct broker *broker, const char *socket_path);

/**
 * broker_start() - start it, as a tenant first where it is to be one, and wait until it listens
 * @option:	"--socket" for processes, "--vm" for QEMU
 * @as_tenant:	make it a tenant
 * @mask:	signals of before child_signals_block()
 *
 * Return: 0, or EXIT_NO_TENANT, and why is said.
 */
int broker_start(const struct ctl *ctl, struct broker *broker, const char *option, bool as_tenant,
		 const sigset_t *mask);

/** broker_end() - end it with all its workers, and release what is here */
void broker_end(const struct ctl *ctl, struct broker *broker);

#endif
