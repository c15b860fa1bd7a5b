// SPDX-License-Identifier: Apache-2.0
/*
 * The processes on the books of a device, with the pids that the host knows them by.
 *
 * A process in a pid namespace of its own cannot know its number outside, and whoever sees
 * it from outside cannot tell it by the number inside. The kernel can: it tells the holder
 * of a record lock by its number in the asking process's namespace. So each process locks
 * a byte of the file "pids" for as long as it lives, and a process of the first namespace
 * that lists processes asks for those it does not know and enters what it learns into
 * their slots, where those inside a namespace find it too.
 */
#include "softgpu/state/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMESPACE_INIT 0xeffffffcu /* inode number of the kernel's first pid namespace */

uint64_t pid_namespace_own(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : st.st_ino;
}

/*
 * The descriptor stays open for the life of the process: closing any one of the file would
 * drop the locks that the whole process has on it, those of another library's too.
 */
int pids_open(const char *dir)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char path[sizeof(((struct softgpu_config *)0)->dir) + 8];
	static int fd = -1;
	char wanted[sizeof(path)];

	snprintf(wanted, sizeof(wanted), "%s/pids", dir);
	pthread_mutex_lock(&lock);
	if (fd < 0 || strcmp(path, wanted) != 0) {
		fd = open(wanted, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			fd = open(wanted, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd >= 0)
			fchmod(fd, 0666);
		strcpy(path, wanted);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

/* The first namespace is the kernel's if anybody of it ever comes, else the first comer's. */
void pids_namespace_join(struct state_file *file, uint64_t own)
{
	uint64_t first = 0;

	if (atomic_compare_exchange_strong(&file->pid_namespace, &first, own))
		return;
	if (own != NAMESPACE_INIT || first == NAMESPACE_INIT)
		return;
	atomic_store(&file->pid_namespace, NAMESPACE_INIT);
	for (unsigned i = 0; i < STATE_SLOTS_MAX; i++)
		atomic_store(&file->slots[i].host_pid, 0);
}

static struct flock pid_lock(const struct state_file *file, const struct state_slot *slot)
{
	return (struct flock){
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)file->index * STATE_SLOTS_MAX + (slot - file->slots),
		.l_len = 1,
	};
}

static uint64_t host_pid_word(uint64_t birth, uint32_t pid)
{
	return birth << 32 | pid;
}

void pids_enter(struct state *state, unsigned dev, struct state_slot *slot)
{
	struct state_file *file = state->files[dev];
	struct flock lock = pid_lock(file, slot);

	if (state->pids_fd >= 0)
		fcntl(state->pids_fd, F_SETLK, &lock);
	if (atomic_load(&file->pid_namespace) == state->pid_namespace)
		atomic_store(&slot->host_pid,
			     host_pid_word(atomic_load(&slot->birth), (uint32_t)getpid()));
}

/* Asks the kernel; 0 if it does not tell. */
static uint32_t pid_ask(const struct state *state, const struct state_file *file,
			const struct state_slot *slot)
{
	struct flock lock = pid_lock(file, slot);

	if (atomic_load(&file->pid_namespace) != state->pid_namespace || state->pids_fd < 0)
		return 0;
	if (fcntl(state->pids_fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK || lock.l_pid <= 0)
		return 0;
	return (uint32_t)lock.l_pid;
}

static pid_t slot_pid(const struct state *state, const struct state_file *file,
		      struct state_slot *slot, uint64_t birth)
{
	uint64_t known = atomic_load(&slot->host_pid);
	uint32_t pid;

	if (known >> 32 == (birth & 0xffffffff))
		return (pid_t)(uint32_t)known;
	pid = pid_ask(state, file, slot);
	if (!pid)
		return (pid_t)atomic_load(&slot->local_pid);
	atomic_compare_exchange_strong(&slot->host_pid, &known, host_pid_word(birth, pid));
	return (pid_t)pid;
}

/* Device time of a process: that of its contexts, and of those that it no longer has. */
static uint64_t slot_busy(const struct state_file *file, const struct state_slot *slot,
			  uint64_t birth)
{
	uint32_t n = state_bounded(&file->n_clients, STATE_CLIENTS_MAX);
	uint64_t busy = atomic_load(&slot->busy_past_ns);
	const struct state_client *client;

	for (uint32_t i = 0; i < n; i++) {
		client = &file->clients[i];
		if (atomic_load(&client->owner) == birth && atomic_load(&client->filled) == birth)
			busy += pair_load(&client->served).b - atomic_load(&client->first);
	}
	return busy;
}

static bool process_read(const struct state *state, struct state_file *file,
			 struct state_slot *slot, struct state_process *ret)
{
	uint64_t birth = atomic_load(&slot->birth);
	int32_t n_contexts = atomic_load(&slot->n_contexts);

	if (!slot_is_live(slot) || birth == 0)
		return false;
	ret->pid = slot_pid(state, file, slot, birth);
	ret->used_bytes = pair_load(&slot->used).b;
	ret->busy_ns = slot_busy(file, slot, birth);
	ret->n_contexts = n_contexts > 0 ? (unsigned)n_contexts : 0;
	slot_sample(file, slot, ret);
	return atomic_load(&slot->birth) == birth;
}

/* With a context, or memory that outlived it: a pool's. */
static bool slot_computes(const struct state_slot *slot)
{
	return atomic_load(&slot->n_contexts) > 0 ||
	       __atomic_load_n(&slot->used.b, __ATOMIC_SEQ_CST) > 0;
}

static size_t processes_read(struct state *state, unsigned dev, bool computing,
			     struct state_process *ret, size_t n_max)
{
	struct state_file *file = state->files[dev];
	uint32_t n_slots = state_bounded(&file->n_slots, STATE_SLOTS_MAX);
	struct state_process process;
	size_t n = 0;

	for (uint32_t i = 0; i < n_slots; i++) {
		/* All are on the books of all devices, and compute on one: a look passes the others. */
		if (computing && !slot_computes(&file->slots[i]))
			continue;
		if (!process_read(state, file, &file->slots[i], &process))
			continue;
		if (computing && process.n_contexts == 0 && process.used_bytes == 0)
			continue;
		if (n < n_max)
			ret[n] = process;
		n++;
	}
	return n;
}

size_t state_processes(struct state *state, unsigned dev, struct state_process *ret, size_t n_max)
{
	return processes_read(state, dev, /* computing= */ false, ret, n_max);
}

size_t state_computing(struct state *state, unsigned dev, struct state_process *ret, size_t n_max)
{
	return processes_read(state, dev, /* computing= */ true, ret, n_max);
}

void state_context_add(struct state *state, unsigned dev, int n)
{
	if (!state_is_forked(state))
		atomic_fetch_add(&state->slots[dev]->n_contexts, n);
}
