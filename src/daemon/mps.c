/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps.h"

#include "base/str.h"
#include "base/userns.h"
#include "daemon/process.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CONTROL "nvidia-cuda-mps-control"

/* Does it run the file that we see under this name? The kernel follows its link to the file, not to a name. */
static bool runs(pid_t pid, const char *program)
{
	struct stat file, own;
	char exe[64];

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	if (stat(program, &file) < 0 || stat(exe, &own) < 0)
		return false;
	return file.st_dev == own.st_dev && file.st_ino == own.st_ino && S_ISREG(file.st_mode) &&
	       file.st_uid == 0 && !(file.st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_of_host(pid_t pid)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uid_t maker;

	return proc >= 0 && userns_maker(proc, pid, &maker) == USERNS_E_OWN;
}

static bool is_root(pid_t pid)
{
	uid_t uid;

	return is_of_host(pid) && process_uid(pid, &uid) == 0 && uid == 0;
}

static bool is_started_by_control(const char *program, pid_t pid)
{
	const char *slash = strrchr(program, '/');
	_cleanup_free_ char *control = NULL;
	pid_t parent;

	if (!slash || process_parent(pid, &parent) < 0)
		return false;
	control = str_format("%.*s/" CONTROL, (int)(slash - program), program);
	return control && runs(parent, control) && is_root(parent);
}

bool mps_is_server(const char *program, pid_t pid)
{
	return runs(pid, program) && is_of_host(pid) &&
	       (is_root(pid) || is_started_by_control(program, pid));
}
