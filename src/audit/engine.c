// SPDX-License-Identifier: Apache-2.0
/*
 * Loading the programs and taking over what is pinned.
 *
 * Successive engines share the maps below STATE/maps. Each loads programs of its own under the next
 * generation number, attaches them everywhere, switches the number, and only then drops the links of
 * the one before. The number sees to it that exactly one of both acts on each hit of a probe.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "priv.h"
#include "audit.skel.h"

#define FAILURE_WAIT_NS 10000000000ULL
#define GENERATION_NONE 0
#define TREES_MAX	(1 << 22) /* the kernel's own limit of process ids */

const char *engine_rung_name(enum engine_rung rung)
{
	static const char *const names[] = { "auto", "registers", "supervised" };

	return names[rung];
}

enum engine_rung engine_rung_now(const struct engine *engine)
{
	return engine->rung;
}

/* --- the state folder ------------------------------------------------------------------------------ */

static bool is_on_bpf_fs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

static int make_dir(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int state_dir_open(struct engine *engine, const char *path)
{
	char maps[PATH_MAX + 8];
	int r;

	if (snprintf(engine->state_dir, sizeof(engine->state_dir), "%s", path) >=
	    (int)sizeof(engine->state_dir))
		return -ENAMETOOLONG;
	r = fd_mkdir_parents(path, 0700);
	if (r < 0)
		return r;
	if (!is_on_bpf_fs(path) &&
	    mount("bpf", path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return -errno;
	engine->lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (engine->lock_fd < 0)
		return -errno;
	if (flock(engine->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	snprintf(maps, sizeof(maps), "%s/maps", path);
	snprintf(engine->links_dir, sizeof(engine->links_dir), "%s/links", path);
	r = make_dir(maps);
	return r < 0 ? r : make_dir(engine->links_dir);
}

/* Generation of the engine before, 0 if there was none. */
static int generation_read(const struct engine *engine, uint32_t *ret)
{
	_cleanup_close_ int fd = -1;
	const struct audit_control *control;
	char path[PATH_MAX + 16];

	*ret = 0;
	snprintf(path, sizeof(path), "%s/maps/state", engine->state_dir);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	control = mmap(NULL, sizeof(*control), PROT_READ, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		return -errno;
	*ret = control->generation;
	if (control->layout != AUDIT_LAYOUT && control->layout != 0)
		*ret = UINT32_MAX;
	munmap((void *)control, sizeof(*control));
	return *ret == UINT32_MAX ? -EPROTO : 0;
}

/* Remove pinned links of this generation, or of all others. */
static void links_drop(struct engine *engine, bool ours)
{
	_cleanup_closedir_ DIR *dir = opendir(engine->links_dir);
	size_t suffix = strlen(engine->generation_name);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);
		bool is_ours = n > suffix &&
			       strcmp(entry->d_name + n - suffix, engine->generation_name) == 0;

		if (entry->d_name[0] != '.' && is_ours == ours)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
}

/* --- the programs ---------------------------------------------------------------------------------- */

static int programs_pin_maps(struct engine *engine)
{
	char path[PATH_MAX + 32];
	struct bpf_map *map;
	int r;

	bpf_object__for_each_map(map, engine->programs->obj)
	{
		const char *name = bpf_map__name(map);

		/* The generation number and the choice of rung belong to one engine. */
		if (strstr(name, ".rodata"))
			continue;
		snprintf(path, sizeof(path), "%s/maps/%s", engine->state_dir,
			 map == engine->programs->maps.bss ? "state" : name);
		r = bpf_map__set_pin_path(map, path);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint32_t read_number(const char *path, uint32_t otherwise)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	uint32_t n;

	return f && fscanf(f, "%u", &n) == 1 ? n : otherwise;
}

/* One entry for each process that this machine can have; of a table that is there already its size. */
static int trees_size(struct engine *engine)
{
	struct bpf_map *trees = engine->programs->maps.trees;
	_cleanup_close_ int fd = bpf_obj_get(bpf_map__pin_path(trees));
	uint32_t pids = read_number("/proc/sys/kernel/pid_max", TREES_MAX);
	uint32_t tasks = read_number("/proc/sys/kernel/threads-max", TREES_MAX);
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), n = pids < tasks ? pids : tasks;

	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	if (fd >= 0)
		n = info.max_entries;
	return bpf_map__set_max_entries(trees, n < TREES_MAX ? n : TREES_MAX);
}

#define LOG_STATS 4
#define LOG_SIZE  65536

/*
 * Programs are loaded one after the other up to the first that is refused, so that the last one with a log
 * is the one. Without any nothing came as far as the verifier, and the fault alone tells why.
 */
static void tell_refusal(struct engine *engine, const char *logs, char *refusal)
{
	struct bpf_program *program;
	char reason[ENGINE_REFUSAL];
	size_t i = 0;

	bpf_object__for_each_program(program, engine->programs->obj)
	{
		const char *log = logs + i++ * LOG_SIZE;

		if (!*log)
			continue;
		verifier_reason(log, reason, sizeof(reason));
		snprintf(refusal, ENGINE_REFUSAL, "the kernel's verifier refuses %s: %.*s",
			 bpf_program__name(program), ENGINE_REFUSAL / 2,
			 *reason ? reason : "it does not say why");
	}
}

static int programs_load(struct engine *engine, char *refusal)
{
	struct bpf_program *program;
	size_t n = 0, i = 0;
	int r;

	bpf_object__for_each_program(program, engine->programs->obj) n++;
	_cleanup_free_ char *logs = calloc(n, LOG_SIZE);
	if (!logs)
		return -ENOMEM;
	bpf_object__for_each_program(program, engine->programs->obj)
	{
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, logs + i++ * LOG_SIZE, LOG_SIZE);
	}
	r = audit_bpf__load(engine->programs);
	if (r < 0 && refusal)
		tell_refusal(engine, logs, refusal);
	for (i = 0; r == 0 && i < n; i++)
		r = frames_check(logs + i * LOG_SIZE);
	return r;
}

static int fd_keep(int fd, int *ret)
{
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *ret < 0 ? -errno : 0;
}

static int maps_keep(struct engine *engine)
{
	struct engine_map *kept;
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, engine->programs->obj)
	{
		if (strstr(bpf_map__name(map), ".rodata") || map == engine->programs->maps.bss)
			continue;
		if (r < 0 || engine->n_maps == ENGINE_MAPS)
			return r < 0 ? r : -E2BIG;
		kept = &engine->maps[engine->n_maps];
		snprintf(kept->name, sizeof(kept->name), "%s", bpf_map__name(map));
		r = fd_keep(bpf_map__fd(map), &kept->fd);
		engine->n_maps += r == 0;
	}
	return r;
}

/* The state as a mapping of our own, as that of the skeleton goes with it. */
static int state_map(struct engine *engine)
{
	struct bpf_map *bss = engine->programs->maps.bss;
	size_t size = bpf_map__value_size(bss);
	int fd, r = fd_keep(bpf_map__fd(bss), &fd);
	void *state;

	if (r < 0)
		return r;
	state = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	engine->view = state == MAP_FAILED ? NULL : view_new(fd, state, size);
	if (engine->view) {
		engine->state = state;
		return 0;
	}
	if (state != MAP_FAILED)
		munmap(state, size);
	close(fd);
	return -ENOMEM;
}

/* What is needed from here on: the rest is what libbpf knows of the programs, a megabyte. */
static int programs_keep(struct engine *engine)
{
	const struct bpf_program *const programs[N_ENGINE_PROGRAMS] = {
		[ENGINE_CALL] = engine->programs->progs.on_call,
		[ENGINE_CALL_RETURN] = engine->programs->progs.on_call_return,
		[ENGINE_LAUNCH] = engine->programs->progs.on_launch,
		[ENGINE_ORDER] = engine->programs->progs.on_order,
	};
	int r = maps_keep(engine);

	for (size_t i = 0; r == 0 && i < N_ENGINE_PROGRAMS; i++)
		r = fd_keep(bpf_program__fd(programs[i]), &engine->program_fds[i]);
	return r < 0 ? r : state_map(engine);
}

static void kept_done(struct engine *engine)
{
	for (size_t i = 0; i < engine->n_maps; i++)
		close(engine->maps[i].fd);
	for (size_t i = 0; i < N_ENGINE_PROGRAMS; i++)
		if (engine->program_fds[i] >= 0)
			close(engine->program_fds[i]);
	if (!engine->view)
		return;
	munmap(engine->view->base, engine->view->size);
	close(engine->view->fd);
	free(engine->view);
}

static int programs_choose_rung(struct engine *engine, enum engine_rung wanted)
{
	bool registers = feature_works(FEATURE_REGISTERS);

	if (wanted == ENGINE_RUNG_REGISTERS && !registers)
		return -EOPNOTSUPP;
	engine->rung = wanted != ENGINE_RUNG_AUTO ? wanted
		       : registers		  ? ENGINE_RUNG_REGISTERS
						  : ENGINE_RUNG_SUPERVISED;
	engine->programs->rodata->can_write_context = engine->rung == ENGINE_RUNG_REGISTERS;
	engine->programs->rodata->can_write_user =
		engine->rung == ENGINE_RUNG_REGISTERS && feature_works(FEATURE_USER_MEMORY);
	return 0;
}

static int programs_open(struct engine *engine, const struct engine_options *options)
{
	uint32_t before;
	int r;

	r = generation_read(engine, &before);
	if (r < 0)
		return r;
	engine->programs = audit_bpf__open();
	if (!engine->programs)
		return -errno;
	engine->generation = before + 1;
	snprintf(engine->generation_name, sizeof(engine->generation_name), "g%u",
		 engine->generation);
	engine->programs->rodata->my_generation = engine->generation;
	engine->programs->rodata->max_waiting = MAX(2L, sysconf(_SC_NPROCESSORS_ONLN) / 2);
	engine->many_probes = feature_works(FEATURE_MANY_PROBES);
	if (engine->many_probes) {
		bpf_program__set_expected_attach_type(engine->programs->progs.on_call,
						      ATTACH_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(engine->programs->progs.on_call_return,
						      ATTACH_UPROBE_MULTI);
	}
	engine->many_launches = engine->many_probes && feature_works(FEATURE_MANY_THREADS);
	if (engine->many_launches)
		bpf_program__set_expected_attach_type(engine->programs->progs.on_launch,
						      ATTACH_UPROBE_MULTI);
	engine->programs->rodata->linger_rounds = options->linger_rounds;
	engine->programs->rodata->no_thread_records = options->no_thread_records;
	r = programs_choose_rung(engine, options->rung);
	if (r == 0)
		r = programs_pin_maps(engine);
	if (r == 0)
		r = trees_size(engine);
	if (r == 0)
		r = programs_load(engine, options->refusal);
	return r < 0 ? r : programs_keep(engine);
}

static int tracepoint_pin(struct engine *engine, struct bpf_program *program, const char *name)
{
	char path[PATH_MAX + 64];
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(program, name);
	int r;

	if (!link)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s-%s", engine->links_dir, name, engine->generation_name);
	unlink(path);
	r = bpf_link__pin(link, path);
	bpf_link__disconnect(link);
	bpf_link__destroy(link);
	return r;
}

static int tracepoints_attach(struct engine *engine)
{
	const struct {
		struct bpf_program *program;
		const char *name;
	} all[] = {
		{ engine->programs->progs.on_exit, "sched_process_exit" },
		{ engine->programs->progs.on_exec, "sched_process_exec" },
		{ engine->programs->progs.on_fork, "sched_process_fork" },
		{ engine->programs->progs.on_signal, "signal_generate" },
		{ engine->programs->progs.on_cgroup_attach, "cgroup_attach_task" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		int r = tracepoint_pin(engine, all[i].program, all[i].name);

		if (r < 0)
			return r;
	}
	return 0;
}

static void control_set(struct engine *engine, const struct engine_options *options)
{
	struct audit_control *control = &engine->state->control;

	control->layout = AUDIT_LAYOUT;
	control->daemon = getpid();
	control->failure_wait_ns =
		options->failure_wait_ns ? options->failure_wait_ns : FAILURE_WAIT_NS;
	if (engine->generation > 1)
		return;
	for (uint32_t i = 0; i < LEDGER_TENANTS; i++)
		for (unsigned device = 0; device < LEDGER_DEVICES; device++)
			book(engine, i, device)->max = LEDGER_NO_LIMIT;
}

/* --- life ------------------------------------------------------------------------------------------ */

/* Let go of everything but the pins. */
static void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	holder_forget(engine);
	watch_stop(engine);
	launches_free(engine->launches);
	attach_forget(engine, /* unpin= */ false);
	builds_done(engine);
	events_close(engine);
	audit_bpf__destroy(engine->programs);
	kept_done(engine);
	if (engine->again_fd >= 0)
		close(engine->again_fd);
	if (engine->epoll_fd >= 0)
		close(engine->epoll_fd);
	if (engine->lock_fd >= 0)
		close(engine->lock_fd);
	free(engine);
}
DEFINE_CLEANUP(struct engine *, engine_free)

void engine_trim(struct engine *engine)
{
	view_trim(engine->view, offsetof(struct audit_state, books));
}

static int engine_start(struct engine *engine, const struct engine_options *options)
{
	int r;

	control_set(engine, options);
	tenants_count(engine);
	r = tracepoints_attach(engine);
	audit_bpf__destroy(engine->programs);
	engine->programs = NULL;
	if (r == 0)
		copies_recorded(engine);
	if (r < 0) {
		links_drop(engine, /* ours= */ true);
		return r;
	}
	launches_take_over(engine);
	if (engine->generation > 1)
		attach_see_through(engine);
	__atomic_store_n(&engine->state->control.generation, engine->generation, __ATOMIC_SEQ_CST);
	r = holder_start(engine);
	/* Who was let pass by our programs just before is still to meet those of the generation before. */
	if (engine->generation > 1)
		attach_see_through(engine);
	links_drop(engine, /* ours= */ false);
	if (r == 0)
		r = events_open(engine);
	if (r == 0)
		r = engine_reap(engine);
	engine_trim(engine);
	return r;
}

int engine_open(const struct engine_options *options, struct engine **ret)
{
	_cleanup_(engine_freep) struct engine *engine = calloc(1, sizeof(*engine));
	int r;

	if (!engine)
		return -ENOMEM;
	engine->lock_fd = engine->holder_pidfd = engine->again_fd = engine->spare_fd = -1;
	for (size_t i = 0; i < N_ENGINE_PROGRAMS; i++)
		engine->program_fds[i] = -1;
	engine->copies_grace_ns = options->copies_grace_ns;
	engine->launches = launches_new();
	if (!engine->launches)
		return -ENOMEM;
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll_fd < 0)
		return -errno;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	r = builds_init(engine, options);
	if (r == 0)
		r = state_dir_open(engine, options->state_dir);
	if (r == 0)
		r = programs_open(engine, options);
	if (r == 0)
		r = engine_start(engine, options);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(engine);
	return 0;
}

void engine_close(struct engine *engine)
{
	engine_free(engine);
}

static void folder_unpin(const char *state_dir, const char *name)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/%s", state_dir, name);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	rmdir(path);
}

int engine_discard(const char *state_dir)
{
	/* Links first: from then on no program runs, whatever the maps hold. */
	folder_unpin(state_dir, "links");
	folder_unpin(state_dir, "maps");
	/* Succeeds where a file system was mounted on the folder itself. */
	umount2(state_dir, MNT_DETACH);
	return rmdir(state_dir) == 0 || errno == ENOENT ? 0 : -errno;
}

void engine_remove(struct engine *engine)
{
	char state_dir[PATH_MAX];

	if (!engine)
		return;
	/* The kernel takes probes off in its own time: from here on they do nothing. */
	__atomic_store_n(&engine->state->control.generation, GENERATION_NONE, __ATOMIC_SEQ_CST);
	holder_dismiss(engine);
	launches_detach(engine);
	attach_forget(engine, /* unpin= */ true);
	links_drop(engine, /* ours= */ true);
	snprintf(state_dir, sizeof(state_dir), "%s", engine->state_dir);
	engine_free(engine);
	engine_discard(state_dir);
}

int engine_fd(const struct engine *engine)
{
	return engine->epoll_fd;
}

int engine_map_fd(const struct engine *engine, const char *name)
{
	for (size_t i = 0; i < engine->n_maps; i++)
		if (strcmp(engine->maps[i].name, name) == 0)
			return engine->maps[i].fd;
	return -ENOENT;
}
