/* SPDX-License-Identifier: Apache-2.0 */
/* test-gpu LIBRARY: the path of fake-nvml. */
#include "base/check.h"
#include "base/str.h"
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <errno.h>

static void test_devices(struct gpu *gpu)
{
	struct gpu_memory m;
	unsigned percent = 0;

	check(str_eq(gpu->ops->name, "nvml") && gpu->n_devices == 2 && gpu->cuda_version == 12040 &&
		      str_eq(gpu->driver_version, "550.163.01"),
	      "gpu_open: NVML where it can be loaded");
	check(gpu_find(gpu, "1") == 1 && gpu_find(gpu, "2") == -ENODEV, "gpu_find: by number");
	check(gpu_find(gpu, "GPU-00000001") == 1, "gpu_find: by the beginning of a UUID");
	check(gpu_find(gpu, "GPU-0000") == -EEXIST && gpu_find(gpu, "GPU-") == -ENODEV,
	      "gpu_find: a beginning that fits several, or says nothing");
	check(gpu->ops->memory(gpu, 0, &m) == 0 && m.used_bytes == 10ULL << 30,
	      "gpu: memory in use");
	check(gpu->ops->utilization(gpu, 0, &percent) == 0 && percent == 42, "gpu: utilisation");
	check(gpu->has_driver_limits &&
		      gpu->ops->driver_limits(gpu, 0, "/sys/fs/cgroup/a", 0, 1) == 0 &&
		      gpu->ops->driver_limits(gpu, 0, "/sys/fs/cgroup/b", 0, 1) == -ENOENT,
	      "gpu: the driver's own limits");
}

static void test_processes(struct gpu *gpu)
{
	_cleanup_free_ struct gpu_process *list = NULL, *none = NULL;
	struct gpu_activity activity[4];
	size_t n = 0, cap = 0, no_cap = 0;

	check(gpu_processes(gpu, 0, &list, &cap, &n) == 0 && n == 100 && cap >= 100,
	      "gpu_processes: more than there was room for");
	check(list[0].pid == 1000 && list[0].used_bytes == 2 << 20,
	      "gpu_processes: both kinds of context in one sum");
	check(list[99].used_bytes == GPU_UNKNOWN, "gpu_processes: unknown stays unknown");
	check(gpu_processes(gpu, 1, &none, &no_cap, &n) == 0 && n == 0, "gpu_processes: nobody");
	check(gpu->ops->activity(gpu, 0, 0, activity, 4, &n) == 0 && n == 1 &&
		      activity[0].pid == 1001 && activity[0].percent == 33,
	      "gpu: who was at work");
	check(gpu->ops->activity(gpu, 0, 5000, activity, 4, &n) == 0 && n == 0,
	      "gpu: nobody since");
}

/* Each question is a call into the kernel with a real driver. */
static void test_questions(struct gpu *gpu, const char *library)
{
	void *fake = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	unsigned *n_asked = fake ? dlsym(fake, "fake_n_asked") : NULL, before;
	unsigned *n_busy = fake ? dlsym(fake, "fake_n_busy") : NULL;
	struct gpu_activity activity[32];
	size_t n = 0;

	if (!check(n_asked && n_busy, "gpu: the library that was opened"))
		return;
	gpu->ops->activity(gpu, 0, 0, activity, 4, &n);
	before = *n_asked;
	check(gpu->ops->activity(gpu, 1, 0, activity, 4, &n) == 0 && n == 1 &&
		      activity[0].time_us == 5000 && *n_asked == before + 1,
	      "gpu: with room for all samples a device is asked once");
	*n_busy = 20;
	check(gpu->ops->activity(gpu, 1, 0, activity, 32, &n) == 0 && n == 20 &&
		      activity[19].pid == 1020,
	      "gpu: more were at work than there was room for, and the library says nothing");
	*n_busy = 1;
	dlclose(fake);
}

static void test_partitioned(const char *library)
{
	struct gpu *gpu = NULL;

	setenv("FAKE_MIG", "1", 1);
	if (!check(gpu_open(library, &gpu) == 0, "trap 14: a library with a partitioned device"))
		return;
	check(gpu->n_devices == 4 &&
		      str_eq(gpu->devices[2].uuid, "MIG-00000003-aaaa-bbbb-cccc-000000000000") &&
		      str_eq(gpu->devices[3].uuid, "MIG-00000005-aaaa-bbbb-cccc-000000000000"),
	      "trap 14: its instances are devices, it itself is none");
	check(gpu->devices[1].index == 1 && gpu->devices[2].index == -1 &&
		      !*gpu->devices[2].bus_id &&
		      str_eq(gpu->devices[1].bus_id, "00000000:02:00.0"),
	      "trap 14: an instance has no number and no place of its own");
	gpu_close(gpu);
	setenv("FAKE_MIG", "silent", 1);
	check(gpu_open(library, &gpu) == 0 && gpu->n_devices == 0 &&
		      strstr(gpu->reason, "instances of device 2"),
	      "trap 14: who does not list the instances is refused, and why");
	gpu_close(gpu);
	unsetenv("FAKE_MIG");
}

int main(_unused_ int argc, char **argv)
{
	struct gpu *gpu = NULL;

	if (!check(gpu_open(argv[1], &gpu) == 0, "gpu_open: a library"))
		return 1;
	test_devices(gpu);
	test_processes(gpu);
	test_questions(gpu, argv[1]);
	gpu_close(gpu);
	test_partitioned(argv[1]);

	check(gpu_open("/nowhere/libnvidia-ml.so.1", &gpu) == 0 && gpu->n_devices == 0 &&
		      strstr(gpu->reason, "/nowhere"),
	      "gpu_open: none, and why, where there is no library");
	gpu_close(gpu);
	return check_result();
}
