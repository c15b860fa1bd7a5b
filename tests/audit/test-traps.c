// SPDX-License-Identifier: Apache-2.0
/*
 * The traps of accounting, one case each, with the fake libcuda giving the answers. A case runs in a
 * tenant of its own, which sees the books because they are mapped shared; when it has ended they must be
 * empty, whatever it left behind.
 */
#include "harness.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LIMIT	       (1000 * MIB)
#define CONTEXT_BYTES  (50 * MIB)
#define INVALID_VALUE  1
#define SETTLE_WAIT_NS (1000 * MILLISECOND)

static struct bench b;
static const unsigned char uuids[2][16] = { "first device 000", "second device 00" };

static uint64_t current_on(unsigned device)
{
	struct ledger ledger;

	CHECK(engine_book(b.engine, b.tenant, device, &ledger) == 0);
	return ledger.current;
}

#define EXPECT(bytes) CHECK(current_on(0) == (bytes), "%lu bytes are charged", current_on(0))

static unsigned long allocate(unsigned long bytes)
{
	unsigned long address = 0;

	CHECK(CUDA("cuMemAlloc_v2", &address, bytes) == 0);
	return address;
}

/* 1 */
static void reserve_then_settle(void)
{
	unsigned long address;

	fakes->code = OUT_OF_MEMORY;
	CHECK(CUDA("cuMemAlloc_v2", &address, 900 * MIB) == OUT_OF_MEMORY);
	CHECK(fakes->executions[ROW_OF_cuMemAlloc_v2] == 1, "the driver was asked, and refused");
	EXPECT(0);
	fakes->code = 0;
	allocate(900 * MIB);
	EXPECT(900 * MIB);
}

/* 2 */
static void *use_device(void *arg)
{
	unsigned long context, device = (unsigned long)arg;

	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, device) == 0);
	CHECK(CUDA("cuCtxSetCurrent", context) == 0);
	allocate((device + 1) * 10 * MIB);
	return NULL;
}

static void context_is_per_thread(void)
{
	pthread_t thread;

	use_device((void *)0);
	pthread_create(&thread, NULL, use_device, (void *)1);
	pthread_join(thread, NULL);
	CHECK(current_on(0) == 10 * MIB && current_on(1) == 20 * MIB);
	allocate(MIB);
	CHECK(current_on(0) == 11 * MIB && current_on(1) == 20 * MIB);
}

/* 3 */
static void primary_context(void)
{
	unsigned long context;

	fakes->handle = 0x4242;
	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, 0) == 0);
	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, 0) == 0);
	CHECK(CUDA("cuCtxSetCurrent", context) == 0);
	fakes->handle = 0;
	allocate(10 * MIB);
	CHECK(CUDA("cuDevicePrimaryCtxReset_v2", 0) == 0);
	EXPECT(0);
	allocate(20 * MIB);
	CHECK(CUDA("cuDevicePrimaryCtxRelease_v2", 0) == 0);
	EXPECT(20 * MIB);
	CHECK(CUDA("cuDevicePrimaryCtxRelease_v2", 0) == 0);
	EXPECT(0);
}

/* 4 */
static void context_destroyed(void)
{
	unsigned long context, address;

	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	address = allocate(10 * MIB);
	allocate(5 * MIB);
	CHECK(CUDA("cuMemFree_v2", address) == 0);
	EXPECT(5 * MIB);
	CHECK(CUDA("cuCtxDestroy_v2", context) == 0);
	EXPECT(0);
}

static int find_self(const struct audit_process *p, void *userdata)
{
	if (audit_process_tgid(p) != (uint32_t)getpid())
		return 0;
	*(uint64_t *)userdata = p->moved;
	return 1;
}

/* The books are settled by whoever has the engine: a case asks its parent. */
static struct {
	volatile enum { NOTHING, SETTLE, REAP } wanted;
	volatile int result;
	pid_t pid;
	uint64_t device_bytes;
	uint64_t moved;
	uint64_t asked; /* what the device says when a call asks for it; 0 for nothing */
	uint64_t since;
} * settling;

static int settle_since(uint64_t device_bytes, uint64_t moved)
{
	settling->pid = getpid();
	settling->device_bytes = device_bytes;
	settling->moved = moved;
	settling->wanted = SETTLE;
	while (settling->wanted)
		usleep(100);
	return settling->result;
}

static void reap(void)
{
	settling->wanted = REAP;
	while (settling->wanted)
		usleep(100);
}

static int settle(uint64_t device_bytes)
{
	uint64_t moved;

	CHECK(engine_each_process(b.engine, find_self, &moved) == 1);
	return settle_since(device_bytes, moved);
}

static int find_case(const struct audit_process *p, void *userdata)
{
	if (audit_process_tgid(p) != (uint32_t)settling->pid)
		return 0;
	*(uint64_t *)userdata = p->moved;
	return 1;
}

/* As a daemon does: a call waits for it. */
static void settle_for_call(void)
{
	uint64_t moved, since = engine_settling(b.engine);

	if (since == settling->since)
		return;
	settling->since = since;
	if (settling->asked && engine_each_process(b.engine, find_case, &moved))
		engine_settle(b.engine, settling->pid, 0, settling->asked, moved);
	engine_settled(b.engine, since);
}

