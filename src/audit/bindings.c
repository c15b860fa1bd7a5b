// SPDX-License-Identifier: Apache-2.0
/*
 * What tenants are bound to, and so whom a process is charged to.
 *
 * The programs find a process' tenants by the same rules (bpf/who.h). A change of a binding is announced
 * by a number that each process' next call compares.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/userns.h"
#include "priv.h"

#define TREE_PASSES 3 /* children may be born while we look */
#define CGROUP_ROOTS                                                                               \
	{                                                                                          \
		"/sys/fs/cgroup/unified", "/sys/fs/cgroup"                                         \
	}

/* Every process finds its tenants again at its next call. */
static void bindings_changed(struct engine *engine)
{
	__atomic_add_fetch(&engine->state->control.bindings, 1, __ATOMIC_RELEASE);
}

/* The first number of a line of a process' status. Return: whether there is one. */
static bool status_number(pid_t pid, const char *format, unsigned *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, format, ret) == 1)
			return true;
	return false;
}

static pid_t parent_of(pid_t pid)
{
	unsigned parent;

	return status_number(pid, "PPid: %u", &parent) ? parent : 0;
}

int each_pid(struct engine *engine, pid_fn fn, void *userdata)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		pid_t pid = strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			r = fn(engine, pid, userdata);
	}
	return r;
}

static int tree_get(struct engine *engine, uint32_t pid, uint32_t *ret)
{
	return bpf_map_lookup_elem(engine_map_fd(engine, "trees"), &pid, ret);
}

int engine_tree_of(struct engine *engine, pid_t pid, uint32_t *ret_tenant)
{
	return tree_get(engine, pid, ret_tenant) == 0 ? 0 : ENGINE_E_GONE;
}

/* A process whose parent belongs to the tree belongs to it; the programs see to those that come later. */
static int tree_add_child(struct engine *engine, pid_t pid, void *userdata)
{
	uint32_t tenant = *(uint32_t *)userdata, parent = parent_of(pid), child = pid, known;

	if (parent && tree_get(engine, child, &known) && tree_get(engine, parent, &known) == 0 &&
	    known == tenant)
		bpf_map_update_elem(engine_map_fd(engine, "trees"), &child, &tenant, BPF_ANY);
	return 0;
}

static int tree_follow(struct engine *engine, pid_t pid, _unused_ void *userdata)
{
	uint32_t parent = parent_of(pid), child = pid, tenant;

	if (parent && tree_get(engine, parent, &tenant) == 0)
		bpf_map_update_elem(engine_map_fd(engine, "trees"), &child, &tenant, BPF_NOEXIST);
	return 0;
}

void trees_follow(struct engine *engine)
{
	for (int i = 0; i < TREE_PASSES; i++)
		each_pid(engine, tree_follow, NULL);
	bindings_changed(engine);
}

static int bind_tree(struct engine *engine, uint32_t tenant, uint32_t pid)
{
	if (bpf_map_update_elem(engine_map_fd(engine, "trees"), &pid, &tenant, BPF_ANY))
		return -errno;
	for (int i = 0; i < TREE_PASSES; i++) {
		int r = each_pid(engine, tree_add_child, &tenant);

		if (r < 0)
			return r;
	}
	return 0;
}

int engine_bind(struct engine *engine, uint32_t tenant, enum engine_binding kind, uint64_t id)
{
	uint32_t small = id;
	int r = 0;

	if (!tenant_get(engine, tenant))
		return ENGINE_E_GONE;
	switch (kind) {
	case ENGINE_BIND_CGROUP:
		r = bpf_map_update_elem(engine_map_fd(engine, "cgroups"), &id, &tenant, BPF_ANY);
		break;
	case ENGINE_BIND_UID:
		r = bpf_map_update_elem(engine_map_fd(engine, "users"), &small, &tenant, BPF_ANY);
		break;
	case ENGINE_BIND_TREE:
		r = bind_tree(engine, tenant, small);
		break;
	case ENGINE_BIND_DEFAULT:
		engine->state->control.default_tenant = tenant;
		break;
	}
	bindings_changed(engine);
	return r;
}

/* Whoever is seen next is met again. */
static void users_forget(struct engine *engine)
{
	int fd = engine_map_fd(engine, "met");
	uint32_t uid;

	while (bpf_map_get_next_key(fd, NULL, &uid) == 0 && bpf_map_delete_elem(fd, &uid) == 0)
		;
}

void engine_ask_users(struct engine *engine, bool on, enum audit_failure on_failure)
{
	users_forget(engine);
	__atomic_store_n(&engine->state->tenants[0].on_failure, on_failure, __ATOMIC_RELEASE);
	__atomic_store_n(&engine->state->control.ask_users, on, __ATOMIC_RELEASE);
}

int engine_user_met(struct engine *engine, uid_t uid)
{
	uint32_t key = uid, met = AUDIT_MET;

	return bpf_map_update_elem(engine_map_fd(engine, "met"), &key, &met, BPF_ANY) ? -errno : 0;
}

