// SPDX-License-Identifier: Apache-2.0
/*
 * Events that processes share: a page of memory with the numbers of their points.
 *
 * The handle that a program passes on is a ticket for the page (share.h), so nothing is left over
 * when the process that made it is gone. A recorder that dies before its work is done would leave
 * waiters behind; they look now and then whether it still lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "softgpu/cuda/stream/event-point.h"
#include "softgpu/mem/share.h"
#include "softgpu/util/futex.h"

#define HANDLE_MAGIC 0x53474556u /* "SGEV" */

/* What a CUipcEventHandle holds. */
struct ipc_event {
	uint32_t magic;
	struct share_ticket ticket;
};

_Static_assert(sizeof(struct ipc_event) <= sizeof(CUipcEventHandle), "handle");

/* Takes @fd over. */
static CUresult shared_map(int fd, struct event_shared **ret)
{
	struct event_shared *shared;
	struct stat st;
	void *at;

	/* A shorter file would be a bus error later. */
	if (fstat(fd, &st) < 0 || st.st_size != sizeof(struct event_shared_words)) {
		close(fd);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	shared = calloc(1, sizeof(*shared));
	at = mmap(NULL, sizeof(struct event_shared_words), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  0);
	if (!shared || at == MAP_FAILED) {
		if (at != MAP_FAILED)
			munmap(at, sizeof(struct event_shared_words));
		free(shared);
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	shared->n_references = 1;
	shared->fd = fd;
	shared->words = at;
	*ret = shared;
	return CUDA_SUCCESS;
}

CUresult event_shared_new(struct event_shared **ret)
{
	int fd = memfd_create("softgpu-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (ftruncate(fd, sizeof(struct event_shared_words)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return shared_map(fd, ret);
}

void event_shared_unref(struct event_shared *shared)
{
	if (!shared || atomic_fetch_sub(&shared->n_references, 1) > 1)
		return;
	munmap(shared->words, sizeof(*shared->words));
	close(shared->fd);
	free(shared);
}

void event_shared_reach(struct event_point *point, uint64_t time_ns)
{
	struct event_shared_words *words = point->shared->words;
	uint64_t reached = atomic_load(&words->reached);

	while (reached < point->number)
		if (atomic_compare_exchange_weak(&words->reached, &reached, point->number))
			break;
	atomic_store(&words->time_ns, time_ns);
	atomic_fetch_add(&words->changes, 1);
	futex_wake_all(&words->changes);
}

bool event_shared_is_reached(const struct event_point *point)
{
	return atomic_load(&point->shared->words->reached) >= point->number;
}

/*
 * Whether the process that recorded last has died. Each that shares the event has a lock on its
 * file, which also tells of one that is dead but not reaped.
 */
static bool recorder_is_gone(const struct event_shared *shared)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t recorder = atomic_load(&shared->words->recorder);

	if (recorder == getpid())
		return false;
	if (kill(recorder, 0) < 0 && errno == ESRCH)
		return true;
	return fcntl(shared->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void event_shared_wait(struct event_point *point)
{
	const struct timespec look_up = { .tv_nsec = 20000000 };
	struct event_shared_words *words = point->shared->words;
	uint32_t changes = atomic_load(&words->changes);

	if (event_shared_is_reached(point))
		return;
	futex_wait(&words->changes, changes, &look_up);
	if (!event_shared_is_reached(point) && recorder_is_gone(point->shared))
		event_shared_reach(point, 0);
}

CALL(cuIpcGetEventHandle, CUipcEventHandle *ret, CUevent handle)
{
	struct ipc_event ipc = { .magic = HANDLE_MAGIC };
	struct event *event;
	CUresult r = event_find(handle, &event);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!event->shared)
		return CUDA_ERROR_INVALID_HANDLE;
	if (share_export(event->shared->fd, 0, sizeof(struct event_shared_words), 0, &ipc.ticket) <
	    0)
		return CUDA_ERROR_MAP_FAILED;
	*ret = (CUipcEventHandle){ 0 };
	memcpy(ret, &ipc, sizeof(ipc));
	return CUDA_SUCCESS;
}

CALL(cuIpcOpenEventHandle, CUevent *ret, CUipcEventHandle handle)
{
	struct share_import import;
	struct event_shared *shared;
	struct ipc_event ipc;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(&ipc, &handle, sizeof(ipc));
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	/* The ticket is another process's word: only what it leads to is believed. */
	if (ipc.magic != HANDLE_MAGIC || ipc.ticket.offset != 0 ||
	    ipc.ticket.size != sizeof(struct event_shared_words))
		return CUDA_ERROR_INVALID_HANDLE;
	if (share_import(&ipc.ticket, &import) != 0)
		return CUDA_ERROR_MAP_FAILED;
	r = shared_map(import.fd, &shared);
	if (r != CUDA_SUCCESS)
		return r;
	return event_new(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared, ret);
}
