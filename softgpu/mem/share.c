// SPDX-License-Identifier: Apache-2.0
/* Memory that two processes use. share.h says how they agree. */
#include "softgpu/mem/share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often to look whether kept memory is still open elsewhere. Far below the 100 ms promised. */
#define KEPT_LOOK_USEC 20000

/* Memory that was freed here while another process has it open. */
struct kept {
	int fd;
	uint64_t offset, size;
	void (*done)(void *arg);
	void *arg;
	struct kept *next;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;	/* guards the next two */
static struct kept *kept_list;
static bool kept_has_thread;

static int lock_set(int fd, short type, uint64_t offset, uint64_t size)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = offset,
		.l_len = size,
	};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

/* Does an open file other than @fd have a lock there? */
static bool lock_of_others(int fd, uint64_t offset, uint64_t size)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = offset,
		.l_len = size,
	};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int share_export(int fd, uint64_t offset, uint64_t size, uint64_t serial,
		 struct share_ticket *ret)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;

	r = lock_set(fd, F_RDLCK, offset, size);
	if (r < 0)
		return r;

	*ret = (struct share_ticket){
		.pid = getpid(),
		.fd = fd,
		.inode = st.st_ino,
		.offset = offset,
		.size = size,
		.serial = serial,
	};
	return 0;
}

bool share_unexport(int fd, uint64_t offset, uint64_t size)
{
	(void)lock_set(fd, F_UNLCK, offset, size);
	return lock_of_others(fd, offset, size);
}

/* Takes what nobody has open any more out of the list. */
static struct kept *kept_take_closed(void)
{
	struct kept *closed = NULL, *kept, **at = &kept_list;

	while ((kept = *at)) {
		if (lock_of_others(kept->fd, kept->offset, kept->size)) {
			at = &kept->next;
			continue;
		}
		*at = kept->next;
		kept->next = closed;
		closed = kept;
	}

	return closed;
}

static void *kept_watch(void *arg)
{
	struct kept *closed, *kept;
	bool more = true;

	while (more) {
		usleep(KEPT_LOOK_USEC);

		pthread_mutex_lock(&kept_lock);
		closed = kept_take_closed();
		more = kept_list;
		kept_has_thread = more;
		pthread_mutex_unlock(&kept_lock);

		while ((kept = closed)) {
			closed = kept->next;
			kept->done(kept->arg);
			free(kept);
		}
	}

	return NULL;
}

/* Without a thread now, the next one that is kept tries again. */
static bool kept_start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	bool started;

	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setsigmask_np(&attr, &all);
	started = pthread_create(&thread, &attr, kept_watch, NULL) == 0;
	pthread_attr_destroy(&attr);

	return started;
}

void share_keep(int fd, uint64_t offset, uint64_t size, void (*done)(void *arg), void *arg)
{
	struct kept *kept = malloc(sizeof(*kept));

	/* Then it is kept for ever; to give it away under somebody's hands would be worse. */
	if (!kept)
		return;

	*kept = (struct kept){ fd, offset, size, done, arg };
	pthread_mutex_lock(&kept_lock);
	kept->next = kept_list;
	kept_list = kept;
	if (!kept_has_thread)
		kept_has_thread = kept_start_thread();
	pthread_mutex_unlock(&kept_lock);
}

/*
 * Opens a file that some process has open: a new description, so with locks of its own. Then locks
 * the part and makes sure that somebody else has: the exporter, or one who opened it in time.
 */
static int open_and_lock(const char *path, const struct share_ticket *ticket, int *ret)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), r;
	struct stat st;
	uint64_t end;

	if (fd < 0)
		return errno == ENOENT ? SHARE_E_GONE : -errno;

	if (fstat(fd, &st) < 0 || st.st_ino != ticket->inode ||
	    __builtin_add_overflow(ticket->offset, ticket->size, &end) ||
	    end > (uint64_t)st.st_size) {
		r = SHARE_E_GONE;
		goto out;
	}

	r = lock_set(fd, F_RDLCK, ticket->offset, ticket->size);
	if (r < 0)
		goto out;

	if (!lock_of_others(fd, ticket->offset, ticket->size)) {
		r = SHARE_E_GONE;
		goto out;
	}

	*ret = fd;
	return 0;
out:
	close(fd);
	return r;
}

int share_import(const struct share_ticket *ticket, struct share_import *ret)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	r = open_and_lock(path, ticket, &ret->fd);
	if (r)
		return r;

	ret->offset = ticket->offset;
	ret->size = ticket->size;
	return 0;
}

int share_import_through(int fd, const struct share_ticket *ticket, struct share_import *ret)
{
	struct share_ticket here = *ticket;

	here.pid = getpid();
	here.fd = fd;
	return share_import(&here, ret);
}

int share_ticket_whole(int fd, struct share_ticket *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;

	*ret = (struct share_ticket){
		.pid = getpid(),
		.fd = fd,
		.inode = st.st_ino,
		.size = st.st_size,
	};
	return 0;
}

void share_close(struct share_import *import)
{
	/* The lock goes with the description. */
	close(import->fd);
}
