// SPDX-License-Identifier: Apache-2.0
/*
 * The watch: every executable file that a process maps is looked at once, and probed if it is a copy of
 * libcuda or libnvidia-ml, whatever it is called.
 *
 * Mappings come as records of a perf event per CPU; those that are older than the watch are found in
 * /proc. A file that is probed already is probed in each new process by the kernel before its first
 * instruction, so only the very first user of a new copy can be ahead of the watch.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "priv.h"

#define RING_PAGES 64
#define SEEN	   8192 /* files looked at; a power of two */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct seen {
	dev_t dev;
	ino_t ino;
};

struct watch {
	struct seen seen[SEEN];
	size_t n_seen;
	int n_rings;
	struct ring rings[];
};

struct mapping {
	pid_t pid;
	uint64_t start;
	uint64_t end;
	dev_t dev;
	ino_t ino;
	const char *name;
};

/* Where a file stands in the set of those looked at, or the free place for it. */
static struct seen *seen_find(struct watch *watch, dev_t dev, ino_t ino)
{
	size_t at = (ino * 31 + dev) & (SEEN - 1);

	for (; watch->seen[at].ino; at = (at + 1) & (SEEN - 1))
		if (watch->seen[at].ino == ino && watch->seen[at].dev == dev)
			break;
	return &watch->seen[at];
}

/* The set is emptied before it is full: then files are looked at once more. */
static void seen_add(struct watch *watch, dev_t dev, ino_t ino)
{
	if (watch->n_seen > SEEN / 2) {
		memset(watch->seen, 0, sizeof(watch->seen));
		watch->n_seen = 0;
	}
	*seen_find(watch, dev, ino) = (struct seen){ dev, ino };
	watch->n_seen++;
}

/* Most files are no copy of a library we know. A process that is gone by now leaves its file unseen. */
static void mapping_look(struct engine *engine, const struct mapping *m)
{
	_cleanup_close_ int fd = -1;
	char path[96];

	if (!m->ino || seen_find(engine->watch, m->dev, m->ino)->ino)
		return;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", m->pid, (unsigned long)m->start,
		 (unsigned long)m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	seen_add(engine->watch, m->dev, m->ino);
	attach_file(engine, m->name, fd);
}

/* --- mappings that are there already ------------------------------------------------------------------- */

static void process_look(struct engine *engine, pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[32], line[PATH_MAX + 128];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end, ino;
		unsigned int major, minor;
		char rights[8];
		int name = 0;

		if (sscanf(line, "%lx-%lx %7s %*x %x:%x %lu %n", &start, &end, rights, &major,
			   &minor, &ino, &name) < 6 ||
		    rights[2] != 'x')
			continue;
		line[strcspn(line, "\n")] = '\0';
		mapping_look(engine, &(struct mapping){ pid, start, end, makedev(major, minor), ino,
							line + name });
	}
}

static void processes_look(struct engine *engine)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			process_look(engine, pid);
	}
}

/* --- mappings that come -------------------------------------------------------------------------------- */

struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char name[PATH_MAX];
};

static void record_look(struct engine *engine, const struct mmap_record *r)
{
	if (r->header.type == PERF_RECORD_MMAP2)
		mapping_look(engine,
			     &(struct mapping){ r->pid, r->addr, r->addr + r->len,
						makedev(r->major, r->minor), r->ino, r->name });
	else if (r->header.type == PERF_RECORD_LOST)
		processes_look(engine);
}

static void ring_copy(const struct ring *ring, uint64_t at, void *to, size_t n)
{
	const char *data = (const char *)ring->page + ring->page->data_offset;

	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = data[(at + i) & (ring->page->data_size - 1)];
}

static void ring_drain(struct engine *engine, const struct ring *ring)
{
	uint64_t tail = ring->page->data_tail;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	while (tail < head) {
		struct mmap_record r = {};

		ring_copy(ring, tail, &r.header, sizeof(r.header));
		if (r.header.size < sizeof(r.header) || r.header.size > sizeof(r))
			break;
		ring_copy(ring, tail, &r, r.header.size);
		r.name[sizeof(r.name) - 1] = '\0';
		record_look(engine, &r);
		tail += r.header.size;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static int ring_open(struct engine *engine, struct ring *ring, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	struct epoll_event event = { .events = EPOLLIN };

	ring->fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return -errno;
	ring->page = mmap(NULL, (RING_PAGES + 1) * getpagesize(), PROT_READ | PROT_WRITE,
			  MAP_SHARED, ring->fd, 0);
	if (ring->page == MAP_FAILED) {
		ring->page = NULL;
		return -errno;
	}
	event.data.fd = ring->fd;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event) ? -errno : 0;
}

void watch_again(struct engine *engine)
{
	if (!engine->watch)
		return;
	memset(engine->watch->seen, 0, sizeof(engine->watch->seen));
	engine->watch->n_seen = 0;
	processes_look(engine);
}

int watch_dispatch(struct engine *engine)
{
	for (int i = 0; engine->watch && i < engine->watch->n_rings; i++)
		ring_drain(engine, &engine->watch->rings[i]);
	return 0;
}

void watch_stop(struct engine *engine)
{
	if (!engine->watch)
		return;
	for (int i = 0; i < engine->watch->n_rings; i++) {
		struct ring *ring = &engine->watch->rings[i];

		if (ring->page)
			munmap(ring->page, (RING_PAGES + 1) * getpagesize());
		if (ring->fd >= 0)
			close(ring->fd);
	}
	free(engine->watch);
	engine->watch = NULL;
}

static int watch_start(struct engine *engine)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	engine->watch = calloc(1, sizeof(*engine->watch) + n * sizeof(struct ring));
	if (!engine->watch)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		int r = ring_open(engine, &engine->watch->rings[i], i);

		engine->watch->n_rings = i + 1;
		/* A CPU that is not online maps nothing. */
		if (r < 0 && r != -ENODEV)
			return r;
	}
	processes_look(engine);
	return 0;
}

int engine_watch(struct engine *engine, bool on)
{
	int r;

	if (on == (engine->watch != NULL))
		return 0;
	if (!on) {
		watch_stop(engine);
		attach_forget(engine, /* unpin= */ true);
		return 0;
	}
	r = watch_start(engine);
	if (r < 0)
		watch_stop(engine);
	return r;
}
