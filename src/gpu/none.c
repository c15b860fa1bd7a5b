/* SPDX-License-Identifier: Apache-2.0 */
/* No devices: there is nothing to ask, so everything is refused. */
#include "base/str.h"
#include "gpu/gpu.h"

#include <errno.h>

static int none_memory(_unused_ struct gpu *gpu, _unused_ unsigned device,
		       _unused_ struct gpu_memory *ret)
{
	return -ENODEV;
}

static int none_processes(_unused_ struct gpu *gpu, _unused_ unsigned device,
			  _unused_ struct gpu_process *ret, _unused_ size_t cap,
			  _unused_ size_t *ret_n)
{
	return -ENODEV;
}

static int none_activity(_unused_ struct gpu *gpu, _unused_ unsigned device,
			 _unused_ uint64_t since_us, _unused_ struct gpu_activity *ret,
			 _unused_ size_t cap, _unused_ size_t *ret_n)
{
	return -ENODEV;
}

static int none_utilization(_unused_ struct gpu *gpu, _unused_ unsigned device,
			    _unused_ unsigned *ret_percent)
{
	return -ENODEV;
}

static int none_driver_limits(_unused_ struct gpu *gpu, _unused_ unsigned device,
			      _unused_ const char *cgroup_dir, _unused_ uint64_t low_bytes,
			      _unused_ uint64_t max_bytes)
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
