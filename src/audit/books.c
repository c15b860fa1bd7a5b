// SPDX-License-Identifier: Apache-2.0
/*
 * The books from the side of user space: devices, tenants, what they are bound to, and corrections.
 *
 * The programs work on the same memory at the same time. What both change is changed by the steps of
 * ledger.h; the rest is written here alone, and a change of a binding is announced by a number that
 * each process' next call compares.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "priv.h"

#define PROCESS_PROBES 16	/* as the programs: a record stands among so many from the pid's place on */
#define TREE_PASSES    3	/* children may be born while we look */
#define CGROUP_ROOTS   { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" }
#define OBJECTS_BATCH  4096

/* --- devices ----------------------------------------------------------------------------------------- */

static struct ledger *book(const struct engine *engine, uint32_t tenant, unsigned device)
{
	return &engine->state->books[ledger_index(tenant, device)];
}

int engine_device_set(struct engine *engine, unsigned device, const struct audit_device *d, uint64_t reserve)
{
	struct audit_device *to;

	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	to = &engine->state->devices[device];
	*to = *d;
	to->in_use = 1;
	book(engine, 0, device)->max = reserve < d->total ? d->total - reserve : 0;
	if (engine->state->control.n_devices <= device)
		__atomic_store_n(&engine->state->control.n_devices, device + 1, __ATOMIC_RELEASE);
	return 0;
}

/* The part of the whole device's ledger that nobody owns is remembered as its `low`, which it has no other use for. */
int engine_device_unowned(struct engine *engine, unsigned device, uint64_t bytes)
{
	struct ledger *whole;

	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	whole = book(engine, 0, device);
	if (bytes > whole->low)
		ledger_charge(whole, bytes - whole->low);
	else
		ledger_uncharge(whole, whole->low - bytes);
	whole->low = bytes;
	return 0;
}

/* --- tenants ----------------------------------------------------------------------------------------- */

int engine_tenant_find(struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		const struct audit_tenant *t = &engine->state->tenants[i];

		if (t->in_use && strncmp(t->name, name, sizeof(t->name)) == 0) {
			*ret_tenant = i;
			return 0;
		}
	}
	return ENGINE_E_GONE;
}

static void ledgers_clear(struct engine *engine, uint32_t tenant)
{
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		*book(engine, tenant, i) = (struct ledger){ .max = LEDGER_NO_LIMIT };
		engine->state->shares[ledger_index(tenant, i)] = (struct share){};
	}
}

int engine_tenant_new(struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	uint32_t known;

	if (strlen(name) >= AUDIT_NAME)
		return -ENAMETOOLONG;
	if (engine_tenant_find(engine, name, &known) == 0)
		return -EEXIST;
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		struct audit_tenant *t = &engine->state->tenants[i];

		/* A tenant that was removed is free again when the last of its processes is charged elsewhere. */
		if (t->in_use || t->n_processes || t->n_slots)
			continue;
		memset(t, 0, sizeof(*t));
		ledgers_clear(engine, i);
		snprintf(t->name, sizeof(t->name), "%s", name);
		__atomic_store_n(&t->in_use, 1, __ATOMIC_RELEASE);
		*ret_tenant = i;
		return 0;
	}
	return ENGINE_E_FULL;
}

static struct audit_tenant *tenant_get(const struct engine *engine, uint32_t tenant)
{
	if (tenant == 0 || tenant >= LEDGER_TENANTS || !engine->state->tenants[tenant].in_use)
		return NULL;
	return &engine->state->tenants[tenant];
}

int engine_tenant(const struct engine *engine, uint32_t tenant, struct audit_tenant *ret)
{
	const struct audit_tenant *t = tenant_get(engine, tenant);

	if (!t)
		return ENGINE_E_GONE;
	*ret = *t;
	return 0;
}

int engine_tenant_limit(struct engine *engine, uint32_t tenant, unsigned device, const struct engine_limits *limits)
{
	if (!tenant_get(engine, tenant))
		return ENGINE_E_GONE;
	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	__atomic_store_n(&book(engine, tenant, device)->max, limits->max_bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&book(engine, tenant, device)->low, limits->low_bytes, __ATOMIC_RELEASE);
	return 0;
}

