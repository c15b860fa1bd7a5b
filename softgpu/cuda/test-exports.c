// SPDX-License-Identifier: Apache-2.0
/*
 * What a libcuda exports, and what its cuGetProcAddress() answers.
 *
 * test-exports LIBRARY all|push|procaddr|driver535|driver550|forward
 *
 * The expected answers are worked out here from calls.def, row by row, in another way than the
 * library does it.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cuda/calls.h"
#include "src/cuda/cuda_abi.h"
#include "softgpu/util/check.h"

static const struct kind {
	const char *name;
	unsigned drivers; /* whose calls it knows */
	int version;
	bool only_look_up; /* exports nothing else */
	unsigned char entry[4];
	size_t n_entry;
	bool never_probed; /* nobody answers a call in its place */
} kinds[] = {
	{ "all", DRIVERS_ALL, 13000, false, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, false },
	{ "push", DRIVERS_ALL, 13000, false, { 0x55 }, 1, false },
	{ "procaddr", DRIVERS_ALL, 13000, true, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, false },
	{ "driver535", DRIVER_535, 12020, false, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, false },
	{ "forward", DRIVERS_ALL, 13000, false, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, true },
	{ "driver550", DRIVER_550, 12040, false, { 0xf3, 0x0f, 0x1e, 0xfa }, 4, false },
};

static const struct kind *kind;
static void *library;
static void *addresses[CALL_N]; /* of exported names */

typedef CUresult (*look_up_fn)(const char *, void **, int, cuuint64_t,
			       CUdriverProcAddressQueryResult *);
static look_up_fn look_up;

static bool is_exported(const struct call *call)
{
	if (kind->only_look_up)
		return !strcmp(call->base, "cuGetProcAddress");
	return call->drivers & kind->drivers;
}

static bool is_call(const char *name)
{
	int i;

	for (i = 0; i < CALL_N; i++)
		if (!strcmp(calls[i].name, name))
			return true;
	return false;
}

/* All names there are, for dlsym() finds only what it is asked for. */
static void check_others(const char *path)
{
	int n_names = 0, n_wrong = 0;
	char command[4096], name[256];
	FILE *listing;

	snprintf(command, sizeof(command), "nm -D --defined-only '%s'", path);
	listing = popen(command, "r");
	while (listing && fscanf(listing, "%*s %*s %255s", name) == 1) {
		n_names++;
		if (is_call(name))
			continue;
		printf("# %s is exported and no call\n", name);
		n_wrong++;
	}
	check(listing && pclose(listing) == 0 && n_names && !n_wrong, "exports nothing but calls");
}

static void check_names(void)
{
	int n_wrong = 0, i;

	for (i = 0; i < CALL_N; i++) {
		addresses[i] = dlsym(library, calls[i].name);
		if (!!addresses[i] == is_exported(&calls[i]))
			continue;
		printf("# %s is %sexported\n", calls[i].name, addresses[i] ? "" : "not ");
		n_wrong++;
	}
	check(n_wrong == 0, "exports of all calls those of its set");
}

static int by_address(const void *a, const void *b)
{
	uintptr_t first = (uintptr_t) * (void *const *)a, second = (uintptr_t) * (void *const *)b;

	return first < second ? -1 : first > second;
}

/* Read, not mapped: the kernel puts probes into mappings of a file, too. */
static unsigned char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char *file = NULL;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		file = malloc((size_t)st.st_size);
	if (file && read(fd, file, (size_t)st.st_size) != st.st_size) {
		free(file);
		file = NULL;
	}
	if (fd >= 0)
		close(fd);
	return file;
}

/*
 * Where an address of the library is in its file. Its code in memory may have probes on it, where
 * a daemon watches the machine.
 */
static const unsigned char *in_file(const unsigned char *file, const void *address)
{
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Phdr *part = (const void *)(file + head->e_phoff);
	struct link_map *map = NULL;
	uint64_t at;
	int i;

	if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		return NULL;
	at = (uintptr_t)address - map->l_addr;
	for (i = 0; i < head->e_phnum; i++, part++)
		if (part->p_type == PT_LOAD && at - part->p_vaddr < part->p_filesz)
			return file + part->p_offset + (at - part->p_vaddr);
	return NULL;
}

static void check_entries(const char *path)
{
	unsigned char *file = read_file(path);
	int n_other = 0, n_no_return = 0, i;

	for (i = 0; i < CALL_N; i++) {
		const unsigned char *code =
			file && addresses[i] ? in_file(file, addresses[i]) : NULL;

		if (!addresses[i])
			continue;
		n_other += !code || memcmp(code, kind->entry, kind->n_entry) != 0;
		n_no_return += !code || !memchr(code, 0xc3, 16);
	}
	check(n_other == 0, "each entry begins as this library's do");
	check(kind->never_probed || n_no_return == 0, "each entry has a return instruction");
	free(file);
}

static void check_addresses(void)
{
	void *sorted[CALL_N];
	int n = 0, n_same = 0, i;

	for (i = 0; i < CALL_N; i++)
		if (addresses[i])
			sorted[n++] = addresses[i];
	qsort(sorted, (size_t)n, sizeof(sorted[0]), by_address);
	for (i = 1; i < n; i++)
		n_same += sorted[i] == sorted[i - 1];
	check(n_same == 0, "each name has an address of its own");
}

