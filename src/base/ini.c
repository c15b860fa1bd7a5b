/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ini.h"

#include "base/array.h"

#include <errno.h>
#include <stdarg.h>

int ini_refuse(struct ini_error *error, unsigned line, const char *fmt, ...)
{
	va_list ap;

	error->line = line;
	va_start(ap, fmt);
	vsnprintf(error->reason, sizeof(error->reason), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static void line_done(struct ini_line *line)
{
	free(line->text);
	free(line->name);
	free(line->value);
	memset(line, 0, sizeof(*line));
}

void ini_done(struct ini *ini)
{
	size_t i;

	for (i = 0; i < ini->n_lines; i++)
		line_done(&ini->lines[i]);
	free(ini->lines);
	memset(ini, 0, sizeof(*ini));
}

static int parse_section(char *s, unsigned number, struct ini_line *line, struct ini_error *error)
{
	size_t n = strlen(s);

	if (s[n - 1] != ']')
		return ini_refuse(error, number, "a section begins with '[' and must end with ']'");
	s[n - 1] = '\0';
	s = str_trim(s + 1);
	if (!*s)
		return ini_refuse(error, number, "a section without a name");
	line->kind = INI_SECTION;
	line->name = strdup(s);
	return line->name ? 0 : -ENOMEM;
}

static int parse_entry(char *s, unsigned number, struct ini_line *line, struct ini_error *error)
{
	char *equals = strchr(s, '=');

	if (!equals)
		return ini_refuse(error, number,
				  "neither a [section], nor name = value, nor a # comment");
	*equals = '\0';
	s = str_trim(s);
	if (!*s)
		return ini_refuse(error, number, "a value without a name before the '='");
	line->kind = INI_ENTRY;
	line->name = strdup(s);
	line->value = strdup(str_trim(equals + 1));
	return line->name && line->value ? 0 : -ENOMEM;
}

/* Fills in *line even on failure: the caller releases it. */
static int line_parse(const char *bytes, size_t len, unsigned number, struct ini_line *line,
		      struct ini_error *error)
{
	_cleanup_free_ char *copy = NULL;
	char *s;

	if (memchr(bytes, '\0', len))
		return ini_refuse(error, number, "a NUL byte: this is not a text file");
	if (len > 0 && bytes[len - 1] == '\r')
		len--;
	line->text = strndup(bytes, len);
	copy = strndup(bytes, len);
	if (!line->text || !copy)
		return -ENOMEM;
	s = str_trim(copy);
	if (*s == '\0' || *s == '#' || *s == ';') {
		line->kind = INI_OTHER;
		return 0;
	}
	if (*s == '[')
		return parse_section(s, number, line, error);
	return parse_entry(s, number, line, error);
}

/* Opens a gap for one line at index @at. */
static int insert_line(struct ini *ini, size_t at, struct ini_line *line)
{
	struct ini_line *p = array_room(ini->lines, ini->n_lines, &ini->cap, sizeof(*p));

	if (!p)
		return -ENOMEM;
	ini->lines = p;
	memmove(&ini->lines[at + 1], &ini->lines[at], (ini->n_lines - at) * sizeof(*ini->lines));
	ini->lines[at] = *line;
	ini->n_lines++;
	return 0;
}

static void remove_lines(struct ini *ini, size_t at, size_t n)
{
	size_t i;

	for (i = at; i < at + n; i++)
		line_done(&ini->lines[i]);
	memmove(&ini->lines[at], &ini->lines[at + n],
		(ini->n_lines - at - n) * sizeof(*ini->lines));
	ini->n_lines -= n;
}

static int refuse_twice(const struct ini *ini, const struct ini_line *line, size_t section,
			struct ini_error *error)
{
	unsigned number = ini->n_lines + 1;
	size_t i;

	if (line->kind == INI_SECTION && ini_find_section(ini, line->name) >= 0)
		return ini_refuse(error, number, "section [%.200s] stands here twice", line->name);
	if (line->kind != INI_ENTRY)
		return 0;
	if (section == SIZE_MAX)
		return ini_refuse(error, number, "an entry before the first [section]");
	for (i = section + 1; i < ini->n_lines; i++) {
		if (ini->lines[i].kind == INI_ENTRY && str_eq(ini->lines[i].name, line->name))
			return ini_refuse(error, number, "'%.200s' is set twice in this section",
					  line->name);
	}
	return 0;
}

int ini_parse(const char *bytes, size_t len, struct ini *ret, struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	const char *p = bytes, *end = bytes + len, *eol;
	size_t section = SIZE_MAX;
	struct ini_line line;
	int r;

	if (len > INI_MAX_BYTES)
		return ini_refuse(error, 0, "larger than %d bytes", INI_MAX_BYTES);
	for (; p < end; p = eol + 1) {
		eol = memchr(p, '\n', end - p);
		if (!eol)
			eol = end;
		memset(&line, 0, sizeof(line));
		r = line_parse(p, eol - p, ini.n_lines + 1, &line, error);
		if (r == 0)
			r = refuse_twice(&ini, &line, section, error);
		if (r == 0)
			r = insert_line(&ini, ini.n_lines, &line);
		if (r < 0) {
			line_done(&line);
			return r;
		}
		if (line.kind == INI_SECTION)
			section = ini.n_lines - 1;
	}
	*ret = ini;
	memset(&ini, 0, sizeof(ini));
	return 0;
}

ssize_t ini_find_section(const struct ini *ini, const char *section)
{
	size_t i;

	for (i = 0; i < ini->n_lines; i++) {
		if (ini->lines[i].kind == INI_SECTION && str_eq(ini->lines[i].name, section))
			return i;
	}
	return -1;
}

/* Behind the section's last line, the next heading's comments not counted. */
static size_t section_end(const struct ini *ini, size_t heading)
{
	size_t i, end = heading + 1;

	for (i = heading + 1; i < ini->n_lines && ini->lines[i].kind != INI_SECTION; i++) {
		if (ini->lines[i].kind == INI_ENTRY)
			end = i + 1;
	}
	return end;
}

static ssize_t find_entry(const struct ini *ini, size_t heading, const char *name)
{
	size_t i, end = section_end(ini, heading);

	for (i = heading + 1; i < end; i++) {
		if (ini->lines[i].kind == INI_ENTRY && str_eq(ini->lines[i].name, name))
			return i;
	}
	return -1;
}

const char *ini_get(const struct ini *ini, const char *section, const char *name)
{
	ssize_t heading = ini_find_section(ini, section), at;

	if (heading < 0)
		return NULL;
	at = find_entry(ini, heading, name);
	return at < 0 ? NULL : ini->lines[at].value;
}

static int insert_text(struct ini *ini, size_t at, char *text)
{
	struct ini_line line = {};
	struct ini_error ignored;
	int r;

	if (!text)
		return -ENOMEM;
	r = line_parse(text, strlen(text), at, &line, &ignored);
	free(text);
	if (r == 0)
		r = insert_line(ini, at, &line);
	if (r < 0)
		line_done(&line);
	return r;
}

static int add_section(struct ini *ini, const char *section)
{
	int r = 0;

	if (ini->n_lines > 0 && *ini->lines[ini->n_lines - 1].text)
		r = insert_text(ini, ini->n_lines, strdup(""));
	if (r == 0)
		r = insert_text(ini, ini->n_lines, str_format("[%s]", section));
	return r;
}

int ini_set(struct ini *ini, const char *section, const char *name, const char *value)
{
	ssize_t heading = ini_find_section(ini, section), at;
	int r;

	if (heading < 0) {
		r = add_section(ini, section);
		if (r < 0)
			return r;
		heading = ini->n_lines - 1;
	}
	at = find_entry(ini, heading, name);
	if (at < 0)
		at = section_end(ini, heading);
	else
		remove_lines(ini, at, 1);
	return insert_text(ini, at, str_format("%s = %s", name, value));
}

void ini_unset(struct ini *ini, const char *section, const char *name)
{
	ssize_t heading = ini_find_section(ini, section), at;

	if (heading < 0)
		return;
	at = find_entry(ini, heading, name);
	if (at >= 0)
		remove_lines(ini, at, 1);
}

bool ini_remove_section(struct ini *ini, const char *section)
{
	ssize_t heading = ini_find_section(ini, section);
	size_t end;

	if (heading < 0)
		return false;
	end = section_end(ini, heading);
	/* One blank line goes with it, so that repeated edits leave no gaps. */
	if (end < ini->n_lines && !*ini->lines[end].text)
		end++;
	remove_lines(ini, heading, end - heading);
	return true;
}

char *ini_print(const struct ini *ini)
{
	struct text t = {};
	size_t i;

	for (i = 0; i < ini->n_lines; i++) {
		text_add(&t, ini->lines[i].text);
		text_add(&t, "\n");
	}
	return text_take(&t);
}
