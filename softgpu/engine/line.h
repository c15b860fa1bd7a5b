/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of turns of a device, in its shared file. No clock in here: time is passed in.
 *
 * A client asks for device time by raising `want`. The line serves it in turns, one after
 * the other: a turn begins when the one before it ends, or when there is work again. What
 * is served up to when is a sum and an end, which changes once per turn:
 *
 *	client 3: served {a: end of its last turn, b: 12.0 ms in all}, want 13.5 ms
 *
 *	... | client 7 | client 3, 2 ms | client 4 | client 7 | client 3, 1.5 ms | ...
 *	                               ^                                        ^
 *	                    served {a, 12.0}                        served {a', 13.5}
 *
 * so a job that reaches up to p of the sum was over at a - (b - p).
 */
#ifndef SOFTGPU_ENGINE_LINE_H
#define SOFTGPU_ENGINE_LINE_H

#include "softgpu/state/layout.h"

#define LINE_NEVER UINT64_MAX

/**
 * line_join() - a place in the line
 * @owner:	birth of the process's slot
 *
 * Return: its index, or -1 if there is no place left.
 */
int line_join(struct state_file *file, uint64_t owner);

/** line_leave() - give the place back; what it was served stays with the process */
void line_leave(struct state_file *file, struct state_slot *slot, int index);

/**
 * line_ask() - ask for device time
 * @ns:		how much
 * @ready_ns:	from when it could have been used
 * @keeps_turn:	more will be asked for when it has been had. Where others wait, the client is
 *		then given whole turns; what it did not ask for in time is credit for what it asks
 *		next. Alone it gets the time behind its last turn anyway.
 * @ret_lost:	set if credit was lost, because the client did not ask in time for it
 *
 * One job at a time: the one before has been served, or is given up.
 *
 * Return: up to where @served has to come.
 */
uint64_t line_ask(struct state_file *file, int index, uint64_t ns, uint64_t ready_ns,
		  bool keeps_turn, bool *ret_lost);

/** line_give_up() - ask for nothing any more */
void line_give_up(struct state_file *file, int index);

/**
 * line_advance() - give all turns that begin up to @now_ns
 *
 * Called by whoever wants to know; it does not matter how late.
 */
void line_advance(struct state_file *file, uint64_t now_ns);

/**
 * line_end() - when a client was or will be served up to @position
 * @ret_known:	true if that turn has been given; false if it is the earliest moment at which
 *		it can be, with the work that others have now
 */
uint64_t line_end(struct state_file *file, int index, uint64_t position, bool *ret_known);

#endif
