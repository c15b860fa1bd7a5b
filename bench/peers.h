/* SPDX-License-Identifier: Apache-2.0 */
/* What being answered by another process costs on this machine by the kernel's own means: the floor of a round trip. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>

/**
 * struct peer - a process that sleeps until it is asked, and answers
 * @is_there:	the caller's
 * @two_cpus:	it is on another CPU than the caller, who is moved for as long as he waits; else on the same
 */
struct peer {
	const char *name;
	bool futex;
	bool two_cpus;
	bool is_there;
	int cpu;
	int ask, answer;
	struct peer_words *words;
};

/** peer_start() - begin it; it ends with its caller. Return: can it be had on this machine? */
bool peer_start(struct peer *peer);

/** peer_begin(), peer_end() - the caller is where the peer is to be measured from; and anywhere again */
void peer_begin(void);
void peer_end(void);

/** peer_ask() - wake it, and sleep until it has answered */
void peer_ask(struct peer *peer);

#endif
