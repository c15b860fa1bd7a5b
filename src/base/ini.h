/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files in ini form, edited in place.
 *
 *	# a comment, kept
 *	[alice]
 *	match = user:alice
 *	memory.max = 8G
 *
 * A file is kept line by line, so that an edit by the command leaves an
 * administrator's comments, order and spacing as they were. Comments stand on
 * lines of their own (# or ;). Section names may be of any length, which is why
 * this is not a library: cgroup paths are long. Anything that is not a section,
 * an entry, a comment or blank is refused, never skipped.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include "base/str.h"

/* Refused above this: a configuration that large is a mistake. */
#define INI_MAX_BYTES (1 << 20)

/**
 * struct ini_error - why a file was refused
 * @line:	counted from 1; 0 when the reason is about the whole file
 */
struct ini_error {
	unsigned line;
	char reason[240];
};

/**
 * ini_refuse() - fill in an error
 *
 * Return: -EINVAL, so that `return ini_refuse(...)` hands it on.
 */
int ini_refuse(struct ini_error *error, unsigned line, const char *fmt, ...) PRINTF(3, 4);

enum ini_kind {
	INI_OTHER, /* blank or comment */
	INI_SECTION,
	INI_ENTRY,
};

/**
 * struct ini_line - one line of a file
 * @text:	the line as it stands, without the newline
 * @name:	of a section or entry
 * @value:	of an entry
 */
struct ini_line {
	enum ini_kind kind;
	char *text;
	char *name;
	char *value;
};

struct ini {
	struct ini_line *lines;
	size_t n_lines;
	size_t cap;
};

/**
 * ini_parse() - read a file's bytes
 * @ret:	released with ini_done(); untouched on failure
 *
 * Return: 0; -EINVAL with @error filled in; -ENOMEM.
 */
int ini_parse(const char *bytes, size_t len, struct ini *ret, struct ini_error *error);

/**
 * ini_find_section() - index of a section's heading, or -1
 */
ssize_t ini_find_section(const struct ini *ini, const char *section);

/**
 * ini_get() - the value of an entry, or NULL; it lives until the next edit
 */
const char *ini_get(const struct ini *ini, const char *section, const char *name);

/**
 * ini_set() - change an entry, or add it (and its section) at the fitting place
 */
int ini_set(struct ini *ini, const char *section, const char *name, const char *value);

/**
 * ini_unset() - take an entry out; nothing happens if it is not there
 */
void ini_unset(struct ini *ini, const char *section, const char *name);

/**
 * ini_remove_section() - take a section out with all its lines
 *
 * Comments directly above the next heading belong to that one and stay.
 *
 * Return: whether there was one.
 */
bool ini_remove_section(struct ini *ini, const char *section);

/**
 * ini_print() - the whole file; the caller frees it
 */
char *ini_print(const struct ini *ini);

void ini_done(struct ini *ini);

#endif
