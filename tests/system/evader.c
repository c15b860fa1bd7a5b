/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant that goes around the probes: evader HOW SIZE [LIBRARY-TO-COPY]
 *
 *	call	cuMemAlloc by its entry: no evasion
 *	copy	by a copy of libcuda in memory
 *	jump	past the entry, to where its jump leads
 *	byte	by the entry, after the probed byte was written back
 *
 * Prints the code of the allocation, and waits for the end of its input.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* The software GPU's entry: endbr64; jmp rel32. The probe is on the jump. */
#define JUMP	  4
#define JUMP_BYTE 0xe9
#define JUMP_END  9

typedef int (*alloc_fn)(uint64_t *, size_t);

static void *load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		exit(1);
	return library;
}

/* The copy is the only libcuda of this process: no probe was ever on it. */
static void *load_copy(const char *path)
{
	int from = open(path, O_RDONLY), to = memfd_create("anything", 0);
	char name[64];
	struct stat st;
	void *library;

	if (from < 0 || to < 0 || fstat(from, &st) ||
	    sendfile(to, from, NULL, st.st_size) != st.st_size)
		exit(1);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
	library = dlopen(name, RTLD_NOW);
	if (!library)
		exit(1);
	return library;
}

static void start(void *library)
{
	int (*init)(unsigned) = dlsym(library, "cuInit");
	int (*create)(void **, unsigned, int) = dlsym(library, "cuCtxCreate_v2");
	void *context;

	if (init(0) || create(&context, 0, 0))
		exit(1);
}

static alloc_fn write_byte_back(void *entry)
{
	uintptr_t page = (uintptr_t)entry & ~4095UL;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		exit(1);
	((volatile unsigned char *)entry)[JUMP] = JUMP_BYTE;
	return entry;
}

static alloc_fn behind(const char *entry)
{
	int32_t way;

	memcpy(&way, entry + JUMP + 1, sizeof(way));
	return (alloc_fn)(uintptr_t)(entry + JUMP_END + way);
}

int main(int argc, char **argv)
{
	void *library, *entry;
	uint64_t address;
	alloc_fn alloc;
	char c;

	if (argc < 3)
		return 2;
	library = strcmp(argv[1], "copy") == 0 ? load_copy(argv[3]) : load();
	start(library);
	entry = dlsym(library, "cuMemAlloc_v2");
	alloc = entry;
	if (strcmp(argv[1], "jump") == 0)
		alloc = behind(entry);
	else if (strcmp(argv[1], "byte") == 0)
		alloc = write_byte_back(entry);
	printf("%d\n", alloc(&address, strtoull(argv[2], NULL, 10)));
	fflush(stdout);
	return read(STDIN_FILENO, &c, 1) < 0;
}