static void settle_for_case(void)
{
	settle_for_call();
	if (!settling->wanted)
		return;
	if (settling->wanted == REAP)
		settling->result = engine_reap(b.engine);
	else {
		engine_asks_devices(b.engine);
		settling->result = engine_settle(b.engine, settling->pid, 0, settling->device_bytes,
						 settling->moved);
	}
	settling->wanted = NOTHING;
}

/*
 * What a call that began then has left in the books, when the daemon has said what the device says. A call waits
 * a second for that and no longer: where this process or its parent did not run for so long, it comes later.
 */
static bool is_settled(uint64_t begin_ns, uint64_t bytes)
{
	bool was_late = clock_ns() - begin_ns >= SETTLE_WAIT_NS;

	while (was_late && current_on(0) != bytes && clock_ns() - begin_ns < PATIENCE_NS)
		usleep(1000);
	return current_on(0) == bytes;
}

/* Likewise: who was refused as the daemon said nothing may ask again. *@ret_begin_ns: when the last call began */
static long call_settled(const char *name, unsigned long second, uint64_t *ret_begin_ns)
{
	unsigned long result;
	long code;

	do {
		*ret_begin_ns = clock_ns();
		code = CUDA(name, &result, second);
	} while (code == OUT_OF_MEMORY && clock_ns() - *ret_begin_ns >= SETTLE_WAIT_NS);
	return code;
}

/* 5 */
static void context_costs(void)
{
	struct audit_device device = { .total = 4096 * MIB, .context_bytes = CONTEXT_BYTES };
	unsigned long context, second;

	CHECK(engine_device_set(b.engine, 0, &device, 0) == 0);
	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	EXPECT(CONTEXT_BYTES);
	CHECK(CUDA("cuCtxCreate_v2", &second, 0, 0) == 0);
	EXPECT(CONTEXT_BYTES);
	CHECK(settle(70 * MIB) == 0);
	EXPECT(70 * MIB);
	CHECK(CUDA("cuCtxDestroy_v2", second) == 0 && CUDA("cuCtxDestroy_v2", context) == 0);
	EXPECT(70 * MIB);
	CHECK(settle(0) == 0);
	EXPECT(0);
	device.context_bytes = 0;
	CHECK(engine_device_set(b.engine, 0, &device, 0) == 0);
}

static void first_context_of_a_new_driver(void)
{
	struct audit_device device = { .total = 4096 * MIB,
				       .context_bytes = AUDIT_CONTEXT_UNKNOWN };
	unsigned long context, address;
	uint64_t begin;

	CHECK(engine_device_set(b.engine, 0, &device, 0) == 0);
	/* Nobody tells how much it was: much of what there is, at most all. */
	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	EXPECT(AUDIT_CONTEXT_GUESS);
	CHECK(CUDA("cuCtxDestroy_v2", context) == 0);
	CHECK(settle(0) == 0);
	allocate(900 * MIB);
	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	EXPECT(1000 * MIB);
	CHECK(CUDA("cuMemAlloc_v2", &address, MIB) == OUT_OF_MEMORY);
	CHECK(CUDA("cuCtxDestroy_v2", context) == 0);
	/* The device tells at once: the thread goes on with what it really was. */
	settling->pid = getpid();
	settling->asked = 970 * MIB;
	CHECK(call_settled("cuCtxCreate_v2", 0, &begin) == 0);
	CHECK(is_settled(begin, 970 * MIB), "%lu bytes are charged", current_on(0));
	settling->asked = 0;
	device.context_bytes = 0;
	CHECK(engine_device_set(b.engine, 0, &device, 0) == 0);
}

/* 6 */
static void process_ends(void)
{
	for (int i = 0; i < 23; i++)
		allocate(1048583);
	EXPECT(24117409);
}

