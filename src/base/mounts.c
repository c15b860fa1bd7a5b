/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mounts.h"

#include "base/str.h"

#include <errno.h>
#include <mntent.h>
#include <stdlib.h>

int mounts_find_cgroup(const char *controller, char **ret)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	int r = -ENODATA;

	if (!f)
		return -errno;
	while ((m = getmntent(f))) {
		if (!str_eq(m->mnt_type, controller ? "cgroup" : "cgroup2") ||
		    (controller && !hasmntopt(m, controller)))
			continue;
		*ret = strdup(m->mnt_dir);
		r = *ret ? 0 : -ENOMEM;
		break;
	}
	endmntent(f);
	return r;
}
