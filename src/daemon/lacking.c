/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/lacking.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <unistd.h>

/* @instead: another one that stands for it, or the same again */
static const struct {
	unsigned number;
	unsigned instead;
	const char *name;
} capabilities[] = {
	{ CAP_BPF, CAP_SYS_ADMIN, "CAP_BPF" },
	{ CAP_PERFMON, CAP_SYS_ADMIN, "CAP_PERFMON" },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_SYS_ADMIN, CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
};

/* What a kernel shows in /sys where it was built with an option. */
static const struct {
	const char *file;
	const char *option;
} options[] = {
	{ "kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF" },
	{ "bus/event_source/devices/uprobe/type", "CONFIG_UPROBE_EVENTS" },
};

static void add(struct text *t, const char *what)
{
	text_addf(t, "%s%s", t->len ? ", " : "", what);
}

static void add_capabilities(struct text *t, const char *proc_dir)
{
	_cleanup_free_ char *path = str_format("%s/self/status", proc_dir), *status = NULL;
	const char *line;
	uint64_t have;
	size_t i;

	if (!path || file_read_at(AT_FDCWD, path, 65536, &status, NULL) < 0)
		return;
	line = strstr(status, "\nCapEff:");
	if (!line || sscanf(line, "\nCapEff: %" SCNx64, &have) != 1)
		return;
	for (i = 0; i < ARRAY_SIZE(capabilities); i++) {
		if (!(have >> capabilities[i].number & 1) && !(have >> capabilities[i].instead & 1))
			add(t, capabilities[i].name);
	}
}

/* The host's own namespace has every number in it. */
static bool is_in_user_namespace(const char *proc_dir)
{
	_cleanup_free_ char *path = str_format("%s/self/uid_map", proc_dir), *map = NULL;
	unsigned inside, outside, n;

	return path && file_read_at(AT_FDCWD, path, 65536, &map, NULL) == 0 &&
	       sscanf(map, "%u %u %u", &inside, &outside, &n) == 3 &&
	       (inside != 0 || outside != 0 || n != UINT32_MAX);
}

static void add_options(struct text *t, const char *sys_dir)
{
	char *path;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		path = str_format("%s/%s", sys_dir, options[i].file);
		if (path && access(path, F_OK) < 0)
			add(t, options[i].option);
		free(path);
	}
}

/*
 * The strictest lockdown takes the helpers away that read the kernel's memory. The verifier then speaks of
 * an unknown function.
 */
static void add_lockdown(struct text *t, const char *sys_dir)
{
	_cleanup_free_ char *path = str_format("%s/kernel/security/lockdown", sys_dir);
	_cleanup_free_ char *modes = NULL;

	if (path && file_read_at(AT_FDCWD, path, 256, &modes, NULL) == 0 &&
	    strstr(modes, "[confidentiality]"))
		add(t, "leave to read the kernel's memory (lockdown=confidentiality)");
}

char *lacking_text(const char *proc_dir, const char *sys_dir)
{
	struct text t = {};

	add_capabilities(&t, proc_dir);
	if (is_in_user_namespace(proc_dir))
		add(&t, "the host's user namespace (root of a container's own has no say about the "
			"kernel)");
	add_options(&t, sys_dir);
	add_lockdown(&t, sys_dir);
	if (t.len > 0)
		return text_take(&t);
	text_done(&t);
	return NULL;
}

/* Where nothing is missing and no program was looked at, there is but the number. */
static const char *fault_text(int fault)
{
	const char *text = strerrordesc_np(-fault);

	switch (-fault) {
	case EPROTO:
		return "the books in the state folder are of another version; cotenantd --remove "
		       "takes them away";
	case EPERM:
	case EACCES:
		return "the kernel does not permit BPF programs and does not say why: a seccomp filter "
		       "or a security module";
	case ENOSYS:
		return "missing here: CONFIG_BPF_SYSCALL";
	case EOPNOTSUPP:
		return "this kernel runs none of the rungs that were asked for";
	default:
		/* Those of libbpf's own have no words here. */
		return text ? text : "libbpf cannot load the programs";
	}
}

char *lacking_reason(int fault, const char *refusal, const char *proc_dir, const char *sys_dir)
{
	_cleanup_free_ char *lacking = fault == -EPROTO ? NULL : lacking_text(proc_dir, sys_dir);

	if (!lacking)
		return strdup(*refusal ? refusal : fault_text(fault));
	return str_format("missing here: %s%s%s", lacking, *refusal ? "; " : "", refusal);
}