/* 7 */
static void fork_and_daemonise(void)
{
	int status;
	pid_t pid;

	allocate(10 * MIB);
	pid = fork();
	if (pid == 0) {
		EXPECT(10 * MIB);
		allocate(20 * MIB);
		EXPECT(30 * MIB);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(10 * MIB);
}

/* 8 */
static void memory_of_another_process(void)
{
	unsigned long address = 0x5000, pool = 0x6000, data[8] = {};

	CHECK(CUDA("cuIpcOpenMemHandle_v2", &address, 0) == 0);
	EXPECT(0);
	CHECK(CUDA("cuIpcCloseMemHandle", address) == 0);
	CHECK(CUDA("cuMemFree_v2", address) == 0);
	EXPECT(0);

	CHECK(CUDA("cuMemImportFromShareableHandle", &address, /* descriptor */ 5, 1) == 0);
	CHECK(CUDA("cuMemMap", 0x100000000, 8 * MIB, 0, address, 0) == 0);
	CHECK(CUDA("cuMemRelease", address) == 0);
	CHECK(CUDA("cuMemUnmap", 0x100000000, 8 * MIB) == 0);
	EXPECT(0);

	CHECK(CUDA("cuMemPoolImportFromShareableHandle", &pool, 5, 1, 0) == 0);
	CHECK(CUDA("cuMemPoolImportPointer", &address, pool, data) == 0);
	CHECK(CUDA("cuMemFreeAsync", address, 0) == 0);
	CHECK(CUDA("cuMemPoolDestroy", pool) == 0);
	EXPECT(0);
}

static void memory_whose_maker_has_ended(void)
{
	unsigned long address = 0x5000;

	allocate(10 * MIB);
	CHECK(CUDA("cuIpcOpenMemHandle_v2", &address, 0) == 0);
	CHECK(settle(10 * MIB) == 0);
	EXPECT(10 * MIB);
	/* The device says whose it is then, be it more than he may have. */
	CHECK(settle(LIMIT + 10 * MIB) == 0);
	EXPECT(LIMIT + 10 * MIB);
	CHECK(CUDA("cuMemAlloc_v2", &address, 256) == OUT_OF_MEMORY);
	CHECK(CUDA("cuIpcCloseMemHandle", 0x5000) == 0);
	EXPECT(LIMIT + 10 * MIB);
	CHECK(settle(10 * MIB) == 0);
	EXPECT(10 * MIB);
	allocate(LIMIT - 10 * MIB);
}

/* 9 */
static void physical_memory(void)
{
	int properties[8] = { 1, 0, /* device */ 1, 0 };
	unsigned long handle, same;

	CHECK(CUDA("cuMemCreate", &handle, 8 * MIB, properties, 0) == 0);
	CHECK(CUDA("cuMemMap", 0x100000000, 8 * MIB, 0, handle, 0) == 0);
	CHECK(CUDA("cuMemMap", 0x100000000 + 8 * MIB, 8 * MIB, 0, handle, 0) == 0);
	fakes->handle = handle;
	CHECK(CUDA("cuMemRetainAllocationHandle", &same, 0x100000000) == 0);
	CHECK(CUDA("cuMemRelease", handle) == 0 && CUDA("cuMemRelease", handle) == 0);
	EXPECT(8 * MIB);
	CHECK(CUDA("cuMemUnmap", 0x100000000, 16 * MIB) == 0);
	EXPECT(0);
	CHECK(CUDA("cuMemAddressReserve", &same, 900 * MIB) == 0);
	EXPECT(0);
}

/* 10 */
static void managed_memory(void)
{
	unsigned long address;

	CHECK(CUDA("cuMemAllocManaged", &address, 600 * MIB, 1) == 0);
	EXPECT(600 * MIB);
	CHECK(CUDA("cuMemAllocManaged", &address, 600 * MIB, 1) == OUT_OF_MEMORY);
	/* Its pages come when they are used: what else the device has is not charged instead of them. */
	CHECK(settle(100 * MIB) == 0);
	EXPECT(600 * MIB);
	CHECK(settle(700 * MIB) == 0);
	EXPECT(700 * MIB);
	CHECK(settle(100 * MIB) == 0);
	EXPECT(700 * MIB);
}

/* 11 */
static void pools_keep_what_is_freed(void)
{
	unsigned long address;

	CHECK(CUDA("cuMemAllocAsync", &address, 10 * MIB, 0) == 0);
	EXPECT(10 * MIB);
	/* The device has it until a synchronisation, or longer: nothing but the device tells. */
	CHECK(CUDA("cuMemFreeAsync", address, 0) == 0);
	EXPECT(10 * MIB);
	CHECK(settle(12 * MIB) == 0);
	EXPECT(12 * MIB);
	CHECK(settle(2 * MIB) == 0);
	EXPECT(2 * MIB);
	CHECK(settle(0) == 0);
	EXPECT(0);
	CHECK(CUDA("cuMemAllocAsync", &address, 1001 * MIB, 0) == OUT_OF_MEMORY);
	EXPECT(0);
}

static void pools_are_used_again(void)
{
	unsigned long pool, address[2];

	CHECK(CUDA("cuDeviceGetDefaultMemPool", &pool, 0) == 0);
	for (int i = 0; i < 100; i++) {
		CHECK(CUDA("cuMemAllocAsync", &address[0], 10 * MIB, 0) == 0);
		CHECK(CUDA("cuMemAllocFromPoolAsync", &address[1], 20 * MIB, pool, 0) == 0);
		EXPECT(30 * MIB);
		CHECK(CUDA("cuMemFreeAsync", address[0], 0) == 0);
		CHECK(CUDA("cuMemFree_v2", address[1]) == 0);
		EXPECT(30 * MIB);
	}
	/* It was trimmed: how far, the device says. What is left may be of any stream, so nobody's credit. */
	CHECK(CUDA("cuMemPoolTrimTo", pool, 5 * MIB) == 0);
	EXPECT(30 * MIB);
	CHECK(settle(5 * MIB) == 0);
	EXPECT(5 * MIB);
	CHECK(CUDA("cuMemAllocAsync", &address[0], 10 * MIB, 0) == 0);
	EXPECT(15 * MIB);
	CHECK(settle(10 * MIB) == 0);
	EXPECT(10 * MIB);
	CHECK(CUDA("cuMemFreeAsync", address[0], 0) == 0);
	CHECK(CUDA("cuMemPoolDestroy", pool) == 0);
	CHECK(settle(0) == 0);
	EXPECT(0);
}

static int find_grows(const struct audit_process *p, void *userdata)
{
	if (audit_process_tgid(p) != (uint32_t)getpid())
		return 0;
	*(bool *)userdata = p->grows;
	return 1;
}

/* Whether the devices are to be asked at once whether a pool has grown. */
static bool may_have_grown(void)
{
	bool grows;

	CHECK(engine_each_process(b.engine, find_grows, &grows) == 1);
	return grows;
}

/* What was freed in pieces is charged, and too small for what comes: the driver takes more from the device. */
static void pools_grow_by_themselves(void)
{
	unsigned long address[3];

	for (int i = 0; i < 3; i++)
		CHECK(CUDA("cuMemAllocAsync", &address[i], 10 * MIB, 0) == 0);
	CHECK(CUDA("cuMemFreeAsync", address[0], 0) == 0);
	CHECK(CUDA("cuMemFreeAsync", address[2], 0) == 0);
	/* Pieces of the same size are used again, each. */
	CHECK(CUDA("cuMemAllocAsync", &address[0], 10 * MIB, 0) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address[2], 10 * MIB, 0) == 0);
	CHECK(!may_have_grown());
	CHECK(CUDA("cuMemFreeAsync", address[0], 0) == 0);
	CHECK(CUDA("cuMemFreeAsync", address[2], 0) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address[0], 20 * MIB, 0) == 0);
	EXPECT(30 * MIB);
	CHECK(may_have_grown());
	CHECK(settle(50 * MIB) == 0 && !may_have_grown());
	EXPECT(50 * MIB);
}