/* The row of calls.def that a program of @version gets, or NULL with the status. */
static const struct call *expected(const char *base, int version, bool per_thread, int *ret_status)
{
	const struct call *best = NULL;
	bool has_twin = false, exists = false;
	int i;

	for (i = 0; i < CALL_N; i++)
		has_twin |= calls[i].drivers & kind->drivers && calls[i].version &&
			    calls[i].stream == STREAM_PER_THREAD && !strcmp(calls[i].base, base);
	for (i = 0; i < CALL_N; i++) {
		if (!(calls[i].drivers & kind->drivers) || !calls[i].version ||
		    strcmp(calls[i].base, base) != 0)
			continue;
		exists = true;
		if ((calls[i].stream == STREAM_PER_THREAD) != (per_thread && has_twin))
			continue;
		if (calls[i].version <= version && (!best || best->version < calls[i].version))
			best = &calls[i];
	}
	*ret_status = best     ? CU_GET_PROC_ADDRESS_SUCCESS
		      : exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return best;
}

static bool answers_as_expected(const char *base, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status = 77;
	void *address = &n_failed;
	const struct call *call;
	int expected_status;
	CUresult r = look_up(base, &address, version, flags, &status);

	call = expected(base, version, flags & 2, &expected_status);
	if (r == CUDA_SUCCESS && (int)status == expected_status && !!address == !!call &&
	    (!call || kind->only_look_up || address == addresses[call - calls]))
		return true;
	printf("# %s at %d, flags %llu: result %d, status %d\n", base, version,
	       (unsigned long long)flags, r, status);
	return false;
}

static void check_look_up(void)
{
	static const int versions[] = { 0,     2000,  2010,  2020,  2030,  3000,  3010,
					3020,  4000,  4010,  5000,  5050,  6000,  6050,
					7000,  7050,  8000,  9000,  9010,  9020,  10000,
					10010, 10020, 11000, 11010, 11020, 11030, 11040,
					11060, 11070, 11080, 12000, 12010, 12020, 12030,
					12040, 12050, 12060, 12080, 12090, 13000, 99999 };
	int n_wrong = 0, i;
	cuuint64_t flags;
	size_t v;

	for (i = 0; i < CALL_N; i++) {
		if (i && !strcmp(calls[i].base, calls[i - 1].base))
			continue;
		for (v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)
			for (flags = 0; flags < 4; flags++)
				n_wrong += !answers_as_expected(calls[i].base, versions[v], flags);
	}
	check(n_wrong == 0, "every name, at every version and flag, is answered as calls.def says");
}

static void check_odd_requests(void)
{
	CUresult (*first)(const char *, void **, int, cuuint64_t);
	CUdriverProcAddressQueryResult status = 77;
	void *address = &n_failed;

	check(look_up("", &address, 0, 0, &status) == CUDA_SUCCESS && !address && status == 1,
	      "the empty name is no error, and not there");
	check(look_up("cuMemAlloc_v2", &address, 13000, 0, &status) == CUDA_SUCCESS && !address,
	      "nor is a name with suffix");
	address = &n_failed;
	check(look_up("cuMemAlloc", &address, 13000, 4, &status) == CUDA_ERROR_INVALID_VALUE &&
		      address == &n_failed,
	      "an unknown flag is an error and changes nothing");
	check(look_up("cuMemAlloc", &address, 13000, 0, NULL) == 0, "no status is wanted");
	check(look_up(NULL, &address, 13000, 0, &status) == CUDA_ERROR_INVALID_VALUE, "no name");
	check(look_up("cuInit", NULL, 13000, 0, &status) == CUDA_ERROR_INVALID_VALUE, "no place");

	*(void **)&first = dlsym(library, "cuGetProcAddress");
	address = &n_failed;
	check(first("cuMemAlloc_v2", &address, 12000, 0) == CUDA_ERROR_NOT_FOUND &&
		      first("cuMemAllocAsync", &address, 4000, 0) == CUDA_ERROR_NOT_FOUND &&
		      address == &n_failed,
	      "the first form: what is not there is an error");
	check(first("cuMemAlloc", &address, 4000, 0) == CUDA_SUCCESS && address != &n_failed,
	      "the first form: what is there");
}

static void check_version(void)
{
	CUresult (*get_version)(int *) = NULL;
	int version = 0;

	look_up("cuDriverGetVersion", (void **)&get_version, 13000, 0, NULL);
	check(get_version && get_version(&version) == CUDA_SUCCESS && version == kind->version,
	      "tells its version");
}

static void check_export_tables(void)
{
	CUresult (*get_table)(const void **, const CUuuid *) = NULL;
	const void *table = &n_failed;
	CUuuid id = { { 1, 2, 3 } };

	look_up("cuGetExportTable", (void **)&get_table, 13000, 0, NULL);
	check(get_table && get_table(&table, &id) == CUDA_ERROR_NOT_FOUND && !table,
	      "has no private tables");
}

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, argv[2]))
			kind = &kinds[i];
	library = argc == 3 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
	if (!kind || !library) {
		fprintf(stderr, "test-exports: %s\n", argc == 3 ? dlerror() : "LIBRARY KIND");
		return 1;
	}
	*(void **)&look_up = dlsym(library, "cuGetProcAddress_v2");
	if (!look_up)
		return 1;
	check_names();
	check_others(argv[1]);
	check_addresses();
	check_entries(argv[1]);
	check_look_up();
	check_odd_requests();
	check_version();
	check_export_tables();
	return n_failed != 0;
}
