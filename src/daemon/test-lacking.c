/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing, told from files such as a container has them. */
#include "base/check.h"
#include "base/file.h"
#include "base/str.h"
#include "daemon/lacking.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define HOST_MAP      "         0          0 4294967295\n"
#define CONTAINER_MAP "         0     100000      65536\n"
#define ALL	      "000001ffffffffff"
#define DOCKER	      "00000000a80425fb"
#define BPF_PERFMON   "000000c000080000" /* and CAP_SYS_PTRACE */

static char dir[] = "/tmp/test-lacking-XXXXXX";

static void put(const char *name, const char *text)
{
	_cleanup_free_ char *path = str_format("%s/%s", dir, name);
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

static void make(const char *name)
{
	_cleanup_free_ char *path = str_format("%s/%s", dir, name);

	if (path)
		mkdir(path, 0755);
}

static void check_text(const char *what, const char *caps, const char *map, const char *expected)
{
	_cleanup_free_ char *status = str_format("Name:\tx\nCapEff:\t%s\nCapBnd:\t0\n", caps);
	_cleanup_free_ char *text = NULL;

	put("self/status", status);
	put("self/uid_map", map);
	text = lacking_text(dir, dir);
	check(text ? expected && str_eq(text, expected) : !expected, "lacking_text: %s: %s", what,
	      text ? text : "nothing");
}

static void check_reason(const char *what, int fault, const char *refusal, const char *expected)
{
	_cleanup_free_ char *reason = lacking_reason(fault, refusal, dir, dir);

	check(reason && strstr(reason, expected), "lacking_reason: %s: %s", what, reason);
}

#define REFUSAL "the kernel's verifier refuses on_call: R1 invalid mem access"

/* In a fixture that has everything. */
static void test_reasons(void)
{
	check_reason("the verifier's words", -EACCES, REFUSAL, REFUSAL);
	check_reason("no words", -EPERM, "", "a seccomp filter");
	check_reason("books of another version", -EPROTO, "", "of another version");
	check_reason("any other fault", -ENOMEM, "", "Cannot allocate memory");
	put("kernel/security/lockdown", "none [integrity] confidentiality\n");
	check_reason("a lockdown that lets programs be", -EACCES, REFUSAL, REFUSAL);
	put("kernel/security/lockdown", "none integrity [confidentiality]\n");
	check_reason("one that does not", -EINVAL, "",
		     "missing here: leave to read the kernel's memory (lockdown=confidentiality)");
	check_reason("that, and what came of it", -EINVAL, REFUSAL, "; " REFUSAL);
}

int main(void)
{
	static const char *const dirs[] = { "self",
					    "kernel",
					    "kernel/btf",
					    "kernel/security",
					    "bus",
					    "bus/event_source",
					    "bus/event_source/devices",
					    "bus/event_source/devices/uprobe" };
	_cleanup_free_ char *remove = NULL;
	size_t i;

	if (!mkdtemp(dir))
		return 1;
	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		make(dirs[i]);
	check_text("a kernel without both options", ALL, HOST_MAP,
		   "CONFIG_DEBUG_INFO_BTF, CONFIG_UPROBE_EVENTS");
	put("kernel/btf/vmlinux", "");
	check_text("one without probes", ALL, HOST_MAP, "CONFIG_UPROBE_EVENTS");
	put("bus/event_source/devices/uprobe/type", "9\n");
	check_text("everything is there", ALL, HOST_MAP, NULL);
	check_text("a container as Docker starts it", DOCKER, HOST_MAP,
		   "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN");
	check_text("all but the right to mount", BPF_PERFMON, HOST_MAP, "CAP_SYS_ADMIN");
	check_text(
		"root of a container's own users", ALL, CONTAINER_MAP,
		"the host's user namespace (root of a container's own has no say about the kernel)");
	put("self/status", "Name:\tx\nCapEff:\t" ALL "\n");
	put("self/uid_map", HOST_MAP);
	test_reasons();
	remove = str_format("rm -r %s", dir);
	check(remove && system(remove) == 0, "the fixture is taken away");
	return check_result();
}
