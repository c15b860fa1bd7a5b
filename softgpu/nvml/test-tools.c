// SPDX-License-Identifier: Apache-2.0
/*
 * What monitoring tools and frameworks ask NVML for when they start, call by call, on the library
 * named by the argument, while a process holds memory.
 *
 * nvtop, DCGM and PyTorch look names up by themselves and give up where one is missing or a call
 * that they need fails. What they take "not supported" from may answer so.
 */
#include "softgpu/nvml/test-tools.h"
#include "softgpu/util/test-child.h"
#include "softgpu/util/test-dir.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t holder;

static int n_failed;
static void *lib;

void check(bool good, const char *what)
{
	printf("%s '%s'\n", good ? "ok" : "NOT OK", what);
	n_failed += !good;
}

void *symbol(const char *name)
{
	void *address = dlsym(lib, name);

	if (!address) {
		printf("NOT OK '%s is exported'\n", name);
		exit(1);
	}
	return address;
}

bool is_answer(nvmlReturn_t r)
{
	return r == NVML_SUCCESS || r == NVML_ERROR_NOT_SUPPORTED;
}

nvmlDevice_t first_device(void)
{
	nvmlDevice_t device = NULL;
	unsigned n = 0;

	check(call(nvmlDeviceGetCount_v2, unsigned *)(&n) == 0 && n == 2, "counts devices");
	check(call(nvmlDeviceGetHandleByIndex_v2, unsigned, nvmlDevice_t *)(0, &device) == 0,
	      "takes the first");
	return device;
}

/*
 * A process that is on the books with HELD_BYTES, until it is killed, or until the test ends, which it does
 * where a name is missing.
 */
static pid_t hold(void)
{
	struct softgpu_config config;
	struct state *state;
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0)
		exit(1);
	pid = child_new();
	if (pid > 0) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			exit(1);
		close(ready[0]);
		return pid;
	}
	if (config_load(&config) != 0 || state_open(&config, STATE_CONFIGURE, &state) != 0 ||
	    state_attach(state) != 0 || state_charge(state, 0, HELD_BYTES) != 0)
		_exit(1);
	state_context_add(state, 0, 1);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(_unused_ int argc, char **argv)
{
	char dir[] = "/tmp/softgpu-tools-XXXXXX";

	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!lib || !mkdtemp(dir)) {
		printf("NOT OK '%s'\n", lib ? "a folder for the state" : dlerror());
		return 1;
	}
	setenv("SOFTGPU_DIR", dir, 1);
	holder = hold();
	test_nvtop();
	test_pytorch();
	test_dcgm();
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	return test_dir_remove(dir) != 0 || n_failed != 0;
}
