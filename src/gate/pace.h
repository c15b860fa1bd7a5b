/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a keeper reports: of each process at once, and then no more than once in 20 ms.
 *
 * Whoever asks the device again and again would else have the daemon do nothing but compare. What is asked
 * meanwhile is added up and told with the next report, so that the last of a process is always followed by
 * one. No clock: the time is handed in.
 */
#ifndef GATE_PACE_H
#define GATE_PACE_H

#include "gate/gate.h"

#include <stddef.h>

#define GATE_PACE_MS 20

/**
 * struct gate_pace - the processes that have asked lately
 * @items:	each with what was not told yet, and when it may be
 */
struct gate_pace {
	struct gate_paced {
		struct gate_report untold;
		uint64_t due_ms;
	} * items;
	size_t n;
	size_t cap;
};

/**
 * gate_pace_add() - a process has asked once more
 * @asked:	what it has asked for, added to what was not told yet
 *
 * Return: 0, or -ENOMEM: it is not in the list, and is to be told at once or never.
 */
int gate_pace_add(struct gate_pace *pace, const struct gate_report *asked, uint64_t now_ms);

/**
 * gate_pace_take() - the next report that may be sent by now
 *
 * Return: whether there is one. It counts as told.
 */
bool gate_pace_take(struct gate_pace *pace, uint64_t now_ms, struct gate_report *ret);

/**
 * gate_pace_return() - a report could not be sent: it is told again, together with what came since
 * @after_ms:	not sooner
 */
void gate_pace_return(struct gate_pace *pace, const struct gate_report *report, uint64_t now_ms,
		      uint64_t after_ms);

/**
 * gate_pace_next() - when gate_pace_take() has something next
 *
 * Processes that have nothing to be told and may be told of at once are forgotten.
 *
 * Return: in milliseconds from now on; -1 where nothing is to be told.
 */
int gate_pace_next(struct gate_pace *pace, uint64_t now_ms);

/**
 * gate_pace_drop_gone() - forget processes of which @is_gone says so
 */
void gate_pace_drop_gone(struct gate_pace *pace, bool (*is_gone)(uint32_t pid));

void gate_pace_done(struct gate_pace *pace);

#endif
