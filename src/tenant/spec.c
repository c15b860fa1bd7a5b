/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/spec.h"

#include <errno.h>

static const char device_prefix[] = "device ";

/* One section: its heading and its entries, lines[0] to lines[n - 1]. */
struct section {
	const struct ini_line *lines;
	size_t n;
	unsigned first_line;
};

static int take_match(struct tenant_spec *t, const char *value, unsigned line,
		      struct ini_error *error)
{
	const char *reason = NULL;
	int r;

	r = selector_parse(value, &t->match, &reason);
	if (r == -EINVAL)
		return ini_refuse(error, line, "match: '%.90s' is %s", value, reason);
	return r;
}

static int take_freezer(struct tenant_spec *t, const char *value, unsigned line,
			struct ini_error *error)
{
	if (!cgroup_path_ok(value))
		return ini_refuse(error, line, "freezer: '%.60s' is not a cgroup path", value);
	free(t->freezer);
	t->freezer = strdup(value);
	return t->freezer ? 0 : -ENOMEM;
}

static int take_owner(struct tenant_spec *t, const char *value, unsigned line,
		      struct ini_error *error)
{
	uint64_t uid;

	if (str_parse_u64(value, &uid) < 0 || uid >= TENANT_NO_OWNER)
		return ini_refuse(error, line, "owner: '%.60s' is not the number of a user", value);
	t->owner = uid;
	return 0;
}

static int take_job(struct tenant_spec *t, const char *value, unsigned line,
		    struct ini_error *error)
{
	uint64_t job;

	if (str_parse_u64(value, &job) < 0 || job == 0 || job > UINT32_MAX)
		return ini_refuse(error, line, "job: '%.60s' is not the number of a job", value);
	t->job = job;
	return 0;
}

static int take_limit(struct tenant_spec *t, const struct ini_line *entry, unsigned line,
		      struct ini_error *error)
{
	struct limit_setting s = {};
	char reason[LIMIT_REASON_SIZE];
	int r;

	r = limit_key_parse(entry->name, &s.id, s.device, reason);
	if (r == 0)
		r = limit_value_parse(s.id, entry->value, &s.value, reason);
	if (r < 0)
		return ini_refuse(error, line, "%s", reason);
	return limits_set(&t->limits, &s);
}

static int take_gpus(struct tenant_spec *t, const char *value, unsigned line,
		     struct ini_error *error)
{
	char reason[LIMIT_REASON_SIZE];
	int r;

	r = limits_set_gpus(&t->limits, value, reason);
	if (r == -EINVAL)
		return ini_refuse(error, line, "%s", reason);
	return r;
}

static int take_entry(struct tenant_spec *t, const struct ini_line *entry, unsigned line,
		      struct ini_error *error)
{
	if (str_eq(entry->name, "match"))
		return take_match(t, entry->value, line, error);
	if (str_eq(entry->name, "owner"))
		return take_owner(t, entry->value, line, error);
	if (str_eq(entry->name, "freezer"))
		return take_freezer(t, entry->value, line, error);
	if (str_eq(entry->name, "job"))
		return take_job(t, entry->value, line, error);
	if (str_eq(entry->name, "gpu"))
		return take_gpus(t, entry->value, line, error);
	return take_limit(t, entry, line, error);
}

/* Fills in *t even on failure: the caller releases it. */
static int tenant_parse(const struct section *section, struct tenant_spec *t,
			struct ini_error *error)
{
	const char *name = section->lines[0].name;
	char reason[LIMIT_REASON_SIZE];
	bool has_match = false;
	size_t i;
	int r;

	if (!str_is_name(name))
		return ini_refuse(error, section->first_line,
				  "'%.90s' cannot be a tenant's name: use 1 to 63 letters, digits "
				  "and -_.@:",
				  name);
	str_copy(t->name, sizeof(t->name), name);
	for (i = 1; i < section->n; i++) {
		if (section->lines[i].kind != INI_ENTRY)
			continue;
		r = take_entry(t, &section->lines[i], section->first_line + i, error);
		if (r < 0)
			return r;
		has_match |= str_eq(section->lines[i].name, "match");
	}
	if (!has_match)
		return ini_refuse(error, section->first_line,
				  "[%s] does not say who it is: add a line such as "
				  "'match = user:%s'",
				  t->name, t->name);
	if (limits_check(&t->limits, reason) < 0)
		return ini_refuse(error, section->first_line, "[%s]: %s", t->name, reason);
	return 0;
}

