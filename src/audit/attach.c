// SPDX-License-Identifier: Apache-2.0
/*
 * Probes on copies of libraries, as pinned links.
 *
 * One link holds the entries of all calls of a copy, one their returns (uprobe_multi; its cookie per
 * probe says which call it is). What is probed stands in the shared state too, so that the next engine
 * attaches its own programs and then drops the old links; the generation number sees to it that only one
 * of both acts meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "priv.h"

#define FLAG_UPROBE_MULTI_RETURN 1
#define UPROBE_PMU		 "/sys/bus/event_source/devices/uprobe/type"
#define UPROBE_AT_RETURN	 1 /* format/retprobe beside it */
#define SEE_THROUGH_MS		 1000

/* The kernel's argument of BPF_LINK_CREATE for it, newer than the headers we build with. */
struct uprobe_multi {
	__u32 prog_fd;
	__u32 target_fd;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 ref_ctr_offsets;
	__u64 cookies;
	__u32 cnt;
	__u32 multi_flags;
	__u32 pid;
	__u32 unused;
};

int link_uprobes(int prog_fd, const struct probes *probes)
{
	struct uprobe_multi attr = {
		.prog_fd = prog_fd,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)probes->path,
		.offsets = (uintptr_t)probes->offsets,
		.cookies = (uintptr_t)probes->cookies,
		.cnt = probes->n,
		.multi_flags = probes->at_return ? FLAG_UPROBE_MULTI_RETURN : 0,
		.pid = probes->pid,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

struct links {
	size_t n;
	int fds[];
};

static void *links_close(void *userdata)
{
	struct links *links = userdata;

	for (size_t i = 0; i < links->n; i++)
		close(links->fds[i]);
	free(links);
	return NULL;
}

void links_let_go(const int *fds, size_t n)
{
	struct links *links = malloc(sizeof(*links) + n * sizeof(*fds));
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!links)
		return;
	links->n = n;
	memcpy(links->fds, fds, n * sizeof(*fds));
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The signals of the process are for others: one that this thread took would end it as if nobody wanted it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, links_close, links);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r)
		links_close(links);
}

static int uprobe_pmu(uint32_t *ret)
{
	_cleanup_fclose_ FILE *f = fopen(UPROBE_PMU, "re");

	if (!f)
		return -errno;
	return fscanf(f, "%u", ret) == 1 ? 0 : -EINVAL;
}

/*
 * Before Linux 6.6 there is a perf event per probe. They attach as fast, but take a tenth of a second each to
 * go away. The link keeps its event, so one descriptor is enough.
 */
int link_uprobe(int prog_fd, const struct probes *probes, size_t i)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.config = probes->at_return ? UPROBE_AT_RETURN : 0,
					.config1 = (uintptr_t)probes->path,
					.config2 = probes->offsets[i] };
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = probes->cookies[i]);
	_cleanup_close_ int event = -1;
	int fd, r = uprobe_pmu(&attr.type);

	if (r < 0)
		return r;
	/* Of one process on any CPU; of all processes the event counts on one CPU, but the probe is on all. */
	event = syscall(SYS_perf_event_open, &attr, probes->pid ? probes->pid : -1,
			probes->pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	fd = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &options);
	if (fd < 0)
		return -errno;
	if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static void pin_path(const struct engine *engine, const struct engine_library *l, const char *what,
		     char *ret, size_t size)
{
	snprintf(ret, size, "%s/%s-%u-%u-%lu-%s", engine->links_dir, what, major(l->dev),
		 minor(l->dev), (unsigned long)l->ino, engine->generation_name);
}

/* A pin of the same name was left by an engine that died before its generation began. */
static int pin_link(const struct engine *engine, const struct engine_library *l, const char *what,
		    int fd)
{
	char path[PATH_MAX + 64];

	pin_path(engine, l, what, path, sizeof(path));
	unlink(path);
	return bpf_obj_pin(fd, path) ? -errno : 0;
}

/*
 * Links of single probes are kept by their pins alone: there are hundreds, and a descriptor for each would
 * be too many.
 */
