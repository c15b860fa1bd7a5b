/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/check.h"
#include "gate/gate.h"

#include <linux/ioctl.h>
#include <string.h>

#define COMMAND(nr, size) _IOC(_IOC_READ | _IOC_WRITE, 'F', (nr), (size))

struct alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
	uint32_t size, status;
};

static bool copy_own(void *userdata, uint64_t address, void *to, size_t n)
{
	if (address < 4096)
		return false;
	memcpy(to, (void *)(uintptr_t)address, n);
	return true;
}

static bool decode(uint32_t command, const void *argument, uint64_t *ret_bytes)
{
	return gate_decode(command, (uintptr_t)argument, copy_own, NULL, ret_bytes);
}

int main(void)
{
	uint32_t params[32] = {};
	struct alloc alloc = { .class = 0x40, .params = (uintptr_t)params };
	struct {
		uint32_t command, size;
		uint64_t pointer;
	} xfer = { COMMAND(0x2b, 32), sizeof(alloc), (uintptr_t)&alloc };
	uint64_t bytes;

	params[16] = 1 << 21;
	check(decode(COMMAND(0x2b, 32), &alloc, &bytes) && bytes == 1 << 21,
	      "NVOS21: size of device memory");
	check(decode(COMMAND(0x2b, 48), &alloc, &bytes) && bytes == 1 << 21, "NVOS64: the same");
	check(decode(COMMAND(211, 16), &xfer, &bytes) && bytes == 1 << 21, "XFER: what it wraps");
	xfer.command = COMMAND(211, 16);
	xfer.pointer = (uintptr_t)&xfer;
	check(decode(COMMAND(211, 16), &xfer, &bytes) && bytes == 0,
	      "XFER that wraps itself: told, and ends");
	params[6] = 1 << 25;
	check(!decode(COMMAND(0x2b, 32), &alloc, &bytes), "memory of the host is not the device's");
	params[6] = 0;
	params[2] = 0x80000;
	check(!decode(COMMAND(0x2b, 32), &alloc, &bytes), "address space is not memory");
	alloc.class = 0x3e;
	check(!decode(COMMAND(0x2b, 32), &alloc, &bytes), "other classes are not told");
	check(decode(COMMAND(0x2b, 32), NULL, &bytes) && bytes == 0, "what cannot be read is told");
	check(decode(COMMAND(0x27, 48), &alloc, &bytes), "the legacy call is told");
	check(!decode(COMMAND(0x29, 16), &alloc, &bytes), "a free is not told");
	check(decode(68, NULL, &bytes) && !decode(30, NULL, &bytes), "UVM: a pool of semaphores");
	return check_result();
}
