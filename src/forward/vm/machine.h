/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine: the queues of its device (virtio-abi.h), and its processes, each with a session and a worker.
 *
 *	machine.c	which message is whose, doorbells, the beat, the machine's end
 *	process.c	a process of the guest: its memory, its lanes, its end
 *	event.c		what the guest is told
 */
#ifndef FORWARD_VM_MACHINE_H
#define FORWARD_VM_MACHINE_H

#include "forward/host/spawn.h"
#include "forward/vm/event.h"
#include "forward/vm/vhost.h"

struct process;

/**
 * struct request - a message of the guest's kernel that is not answered yet
 * @is_there:	there is one
 */
struct request {
	bool is_there;
	struct chain chain;
	struct wire_message message;
};

/**
 * struct machine - there is one
 * @said_hello:	the guest's driver is there, and speaks our version
 * @features:	COTENANT_F_* that were agreed upon
 * @beat:	where the guest looks whether we are there; 0: nowhere
 */
struct machine {
	const struct worker_program *program;
	struct source listener;
	struct source timer;
	struct vhost vhost;
	bool said_hello;
	uint64_t features;
	uint64_t beat;
	struct event_list events;
	struct process *processes[WIRE_MAX_SESSIONS];
};

/**
 * machine_listen() - wait for QEMU, again and again, one at a time
 * @socket:	that listens; it is taken over
 *
 * Return: 0, or what the kernel said.
 */
int machine_listen(int socket, const struct worker_program *program);

/** machine_answer() - answer a request; it is none any more */
void machine_answer(struct machine *machine, struct request *request, int error);

/** machine_tell() - tell the guest what is due, as far as it has buffers */
void machine_tell(struct machine *machine);

#endif