static int pin_one_by_one(struct engine *engine, struct library *l, int prog_fd,
			  const struct probes *probes)
{
	char name[32];

	for (size_t i = 0; i < probes->n; i++) {
		_cleanup_close_ int fd = link_uprobe(prog_fd, probes, i);
		int r;

		if (fd < 0)
			return fd;
		snprintf(name, sizeof(name), "probe%zu", l->n_pins);
		r = pin_link(engine, &l->public, name, fd);
		if (r < 0)
			return r;
		l->n_pins++;
	}
	return 0;
}

static int pin_at_once(struct engine *engine, struct library *l, int prog_fd,
		       const struct probes *probes)
{
	int *link = probes->at_return ? &l->return_link : &l->entry_link;

	*link = link_uprobes(prog_fd, probes);
	if (*link < 0)
		return *link;
	return pin_link(engine, &l->public, probes->at_return ? "return" : "entry", *link);
}

static int library_link(struct engine *engine, struct library *l, const char *path,
			const struct library_image *image)
{
	_cleanup_free_ uint64_t *offsets = calloc(image->n_calls, sizeof(*offsets));
	_cleanup_free_ uint64_t *cookies = calloc(image->n_calls, sizeof(*cookies));
	int (*pin)(struct engine *, struct library *, int, const struct probes *) =
		engine->many_probes ? pin_at_once : pin_one_by_one;
	struct probes probes = {
		.path = path, .offsets = offsets, .cookies = cookies, .n = image->n_calls
	};
	int r;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (size_t i = 0; i < image->n_calls; i++) {
		offsets[i] = image->calls[i].offset;
		cookies[i] = ROW_COOKIE(image->calls[i].row, image->calls[i].ret_delta);
	}
	/* Returns first: a call that is counted at its entry must not be missed at its return. */
	probes.at_return = true;
	r = pin(engine, l, engine->program_fds[ENGINE_CALL_RETURN], &probes);
	probes.at_return = false;
	return r < 0 ? r : pin(engine, l, engine->program_fds[ENGINE_CALL], &probes);
}

static void library_free(struct library *l)
{
	if (!l)
		return;
	if (l->entry_link >= 0)
		close(l->entry_link);
	if (l->return_link >= 0)
		close(l->return_link);
	if (l->fd >= 0)
		close(l->fd);
	free(l->launches);
	free(l);
}
DEFINE_CLEANUP(struct library *, library_free)

/* The kernel takes its time to take probes off. */
static void library_let_go(struct library *l)
{
	int fds[] = { l->entry_link, l->return_link };

	if (l->entry_link >= 0 && l->return_link >= 0) {
		links_let_go(fds, ARRAY_SIZE(fds));
		l->entry_link = l->return_link = -1;
	}
	library_free(l);
}

/* Note in the shared state that a copy is probed; without room the watch finds it after a restart. */
static void library_record(struct engine *engine, const struct library *l)
{
	for (size_t i = 0; i < AUDIT_LIBRARIES; i++) {
		struct audit_library *at = library_at(engine, i);

		if (at->ino && (at->ino != l->public.ino || at->dev != l->public.dev))
			continue;
		at->dev = l->public.dev;
		at->ino = l->public.ino;
		at->kept = l->use.kept;
		at->outermost = l->use.outermost;
		snprintf(at->path, sizeof(at->path), "%s", l->public.path);
		return;
	}
}

static void library_unrecord(struct engine *engine, const struct library *l)
{
	for (size_t i = 0; i < AUDIT_LIBRARIES; i++)
		if (library_at(engine, i)->ino == l->public.ino &&
		    library_at(engine, i)->dev == l->public.dev)
			memset(library_at(engine, i), 0, sizeof(struct audit_library));
}

static void library_unpin(struct engine *engine, const struct library *l)
{
	char path[PATH_MAX + 64], name[32];

	pin_path(engine, &l->public, "entry", path, sizeof(path));
	unlink(path);
	pin_path(engine, &l->public, "return", path, sizeof(path));
	unlink(path);
	for (size_t i = 0; i < l->n_pins; i++) {
		snprintf(name, sizeof(name), "probe%zu", i);
		pin_path(engine, &l->public, name, path, sizeof(path));
		unlink(path);
	}
	library_unrecord(engine, l);
}

