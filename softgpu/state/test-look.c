// SPDX-License-Identifier: Apache-2.0
/*
 * What a monitor keeps in memory of the files of devices that many processes use.
 */
#include "softgpu/state/internal.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define N_DEVICES   3
#define N_PROCESSES 500

static struct softgpu_config config;

/* KiB of a device's file that this process has mapped and read. */
static unsigned long resident(unsigned dev)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[1024], name[32];
	unsigned long n = 0, kib;
	bool is_it = false;

	snprintf(name, sizeof(name), "/device-%u\n", dev);
	while (f && fgets(line, sizeof(line), f)) {
		if (strchr(line, '-') && strchr(line, '/'))
			is_it = strstr(line, name);
		if (is_it && sscanf(line, "Rss: %lu", &kib) == 1)
			n += kib;
	}
	if (f)
		fclose(f);
	return n;
}

static void look(struct state *state, unsigned dev)
{
	struct state_memory memory;

	state_look(state, dev);
	state_memory_device(state, dev, &memory);
	check(memory.used_bytes == dev + 1, "what is told is the same as ever");
}

int main(void)
{
	const unsigned long kib = N_PROCESSES * sizeof(struct state_slot) / 1024;
	struct state *state;

	config_default(&config);
	config.n_devices = N_DEVICES;
	for (unsigned i = 0; i < N_DEVICES; i++)
		config.devices[i] = config.devices[0];
	strcpy(config.dir, "/tmp/softgpu-look-XXXXXX");
	if (!mkdtemp(config.dir) || state_open(&config, STATE_CONFIGURE, &state) != 0)
		return 1;
	for (unsigned i = 0; i < N_DEVICES; i++) {
		state_raise(&state->files[i]->n_slots, N_PROCESSES);
		/* One that lives, as far as anybody can tell. */
		state->files[i]->slots[N_PROCESSES - 1].used.b = i + 1;
		atomic_store(&state->files[i]->slots[N_PROCESSES - 1].life, 1);
	}
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < N_DEVICES; i++)
			look(state, i);
	}
	check(resident(0) == 0 && resident(1) == 0,
	      "state_look: one device after the other is let go");
	check(resident(2) >= kib, "state_look: but not the last one");
	look(state, 2);
	check(resident(2) >= kib, "state_look: nor where it is the same again");
	state_close(state);
	test_dir_remove(config.dir);
	return n_failed != 0;
}
