// SPDX-License-Identifier: Apache-2.0
/*
 * The virtual machine's device, /dev/cotenant0. What is shared is this process's own memory, which the
 * kernel pins, so memory that is registered stays where it is and nothing is copied.
 *
 * The kernel names pages to the host in pieces that lie side by side. Memory of our own is therefore asked
 * for in huge pages: the heap is 8 pieces then, and 8 lanes are one.
 */
#include "forward/guest/carrier.h"

#include "base/base.h"
#include "forward/guest/log.h"
#include "forward/virtio-abi.h"
#include "forward/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define DEVICE	  "/dev/cotenant0"
#define HUGE_PAGE (2UL << 20)
#define PAGE	  4096UL

static int device = -1;
/* The doorbell's page; NULL where each record is told to the kernel. */
static volatile uint16_t *doorbell;
/* Lanes' memory that no thread has: the first word of each says where the next is. */
static void *free_lanes;

static int tell(unsigned long request, void *argument)
{
	return ioctl(device, request, argument) < 0 ? -errno : 0;
}

static int device_open(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return errno == ENXIO || errno == ENODEV ? -ENOENT : -errno;
}

/* A child has no session: it gets nothing of ours. */
static void *memory_new(size_t size)
{
	uint8_t *at, *aligned;

	at = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED)
		return NULL;
	aligned = (uint8_t *)(((uintptr_t)at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (aligned > at)
		munmap(at, (size_t)(aligned - at));
	munmap(aligned + size, (size_t)(at + HUGE_PAGE - aligned));
	madvise(aligned, size, MADV_HUGEPAGE);
	madvise(aligned, size, MADV_DONTFORK);
	return aligned;
}

static void say_versions(const struct cotenant_ioc_open *answer)
{
	char ours[2 * WIRE_HASH_SIZE + 1], theirs[2 * WIRE_HASH_SIZE + 1];

	if (answer->version != COTENANT_ABI_VERSION) {
		guest_log("this library needs version %u of the kernel's driver, which is %u",
			  COTENANT_ABI_VERSION, answer->version);
		return;
	}
	wire_hash_text(wire_hash, ours);
	wire_hash_text(answer->hash, theirs);
	guest_log("this library speaks protocol %s, the host %s", ours, theirs);
}

/* Without the page it goes as well: each record is told then. */
static void map_doorbell(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);

	if (at != MAP_FAILED)
		doorbell = at;
}

static int open_session(struct session_block **ret_block, void **ret_heap, int *ret_call)
{
	struct cotenant_ioc_open args = { .version = COTENANT_ABI_VERSION };
	uint8_t *memory;
	int r;

	device = device_open();
	if (device < 0)
		return device;
	memory = memory_new(WIRE_HEAP_SIZE + SESSION_SIZE);
	if (!memory)
		return -ENOMEM;
	args.heap = (uintptr_t)memory;
	args.block = (uintptr_t)memory + WIRE_HEAP_SIZE;
	memcpy(args.hash, wire_hash, sizeof(args.hash));
	r = tell(COTENANT_IOC_OPEN, &args);
	if (r == -EPROTO)
		say_versions(&args);
	if (r < 0) {
		close(device);
		munmap(memory, WIRE_HEAP_SIZE + SESSION_SIZE);
		return r;
	}
	if (args.flags & COTENANT_OPEN_DOORBELL)
		map_doorbell();
	*ret_heap = memory;
	*ret_block = (struct session_block *)(memory + WIRE_HEAP_SIZE);
	*ret_call = (int)COTENANT_EVENT_SERVICE;
	return 0;
}

static void lane_memory_put(void *at)
{
	*(void **)at = free_lanes;
	free_lanes = at;
}

static void *lane_memory_get(void)
{
	uint8_t *at;
	size_t i;

	if (!free_lanes) {
		at = memory_new(HUGE_PAGE);
		for (i = 0; at && i < HUGE_PAGE / LANE_SIZE; i++)
			lane_memory_put(at + i * LANE_SIZE);
	}
	at = free_lanes;
	if (!at)
		return NULL;
	free_lanes = *(void **)at;
	memset(at, 0, sizeof(struct lane));
	return at;
}

static int lane_add(struct carrier_lane *ret)
{
	struct cotenant_ioc_lane args = { 0 };
	void *memory = lane_memory_get();
	int r;

	if (!memory)
		return -ENOMEM;
	args.address = (uintptr_t)memory;
	r = tell(COTENANT_IOC_LANE_ADD, &args);
	if (r < 0) {
		lane_memory_put(memory);
		return r;
	}
	*ret = (struct carrier_lane){
		.id = args.id, .memory = memory, .call = (int)args.id, .each = !doorbell
	};
	return 0;
}

/* What the host may still have is not used for another thread's lane. */
static void lane_remove(struct carrier_lane *lane)
{
	uint32_t id = lane->id;

	if (tell(COTENANT_IOC_LANE_REMOVE, &id) == 0)
		lane_memory_put(lane->memory);
}

static int fresh(void *address, uint64_t size)
{
	if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return -errno;
	madvise(address, size, MADV_HUGEPAGE);
	return 0;
}

static int grant(void *address, uint64_t size, bool keep, uint32_t *ret_id)
{
	struct cotenant_ioc_grant args = { .address = (uintptr_t)address, .size = size };
	int r;

	r = keep ? 0 : fresh(address, size);
	if (r == 0)
		r = tell(COTENANT_IOC_GRANT, &args);
	*ret_id = args.id;
	return r;
}

static int revoke_grant(uint32_t id)
{
	return tell(COTENANT_IOC_REVOKE, &id);
}

/* Where the host is gone the next wait says so. */
static void kick(const struct carrier_lane *lane)
{
	uint32_t id = lane->id;

	if (doorbell)
		*doorbell = COTENANT_DOORBELL_VALUE;
	else
		tell(COTENANT_IOC_RING, &id);
}

static int wait_call(int call, int timeout_ms)
{
	struct cotenant_ioc_wait args = { .lane = (uint32_t)call, .timeout_ms = timeout_ms };
	int r = tell(COTENANT_IOC_WAIT, &args);

	return r == -EINTR ? 0 : r;
}

const struct carrier carrier_device = {
	.name = "virtual machine's device " DEVICE,
	.open = open_session,
	.lane_add = lane_add,
	.lane_remove = lane_remove,
	.grant = grant,
	.revoke = revoke_grant,
	.kick = kick,
	.wait = wait_call,
};
