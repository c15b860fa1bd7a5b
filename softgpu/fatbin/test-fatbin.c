// SPDX-License-Identifier: Apache-2.0
/*
 * The reader on images built here: every way of packing, the choice between alternatives,
 * relocatable code, linked images, and each kind of lie that a header can tell.
 */
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "softgpu/fatbin/fatbin.h"
#include "softgpu/fatbin/format.h"
#include "softgpu/util/check.h"

/* A fat binary under construction. */
struct build {
	_Alignas(8) uint8_t bytes[8192];
	size_t n;
};

static struct fatbin_header *build_header(struct build *build)
{
	return (struct fatbin_header *)build->bytes;
}

static struct build *build_new(void)
{
	struct build *build = calloc(1, sizeof(*build));

	*build_header(build) = (struct fatbin_header){
		.magic = FATBIN_MAGIC, .version = 1, .header_bytes = sizeof(struct fatbin_header)
	};
	build->n = sizeof(struct fatbin_header);
	return build;
}

static struct fatbin_entry *build_entry(struct build *build, unsigned int kind, unsigned int arch,
					const void *payload, size_t n)
{
	struct fatbin_entry *entry = (void *)(build->bytes + build->n);

	*entry = (struct fatbin_entry){
		.kind = kind,
		.version = 0x101,
		.header_bytes = sizeof(*entry),
		.padded_bytes = (n + 7) & ~(size_t)7,
		.arch = arch,
	};
	memcpy(entry + 1, payload, n);
	build->n += sizeof(*entry) + entry->padded_bytes;
	build_header(build)->entries_bytes += sizeof(*entry) + entry->padded_bytes;
	return entry;
}

static struct fatbin_entry *build_text(struct build *build, unsigned int arch, const char *text)
{
	return build_entry(build, FATBIN_KIND_PTX, arch, text, strlen(text) + 1);
}

static struct fatbin_entry *build_packed(struct build *build, uint64_t flag, const char *text)
{
	struct fatbin_entry *entry;
	char packed[2048];
	size_t len = strlen(text) + 1, n;

	if (flag == FATBIN_FLAG_ZSTD)
		n = ZSTD_compress(packed, sizeof(packed), text, len, 3);
	else
		n = LZ4_compress_default(text, packed, (int)len, sizeof(packed));
	entry = build_entry(build, FATBIN_KIND_PTX, 75, packed, n);
	entry->flags = flag;
	entry->packed_bytes = n;
	entry->unpacked_bytes = len;
	return entry;
}

/* Bounds every read to one build, as if memory ended behind it. */
static size_t build_reach(void *arg, const void *addr)
{
	struct build *build = arg;
	const uint8_t *at = addr;

	return at >= build->bytes && at < build->bytes + build->n ? build->bytes + build->n - at
								  : 0;
}

/* Reads and frees a build: whether the answer is @answer, and if that is 0, the first text @text.
 */
static bool reads(struct build *build, unsigned int arch, int answer, const char *text)
{
	struct fatbin_reach reach = { build_reach, build };
	struct fatbin_image *image = NULL;
	int r = fatbin_read(build->bytes, &reach, arch, &image);
	bool good = r == answer && (r != 0 || strcmp(image->ptx[0].text, text) == 0);

	fatbin_image_free(image);
	free(build);
	return good;
}

/* What machine code is for is told where there is no PTX. */
static void test_archs(void)
{
	struct build *build = build_new();
	struct fatbin_reach reach = { build_reach, build };
	struct fatbin_image *image = NULL;
	int r;

	for (unsigned int arch = 75; arch <= 90; arch += 15)
		for (int twice = 0; twice < 2; twice++)
			build_entry(build, FATBIN_KIND_ELF, arch, "code", 4);
	r = fatbin_read(build->bytes, &reach, 90, &image);
	check(r == FATBIN_E_NO_PTX && image->n_ptx == 0 && image->n_archs == 2 &&
		      image->archs[0] == 75 && image->archs[1] == 90,
	      "architectures of machine code");
	fatbin_image_free(image);
	free(build);
}

static void test_packing(void)
{
	static const uint64_t flags[] = { FATBIN_FLAG_ZSTD, FATBIN_FLAG_LZ4 };
	char text[1000];
	struct build *build;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';

	build = build_new();
	build_text(build, 75, "plain");
	check(reads(build, 90, 0, "plain"), "plain PTX");

	for (size_t i = 0; i < 2; i++) {
		build = build_new();
		build_packed(build, flags[i], text);
		check(reads(build, 90, 0, text), i ? "LZ4" : "zstd");

		build = build_new();
		build_packed(build, flags[i], text)->unpacked_bytes += 1;
		check(reads(build, 90, FATBIN_E_INVALID, NULL), "wrong unpacked size");

		build = build_new();
		build_packed(build, flags[i], text)->unpacked_bytes = (uint64_t)1 << 60;
		check(reads(build, 90, FATBIN_E_INVALID, NULL), "huge unpacked size");

		build = build_new();
		build_packed(build, flags[i], text)->packed_bytes += 4096;
		check(reads(build, 90, FATBIN_E_INVALID, NULL), "packed size beyond the payload");
	}

	build = build_new();
	build_packed(build, FATBIN_FLAG_LZ4, text)->flags = 0;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "unknown packing");
}

