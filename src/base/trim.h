/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that runs for months keeps in memory: what it uses, not what it once used.
 */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

/**
 * trim_memory() - give back what was freed, and code and constants of the program and its libraries
 *
 * Of the latter comes back what is used, from the page cache, by itself: some ten faults for a program that
 * starts with twenty libraries and then goes round in a loop.
 */
void trim_memory(void);

#endif
