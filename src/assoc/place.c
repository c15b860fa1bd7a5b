/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroup paths of the engines and runtimes, as they name them.
 *
 *	/libpod_parent/libpod-ID, /machine.slice/libpod-ID.scope/container	podman
 *	/docker/ID, /system.slice/docker-ID.scope				docker
 *	/kubepods/burstable/podUID/ID						kubelet, cgroupfs
 *	/kubepods.slice/kubepods-podUID.slice/cri-containerd-ID.scope		kubelet, systemd
 *	/user.slice/runc-ID.scope, /user.slice/crun-ID.scope
 *	/slurm_NODE/uid_0/job_7/step_batch/task_0				Slurm, v1
 *	/system.slice/slurmstepd.scope/job_7/step_0/user/task_0			Slurm, v2
 *	/machine.slice/machine-qemu\x2d3\x2dNAME.scope				libvirt, systemd
 *	/machine/qemu-3-NAME.libvirt-qemu					libvirt, v1
 */
#include "assoc/assoc.h"

#include "base/str.h"

#include <errno.h>

static const char *const runtime_names[N_ASSOC_RUNTIMES] = {
	[ASSOC_NO_CONTAINER] = "none", [ASSOC_PODMAN] = "podman",
	[ASSOC_DOCKER] = "docker",     [ASSOC_CONTAINERD] = "containerd",
	[ASSOC_CRIO] = "cri-o",	       [ASSOC_RUNC] = "runc",
	[ASSOC_CRUN] = "crun",	       [ASSOC_OCI] = "oci",
};

/* How systemd's scopes, and podman's folders, are named before the id. */
static const struct {
	const char *prefix;
	enum assoc_runtime runtime;
} scopes[] = {
	{ "libpod-", ASSOC_PODMAN },
	{ "docker-", ASSOC_DOCKER },
	{ "cri-containerd-", ASSOC_CONTAINERD },
	{ "crio-", ASSOC_CRIO },
	{ "runc-", ASSOC_RUNC },
	{ "crun-", ASSOC_CRUN },
};

/* One part of a path, between two slashes. */
struct part {
	const char *s;
	size_t len;
};

/* What is known of a path while its parts are gone through. */
struct reading {
	struct assoc_place *place;
	struct part before;
	unsigned depth;
	bool in_slurm;
};

const char *assoc_runtime_name(enum assoc_runtime runtime)
{
	return runtime_names[runtime];
}

static bool part_is(struct part p, const char *s)
{
	return p.len == strlen(s) && memcmp(p.s, s, p.len) == 0;
}

static bool take_prefix(struct part *p, const char *prefix)
{
	size_t n = strlen(prefix);

	if (p->len < n || memcmp(p->s, prefix, n) != 0)
		return false;
	p->s += n;
	p->len -= n;
	return true;
}

static bool take_suffix(struct part *p, const char *suffix)
{
	size_t n = strlen(suffix);

	if (p->len < n || memcmp(p->s + p->len - n, suffix, n) != 0)
		return false;
	p->len -= n;
	return true;
}

static bool consists_of(struct part p, const char *of)
{
	size_t i;

	for (i = 0; i < p.len; i++) {
		if (!p.s[i] || !strchr(of, p.s[i]))
			return false;
	}
	return p.len > 0;
}

static bool copy_part(char *dst, size_t cap, struct part p)
{
	if (p.len >= cap)
		return false;
	memcpy(dst, p.s, p.len);
	dst[p.len] = '\0';
	return true;
}

static bool is_id(struct part p)
{
	return p.len == 64 && consists_of(p, "0123456789abcdef");
}

