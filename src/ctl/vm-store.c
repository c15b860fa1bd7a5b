// SPDX-License-Identifier: Apache-2.0
#include "ctl/vm-store.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>

#define SUFFIX	 ".json"
#define MAX_SIZE (64 << 10)

/* The folder; the caller frees it. */
static char *store_dir(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && *state)
		return str_format("%s/cotenant/vm", state);
	if (getuid() == 0 || !home)
		return strdup("/var/lib/cotenant/vm");
	return str_format("%s/.local/state/cotenant/vm", home);
}

static char *store_path(const char *name)
{
	_cleanup_free_ char *dir = store_dir();

	return dir ? str_format("%s/%s" SUFFIX, dir, name) : NULL;
}

json_t *vm_store_load(const char *name)
{
	_cleanup_free_ char *path = store_path(name), *text = NULL;
	json_t *vm;
	size_t n;
	int r;

	if (!path)
		return NULL;
	r = file_read_at(AT_FDCWD, path, MAX_SIZE, &text, &n);
	if (r == -ENOENT)
		return json_object();
	vm = r == 0 ? json_loadb(text, n, 0, NULL) : NULL;
	if (!json_is_object(vm)) {
		json_decref(vm);
		return NULL;
	}
	return vm;
}

int vm_store_save(const char *name, const json_t *vm)
{
	_cleanup_free_ char *dir = store_dir(), *path = store_path(name), *text = NULL;
	int r;

	text = json_dumps(vm, JSON_INDENT(2) | JSON_SORT_KEYS);
	if (!dir || !path || !text)
		return -ENOMEM;
	r = fd_mkdir_parents(dir, 0700);
	return r < 0 ? r : file_replace(path, text, strlen(text), 0600);
}

/* The name that a file is of; the caller frees it. NULL: of none. */
static char *name_of_file(const char *file)
{
	size_t n = strlen(file), suffix = strlen(SUFFIX);
	char *name;

	if (n <= suffix || !str_eq(file + n - suffix, SUFFIX))
		return NULL;
	name = strndup(file, n - suffix);
	if (name && str_is_name(name))
		return name;
	free(name);
	return NULL;
}

json_t *vm_store_list(void)
{
	_cleanup_free_ char *path = store_dir();
	_cleanup_closedir_ DIR *dir = path ? opendir(path) : NULL;
	json_t *all = json_object();
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_cleanup_free_ char *name = name_of_file(entry->d_name);
		json_t *vm = name ? vm_store_load(name) : NULL;

		if (vm)
			json_object_set_new(all, name, vm);
	}
	return all;
}
