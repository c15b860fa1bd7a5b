/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory shared between two processes by a handle: ipc PTX-FILE
 * The child opens the parent's buffer, doubles it by a kernel and exits.
 */
#include <sys/wait.h>
#include <unistd.h>
#include "program.h"

enum { N = 5000 };

static int child(const char *ptx_path, int from)
{
	CUipcMemHandle handle;
	CUdeviceptr ptr;
	float by = 2;
	int n = N;

	EXPECT(read(from, &handle, sizeof(handle)) == sizeof(handle));
	CHECK(cuInit(0));
	context_on(0);
	CHECK(cuIpcOpenMemHandle(&ptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(cuLaunchKernel(function_of(module_of(ptx_path), "scale"), (N + 99) / 100, 1, 1, 100,
			     1, 1, 0, NULL, (void *[]){ &ptr, &by, &n }, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuIpcCloseMemHandle(ptr));
	return 0;
}

int main(int argc, char **argv)
{
	static float x[N];
	int pipe_fds[2], status;
	CUipcMemHandle handle;
	CUdeviceptr ptr;
	pid_t pid;

	/* Before cuInit(): a context does not survive a fork. */
	EXPECT(pipe(pipe_fds) == 0);
	pid = fork();
	if (pid == 0)
		return child(argv[1], pipe_fds[0]);

	CHECK(cuInit(0));
	context_on(0);
	for (int i = 0; i < N; i++)
		x[i] = (float)(noise(i) % 1000);
	ptr = device_copy(x, sizeof(x));
	CHECK(cuIpcGetMemHandle(&handle, ptr));
	EXPECT(write(pipe_fds[1], &handle, sizeof(handle)) == sizeof(handle));
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(cuMemcpyDtoH(x, ptr, sizeof(x)));
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == 2 * (float)(noise(i) % 1000));
	printf("the child's kernel doubled the parent's memory\n");
	return 0;
}
