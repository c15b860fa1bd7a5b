/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>

static const struct {
	const char *text;
	int result;
	uint64_t value;
} sizes[] = {
	{ "0", 0, 0 },
	{ "1048583", 0, 1048583 },
	{ "4G", 0, 4ULL << 30 },
	{ "4 GiB", 0, 4ULL << 30 },
	{ "4gb", 0, 4ULL << 30 },
	{ "512MiB", 0, 512ULL << 20 },
	{ "1.5g", 0, 3ULL << 29 },
	{ "0.1k", 0, 102 },
	{ "2T", 0, 2ULL << 40 },
	{ "max", 0, QUANTITY_MAX },
	{ "", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "4X", -EINVAL, 0 },
	{ "4.G", -EINVAL, 0 },
	{ "1.2.3G", -EINVAL, 0 },
	{ "4G4", -EINVAL, 0 },
	{ "G", -EINVAL, 0 },
	{ "9000000T", -ERANGE, 0 },
	{ "18446744073709551615", -ERANGE, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
};

static const struct {
	const char *text;
	int result;
	uint64_t ms;
} durations[] = {
	{ "30s", 0, 30000 },   { "30", 0, 30000 },	   { "0", 0, 0 },
	{ "200ms", 0, 200 },   { "1.5m", 0, 90000 },	   { "2h", 0, 7200000 },
	{ "1d", 0, 86400000 }, { "max", 0, QUANTITY_MAX }, { "s", -EINVAL, 0 },
	{ "1y", -EINVAL, 0 },  { "-1s", -EINVAL, 0 },
};

static const struct {
	const char *text;
	int result;
	uint32_t permille;
} percents[] = {
	{ "30", 0, 300 },    { "30%", 0, 300 },	    { "12.5%", 0, 125 }, { "0", 0, 0 },
	{ "100%", 0, 1000 }, { "101", -ERANGE, 0 }, { "%", -EINVAL, 0 }, { "30%%", -EINVAL, 0 },
};

static const uint64_t printed[] = { 0,	     1,		 1023,	      1024,	  1025,
				    1048583, 3ULL << 29, 80ULL << 30, 1ULL << 62, QUANTITY_MAX };

static void test_sizes(void)
{
	uint64_t v;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		v = 0;
		r = size_parse(sizes[i].text, &v);
		check(r == sizes[i].result && v == sizes[i].value, "size_parse: \"%s\"",
		      sizes[i].text);
	}
}

static void test_durations(void)
{
	uint64_t v;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(durations); i++) {
		v = 0;
		r = duration_parse(durations[i].text, &v);
		check(r == durations[i].result && v == durations[i].ms, "duration_parse: \"%s\"",
		      durations[i].text);
	}
}

static void test_percents(void)
{
	uint32_t v;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(percents); i++) {
		v = 0;
		r = percent_parse(percents[i].text, &v);
		check(r == percents[i].result && v == percents[i].permille, "percent_parse: \"%s\"",
		      percents[i].text);
	}
}

static void test_printing(void)
{
	char buf[QUANTITY_TEXT];
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(printed); i++) {
		v = 1;
		check(size_parse(size_print(printed[i], buf), &v) == 0 && v == printed[i],
		      "size_print: %llu reads back", (unsigned long long)printed[i]);
		check(duration_parse(duration_print(printed[i] / 4, buf), &v) == 0 &&
			      v == printed[i] / 4,
		      "duration_print: %llu reads back", (unsigned long long)printed[i] / 4);
	}
	check(str_eq(size_print(4ULL << 30, buf), "4G"), "size_print: the largest whole unit");
	check(str_eq(size_print_short(1048583, buf), "1.00M"), "size_print_short: three digits");
	check(str_eq(size_print_short(1000, buf), "1000"), "size_print_short: bytes have no point");
	check(str_eq(size_print_short(1023ULL << 20, buf), "1023M"),
	      "size_print_short: 1023 M is not yet 1 G");
	check(str_eq(duration_print(1500, buf), "1500ms"), "duration_print: no fractions");
	check(str_eq(percent_print(125, buf), "12.5%"), "percent_print: one decimal");
}

int main(void)
{
	test_sizes();
	test_durations();
	test_percents();
	test_printing();
	return check_result();
}
