// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers of 4 bytes come in words of 8. The driver looks at the lower half, so what the worker looks at has to be
 * that half, too: a guest that writes into the other gets nothing by it.
 */
#include "forward/host/command.h"

#include "base/base.h"
#include "base/check.h"
#include "forward/host/ask.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/ipc.h"

#include <errno.h>
#include <string.h>

#define OTHER_HALF (1ULL << 32)
#define OBJECT	   0x1000

/* How a pointer's word says that so many bytes follow, or are to come back. */
#define BYTES(n) (1 + (n))

static uint64_t seen[CALL_N_ARGUMENTS_MAX];
static unsigned n_calls;
static uint64_t reply[REPLY_MAX / sizeof(uint64_t)];

/* Obeys, and tells an object where it is asked about an address. */
CUresult driver_call(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	memcpy(seen, words, sizeof(seen));
	n_calls++;
	if (id == CALL_ID_cuPointerGetAttribute)
		*(uint64_t *)words[0] = OBJECT;
	return CUDA_SUCCESS;
}

int broker_ask(_unused_ struct wire_message *message)
{
	return -EPIPE;
}

CUresult ipc_execute(_unused_ struct command *command)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult execute(enum call_id id, const uint64_t *words, size_t n)
{
	struct command command = { .call = id,
				   .body = (const uint8_t *)words,
				   .size = n * sizeof(*words),
				   .reply = (uint8_t *)reply };

	n_calls = 0;
	return command_execute(&command);
}

#define EXECUTE(name, ...)                                                                         \
	execute(CALL_ID_##name, (const uint64_t[]){ __VA_ARGS__ },                                 \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void test_pointer_attribute(uint64_t half)
{
	uint64_t object;

	check(EXECUTE(cuPointerGetAttribute, half | CU_POINTER_ATTRIBUTE_CONTEXT, 0x2000) ==
			      CUDA_SUCCESS &&
		      reply[0] != OBJECT && handle_get(HANDLE_CONTEXT, reply[0], &object) == 0 &&
		      object == OBJECT,
	      "pointer: %#llx: a context comes as its name", (unsigned long long)half);
	check(EXECUTE(cuPointerGetAttribute, half | CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 0x2000) ==
			      CUDA_SUCCESS &&
		      handle_get(HANDLE_POOL, reply[0], &object) == 0 && object == OBJECT,
	      "pointer: %#llx: and so does a pool", (unsigned long long)half);
}

static CUresult set_attribute(uint64_t attribute)
{
	uint64_t words[3 + sizeof(CUlaunchAttributeValue) / sizeof(uint64_t)] = {
		handle_put(HANDLE_GRAPH_NODE, OBJECT), attribute,
		BYTES(sizeof(CUlaunchAttributeValue))
	};

	return execute(CALL_ID_cuGraphKernelNodeSetAttribute, words, ARRAY_SIZE(words));
}

static void test_node_attribute(uint64_t half)
{
	check(set_attribute(half | CU_LAUNCH_ATTRIBUTE_PRIORITY) == CUDA_SUCCESS && n_calls == 1,
	      "node: %#llx: an attribute is set", (unsigned long long)half);
	check(set_attribute(half | CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) ==
			      CUDA_ERROR_NOT_SUPPORTED &&
		      n_calls == 0,
	      "node: %#llx: an event is none", (unsigned long long)half);
	check(set_attribute(half | CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) ==
			      CUDA_ERROR_NOT_SUPPORTED &&
		      n_calls == 0,
	      "node: %#llx: nor one of a launch's end", (unsigned long long)half);
}

/* No more than there is room for, whatever size of number a driver takes. */
static void test_counts(uint64_t half)
{
	uint64_t module = handle_put(HANDLE_MODULE, OBJECT);

	check(EXECUTE(cuModuleEnumerateFunctions, BYTES(2 * sizeof(uint64_t)), half | 2, module) ==
			      CUDA_SUCCESS &&
		      seen[1] == 2,
	      "count: %#llx: of a list that is written", (unsigned long long)half);
	check(EXECUTE(cuModuleEnumerateFunctions, BYTES(2 * sizeof(uint64_t)), half | 3, module) ==
			      CUDA_ERROR_INVALID_VALUE &&
		      n_calls == 0,
	      "count: %#llx: none that does not fit", (unsigned long long)half);
	check(EXECUTE(cuDeviceGetName, BYTES(16), half | 16, 0) == CUDA_SUCCESS && seen[1] == 16,
	      "count: %#llx: of bytes that are written", (unsigned long long)half);
}

int main(void)
{
	if (!check(handle_init() == 0, "names of objects"))
		return check_result();
	test_pointer_attribute(0);
	test_pointer_attribute(OTHER_HALF);
	test_node_attribute(0);
	test_node_attribute(OTHER_HALF);
	test_counts(0);
	test_counts(OTHER_HALF);
	return check_result();
}
