/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/table.h"

#include "base/quantity.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <time.h>

/* Return: the cells, or NULL where there is no memory: then the row is left out. */
static char **add_row(struct table *table)
{
	void *rows = reallocarray(table->rows, table->n_rows + 1, sizeof(*table->rows));

	if (!rows)
		return NULL;
	table->rows = rows;
	return table->rows[table->n_rows++];
}

void table_begin(struct table *table, ...)
{
	char **row = add_row(table);
	const char *name;
	va_list ap;

	va_start(ap, table);
	for (table->n_columns = 0; (name = va_arg(ap, const char *)); table->n_columns++) {
		assert(table->n_columns < TABLE_MAX_COLUMNS);
		if (row)
			row[table->n_columns] = strdup(name);
	}
	va_end(ap);
}

void table_add(struct table *table, ...)
{
	char **row = add_row(table), *cell;
	va_list ap;
	size_t i;

	va_start(ap, table);
	for (i = 0; i < table->n_columns; i++) {
		cell = va_arg(ap, char *);
		if (row)
			row[i] = cell;
		else
			free(cell);
	}
	va_end(ap);
}

static const char *cell(const struct table *table, size_t row, size_t column)
{
	const char *s = table->rows[row][column];

	return s ? s : "-";
}

static int width(const struct table *table, size_t column)
{
	size_t i, w = 0;

	for (i = 0; i < table->n_rows; i++)
		w = MAX(w, strlen(cell(table, i, column)));
	return w;
}

void table_print(const struct table *table)
{
	const char *s;
	size_t i, j;
	int w;

	for (i = 0; i < table->n_rows; i++) {
		for (j = 0; j < table->n_columns; j++) {
			s = cell(table, i, j);
			w = j + 1 < table->n_columns ? width(table, j) : 0;
			printf("%*s%s", isdigit((unsigned char)*s) ? w : -w, s,
			       j + 1 < table->n_columns ? "  " : "\n");
		}
	}
}

void table_done(struct table *table)
{
	size_t i, j;

	for (i = 0; i < table->n_rows; i++) {
		for (j = 0; j < table->n_columns; j++)
			free(table->rows[i][j]);
	}
	free(table->rows);
	memset(table, 0, sizeof(*table));
}

char *cell_text(const json_t *value)
{
	return json_is_string(value) ? strdup(json_string_value(value)) : NULL;
}

char *cell_size(const json_t *value)
{
	char buf[QUANTITY_TEXT];

	return json_is_integer(value) ? strdup(size_print_short(json_integer_value(value), buf))
				      : NULL;
}

char *cell_number(const json_t *value)
{
	return json_is_integer(value) ? str_format("%lld", (long long)json_integer_value(value))
				      : NULL;
}

char *cell_ago(const json_t *value)
{
	long seconds;

	if (!json_is_number(value))
		return NULL;
	seconds = time(NULL) - (long)json_number_value(value);
	if (seconds < 1)
		return strdup("now");
	if (seconds < 120)
		return str_format("%lds ago", seconds);
	if (seconds < 7200)
		return str_format("%ldm ago", seconds / 60);
	if (seconds < 172800)
		return str_format("%ldh ago", seconds / 3600);
	return str_format("%ldd ago", seconds / 86400);
}