static struct library *library_new(const char *path, const struct stat *st,
				   struct library_image *image)
{
	struct library *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->entry_link = l->return_link = l->fd = -1;
	if (library_take_launches(image, &l->launches, &l->n_launches) < 0) {
		library_free(l);
		return NULL;
	}
	l->public.dev = st->st_dev;
	l->public.ino = st->st_ino;
	l->public.n_calls = image->n_calls;
	l->public.n_unknown = image->n_unknown;
	snprintf(l->public.path, sizeof(l->public.path), "%s", path);
	memcpy(l->public.build_id, image->build_id, sizeof(l->public.build_id));
	return l;
}

struct library *library_find(const struct engine *engine, dev_t dev, ino_t ino)
{
	for (struct library *l = engine->libraries; l; l = l->next)
		if (l->public.dev == dev && l->public.ino == ino)
			return l;
	return NULL;
}

static int attach_image(struct engine *engine, const char *name, int fd,
			const struct library_use *use, struct library_image *image)
{
	_cleanup_(library_freep) struct library *l = NULL;
	char path[32];
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	l = library_new(name, &st, image);
	if (!l)
		return -ENOMEM;
	l->use = *use;
	l->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	/* By descriptor: the name may lead elsewhere by now, or lie in another mount namespace. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = library_link(engine, l, path, image);
	if (r < 0) {
		library_unpin(engine, l);
		return r;
	}
	l->next = engine->libraries;
	engine->libraries = l;
	library_record(engine, l);
	events_tell(engine, AUDIT_EVENT_LIBRARY, 0, l->public.path);
	for (size_t i = 0; i < image->n_unknown; i++)
		events_tell(engine, AUDIT_EVENT_UNKNOWN_CALL, 0, image->unknown[i]);
	TAKE_PTR(l);
	return 0;
}

int attach_file(struct engine *engine, const char *name, int fd, const struct library_use *use)
{
	struct library_image image;
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (library_find(engine, st.st_dev, st.st_ino)) {
		if (!builds_is_unprobed(engine, st.st_dev, st.st_ino))
			return 0;
		engine_detach(engine, st.st_dev, st.st_ino);
	}
	r = library_read(fd, LIBRARY_EXPORTED, &image);
	if (r < 0)
		return r;
	r = builds_complete(engine, name, fd, &st, &image);
	if (r == 0 && !copies_have_room(engine, use))
		r = -EDQUOT;
	if (r == 0)
		r = attach_image(engine, name, fd, use, &image);
	library_image_done(&image);
	return r;
}

static int attach_path(struct engine *engine, const char *path, const struct library_use *use)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : attach_file(engine, path, fd, use);
}

int engine_attach(struct engine *engine, const char *path)
{
	return attach_path(engine, path, &(struct library_use){ .kept = true });
}

int engine_attach_for(struct engine *engine, const char *path, pid_t pid)
{
	struct library_use use = copies_use_by(engine, pid);

	return attach_path(engine, path, &use);
}

int engine_detach(struct engine *engine, dev_t dev, ino_t ino)
{
	for (struct library **at = &engine->libraries; *at; at = &(*at)->next) {
		struct library *l = *at;

		if (l->public.dev != dev || l->public.ino != ino)
			continue;
		*at = l->next;
		library_unpin(engine, l);
		library_let_go(l);
		return 0;
	}
	return ENGINE_E_GONE;
}

int engine_each_library(const struct engine *engine, engine_library_fn fn, void *userdata)
{
	for (struct library *l = engine->libraries; l; l = l->next) {
		int r = fn(&l->public, userdata);

		if (r)
			return r;
	}
	return 0;
}

/* The thread that closes the link closes a pipe after it, and that is what is waited for. */
void attach_see_through(struct engine *engine)
{
	int link, done[2];
	struct pollfd end;

	if (!engine->many_probes)
		return;
	link = own_link(engine->program_fds[ENGINE_CALL]);
	if (link < 0)
		return;
	if (pipe2(done, O_CLOEXEC)) {
		links_let_go(&link, 1);
		return;
	}
	links_let_go((int[]){ link, done[1] }, 2);
	end = (struct pollfd){ .fd = done[0] };
	poll(&end, 1, SEE_THROUGH_MS);
	close(done[0]);
}

void attach_forget(struct engine *engine, bool unpin)
{
	while (engine->libraries) {
		struct library *l = engine->libraries;

		engine->libraries = l->next;
		if (unpin)
			library_unpin(engine, l);
		library_free(l);
	}
}
