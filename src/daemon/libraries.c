/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process says in its environment is a hint here and nothing else: a copy that
 * it does not name is found when it is mapped.
 */
#include "daemon/libraries.h"

#include "base/log.h"
#include "base/str.h"
#include "daemon/process.h"

#include <errno.h>
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

/* @pid: who is about to map it, 0 for whoever may come */
static void attach(struct engine *engine, const char *path, pid_t pid)
{
	char real[PATH_MAX];
	struct stat st;
	int r;

	/* Nothing that could keep us waiting: a tenant may have put it there. */
	if (!realpath(path, real) || stat(real, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	r = pid ? engine_attach_for(engine, real, pid) : engine_attach(engine, real);
	if (r < 0 && r != -ENOEXEC)
		log_debug(r, "cannot probe %s", real);
}

static void attach_in(struct engine *engine, const char *dir, pid_t pid)
{
	char *path;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		path = str_format("%s/%s", dir, names[i]);
		if (path)
			attach(engine, path, pid);
		free(path);
	}
}

void libraries_attach_system(struct engine *engine, const char *nvml_dir)
{
	size_t i;

	if (*nvml_dir)
		attach_in(engine, nvml_dir, /* pid= */ 0);
	for (i = 0; i < ARRAY_SIZE(system_dirs); i++)
		attach_in(engine, system_dirs[i], /* pid= */ 0);
}

void libraries_attach_for(struct engine *engine, pid_t pid)
{
	_cleanup_free_ char *dirs = NULL;
	char *dir, *full, *state = NULL;

	if (process_variable(pid, "LD_LIBRARY_PATH", &dirs) < 0)
		return;
	for (dir = strtok_r(dirs, ":", &state); dir; dir = strtok_r(NULL, ":", &state)) {
		full = *dir == '/' ? strdup(dir) : str_format("/proc/%d/cwd/%s", pid, dir);
		if (full)
			attach_in(engine, full, pid);
		free(full);
	}
}
