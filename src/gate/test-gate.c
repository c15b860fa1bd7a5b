/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/check.h"
#include "gate/gate.h"
#include "gate/pace.h"

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

/* 10,000 ms in which processes ask in each of them; each has its own pace. */
static void test_pace(void)
{
	const unsigned n_processes = 3, n_ms = 10000, n_each = 5;
	struct gate_report asked = { .n_asked = 1, .bytes = 7 }, told;
	uint64_t n_told[4] = {}, n_asked[4] = {}, bytes[4] = {};
	struct gate_pace pace = {};

	for (uint64_t now = 0; now < n_ms + GATE_PACE_MS; now++) {
		for (unsigned i = 0; now < n_ms && i < n_processes * n_each; i++) {
			asked.pid = 1 + i % n_processes;
			gate_pace_add(&pace, &asked, now);
		}
		while (gate_pace_take(&pace, now, &told)) {
			n_told[told.pid]++;
			n_asked[told.pid] += told.n_asked;
			bytes[told.pid] += told.bytes;
		}
	}
	for (unsigned pid = 1; pid <= n_processes; pid++) {
		check(n_told[pid] == n_ms / GATE_PACE_MS + 1,
		      "pace: a process that asks all the time is told once in 20 ms");
		check(n_asked[pid] == n_ms * n_each && bytes[pid] == 7 * n_asked[pid],
		      "pace: all it asked for is told");
	}
	check(gate_pace_next(&pace, n_ms + 2 * GATE_PACE_MS) == -1 && pace.n == 0,
	      "pace: who asks no more is forgotten");
	gate_pace_done(&pace);
}

static void test_pace_of_one(void)
{
	struct gate_report asked = { .pid = 5, .n_asked = 1, .bytes = 4 }, told;
	struct gate_pace pace = {};

	gate_pace_add(&pace, &asked, 100);
	check(gate_pace_next(&pace, 100) == 0 && gate_pace_take(&pace, 100, &told),
	      "pace: the first is told at once");
	check(gate_pace_next(&pace, 101) == -1 && pace.n == 1, "pace: then nothing is to be told");
	gate_pace_add(&pace, &asked, 110);
	check(!gate_pace_take(&pace, 119, &told) && gate_pace_next(&pace, 119) == 1,
	      "pace: the next waits for its time");
	check(gate_pace_take(&pace, 120, &told), "pace: and is told then");
	gate_pace_return(&pace, &told, 120, 500);
	gate_pace_add(&pace, &asked, 130);
	check(!gate_pace_take(&pace, 619, &told) && gate_pace_next(&pace, 130) == 490,
	      "pace: what could not be sent waits");
	check(gate_pace_take(&pace, 620, &told) && told.n_asked == 2 && told.bytes == 8,
	      "pace: and is told with what came since");
	gate_pace_done(&pace);
}

static bool is_odd(uint32_t pid)
{
	return pid % 2;
}

static void test_pace_of_the_dead(void)
{
	struct gate_report asked = { .n_asked = 1 };
	struct gate_pace pace = {};

	for (asked.pid = 1; asked.pid <= 1000; asked.pid++)
		gate_pace_add(&pace, &asked, 0);
	gate_pace_drop_gone(&pace, is_odd);
	check(pace.n == 500, "pace: the dead need not be told of");
	gate_pace_done(&pace);
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
	test_pace();
	test_pace_of_one();
	test_pace_of_the_dead();
	test_other_files();
	test_listener();
	return check_result();
}
