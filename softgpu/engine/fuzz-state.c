// SPDX-License-Identifier: Apache-2.0
/*
 * A state file with bytes changed by anybody: it is refused, or everything that reads it goes
 * on without a crash and comes to an end.
 *
 * The input is a list of changes: an offset (4 bytes), a length (1 byte), the bytes.
 */
#include "softgpu/engine/line.h"
#include "softgpu/state/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct softgpu_config config;
static uint8_t *pristine;
static int fd;

static void folder_remove(void)
{
	static const char *const files[] = { "device-0", "pids" };
	int folder = open(config.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(folder, files[i], 0);
	close(folder);
	rmdir(config.dir);
}

static void prepare(void)
{
	struct state *state;
	char path[300];

	config_default(&config);
	config.n_devices = 1;
	strcpy(config.dir, "/tmp/fuzz-state-XXXXXX");
	if (!mkdtemp(config.dir) || state_open(&config, 0, &state) != 0)
		abort();
	state_close(state);
	atexit(folder_remove);
	snprintf(path, sizeof(path), "%s/device-0", config.dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	pristine = malloc(state_file_bytes());
	if (fd < 0 || pread(fd, pristine, state_file_bytes(), 0) != (ssize_t)state_file_bytes())
		abort();
}

static void put(const void *bytes, size_t n, size_t at)
{
	if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
		abort();
}

static void change(const uint8_t *data, size_t size)
{
	uint32_t at;
	size_t n;

	while (size > 5) {
		memcpy(&at, data, 4);
		at %= (uint32_t)state_file_bytes();
		n = data[4] < size - 5 ? data[4] : size - 5;
		n = n < state_file_bytes() - at ? n : state_file_bytes() - at;
		put(data + 5, n, at);
		data += 5 + n;
		size -= 5 + n;
	}
}

static void use(struct state *state)
{
	struct state_process processes[4];
	struct state_sample samples[4];
	struct state_memory memory;
	uint64_t position;
	bool known, lost;
	int client;

	if (state_attach(state) != 0)
		return;
	state_charge(state, 0, 1 << 20);
	state_memory(state, 0, &memory);
	client = line_join(state->files[0], atomic_load(&state->slots[0]->birth));
	if (client >= 0) {
		position = line_ask(state->files[0], client, 1000, 0, true, &lost);
		line_advance(state->files[0], clock_now());
		line_end(state->files[0], client, position, &known);
		line_leave(state->files[0], state->slots[0], client);
	}
	state_processes(state, 0, processes, 4);
	state_samples(state, 0, samples, 4);
	state_uncharge(state, 0, 1 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state *state;

	if (!pristine)
		prepare();
	put(pristine, state_file_bytes(), 0);
	change(data, size);
	if (state_open(&config, 0, &state) != 0)
		return 0;
	if (state_n_devices(state) == 1)
		use(state);
	state_close(state);
	return 0;
}
