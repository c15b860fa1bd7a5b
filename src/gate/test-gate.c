/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/check.h"
#include "gate/gate.h"

#include <linux/ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEPER_SECONDS 60

#define COMMAND(nr, size) _IOC(_IOC_READ | _IOC_WRITE, 'F', (nr), (size))

struct alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
	uint32_t size, status;
};

static bool copy_own(_unused_ void *userdata, uint64_t address, void *to, size_t n)
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

/* One that does not end would hold up the test: it is a process of its own, with an alarm. */
static bool keeper_ends(int fd)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(KEEPER_SECONDS);
		gate_keep(fd, /* device= */ 0, "/nowhere");
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status);
}

static void test_other_files(void)
{
	static const char *const names[] = { "a regular file", "a pipe", "an eventfd" };
	char path[] = "/tmp/test-gate-XXXXXX";
	int fds[ARRAY_SIZE(names)], ends[2];

	fds[0] = mkstemp(path);
	unlink(path);
	if (pipe(ends) < 0 || write(ends[1], "x", 1) != 1)
		exit(1);
	fds[1] = ends[0];
	fds[2] = eventfd(1, EFD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		check(!gate_is_listener(fds[i]), "%s is no listener", names[i]);
		check(keeper_ends(fds[i]), "a keeper ends on %s", names[i]);
		close(fds[i]);
		check(!gate_is_listener(fds[i]), "nor is it when it is closed");
	}
	close(ends[1]);
}

/* Last: the filter stays. */
static void test_listener(void)
{
	int listener = gate_filter();

	if (listener < 0)
		printf("no filter to be had here: %s\n", strerror(-listener));
	else
		check(gate_is_listener(listener), "the listener of a filter is one");
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
	test_other_files();
	test_listener();
	return check_result();
}
