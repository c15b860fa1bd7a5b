/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job runs podman, which stays in the job's cgroups and so is no more than one of its
 * programs: the container is the job's tenant, is suspended with it, and ends with it.
 */
#include "cluster/controller/image.h"

#include "base/str.h"

/*
 * What follows the three values. Its device is known to the job by a UUID, which the plugin of
 * the node has put there: a number would be Slurm's own, and might be another device's in CDI.
 *
 * A job that is killed takes with it the process that would have removed the container, and podman
 * takes it to be there for ever. So each job removes the dead ones of earlier jobs, beside its own:
 * a container's name ends with the number of the podman that runs it. Removing one fails at first:
 * podman finds nothing to kill, and only then knows that it is dead.
 */
static const char run_image[] =
	"dead() {\n"
	"	podman ps --all --filter=label=cotenant.instance --format='{{.ID}} {{.Names}}' |\n"
	"	while read -r id name; do\n"
	"		[ -e \"/proc/${name##*.}\" ] || echo \"$id\"\n"
	"	done\n"
	"}\n"
	"sweep() {\n"
	"	for id in $(dead); do\n"
	"		podman rm --force --time=0 \"$id\" || podman rm --force \"$id\"\n"
	"	done\n"
	"}\n"
	"case $CUDA_VISIBLE_DEVICES in\n"
	"GPU-*) ;;\n"
	"*)	echo 'cotenant: this node has given the job no device' >&2\n"
	"	exit 1 ;;\n"
	"esac\n"
	"(sweep >/dev/null 2>&1 &)\n"
	"exec podman run --rm --cgroups=disabled --network=host --log-driver=none \\\n"
	"	--name=\"$instance.$SLURM_JOB_ID.$$\" --label=cotenant.instance=\"$instance\" \\\n"
	"	--device=cotenant.dev/gpu=\"$CUDA_VISIBLE_DEVICES\" --env=CUDA_VISIBLE_DEVICES \\\n"
	"	\"$image\" \"$@\"\n";

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool image_is_name(const char *text)
{
	size_t len = strspn(text, LETTERS "-._/:@");

	return !text[len] && len < SERVICE_IMAGE && strspn(text, LETTERS) > 0;
}

/* As one word of a shell: only the quote itself has a meaning between two of them. */
static void add_quoted(struct text *t, const char *word)
{
	size_t len;

	text_add(t, "'");
	for (; *word; word += len + (word[len] == '\'')) {
		len = strcspn(word, "'");
		text_addn(t, word, len);
		if (word[len])
			text_add(t, "'\\''");
	}
	text_add(t, "'");
}

char *image_script(const struct service *service, const char *instance)
{
	struct text t = {};

	text_add(&t, "#!/bin/sh\nimage=");
	add_quoted(&t, service->image);
	text_add(&t, "\ninstance=");
	add_quoted(&t, instance);
	text_add(&t, "\nset --");
	if (*service->command) {
		text_add(&t, " sh -c ");
		add_quoted(&t, service->command);
	}
	text_addf(&t, "\n%s", run_image);
	return text_take(&t);
}