static void pools_by_streams(void)
{
	unsigned long one = 0x100, two = 0x200, address[3];

	CHECK(CUDA("cuMemAllocAsync", &address[0], 10 * MIB, one) == 0);
	CHECK(CUDA("cuMemFreeAsync", address[0], one) == 0);
	/* The first stream may be at work still: the second gets other memory. */
	CHECK(CUDA("cuMemAllocAsync", &address[1], 10 * MIB, two) == 0);
	EXPECT(20 * MIB);
	CHECK(CUDA("cuMemAllocAsync", &address[2], 10 * MIB, one) == 0);
	EXPECT(20 * MIB);
	CHECK(CUDA("cuMemFreeAsync", address[2], one) == 0);
	/* A refusal leaves what was freed to the next. */
	CHECK(CUDA("cuMemAllocAsync", &address[2], 999 * MIB, one) == OUT_OF_MEMORY);
	fakes->code = OUT_OF_MEMORY;
	CHECK(CUDA("cuMemAllocAsync", &address[2], 20 * MIB, one) == OUT_OF_MEMORY);
	fakes->code = 0;
	EXPECT(20 * MIB);
	CHECK(CUDA("cuMemAllocAsync", &address[2], 20 * MIB, one) == 0);
	EXPECT(30 * MIB);
	/* The null stream is the thread's own where the call says so. */
	CHECK(CUDA("cuMemAllocAsync_ptsz", &address[0], 40 * MIB, 0) == 0);
	CHECK(CUDA("cuMemFreeAsync_ptsz", address[0], 0) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address[0], 40 * MIB, /* per thread */ 2) == 0);
	EXPECT(70 * MIB);
	CHECK(CUDA("cuMemFreeAsync", address[0], 2) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address[0], 40 * MIB, 0) == 0);
	EXPECT(110 * MIB);
}

/* What was freed and is gone refuses nobody: the device is asked before. */
static void pools_are_looked_at_before_a_refusal(void)
{
	unsigned long address;
	uint64_t begin;

	settling->pid = getpid();
	settling->asked = 30 * MIB;
	CHECK(CUDA("cuMemAllocAsync", &address, 900 * MIB, 0) == 0);
	CHECK(CUDA("cuMemFreeAsync", address, 0) == 0);
	CHECK(call_settled("cuMemAlloc_v2", 970 * MIB, &begin) == 0);
	EXPECT(1000 * MIB);
	settling->asked = 1000 * MIB;
	CHECK(CUDA("cuMemAllocAsync", &address, MIB, 0) == OUT_OF_MEMORY);
	settling->asked = 0;
}

