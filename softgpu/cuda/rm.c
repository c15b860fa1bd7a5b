/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/cuda/rm.h"

#include "softgpu/cuda/core.h"
#include "softgpu/state/state.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
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

/* The command that carries another. */
struct rm_xfer {
	uint32_t command, size;
	uint64_t pointer;
};

#define RM_ALLOC _IOWR('F', 0x2b, struct rm_alloc)
#define RM_XFER	 _IOWR('F', 211, struct rm_xfer)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int file = -1;
static bool wrapped;

static void file_open(void)
{
	const char *path = getenv("SOFTGPU_IOCTL");

	if (path)
		file = open(path, O_RDWR | O_CLOEXEC);
	wrapped = getenv("SOFTGPU_IOCTL_WRAPPED") != NULL;
}

/* It is refused by any file that is not NVIDIA's. */
static void file_tell(struct rm_alloc *alloc)
{
	struct rm_xfer xfer = { .command = RM_ALLOC,
				.size = sizeof(*alloc),
				.pointer = (uintptr_t)alloc };

	if (wrapped)
		ioctl(file, RM_XFER, &xfer);
	else
		ioctl(file, RM_ALLOC, alloc);
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
	if (r == 0 && file >= 0)
		file_tell(&alloc);
	return r;
}
