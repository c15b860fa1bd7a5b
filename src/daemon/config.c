/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int config_init(struct config *config, const char *dir)
{
	memset(config, 0, sizeof(*config));
	config->dir = strdup(dir);
	return config->dir ? 0 : -ENOMEM;
}

static void file_done(struct config_file *file)
{
	free(file->path);
	specs_done(&file->specs);
}

void config_done(struct config *config)
{
	size_t i;

	for (i = 0; i < config->n_files; i++)
		file_done(&config->files[i]);
	free(config->files);
	free(config->dir);
	memset(config, 0, sizeof(*config));
}

static struct config_file *file_by_path(struct config *config, const char *path)
{
	size_t i;

	for (i = 0; i < config->n_files; i++) {
		if (str_eq(config->files[i].path, path))
			return &config->files[i];
	}
	return NULL;
}

static struct config_file *file_add(struct config *config, const char *path)
{
	struct config_file *files;

	files = reallocarray(config->files, config->n_files + 1, sizeof(*files));
	if (!files)
		return NULL;
	config->files = files;
	memset(&files[config->n_files], 0, sizeof(*files));
	files[config->n_files].path = strdup(path);
	return files[config->n_files].path ? &files[config->n_files++] : NULL;
}

/* Limits that somebody else can edit are none. */
static int check_owner(const char *path, struct ini_error *error)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return ini_refuse(error, 0, "%s", strerrordesc_np(errno));
	if (!S_ISREG(st.st_mode))
		return ini_refuse(error, 0, "not a regular file");
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022))
		return ini_refuse(error, 0,
				  "others than root can write it: chown root, chmod go-w");
	return 0;
}

static int check_unique(const struct config *config, const struct config_file *file,
			const struct specs *specs, struct ini_error *error)
{
	const struct config_file *other;
	size_t i, j, k;

	for (i = 0; i < config->n_files; i++) {
		other = &config->files[i];
		if (other == file || !other->seen)
			continue;
		for (j = 0; j < specs->n_tenants; j++) {
			for (k = 0; k < other->specs.n_tenants; k++) {
				if (str_eq(specs->tenants[j].name, other->specs.tenants[k].name))
					return ini_refuse(error, 0, "[%s] stands already in %.150s",
							  specs->tenants[j].name, other->path);
				if (selector_equal(&specs->tenants[j].match,
						   &other->specs.tenants[k].match))
					return ini_refuse(
						error, 0,
						"[%s] matches whom [%s] in %.100s matches",
						specs->tenants[j].name,
						other->specs.tenants[k].name, other->path);
			}
		}
	}
	return 0;
}

static int read_specs(const struct config *config, const struct config_file *file,
		      struct specs *ret, struct ini_error *error)
{
	_cleanup_(specs_done) struct specs specs = {};
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;
	int r;

	r = check_owner(file->path, error);
	if (r < 0)
		return r;
	r = file_read_at(AT_FDCWD, file->path, INI_MAX_BYTES, &bytes, &len);
	if (r < 0)
		return ini_refuse(error, 0, "%s", strerrordesc_np(-r));
	r = specs_parse(bytes, len, &specs, error);
	if (r == 0)
		r = check_unique(config, file, &specs, error);
	if (r < 0)
		return r;
	*ret = specs;
	memset(&specs, 0, sizeof(specs));
	return 0;
}

static int file_load(struct config *config, const char *path)
{
	struct config_file *file = file_by_path(config, path);
	struct ini_error error = {};
	struct specs specs;
	int r;

	if (!file)
		file = file_add(config, path);
	if (!file)
		return -ENOMEM;
	r = read_specs(config, file, &specs, &error);
	file->news = r < 0 && !(file->refused && file->error.line == error.line &&
				str_eq(file->error.reason, error.reason));
	file->seen = true;
	file->refused = r < 0;
	file->error = error;
	if (r == -EINVAL)
		return 0;
	if (r < 0)
		return r;
	specs_done(&file->specs);
	file->specs = specs;
	return 0;
}

static void drop_unseen(struct config *config)
{
	size_t i, n = 0;

	for (i = 0; i < config->n_files; i++) {
		if (config->files[i].seen)
			config->files[n++] = config->files[i];
		else
			file_done(&config->files[i]);
	}
	config->n_files = n;
}

static void file_drop(struct config *config, const char *path)
{
	struct config_file *file = file_by_path(config, path);

	if (!file)
		return;
	file->seen = false;
	drop_unseen(config);
}

static int is_ini(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 4 && str_eq(entry->d_name + n - 4, ".ini");
}

