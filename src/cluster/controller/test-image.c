/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script is run, with a podman that writes down what it is asked for.
 */
#include "cluster/controller/image.h"

#include "base/check.h"
#include "base/file.h"
#include "base/str.h"

#include <fcntl.h>
#include <sys/stat.h>

#define WAIT_US	  20000
#define MAX_WAITS 3000

static const char *const names[] = { "serve", "serve:2",
				     "registry.example:5000/team/serve@sha256:0a",
				     "oci:/images/serve:2" };
static const char *const not_names[] = {
	"",    "-v",   "--privileged", "/images/serve", "a b",
	"a'b", "a\nb", "a;b",	       "$(reboot)",	"\xc3\xa9"
};

/* Of two that are said to run one does, it is the test itself. Removing the other fails at first. */
static const char podman[] =
	"#!/bin/sh\n"
	"case $1 in\n"
	"ps) [ \"$SWEPT\" ] || echo \"alive web.1.6.$ALIVE\ndead web.2.5.2000000000\" ;;\n"
	"rm) for id; do :; done; echo \"$id\" >>\"$FOLDER/removed\"; [ \"$(grep -c . \"$FOLDER/removed\")\" -eq 2 ] ;;\n"
	"run) for word; do printf '<%s>' \"${word%.$$}\"; done >\"$FOLDER/asked\" ;;\n"
	"esac\n";

static char folder[] = "/tmp/test-image-XXXXXX";

static char *path_of(const char *name)
{
	return str_format("%s/%s", folder, name);
}

static bool write_program(const char *name, const char *text)
{
	_cleanup_free_ char *path = path_of(name);

	return path && text && file_replace(path, text, strlen(text), 0755) == 0;
}

static char *read_back(const char *name)
{
	_cleanup_free_ char *path = path_of(name);
	char *text = NULL;

	if (!path || file_read_at(AT_FDCWD, path, 65536, &text, NULL) < 0)
		return NULL;
	return text;
}

/* Runs the job of a service as Slurm would. Return: its exit status. */
static int run_job(const char *image, const char *command, const char *device)
{
	struct service service = { .command = (char *)command };
	_cleanup_free_ char *script = NULL, *path = path_of("job");

	str_copy(service.image, sizeof(service.image), image);
	script = image_script(&service, "web.0");
	if (!path || !write_program("job", script))
		return -1;
	setenv("CUDA_VISIBLE_DEVICES", device, 1);
	return system(path);
}

static bool is_asked(const char *words)
{
	_cleanup_free_ char *asked = read_back("asked");
	_cleanup_free_ char *expected =
		str_format("<run><--rm><--cgroups=disabled><--network=host><--log-driver=none>"
			   "<--name=web.0.7><--label=cotenant.instance=web.0>"
			   "<--device=cotenant.dev/gpu=GPU-1><--env=CUDA_VISIBLE_DEVICES>%s",
			   words);

	return asked && expected && str_eq(asked, expected);
}

static bool is_removed(const char *lines)
{
	unsigned i;

	for (i = 0; i < MAX_WAITS; i++) {
		_cleanup_free_ char *removed = read_back("removed");

		if (removed && str_eq(removed, lines))
			return true;
		usleep(WAIT_US);
	}
	return false;
}

static void test_jobs(void)
{
	check(run_job("serve:2", "", "GPU-1") == 0 && is_asked("<serve:2>"),
	      "image: runs what it has itself");
	check(is_removed("dead\ndead\n"), "image: what died with earlier jobs is removed");
	setenv("SWEPT", "yes", 1);
	check(run_job("serve", "it's 'a' \"$b\" \\ `c`\nand '", "GPU-1") == 0 &&
		      is_asked("<serve><sh><-c><it's 'a' \"$b\" \\ `c`\nand '>"),
	      "image: a command is one word, whatever is in it");
	check(run_job("serve", "", "0") != 0 && run_job("serve", "", "") != 0,
	      "image: without a device that has a name of its own nothing is run");
}

int main(void)
{
	_cleanup_free_ char *clean = NULL, *path = NULL, *alive = str_format("%d", getpid());
	const char *old = getenv("PATH");
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		check(image_is_name(names[i]), "image: '%s' is a name", names[i]);
	for (i = 0; i < ARRAY_SIZE(not_names); i++)
		check(!image_is_name(not_names[i]), "image: '%s' is none", not_names[i]);
	if (!check(mkdtemp(folder) && write_program("podman", podman), "image: there is a podman"))
		return check_result();
	path = str_format("%s:%s", folder, old ? old : "/usr/bin:/bin");
	clean = str_format("rm -r %s", folder);
	setenv("PATH", path, 1);
	setenv("FOLDER", folder, 1);
	setenv("ALIVE", alive, 1);
	setenv("SLURM_JOB_ID", "7", 1);
	test_jobs();
	check(system(clean) == 0, "image: all is cleaned up");
	return check_result();
}
