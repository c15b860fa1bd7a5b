/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include "base/check.h"
#include "offsets.h"

#define GOOD "[build]\nbuild-id = 0123456789abcdef\ndriver = 550.163.01\n[calls]\n"

static const struct {
	const char *what;
	const char *text;
	unsigned line;
	const char *reason; /* NULL where the file is good */
} cases[] = {
	{ "a file", GOOD "cuMemAlloc_v2 = 0x2a41c0\n", 0, NULL },
	{ "a call of a newer driver", GOOD "cuMemAllocFuture = 0x10\n", 0, NULL },
	{ "no build-id", "[build]\ndriver = 1\n[calls]\ncuInit = 0x10\n", 0,
	  "build-id is missing" },
	{ "no calls", GOOD, 0, "[calls] is empty" },
	{ "a build-id that is none", "[build]\nbuild-id = /etc\n", 2, "digits" },
	{ "a short build-id", "[build]\nbuild-id = 0123\n", 2, "digits" },
	{ "an entry that is not known", "[build]\nversion = 1\n", 2, "[build] has" },
	{ "an entry outside of sections", "build-id = 0123456789abcdef\n", 1, "section" },
	{ "a section that is not known", "[more]\na = b\n", 2, "belong" },
	{ "an address in decimal", GOOD "cuMemAlloc_v2 = 2771392\n", 5, "not an address" },
	{ "an address with a sign", GOOD "cuMemAlloc_v2 = -0x10\n", 5, "not an address" },
	{ "an address of nothing", GOOD "cuMemAlloc_v2 = 0x\n", 5, "not an address" },
	{ "an address with more behind it", GOOD "cuMemAlloc_v2 = 0x10 + 4\n", 5,
	  "not an address" },
	{ "an address beyond 64 bits", GOOD "cuMemAlloc_v2 = 0x10000000000000000\n", 5,
	  "not an address" },
	{ "address 0", GOOD "cuMemAlloc_v2 = 0x0\n", 5, "not an address" },
	{ "a call twice", GOOD "cuInit = 0x10\ncuInit = 0x20\n", 6, "twice" },
	{ "a call of another library", GOOD "malloc = 0x10\n", 5, "no call of libcuda" },
};

static void test_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct offsets offsets = {};
		struct ini_error error = {};
		int r = offsets_parse(cases[i].text, strlen(cases[i].text), &offsets, &error);

		check(cases[i].reason ? r == -EINVAL && error.line == cases[i].line &&
						strstr(error.reason, cases[i].reason)
				      : r == 0,
		      "offsets_parse: %s%s", cases[i].what, cases[i].reason ? " is refused" : "");
		offsets_done(&offsets);
	}
}

/* This very program is an ELF file: it has no call of libcuda, and code at some address. */
static void test_apply(void)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct library_image image = {};
	struct offsets offsets = {};
	struct ini_error error = {};

	check(library_read(fd, LIBRARY_ALL, &image) == 0 && image.n_calls == 0 && image.n_code > 0,
	      "library_read: a program that has no call of libcuda");
	offsets_add(&offsets, "cuMemAlloc_v2", image.code[0].address + 16);
	offsets_add(&offsets, "cuMemFree_v2", image.code[0].address + image.code[0].size);
	check(offsets_apply(&offsets, fd, &image, &error) == -EINVAL && image.n_calls == 0 &&
		      strstr(error.reason, "cuMemFree_v2"),
	      "offsets_apply: one address outside the code, and none is taken");
	offsets.n_calls = 1;
	check(offsets_apply(&offsets, fd, &image, &error) == 0 &&
		      library_has(&image, "cuMemAlloc_v2") &&
		      image.calls[0].offset == image.code[0].offset + 16,
	      "offsets_apply: an address in the code is an offset in the file");
	library_image_done(&image);
	offsets_done(&offsets);
}

int main(void)
{
	test_cases();
	test_apply();
	return check_result();
}
