/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number with a unit is read as digits and a count of decimals, never as a
 * floating point number: 1.1G has no exact byte count and is rounded down the
 * same way everywhere.
 */
#include "base/quantity.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ULL << 10 },
	{ "kb", 1ULL << 10 },
	{ "kib", 1ULL << 10 },
	{ "m", 1ULL << 20 },
	{ "mb", 1ULL << 20 },
	{ "mib", 1ULL << 20 },
	{ "g", 1ULL << 30 },
	{ "gb", 1ULL << 30 },
	{ "gib", 1ULL << 30 },
	{ "t", 1ULL << 40 },
	{ "tb", 1ULL << 40 },
	{ "tib", 1ULL << 40 },
};

static const struct unit duration_units[] = {
	{ "", 1000 },
	{ "ms", 1 },
	{ "s", 1000 },
	{ "sec", 1000 },
	{ "m", 60 * 1000 },
	{ "min", 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ "d", 24 * 60 * 60 * 1000 },
};

static const struct unit percent_units[] = {
	{ "", 10 },
	{ "%", 10 },
};

/* Reads "12.5" as 125 and a divisor of 10; *ret_end is behind the last digit. */
static int read_decimal(const char *s, uint64_t *ret_digits, uint64_t *ret_divisor,
			const char **ret_end)
{
	uint64_t digits = 0, divisor = 1;
	bool behind_point = false;
	const char *p;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (p = s; isdigit((unsigned char)*p) || (*p == '.' && !behind_point); p++) {
		if (*p == '.') {
			behind_point = true;
			continue;
		}
		/* Nine decimals are more than any unit can use. */
		if (behind_point && divisor == 1000000000)
			continue;
		if (__builtin_mul_overflow(digits, 10, &digits) ||
		    __builtin_add_overflow(digits, (uint64_t)(*p - '0'), &digits))
			return -ERANGE;
		if (behind_point)
			divisor *= 10;
	}
	if (p[-1] == '.')
		return -EINVAL;
	*ret_digits = digits;
	*ret_divisor = divisor;
	*ret_end = p;
	return 0;
}

static int quantity_parse(const char *s, const struct unit *units, size_t n_units, uint64_t *ret)
{
	uint64_t digits, divisor;
	unsigned __int128 v;
	const char *unit;
	size_t i;
	int r;

	r = read_decimal(s, &digits, &divisor, &unit);
	if (r < 0)
		return r;
	while (*unit == ' ')
		unit++;
	for (i = 0; i < n_units; i++) {
		if (strcasecmp(unit, units[i].name) != 0)
			continue;
		v = (unsigned __int128)digits * units[i].factor / divisor;
		if (v >> 63)
			return -ERANGE;
		*ret = v;
		return 0;
	}
	return -EINVAL;
}

int size_parse(const char *s, uint64_t *ret_bytes)
{
	if (str_eq(s, "max")) {
		*ret_bytes = QUANTITY_MAX;
		return 0;
	}
	return quantity_parse(s, size_units, ARRAY_SIZE(size_units), ret_bytes);
}

int percent_parse(const char *s, uint32_t *ret_permille)
{
	uint64_t v;
	int r;

	r = quantity_parse(s, percent_units, ARRAY_SIZE(percent_units), &v);
	if (r < 0)
		return r;
	if (v > 1000)
		return -ERANGE;
	*ret_permille = v;
	return 0;
}

int duration_parse(const char *s, uint64_t *ret_ms)
{
	if (str_eq(s, "max")) {
		*ret_ms = QUANTITY_MAX;
		return 0;
	}
	return quantity_parse(s, duration_units, ARRAY_SIZE(duration_units), ret_ms);
}

const char *size_print(uint64_t bytes, char buf[QUANTITY_TEXT])
{
	static const char suffixes[] = "\0KMGT";
	int i = 0;

	if (bytes == QUANTITY_MAX)
		return "max";
	while (i < 4 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		i++;
	}
	snprintf(buf, QUANTITY_TEXT, "%llu%.1s", (unsigned long long)bytes, &suffixes[i]);
	return buf;
}

const char *size_print_short(uint64_t bytes, char buf[QUANTITY_TEXT])
{
	static const char suffixes[] = "\0KMGTPE";
	double v = bytes;
	int i = 0;

	if (bytes == QUANTITY_MAX)
		return "max";
	while (v >= 1023.5) {
		v /= 1024;
		i++;
	}
	if (i == 0 || v >= 99.95)
		snprintf(buf, QUANTITY_TEXT, "%.0f%.1s", v, &suffixes[i]);
	else if (v >= 9.995)
		snprintf(buf, QUANTITY_TEXT, "%.1f%.1s", v, &suffixes[i]);
	else
		snprintf(buf, QUANTITY_TEXT, "%.2f%.1s", v, &suffixes[i]);
	return buf;
}

const char *duration_print(uint64_t ms, char buf[QUANTITY_TEXT])
{
	static const struct unit units[] = {
		{ "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
	};
	size_t i = 0;

	if (ms == QUANTITY_MAX)
		return "max";
	if (ms == 0)
		return "0s";
	while (ms % units[i].factor != 0)
		i++;
	snprintf(buf, QUANTITY_TEXT, "%llu%s", (unsigned long long)(ms / units[i].factor),
		 units[i].name);
	return buf;
}

const char *percent_print(uint32_t permille, char buf[QUANTITY_TEXT])
{
	if (permille % 10)
		snprintf(buf, QUANTITY_TEXT, "%u.%u%%", permille / 10, permille % 10);
	else
		snprintf(buf, QUANTITY_TEXT, "%u%%", permille / 10);
	return buf;
}
