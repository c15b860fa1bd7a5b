/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that tell where the calls of a build of libcuda are, for builds whose symbols do not.
 *
 *	[build]
 *	build-id = 8d4a6c1f0e2b...	# of the library, from its ELF note
 *	driver = 550.163.01		# optional; what NVML says must be the same
 *	cuda = 12.4			# optional, likewise
 *
 *	[calls]
 *	cuMemAlloc_v2 = 0x2a41c0	# its address less the load address
 *
 * A probe at a wrong address breaks programs, so nothing is guessed: a file is for the one build
 *that it names, and is refused as a whole when any line of it is wrong.
 */
#ifndef AUDIT_OFFSETS_H
#define AUDIT_OFFSETS_H

#include "base/ini.h"
#include "library.h"

#define OFFSETS_VERSION 32

struct offsets_call {
	char name[LIBRARY_NAME];
	uint64_t address;
	unsigned line;
};

struct offsets {
	char build_id[LIBRARY_BUILD_ID];
	char driver[OFFSETS_VERSION];
	char cuda[OFFSETS_VERSION];
	struct offsets_call *calls;
	size_t n_calls;
};

/** offsets_parse() - read a file's bytes. Return: 0; -EINVAL with @error filled in; -ENOMEM */
int offsets_parse(const char *bytes, size_t len, struct offsets *ret, struct ini_error *error);

/** offsets_print() - a file with these offsets; the caller frees it */
char *offsets_print(const struct offsets *offsets);

/** offsets_add() - add a call */
int offsets_add(struct offsets *offsets, const char *name, uint64_t address);

/**
 * offsets_apply() - add a file's calls to those of the library that it is for
 *
 * Return: 0; -EINVAL with @error filled in, and @image as it was; -ENOMEM.
 */
int offsets_apply(const struct offsets *offsets, int fd, struct library_image *image,
		  struct ini_error *error);

void offsets_done(struct offsets *offsets);

/**
 * struct offsets_file - a file of the folder
 * @refused:	it is not used, for @error
 */
struct offsets_file {
	char *path;
	struct offsets offsets;
	bool refused;
	struct ini_error error;
};

struct offsets_dir {
	struct offsets_file *files;
	size_t n_files;
};

/** offsets_dir_load() - read all *.conf of a folder in the order of their names; no folder, no
 * files */
int offsets_dir_load(const char *dir, struct offsets_dir *ret);

/** offsets_dir_find() - the file for a build; a refused one is none. Return: NULL if there is none
 */
struct offsets_file *offsets_dir_find(const struct offsets_dir *dir, const char *build_id);

void offsets_dir_done(struct offsets_dir *dir);

#endif
