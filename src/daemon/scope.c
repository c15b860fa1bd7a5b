/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/scope.h"

#include "base/str.h"
#include "daemon/cgroup.h"

#include <errno.h>
#include <fnmatch.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#define WAIT_STEP_US 5000
#define WAIT_STEPS   400

bool scope_available(void)
{
	return sd_booted() > 0;
}

/*
 * "/user.slice/user-1000.slice/session-3.scope" is in user-1000.slice: a scope in that
 * slice has the limits on it, and on what is around it, still around it.
 */
size_t scope_keeps(const char *cgroup)
{
	static const char suffix[] = ".slice";
	size_t kept = 0, n;

	for (;;) {
		n = cgroup[kept] == '/' ? 1 + strcspn(cgroup + kept + 1, "/") : 0;
		if (n < sizeof("/x.slice") - 1 ||
		    memcmp(cgroup + kept + n - strlen(suffix), suffix, strlen(suffix)) != 0)
			return kept;
		kept += n;
	}
}

/* Letter for letter: what else a folder may be called, somebody else chose. */
bool scope_suits(const char *cgroup)
{
	_cleanup_free_ char *slice = NULL, *manager = NULL;
	const char *rest;
	unsigned uid;

	if (sscanf(cgroup, "/user.slice/user-%u.slice/", &uid) != 1)
		return false;
	slice = str_format("/user.slice/user-%u.slice/", uid);
	manager = str_format("user@%u.service/", uid);
	if (!slice || !manager)
		return false;
	rest = str_after(cgroup, slice);
	return rest &&
	       (fnmatch("session-*.scope", rest, FNM_PATHNAME) == 0 || str_after(rest, manager));
}

static void slice_of(const char *cgroup, char *ret, size_t cap)
{
	_cleanup_free_ char *path = strndup(cgroup, scope_keeps(cgroup));
	const char *last = path ? strrchr(path, '/') : NULL;

	str_copy(ret, cap, last ? last + 1 : "system.slice");
}

static int start_transient_unit(sd_bus *bus, const char *unit, const char *slice, pid_t pid)
{
	return sd_bus_call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
				  "org.freedesktop.systemd1.Manager", "StartTransientUnit", NULL,
				  NULL, "ssa(sv)a(sa(sv))", unit, "fail", 4, "PIDs", "au", 1,
				  (uint32_t)pid, "Slice", "s", slice, "CollectMode", "s",
				  "inactive-or-failed", "Description", "s", "a tenant of cotenantd",
				  0);
}

/* The call only queues a job; the process is there when its cgroup says so. */
static int wait_until_in(pid_t pid, const char *unit, char **ret_path)
{
	char *path, *last;
	int i, r;

	for (i = 0; i < WAIT_STEPS; i++) {
		r = cgroup_of_pid(pid, &path);
		if (r < 0)
			return r;
		last = strrchr(path, '/');
		if (last && str_eq(last + 1, unit)) {
			*ret_path = path;
			return 0;
		}
		free(path);
		usleep(WAIT_STEP_US);
	}
	return -ETIMEDOUT;
}

int scope_enter(pid_t pid, const char *name, char **ret_path)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_free_ char *cgroup = NULL, *unit = str_format("%s.scope", name);
	char slice[256];
	int r;

	if (!unit)
		return -ENOMEM;
	r = cgroup_of_pid(pid, &cgroup);
	if (r < 0)
		return r;
	slice_of(cgroup, slice, sizeof(slice));
	r = sd_bus_open_system(&bus);
	if (r < 0)
		return r;
	sd_bus_set_method_call_timeout(bus, 2 * 1000 * 1000);
	r = start_transient_unit(bus, unit, slice, pid);
	if (r < 0)
		return r;
	return wait_until_in(pid, unit, ret_path);
}
