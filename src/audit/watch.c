// SPDX-License-Identifier: Apache-2.0
/*
 * The watch: every executable file that a process maps is looked at once, and probed if it is a copy of
 * libcuda or libnvidia-ml, whatever it is called.
 *
 * Mappings come as records of a perf event per CPU; those that are older than the watch are found in
 * /proc. A file that is probed already is probed in each new process by the kernel before its first
 * instruction, so only the very first user of a new copy can be ahead of the watch.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "priv.h"

#define SOON_NS	   1000000000ULL
#define AGAIN_NS   30000000000ULL
#define RING_PAGES 64
#define SEEN	   8192 /* files looked at; a power of two */
#define KNOWN	   2048 /* processes all of whose files are among them, and root's own */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

/*
 * A file, and when it was last changed: its number may be another's by now, and its owner may have written
 * over it.
 */
struct seen {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
};

/*
 * A process, and the number of its folder in /proc: a later one of the same id has another. What it maps from
 * then on is told by the rings.
 */
struct known {
	uint32_t pid;
	uint32_t ino;
};

struct watch {
	struct seen seen[SEEN];
	size_t n_seen;
	struct known known[KNOWN]; /* by their ids; as long as no file is taken out of @seen */
	uint32_t n_unsure; /* mapped files that could not be looked at, or are to be again */
	bool is_again; /* files may be mapped that were not looked at, or are not probed any more */
	bool is_crowded;     /* more have come into cgroups than could be looked at */
	uint32_t n_arrivals; /* in cgroups, that were looked at */
	uint32_t bindings;   /* when those of tenants were last looked at again, and then */
	uint64_t again_ns;
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

static bool seen_is(const struct seen *seen, const struct stat *st)
{
	return seen->ino == st->st_ino && seen->dev == st->st_dev &&
	       seen->changed.tv_sec == st->st_ctim.tv_sec &&
	       seen->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* Where a file stands in the set of those looked at, or the free place for it. */
static struct seen *seen_find(struct watch *watch, const struct stat *st)
{
	size_t at = (st->st_ino * 31 + st->st_dev) & (SEEN - 1);

	while (watch->seen[at].ino && !seen_is(&watch->seen[at], st))
		at = (at + 1) & (SEEN - 1);
	return &watch->seen[at];
}

static void seen_clear(struct watch *watch)
{
	memset(watch->seen, 0, sizeof(watch->seen));
	memset(watch->known, 0, sizeof(watch->known));
	watch->n_seen = 0;
}

/* The set is emptied before it is full: then files are looked at once more. */
static void seen_add(struct watch *watch, const struct stat *st)
{
	if (watch->n_seen > SEEN / 2)
		seen_clear(watch);
	*seen_find(watch, st) = (struct seen){ st->st_dev, st->st_ino, st->st_ctim };
	watch->n_seen++;
}

static int mapping_open(const struct mapping *m)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", m->pid, (unsigned long)m->start,
		 (unsigned long)m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Not all files of a process are known, or not for long: it is looked at again with the others. */
static void process_is_unsure(struct engine *engine, pid_t pid)
{
	struct known *known = &engine->watch->known[pid % KNOWN];

	engine->watch->n_unsure++;
	if (known->pid == (uint32_t)pid)
		*known = (struct known){};
}

/* Of other files than ours many cannot be looked at when descriptors run out, say. They come again. */
static void mapping_missed(struct engine *engine, const struct mapping *m, int r)
{
	const struct stat st = { .st_dev = m->dev, .st_ino = m->ino };

	engine->watch->is_again = true;
	process_is_unsure(engine, m->pid);
	if (strstr(m->name, "libcuda") || strstr(m->name, "libnvidia-ml"))
		builds_tell_unprobed(engine, m->name, &st, "", builds_why(r));
}

/* Whoever may write to a file that is mapped makes another one of it, and no mapping tells. */
static bool is_roots_own(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Most files are no copy of a library we know.
 *
 * Return: 0; -ENOENT if the process does not have this mapping any more.
 */
static int mapping_look(struct engine *engine, const struct mapping *m)
{
	_cleanup_close_ int fd = -1;
	struct library_use use;
	struct stat st;
	int r;

	if (!m->ino)
		return 0;
	fd = mapping_open(m);
	if (fd == -ENOENT || fd == -ESRCH) {
		process_is_unsure(engine, m->pid);
		return -ENOENT;
	}
	if (fd < 0 || fstat(fd, &st)) {
		mapping_missed(engine, m, fd < 0 ? fd : -errno);
		return 0;
	}
	if (!is_roots_own(&st))
		process_is_unsure(engine, m->pid);
	if (seen_find(engine->watch, &st)->ino)
		return 0;
	use = copies_use_by(engine, m->pid);
	r = attach_file(engine, m->name, fd, &use);
	if (r == 0 || r == -ENOEXEC) {
		seen_add(engine->watch, &st);
		return 0;
	}
	process_is_unsure(engine, m->pid);
	builds_tell_unprobed(engine, m->name, &st, "", builds_why(r));
	return 0;
}

/* --- mappings that are there already ------------------------------------------------------------------- */

typedef int (*mapping_fn)(struct engine *engine, const struct mapping *m, void *userdata);

/* Visit the executable mappings of a process until @fn returns non-zero, and return that. */
static int each_mapping(struct engine *engine, pid_t pid, mapping_fn fn, void *userdata)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[32], line[PATH_MAX + 128];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && r == 0 && fgets(line, sizeof(line), f)) {
		unsigned long start, end, ino;
		unsigned int major, minor;
		char rights[8];
		int name = 0;

		if (sscanf(line, "%lx-%lx %7s %*x %x:%x %lu %n", &start, &end, rights, &major,
			   &minor, &ino, &name) < 6 ||
		    rights[2] != 'x')
			continue;
		line[strcspn(line, "\n")] = '\0';
		r = fn(engine,
		       &(struct mapping){ pid, start, end, makedev(major, minor), ino,
					  line + name },
		       userdata);
	}
	return r;
}

int each_mapped_file(pid_t pid, ino_fn fn, void *userdata)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	unsigned long ino, last = 0;
	char path[32];
	size_t cap = 0;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && r == 0 && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%*s %*s %*s %*s %lu", &ino) != 1 || !ino || ino == last)
			continue;
		r = fn(ino, userdata);
		last = ino;
	}
	return r;
}

