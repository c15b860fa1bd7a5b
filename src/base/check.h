/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests beside the sources: named cases, one line each.
 *
 *	check(quantity == 4, "size_parse: 4 is four bytes");
 *	return check_result();
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int check_failures;

__attribute__((format(printf, 2, 3), unused)) static bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%s '", good ? "ok" : "NOT OK");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("'\n");
	if (!good)
		check_failures++;
	return good;
}

/* The same numbers in each run. */
__attribute__((unused)) static uint64_t check_random_below(uint64_t below)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

__attribute__((unused)) static int check_result(void)
{
	if (check_failures)
		printf("%d failed\n", check_failures);
	return check_failures ? 1 : 0;
}

#endif
