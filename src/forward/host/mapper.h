/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapper: a process beside a worker that shares its address space and nothing else, and puts parts of a
 * virtual machine's memory there.
 *
 * A worker must reach what it was granted of the guest's memory and nothing beside it, so it can never have a
 * descriptor of that memory, not for a moment: what owns the worker would map the rest. The mapper has one, in its
 * own table of descriptors. Because it runs in memory that the worker can write to, it may be made to do anything,
 * too; so the kernel lets it do next to nothing, and asks the broker about every mapping. The broker says yes to
 * exactly those that it has asked for, and puts the descriptor in its place only then.
 *
 *	broker -- struct mapper_job --> mapper -- mmap(address, size, MAPPER_MEMORY, offset) --> kernel
 *	  ^                                                                                       |
 *	  +------------- is this address, size and offset the one that was asked for? ------------+
 *
 * The worker cannot make a mapping longer or move it: its filter has neither mremap() nor remap_file_pages().
 */
#ifndef FORWARD_HOST_MAPPER_H
#define FORWARD_HOST_MAPPER_H

#include <stdint.h>

/* Its descriptor of the memory that is being mapped. */
#define MAPPER_MEMORY 5

#define MAPPER_MAX_PIECES 1024

/* What it can be asked to put where. */
struct mapper_piece {
	uint64_t address;
	uint64_t size;
	uint64_t offset;
};

/**
 * struct mapper_job - the broker's message; the answer is an int, 0 or a negative errno
 *
 * The mapper's very first message is such an answer; with a 0 come the listener of its filter, and a pidfd of it.
 */
struct mapper_job {
	uint64_t n;
	struct mapper_piece pieces[MAPPER_MAX_PIECES];
};

/**
 * mapper_start() - start this process's mapper, which takes WORKER_MAPPER along
 *
 * While there is one thread, and none of the guest's bytes was read. Return: 0, or what the kernel said.
 */
int mapper_start(void);

#endif
