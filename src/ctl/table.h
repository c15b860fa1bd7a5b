/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text, columns as wide as their widest cell, and how values look in them.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "base/str.h"

#include <jansson.h>

#define TABLE_MAX_COLUMNS 12

/**
 * struct table - rows of cells, the first of them the heading
 */
struct table {
	size_t n_columns;
	char *(*rows)[TABLE_MAX_COLUMNS];
	size_t n_rows;
};

/**
 * table_begin() - the heading: the names of the columns, and NULL behind the last
 *
 * The table has as many columns from then on.
 */
void table_begin(struct table *table, ...) __attribute__((sentinel));

/**
 * table_add() - a row: a text for each column, whose memory is taken over; NULL shows as "-"
 */
void table_add(struct table *table, ...);

/**
 * table_print() - on standard output; a cell that is a number or a size stands right
 */
void table_print(const struct table *table);

void table_done(struct table *table);

/**
 * cell_text() - a copy of a JSON string; NULL for null or none
 */
char *cell_text(const json_t *value);

/**
 * cell_size() - a JSON number of bytes as people read it
 */
char *cell_size(const json_t *value);

/**
 * cell_number() - a JSON integer
 */
char *cell_number(const json_t *value);

/**
 * cell_ago() - a time in seconds since the epoch as "12s ago", "3h ago"
 */
char *cell_ago(const json_t *value);

#endif
