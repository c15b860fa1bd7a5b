/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can the host back memory with RAM?
 *
 * Device memory takes RAM when it is first touched. Whoever is about to touch a lot asks first, and
 * a kernel, of which nobody knows what it will touch, is looked after while it runs; so what does
 * not fit is an error instead of making the kernel of the host choose a process to kill. It cannot
 * be exact: others take memory meanwhile. So a part is left alone, more than all CPUs can touch
 * from one look to the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** room_limit() - let this process have at most so much RAM, its own included; 0: no bound */
void room_limit(uint64_t bytes);

/** room_for() - is there RAM for what is not there yet of @size bytes at @addr? Cheap if small. */
bool room_for(uint64_t addr, uint64_t size);

/**
 * room_left() - may something go on that touches memory?
 *
 * False if this process has grown lately and the host has no more for it. To be asked every few
 * milliseconds; costs next to nothing when asked more often.
 */
bool room_left(void);
