// SPDX-License-Identifier: Apache-2.0
/* Device memory between processes, and what is left of one that is killed. */
#include "softgpu/cuda/test-process.h"

CUresult cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr dptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr dptr);

static unsigned char byte_at(CUdeviceptr p)
{
	unsigned char byte;

	OK(cuMemcpyDtoH_v2(&byte, p, 1));
	return byte;
}

static CUdeviceptr open_received(int socket, CUipcMemHandle *ret_handle)
{
	CUdeviceptr p;

	test_receive(socket, ret_handle, sizeof(*ret_handle));
	test_context();
	OK(cuIpcOpenMemHandle_v2(&p, *ret_handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	return p;
}

static CUdeviceptr export_new(int socket, size_t bytes)
{
	CUipcMemHandle handle;
	CUdeviceptr p;

	test_context();
	OK(cuMemAlloc_v2(&p, bytes));
	OK(cuMemsetD8_v2(p, 1, bytes));
	OK(cuIpcGetMemHandle(&handle, p));
	test_send(socket, &handle, sizeof(handle), /* fd= */ -1);
	return p;
}

static void use_importer(int socket)
{
	CUipcMemHandle handle, bad;
	CUdeviceptr p = open_received(socket, &handle), again, base;
	size_t size;

	CHECK(byte_at(p) == 1 && byte_at(p + 999) == 1);
	OK(cuMemGetAddressRange_v2(&base, &size, p + 5));
	CHECK(base == p && size == 1000);
	OK(cuMemsetD8_v2(p, 2, 1000));
	INVALID(cuMemsetD8_v2(p, 2, 1001));
	INVALID(cuMemFree_v2(p));
	INVALID(cuIpcGetMemHandle(&bad, p));

	/* A second opening is the same one. */
	OK(cuIpcOpenMemHandle_v2(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(again == p);
	OK(cuIpcCloseMemHandle(p));
	CHECK(byte_at(p) == 2);
	test_signal(socket);

	/* The exporter has freed it by now. */
	test_wait(socket);
	CHECK(byte_at(p) == 2);
	OK(cuIpcCloseMemHandle(p));
	INVALID(cuIpcCloseMemHandle(p));
	INVALID(cuMemsetD8_v2(p, 2, 1));
	CHECK(cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
	      CUDA_ERROR_INVALID_HANDLE);
	INVALID(cuIpcOpenMemHandle_v2(&p, handle, 0));
	memset(&bad, 0x55, sizeof(bad));
	INVALID(cuIpcOpenMemHandle_v2(&p, bad, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	test_signal(socket);
	test_wait(socket);
}

static void use_exporter(int socket)
{
	CUdeviceptr p = export_new(socket, 1000), other;
	CUipcMemHandle handle;

	test_wait(socket);
	CHECK(byte_at(p + 999) == 2);
	OK(cuIpcGetMemHandle(&handle, p + 10));
	CHECK(cuIpcOpenMemHandle_v2(&other, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
	      CUDA_ERROR_INVALID_CONTEXT);
	INVALID(cuIpcGetMemHandle(&handle, (CUdeviceptr)&p));
	OK(cuMemFree_v2(p));
	CHECK(test_used() == 32 * MIB + BLOCK);
	/* It is not handed out again. */
	OK(cuMemAlloc_v2(&other, 1000));
	CHECK(other != p);
	OK(cuMemsetD8_v2(other, 9, 1000));
	OK(cuMemFree_v2(other));
	test_signal(socket);
	test_wait(socket);
	test_wait_used(32 * MIB);
	test_signal(socket);
}

static void test_use(void)
{
	test_roles(use_exporter, use_importer);
}

static void killed_importer(int socket)
{
	CUipcMemHandle handle;
	pid_t self = getpid();

	open_received(socket, &handle);
	test_send(socket, &self, sizeof(self), /* fd= */ -1);
	pause();
}

static void killing_exporter(int socket)
{
	CUdeviceptr p = export_new(socket, 3 * BLOCK);
	pid_t importer;

	test_receive(socket, &importer, sizeof(importer));
	OK(cuMemFree_v2(p));
	CHECK(test_used() == 32 * MIB + 3 * BLOCK);
	kill(importer, SIGKILL);
	test_wait_used(0);
}

static void test_importer_killed(void)
{
	test_roles(killing_exporter, killed_importer);
}

static void killed_exporter(int socket)
{
	pid_t self = getpid();
	CUdeviceptr p;

	OK(cuInit(0));
	export_new(socket, BLOCK);
	OK(cuMemAlloc_v2(&p, 500 * MIB));
	OK(cuMemsetD8_v2(p, 1, 10 * MIB));
	test_send(socket, &self, sizeof(self), /* fd= */ -1);
	pause();
}

static void killing_importer(int socket)
{
	CUipcMemHandle handle;
	CUdeviceptr p = open_received(socket, &handle);
	pid_t exporter;

	test_receive(socket, &exporter, sizeof(exporter));
	CHECK(test_used() == 32 * MIB + BLOCK + 500 * MIB);
	kill(exporter, SIGKILL);
	/* What this process has open is its own to pay for now. */
	test_wait_used(BLOCK);
	CHECK(byte_at(p + BLOCK - 1) == 1);
	OK(cuIpcCloseMemHandle(p));
	CHECK(test_used() == 0);
}

static void test_exporter_killed(void)
{
	test_roles(killed_exporter, killing_importer);
}

static const struct test_case cases[] = {
	{ "ipc: both write; freed memory stays until it is closed", test_use },
	{ "ipc: an importer that is killed lets go", test_importer_killed },
	{ "ipc: what a killed process held is free, and what is open is the other's",
	  test_exporter_killed },
};

int main(void)
{
	test_environment();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