/* 12 */
static void graphs(void)
{
	unsigned long graph = 0x6000, stream = 0x77, exec, node, address, parameters[32] = {};

	parameters[104 / sizeof(long)] = 40 * MIB;
	CHECK(CUDA("cuGraphAddMemAllocNode", &node, graph, 0, 0, parameters) == 0);
	EXPECT(0);
	CHECK(CUDA("cuGraphInstantiateWithFlags", &exec, graph, 0) == 0);
	EXPECT(40 * MIB);
	CHECK(CUDA("cuGraphExecDestroy", exec) == 0);
	EXPECT(40 * MIB);
	CHECK(CUDA("cuGraphInstantiateWithFlags", &exec, graph, 0) == 0);
	EXPECT(40 * MIB);
	/* It has its memory from its first launch on: until then the device does not tell what else there is. */
	CHECK(settle(20 * MIB) == 0);
	EXPECT(40 * MIB);
	CHECK(settle(60 * MIB) == 0);
	EXPECT(60 * MIB);
	CHECK(settle(40 * MIB) == 0);
	EXPECT(60 * MIB);
	CHECK(CUDA("cuGraphExecDestroy", exec) == 0);
	CHECK(CUDA("cuDeviceGraphMemTrim", 0) == 0);
	CHECK(settle(0) == 0);
	EXPECT(0);

	CHECK(CUDA("cuStreamBeginCapture_v2", stream, 0) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address, 30 * MIB, stream) == 0);
	EXPECT(0);
	CHECK(CUDA("cuStreamEndCapture", stream, &graph) == 0);
	CHECK(CUDA("cuGraphInstantiate_v2", &exec, graph, 0) == 0);
	EXPECT(30 * MIB);
}

static void capture(unsigned long graph, uint64_t bytes)
{
	unsigned long stream = 0x77, address, captured;

	CHECK(CUDA("cuStreamBeginCapture_v2", stream, 0) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address, bytes, stream) == 0);
	fakes->handle = graph;
	CHECK(CUDA("cuStreamEndCapture", stream, &captured) == 0);
	fakes->handle = 0;
}

static unsigned long instantiate(unsigned long graph)
{
	unsigned long exec;

	CHECK(CUDA("cuGraphInstantiateWithFlags", &exec, graph, 0) == 0);
	return exec;
}

/* Drivers use addresses again. */
static void graphs_under_one_handle(void)
{
	unsigned long graph = 0x6000, exec, address, stream = 0x77;

	for (int i = 0; i < 100; i++) {
		capture(graph, 30 * MIB);
		exec = instantiate(graph);
		EXPECT(30 * MIB);
		CHECK(CUDA("cuGraphExecDestroy", exec) == 0);
		/* Every other graph goes unseen, as those do of libraries that nobody could probe. */
		if (i % 2)
			CHECK(CUDA("cuGraphDestroy", graph) == 0);
	}
	EXPECT(30 * MIB);
	/* An empty one in its place has nothing. */
	CHECK(CUDA("cuGraphDestroy", graph) == 0);
	instantiate(graph);
	EXPECT(30 * MIB);
	/* A capture that goes on with a graph adds to it. */
	capture(graph, 30 * MIB);
	CHECK(CUDA("cuStreamBeginCaptureToGraph", stream, graph) == 0);
	CHECK(CUDA("cuMemAllocAsync", &address, 20 * MIB, stream) == 0);
	CHECK(CUDA("cuStreamEndCapture", stream, NULL) == 0);
	instantiate(graph);
	EXPECT(50 * MIB);
}

/* Records of what went with a context, never freed one by one. */
static void records_go_along(void)
{
	unsigned long context, address;
	struct audit_tenant tenant;

	for (int i = 0; i < 100; i++) {
		CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
		allocate(MIB);
		CHECK(CUDA("cuMemAllocAsync", &address, MIB, 0) == 0);
		CHECK(CUDA("cuCtxDestroy_v2", context) == 0);
		EXPECT((1 + i) * MIB);
	}
	CHECK(settle(0) == 0);
	reap();
	CHECK(engine_tenant(b.engine, b.tenant, &tenant) == 0);
	CHECK(tenant.n_objects == 0, "%u records are left", tenant.n_objects);
}

/* What a context took of pools, also for graphs, may go with it or outlive it: the device says. */
static void context_takes_all_along(void)
{
	unsigned long context, green, address, parameters[32] = {}, node;

	fakes->handle = 0x4242;
	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, 0) == 0);
	CHECK(CUDA("cuCtxSetCurrent", context) == 0);
	fakes->handle = 0;
	for (int i = 0; i < 2; i++) {
		parameters[104 / sizeof(long)] = 40 * MIB;
		CHECK(CUDA("cuGraphAddMemAllocNode", &node, /* graph */ 0x6000 + i, 0, 0,
			   parameters) == 0);
		instantiate(0x6000 + i);
		CHECK(CUDA("cuMemAllocAsync", &address, 20 * MIB, 0) == 0);
		CHECK(CUDA("cuMemAllocManaged", &address, 10 * MIB, 1) == 0);
		allocate(5 * MIB);
		EXPECT(75 * MIB);
		CHECK(CUDA(i ? "cuDevicePrimaryCtxRelease_v2" : "cuDevicePrimaryCtxReset_v2", 0) ==
		      0);
		EXPECT(60 * MIB);
		CHECK(settle(0) == 0);
		EXPECT(0);
		/* Whoever frees it later gives nothing back twice. */
		CHECK(CUDA("cuMemFree_v2", address) == 0);
		EXPECT(0);
	}

	CHECK(CUDA("cuGreenCtxCreate", &green, 0, 0, 0) == 0);
	CHECK(CUDA("cuCtxFromGreenCtx", &context, green) == 0);
	CHECK(CUDA("cuCtxSetCurrent", context) == 0);
	allocate(5 * MIB);
	CHECK(CUDA("cuGreenCtxDestroy", green) == 0);
	EXPECT(0);
	CHECK(CUDA("cuGLCtxCreate_v2", &context, 0, 0) == 0);
	fakes->handle = context;
	CHECK(CUDA("cuCtxAttach", &context, 0) == 0);
	fakes->handle = 0;
	allocate(5 * MIB);
	CHECK(CUDA("cuCtxDetach", context) == 0);
	EXPECT(5 * MIB);
	CHECK(CUDA("cuCtxDetach", context) == 0);
	EXPECT(0);
}

