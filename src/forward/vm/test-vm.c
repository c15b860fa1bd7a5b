// SPDX-License-Identifier: Apache-2.0
/* What is believed of a guest and of QEMU: memory, virtqueues, the vhost-user protocol. */
#include "forward/vm/fake-front.h"
#include "forward/vm/leftover.h"
#include "forward/vm/vhost.h"

#include "base/base.h"
#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PAGE	  4096
#define RAM_SIZE  (64 * PAGE)
#define RING_SIZE 8

/* Where things are in the guest of these tests. */
#define DESC  0
#define AVAIL PAGE
#define USED  (2 * PAGE)
#define TABLE (3 * PAGE)
#define DATA  (4 * PAGE)

static struct ram ram;
static struct virtq ring;

static int memory_new(uint64_t size)
{
	int fd = memfd_create("ram", 0);

	return fd >= 0 && ftruncate(fd, (off_t)size) == 0 ? fd : -1;
}

static void test_ram(void)
{
	struct ram_region regions[] = {
		{ .guest = 0, .user = 0x10000, .size = 8 * PAGE, .fd = memory_new(RAM_SIZE) },
		{ .guest = 16 * PAGE,
		  .user = 0x50000,
		  .size = 8 * PAGE,
		  .offset = 8 * PAGE,
		  .fd = memory_new(RAM_SIZE) },
	};

	check(ram_set(&ram, regions, 2) == 0, "ram: two regions");
	check(ram_at(&ram, 0, 8 * PAGE) == ram.regions[0].at, "ram: all of a region");
	check(!ram_at(&ram, PAGE, 8 * PAGE), "ram: not beyond its end");
	check(!ram_at(&ram, 8 * PAGE, 1), "ram: nothing between them");
	check(ram_at(&ram, 17 * PAGE, 1) == ram.regions[1].at + PAGE, "ram: within the second");
	check(!ram_at(&ram, UINT64_MAX, 2) && !ram_at(&ram, 0, UINT64_MAX),
	      "ram: nothing that wraps");
	check(ram_at_user(&ram, 0x51000, PAGE) == ram.regions[1].at + PAGE,
	      "ram: by QEMU's address");
	regions[0].fd = memory_new(PAGE);
	check(ram_set(&ram, regions, 1) == -EINVAL && ram.n == 0, "ram: no file that is too short");
	regions[0].fd = memory_new(RAM_SIZE);
	regions[0].guest = UINT64_MAX - PAGE + 1;
	check(ram_set(&ram, regions, 1) == -EINVAL, "ram: no region that wraps");
	regions[0].fd = memory_new(RAM_SIZE);
	regions[0].guest = 0;
	regions[0].user++;
	check(ram_set(&ram, regions, 1) == -EINVAL,
	      "ram: none whose pages are not pages of QEMU's, or rings would lie askew");
}

static void test_leftover(void)
{
	struct ram_region region = { .size = 8 * PAGE, .fd = memory_new(RAM_SIZE) };
	uint64_t at;

	check(ram_set(&ram, &region, 1) == 0, "leftover: memory");
	at = (uint64_t)(uintptr_t)ram.regions[0].at;
	check(leftover_check(&ram, getpid(), at + 7 * PAGE, PAGE) == -EBUSY,
	      "leftover: a page is found");
	check(leftover_check(&ram, getpid(), at + 8 * PAGE, PAGE) == 0, "leftover: none beside it");
	check(leftover_check(&ram, getpid(), (uint64_t)(uintptr_t)&ram, PAGE) == 0,
	      "leftover: no other memory");
	munmap(ram.regions[0].at, region.size);
	check(leftover_check(&ram, getpid(), at, region.size) == 0, "leftover: none after its end");
	ram.regions[0].at = NULL;
}

static void *stay(_unused_ void *arg)
{
	pause();
	return NULL;
}

/* Ends its first thread, and goes on in another. */
static _Noreturn void hide(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay, NULL) == 0)
		syscall(SYS_exit, 0);
	_exit(1);
}

static bool is_hidden(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		abort();
	fclose(f);
	return strstr(line, ") Z ");
}

