/* SPDX-License-Identifier: Apache-2.0 */
#include "assoc/assoc.h"

#include "base/check.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID   "3f2b1c4d-0000-1111-2222-333344445555"

static const struct {
	const char *what;
	const char *file;
	enum assoc_runtime runtime;
	const char *container;
	const char *pod;
	uint32_t job;
	const char *step;
	const char *vm;
} cases[] = {
	{ "a login", "0::/user.slice/user-1000.slice/session-3.scope\n", 0, "", "", 0, "", "" },
	{ "podman, cgroupfs, v1", "4:freezer:/libpod_parent/libpod-" ID "\n0::/\n", ASSOC_PODMAN,
	  ID, "", 0, "", "" },
	{ "podman, systemd", "0::/machine.slice/libpod-" ID ".scope/container\n", ASSOC_PODMAN, ID,
	  "", 0, "", "" },
	{ "podman's monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n", 0, "", "", 0, "",
	  "" },
	{ "docker, cgroupfs", "3:cpu,freezer:/docker/" ID "\n", ASSOC_DOCKER, ID, "", 0, "", "" },
	{ "docker, systemd", "0::/system.slice/docker-" ID ".scope\n", ASSOC_DOCKER, ID, "", 0, "",
	  "" },
	{ "kubelet, cgroupfs", "0::/kubepods/burstable/pod" UID "/" ID "\n", ASSOC_OCI, ID, UID, 0,
	  "", "" },
	{ "kubelet, guaranteed", "0::/kubepods/pod" UID "/" ID "\n", ASSOC_OCI, ID, UID, 0, "",
	  "" },
	{ "kubelet, systemd",
	  "0::/kubepods.slice/kubepods-besteffort.slice/"
	  "kubepods-besteffort-pod3f2b1c4d_0000_1111_2222_333344445555.slice/cri-containerd-" ID
	  ".scope\n",
	  ASSOC_CONTAINERD, ID, UID, 0, "", "" },
	{ "cri-o", "0::/kubepods.slice/kubepods-pod3f2b.slice/crio-" ID ".scope\n", ASSOC_CRIO, ID,
	  "3f2b", 0, "", "" },
	{ "runc, systemd", "0::/system.slice/runc-web_1.scope\n", ASSOC_RUNC, "web_1", "", 0, "",
	  "" },
	{ "crun, systemd", "0::/system.slice/crun-a.b.scope\n", ASSOC_CRUN, "a.b", "", 0, "", "" },
	{ "runc, any folder", "0::/" ID "\n", ASSOC_OCI, ID, "", 0, "", "" },
	{ "a container in a container", "0::/docker/" ID "/libpod_parent/libpod-" OTHER "\n",
	  ASSOC_DOCKER, ID, "", 0, "", "" },
	{ "Slurm, v1", "5:freezer:/slurm_n1/uid_0/job_7/step_batch/task_0\n0::/\n", 0, "", "", 7,
	  "batch", "" },
	{ "Slurm, v2", "0::/system.slice/n1_slurmstepd.scope/job_12/step_3/user/task_0\n", 0, "",
	  "", 12, "3", "" },
	{ "a container in a job", "2:freezer:/slurm/uid_5/job_9/step_0/libpod-" ID "\n",
	  ASSOC_PODMAN, ID, "", 9, "0", "" },
	{ "a user's folder called like a job's",
	  "0::/user.slice/user-5.slice/user@5.service/slurm_n1/uid_0/job_7/step_0\n", 0, "", "", 0,
	  "", "" },
	{ "a job beyond all numbers", "1:freezer:/slurm_n1/uid_0/job_99999999999/step_0\n", 0, "",
	  "", 0, "", "" },
	{ "libvirt, systemd",
	  "0::/machine.slice/machine-qemu\\x2d3\\x2ddesk.scope/libvirt/emulator\n", 0, "", "", 0,
	  "", "desk" },
	{ "libvirt, v1", "7:freezer:/machine/qemu-12-desk-2.libvirt-qemu/emulator\n", 0, "", "", 0,
	  "", "desk-2" },
	{ "a removed cgroup", "0::/docker/" ID " (deleted)\n", 0, "", "", 0, "", "" },
	{ "a hostile name", "0::/system.slice/runc-a b;rm.scope\n", 0, "", "", 0, "", "" },
	{ "a name that says it is removed", "0::/user.slice/x (deleted)/libpod-" ID "\n",
	  ASSOC_PODMAN, ID, "", 0, "", "" },
	{ "a newline as some files escape it", "0::/system.slice/runc-a\\012b.scope\n", 0, "", "",
	  0, "", "" },
	{ "bytes that are no text",
	  "0::/system.slice/runc-\xff\x1b.scope/docker-" ID "\xff.scope\n", 0, "", "", 0, "", "" },
};