int engine_tenant_waits(struct engine *engine, uint32_t tenant, uint64_t wait_max_ns, uint64_t wait_low_ns,
			enum audit_failure on_failure)
{
	struct audit_tenant *t = tenant_get(engine, tenant);

	if (!t)
		return ENGINE_E_GONE;
	t->wait_max_ns = wait_max_ns;
	t->wait_low_ns = wait_low_ns;
	t->on_failure = on_failure;
	return 0;
}

int engine_book(const struct engine *engine, uint32_t tenant, unsigned device, struct ledger *ret)
{
	if (tenant >= LEDGER_TENANTS || device >= LEDGER_DEVICES)
		return -EINVAL;
	*ret = *book(engine, tenant, device);
	/* See engine_device_unowned(). */
	if (tenant == 0)
		ret->low = 0;
	return 0;
}

/* --- bindings ---------------------------------------------------------------------------------------- */

/* Every process finds its tenants again at its next call. */
static void bindings_changed(struct engine *engine)
{
	__atomic_add_fetch(&engine->state->control.bindings, 1, __ATOMIC_RELEASE);
}

static pid_t parent_of(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	return parent;
}

typedef int (*pid_fn)(struct engine *engine, pid_t pid, void *userdata);

static int each_pid(struct engine *engine, pid_fn fn, void *userdata)
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

/* A process whose parent belongs to the tree belongs to it; the programs see to those that come later. */
static int tree_add_child(struct engine *engine, pid_t pid, void *userdata)
{
	uint32_t tenant = *(uint32_t *)userdata, parent = parent_of(pid), child = pid, known;

	if (parent && tree_get(engine, child, &known) && tree_get(engine, parent, &known) == 0 && known == tenant)
		bpf_map_update_elem(engine_map_fd(engine, "trees"), &child, &tenant, BPF_ANY);
	return 0;
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

static bool chain_contains(const struct ledger_chain *chain, uint32_t tenant)
{
	for (uint32_t i = 0; i < chain->n && i < LEDGER_DEPTH; i++)
		if (chain->tenants[i] == tenant)
			return true;
	return false;
}

/* --- processes --------------------------------------------------------------------------------------- */

static struct audit_process *process_find(const struct engine *engine, pid_t pid)
{
	for (uint32_t i = 0; i < PROCESS_PROBES; i++) {
		struct audit_process *p = &engine->state->processes[(pid + i) & (AUDIT_PROCESSES - 1)];

		if (audit_process_tgid(p) == (uint32_t)pid)
			return p;
	}
	return NULL;
}

int engine_each_process(const struct engine *engine, engine_process_fn fn, void *userdata)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++) {
		int r;

		if (!audit_process_tgid(&engine->state->processes[i]))
			continue;
		r = fn(&engine->state->processes[i], userdata);
		if (r)
			return r;
	}
	return 0;
}

static void chain_add(struct ledger_chain *chain, uint32_t tenant)
{
	if (tenant && chain->n < LEDGER_DEPTH && !chain_contains(chain, tenant))
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
static void chain_add_cgroups(struct engine *engine, struct ledger_chain *chain, char *cgroup, uint64_t *ret_id)
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

static int chain_of_pid(struct engine *engine, pid_t pid, struct ledger_chain *ret, uint64_t *ret_cgroup)
{
	char cgroup[PATH_MAX], path[32];
	uint32_t tenant, uid;
	struct stat st;
	int r = cgroup_path_of(pid, cgroup, sizeof(cgroup));

	*ret = (struct ledger_chain){};
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (r == ENGINE_E_GONE || stat(path, &st))
		return ENGINE_E_GONE;
	if (tree_get(engine, pid, &tenant) == 0)
		chain_add(ret, tenant);
	if (r == 0)
		chain_add_cgroups(engine, ret, cgroup, ret_cgroup);
	uid = st.st_uid;
	if (bpf_map_lookup_elem(engine_map_fd(engine, "users"), &uid, &tenant) == 0)
		chain_add(ret, tenant);
	if (ret->n == 0)
		chain_add(ret, engine->state->control.default_tenant);
	return 0;
}

/* Charge a process to another chain, as the programs do at a call. */
static void process_move(struct engine *engine, struct audit_process *p, const struct ledger_chain *to)
{
	if (__sync_val_compare_and_swap(&p->moving, 0, 1))
		return;
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		uint64_t bytes = p->use[i] + p->overhead[i];

		ledger_chain_uncharge(engine->state->books, &p->chain, i, bytes);
		ledger_chain_charge(engine->state->books, to, i, bytes);
	}
	if (p->chain.n)
		__sync_fetch_and_sub(&engine->state->tenants[p->chain.tenants[0]].n_processes, 1);
	if (to->n)
		__sync_fetch_and_add(&engine->state->tenants[to->tenants[0]].n_processes, 1);
	p->chain = *to;
	__sync_lock_release(&p->moving);
}