/* 13 */
static void device_by_uuid(void)
{
	unsigned char uuid[16];
	unsigned long context;

	memcpy(fakes->uuid, uuids[1], sizeof(uuid));
	CHECK(CUDA("cuDeviceGetUuid_v2", uuid, 0) == 0);
	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	allocate(10 * MIB);
	CHECK(current_on(0) == 0 && current_on(1) == 10 * MIB);
}

static uint64_t nvml_free_of(const char *call, const void *what)
{
	struct {
		unsigned long total, unused, used;
	} memory = { 4096 * MIB, 4000 * MIB, 96 * MIB };
	unsigned long handle = 0;

	CHECK(CUDA(call, what, &handle) == 0);
	CHECK(CUDA("nvmlDeviceGetMemoryInfo", handle, &memory) == 0);
	return memory.unused;
}

/* What a device is called in NVML, by whichever call. */
static void device_by_nvml(void)
{
	unsigned long context;

	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 1) == 0);
	allocate(10 * MIB);
	CHECK(current_on(1) == 10 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleByIndex_v2", (void *)0) == 1000 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleByIndex_v2", (void *)1) == 990 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleByUUID", "gpu-2") == 990 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleByUUID", "GPU-1") == 1000 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleByPciBusId_v2", "0000:0b:00.0") == 990 * MIB);
	CHECK(nvml_free_of("nvmlDeviceGetHandleBySerial", "serial 2") == 990 * MIB);
	/* One that nobody knows is told what the driver says. */
	CHECK(nvml_free_of("nvmlDeviceGetHandleByUUID", "GPU-3") == 4000 * MIB);
}

/* 14: the older call for a UUID names the whole device, which is none of ours; the newer one the instance. */
static void partitioned_device(void)
{
	static const unsigned char whole[16] = "the whole device";
	unsigned char uuid[16];
	unsigned long context, handle = 0x9000;
	struct {
		unsigned long total, unused, used;
	} memory = { 4096 * MIB, 4000 * MIB, 96 * MIB };

	memcpy(fakes->uuid, whole, sizeof(uuid));
	CHECK(CUDA("cuDeviceGetUuid", uuid, 0) == 0);
	memcpy(fakes->uuid, uuids[1], sizeof(uuid));
	CHECK(CUDA("cuDeviceGetUuid_v2", uuid, 0) == 0);
	memcpy(fakes->uuid, whole, sizeof(uuid));
	CHECK(CUDA("cuDeviceGetUuid", uuid, 0) == 0);
	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	allocate(10 * MIB);
	CHECK(current_on(0) == 0 && current_on(1) == 10 * MIB);
	/* Its handle is found by its place in the whole device; it says who it is. */
	CHECK(CUDA("nvmlDeviceGetUUID", handle, "GPU-2", 96) == 0);
	CHECK(CUDA("nvmlDeviceGetMemoryInfo", handle, &memory) == 0);
	CHECK(memory.unused == 990 * MIB && memory.total == LIMIT);
}

/* 18 */
static void narrow_copies(void)
{
	unsigned char header[64] = { 0x7f, 'E', 'L', 'F', /* 32 bits */ 1, 1, 1 };
	char path[] = "/tmp/audit-narrow-XXXXXX";
	int fd = mkstemp(path);

	CHECK(write(fd, header, sizeof(header)) == sizeof(header));
	close(fd);
	CHECK(engine_attach(b.engine, path) == -ENOEXEC);
	unlink(path);
}

/* 19 and 22 */
static void what_only_the_device_knows(void)
{
	uint64_t moved;

	allocate(10 * MIB);
	CHECK(settle(300 * MIB) == 0);
	EXPECT(300 * MIB);
	CHECK(settle(2 * MIB) == 0);
	EXPECT(10 * MIB);
	CHECK(engine_each_process(b.engine, find_self, &moved) == 1);
	allocate(MIB);
	/* What was allocated since may be in that or not. */
	CHECK(settle_since(400 * MIB, moved) == ENGINE_E_CHANGED);
	EXPECT(399 * MIB);
	CHECK(settle(401 * MIB) == 0);
	EXPECT(401 * MIB);
}

