/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/file.h"
#include "base/str.h"
#include "base/trim.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FREED 64
#define PIECE 32768

#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/* Each is written by a relocation and then made read-only. */
static const char *const words[] = { "some", "words", "that", "are", "relocated" };
static int (*const volatile functions[])(const char *, const char *) = { strcmp, strcasecmp };

/* In KiB, exactly: the number in "status" may be off by some pages. */
static unsigned long resident(void)
{
	char *text = NULL, *line;
	unsigned long n = 0;

	if (file_read_at(AT_FDCWD, "/proc/self/smaps_rollup", 65536, &text, NULL) == 0) {
		line = strstr(text, "\nRss:");
		n = line ? strtoul(line + strlen("\nRss:"), NULL, 10) : 0;
	}
	free(text);
	return n;
}

static unsigned long n_read;

static int read_object(struct dl_phdr_info *object, _unused_ size_t size, _unused_ void *userdata)
{
	const volatile char *at;
	size_t offset;
	int i;

	for (i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type != PT_LOAD || object->dlpi_phdr[i].p_flags & PF_W ||
		    !(object->dlpi_phdr[i].p_flags & PF_R))
			continue;
		at = (const char *)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
		for (offset = 0; offset < object->dlpi_phdr[i].p_filesz; offset += 4096) {
			n_read += at[offset] != 0;
		}
	}
	return 0;
}

static void freed_goes(void)
{
	unsigned long before, freed;
	char *pieces[FREED];
	int i;

	for (i = 0; i < FREED; i++) {
		pieces[i] = malloc(PIECE);
		if (!pieces[i])
			abort();
		memset(pieces[i], 1, PIECE);
	}
	before = resident();
	/* The last holds the end of the heap. */
	for (i = 0; i < FREED - 1; i++)
		free(pieces[i]);
	trim_memory();
	freed = before - resident();
	check(before > resident() && freed >= (FREED - 2) * PIECE / 1024,
	      "trim_memory: what was freed goes, also below what is not");
	free(pieces[FREED - 1]);
}

int main(void)
{
	unsigned long before, after;

	dl_iterate_phdr(read_object, NULL);
	before = resident();
	trim_memory();
	after = resident();
	check(n_read > 0 && after > 0 && after + 1024 < before,
	      "trim_memory: code of libraries that is not in use goes");
	check(functions[0](words[4], "relocated") == 0 && functions[1](words[0], "SOME") == 0,
	      "trim_memory: what was relocated stays");
	if (IS_SANITIZED)
		printf("skip 'what was freed': AddressSanitizer has an allocator of its own\n");
	else
		freed_goes();
	return check_result();
}
