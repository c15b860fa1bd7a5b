// SPDX-License-Identifier: Apache-2.0
#include "softgpu/state/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OWN_BYTES 4096
/* Of fewer, the file takes less than it costs to map it again. */
#define LOOK_SLOTS 64

/* A page that a child of fork() finds empty, however it forked. */
static int own_page_new(const _Atomic uint32_t **ret)
{
	_Atomic uint32_t *page =
		mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, OWN_BYTES, MADV_WIPEONFORK) < 0) {
		munmap(page, OWN_BYTES);
		return -errno;
	}
	atomic_store(page, 1);
	*ret = page;
	return 0;
}

int state_open(const struct softgpu_config *config, unsigned flags, struct state **ret)
{
	struct state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return -ENOMEM;
	state->pids_fd = -1;
	state->pid_namespace = pid_namespace_own();
	pthread_mutex_init(&state->lock, NULL);
	r = own_page_new(&state->own);
	if (r == 0)
		r = files_open(state, config, flags);
	if (r != 0) {
		state_close(state);
		return r;
	}
	*ret = state;
	return 0;
}

void state_close(struct state *state)
{
	if (!state)
		return;
	if (state->own && state_is_forked(state))
		keeper_forget(state->keeper);
	else
		keeper_stop(state->keeper);
	if (state->region)
		munmap(state->region, state->region_bytes);
	if (state->own)
		munmap((void *)state->own, OWN_BYTES);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

bool state_is_forked(const struct state *state)
{
	return atomic_load_explicit(state->own, memory_order_relaxed) == 0;
}

unsigned state_n_devices(const struct state *state)
{
	return state->n_devices;
}

void state_device(const struct state *state, unsigned dev, struct softgpu_device_config *ret)
{
	const struct state_file *file = state->files[dev];
	uint32_t n;

	/* Written anew while we copied: the other half holds now. */
	do {
		n = atomic_load(&file->n_properties);
		*ret = file->properties[n & 1].device;
		atomic_thread_fence(memory_order_seq_cst);
	} while (atomic_load(&file->n_properties) != n);
	ret->name[sizeof(ret->name) - 1] = '\0';
}

void state_look(struct state *state, unsigned dev)
{
	unsigned before = atomic_load_explicit(&state->looked_at, memory_order_relaxed);

	if (before == dev)
		return;
	atomic_store_explicit(&state->looked_at, dev, memory_order_relaxed);
	if (atomic_load(&state->files[before]->n_slots) > LOOK_SLOTS)
		madvise(state->files[before], state_file_bytes(), MADV_DONTNEED);
}

void state_memory_device(const struct state *state, unsigned dev, struct state_memory *ret)
{
	const struct state_file *file = state->files[dev];

	ret->total_bytes = file_properties(file)->device.memory_bytes;
	ret->used_bytes = file_used(file);
	if (ret->used_bytes > ret->total_bytes)
		ret->used_bytes = ret->total_bytes;
	ret->free_bytes = ret->total_bytes - ret->used_bytes;
}

void state_memory(struct state *state, unsigned dev, struct state_memory *ret)
{
	struct state_file *file = state->files[dev];
	uint64_t cgroups[STATE_CGROUPS_MAX];

	state_memory_device(state, dev, ret);
	if (atomic_load(&file->n_limits) == 0)
		return;
	cgroups_own(cgroups);
	limits_narrow(file, cgroups, ret);
}
