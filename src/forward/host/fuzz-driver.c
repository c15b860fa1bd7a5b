// SPDX-License-Identifier: Apache-2.0
/*
 * A driver that does with its arguments what the table says of them: it reads and writes every byte that a
 * call may, so that a worker which let a wrong pointer or length through is caught by the sanitizer.
 */
#include "forward/host/driver.h"

#include "base/base.h"
#include "forward/host/ask.h"
#include "forward/host/ipc.h"
#include "forward/wire.h"

#include <errno.h>
#include <string.h>

#define KNOWN_BEGIN 0x10000000ULL
#define KNOWN_SIZE  0x10000000ULL

static volatile uint64_t sink;

static void read_bytes(const void *from, size_t n)
{
	const uint8_t *at = from;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += at[i];
	sink += sum;
}

static size_t count_of(const struct wire_argument *argument, const uint64_t *words)
{
	switch (argument->kind) {
	case WIRE_OUT_N:
	case WIRE_IN_N:
	case WIRE_HANDLES:
	case WIRE_OUT_HANDLES:
		return words[argument->count];
	case WIRE_LIST:
		return words[argument->count] ? *(const size_t *)words[argument->count] : 0;
	default:
		return 1;
	}
}

static void touch(const struct wire_argument *argument, const uint64_t *words, uint64_t word)
{
	static const char text[] = "name";
	size_t n = argument->size * count_of(argument, words);

	switch (argument->kind) {
	case WIRE_IN:
	case WIRE_IN_N:
	case WIRE_INOUT:
	case WIRE_HANDLES:
		read_bytes((const void *)word, n);
		break;
	case WIRE_OUT:
	case WIRE_OUT_N:
	case WIRE_OUT_HANDLE:
	case WIRE_OUT_HANDLES:
	case WIRE_LIST:
		memset((void *)word, 0x5a, n);
		break;
	case WIRE_STRING:
		read_bytes((const void *)word, strlen((const char *)word));
		break;
	case WIRE_STRING_OUT:
		*(const char **)word = text;
		break;
	case WIRE_BUFFER:
		read_bytes((const void *)word, words[argument->count]);
		break;
	default:
		break;
	}
}

static CUresult by_table(enum call_id id, const uint64_t *words)
{
	const struct wire_call *wire = &wire_calls[id];
	size_t i;

	for (i = 0; i < wire->n_arguments; i++)
		if (words[i])
			touch(&wire->arguments[i], words, words[i]);
	return CUDA_SUCCESS;
}

static void read_parameters(void *const *extra)
{
	if (extra)
		read_bytes(extra[1], *(const size_t *)extra[3]);
}

/* Both ends of what a copy of host memory reaches. */
static void read_side(CUmemorytype type, const void *host, size_t reach)
{
	if (type != CU_MEMORYTYPE_HOST || reach == 0)
		return;
	read_bytes(host, 1);
	read_bytes((const char *)host + reach - 1, 1);
}

static size_t reach_of(size_t x, size_t y, size_t z, size_t pitch, size_t rows,
		       const CUDA_MEMCPY3D *copy)
{
	if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
		return 0;
	pitch = pitch ? pitch : x + copy->WidthInBytes;
	rows = rows ? rows : y + copy->Height;
	return ((z + copy->Depth - 1) * rows + y + copy->Height - 1) * pitch + x +
	       copy->WidthInBytes;
}

static void read_copy(const CUDA_MEMCPY3D *copy)
{
	read_side(copy->srcMemoryType, copy->srcHost,
		  reach_of(copy->srcXInBytes, copy->srcY, copy->srcZ, copy->srcPitch,
			   copy->srcHeight, copy));
	read_side(copy->dstMemoryType, copy->dstHost,
		  reach_of(copy->dstXInBytes, copy->dstY, copy->dstZ, copy->dstPitch,
			   copy->dstHeight, copy));
}

static CUresult parameter_info(uint64_t i, size_t *offset, size_t *size)
{
	if (i >= 3 || !offset)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 8 * i;
	if (size)
		*size = 8;
	return CUDA_SUCCESS;
}

