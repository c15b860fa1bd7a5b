/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "daemon/scope.h"

#include <string.h>

static const struct {
	const char *cgroup;
	bool suits;
	const char *kept;
} cases[] = {
	/* a login, by a terminal or ssh, and by a desktop */
	{ "/user.slice/user-1000.slice/session-3.scope", true, "/user.slice/user-1000.slice" },
	{ "/user.slice/user-0.slice/session-c1.scope", true, "/user.slice/user-0.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", true,
	  "/user.slice/user-1000.slice" },
	/* a job of Slurm */
	{ "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", false, "/system.slice" },
	/* a service, which may have limits and rules for devices */
	{ "/system.slice/jupyter.service", false, "/system.slice" },
	{ "/gpu.slice/train.service", false, "/gpu.slice" },
	/* containers */
	{ "/system.slice/docker-1f3a.scope", false, "/system.slice" },
	{ "/kubepods.slice/kubepods-pod7.slice/cri-containerd-1f3a.scope", false,
	  "/kubepods.slice/kubepods-pod7.slice" },
	{ "/docker/1f3a", false, "" },
	/* another command's cgroup in a session, and its scope beside it */
	{ "/user.slice/user-1000.slice/session-3.scope/cotenant-a-1", false,
	  "/user.slice/user-1000.slice" },
	{ "/user.slice/user-1000.slice/cotenant-a-1.scope", false, "/user.slice/user-1000.slice" },
	/* what only looks like one */
	{ "/user.slice/user-1000.slice", false, "/user.slice/user-1000.slice" },
	{ "/user.slice/user-1000.slice/user@1000.service", false, "/user.slice/user-1000.slice" },
	{ "/user.slice/user-1000.slice/user@1001.service/app.slice", false,
	  "/user.slice/user-1000.slice" },
	{ "/user.slice/user-01000.slice/session-3.scope", false, "/user.slice/user-01000.slice" },
	{ "/user.slice/user-1000.slice/session-3.service", false, "/user.slice/user-1000.slice" },
	{ "/box/user.slice/user-1000.slice/session-3.scope", false, "" },
	{ "/", false, "" },
	{ "", false, "" },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		check(scope_suits(cases[i].cgroup) == cases[i].suits, "scope_suits: '%s' %s",
		      cases[i].cgroup, cases[i].suits ? "does" : "does not");
		check(scope_keeps(cases[i].cgroup) == strlen(cases[i].kept),
		      "scope_keeps: '%s' of '%s'", cases[i].kept, cases[i].cgroup);
	}
	return check_result();
}
