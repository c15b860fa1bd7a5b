// SPDX-License-Identifier: Apache-2.0
#include "offsets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>

#include "base/file.h"

/* --- one file
 * ---------------------------------------------------------------------------------------- */

int offsets_add(struct offsets *offsets, const char *name, uint64_t address)
{
	struct offsets_call *grown;

	grown = reallocarray(offsets->calls, offsets->n_calls + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	offsets->calls = grown;
	grown[offsets->n_calls] = (struct offsets_call){ .address = address };
	str_copy(grown[offsets->n_calls++].name, LIBRARY_NAME, name);
	return 0;
}

static bool is_build_id(const char *s)
{
	size_t n = strlen(s);

	return n >= 16 && n % 2 == 0 && n < LIBRARY_BUILD_ID && strspn(s, "0123456789abcdef") == n;
}

static int parse_build(struct offsets *offsets, const struct ini_line *l, unsigned line,
		       struct ini_error *error)
{
	if (str_eq(l->name, "build-id")) {
		if (!is_build_id(l->value))
			return ini_refuse(error, line,
					  "build-id: '%.80s' is not 16 to 40 digits of 0-9 and a-f",
					  l->value);
		str_copy(offsets->build_id, sizeof(offsets->build_id), l->value);
		return 0;
	}
	if (str_eq(l->name, "driver") && *l->value &&
	    str_copy(offsets->driver, OFFSETS_VERSION, l->value))
		return 0;
	if (str_eq(l->name, "cuda") && *l->value &&
	    str_copy(offsets->cuda, OFFSETS_VERSION, l->value))
		return 0;
	return ini_refuse(error, line, "'%.40s = %.80s': [build] has build-id, driver and cuda",
			  l->name, l->value);
}

static bool has_call(const struct offsets *offsets, const char *name)
{
	for (size_t i = 0; i < offsets->n_calls; i++)
		if (str_eq(offsets->calls[i].name, name))
			return true;
	return false;
}

static int parse_call(struct offsets *offsets, const struct ini_line *l, unsigned line,
		      struct ini_error *error)
{
	unsigned long long address;
	char *end;
	int r;

	if (strlen(l->name) >= LIBRARY_NAME || !str_after(l->name, "cu"))
		return ini_refuse(error, line, "'%.80s' is no call of libcuda", l->name);
	if (has_call(offsets, l->name))
		return ini_refuse(error, line, "%s stands here twice", l->name);
	errno = 0;
	address = strtoull(l->value, &end, 16);
	if (!str_after(l->value, "0x") || !isxdigit((unsigned char)l->value[2]) || *end || errno ||
	    address == 0)
		return ini_refuse(error, line, "'%.80s' is not an address such as 0x2a41c0",
				  l->value);
	r = offsets_add(offsets, l->name, address);
	if (r == 0)
		offsets->calls[offsets->n_calls - 1].line = line;
	return r;
}

static int parse_lines(const struct ini *ini, struct offsets *offsets, struct ini_error *error)
{
	const char *section = "";
	int r = 0;

	for (size_t i = 0; r == 0 && i < ini->n_lines; i++) {
		const struct ini_line *l = &ini->lines[i];

		if (l->kind == INI_SECTION)
			section = l->name;
		else if (l->kind == INI_ENTRY && str_eq(section, "build"))
			r = parse_build(offsets, l, i + 1, error);
		else if (l->kind == INI_ENTRY && str_eq(section, "calls"))
			r = parse_call(offsets, l, i + 1, error);
		else if (l->kind == INI_ENTRY)
			r = ini_refuse(error, i + 1, "entries belong to [build] or [calls]");
	}
	if (r == 0 && !*offsets->build_id)
		r = ini_refuse(error, 0, "build-id is missing in [build]");
	if (r == 0 && offsets->n_calls == 0)
		r = ini_refuse(error, 0, "[calls] is empty");
	return r;
}

int offsets_parse(const char *bytes, size_t len, struct offsets *ret, struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	struct offsets offsets = {};
	int r;

	r = ini_parse(bytes, len, &ini, error);
	if (r == 0)
		r = parse_lines(&ini, &offsets, error);
	if (r < 0) {
		offsets_done(&offsets);
		return r;
	}
	*ret = offsets;
	return 0;
}

char *offsets_print(const struct offsets *offsets)
{
	struct text text = {};

	text_addf(&text,
		  "# Where the calls of a build of libcuda are; for offsets.d of cotenantd.\n"
		  "[build]\nbuild-id = %s\n",
		  offsets->build_id);
	if (*offsets->driver)
		text_addf(&text, "driver = %s\n", offsets->driver);
	if (*offsets->cuda)
		text_addf(&text, "cuda = %s\n", offsets->cuda);
	text_add(&text, "\n[calls]\n");
	for (size_t i = 0; i < offsets->n_calls; i++)
		text_addf(&text, "%s = 0x%lx\n", offsets->calls[i].name,
			  (unsigned long)offsets->calls[i].address);
	return text_take(&text);
}

int offsets_apply(const struct offsets *offsets, int fd, struct library_image *image,
		  struct ini_error *error)
{
	size_t n_calls = image->n_calls, n_unknown = image->n_unknown;
	int r = 0;

	for (size_t i = 0; r == 0 && i < offsets->n_calls; i++) {
		const struct offsets_call *call = &offsets->calls[i];

		r = library_add(fd, image, call->name, call->address);
		if (r == -ENOEXEC)
			r = ini_refuse(error, call->line, "%s: 0x%lx is not in the library's code",
				       call->name, (unsigned long)call->address);
	}
	if (r < 0) {
		image->n_calls = n_calls;
		image->n_unknown = n_unknown;
	}
	return r;
}

void offsets_done(struct offsets *offsets)
{
	free(offsets->calls);
	*offsets = (struct offsets){};
}

/* --- the folder
 * -------------------------------------------------------------------------------------- */

static int is_conf(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && str_eq(entry->d_name + n - 5, ".conf");
}

static int file_load(const struct offsets_dir *dir, struct offsets_file *file)
{
	_cleanup_free_ char *bytes = NULL;
	const struct offsets_file *other;
	size_t len = 0;
	int r;

	r = file_read_at(AT_FDCWD, file->path, INI_MAX_BYTES, &bytes, &len);
	if (r < 0 && r != -ENOMEM)
		r = ini_refuse(&file->error, 0, "cannot be read: %s", strerrordesc_np(-r));
	else if (r == 0)
		r = offsets_parse(bytes, len, &file->offsets, &file->error);
	if (r == 0) {
		other = offsets_dir_find(dir, file->offsets.build_id);
		if (other)
			r = ini_refuse(&file->error, 0, "%s is for the same build", other->path);
	}
	file->refused = r == -EINVAL;
	return file->refused ? 0 : r;
}

static int dir_add(struct offsets_dir *dir, const char *folder, const char *name)
{
	struct offsets_file file = { .path = str_format("%s/%s", folder, name) }, *grown;
	int r = file.path ? file_load(dir, &file) : -ENOMEM;

	grown = r == 0 ? reallocarray(dir->files, dir->n_files + 1, sizeof(*grown)) : NULL;
	if (!grown) {
		offsets_done(&file.offsets);
		free(file.path);
		return r < 0 ? r : -ENOMEM;
	}
	dir->files = grown;
	grown[dir->n_files++] = file;
	return 0;
}

int offsets_dir_load(const char *folder, struct offsets_dir *ret)
{
	struct offsets_dir dir = {};
	struct dirent **entries;
	int r = 0, n;

	n = scandir(folder, &entries, is_conf, alphasort);
	if (n < 0 && errno != ENOENT)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = dir_add(&dir, folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (r < 0) {
		offsets_dir_done(&dir);
		return r;
	}
	*ret = dir;
	return 0;
}

struct offsets_file *offsets_dir_find(const struct offsets_dir *dir, const char *build_id)
{
	for (size_t i = 0; *build_id && i < dir->n_files; i++)
		if (!dir->files[i].refused && str_eq(dir->files[i].offsets.build_id, build_id))
			return &dir->files[i];
	return NULL;
}

void offsets_dir_done(struct offsets_dir *dir)
{
	for (size_t i = 0; i < dir->n_files; i++) {
		offsets_done(&dir->files[i].offsets);
		free(dir->files[i].path);
	}
	free(dir->files);
	*dir = (struct offsets_dir){};
}