int engine_unbind(struct engine *engine, enum engine_binding kind, uint64_t id)
{
	uint32_t small = id;
	int r = 0;

	switch (kind) {
	case ENGINE_BIND_CGROUP:
		r = bpf_map_delete_elem(engine_map_fd(engine, "cgroups"), &id);
		break;
	case ENGINE_BIND_UID:
		r = bpf_map_delete_elem(engine_map_fd(engine, "users"), &small);
		users_forget(engine);
		break;
	case ENGINE_BIND_TREE:
		r = bpf_map_delete_elem(engine_map_fd(engine, "trees"), &small);
		break;
	case ENGINE_BIND_DEFAULT:
		engine->state->control.default_tenant = 0;
		break;
	}
	bindings_changed(engine);
	return r == -ENOENT ? ENGINE_E_GONE : r;
}

/* Remove every key of a map whose value is this tenant. */
static void unbind_all(struct engine *engine, const char *map, uint32_t tenant, size_t key_size)
{
	int fd = engine_map_fd(engine, map);
	uint64_t key = 0, next = 0;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

	while (more) {
		uint32_t bound;

		memcpy(&key, &next, key_size);
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (bpf_map_lookup_elem(fd, &key, &bound) == 0 && bound == tenant)
			bpf_map_delete_elem(fd, &key);
	}
}

static void chain_add(struct ledger_chain *chain, uint32_t tenant)
{
	if (tenant && chain->n < LEDGER_DEPTH && !ledger_chain_has(chain, tenant))
		chain->tenants[chain->n++] = tenant;
}

static int cgroup_path_of(pid_t pid, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	f = fopen(path, "re");
	if (!f)
		return ENGINE_E_GONE;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(ret, size, "%s", line + 3);
		return 0;
	}
	return -ENODATA;
}

static uint64_t cgroup_id_of(const char *cgroup)
{
	static const char *const roots[] = CGROUP_ROOTS;
	char path[2 * PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(path, sizeof(path), "%s%s", roots[i], cgroup);
		if (stat(path, &st) == 0)
			return st.st_ino;
	}
	return 0;
}

/* From the innermost cgroup outwards, as the programs do. */
static void chain_add_cgroups(struct engine *engine, struct ledger_chain *chain, char *cgroup,
			      uint64_t *ret_id)
{
	char *end = cgroup + strlen(cgroup);

	*ret_id = cgroup_id_of(cgroup);
	for (;;) {
		uint64_t id = cgroup_id_of(cgroup);
		uint32_t tenant;

		if (id && bpf_map_lookup_elem(engine_map_fd(engine, "cgroups"), &id, &tenant) == 0)
			chain_add(chain, tenant);
		end = strrchr(cgroup, '/');
		if (!end || cgroup[1] == '\0')
			return;
		end[end == cgroup] = '\0';
	}
}

static void chain_add_user(struct engine *engine, struct ledger_chain *chain, uint32_t uid)
{
	uint32_t tenant;

	if (bpf_map_lookup_elem(engine_map_fd(engine, "users"), &uid, &tenant) == 0)
		chain_add(chain, tenant);
}

/* The maker of its namespace before its own id, as the programs do. */
static void chain_add_users(struct engine *engine, struct ledger_chain *chain, pid_t pid, uid_t uid)
{
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uid_t user = proc >= 0 ? userns_user(proc, pid, uid) : uid;

	chain_add_user(engine, chain, user);
	if (user != uid)
		chain_add_user(engine, chain, uid);
}

/*
 * The user is the real one, as for the programs. Whose the folder in /proc is says less: it is root's for a
 * process that does not want to be looked at.
 */
int chain_of_pid(struct engine *engine, pid_t pid, struct ledger_chain *ret, uint64_t *ret_cgroup,
		 uid_t *ret_user)
{
	char cgroup[PATH_MAX];
	uint32_t tenant;
	int r = cgroup_path_of(pid, cgroup, sizeof(cgroup));

	*ret = (struct ledger_chain){};
	if (r == ENGINE_E_GONE || !status_number(pid, "Uid: %u", ret_user))
		return ENGINE_E_GONE;
	if (tree_get(engine, pid, &tenant) == 0)
		chain_add(ret, tenant);
	if (r == 0)
		chain_add_cgroups(engine, ret, cgroup, ret_cgroup);
	chain_add_users(engine, ret, pid, *ret_user);
	if (ret->n == 0)
		chain_add(ret, engine->state->control.default_tenant);
	return 0;
}

static int move_from_tenant(const struct audit_process *process, void *userdata)
{
	struct engine *engine = ((void **)userdata)[0];
	uint32_t tenant = *(uint32_t *)((void **)userdata)[1];

	if (ledger_chain_has(&process->chain, tenant))
		engine_adopt(engine, audit_process_tgid(process));
	return 0;
}

int engine_tenant_remove(struct engine *engine, uint32_t tenant)
{
	struct audit_tenant *t = tenant_get(engine, tenant);
	void *userdata[] = { engine, &tenant };

	if (!t)
		return ENGINE_E_GONE;
	unbind_all(engine, "cgroups", tenant, sizeof(uint64_t));
	unbind_all(engine, "users", tenant, sizeof(uint32_t));
	users_forget(engine);
	unbind_all(engine, "trees", tenant, sizeof(uint32_t));
	if (engine->state->control.default_tenant == tenant)
		engine->state->control.default_tenant = 0;
	tenant_clear(engine, tenant);
	bindings_changed(engine);
	engine_each_process(engine, move_from_tenant, userdata);
	t->in_use = 0;
	return 0;
}