/* What runc and crun take for a name, without what would need quoting somewhere. */
static bool is_container_name(struct part p)
{
	return p.s[0] != '.' &&
	       consists_of(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789+-._");
}

static bool parse_number(struct part p, uint32_t *ret)
{
	char text[12];
	uint64_t v;

	if (!copy_part(text, sizeof(text), p) || str_parse_u64(text, &v) < 0 || v > UINT32_MAX)
		return false;
	*ret = v;
	return true;
}

static void set_container(struct assoc_place *place, struct part id, enum assoc_runtime runtime)
{
	if (copy_part(place->container, sizeof(place->container), id))
		place->runtime = runtime;
}

static void read_container(struct reading *r, struct part p)
{
	bool is_scope = take_suffix(&p, ".scope");
	struct part id;
	size_t i;

	if (*r->place->container)
		return;
	if (is_id(p)) {
		set_container(r->place, p, part_is(r->before, "docker") ? ASSOC_DOCKER : ASSOC_OCI);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(scopes); i++) {
		id = p;
		if (!take_prefix(&id, scopes[i].prefix))
			continue;
		/* "libpod-conmon-ID" is who watches the container, not the container. */
		if (is_id(id) || (is_scope && scopes[i].runtime >= ASSOC_RUNC && id.len > 0 &&
				  is_container_name(id)))
			set_container(r->place, id, scopes[i].runtime);
	}
}

/* "pod1234-..." below kubepods, or "kubepods-burstable-pod1234_....slice". */
static void read_pod(struct reading *r, struct part p)
{
	const char *hex = "0123456789abcdef-_";
	char *c;

	if (*r->place->pod)
		return;
	if (take_suffix(&p, ".slice") && take_prefix(&p, "kubepods-")) {
		if (!take_prefix(&p, "burstable-"))
			take_prefix(&p, "besteffort-");
	} else if (!part_is(r->before, "kubepods") && !part_is(r->before, "burstable") &&
		   !part_is(r->before, "besteffort")) {
		return;
	}
	if (!take_prefix(&p, "pod") || !consists_of(p, hex) ||
	    !copy_part(r->place->pod, sizeof(r->place->pod), p))
		return;
	for (c = r->place->pod; *c; c++)
		*c = *c == '_' ? '-' : *c;
}

/* At the root, or in a unit of the system: there only root makes folders. */
static void read_slurm(struct reading *r, struct part p)
{
	uint32_t step;

	if (r->depth == 0 && (part_is(p, "slurm") || take_prefix(&p, "slurm_"))) {
		r->in_slurm = true;
		return;
	}
	if (r->depth == 1 && part_is(r->before, "system.slice") &&
	    take_suffix(&p, "slurmstepd.scope")) {
		r->in_slurm = true;
		return;
	}
	if (!r->in_slurm)
		return;
	if (!r->place->job && take_prefix(&p, "job_")) {
		parse_number(p, &r->place->job);
	} else if (r->place->job && !*r->place->step && take_prefix(&p, "step_")) {
		if (parse_number(p, &step) || consists_of(p, "abcdefghijklmnopqrstuvwxyz"))
			copy_part(r->place->step, sizeof(r->place->step), p);
	}
}

static bool is_vm_name(struct part p)
{
	return consists_of(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
}

/* "3-NAME": libvirt's number of the machine goes before the name. */
static void set_vm(struct assoc_place *place, struct part p, const char *dash)
{
	while (p.len > 0 && p.s[0] >= '0' && p.s[0] <= '9') {
		p.s++;
		p.len--;
	}
	if (take_prefix(&p, dash) && is_vm_name(p))
		copy_part(place->vm, sizeof(place->vm), p);
}

static void read_vm(struct reading *r, struct part p)
{
	if (*r->place->vm)
		return;
	if (part_is(r->before, "machine.slice") && take_suffix(&p, ".scope") &&
	    take_prefix(&p, "machine-qemu\\x2d"))
		set_vm(r->place, p, "\\x2d");
	else if (part_is(r->before, "machine") && take_suffix(&p, ".libvirt-qemu") &&
		 take_prefix(&p, "qemu-"))
		set_vm(r->place, p, "-");
}

static void read_path(struct assoc_place *place, const char *path)
{
	struct reading r = { .place = place, .before = { "", 0 } };
	const char *s = path;
	struct part p;

	for (; *s == '/'; s += p.len) {
		p = (struct part){ s + 1, strcspn(s + 1, "/") };
		s++;
		if (p.len == 0)
			continue;
		read_container(&r, p);
		read_pod(&r, p);
		read_slurm(&r, p);
		read_vm(&r, p);
		r.before = p;
		r.depth++;
	}
}

/* --- the file --- */

static bool has_controller(const char *list, const char *name)
{
	size_t n = strlen(name), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && strncmp(list, name, n) == 0)
			return true;
		if (!list[len])
			return false;
	}
}

static int keep(char **where, const char *path)
{
	/* A second line of the same hierarchy: not the kernel's words. */
	if (*where)
		return -EBADMSG;
	*where = strdup(path);
	return *where ? 0 : -ENOMEM;
}

/* NUMBER:CONTROLLERS:PATH */
static int read_line(struct assoc_place *place, char *line)
{
	char *controllers = strchr(line, ':'), *path;
	uint64_t number;

	if (!controllers)
		return -EBADMSG;
	*controllers++ = '\0';
	path = strchr(controllers, ':');
	if (!path || path[1] != '/' || str_parse_u64(line, &number) < 0)
		return -EBADMSG;
	*path++ = '\0';
	if (number == 0 && !*controllers)
		return keep(&place->cgroup, path);
	if (has_controller(controllers, "freezer"))
		return keep(&place->freezer, path);
	return 0;
}

int assoc_parse(const char *bytes, size_t len, struct assoc_place *ret)
{
	_cleanup_(assoc_place_done) struct assoc_place place = {};
	_cleanup_free_ char *text = NULL;
	char *line, *end;
	int r;

	if (memchr(bytes, '\0', len))
		return -EBADMSG;
	text = strndup(bytes, len);
	if (!text)
		return -ENOMEM;
	for (line = text; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		r = read_line(&place, line);
		if (r < 0)
			return r;
	}
	/* Container runtimes on a hybrid host may use either hierarchy. */
	if (place.cgroup)
		read_path(&place, place.cgroup);
	if (place.freezer)
		read_path(&place, place.freezer);
	*ret = place;
	memset(&place, 0, sizeof(place));
	return 0;
}

void assoc_place_done(struct assoc_place *place)
{
	free(place->cgroup);
	free(place->freezer);
	memset(place, 0, sizeof(*place));
}
