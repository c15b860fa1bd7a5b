/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/released.h"

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/cgroup.h"
#include "tenant/selector.h"

#include <errno.h>
#include <fcntl.h>

#define FILE_MAX (1 << 20)

static int add(struct released *released, const char *path)
{
	char **paths = reallocarray(released->paths, released->n + 1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	released->paths = paths;
	paths[released->n] = strdup(path);
	return paths[released->n] ? (released->n++, 0) : -ENOMEM;
}

static int save(const struct released *released)
{
	_cleanup_free_ char *all = NULL;
	struct text text = {};
	size_t i;

	for (i = 0; i < released->n; i++)
		text_addf(&text, "%s\n", released->paths[i]);
	all = released->n ? text_take(&text) : strdup("");
	return all ? file_replace(released->file, all, strlen(all), 0644) : -ENOMEM;
}

int released_init(struct released *released, const char *state_dir)
{
	_cleanup_free_ char *all = NULL;
	char *line, *state = NULL;
	int r = 0;

	released->file = str_format("%s/released", state_dir);
	if (!released->file)
		return -ENOMEM;
	if (file_read_at(AT_FDCWD, released->file, FILE_MAX, &all, NULL) < 0)
		return 0;
	for (line = strtok_r(all, "\n", &state); line && r == 0;
	     line = strtok_r(NULL, "\n", &state)) {
		if (cgroup_path_ok(line))
			r = add(released, line);
	}
	return r;
}

int released_add(struct released *released, const char *cgroup)
{
	int r = cgroup_path_ok(cgroup) ? add(released, cgroup) : -EINVAL;

	return r < 0 ? r : save(released);
}

void released_collect(struct released *released)
{
	size_t i, n = 0;
	int r;

	for (i = 0; i < released->n; i++) {
		if (cgroup_is_populated(released->paths[i])) {
			released->paths[n++] = released->paths[i];
			continue;
		}
		cgroup_remove(released->paths[i]);
		free(released->paths[i]);
	}
	if (n == released->n)
		return;
	released->n = n;
	r = save(released);
	if (r < 0)
		log_warn(r, "cannot write %s", released->file);
}

void released_done(struct released *released)
{
	size_t i;

	for (i = 0; i < released->n; i++)
		free(released->paths[i]);
	free(released->paths);
	free(released->file);
	memset(released, 0, sizeof(*released));
}