int config_load(struct config *config)
{
	struct dirent **names = NULL;
	char *path;
	int i, n, r = 0;

	for (i = 0; i < (int)config->n_files; i++)
		config->files[i].seen = false;
	n = scandir(config->dir, &names, is_ini, alphasort);
	if (n < 0 && errno != ENOENT)
		return -errno;
	for (i = 0; i < n; i++) {
		path = str_format("%s/%s", config->dir, names[i]->d_name);
		if (r == 0)
			r = path ? file_load(config, path) : -ENOMEM;
		free(path);
		free(names[i]);
	}
	free(names);
	if (r == 0)
		drop_unseen(config);
	return r;
}

const struct tenant_spec *config_find(const struct config *config, const char *name,
				      const struct config_file **ret_file)
{
	size_t i, j;

	for (i = 0; i < config->n_files; i++) {
		for (j = 0; j < config->files[i].specs.n_tenants; j++) {
			if (!str_eq(config->files[i].specs.tenants[j].name, name))
				continue;
			if (ret_file)
				*ret_file = &config->files[i];
			return &config->files[i].specs.tenants[j];
		}
	}
	return NULL;
}

const struct tenant_spec *config_find_match(const struct config *config,
					    const struct selector *match)
{
	size_t i, j;

	for (i = 0; i < config->n_files; i++) {
		for (j = 0; j < config->files[i].specs.n_tenants; j++) {
			if (selector_equal(&config->files[i].specs.tenants[j].match, match))
				return &config->files[i].specs.tenants[j];
		}
	}
	return NULL;
}

/* The file's lines as they are now; none for a file that is to be made. */
static int read_ini(const char *path, struct ini *ret, struct ini_error *error)
{
	_cleanup_free_ char *bytes = NULL;
	size_t len = 0;
	int r;

	r = file_read_at(AT_FDCWD, path, INI_MAX_BYTES, &bytes, &len);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return ini_parse(bytes, len, ret, error);
}

static int write_ini(struct config *config, const char *path, const struct ini *ini,
		     struct ini_error *error)
{
	_cleanup_(specs_done) struct specs specs = {};
	_cleanup_free_ char *text = ini_print(ini);
	int r;

	if (!text)
		return -ENOMEM;
	/* A hand-made mistake elsewhere in the file is the owner's to mend first. */
	r = specs_parse(text, strlen(text), &specs, error);
	if (r < 0)
		return r;
	r = fd_mkdir_parents(config->dir, 0755);
	if (r == 0)
		r = (config->passing ? file_put : file_replace)(path, text, strlen(text), 0644);
	if (r < 0)
		return r;
	return config->passing ? file_load(config, path) : config_load(config);
}

static int path_for(const struct config *config, const char *name, char **ret)
{
	const struct config_file *file = NULL;

	if (config_find(config, name, &file))
		*ret = strdup(file->path);
	else
		*ret = str_format("%s/%s.ini", config->dir, name);
	return *ret ? 0 : -ENOMEM;
}

int config_write_tenant(struct config *config, const struct tenant_spec *tenant,
			struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_free_ char *path = NULL;
	int r;

	r = path_for(config, tenant->name, &path);
	if (r == 0)
		r = read_ini(path, &ini, error);
	if (r == 0)
		r = spec_write(&ini, tenant);
	return r < 0 ? r : write_ini(config, path, &ini, error);
}

static bool has_sections(const struct ini *ini)
{
	size_t i;

	for (i = 0; i < ini->n_lines; i++) {
		if (ini->lines[i].kind == INI_SECTION)
			return true;
	}
	return false;
}

int config_remove_tenant(struct config *config, const char *name, struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_free_ char *path = NULL;
	int r;

	r = path_for(config, name, &path);
	if (r == 0)
		r = read_ini(path, &ini, error);
	if (r < 0)
		return r;
	if (!ini_remove_section(&ini, name))
		return 0;
	if (has_sections(&ini))
		return write_ini(config, path, &ini, error);
	if (unlink(path) < 0)
		return -errno;
	if (!config->passing)
		return config_load(config);
	file_drop(config, path);
	return 0;
}

int config_write_device(struct config *config, const struct device_spec *device,
			struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_free_ char *path = NULL;
	size_t i, j;
	int r;

	for (i = 0; i < config->n_files && !path; i++) {
		for (j = 0; j < config->files[i].specs.n_devices && !path; j++) {
			if (str_eq(config->files[i].specs.devices[j].uuid, device->uuid))
				path = strdup(config->files[i].path);
		}
	}
	if (!path)
		path = str_format("%s/devices.ini", config->dir);
	if (!path)
		return -ENOMEM;
	r = read_ini(path, &ini, error);
	if (r == 0)
		r = device_spec_write(&ini, device);
	return r < 0 ? r : write_ini(config, path, &ini, error);
}
