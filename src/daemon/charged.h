/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The charged processes as the books had them at one moment.
 *
 * The engine's records are many and lie far apart: they are walked once a round, into a list
 * that is kept from round to round, and whoever wants to know something of them looks there.
 */
#ifndef DAEMON_CHARGED_H
#define DAEMON_CHARGED_H

#include "audit/engine.h"

#include <stdbool.h>

/**
 * struct charged - one process
 * @serial:	of its record: with it, the process id names a process for good
 * @seen_on:	a bit for each device that was last seen to list it
 */
struct charged {
	pid_t pid;
	uint32_t serial;
	uint32_t seen_on;
	bool is_placing;
	uint64_t moved;
	uint64_t use[LEDGER_DEVICES];
	uint64_t idle[LEDGER_DEVICES];
	uint64_t pending[LEDGER_DEVICES];
	uint64_t overhead[LEDGER_DEVICES];
	uint64_t inherited[LEDGER_DEVICES];
	uint32_t n_contexts[LEDGER_DEVICES];
	struct ledger_chain chain;
};

/** struct charged_list - all of them, by process id */
struct charged_list {
	struct charged *items;
	size_t n;
	size_t cap;
};

/**
 * charged_read() - what the books have now
 * @engine:	NULL for an empty list
 *
 * Return: 0, or -ENOMEM: the list is then not complete.
 */
int charged_read(struct charged_list *list, const struct engine *engine);

/** charged_equal() - whether nothing in the books has changed from one to the other */
bool charged_equal(const struct charged_list *a, const struct charged_list *b);

const struct charged *charged_find(const struct charged_list *list, pid_t pid);

/** charged_next() - the same for who asks of one process after the other, in the order of their ids; @at begins as 0 */
const struct charged *charged_next(const struct charged_list *list, pid_t pid, size_t *at);

void charged_done(struct charged_list *list);

#endif