static CUresult pointer_attribute(uint64_t *ret, uint64_t attribute, uint64_t address)
{
	if (address - KNOWN_BEGIN >= KNOWN_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? KNOWN_SIZE : KNOWN_BEGIN;
	return CUDA_SUCCESS;
}

/* Where and how large: it is there, as the real driver's are, for the worker reads and writes it. */
static CUresult managed_variable(uint64_t *ret_address, uint64_t *ret_size)
{
	*ret_address = KNOWN_BEGIN;
	*ret_size = 4096;
	return CUDA_SUCCESS;
}

/* Text, or a wrapper with a list of it: magic, version, the first, and a list that ends with NULL. */
static void read_image(const char *image)
{
	const void *const *words = (const void *const *)image;
	const char *const *unit;
	uint32_t magic;

	memcpy(&magic, image, strnlen(image, sizeof(magic)));
	if (strnlen(image, sizeof(magic)) < sizeof(magic) || magic != 0x466243b1U) {
		read_bytes(image, strlen(image));
		return;
	}
	read_bytes(words[1], strlen(words[1]));
	for (unit = words[2]; *unit; unit++)
		read_bytes(*unit, strlen(*unit));
}

/* What the compiler writes, where it was told to. */
static void write_texts(uint64_t n, const CUjit_option *names, void *const *values)
{
	size_t size[2] = { 0 };
	uint64_t i;

	for (i = 0; i < n; i++) {
		if (names[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
			size[0] = (uintptr_t)values[i];
		if (names[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size[1] = (uintptr_t)values[i];
	}
	for (i = 0; i < n; i++)
		if (names[i] == CU_JIT_INFO_LOG_BUFFER || names[i] == CU_JIT_ERROR_LOG_BUFFER)
			memset(values[i], 'x', size[names[i] == CU_JIT_ERROR_LOG_BUFFER]);
}

/* Three values, of which each kernel here has as many. */
static void kernel_node(CUDA_KERNEL_NODE_PARAMS *ret)
{
	static uint64_t value;
	static void *values[] = { &value, &value, &value };

	*ret = (CUDA_KERNEL_NODE_PARAMS){ .func = (CUfunction)0x1000, .kernelParams = values };
}

static void capture_info(const uint64_t *w)
{
	static const CUgraphNode after[] = { (CUgraphNode)0x1000, (CUgraphNode)0x1001 };

	*(CUstreamCaptureStatus *)w[1] = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	*(CUgraph *)w[3] = (CUgraph)0x1000;
	*(const CUgraphNode **)w[4] = after;
	*(size_t *)w[5] = ARRAY_SIZE(after);
}

/* Options are kept for as long as a link lives. */
#define LINK 0x1000

static const void *links[16];

static CUresult link_create(const uint64_t *w)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(links) && links[i]; i++)
		;
	if (i == ARRAY_SIZE(links))
		return CUDA_ERROR_OUT_OF_MEMORY;
	write_texts(w[0], (const CUjit_option *)w[1], (void *const *)w[2]);
	links[i] = (const void *)w[1];
	*(CUlinkState *)w[3] = (CUlinkState)(LINK + i);
	return CUDA_SUCCESS;
}

static void load(const void *image, uint64_t n, uint64_t names, uint64_t values)
{
	read_image(image);
	write_texts(n, (const CUjit_option *)names, (void *const *)values);
}

/* Return: is it one that adds a node of a graph, or sets or tells its parameters? */
static bool by_graph(enum call_id id, const uint64_t *w)
{
	switch (id) {
	case CALL_ID_cuGraphAddKernelNode_v2:
		read_bytes((const void *)w[2], w[3] * sizeof(CUgraphNode));
		read_parameters(((const CUDA_KERNEL_NODE_PARAMS *)w[4])->extra);
		return true;
	case CALL_ID_cuGraphKernelNodeSetParams_v2:
		read_parameters(((const CUDA_KERNEL_NODE_PARAMS *)w[1])->extra);
		return true;
	case CALL_ID_cuGraphExecKernelNodeSetParams_v2:
		read_parameters(((const CUDA_KERNEL_NODE_PARAMS *)w[2])->extra);
		return true;
	case CALL_ID_cuGraphKernelNodeGetParams_v2:
		kernel_node((CUDA_KERNEL_NODE_PARAMS *)w[1]);
		return true;
	case CALL_ID_cuGraphAddMemcpyNode:
		read_copy((const CUDA_MEMCPY3D *)w[4]);
		return true;
	case CALL_ID_cuGraphMemcpyNodeSetParams:
		read_copy((const CUDA_MEMCPY3D *)w[1]);
		return true;
	case CALL_ID_cuGraphExecMemcpyNodeSetParams:
		read_copy((const CUDA_MEMCPY3D *)w[2]);
		return true;
	default:
		return false;
	}
}

/* What would be called is kept by the driver: here it is forgotten at once. Return: is it one that keeps some? */
static bool by_callback(enum call_id id, const uint64_t *w)
{
	switch (id) {
	case CALL_ID_cuLaunchHostFunc:
	case CALL_ID_cuLaunchHostFunc_ptsz:
	case CALL_ID_cuStreamAddCallback:
	case CALL_ID_cuStreamAddCallback_ptsz:
		free((void *)w[2]);
		return true;
	case CALL_ID_cuGraphAddHostNode:
		free(((const CUDA_HOST_NODE_PARAMS *)w[4])->userData);
		return true;
	case CALL_ID_cuGraphHostNodeSetParams:
		free(((const CUDA_HOST_NODE_PARAMS *)w[1])->userData);
		return true;
	case CALL_ID_cuGraphExecHostNodeSetParams:
		free(((const CUDA_HOST_NODE_PARAMS *)w[2])->userData);
		return true;
	default:
		return false;
	}
}

static CUresult by_hand(enum call_id id, const uint64_t *w)
{
	if (by_graph(id, w) || by_callback(id, w))
		return CUDA_SUCCESS;
	switch (id) {
	case CALL_ID_cuLaunchKernel:
		read_parameters((void *const *)w[10]);
		break;
	case CALL_ID_cuLaunchKernelEx:
		read_bytes(((const CUlaunchConfig *)w[0])->attrs,
			   ((const CUlaunchConfig *)w[0])->numAttrs * sizeof(CUlaunchAttribute));
		read_parameters((void *const *)w[3]);
		break;
	case CALL_ID_cuStreamGetCaptureInfo_v2:
	case CALL_ID_cuStreamGetCaptureInfo_v2_ptsz:
		capture_info(w);
		break;
	case CALL_ID_cuMemcpy3D_v2:
	case CALL_ID_cuMemcpy3D_v2_ptds:
	case CALL_ID_cuMemcpy3DAsync_v2:
	case CALL_ID_cuMemcpy3DAsync_v2_ptsz:
	case CALL_ID_cuMemcpy3DPeer:
	case CALL_ID_cuMemcpy3DPeer_ptds:
	case CALL_ID_cuMemcpy3DPeerAsync:
	case CALL_ID_cuMemcpy3DPeerAsync_ptsz:
		read_copy((const CUDA_MEMCPY3D *)w[0]);
		break;
	case CALL_ID_cuModuleLoadDataEx:
		load((const void *)w[1], w[2], w[3], w[4]);
		break;
	case CALL_ID_cuLibraryLoadData:
		load((const void *)w[1], w[4], w[2], w[3]);
		break;
	case CALL_ID_cuLinkCreate_v2:
		return link_create(w);
	case CALL_ID_cuLinkDestroy:
		links[w[0] - LINK] = NULL;
		break;
	case CALL_ID_cuLinkAddData_v2:
		read_bytes((const void *)w[2], w[3]);
		break;
	case CALL_ID_cuLinkComplete:
		*(const void **)w[1] = "an image";
		*(size_t *)w[2] = sizeof("an image");
		break;
	case CALL_ID_cuFuncGetParamInfo:
	case CALL_ID_cuKernelGetParamInfo:
		return parameter_info(w[1], (size_t *)w[2], (size_t *)w[3]);
	case CALL_ID_cuPointerGetAttribute:
		return pointer_attribute((uint64_t *)w[0], w[1], w[2]);
	/* None of ours would be called, so none is kept. */
	case CALL_ID_cuUserObjectCreate:
		return CUDA_ERROR_INVALID_VALUE;
	case CALL_ID_cuMemHostRegister_v2:
		read_bytes((const void *)w[0], MIN(w[1], (uint64_t)4096));
		break;
	default:
		break;
	}
	return CUDA_SUCCESS;
}

CUresult driver_call(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const struct wire_call *wire = &wire_calls[id];

	if (id == CALL_ID_cuLibraryGetManaged)
		return managed_variable((uint64_t *)words[0], (uint64_t *)words[1]);
	if (wire->hand == WIRE_HAND || wire->class == WIRE_GUEST ||
	    id == CALL_ID_cuFuncGetParamInfo || id == CALL_ID_cuKernelGetParamInfo)
		return by_hand(id, words);
	return by_table(id, words);
}

void *driver_entry(_unused_ enum call_id id)
{
	return NULL;
}

/* The broker says anything. */
int broker_ask(struct wire_message *message)
{
	message->size = message->address;
	memset(message->data, 0x5a, sizeof(message->data));
	return message->id % 8 ? 0 : -EPIPE;
}

/* Handles of other processes there are none. */
CUresult ipc_execute(_unused_ struct command *command)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
