/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the devices tell about themselves: who they are, their memory, and what
 * each process has of it.
 *
 * Two makers: NVML, opened at run time so that nothing of NVIDIA's is needed to
 * build, and none, which has no devices and says why. Devices are numbered from 0
 * as the maker lists them; everything that lasts uses the UUID.
 *
 * Functions return 0, or a negative errno: -EOPNOTSUPP where the driver cannot tell.
 */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

#define GPU_UUID_SIZE 80

/* A number that the driver does not tell. */
#define GPU_UNKNOWN UINT64_MAX

struct gpu;

/**
 * struct gpu_device - a device, or an instance of a partitioned one (MIG)
 * @uuid:	"GPU-..." or "MIG-..."
 * @index:	its number in NVML, -1 for an instance
 * @bus_id:	where it is, "00000000:01:00.0"; empty for an instance, and where NVML does not tell
 * @serial:	likewise
 *
 * A partitioned device is not listed itself: its memory is that of its instances.
 */
struct gpu_device {
	char uuid[GPU_UUID_SIZE];
	char name[96];
	int index;
	char bus_id[32];
	char serial[32];
	uint64_t total_bytes;
};

struct gpu_memory {
	uint64_t total_bytes;
	uint64_t used_bytes;
	uint64_t free_bytes;
};

/**
 * struct gpu_process - what one process has of a device
 * @used_bytes:		GPU_UNKNOWN where the driver does not tell
 */
struct gpu_process {
	pid_t pid;
	uint64_t used_bytes;
};

/**
 * struct gpu_activity - a process was seen at work
 * @time_us:	when, since the epoch
 */
struct gpu_activity {
	pid_t pid;
	uint64_t time_us;
	unsigned percent;
};

/**
 * struct gpu_ops - what a maker does
 * @processes:		fills in at most @cap, tells in *ret_n how many there are, or have to fit at least
 * @activity:		samples younger than @since_us; the same form
 * @driver_limits:	lets the driver itself keep limits on a cgroup folder
 * @utilization:	per cent of time in which something ran, lately
 */
struct gpu_ops {
	const char *name;
	int (*memory)(struct gpu *gpu, unsigned device, struct gpu_memory *ret);
	int (*processes)(struct gpu *gpu, unsigned device, struct gpu_process *ret, size_t cap,
			 size_t *ret_n);
	int (*activity)(struct gpu *gpu, unsigned device, uint64_t since_us,
			struct gpu_activity *ret, size_t cap, size_t *ret_n);
	int (*utilization)(struct gpu *gpu, unsigned device, unsigned *ret_percent);
	int (*driver_limits)(struct gpu *gpu, unsigned device, const char *cgroup_dir,
			     uint64_t low_bytes, uint64_t max_bytes);
	void (*close)(struct gpu *gpu);
};

/**
 * struct gpu - a maker and its devices
 * @library_dir:	where the library lies: libcuda is its neighbour; "" where there is none
 * @has_driver_limits:	the driver can keep limits itself
 * @reason:		why there is none, where there is none
 */
struct gpu {
	const struct gpu_ops *ops;
	struct gpu_device *devices;
	unsigned n_devices;
	char driver_version[80];
	int cuda_version;
	char library_dir[256];
	bool has_driver_limits;
	char reason[200];
};

/**
 * gpu_open() - NVML, or none where it does not work
 * @library:	path of the library, NULL for libnvidia-ml.so.1 as the loader finds it
 *
 * Return: 0 also for none; -ENOMEM.
 */
int gpu_open(const char *library, struct gpu **ret);

/**
 * gpu_nvml_open() - NVML
 * @reason:	why not, on any fault but -ENOMEM
 */
int gpu_nvml_open(const char *library, struct gpu **ret, char reason[200]);

/**
 * gpu_none_open() - no devices
 */
int gpu_none_open(const char *reason, struct gpu **ret);

/**
 * gpu_processes() - all processes of a device
 * @list:	room for @cap of them, NULL for none; made larger where it must, the caller frees it
 */
int gpu_processes(struct gpu *gpu, unsigned device, struct gpu_process **list, size_t *cap,
		  size_t *ret_n);

/**
 * gpu_find() - number of a device by its UUID, the beginning of one, or its index
 *
 * Return: the number; -ENODEV if there is none; -EEXIST if the beginning fits several.
 */
int gpu_find(const struct gpu *gpu, const char *text);

void gpu_close(struct gpu *gpu);

#endif
