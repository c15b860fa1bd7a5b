/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML. All its answers are copied out at once; its handles stay valid until
 * nvmlShutdown().
 */
#include "gpu/gpu.h"

#include "base/str.h"
#include "gpu/nvml_abi.h"

#include <dlfcn.h>
#include <errno.h>

#define INSTANCES_MAX 8	 /* of one device; drivers of today have seven at most */
#define ROOM_FOR_MORE 16 /* samples that come while we make room */

struct nvml {
	struct gpu gpu;
	void *library;
	struct nvml_calls call;
	nvml_device *handles;
	/* Room for samples, of all devices: it grows to what the busiest has told at once. */
	struct nvml_process_sample *samples;
	unsigned n_room;
	bool started;
};

static struct nvml *to_nvml(struct gpu *gpu)
{
	return container_of(gpu, struct nvml, gpu);
}

static int nvml_errno(int code)
{
	switch (code) {
	case NVML_OK:
		return 0;
	case NVML_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case NVML_NO_PERMISSION:
		return -EPERM;
	case NVML_NOT_FOUND:
		return -ENOENT;
	case NVML_INSUFFICIENT_SIZE:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

static int nvml_memory(struct gpu *gpu, unsigned device, struct gpu_memory *ret)
{
	struct nvml *nvml = to_nvml(gpu);
	struct nvml_memory m;
	int r;

	r = nvml_errno(nvml->call.device_memory(nvml->handles[device], &m));
	if (r < 0)
		return r;
	ret->total_bytes = m.total;
	ret->used_bytes = m.used;
	ret->free_bytes = m.free;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct gpu_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* One process can have both kinds of context; it is listed once here, with its sum. */
static size_t merge(struct gpu_process *list, size_t n)
{
	size_t i, kept = 0;

	if (n)
		qsort(list, n, sizeof(*list), by_pid);
	for (i = 0; i < n; i++) {
		if (!kept || list[kept - 1].pid != list[i].pid)
			list[kept++] = list[i];
		else if (list[i].used_bytes == GPU_UNKNOWN ||
			 list[kept - 1].used_bytes == GPU_UNKNOWN)
			list[kept - 1].used_bytes = GPU_UNKNOWN;
		else
			list[kept - 1].used_bytes += list[i].used_bytes;
	}
	return kept;
}

typedef int (*processes_fn)(nvml_device, unsigned *, struct nvml_process *);

static int add_processes(processes_fn fn, nvml_device handle, struct gpu_process *list, size_t cap,
			 size_t *n)
{
	_cleanup_free_ struct nvml_process *found = calloc(cap, sizeof(*found));
	unsigned i, n_found = cap;
	int r;

	if (!found)
		return -ENOMEM;
	r = nvml_errno(fn(handle, &n_found, found));
	if (r == -ENOSPC) {
		/* Told how many there are: that is the answer. */
		*n = MAX(*n, cap) + n_found;
		return 0;
	}
	if (r < 0)
		return r;
	for (i = 0; i < n_found; i++, (*n)++) {
		if (*n < cap)
			list[*n] = (struct gpu_process){ found[i].pid, found[i].used_bytes };
	}
	return 0;
}

static int nvml_processes(struct gpu *gpu, unsigned device, struct gpu_process *ret, size_t cap,
			  size_t *ret_n)
{
	struct nvml *nvml = to_nvml(gpu);
	processes_fn compute = nvml->call.compute_processes;
	size_t n = 0;
	int r;

	if (!compute)
		compute = nvml->call.compute_processes_v2;
	if (!compute)
		return -EOPNOTSUPP;
	r = add_processes(compute, nvml->handles[device], ret, cap, &n);
	if (r < 0)
		return r;
	if (nvml->call.graphics_processes) {
		r = add_processes(nvml->call.graphics_processes, nvml->handles[device], ret, cap,
				  &n);
		if (r < 0 && r != -EOPNOTSUPP)
			return r;
	}
	*ret_n = n > cap ? n : merge(ret, n);
	return 0;
}

/* Return: 0, or -ENOMEM. */
static int make_room(struct nvml *nvml, unsigned n)
{
	void *samples = reallocarray(nvml->samples, n, sizeof(*nvml->samples));

	if (!samples)
		return -ENOMEM;
	nvml->samples = samples;
	nvml->n_room = n;
	return 0;
}

/* Drivers leave places without a sample as they were. */
static int read_samples(struct nvml *nvml, unsigned device, uint64_t since_us, unsigned *ret_n)
{
	*ret_n = nvml->n_room;
	if (nvml->n_room)
		memset(nvml->samples, 0, nvml->n_room * sizeof(*nvml->samples));
	return nvml_errno(
		nvml->call.process_samples(nvml->handles[device], nvml->samples, ret_n, since_us));
}

/* The library may say that there was no room, or fill what there is and say nothing. */
static bool may_be_cut_off(const struct nvml *nvml, int r)
{
	return r == -ENOSPC || (r == 0 && nvml->n_room && nvml->samples[nvml->n_room - 1].time_us);
}

static int nvml_activity(struct gpu *gpu, unsigned device, uint64_t since_us,
			 struct gpu_activity *ret, size_t cap, size_t *ret_n)
{
	struct nvml *nvml = to_nvml(gpu);
	unsigned i, n;
	int r;

	*ret_n = 0;
	if (!nvml->call.process_samples)
		return -EOPNOTSUPP;
	r = read_samples(nvml, device, since_us, &n);
	if (may_be_cut_off(nvml, r)) {
		r = make_room(nvml, MAX(n, nvml->n_room) + ROOM_FOR_MORE);
		if (r == 0)
			r = read_samples(nvml, device, since_us, &n);
	}
	/* "Not found" is how the library says that nothing happened. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	for (i = 0; i < MIN(n, nvml->n_room) && *ret_n < cap; i++) {
		if (nvml->samples[i].time_us == 0)
			continue;
		ret[(*ret_n)++] =
			(struct gpu_activity){ nvml->samples[i].pid, nvml->samples[i].time_us,
					       nvml->samples[i].sm_percent };
	}
	return 0;
}

static int nvml_utilization(struct gpu *gpu, unsigned device, unsigned *ret_percent)
{
	struct nvml *nvml = to_nvml(gpu);
	struct nvml_utilization u;
	int r;

	if (!nvml->call.device_utilization)
		return -EOPNOTSUPP;
	r = nvml_errno(nvml->call.device_utilization(nvml->handles[device], &u));
	if (r == 0)
		*ret_percent = u.gpu_percent;
	return r;
}

static int nvml_driver_limits(struct gpu *gpu, unsigned device, const char *cgroup_dir,
			      uint64_t low_bytes, uint64_t max_bytes)
{
	struct nvml_memory_limits limits = { cgroup_dir, low_bytes, max_bytes };
	struct nvml *nvml = to_nvml(gpu);

	if (!nvml->call.set_memory_limits)
		return -EOPNOTSUPP;
	return nvml_errno(nvml->call.set_memory_limits(nvml->handles[device], &limits));
}

static void nvml_close(struct gpu *gpu)
{
	struct nvml *nvml = to_nvml(gpu);

	if (nvml->started)
		nvml->call.shutdown();
	if (nvml->library)
		dlclose(nvml->library);
	free(nvml->samples);
	free(nvml->handles);
	free(gpu->devices);
	free(nvml);
}

static const struct gpu_ops nvml_ops = {
	.name = "nvml",
	.memory = nvml_memory,
	.processes = nvml_processes,
	.activity = nvml_activity,
	.utilization = nvml_utilization,
	.driver_limits = nvml_driver_limits,
	.close = nvml_close,
};

static const struct {
	const char *symbol;
	size_t offset;
	bool needed;
} symbols[] = {
#define NVML_CALL(member, symbol, needed, arguments)                                               \
	{ symbol, offsetof(struct nvml_calls, member), needed },
	NVML_CALLS(NVML_CALL)
#undef NVML_CALL
};

static int load(struct nvml *nvml, const char *path, char reason[200])
{
	size_t i;
	void *address;

	nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		snprintf(reason, 200, "cannot load %s: %.120s", path, dlerror());
		return -ENOENT;
	}
	for (i = 0; i < ARRAY_SIZE(symbols); i++) {
		address = dlsym(nvml->library, symbols[i].symbol);
		if (!address && symbols[i].needed) {
			snprintf(reason, 200, "%s has no %s", path, symbols[i].symbol);
			return -ENOENT;
		}
		memcpy((char *)&nvml->call + symbols[i].offset, &address, sizeof(address));
	}
	return 0;
}

static void find_library_dir(struct nvml *nvml)
{
	struct gpu *gpu = &nvml->gpu;
	void *symbol;
	Dl_info info;
	char *slash;

	memcpy(&symbol, &nvml->call.init, sizeof(symbol));
	if (!dladdr(symbol, &info) || !info.dli_fname)
		return;
	if (str_copy(gpu->library_dir, sizeof(gpu->library_dir), info.dli_fname))
		slash = strrchr(gpu->library_dir, '/');
	else
		slash = NULL;
	if (slash)
		*slash = '\0';
	else
		gpu->library_dir[0] = '\0';
}

/* The next of the list: a device, or an instance of one. */
static int read_device(struct nvml *nvml, nvml_device handle, int index)
{
	struct gpu_device *d = &nvml->gpu.devices[nvml->gpu.n_devices];
	struct nvml_memory memory;
	struct nvml_pci pci;
	int r;

	r = nvml_errno(nvml->call.device_uuid(handle, d->uuid, sizeof(d->uuid)));
	if (r == 0)
		r = nvml_errno(nvml->call.device_name(handle, d->name, sizeof(d->name)));
	if (r == 0)
		r = nvml_errno(nvml->call.device_memory(handle, &memory));
	if (r < 0)
		return r;
	d->total_bytes = memory.total;
	d->index = index;
	if (index >= 0 && nvml->call.device_pci && nvml->call.device_pci(handle, &pci) == NVML_OK)
		snprintf(d->bus_id, sizeof(d->bus_id), "%.31s", pci.bus_id);
	if (index < 0 || !nvml->call.device_serial ||
	    nvml->call.device_serial(handle, d->serial, sizeof(d->serial)) != NVML_OK)
		d->serial[0] = '\0';
	nvml->handles[nvml->gpu.n_devices++] = handle;
	return 0;
}

static bool is_partitioned(const struct nvml *nvml, nvml_device handle)
{
	unsigned now = 0, pending = 0;

	return nvml->call.mig_mode && nvml->call.mig_mode(handle, &now, &pending) == NVML_OK &&
	       now == NVML_MIG_ENABLED;
}

/*
 * The instances of a device. Each has its own memory, UUID and list of processes; the numbers of their
 * places have gaps. Without the calls that list them a device would be shown as having nobody on it, so it
 * is refused.
 */
static int read_instances(struct nvml *nvml, nvml_device handle)
{
	unsigned i, n = 0;
	nvml_device instance;
	int r = -EOPNOTSUPP;

	if (nvml->call.mig_count && nvml->call.mig_by_index)
		r = nvml_errno(nvml->call.mig_count(handle, &n));
	for (i = 0; r == 0 && i < MIN(n, (unsigned)INSTANCES_MAX); i++) {
		r = nvml_errno(nvml->call.mig_by_index(handle, i, &instance));
		if (r == 0)
			r = read_device(nvml, instance, /* index= */ -1);
		else if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int read_devices(struct nvml *nvml, char reason[200])
{
	struct gpu *gpu = &nvml->gpu;
	unsigned i, n = 0;
	nvml_device handle;
	bool parts = false;
	int r;

	r = nvml_errno(nvml->call.device_count(&n));
	if (r < 0) {
		snprintf(reason, 200, "NVML does not tell how many devices there are");
		return r;
	}
	gpu->devices = calloc(n * INSTANCES_MAX + 1, sizeof(*gpu->devices));
	nvml->handles = calloc(n * INSTANCES_MAX + 1, sizeof(*nvml->handles));
	if (!gpu->devices || !nvml->handles)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		r = nvml_errno(nvml->call.device_by_index(i, &handle));
		if (r == 0) {
			parts = is_partitioned(nvml, handle);
			r = parts ? read_instances(nvml, handle) : read_device(nvml, handle, i);
		}
		if (r < 0) {
			snprintf(reason, 200, "NVML does not tell about %sdevice %u",
				 parts ? "the instances of " : "", i);
			return r;
		}
	}
	return 0;
}

static int start(struct nvml *nvml, char reason[200])
{
	struct gpu *gpu = &nvml->gpu;
	int code;

	code = nvml->call.init();
	if (code != NVML_OK) {
		snprintf(reason, 200, "nvmlInit answered %d: is the driver loaded?", code);
		return nvml_errno(code);
	}
	nvml->started = true;
	find_library_dir(nvml);
	nvml->call.driver_version(gpu->driver_version, sizeof(gpu->driver_version));
	if (nvml->call.cuda_version)
		nvml->call.cuda_version(&gpu->cuda_version);
	gpu->has_driver_limits = nvml->call.set_memory_limits != NULL;
	return read_devices(nvml, reason);
}

int gpu_nvml_open(const char *library, struct gpu **ret, char reason[200])
{
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	int r;

	if (!nvml)
		return -ENOMEM;
	nvml->gpu.ops = &nvml_ops;
	r = load(nvml, library ? library : "libnvidia-ml.so.1", reason);
	if (r == 0)
		r = start(nvml, reason);
	if (r < 0) {
		nvml_close(&nvml->gpu);
		return r;
	}
	*ret = &nvml->gpu;
	return 0;
}
