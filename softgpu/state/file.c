// SPDX-License-Identifier: Apache-2.0
/*
 * Opening the files of the devices.
 *
 * A file is made under no name, filled, and then linked to its name, so nobody ever sees
 * half of one and two who make it at once end up with the same. All its bytes are
 * allocated before: a full /dev/shm is an error here and never a SIGBUS later.
 *
 * Two things change a file that is there: a file of an earlier boot is replaced, and a
 * device that nobody uses takes on another configuration. Both are done under a lock on
 * the folder. It is only waited for a short time, because its holder may be stopped;
 * then things are left as they are. So it is with the lock on a device's file, under which
 * limits of cgroups are set.
 */
#include "softgpu/state/internal.h"
#include "softgpu/util/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES    4096
#define NAME_MAX_     32
#define LOCK_TRIES    100
#define LOCK_PAUSE_NS 2000000

/* Of the folder: what is needed to open one of its files. */
struct folder {
	const struct softgpu_config *config;
	int fd;
	uint8_t boot_id[16];
};

size_t state_file_bytes(void)
{
	return (sizeof(struct state_file) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void file_name(unsigned index, char name[NAME_MAX_])
{
	snprintf(name, NAME_MAX_, "device-%u", index);
}

/* Zeros where the kernel does not tell: then no file is ever stale. */
static void boot_id_read(uint8_t ret[16])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[37] = "";

	memset(ret, 0, 16);
	if (fd < 0)
		return;
	/* 36 characters: hexadecimal digits and dashes. Half of them tell boots apart. */
	if (read(fd, text, 36) == 36) {
		memcpy(ret, text, 8);
		memcpy(ret + 8, text + 28, 8);
	}
	close(fd);
}

static void properties_from(const struct softgpu_config *config, unsigned index,
			    uint32_t generation, struct state_properties *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->device = config->devices[index];
	ret->n_devices = config->n_devices;
	ret->generation = generation;
	ret->slice_ns = config->slice_ns;
	ret->sample_period_ns = config->sample_period_ns;
	ret->sum = properties_sum(ret);
}

static bool properties_equal(const struct state_properties *a, const struct state_properties *b)
{
	const size_t begin = offsetof(struct softgpu_device_config, memory_bytes);
	const size_t end = offsetof(struct softgpu_device_config, pci_device) + sizeof(uint32_t);

	return strcmp(a->device.name, b->device.name) == 0 &&
	       memcmp((const char *)a + begin, (const char *)b + begin, end - begin) == 0 &&
	       a->n_devices == b->n_devices && a->slice_ns == b->slice_ns &&
	       a->sample_period_ns == b->sample_period_ns;
}

static uint64_t wall_offset(void)
{
	return moment_now_ns(CLOCK_REALTIME) - clock_now();
}

static int file_fill(int fd, const struct folder *folder, unsigned index)
{
	struct state_file *file;
	int r;

	r = -posix_fallocate(fd, 0, (off_t)state_file_bytes());
	if (r < 0)
		return r;
	file = mmap(NULL, state_file_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return -errno;
	memcpy(file->magic, STATE_MAGIC, sizeof(file->magic));
	file->version = STATE_VERSION;
	file->index = index;
	file->size_bytes = state_file_bytes();
	memcpy(file->boot_id, folder->boot_id, sizeof(file->boot_id));
	file->wall_offset_ns = wall_offset();
	file->sum = header_sum(file);
	file->turn.a = 1;
	properties_from(folder->config, index, /* generation= */ 0, &file->properties[0]);
	munmap(file, state_file_bytes());
	return 0;
}

/* Another user's processes write to it too, whatever our umask. */
static int file_link(int fd, const struct folder *folder, unsigned index)
{
	char from[32], name[NAME_MAX_];

	file_name(index, name);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (fchmod(fd, 0666) < 0)
		return -errno;
	if (linkat(AT_FDCWD, from, folder->fd, name, AT_SYMLINK_FOLLOW) < 0)
		return errno == EEXIST ? 0 : -errno;
	return 0;
}

static int file_make(const struct folder *folder, unsigned index)
{
	int fd = openat(folder->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666), r;

	if (fd < 0)
		return -errno;
	r = file_fill(fd, folder, index);
	if (r == 0)
		r = file_link(fd, folder, index);
	close(fd);
	return r;
}

static int lock_take(int fd)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

static void lock_drop(int fd)
{
	flock(fd, LOCK_UN);
}

static bool is_own_lock(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

static bool is_named(int folder, const char *name, int fd)
{
	struct stat st, named;

	return fstat(fd, &st) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_ino == st.st_ino;
}

/* What another user has put there, even a folder with something in it, is in nobody's way. */
static int foreign_remove(int folder, const char *name)
{
	char aside[NAME_MAX_ + 16];

	if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
		return 0;
	snprintf(aside, sizeof(aside), "%s.%d", name, getpid());
	return renameat(folder, name, folder, aside) == 0 ? 0 : -errno;
}

static int lock_open(int folder, const char *name)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int r = -EBUSY;

	for (int tries = 0; tries < 3; tries++) {
		int fd = openat(folder, name, flags, 0600);

		if (fd >= 0 && is_own_lock(fd)) {
			r = lock_take(fd);
			if (r == 0 && is_named(folder, name, fd))
				return fd;
		} else {
			r = foreign_remove(folder, name);
		}
		if (fd >= 0)
			close(fd);
		if (r < 0)
			return r;
	}
	return -EBUSY;
}

/*
 * Not the device's file: anybody may lock that, and keep the lock. This one is of the user who
 * sets limits, root as a rule, and closed to others.
 */
int limits_lock(const struct state *state, unsigned dev)
{
	int folder = open(state->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	char name[NAME_MAX_];

	if (folder < 0)
		return -errno;
	snprintf(name, sizeof(name), "limits-%u-%u", dev, geteuid());
	fd = lock_open(folder, name);
	close(folder);
	return fd;
}

static int file_open(const struct folder *folder, unsigned index)
{
	char name[NAME_MAX_];
	int fd, r;

	file_name(index, name);
	fd = openat(folder->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? fd : -errno;
	r = file_make(folder, index);
	if (r < 0)
		return r;
	fd = openat(folder->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? fd : -errno;
}

/* Maps it at @at: 0, STATE_E_FOREIGN, or negative errno. */
static int file_map(int fd, unsigned index, void *at)
{
	struct state_file *file;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)state_file_bytes())
		return STATE_E_FOREIGN;
	file = mmap(at, state_file_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (file == MAP_FAILED)
		return -errno;
	return file_is_ours(file, index) ? 0 : STATE_E_FOREIGN;
}

/* Under the folder's lock. */
static int stale_remove(const struct folder *folder, unsigned index, struct state_file *file)
{
	char name[NAME_MAX_];
	struct stat now;
	int fd, r;

	file_name(index, name);
	fd = openat(folder->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	/* Somebody may have replaced it since we looked. */
	r = fstat(fd, &now) < 0 ? -errno : file_map(fd, index, file);
	close(fd);
	if (r == 0 && memcmp(file->boot_id, folder->boot_id, sizeof(file->boot_id)) != 0 &&
	    unlinkat(folder->fd, name, 0) < 0)
		r = -errno;
	return r;
}

static int file_open_map(const struct folder *folder, unsigned index, void *at)
{
	struct state_file *file = at;
	int fd, r;

	for (int tries = 0; tries < 2; tries++) {
		fd = file_open(folder, index);
		if (fd < 0)
			return fd;
		r = file_map(fd, index, at);
		close(fd);
		if (r != 0)
			return r;
		if (memcmp(file->boot_id, folder->boot_id, sizeof(file->boot_id)) == 0)
			return file_is_whole(file) ? 0 : STATE_E_FOREIGN;
		r = lock_take(folder->fd);
		if (r == 0)
			r = stale_remove(folder, index, file);
		lock_drop(folder->fd);
		if (r != 0)
			return r;
	}
	return -EBUSY;
}

static bool file_in_use(const struct state_file *file)
{
	uint32_t n = state_bounded(&file->n_slots, STATE_SLOTS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		if (slot_is_live(&file->slots[i]))
			return true;
	}
	return false;
}

/* Under the folder's lock: two that configure at once would write the same half. */
static void file_configure(struct state_file *file, const struct softgpu_config *config)
{
	uint32_t n = atomic_load(&file->n_properties);
	struct state_properties wanted;

	properties_from(config, file->index, n + 1, &wanted);
	if (properties_equal(&wanted, &file->properties[n & 1]))
		return;
	if (file_in_use(file)) {
		if (config->log)
			fprintf(stderr, "softgpu: device %u is in use and stays as it is\n",
				file->index);
		return;
	}
	file->properties[(n + 1) & 1] = wanted;
	atomic_store(&file->n_properties, n + 1);
}

static int folder_open(const char *path, struct folder *folder)
{
	/* Sticky, as /tmp: all may add files, each may remove his own. */
	if (mkdir(path, 0777) == 0)
		chmod(path, 01777);
	else if (errno != EEXIST)
		return -errno;
	folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->fd < 0)
		return -errno;
	boot_id_read(folder->boot_id);
	return 0;
}

/* Room for the files in the second half, and for the keeper's nodes in the first. */
static int region_reserve(struct state *state)
{
	void *region;

	state->region_bytes = 2 * SOFTGPU_DEVICES_MAX * state_file_bytes();
	region = mmap(NULL, state->region_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		return -errno;
	state->region = region;
	for (unsigned i = 0; i < SOFTGPU_DEVICES_MAX; i++)
		state->files[i] = (struct state_file *)(state->region + state->region_bytes / 2 +
							i * state_file_bytes());
	return 0;
}

static int device_open(struct state *state, const struct folder *folder, unsigned index)
{
	int r = file_open_map(folder, index, state->files[index]);

	if (r == STATE_E_FOREIGN && folder->config->log)
		fprintf(stderr, "softgpu: %s/device-%u is no state file of this version\n",
			folder->config->dir, index);
	if (r == 0)
		pids_namespace_join(state->files[index], state->pid_namespace);
	return r;
}

/* The first file tells how many there are. */
static int devices_open(struct state *state, const struct folder *folder, bool configure)
{
	unsigned n = 1;
	int r;

	for (unsigned i = 0; i < n; i++) {
		r = device_open(state, folder, i);
		if (r != 0)
			return r;
		if (configure)
			file_configure(state->files[i], folder->config);
		if (i == 0)
			n = file_properties(state->files[0])->n_devices;
	}
	state->n_devices = n;
	return 0;
}

int files_open(struct state *state, const struct softgpu_config *config, unsigned flags)
{
	struct folder folder = { .config = config };
	bool locked = false;
	int r;

	r = folder_open(config->dir, &folder);
	if (r < 0)
		return r;
	memcpy(state->dir, config->dir, sizeof(state->dir));
	r = region_reserve(state);
	if (r == 0) {
		locked = (flags & STATE_CONFIGURE) && lock_take(folder.fd) == 0;
		r = devices_open(state, &folder, locked);
	}
	if (r == 0)
		state->pids_fd = pids_open(config->dir);
	/* Closing ends the lock. */
	close(folder.fd);
	return r;
}