/* 20 */
static void frees_that_fail(void)
{
	unsigned long address = allocate(10 * MIB);

	fakes->code = INVALID_VALUE;
	CHECK(CUDA("cuMemFree_v2", address) == INVALID_VALUE);
	EXPECT(10 * MIB);
	fakes->code = 0;
	CHECK(CUDA("cuMemFree_v2", address + 512) == 0);
	EXPECT(10 * MIB);
	CHECK(CUDA("cuMemFree_v2", address) == 0 && CUDA("cuMemFree_v2", address) == 0);
	EXPECT(0);
	fakes->handle = address;
	allocate(20 * MIB);
	EXPECT(20 * MIB);
}

/* 21 */
static jmp_buf out;

static void jump_out(void)
{
	longjmp(out, 1);
}

static void allocate_inside(void)
{
	unsigned long address;

	fakes->inside = NULL;
	CHECK(CUDA("cuMemAlloc_v2", &address, 10 * MIB) == 0);
}

static void on_signal(_unused_ int signal)
{
	allocate_inside();
}

static void signal_inside(void)
{
	fakes->inside = NULL;
	raise(SIGUSR1);
}

static void calls_inside_calls(void)
{
	unsigned long address;

	fakes->inside = allocate_inside;
	allocate(10 * MIB);
	EXPECT(10 * MIB);
	fakes->inside = jump_out;
	if (setjmp(out) == 0)
		CUDA("cuMemAlloc_v2", &address, 500 * MIB);
	fakes->inside = NULL;
	allocate(20 * MIB);
	EXPECT(30 * MIB);
	/* A handler's call is taken for the driver's own, until the device tells. */
	signal(SIGUSR1, on_signal);
	fakes->inside = signal_inside;
	allocate(20 * MIB);
	EXPECT(50 * MIB);
	CHECK(settle(60 * MIB) == 0);
	EXPECT(60 * MIB);
}

/* Sizes that are not simply an argument. */
static void sizes(void)
{
	struct {
		unsigned long width, height;
		unsigned format, channels;
	} flat = { 1024, 512, 0x20, 4 };
	struct {
		unsigned long width, height, depth;
		unsigned format, channels, flags;
	} deep = { 64, 64, 64, 0x10, 1, 0 };
	unsigned old[4] = { 100, 50, /* format */ 0x08, /* channels */ 2 };
	unsigned long address, pitch;

	fakes->pitch = 1024;
	CHECK(CUDA("cuMemAllocPitch_v2", &address, &pitch, 1000, 100, 4) == 0);
	EXPECT(1024 * 100);
	CHECK(CUDA("cuMemFree_v2", address) == 0);
	CHECK(CUDA("cuArrayCreate_v2", &address, &flat) == 0);
	EXPECT(1024 * 512 * 16);
	CHECK(CUDA("cuArrayDestroy", address) == 0);
	CHECK(CUDA("cuMipmappedArrayCreate", &address, &deep, 3) == 0);
	EXPECT(2 * (64 * 64 * 64 + 32 * 32 * 32 + 16 * 16 * 16));
	CHECK(CUDA("cuMipmappedArrayDestroy", address) == 0);
	CHECK(CUDA("cuArrayCreate", &address, &old) == 0);
	EXPECT(100 * 50 * 2);
	CHECK(CUDA("cuArrayDestroy", address) == 0);
	CHECK(CUDA("cuMemAlloc", &address, 0xffff00000000UL + MIB) == 0);
	EXPECT(MIB);
}

/* What a process is told agrees to the byte with what it may allocate next. */
static void information(void)
{
	unsigned long free_bytes = 1, total = 2, address;

	fakes->free_bytes = 4000 * MIB;
	fakes->total_bytes = 4096 * MIB;
	allocate(300 * MIB);
	CHECK(CUDA("cuMemGetInfo_v2", &free_bytes, &total) == 0);
	CHECK(free_bytes == 700 * MIB && total == LIMIT, "%lu of %lu", free_bytes, total);
	CHECK(CUDA("cuMemAlloc_v2", &address, free_bytes + 1) == OUT_OF_MEMORY);
	allocate(free_bytes);
	CHECK(CUDA("cuMemGetInfo_v2", &free_bytes, NULL) == 0 && free_bytes == 0);
	CHECK(CUDA("cuMemGetInfo_v2", NULL, &total) == 0 && total == LIMIT);
	CHECK(CUDA("cuDeviceTotalMem_v2", &total, 0) == 0 && total == LIMIT);
}