static int process_new(struct engine *engine, pid_t pid, const struct ledger_chain *chain, uint64_t cgroup)
{
	uint64_t claimed = (uint64_t)pid << 32 | AUDIT_PROCESS_CLAIMED;

	for (uint32_t i = 0; i < PROCESS_PROBES; i++) {
		struct audit_process *p = &engine->state->processes[(pid + i) & (AUDIT_PROCESSES - 1)];

		if (__sync_val_compare_and_swap(&p->owner, AUDIT_PROCESS_FREE, claimed) != AUDIT_PROCESS_FREE)
			continue;
		memset((char *)p + sizeof(p->owner), 0, sizeof(*p) - sizeof(p->owner));
		memset(p->device_of, AUDIT_NO_DEVICE, sizeof(p->device_of));
		p->serial = __sync_add_and_fetch(&engine->state->control.next_serial, 1);
		p->bindings = engine->state->control.bindings;
		p->cgroup = cgroup;
		p->chain = *chain;
		__sync_fetch_and_add(&engine->state->tenants[chain->tenants[0]].n_processes, 1);
		__atomic_store_n(&p->owner, (uint64_t)pid << 32 | AUDIT_PROCESS_LIVE, __ATOMIC_RELEASE);
		return 0;
	}
	return ENGINE_E_FULL;
}

int engine_adopt(struct engine *engine, pid_t pid)
{
	struct audit_process *p = process_find(engine, pid);
	struct ledger_chain chain;
	uint64_t cgroup = 0;
	int r = chain_of_pid(engine, pid, &chain, &cgroup);

	if (r)
		return r;
	if (p)
		process_move(engine, p, &chain);
	else if (chain.n)
		r = process_new(engine, pid, &chain, cgroup);
	return r;
}

static int move_from_tenant(const struct audit_process *process, void *userdata)
{
	struct engine *engine = ((void **)userdata)[0];
	uint32_t tenant = *(uint32_t *)((void **)userdata)[1];

	if (chain_contains(&process->chain, tenant))
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
	unbind_all(engine, "trees", tenant, sizeof(uint32_t));
	if (engine->state->control.default_tenant == tenant)
		engine->state->control.default_tenant = 0;
	ledgers_clear(engine, tenant);
	bindings_changed(engine);
	engine_each_process(engine, move_from_tenant, userdata);
	t->in_use = 0;
	return 0;
}

static void overhead_change(struct engine *engine, const struct audit_process *p, unsigned device, uint64_t from,
			    uint64_t to)
{
	if (to > from) {
		ledger_chain_charge(engine->state->books, &p->chain, device, to - from);
		ledger_charge(book(engine, 0, device), to - from);
	} else {
		ledger_chain_uncharge(engine->state->books, &p->chain, device, from - to);
		ledger_uncharge(book(engine, 0, device), from - to);
	}
}

int engine_settle(struct engine *engine, pid_t pid, unsigned device, uint64_t device_bytes, uint64_t n_changes)
{
	struct audit_process *p = process_find(engine, pid);
	uint64_t api, wanted, now;

	if (!p)
		return ENGINE_E_GONE;
	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	api = p->use[device];
	if (__atomic_load_n(&p->n_changes, __ATOMIC_ACQUIRE) != n_changes)
		return ENGINE_E_CHANGED;
	wanted = device_bytes > api ? device_bytes - api : 0;
	now = p->overhead[device];
	overhead_change(engine, p, device, now, wanted);
	/* If the process has ended meanwhile, its overhead was taken off as it was: the change is taken back. */
	if (!__sync_bool_compare_and_swap(&p->overhead[device], now, wanted))
		overhead_change(engine, p, device, wanted, now);
	return 0;
}

/* --- the dead ---------------------------------------------------------------------------------------- */

