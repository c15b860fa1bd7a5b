// SPDX-License-Identifier: Apache-2.0
// Memory and an event that another process opens by their handles: ipc, which starts itself once more.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

extern char **environ;

enum { N = 256 };

struct handles {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
};

__global__ void add(int *x, int by)
{
	x[threadIdx.x] += by;
}

// The other process: its parent's handles come on its standard input.
static int other()
{
	handles of_parent;
	cudaEvent_t event;
	int *x;

	EXPECT(read(STDIN_FILENO, &of_parent, sizeof(of_parent)) == sizeof(of_parent));
	CHECK(cudaIpcOpenEventHandle(&event, of_parent.event));
	CHECK(cudaIpcOpenMemHandle((void **)&x, of_parent.memory, cudaIpcMemLazyEnablePeerAccess));
	CHECK(cudaStreamWaitEvent(0, event));
	EXPECT(to_host(x, N)[N - 1] == 5);
	add<<<1, N>>>(x, 100);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaIpcCloseMemHandle(x));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaIpcCloseMemHandle(x));
	CHECK(cudaEventDestroy(event));
	return 0;
}

static int exit_of_other(const char *program, const handles &mine)
{
	char *words[] = { (char *)program, (char *)"other", nullptr };
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	pid_t pid;

	EXPECT(pipe(ends) == 0);
	EXPECT(posix_spawn_file_actions_init(&actions) == 0);
	EXPECT(posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO) == 0);
	EXPECT(posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, words, environ) == 0);
	EXPECT(write(ends[1], &mine, sizeof(mine)) == sizeof(mine));
	EXPECT(waitpid(pid, &status, 0) == pid);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	close(ends[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	cudaEvent_t event, private_event;
	handles mine = {};
	int *x;

	if (argc > 1)
		return other();
	x = to_device(std::vector<int>(N, 2));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaIpcGetMemHandle(&mine.memory, x));
	CHECK(cudaIpcGetEventHandle(&mine.event, event));
	add<<<1, N>>>(x, 3);
	CHECK(cudaEventRecord(event));
	EXPECT(exit_of_other(argv[0], mine) == 0);
	EXPECT(to_host(x, N)[N - 1] == 105);

	// Its own handles are not for the process itself, and who does not share has none.
	CHECK(cudaEventCreate(&private_event));
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&mine.event, private_event));
	CHECK(cudaFree(x));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaIpcGetMemHandle(&mine.memory, x));
	printf("ipc right\n");
	return 0;
}