static void test_places(void)
{
	struct assoc_place p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (!check(assoc_parse(cases[i].file, strlen(cases[i].file), &p) == 0,
			   "%s: is read", cases[i].what))
			continue;
		check(p.runtime == cases[i].runtime && str_eq(p.container, cases[i].container) &&
			      str_eq(p.pod, cases[i].pod) && p.job == cases[i].job &&
			      str_eq(p.step, cases[i].step) && str_eq(p.vm, cases[i].vm),
		      "%s: %s '%s' pod '%s' job %u step '%s' vm '%s'", cases[i].what,
		      assoc_runtime_name(p.runtime), p.container, p.pod, p.job, p.step, p.vm);
		assoc_place_done(&p);
	}
}

static void test_bad(void)
{
	static const char *const bad[] = { "x",
					   "0:/a\n",
					   "0::a\n",
					   "a::/\n",
					   "0::/a\n0::/b\n",
					   "0::/a\nb\n",
					   "1:freezer:/a\n2:freezer:/b\n" };
	struct assoc_place p = { .job = 3 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(assoc_parse(bad[i], strlen(bad[i]), &p) == -EBADMSG && p.job == 3,
		      "bad %zu: refused", i);
	check(assoc_parse("0::/a\0b\n", 8, &p) == -EBADMSG, "bad: a NUL in it");
}

static void test_long(void)
{
	char path[4200];
	struct assoc_place p;

	memset(path, 'x', sizeof(path));
	memcpy(path, "0::/", 4);
	path[4099] = '\0';
	check(assoc_parse(path, 4099, &p) == 0 && strlen(p.cgroup) == 4096,
	      "a path of 4 KiB is kept whole");
	assoc_place_done(&p);
	memcpy(path, "0::/runc-", 9);
	memcpy(path + 4093, ".scope", 6);
	check(assoc_parse(path, 4099, &p) == 0 && !*p.container,
	      "a name of 4 KiB is no container's");
	assoc_place_done(&p);
}

static void write_at(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *path = str_format("%s/%s", dir, name);

	file_replace(path, text, strlen(text), 0644);
}

static void test_process(void)
{
	char dir[] = "/tmp/test-assoc-XXXXXX";
	_cleanup_free_ char *proc = NULL, *command = NULL;
	_cleanup_close_ int fd = -1, real = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct assoc_process p;

	if (!check(mkdtemp(dir) != NULL, "process: a folder"))
		return;
	proc = str_format("%s/41", dir);
	fd_mkdir_parents(proc, 0755);
	write_at(proc, "stat", "41 (a) (b) x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n");
	write_at(proc, "status", "Name:\tx\nUid:\t1005\t0\t0\t0\n");
	write_at(proc, "cgroup", "0::/docker/" ID "\n");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(assoc_of_pid(fd, 41, &p) == 0 && p.start_time == 4711 && p.uid == 1005 &&
		      str_eq(p.name, "a) (b) x") && str_eq(p.place.container, ID),
	      "process: a name with brackets");
	assoc_process_done(&p);
	check(assoc_of_pid(fd, 42, &p) == ASSOC_E_GONE, "process: there is none");
	write_at(proc, "cgroup", "rubbish");
	check(assoc_of_pid(fd, 41, &p) == -EBADMSG, "process: rubbish is a fault");
	check(assoc_descends(real, getpid(), getppid()) &&
		      assoc_descends(real, getpid(), getpid()) &&
		      !assoc_descends(real, getppid(), getpid()),
	      "process: who started whom");
	check(assoc_of_pid(real, getpid(), &p) == 0 && p.pid == getpid() && p.uid == getuid(),
	      "process: this one");
	assoc_process_done(&p);
	command = str_format("rm -r %s", dir);
	check(system(command) == 0, "process: the folder goes");
}

int main(void)
{
	test_places();
	test_bad();
	test_long();
	test_process();
	return check_result();
}
