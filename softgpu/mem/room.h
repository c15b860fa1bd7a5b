/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can the host back memory with RAM?
 *
 * Device memory takes RAM when it is first written. Whoever is about to write a lot asks first, so
 * that what does not fit is refused as out of memory instead of making the kernel choose a process
 * to kill. It cannot be exact: others take memory meanwhile. So a part is left alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** room_for() - is there RAM for what is not there yet of @size bytes at @addr? Cheap if small. */
bool room_for(uint64_t addr, uint64_t size);
