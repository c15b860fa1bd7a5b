// SPDX-License-Identifier: Apache-2.0
#include "softgpu/state/config.h"
#include "softgpu/state/value.h"
#include "softgpu/util/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text_case {
	const char *what;
	const char *text;
	int r;
};

static const struct text_case text_cases[] = {
	{ "config_parse: empty", "", 0 },
	{ "config_parse: comments and blanks", "# a\n; b\n\n  \t\n", 0 },
	{ "config_parse: no newline at the end", "devices = 1", 0 },
	{ "config_parse: every setting of a device",
	  "[device 1]\nname = X\nmemory = 24G\nsms=82\ncompute=8.6\nclock=1695\n"
	  "memory-clock=9751\npower=350\ncontext=512MiB\n"
	  "uuid=GPU-00000000-1111-2222-3333-444444444444\npci=0001:3b:00.0\n",
	  0 },
	{ "config_parse: unknown setting", "colour = blue\n", CONFIG_E_BAD },
	{ "config_parse: no assignment", "devices\n", CONFIG_E_BAD },
	{ "config_parse: empty value", "devices =\n", CONFIG_E_BAD },
	{ "config_parse: device out of range", "[device 32]\n", CONFIG_E_BAD },
	{ "config_parse: unfinished section", "[device 1\n", CONFIG_E_BAD },
	{ "config_parse: foreign section", "[gpu]\n", CONFIG_E_BAD },
	{ "config_parse: setting of the machine in a section", "[device 0]\ndevices = 1\n",
	  CONFIG_E_BAD },
	{ "config_parse: one uuid for all", "uuid=GPU-00000000-1111-2222-3333-444444444444\n",
	  CONFIG_E_BAD },
	{ "config_parse: zero devices", "devices = 0\n", CONFIG_E_BAD },
	{ "config_parse: too many devices", "devices = 33\n", CONFIG_E_BAD },
	{ "config_parse: size beyond 64 bits", "memory = 99999999999999999999G\n", CONFIG_E_BAD },
	{ "config_parse: negative size", "memory = -1G\n", CONFIG_E_BAD },
	{ "config_parse: relative folder", "dir = here\n", CONFIG_E_BAD },
	{ "config_parse: slice too short", "slice = 10us\n", CONFIG_E_BAD },
	{ "config_parse: sample period too long", "sample-period = 2s\n", CONFIG_E_BAD },
	{ "config_parse: how long an end waits", "end-wait = 100ms\n", 0 },
	{ "config_parse: a bound of host memory", "host-memory = 8G\n", 0 },
	{ "config_parse: which kernels are compiled", "jit = auto\njit = 0\njit = 1\n", 0 },
	{ "config_parse: compiled by another word", "jit = yes\n", CONFIG_E_BAD },
	{ "config_parse: no host memory", "host-memory = 0\n", CONFIG_E_BAD },
	{ "config_parse: sample period of 1/6 s", "sample-period = 166667us\n", 0 },
};

static void test_texts(void)
{
	static struct softgpu_config config;
	const struct text_case *c;

	for (size_t i = 0; i < sizeof(text_cases) / sizeof(text_cases[0]); i++) {
		c = &text_cases[i];
		config_default(&config);
		check(config_parse(&config, c->text, strlen(c->text), "test") == c->r, c->what);
	}
}

static void test_sections(void)
{
	static const char text[] = "memory = 40G\n[device 1]\nmemory = 1.5G\n";
	static struct softgpu_config config;

	config_default(&config);
	config_parse(&config, text, strlen(text), "test");
	check(config.devices[0].memory_bytes == 40ull << 30 &&
		      config.devices[1].memory_bytes == 1536ull << 20,
	      "config_parse: a section overrides what is for all");
}

struct size_case {
	const char *text;
	uint64_t bytes; /* 0: refused */
};

static void test_sizes(void)
{
	static const struct size_case cases[] = {
		{ "80G", 80ull << 30 },
		{ "512MiB", 512ull << 20 },
		{ "1.5g", 1536ull << 20 },
		{ "64mb", 64ull << 20 },
		{ "1048576", 1048576 },
		{ "1T", 1ull << 40 },
		{ "0.25K", 256 },
		{ "G", 0 },
		{ "1.G", 0 },
		{ "1 G", 0 },
		{ "1GG", 0 },
		{ "1.0000001G", 0 },
		{ "18446744073709551616", 0 },
		{ "16777216T", 0 },
	};
	uint64_t bytes;
	char what[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bytes = 0;
		value_size(cases[i].text, &bytes);
		snprintf(what, sizeof(what), "value_size: %s", cases[i].text);
		check(bytes == cases[i].bytes, what);
	}
}

static void test_variables(void)
{
	static struct softgpu_config config;
	char uuid[CONFIG_UUID_TEXT];

	setenv("SOFTGPU_DEVICES", "3", 1);
	setenv("SOFTGPU_MEMORY", "80G, 24G", 1);
	setenv("SOFTGPU_UUID", "GPU-00000000-1111-2222-3333-444444444444", 1);
	setenv("SOFTGPU_KERNEL_NS", "5000000", 1);
	check(config_load(&config) == 0, "config_load: from variables");
	check(config.n_devices == 3, "config_load: number of devices");
	check(config.devices[0].memory_bytes == 80ull << 30 &&
		      config.devices[1].memory_bytes == 24ull << 30 &&
		      config.devices[2].memory_bytes == 24ull << 30,
	      "config_load: the last of a list is for all that follow");
	config_uuid_print(config.devices[0].uuid, uuid);
	check(strcmp(uuid, "GPU-00000000-1111-2222-3333-444444444444") == 0,
	      "config_load: UUID of the first device");
	check(memcmp(config.devices[1].uuid, config.devices[2].uuid, 16) != 0,
	      "config_load: UUIDs that are not given differ");
	check(config.kernel_ns_given && config.kernel_ns == 5000000,
	      "config_load: nanoseconds without a unit");

	setenv("SOFTGPU_MEMORY", "lots", 1);
	check(config_load(&config) == CONFIG_E_BAD, "config_load: bad value of a variable");
	unsetenv("SOFTGPU_MEMORY");
	setenv("SOFTGPU_PCI", "01:00.0,01:00.0", 1);
	check(config_load(&config) == CONFIG_E_BAD, "config_load: two devices at one PCI id");
	unsetenv("SOFTGPU_PCI");
	setenv("SOFTGPU_CONFIG", "/nonexistent", 1);
	check(config_load(&config) < 0, "config_load: no such file");
}

int main(void)
{
	test_texts();
	test_sections();
	test_sizes();
	test_variables();
	return n_failed != 0;
}
