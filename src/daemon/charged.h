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

#define CHARGED_UNTOLD UINT64_MAX

/**
 * struct charged - one process
 * @serial:	of its record: with it, the process id names a process for good
 * @seen_on:	a bit for each device that was last seen to list it
 * @told:	what each device said that it has, CHARGED_UNTOLD where none was asked
 */
struct charged {
	pid_t pid;
	uint32_t serial;
	uint32_t seen_on;
	bool is_placing;
	uint64_t n_changes;
	uint64_t use[LEDGER_DEVICES];
	uint64_t idle[LEDGER_DEVICES];
	uint64_t pending[LEDGER_DEVICES];
	uint64_t overhead[LEDGER_DEVICES];
	uint64_t told[LEDGER_DEVICES];
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

const struct charged *charged_find(const struct charged_list *list, pid_t pid);

/**
 * charged_needs_proof() - whether what a device has told may be of the middle of a call
 * @before:	the process in the round before, or NULL
 *
 * A call that is under way has its memory in the books before the device has it, and a device lets go of
 * memory before the books do. Then the device seems to have less beyond what the calls explain than it
 * has, and whoever believed that would hand out what a context costs a second time. So less overhead is
 * true when two rounds say it and no call has changed anything between them. Memory that is idle or pending
 * is another matter: there the device alone knows.
 */
bool charged_needs_proof(const struct charged *c, const struct charged *before, unsigned device);

void charged_done(struct charged_list *list);

#endif
