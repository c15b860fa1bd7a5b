/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done about a tenant that holds more than its request: a ladder of steps.
 *
 *	warn		it is told, nothing else
 *	suspend		stopped, so that it no longer grows; for a while
 *	evict		ended, to be started elsewhere by whoever started it
 *	kill		ended
 *
 * "suspend-kill" goes from the first to the second; one word alone is one step.
 * A warning always comes first, whether it is named or not.
 */
#ifndef TENANT_LADDER_H
#define TENANT_LADDER_H

#include "base/base.h"

enum ladder_step { LADDER_WARN, LADDER_SUSPEND, LADDER_EVICT, LADDER_KILL, N_LADDER_STEPS };

struct ladder {
	enum ladder_step from;
	enum ladder_step to;
};

/* Enough for any ladder_print(). */
#define LADDER_TEXT 16

/**
 * ladder_step_name() - "warn", "suspend", "evict", "kill"
 */
const char *ladder_step_name(enum ladder_step step);

/**
 * ladder_parse() - read one word, or two with a dash
 *
 * Return: 0, or -EINVAL; then @ret is untouched.
 */
int ladder_parse(const char *text, struct ladder *ret);

/**
 * ladder_print() - as ladder_parse() reads it
 */
const char *ladder_print(struct ladder ladder, char buf[LADDER_TEXT]);

/**
 * ladder_next() - the step after another one
 *
 * Return: the step, or N_LADDER_STEPS where the ladder ends.
 */
enum ladder_step ladder_next(struct ladder ladder, enum ladder_step step);

#endif