static void test_leftover_of_threads(void)
{
	struct ram_region region = { .size = 8 * PAGE, .fd = memory_new(RAM_SIZE) };
	uint64_t at;
	pid_t pid;

	check(ram_set(&ram, &region, 1) == 0, "leftover: memory");
	at = (uint64_t)(uintptr_t)ram.regions[0].at;
	pid = fork();
	if (pid == 0)
		hide();
	while (!is_hidden(pid))
		usleep(1000);
	check(waitpid(pid, NULL, WNOHANG) == 0 && leftover_check(&ram, pid, at, PAGE) == -ESRCH,
	      "leftover: what goes on without its first thread is not taken for one that has nothing");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void ring_begin(void)
{
	struct ram_region region = { .user = 0x100000,
				     .size = RAM_SIZE,
				     .fd = memory_new(RAM_SIZE) };

	check(ram_set(&ram, &region, 1) == 0, "ring: memory");
	ring = (struct virtq){ .ram = &ram,
			       .size = RING_SIZE,
			       .user = { 0x100000 + DESC, 0x100000 + AVAIL, 0x100000 + USED } };
	check(virtq_find(&ring) == 0, "ring: is found");
}

static void describe(uint64_t table, unsigned i, uint64_t at, uint32_t size, uint16_t flags,
		     uint16_t next)
{
	struct vring_desc *desc = ram_at(&ram, table + i * sizeof(*desc), sizeof(*desc));

	*desc = (struct vring_desc){ at, size, flags, next };
}

static void make_available(uint16_t head)
{
	struct vring_avail *avail = ram_at(&ram, AVAIL, PAGE);

	avail->ring[avail->idx % RING_SIZE] = head;
	avail->idx++;
}

/* What a chain from descriptor 0 on is answered with. */
static int pop(struct chain *chain)
{
	make_available(0);
	return virtq_pop(&ring, chain);
}

static void test_chains(void)
{
	struct chain chain;
	char text[16] = "";

	check(virtq_pop(&ring, &chain) == 0, "chain: none");
	memcpy(ram_at(&ram, DATA, 8), "ab", 2);
	memcpy(ram_at(&ram, DATA + PAGE, 8), "cdef", 4);
	describe(DESC, 0, DATA, 2, VRING_DESC_F_NEXT, 1);
	describe(DESC, 1, DATA + PAGE, 4, VRING_DESC_F_NEXT, 2);
	describe(DESC, 2, DATA + 2 * PAGE, 3, VRING_DESC_F_WRITE, 0);
	check(pop(&chain) == 1 && chain.n == 3 && chain.n_read == 2, "chain: of three buffers");
	check(chain_read(&ram, &chain, 1, text, 4) == 4 && memcmp(text, "bcde", 4) == 0,
	      "chain: is read across them");
	check(chain_write(&ram, &chain, "12345", 5) == 3, "chain: takes what it has room for");
	virtq_push(&ring, chain.head, 3);
	check(ring.used->idx == 1 && ring.used->ring[0].len == 3, "chain: is handed back");

	describe(DESC, 1, DATA, 1, VRING_DESC_F_NEXT, 0);
	check(pop(&chain) == -E2BIG || pop(&chain) == -EINVAL, "chain: a loop ends");
	describe(DESC, 0, DATA, 2, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 1);
	describe(DESC, 1, DATA, 2, 0, 0);
	check(pop(&chain) == -EINVAL, "chain: none is read behind one that is written");
	describe(DESC, 0, DATA, 2, VRING_DESC_F_NEXT, RING_SIZE);
	check(pop(&chain) == -EINVAL, "chain: no descriptor beyond the ring");
	describe(DESC, 0, RAM_SIZE - 1, 2, 0, 0);
	check(pop(&chain) == 1 && chain_read(&ram, &chain, 0, text, 2) == 0,
	      "chain: nothing beyond the memory");
}

static void test_indirect(void)
{
	const uint32_t one = sizeof(struct vring_desc);
	struct chain chain;

	describe(DESC, 0, TABLE, 2 * one, VRING_DESC_F_INDIRECT, 0);
	describe(TABLE, 0, DATA, 2, VRING_DESC_F_NEXT, 1);
	describe(TABLE, 1, DATA, 2, VRING_DESC_F_WRITE, 0);
	check(pop(&chain) == 1 && chain.n == 2 && chain.n_read == 1, "indirect: a table");
	describe(TABLE, 0, DATA, 2, VRING_DESC_F_NEXT, 2);
	check(pop(&chain) == -EINVAL, "indirect: nothing beyond it");
	describe(TABLE, 0, TABLE, 2 * one, VRING_DESC_F_INDIRECT, 0);
	check(pop(&chain) == -EINVAL, "indirect: no table in a table");
	describe(DESC, 0, TABLE, one + 1, VRING_DESC_F_INDIRECT, 0);
	check(pop(&chain) == -EINVAL, "indirect: no part of a descriptor");
	describe(DESC, 0, RAM_SIZE, one, VRING_DESC_F_INDIRECT, 0);
	check(pop(&chain) == -EINVAL, "indirect: no table outside of the memory");
}

static void test_indices(void)
{
	struct vring_avail *avail = ram_at(&ram, AVAIL, PAGE);
	struct chain chain;

	make_available(RING_SIZE);
	check(virtq_pop(&ring, &chain) == -EPROTO, "ring: no head beyond it");
	avail->idx += RING_SIZE + 1;
	check(virtq_pop(&ring, &chain) == -EPROTO, "ring: no index that jumps");
	ring.user.used = ring.user.avail;
	check(virtq_find(&ring) == -EINVAL && virtq_pop(&ring, &chain) == 0,
	      "ring: none whose used ring lies over the available one, or it would make work without end");
	ring.user.used = ring.user.desc + sizeof(struct vring_desc);
	check(virtq_find(&ring) == -EINVAL, "ring: nor over the descriptors");
	ring.user.used = 0x100000 + RAM_SIZE - 1;
	check(virtq_find(&ring) == -EINVAL && virtq_pop(&ring, &chain) == 0,
	      "ring: none outside of the memory");
	ram_done(&ram);
}

/* A back-end that answers "ping" with "pong", in the other process. */
static bool is_over;

static void pong(struct vhost *v, unsigned queue)
{
	struct chain chain;
	char text[8];

	while (virtq_pop(&v->queues[queue].ring, &chain) == 1) {
		if (chain_read(&v->ram, &chain, 0, text, sizeof(text)) == 4 &&
		    memcmp(text, "ping", 4) == 0)
			chain_write(&v->ram, &chain, "pong", 4);
		vhost_push(&v->queues[queue], chain.head, 4);
	}
}

static void stopped(_unused_ struct vhost *v)
{
}

static void over(struct vhost *v, _unused_ int error)
{
	vhost_done(v);
	is_over = true;
}

static const struct vhost_ops ops = { .kicked = pong, .stop = stopped, .over = over };

static _Noreturn void serve(int socket)
{
	static struct vhost v;

	/* What QEMU is refused is what is tested. */
	log_init("test-vm", LOG_CRIT);
	if (vhost_init(&v, socket, &ops) < 0)
		_exit(1);
	while (!is_over && loop_once() == 0)
		;
	_exit(0);
}

static bool ping(struct front *front, unsigned queue)
{
	uint64_t room = front_send(front, queue, "ping", 4, 4);

	front_kick(front, queue);
	return front_wait(front, queue, /* timeout_ms= */ 60000) == 4 &&
	       memcmp(front_at(front, room), "pong", 4) == 0;
}

static void test_front(int socket)
{
	uint32_t queue[] = { 7, 64 }, size[] = { 1, 65 };
	uint64_t feature = 1;
	struct front front;

	if (!check(front_start(&front, socket), "vhost: starts"))
		return;
	check(ping(&front, 0) && ping(&front, 2), "vhost: two queues");
	check(!front_tell(&front, 8, queue, sizeof(queue), -1),
	      "vhost: no queue that is not there");
	check(!front_tell(&front, 8, size, sizeof(size), -1),
	      "vhost: no size that is no power of two");
	check(!front_tell(&front, 2, &feature, sizeof(feature), -1),
	      "vhost: no feature that was not offered");
	check(!front_tell(&front, 34, NULL, 0, -1), "vhost: no request that it does not know");
	check(ping(&front, 0), "vhost: goes on after refusals");
	check(front_stop(&front, 0) == 2, "vhost: a queue that stops tells how far it was");
	check(ping(&front, 2), "vhost: the others go on");
	front.queues[0].kick = -1;
}

int main(void)
{
	int pair[2], status;
	pid_t pid;

	test_ram();
	test_leftover();
	test_leftover_of_threads();
	ring_begin();
	test_chains();
	test_indirect();
	test_indices();
	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	test_front(pair[0]);
	close(pair[0]);
	check(waitpid(pid, &status, 0) == pid && status == 0, "vhost: ends with its connection");
	return check_result();
}
