/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests beside the sources: named cases, one line each.
 *
 *	check(n == 2, "two devices");
 *	return n_failed != 0;
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

static int n_failed;

static inline void check(bool good, const char *what)
{
	printf("%s '%s'\n", good ? "ok" : "NOT OK", what);
	n_failed += !good;
}
