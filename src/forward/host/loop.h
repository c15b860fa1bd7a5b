/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's one thread: descriptors, and what is called when one of them has something.
 *
 * One is served at a time and then it is looked again, so whoever is called may end any other.
 */
#ifndef FORWARD_HOST_LOOP_H
#define FORWARD_HOST_LOOP_H

/**
 * struct source - a descriptor that is waited for
 * @fd:		-1 while there is none. It stays its owner's, who calls source_remove() before closing it
 * @ready:	it can be read, or its other side is gone
 */
struct source {
	int fd;
	void (*ready)(struct source *source);
};

/** source_add() - wait for @fd. Return: 0, or what the kernel said; then source->fd is -1. */
int source_add(struct source *source, int fd, void (*ready)(struct source *source));

/** source_remove() - wait no more. Return: the descriptor, which is the caller's; -1 where there was none. */
int source_remove(struct source *source);

/** source_close() - wait no more, and close it */
void source_close(struct source *source);

/** loop_once() - wait for any source, and serve it. Return: 0, or what the kernel said. */
int loop_once(void);

#endif
