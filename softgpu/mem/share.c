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

/* How often to look who has what open or locked. Far below the 100 ms promised. */
#define LOOK_USEC 20000
/* And whether an exporter has ended: until somebody else pays the device seems to have its memory back. */
#define HEIR_LOOK_USEC 2000

/* Locks of payers are so far behind the bytes that they are about, beyond any file's end. */
#define SHARE_PAYER (1ULL << 61)

/* What is charged. */
#define BLOCK_SIZE (2ULL << 20)

/* Memory that was freed here while another process has it open. */
struct kept {
	int fd;
	uint64_t offset, size;
	void (*done)(void *arg);
	void *arg;
	struct kept *next;
};

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next three */
static struct kept *kept_list;
static struct share_import *heirs;
static bool has_watch;

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

int share_export(int fd, uint64_t offset, uint64_t size, uint64_t serial, struct share_ticket *ret)
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

/* The whole blocks that an import is charged for. */
static void import_blocks(const struct share_import *import, uint64_t *ret_start,
			  uint64_t *ret_size)
{
	uint64_t end = import->offset + import->size;

	*ret_start = import->offset & ~(BLOCK_SIZE - 1);
	*ret_size = ((end + BLOCK_SIZE - 1) & ~(BLOCK_SIZE - 1)) - *ret_start;
}

/* Makes @import the payer, if nobody is and it can be charged. */
static void heir_try(struct share_import *import)
{
	uint64_t start, size;

	import_blocks(import, &start, &size);
	if (import->is_payer || lock_set(import->fd, F_WRLCK, SHARE_PAYER + start, size) < 0)
		return;

	/* First: whoever sees the charge finds whose it is. */
	import->is_payer = true;
	if (import->charge.take(import->charge.arg, size) == 0)
		return;
	import->is_payer = false;
	(void)lock_set(import->fd, F_UNLCK, SHARE_PAYER + start, size);
}

/* Return: after how many microseconds to look again, 0 when there is nothing to look after. */
static unsigned watch_once(struct kept **ret_closed)
{
	struct share_import *heir;
	unsigned again;

	pthread_mutex_lock(&watch_lock);
	*ret_closed = kept_take_closed();
	for (heir = heirs; heir; heir = heir->next)
		heir_try(heir);
	again = heirs ? HEIR_LOOK_USEC : kept_list ? LOOK_USEC : 0;
	has_watch = again != 0;
	pthread_mutex_unlock(&watch_lock);

	return again;
}

static void *watch(_unused_ void *arg)
{
	struct kept *closed, *kept;
	unsigned again = HEIR_LOOK_USEC;

	do {
		usleep(again);
		again = watch_once(&closed);
		while ((kept = closed)) {
			closed = kept->next;
			kept->done(kept->arg);
			free(kept);
		}
	} while (again);

	return NULL;
}

/* With the lock. Without a thread now, whoever needs one next tries again. */
static void watch_start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;

	if (has_watch)
		return;

	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setsigmask_np(&attr, &all);
	has_watch = pthread_create(&thread, &attr, watch, NULL) == 0;
	pthread_attr_destroy(&attr);
}

void share_keep(int fd, uint64_t offset, uint64_t size, void (*done)(void *arg), void *arg)
{
	struct kept *kept = malloc(sizeof(*kept));

	/* Then it is kept for ever; to give it away under somebody's hands would be worse. */
	if (!kept)
		return;

	*kept = (struct kept){ .fd = fd, .offset = offset, .size = size, .done = done, .arg = arg };
	pthread_mutex_lock(&watch_lock);
	kept->next = kept_list;
	kept_list = kept;
	watch_start();
	pthread_mutex_unlock(&watch_lock);
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
	int fd = -1, r;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ticket->pid, ticket->fd);
	r = open_and_lock(path, ticket, &fd);
	if (r)
		return r;

	*ret = (struct share_import){ .fd = fd, .offset = ticket->offset, .size = ticket->size };
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

int share_own(int fd, int *ret_owner)
{
	char path[64];
	int owner, r;

	/* A description of its own: nobody gets it who gets the file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	owner = open(path, O_RDWR | O_CLOEXEC);
	if (owner < 0)
		return -errno;

	r = lock_set(owner, F_WRLCK, SHARE_PAYER, SHARE_PAYER);
	if (r < 0) {
		close(owner);
		return r;
	}

	*ret_owner = owner;
	return 0;
}

void share_inherit(struct share_import *import, const struct share_charge *charge)
{
	import->charge = *charge;
	import->is_heir = true;

	pthread_mutex_lock(&watch_lock);
	import->next = heirs;
	heirs = import;
	watch_start();
	pthread_mutex_unlock(&watch_lock);
}

static void heir_remove(struct share_import *import)
{
	struct share_import **at;
	uint64_t start, size;

	pthread_mutex_lock(&watch_lock);
	for (at = &heirs; *at != import; at = &(*at)->next)
		;
	*at = import->next;
	pthread_mutex_unlock(&watch_lock);

	import_blocks(import, &start, &size);
	if (import->is_payer)
		import->charge.give(import->charge.arg, size);
}

void share_close(struct share_import *import)
{
	if (import->is_heir)
		heir_remove(import);

	/* The locks go with the description. */
	close(import->fd);
}
