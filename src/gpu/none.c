/* SPDX-License-Identifier: Apache-2.0 */
/* No devices: there is nothing to ask, so everything is refused. */
#include "base/str.h"
#include "gpu/gpu.h"

#include <errno.h>

static int none_memory(struct gpu *gpu, unsigned device, struct gpu_memory *ret)
{
	return -ENODEV;
}

static int none_processes(struct gpu *gpu, unsigned device, struct gpu_process *ret, size_t cap,
			  size_t *ret_n)
{
	return -ENODEV;
}

static int none_activity(struct gpu *gpu, unsigned device, uint64_t since_us,
			 struct gpu_activity *ret, size_t cap, size_t *ret_n)
{
	return -ENODEV;
}

static int none_utilization(struct gpu *gpu, unsigned device, unsigned *ret_percent)
{
	return -ENODEV;
}

static int none_driver_limits(struct gpu *gpu, unsigned device, const char *cgroup_dir,
			      uint64_t low_bytes, uint64_t max_bytes)
{
	return -ENODEV;
}

static void none_close(struct gpu *gpu)
{
	free(gpu);
}

static const struct gpu_ops none_ops = {
	.name = "none",
	.memory = none_memory,
	.processes = none_processes,
	.activity = none_activity,
	.utilization = none_utilization,
	.driver_limits = none_driver_limits,
	.close = none_close,
};

int gpu_none_open(const char *reason, struct gpu **ret)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return -ENOMEM;
	gpu->ops = &none_ops;
	str_copy(gpu->reason, sizeof(gpu->reason), reason);
	*ret = gpu;
	return 0;
}