static int look_at(struct engine *engine, const struct mapping *m, _unused_ void *userdata)
{
	mapping_look(engine, m);
	return 0;
}

static int process_look(struct engine *engine, pid_t pid, _unused_ void *userdata)
{
	return each_mapping(engine, pid, look_at, NULL);
}

static struct known process_name_now(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return (struct known){ pid, stat(path, &st) ? 0 : st.st_ino };
}

static int tenants_process_look(struct engine *engine, pid_t pid, _unused_ void *userdata)
{
	struct known *known = &engine->watch->known[pid % KNOWN], now = process_name_now(pid);
	uint32_t n_unsure = engine->watch->n_unsure;

	if (known->pid == now.pid && known->ino == now.ino)
		return 0;
	if (!now.ino || !process_is_tenants(engine, pid))
		return 0;
	process_look(engine, pid, NULL);
	if (n_unsure == engine->watch->n_unsure)
		*known = now;
	return 0;
}

/* --- a file that somebody maps ------------------------------------------------------------------------ */

struct sought {
	dev_t dev;
	ino_t ino;
	int fd;
};

/* The file system may show another device here than the file itself tells. */
static int is_sought(_unused_ struct engine *engine, const struct mapping *m, void *userdata)
{
	struct sought *sought = userdata;
	struct stat st;
	int fd;

	if (m->ino != sought->ino)
		return 0;
	fd = mapping_open(m);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || st.st_dev != sought->dev || st.st_ino != sought->ino) {
		close(fd);
		return 0;
	}
	sought->fd = fd;
	return 1;
}

static int process_maps_sought(struct engine *engine, pid_t pid, void *userdata)
{
	return each_mapping(engine, pid, is_sought, userdata);
}

int watch_open_mapped(struct engine *engine, dev_t dev, ino_t ino)
{
	struct sought sought = { .dev = dev, .ino = ino, .fd = -ENOENT };

	each_pid(engine, process_maps_sought, &sought);
	return sought.fd;
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
	const struct mapping m = { r->pid, r->addr, r->addr + r->len, makedev(r->major, r->minor),
				   r->ino, r->name };

	/* What was mapped in one piece may be mapped in several by now. */
	if (r->header.type == PERF_RECORD_MMAP2 && mapping_look(engine, &m) == -ENOENT)
		process_look(engine, r->pid, NULL);
	else if (r->header.type == PERF_RECORD_LOST)
		each_pid(engine, process_look, NULL);
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
	seen_clear(engine->watch);
	each_pid(engine, process_look, NULL);
}

void watch_forget(struct engine *engine)
{
	if (!engine->watch)
		return;
	seen_clear(engine->watch);
	engine->watch->is_again = true;
}

/*
 * Who is put into another cgroup may be a tenant's now, with a copy that was let go because nobody of a tenant
 * had it. Of a flood of them, or of one that is just being written down, all processes are looked at soon.
 */
static void arrivals_look(struct engine *engine)
{
	const struct audit_control *control = &engine->state->control;
	struct watch *watch = engine->watch;
	uint32_t n = __atomic_load_n(&control->n_arrivals, __ATOMIC_ACQUIRE);

	watch->is_crowded |= watch->is_again && n - watch->n_arrivals > AUDIT_ARRIVALS;
	for (uint32_t at = watch->n_arrivals; watch->is_again && !watch->is_crowded && at != n;
	     at++) {
		uint64_t arrival =
			__atomic_load_n(&control->arrivals[at % AUDIT_ARRIVALS], __ATOMIC_ACQUIRE);

		if (arrival >> 32 == at + 1)
			tenants_process_look(engine, (uint32_t)arrival, NULL);
		else
			watch->is_crowded = true;
	}
	watch->n_arrivals = n;
}

/*
 * Who becomes a tenant may have mapped a copy long ago, when nobody was concerned. Soon after a binding has
 * changed or many have moved between cgroups, and now and then in case one was overlooked.
 */
static void tenants_look_again(struct engine *engine)
{
	struct watch *watch = engine->watch;
	uint32_t bindings = engine->state->control.bindings;
	bool soon = bindings != watch->bindings || watch->is_crowded;
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC);

	if (!watch->is_again || now < watch->again_ns + (soon ? SOON_NS : AGAIN_NS))
		return;
	watch->bindings = bindings;
	watch->is_crowded = false;
	watch->again_ns = now;
	each_pid(engine, tenants_process_look, NULL);
}

void watch_look(struct engine *engine)
{
	for (int i = 0; engine->watch && i < engine->watch->n_rings; i++)
		ring_drain(engine, &engine->watch->rings[i]);
}

void watch_dispatch(struct engine *engine)
{
	if (!engine->watch)
		return;
	arrivals_look(engine);
	tenants_look_again(engine);
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
	engine->watch->n_arrivals = engine->state->control.n_arrivals;
	each_pid(engine, process_look, NULL);
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