static void test_choice(void)
{
	static const struct {
		unsigned int arch;
		const char *text, *what;
	} cases[] = {
		{ 90, "eighty", "the highest capability that the device has" },
		{ 80, "eighty", "exactly the device's capability" },
		{ 75, "seventy", "not one above the device's" },
		{ 60, "seventy", "the lowest of those above, if all are" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct build *build = build_new();

		build_text(build, 120, "hundred");
		build_text(build, 75, "seventy");
		build_entry(build, FATBIN_KIND_ELF, 90,
			    "\x7f"
			    "ELF",
			    4);
		build_text(build, 80, "eighty");
		check(reads(build, cases[i].arch, 0, cases[i].text), cases[i].what);
	}
}

static void test_damage(void)
{
	struct build *build;

	build = build_new();
	check(reads(build, 90, FATBIN_E_NO_PTX, NULL), "nothing in it");

	build = build_new();
	build_entry(build, FATBIN_KIND_ELF, 90,
		    "\x7f"
		    "ELF",
		    4);
	check(reads(build, 90, FATBIN_E_NO_PTX, NULL), "machine code only");

	build = build_new();
	build_text(build, 75, "text");
	build->n -= 8;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "truncated");

	build = build_new();
	build_text(build, 75, "text")->header_bytes = 8;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "entry's header too short");

	build = build_new();
	build_text(build, 75, "text")->padded_bytes = UINT64_MAX - 7;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "payload wraps around");

	build = build_new();
	build_text(build, 75, "text");
	build_header(build)->entries_bytes = UINT64_MAX;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "entries beyond memory");

	build = build_new();
	build_header(build)->magic = 0;
	check(reads(build, 90, FATBIN_E_INVALID, NULL), "no magic");

	build = build_new();
	build_header(build)->magic = 0x464c457f;
	check(reads(build, 90, FATBIN_E_NO_PTX, NULL), "bare machine code");
}

static bool reads_bare(const void *addr, int answer, size_t n_ptx, const char *last)
{
	struct fatbin_image *image = NULL;
	int r = fatbin_read(addr, &fatbin_reach_process, 90, &image);
	bool good = r == answer && (r != 0 || (image->n_ptx == n_ptx &&
					       strcmp(image->ptx[n_ptx - 1].text, last) == 0));

	fatbin_image_free(image);
	return good;
}

static void test_wrappers(void)
{
	struct build *first = build_new(), *second = build_new(), *behind = build_new();
	const void *units[] = { first->bytes, second->bytes, NULL };
	struct fatbin_wrapper wrapper = { FATBIN_WRAPPER_MAGIC, 1, second->bytes, NULL };

	build_text(first, 75, "first");
	build_text(second, 75, "second");
	check(reads_bare(&wrapper, 0, 1, "second"), "wrapper");

	/* An empty fat binary, and the one that counts right behind it. */
	memcpy(behind->bytes + behind->n, first->bytes, first->n);
	wrapper.data = behind->bytes;
	check(reads_bare(&wrapper, 0, 1, "first"), "an empty fat binary comes first");

	wrapper = (struct fatbin_wrapper){ FATBIN_WRAPPER_MAGIC, 2, NULL, units };
	check(reads_bare(&wrapper, 0, 2, "second"), "units of relocatable code");

	wrapper.version = 3;
	check(reads_bare(&wrapper, FATBIN_E_INVALID, 0, NULL), "unknown version of the wrapper");

	wrapper = (struct fatbin_wrapper){ FATBIN_WRAPPER_MAGIC, 1, (void *)16, NULL };
	check(reads_bare(&wrapper, FATBIN_E_INVALID, 0, NULL), "pointer to nowhere");
	check(reads_bare((void *)8, FATBIN_E_INVALID, 0, NULL), "image nowhere");
	check(reads_bare(NULL, FATBIN_E_INVALID, 0, NULL), "no image");
	check(reads_bare("// text\n.version 8.0", 0, 1, "// text\n.version 8.0"), "plain text");

	free(first);
	free(second);
	free(behind);
}

static void test_link(void)
{
	struct fatbin_ptx ptx[] = { { "one", 3, 75 }, { "two..", 5, 90 } };
	void *linked = NULL;
	size_t size = 0;

	check(fatbin_link(ptx, 2, &linked, &size) == 0 && size % 8 == 0, "two modules linked");
	check(reads_bare(linked, 0, 2, "two.."), "a linked image gives back every module");
	free(linked);
}

int main(void)
{
	test_packing();
	test_archs();
	test_choice();
	test_damage();
	test_wrappers();
	test_link();
	return n_failed > 0;
}