static int device_parse(const struct section *section, struct device_spec *d,
			struct ini_error *error)
{
	const char *uuid = str_after(section->lines[0].name, device_prefix);
	char reason[LIMIT_REASON_SIZE];
	size_t i;

	if (!device_uuid_ok(uuid))
		return ini_refuse(error, section->first_line,
				  "'%.90s' is not the UUID of a device (GPU-... or MIG-...)", uuid);
	str_copy(d->uuid, sizeof(d->uuid), uuid);
	for (i = 1; i < section->n; i++) {
		const struct ini_line *entry = &section->lines[i];
		unsigned line = section->first_line + i;

		if (entry->kind != INI_ENTRY)
			continue;
		if (!str_eq(entry->name, "memory.reserve"))
			return ini_refuse(error, line,
					  "a device has no '%.60s', only memory.reserve",
					  entry->name);
		if (limit_value_parse(LIMIT_MEMORY_LOW, entry->value, &d->reserve, reason) < 0 ||
		    d->reserve.number == QUANTITY_MAX)
			return ini_refuse(
				error, line,
				"memory.reserve: '%.60s' is not a size such as 512M or 2%%",
				entry->value);
	}
	return 0;
}

static int add_device(struct specs *specs, const struct device_spec *device)
{
	struct device_spec *p;

	p = reallocarray(specs->devices, specs->n_devices + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	specs->devices = p;
	p[specs->n_devices++] = *device;
	return 0;
}

/* Takes over what *tenant owns, also on failure. */
static int add_tenant(struct specs *specs, struct tenant_spec *tenant)
{
	struct tenant_spec *p;

	p = reallocarray(specs->tenants, specs->n_tenants + 1, sizeof(*p));
	if (!p) {
		tenant_spec_done(tenant);
		return -ENOMEM;
	}
	specs->tenants = p;
	p[specs->n_tenants++] = *tenant;
	return 0;
}

static int section_parse(const struct section *section, struct specs *specs,
			 struct ini_error *error)
{
	struct tenant_spec tenant = { .owner = TENANT_NO_OWNER, .match.kind = SELECT_DEFAULT };
	struct device_spec device = {};
	int r;

	if (str_after(section->lines[0].name, device_prefix)) {
		r = device_parse(section, &device, error);
		return r < 0 ? r : add_device(specs, &device);
	}
	r = tenant_parse(section, &tenant, error);
	if (r < 0) {
		tenant_spec_done(&tenant);
		return r;
	}
	return add_tenant(specs, &tenant);
}

int specs_parse(const char *bytes, size_t len, struct specs *ret, struct ini_error *error)
{
	_cleanup_(ini_done) struct ini ini = {};
	_cleanup_(specs_done) struct specs specs = {};
	size_t i, end;
	int r;

	r = ini_parse(bytes, len, &ini, error);
	if (r < 0)
		return r;
	for (i = 0; i < ini.n_lines; i = end) {
		end = i + 1;
		if (ini.lines[i].kind != INI_SECTION)
			continue;
		while (end < ini.n_lines && ini.lines[end].kind != INI_SECTION)
			end++;
		r = section_parse(&(struct section){ &ini.lines[i], end - i, i + 1 }, &specs,
				  error);
		if (r < 0)
			return r;
	}
	*ret = specs;
	memset(&specs, 0, sizeof(specs));
	return 0;
}

int specs_add_tenant(struct specs *specs, const struct tenant_spec *tenant)
{
	struct tenant_spec copy;
	int r;

	r = tenant_spec_copy(tenant, &copy);
	return r < 0 ? r : add_tenant(specs, &copy);
}

static bool is_wanted(const struct tenant_spec *tenant, const char *key)
{
	char reason[LIMIT_REASON_SIZE], device[DEVICE_UUID_SIZE];
	const struct limit_setting *s;
	enum limit_id id;

	if (str_eq(key, "match"))
		return true;
	if (str_eq(key, "owner"))
		return tenant->owner != TENANT_NO_OWNER;
	if (str_eq(key, "freezer"))
		return tenant->freezer != NULL;
	if (str_eq(key, "job"))
		return tenant->job != 0;
	if (str_eq(key, "gpu"))
		return tenant->limits.n_gpus > 0;
	if (limit_key_parse(key, &id, device, reason) < 0)
		return false;
	s = limits_find(&tenant->limits, id, device);
	return s && str_eq(s->device, device);
}

static void drop_unwanted(struct ini *ini, const struct tenant_spec *tenant)
{
	ssize_t heading = ini_find_section(ini, tenant->name);
	size_t i;

	if (heading < 0)
		return;
	for (i = heading + 1; i < ini->n_lines && ini->lines[i].kind != INI_SECTION;) {
		if (ini->lines[i].kind == INI_ENTRY && !is_wanted(tenant, ini->lines[i].name))
			ini_unset(ini, tenant->name, ini->lines[i].name);
		else
			i++;
	}
}

static int write_gpus(struct ini *ini, const struct tenant_spec *tenant)
{
	_cleanup_free_ char *list = NULL;
	struct text t = {};
	size_t i;

	if (tenant->limits.n_gpus == 0)
		return 0;
	for (i = 0; i < tenant->limits.n_gpus; i++)
		text_addf(&t, "%s%s", i ? " " : "", tenant->limits.gpus[i]);
	list = text_take(&t);
	return list ? ini_set(ini, tenant->name, "gpu", list) : -ENOMEM;
}

static int write_identity(struct ini *ini, const struct tenant_spec *tenant)
{
	_cleanup_free_ char *match = selector_print(&tenant->match);
	char number[16];
	int r;

	r = match ? ini_set(ini, tenant->name, "match", match) : -ENOMEM;
	if (r == 0 && tenant->freezer)
		r = ini_set(ini, tenant->name, "freezer", tenant->freezer);
	if (r == 0 && tenant->job) {
		snprintf(number, sizeof(number), "%u", tenant->job);
		r = ini_set(ini, tenant->name, "job", number);
	}
	if (r < 0 || tenant->owner == TENANT_NO_OWNER)
		return r;
	snprintf(number, sizeof(number), "%u", tenant->owner);
	return ini_set(ini, tenant->name, "owner", number);
}

/* "8192M" stays when 8G is meant: whoever wrote it likes it so. */
static bool says_the_same(const struct ini *ini, const struct tenant_spec *tenant, const char *key,
			  const struct limit_setting *s)
{
	const char *value = ini_get(ini, tenant->name, key);
	char reason[LIMIT_REASON_SIZE];
	struct limit_value v;

	return value && limit_value_parse(s->id, value, &v, reason) == 0 &&
	       v.number == s->value.number && v.is_part == s->value.is_part;
}

static int write_setting(struct ini *ini, const struct tenant_spec *tenant,
			 const struct limit_setting *s)
{
	_cleanup_free_ char *key = limit_key_print(s);
	char buf[QUANTITY_TEXT];

	if (!key)
		return -ENOMEM;
	if (says_the_same(ini, tenant, key, s))
		return 0;
	return ini_set(ini, tenant->name, key, limit_value_print(s->id, &s->value, buf));
}

int spec_write(struct ini *ini, const struct tenant_spec *tenant)
{
	size_t i;
	int r;

	drop_unwanted(ini, tenant);
	r = write_identity(ini, tenant);
	if (r == 0)
		r = write_gpus(ini, tenant);
	for (i = 0; r == 0 && i < tenant->limits.n_settings; i++)
		r = write_setting(ini, tenant, &tenant->limits.settings[i]);
	return r;
}

int device_spec_write(struct ini *ini, const struct device_spec *device)
{
	char section[sizeof(device_prefix) + DEVICE_UUID_SIZE], buf[QUANTITY_TEXT];

	snprintf(section, sizeof(section), "%s%s", device_prefix, device->uuid);
	return ini_set(ini, section, "memory.reserve",
		       limit_value_print(LIMIT_MEMORY_LOW, &device->reserve, buf));
}

int tenant_spec_copy(const struct tenant_spec *from, struct tenant_spec *ret)
{
	struct tenant_spec copy = *from;
	int r;

	copy.freezer = NULL;
	memset(&copy.match, 0, sizeof(copy.match));
	memset(&copy.limits, 0, sizeof(copy.limits));
	r = selector_copy(&from->match, &copy.match);
	if (r == 0)
		r = limits_copy(&from->limits, &copy.limits);
	if (r == 0 && from->freezer) {
		copy.freezer = strdup(from->freezer);
		r = copy.freezer ? 0 : -ENOMEM;
	}
	if (r < 0) {
		tenant_spec_done(&copy);
		return r;
	}
	*ret = copy;
	return 0;
}

void tenant_spec_done(struct tenant_spec *tenant)
{
	selector_done(&tenant->match);
	limits_done(&tenant->limits);
	free(tenant->freezer);
	tenant->freezer = NULL;
}

void specs_done(struct specs *specs)
{
	size_t i;

	for (i = 0; i < specs->n_tenants; i++)
		tenant_spec_done(&specs->tenants[i]);
	free(specs->tenants);
	free(specs->devices);
	memset(specs, 0, sizeof(*specs));
}
