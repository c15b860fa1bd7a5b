/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process says in its environment is a hint here and nothing else: a copy that
 * it does not name is found when it is mapped.
 */
#include "daemon/libraries.h"

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static const char *const names[] = { "libcuda.so.1", "libnvidia-ml.so.1" };

static const char *const system_dirs[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/wsl/lib",
	"/usr/local/cuda/compat",
};

static void attach(struct engine *engine, const char *path)
{
	char real[PATH_MAX];
	struct stat st;
	int r;

	/* Nothing that could keep us waiting: a tenant may have put it there. */
	if (!realpath(path, real) || stat(real, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	r = engine_attach(engine, real);
	if (r < 0 && r != -ENOEXEC)
		log_debug(r, "cannot probe %s", real);
}

static void attach_in(struct engine *engine, const char *dir)
{
	char *path;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		path = str_format("%s/%s", dir, names[i]);
		if (path)
			attach(engine, path);
		free(path);
	}
}

void libraries_attach_system(struct engine *engine, const char *nvml_dir)
{
	size_t i;

	if (*nvml_dir)
		attach_in(engine, nvml_dir);
	for (i = 0; i < ARRAY_SIZE(system_dirs); i++)
		attach_in(engine, system_dirs[i]);
}

/* The value of a variable in the bytes of /proc/PID/environ, in place; NULL if it is not set. */
static char *find_variable(char *environ, size_t len, const char *name)
{
	size_t n = strlen(name);
	char *p;

	for (p = environ; p < environ + len; p += strlen(p) + 1) {
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return p + n + 1;
	}
	return NULL;
}

void libraries_attach_for(struct engine *engine, pid_t pid)
{
	_cleanup_free_ char *environ = NULL;
	char path[64], *dirs, *dir, *full, *state = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	if (file_read_at(AT_FDCWD, path, 1 << 20, &environ, &len) < 0)
		return;
	dirs = find_variable(environ, len, "LD_LIBRARY_PATH");
	for (dir = dirs ? strtok_r(dirs, ":", &state) : NULL; dir;
	     dir = strtok_r(NULL, ":", &state)) {
		full = *dir == '/' ? strdup(dir) : str_format("/proc/%d/cwd/%s", pid, dir);
		if (full)
			attach_in(engine, full);
		free(full);
	}
}
