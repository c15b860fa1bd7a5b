// SPDX-License-Identifier: Apache-2.0
/*
 * Limits of cgroups. Each slot tells the cgroups that its process is in, so what a limit's
 * cgroup uses is a sum over slots like everything else.
 *
 * Who sets one holds a lock that only his user can take, so that two never fill the same entry. Those
 * that keep to limits look at no lock: an entry is filled before its cgroup is stored, the single
 * step that makes it hold.
 */
#include "softgpu/state/internal.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool slot_is_in(const struct state_slot *slot, uint64_t cgroup)
{
	for (unsigned i = 0; i < STATE_CGROUPS_MAX; i++) {
		if (atomic_load(&slot->cgroups[i]) == cgroup)
			return true;
	}
	return false;
}

static uint64_t cgroup_used(const struct state_file *file, uint64_t cgroup)
{
	uint32_t n = state_bounded(&file->n_slots, STATE_SLOTS_MAX);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (slot_is_live(&file->slots[i]) && slot_is_in(&file->slots[i], cgroup))
			sum += pair_load(&file->slots[i].used).b;
	}
	return sum;
}

bool limits_allow(struct state_file *file, struct state_slot *own, uint64_t bytes)
{
	uint32_t n = state_bounded(&file->n_limits, STATE_LIMITS_MAX);
	uint64_t cgroup, hard, used;

	for (uint32_t i = 0; i < n; i++) {
		cgroup = atomic_load(&file->limit_cgroups[i]);
		if (cgroup == 0 || !slot_is_in(own, cgroup))
			continue;
		hard = atomic_load(&file->limits[i].hard_bytes);
		used = cgroup_used(file, cgroup);
		if (used > hard || bytes > hard - used)
			return false;
	}
	return true;
}

static bool is_among(const uint64_t *cgroups, uint64_t cgroup)
{
	for (unsigned i = 0; i < STATE_CGROUPS_MAX; i++) {
		if (cgroups[i] == cgroup)
			return true;
	}
	return false;
}

void limits_narrow(struct state_file *file, const uint64_t *cgroups, struct state_memory *memory)
{
	uint32_t n = state_bounded(&file->n_limits, STATE_LIMITS_MAX);
	uint64_t cgroup, hard, used, left;

	for (uint32_t i = 0; i < n; i++) {
		cgroup = atomic_load(&file->limit_cgroups[i]);
		hard = atomic_load(&file->limits[i].hard_bytes);
		if (cgroup == 0 || hard == UINT64_MAX || !is_among(cgroups, cgroup))
			continue;
		used = cgroup_used(file, cgroup);
		left = used < hard ? hard - used : 0;
		if (hard < memory->total_bytes)
			memory->total_bytes = hard;
		if (left < memory->free_bytes)
			memory->free_bytes = left;
	}
	if (memory->free_bytes > memory->total_bytes)
		memory->free_bytes = memory->total_bytes;
	memory->used_bytes = memory->total_bytes - memory->free_bytes;
}

static int cgroup_of_path(const char *path, uint64_t *ret)
{
	struct statfs fs;
	struct stat st;

	if (strlen(path) >= STATE_PATH_MAX)
		return -ENAMETOOLONG;
	if (stat(path, &st) < 0 || statfs(path, &fs) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -EINVAL;
	*ret = st.st_ino;
	return 0;
}

static int limit_find(const struct state_file *file, uint64_t cgroup)
{
	uint32_t n = state_bounded(&file->n_limits, STATE_LIMITS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		if (atomic_load(&file->limit_cgroups[i]) == cgroup)
			return (int)i;
	}
	return -1;
}

static bool is_removed(const struct state_limit_entry *entry, uint64_t cgroup)
{
	char path[STATE_PATH_MAX];
	uint64_t now;

	memcpy(path, entry->path, sizeof(path));
	path[sizeof(path) - 1] = '\0';
	return cgroup_of_path(path, &now) != 0 || now != cgroup;
}

/*
 * A removed cgroup's number is never another's, so its entry does no harm: it is looked for
 * only when no other is free. From inside a container the host's look removed, too.
 */
static int limit_new(struct state_file *file)
{
	uint64_t cgroup;

	for (unsigned i = 0; i < STATE_LIMITS_MAX; i++) {
		state_raise(&file->n_limits, i + 1);
		if (atomic_load(&file->limit_cgroups[i]) == 0)
			return (int)i;
	}
	for (unsigned i = 0; i < STATE_LIMITS_MAX; i++) {
		cgroup = atomic_load(&file->limit_cgroups[i]);
		if (!is_removed(&file->limits[i], cgroup))
			continue;
		atomic_store(&file->limit_cgroups[i], 0);
		return (int)i;
	}
	return -1;
}

/* Under the lock of limits. */
static int limit_put(struct state_file *file, uint64_t cgroup, const char *path,
		     uint64_t soft_bytes, uint64_t hard_bytes)
{
	bool is_limit = soft_bytes > 0 || hard_bytes < UINT64_MAX;
	int i = limit_find(file, cgroup);

	if (i < 0 && is_limit)
		i = limit_new(file);
	if (i < 0)
		return is_limit ? STATE_E_BUSY : 0;
	strcpy(file->limits[i].path, path);
	atomic_store(&file->limits[i].soft_bytes, soft_bytes);
	atomic_store(&file->limits[i].hard_bytes, hard_bytes);
	atomic_store(&file->limit_cgroups[i], is_limit ? cgroup : 0);
	return 0;
}

int state_limit_set(struct state *state, unsigned dev, const char *path, uint64_t soft_bytes,
		    uint64_t hard_bytes)
{
	uint64_t cgroup;
	int lock_fd, r;

	if (soft_bytes > hard_bytes)
		return -EINVAL;
	r = cgroup_of_path(path, &cgroup);
	if (r < 0)
		return r;
	lock_fd = limits_lock(state, dev);
	if (lock_fd < 0)
		return lock_fd == -EBUSY ? STATE_E_BUSY : lock_fd;
	r = limit_put(state->files[dev], cgroup, path, soft_bytes, hard_bytes);
	close(lock_fd);
	return r;
}

int state_limit_get(struct state *state, unsigned dev, const char *path, struct state_limit *ret)
{
	struct state_file *file = state->files[dev];
	uint64_t cgroup;
	int i, r;

	r = cgroup_of_path(path, &cgroup);
	if (r < 0)
		return r;
	i = limit_find(file, cgroup);
	ret->used_bytes = cgroup_used(file, cgroup);
	ret->soft_bytes = i < 0 ? 0 : atomic_load(&file->limits[i].soft_bytes);
	ret->hard_bytes = i < 0 ? UINT64_MAX : atomic_load(&file->limits[i].hard_bytes);
	return 0;
}
