/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that a test has made for itself, at its end. */
#pragma once

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

/* What is gone already is as it should be. */
static int test_dir_entry_remove(const char *path, _unused_ const struct stat *st,
				 _unused_ int type, _unused_ struct FTW *at)
{
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/** test_dir_remove() - with all that is in it. Return: 0, or -1. */
static inline int test_dir_remove(const char *dir)
{
	return nftw(dir, test_dir_entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}
