/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/jit/cache.h"
#include "softgpu/util/whole.h"

#define FILE_MAX_BYTES (64u << 20)
#define NAME_BYTES     48
#define SUFFIX	       ".jit"

/* What a file begins with; the request and the reply follow. */
struct cache_head {
	uint32_t magic, version;
	uint64_t compiler;
	uint32_t request_size, reply_size;
};

/* ---- the folder ---------------------------------------------------------------------------------- */

/* Nobody else may have written there. */
static bool is_own(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The folder of all caches is the user's business; a link there is none of ours. */
static int open_parent(void)
{
	const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[4096];
	int n;

	if (given && *given == '/')
		n = snprintf(path, sizeof(path), "%s", given);
	else if (home && *home == '/')
		n = snprintf(path, sizeof(path), "%s/.cache", home);
	else
		return -1;
	if (n < 0 || (size_t)n >= sizeof(path))
		return -1;
	mkdir(path, 0700);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_folder(void)
{
	int parent = open_parent(), fd = -1;

	if (parent < 0)
		return -1;
	/* Not as somebody else than the one whose environment this is. */
	if (getuid() == geteuid() && is_own(parent, S_IFDIR)) {
		mkdirat(parent, "softgpu", 0700);
		fd = openat(parent, "softgpu", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	close(parent);
	if (fd >= 0 && !is_own(fd, S_IFDIR)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void name_of(const struct jit_request *request, uint64_t compiler, char ret[NAME_BYTES])
{
	uint64_t hash = jit_hash(JIT_HASH_START, &compiler, sizeof(compiler));

	snprintf(ret, NAME_BYTES, "%016" PRIx64 SUFFIX, jit_hash(hash, request, request->size));
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Is the file's request this one? It is compared piece by piece. */
static bool same_request(int fd, const struct jit_request *request)
{
	const uint8_t *at = (const uint8_t *)request;
	uint8_t piece[4096];

	for (size_t left = request->size; left;) {
		size_t n = left < sizeof(piece) ? left : sizeof(piece);

		if (!whole_read(fd, piece, n) || memcmp(piece, at, n) != 0)
			return false;
		at += n;
		left -= n;
	}
	return true;
}

static struct jit_reply *read_entry(int fd, const struct jit_request *request, uint64_t compiler)
{
	struct cache_head head;
	struct jit_reply *reply;

	if (!is_own(fd, S_IFREG) || !whole_read(fd, &head, sizeof(head)) ||
	    head.magic != JIT_MAGIC || head.version != JIT_VERSION || head.compiler != compiler ||
	    head.request_size != request->size || head.reply_size < sizeof(*reply) ||
	    head.reply_size > FILE_MAX_BYTES || !same_request(fd, request))
		return NULL;
	reply = malloc(head.reply_size);
	if (reply && whole_read(fd, reply, head.reply_size) && reply->size == head.reply_size)
		return reply;
	free(reply);
	return NULL;
}

struct jit_reply *jit_cache_get(const struct jit_request *request, uint64_t compiler)
{
	struct jit_reply *reply = NULL;
	char name[NAME_BYTES];
	int folder = open_folder(), fd;

	if (folder < 0)
		return NULL;
	name_of(request, compiler, name);
	/* A pipe or a device would make open() wait. */
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		reply = read_entry(fd, request, compiler);
		/* The time of the last use, for who makes room. */
		if (reply)
			futimens(fd, NULL);
		close(fd);
	}
	close(folder);
	return reply;
}

/* ---- making room --------------------------------------------------------------------------------- */

struct old_file {
	char name[NAME_BYTES];
	struct timespec used;
	uint64_t size;
};

static int by_use(const void *a, const void *b)
{
	const struct old_file *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

/* Files of the folder that are ours by name; the caller frees them. */
static struct old_file *list_files(DIR *dir, size_t *ret_n, uint64_t *ret_bytes)
{
	struct old_file *files = NULL;
	size_t n = 0, room = 0;
	struct dirent *entry;
	struct stat st;

	*ret_bytes = 0;
	while ((entry = readdir(dir))) {
		if (strlen(entry->d_name) >= NAME_BYTES || !strstr(entry->d_name, SUFFIX) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (n == room) {
			struct old_file *more = realloc(files, (room + 256) * sizeof(*files));

			if (!more)
				break;
			files = more;
			room += 256;
		}
		strcpy(files[n].name, entry->d_name);
		files[n].used = st.st_mtim;
		files[n++].size = (uint64_t)st.st_size;
		*ret_bytes += (uint64_t)st.st_size;
	}
	*ret_n = n;
	return files;
}

/* A quarter at a time, so that it is not done for every file. */
static void make_room(int folder, uint64_t size)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct old_file *files;
	uint64_t bytes;
	size_t n;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return;
	}
	files = list_files(dir, &n, &bytes);
	if (bytes + size > JIT_CACHE_MAX_BYTES) {
		qsort(files, n, sizeof(*files), by_use);
		for (size_t i = 0; i < n && bytes + size > JIT_CACHE_MAX_BYTES / 4 * 3; i++) {
			if (unlinkat(folder, files[i].name, 0) == 0)
				bytes -= files[i].size;
		}
	}
	free(files);
	closedir(dir);
}

/* ---- writing ------------------------------------------------------------------------------------- */

/* Under another name first: whoever reads meanwhile, or is left behind by a kill, sees all or nothing. */
static void write_entry(int folder, const char *name, const struct jit_request *request,
			uint64_t compiler, const struct jit_reply *reply)
{
	struct cache_head head = {
		.magic = JIT_MAGIC,
		.version = JIT_VERSION,
		.compiler = compiler,
		.request_size = request->size,
		.reply_size = reply->size,
	};
	char temporary[NAME_BYTES + 16];
	bool ok;
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
	unlinkat(folder, temporary, 0);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	ok = whole_write(fd, &head, sizeof(head)) && whole_write(fd, request, request->size) &&
	     whole_write(fd, reply, reply->size);
	ok = close(fd) == 0 && ok;
	if (!ok || renameat(folder, temporary, folder, name) < 0)
		unlinkat(folder, temporary, 0);
}

void jit_cache_put(const struct jit_request *request, uint64_t compiler,
		   const struct jit_reply *reply)
{
	uint64_t size = sizeof(struct cache_head) + (uint64_t)request->size + reply->size;
	int folder = open_folder();
	char name[NAME_BYTES];

	if (folder < 0)
		return;
	if (size <= FILE_MAX_BYTES) {
		name_of(request, compiler, name);
		make_room(folder, size);
		write_entry(folder, name, request, compiler, reply);
	}
	close(folder);
}
