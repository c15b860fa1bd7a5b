/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of softgpu/state and the engine share.
 */
#ifndef SOFTGPU_STATE_INTERNAL_H
#define SOFTGPU_STATE_INTERNAL_H

#include "softgpu/state/keeper.h"
#include "softgpu/state/layout.h"

#include <pthread.h>

/*
 * @region:	two halves of equal size. The second has the files, one after the other; the
 *		first is private and has, as far from its futex word as all others, the node
 *		of each slot of ours in the keeper's list.
 * @own:	a word that is 1 here and reads as 0 in a forked child
 * @looked_at:	the device that a monitor has read last
 * @lock:	guards attaching
 * @slots:	of this process, once attached
 */
struct state {
	unsigned n_devices;
	struct state_file *files[SOFTGPU_DEVICES_MAX];
	uint8_t *region;
	size_t region_bytes;
	const _Atomic uint32_t *own;
	uint64_t pid_namespace;
	int pids_fd;
	char dir[sizeof(((struct softgpu_config *)0)->dir)];
	bool log;
	_Atomic unsigned looked_at;

	pthread_mutex_t lock;
	_Atomic bool attached;
	struct keeper *keeper;
	struct state_slot *slots[SOFTGPU_DEVICES_MAX];
};

/* file.c */
int files_open(struct state *state, const struct softgpu_config *config, unsigned flags);
size_t state_file_bytes(void);

/* The lock of a device's limits, until the returned fd is closed; -EBUSY if others keep it. */
int limits_lock(const struct state *state, unsigned dev);

/* check.c: whether a file is one of ours, of any boot; whether one of this boot is whole; sums */
bool file_is_ours(const struct state_file *file, unsigned index);
bool file_is_whole(const struct state_file *file);
uint64_t header_sum(const struct state_file *file);
uint64_t properties_sum(const struct state_properties *properties);

/* charge.c */
struct pair charge_complete(struct state_file *file);
void slot_empty(struct state_slot *slot);
uint64_t file_used(const struct state_file *file);

/* process.c */
uint64_t pid_namespace_own(void);
int pids_open(const char *dir);
void pids_enter(struct state *state, unsigned dev, struct state_slot *slot);
void pids_namespace_join(struct state_file *file, uint64_t own);

/* limit.c */
bool limits_allow(struct state_file *file, struct state_slot *own, uint64_t bytes);
void limits_narrow(struct state_file *file, const uint64_t *cgroups, struct state_memory *memory);

/* cgroup.c: inode numbers of the process's cgroup and its ancestors, then zeros */
void cgroups_own(uint64_t ret[STATE_CGROUPS_MAX]);
void cgroups_refresh(struct state_slot *slot);

/* sample.c */
void samples_add(state_bucket *ring, unsigned n, uint64_t period_ns, uint64_t begin_ns,
		 uint64_t end_ns);

void slot_sample(const struct state_file *file, const struct state_slot *slot,
		 struct state_process *ret);
uint64_t clock_now(void);

#endif
