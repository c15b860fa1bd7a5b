/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residents N DEVICES: N processes with a context and 16 MiB on one of the devices each, that
 * do nothing more until standard input ends. Prints "ready" when all have theirs.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int settle_down(int ordinal)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int (*init)(unsigned) = library ? dlsym(library, "cuInit") : NULL;
	int (*create)(void **, unsigned, int) = library ? dlsym(library, "cuCtxCreate_v2") : NULL;
	int (*alloc)(uint64_t *, size_t) = library ? dlsym(library, "cuMemAlloc_v2") : NULL;
	uint64_t address;

	if (!init || !create || !alloc)
		return 1;
	return init(0) || create(&context, 0, ordinal) || alloc(&address, 16 << 20);
}

static void be_resident(int ordinal, int ready)
{
	char word;

	if (settle_down(ordinal) || write(ready, "", 1) != 1)
		_exit(1);
	/* Until the parent's input ends. */
	while (read(STDIN_FILENO, &word, 1) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, n_devices = argc > 2 ? atoi(argv[2]) : 1, ready[2], i;
	char word;

	if (pipe(ready) < 0)
		return 1;
	for (i = 0; i < n; i++) {
		if (fork() == 0)
			be_resident(i % n_devices, ready[1]);
	}
	for (i = 0; i < n; i++) {
		if (read(ready[0], &word, 1) != 1)
			return 1;
	}
	printf("ready\n");
	fflush(stdout);
	while (wait(NULL) > 0)
		;
	return 0;
}
