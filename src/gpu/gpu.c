/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "base/str.h"

#include <errno.h>

int gpu_open(const char *library, struct gpu **ret)
{
	char reason[200] = "";
	int r;

	r = gpu_nvml_open(library, ret, reason);
	if (r == 0 || r == -ENOMEM)
		return r;
	return gpu_none_open(reason, ret);
}

/* Processes start while we ask: ask for more until all fit. */
#define ROOM_FOR_MORE 16

int gpu_processes(struct gpu *gpu, unsigned device, struct gpu_process **list, size_t *cap,
		  size_t *ret_n)
{
	size_t n = 0, room;
	void *p;
	int r;

	for (;;) {
		r = gpu->ops->processes(gpu, device, *list, *cap, &n);
		if (r < 0)
			return r;
		if (n <= *cap)
			break;
		room = n + n / 4 + ROOM_FOR_MORE;
		p = reallocarray(*list, room, sizeof(**list));
		if (!p)
			return -ENOMEM;
		*list = p;
		*cap = room;
	}
	*ret_n = n;
	return 0;
}

int gpu_find(const struct gpu *gpu, const char *text)
{
	int found = -ENODEV;
	uint64_t index;
	unsigned i;

	if (str_parse_u64(text, &index) == 0)
		return index < gpu->n_devices ? (int)index : -ENODEV;
	for (i = 0; i < gpu->n_devices; i++) {
		if (str_eq(gpu->devices[i].uuid, text))
			return i;
		/* "GPU-" alone names nobody. */
		if (strlen(text) < sizeof("GPU-") || !str_after(gpu->devices[i].uuid, text))
			continue;
		found = found == -ENODEV ? (int)i : -EEXIST;
	}
	return found;
}

void gpu_close(struct gpu *gpu)
{
	if (gpu)
		gpu->ops->close(gpu);
}
