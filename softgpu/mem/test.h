/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests beside these sources share: a check that says where it failed. */
#pragma once

#include "softgpu/util/test-child.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct test_case {
	const char *shows;
	void (*run)(void);
};

static inline int test_run(const struct test_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cases[i].run();
		printf("ok '%s'\n", cases[i].shows);
		fflush(stdout);
	}

	return 0;
}

#define TEST_MAIN(cases)                                                                           \
	int main(void)                                                                             \
	{                                                                                          \
		return test_run(cases, sizeof(cases) / sizeof((cases)[0]));                        \
	}
