/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities as people write them: sizes, times, parts of a hundred.
 *
 * Sizes are powers of 1024 whatever the spelling (4G = 4GiB = 4GB), as in cgroup
 * files. Fractions are allowed where they come to a whole number of bytes or
 * milliseconds: 1.5G, 0.5s. What is printed reads back to the same value.
 */
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include "base/base.h"

#include <stdbool.h>

/* "max": no limit, or for ever. */
#define QUANTITY_MAX UINT64_MAX

/* Enough for any size_print() or duration_print(). */
#define QUANTITY_TEXT 32

/**
 * size_parse() - "4G", "512MiB", "1.5g", "1048576", "max"
 *
 * Return: 0; -EINVAL if it is no size; -ERANGE if it is 2^63 bytes or more.
 */
int size_parse(const char *s, uint64_t *ret_bytes);

/**
 * percent_parse() - "30", "30%", "12.5%" as thousandths: 300, 300, 125
 *
 * Return: 0; -EINVAL if it is no such number; -ERANGE above 100 %.
 */
int percent_parse(const char *s, uint32_t *ret_permille);

/**
 * duration_parse() - "30s", "1.5m", "200ms", "2h", "1d", "0", "max"
 *
 * A number without a unit is in seconds.
 *
 * Return: 0; -EINVAL if it is no duration; -ERANGE if it does not fit.
 */
int duration_parse(const char *s, uint64_t *ret_ms);

/**
 * size_print() - exact: "4G", "1536M", "1048583", "max"
 */
const char *size_print(uint64_t bytes, char buf[QUANTITY_TEXT]);

/**
 * size_print_short() - for tables: about three digits, "3.98G"
 */
const char *size_print_short(uint64_t bytes, char buf[QUANTITY_TEXT]);

/**
 * duration_print() - exact: "30s", "1500ms", "2h", "max"
 */
const char *duration_print(uint64_t ms, char buf[QUANTITY_TEXT]);

/**
 * percent_print() - "30%", "12.5%"
 */
const char *percent_print(uint32_t permille, char buf[QUANTITY_TEXT]);

#endif