/* Part of the device is never handed out, to nobody. */
static void information_and_reserve(void)
{
	struct audit_device device = { .total = 4096 * MIB };
	unsigned long free_bytes, total, address;

	CHECK(engine_device_set(b.engine, 0, &device, /* reserve= */ 3500 * MIB) == 0);
	fakes->free_bytes = 4000 * MIB;
	fakes->total_bytes = 4096 * MIB;
	CHECK(CUDA("cuMemGetInfo_v2", &free_bytes, &total) == 0);
	CHECK(free_bytes == 500 * MIB && total == LIMIT, "%lu of %lu", free_bytes, total);
	CHECK(CUDA("cuMemAlloc_v2", &address, 597 * MIB) == OUT_OF_MEMORY);
	allocate(free_bytes);
	CHECK(CUDA("cuMemGetInfo_v2", &free_bytes, &total) == 0 && free_bytes == 96 * MIB);
	CHECK(CUDA("cuMemAlloc_v2", &address, free_bytes + 1) == OUT_OF_MEMORY);
	allocate(free_bytes);
	CHECK(CUDA("cuMemGetInfo_v2", &free_bytes, &total) == 0 && free_bytes == 0);
	CHECK(engine_device_set(b.engine, 0, &device, /* reserve= */ 0) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
	unsigned devices;
} cases[] = {
	{ "1 reserve, then settle", reserve_then_settle, 1 },
	{ "2 the current context is per thread", context_is_per_thread, 2 },
	{ "3 primary context: references and reset", primary_context, 1 },
	{ "4 a context takes its memory along", context_destroyed, 1 },
	{ "4 a context takes pools, graphs and managed memory along", context_takes_all_along, 1 },
	{ "4 records go along with their context", records_go_along, 1 },
	{ "5 a context costs memory itself", context_costs, 1 },
	{ "5 the first context of a new driver", first_context_of_a_new_driver, 1 },
	{ "6 the end of a process, nothing freed", process_ends, 1 },
	{ "7 a child starts at zero and is charged to the same tenant", fork_and_daemonise, 1 },
	{ "8 memory of another process", memory_of_another_process, 1 },
	{ "8 memory whose maker has ended", memory_whose_maker_has_ended, 1 },
	{ "9 physical memory: references and mappings", physical_memory, 1 },
	{ "10 managed memory counts in full", managed_memory, 1 },
	{ "11 pools keep what is freed until the device has less", pools_keep_what_is_freed, 1 },
	{ "11 pools use again what they keep", pools_are_used_again, 1 },
	{ "11 pools that grow by themselves have the device asked", pools_grow_by_themselves, 1 },
	{ "11 pools keep what a stream has freed from others", pools_by_streams, 1 },
	{ "11 pools are looked at before a refusal", pools_are_looked_at_before_a_refusal, 1 },
	{ "12 graphs and captures", graphs, 1 },
	{ "12 graphs under a handle that was used before", graphs_under_one_handle, 1 },
	{ "13 devices go by UUID", device_by_uuid, 2 },
	{ "13 devices go by what NVML calls them", device_by_nvml, 2 },
	{ "14 an instance of a partitioned device is a device", partitioned_device, 2 },
	{ "18 copies for 32 bits are refused", narrow_copies, 1 },
	{ "19 other interfaces than CUDA's: the device's own number", what_only_the_device_knows,
	  1 },
	{ "22 sizes are rounded: the device's own number", what_only_the_device_knows, 1 },
	{ "20 frees that fail", frees_that_fail, 1 },
	{ "21 calls inside calls, and jumps out of them", calls_inside_calls, 1 },
	{ "sizes of pitched memory and arrays", sizes, 1 },
	{ "information agrees with the limit", information, 1 },
	{ "information agrees with the reserve of the device", information_and_reserve, 1 },
};

static int run_case(void *userdata)
{
	cases[*(size_t *)userdata].run();
	return 0;
}

/* As tenant_wait(). */
static int case_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		settle_for_case();
		bench_pump(&b, 1);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void devices_set(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct audit_device device = { .total = 4096 * MIB, .nvml_index = i };
		struct engine_limits limits = { .max_bytes = LIMIT };

		memcpy(device.uuid, uuids[i], sizeof(device.uuid));
		device.names[0] = audit_name_hash(i ? "GPU-2" : "GPU-1");
		device.names[1] = audit_name_hash(i ? "0000:0B:00.0" : "0000:0A:00.0");
		device.names[2] = audit_name_hash(i ? "serial 2" : "serial 1");
		CHECK(engine_device_set(b.engine, i, &device, 0) == 0);
		CHECK(engine_tenant_limit(b.engine, b.tenant, i, &limits) == 0);
	}
}

int main(_unused_ int argc, char **argv)
{
	int failed = 0;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, LIMIT, 0);
	fake_open(&b, argv[1]);
	bench_pump(&b, 1);
	CHECK(b.n_events[AUDIT_EVENT_UNKNOWN_CALL] == 1, "cuMemConjure is told of");
	settling = shared_memory(sizeof(*settling));
	/* A device cannot be taken back: the cases with one come first. */
	for (unsigned devices = 1; devices <= 2; devices++) {
		devices_set(devices);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			int code;

			if (cases[i].devices != devices)
				continue;
			code = case_wait(tenant_fork(&b, run_case, &i));
			for (unsigned device = 0; device < devices; device++)
				bench_unowned(&b, device, 0);
			if (code || current_on(0) || current_on(1)) {
				printf("FAILED 'trap %s': code %d, %lu bytes left\n", cases[i].name,
				       code, current_on(0) + current_on(1));
				failed++;
			} else {
				printf("ok 'trap %s'\n", cases[i].name);
			}
		}
	}
	bench_close(&b);
	return failed ? 1 : 0;
}
