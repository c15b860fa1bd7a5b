/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/cuda/rm.h"

#include "softgpu/cuda/core.h"
#include "softgpu/state/state.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define CLASS_MEMORY 0x40

struct rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};

/* The fields up to the size, and room for the rest. */
struct rm_memory {
	uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, offset_low,
		range[4];
	uint64_t alignment, size, rest[7];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int file = -1;

static void file_open(void)
{
	const char *path = getenv("SOFTGPU_IOCTL");

	if (path)
		file = open(path, O_RDWR | O_CLOEXEC);
}

int rm_charge(unsigned device, uint64_t bytes)
{
	struct rm_memory memory = { .owner = device, .size = bytes };
	struct rm_alloc alloc = { .root = 1,
				  .parent = device,
				  .class = CLASS_MEMORY,
				  .params = (uintptr_t)&memory,
				  .params_size = sizeof(memory) };
	int r = state_charge(driver.state, device, bytes);

	pthread_once(&once, file_open);
	/* It is refused by any file that is not NVIDIA's. */
	if (r == 0 && file >= 0)
		ioctl(file, _IOWR('F', 0x2b, struct rm_alloc), &alloc);
	return r;
}