static bool process_is_dead(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) != 0;
}

/* Take off all that a dead process was charged: what the programs do when they see the end. */
static void process_end(struct engine *engine, struct audit_process *p, uint32_t tgid)
{
	uint64_t live = (uint64_t)tgid << 32 | AUDIT_PROCESS_LIVE;
	uint64_t claimed = (uint64_t)tgid << 32 | AUDIT_PROCESS_CLAIMED;

	if (!__sync_bool_compare_and_swap(&p->owner, live, claimed))
		return;
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		uint64_t bytes = __sync_lock_test_and_set(&p->use[i], 0) +
				 __sync_lock_test_and_set(&p->overhead[i], 0);

		ledger_chain_uncharge(engine->state->books, &p->chain, i, bytes);
		ledger_uncharge(book(engine, 0, i), bytes);
	}
	if (p->chain.n)
		__sync_fetch_and_sub(&engine->state->tenants[p->chain.tenants[0]].n_processes, 1);
	p->serial = 0;
	__atomic_store_n(&p->owner, AUDIT_PROCESS_FREE, __ATOMIC_RELEASE);
}

static bool serial_lives(const struct engine *engine, uint32_t serial)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++)
		if (engine->state->processes[i].serial == serial)
			return true;
	return false;
}

/* Records of allocations whose process is gone. */
static void objects_reap(struct engine *engine)
{
	int fd = engine_map_fd(engine, "objects");
	struct object_key key, next;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;
	uint32_t last_serial = 0;
	bool lives = false;

	while (more) {
		struct object object;

		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (key.serial != last_serial) {
			last_serial = key.serial;
			lives = serial_lives(engine, key.serial);
		}
		if (!lives && bpf_map_lookup_elem(fd, &key, &object) == 0 && bpf_map_delete_elem(fd, &key) == 0)
			__sync_fetch_and_sub(&engine->state->tenants[object.tenant % LEDGER_TENANTS].n_objects, 1);
	}
}

int engine_reap(struct engine *engine)
{
	for (size_t i = 0; i < AUDIT_PROCESSES; i++) {
		struct audit_process *p = &engine->state->processes[i];
		uint32_t tgid = audit_process_tgid(p);

		if (tgid && process_is_dead(tgid))
			process_end(engine, p, tgid);
	}
	for (uint32_t i = 0; i < AUDIT_SLOTS; i++) {
		const struct audit_slot *slot = &engine->state->slots[i];
		uint32_t state = slot->state;

		if (state > AUDIT_SLOT_CLAIMED && process_is_dead(slot->tgid))
			audit_slot_end(engine->state, i, state);
	}
	objects_reap(engine);
	return 0;
}

/* --- calls that wait --------------------------------------------------------------------------------- */

int engine_each_held(const struct engine *engine, engine_slot_fn fn, void *userdata)
{
	for (size_t i = 0; i < AUDIT_SLOTS; i++) {
		const struct audit_slot *slot = &engine->state->slots[i];
		int r;

		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != AUDIT_SLOT_HELD)
			continue;
		r = fn(slot, userdata);
		if (r)
			return r;
	}
	return 0;
}

static struct audit_slot *slot_by_ticket(const struct engine *engine, uint64_t ticket)
{
	for (size_t i = 0; i < AUDIT_SLOTS; i++)
		if (engine->state->slots[i].state == AUDIT_SLOT_HELD && engine->state->slots[i].ticket == ticket)
			return &engine->state->slots[i];
	return NULL;
}

/* The holder looks over what it holds every few milliseconds, and finds these. */
int engine_release(struct engine *engine, uint64_t ticket)
{
	struct audit_slot *slot = slot_by_ticket(engine, ticket);

	if (!slot)
		return ENGINE_E_GONE;
	__atomic_store_n(&slot->reason, AUDIT_REASON_NONE, __ATOMIC_RELEASE);
	return 0;
}

int engine_refuse(struct engine *engine, uint64_t ticket)
{
	struct audit_slot *slot = slot_by_ticket(engine, ticket);

	if (!slot)
		return ENGINE_E_GONE;
	/* Its time is over: it is let go and answered when it meets the probe. */
	__atomic_store_n(&slot->deadline_ns, 1, __ATOMIC_RELEASE);
	return 0;
}
