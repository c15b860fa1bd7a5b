/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/change.h"

#include "daemon/cgroup.h"
#include "daemon/process.h"

#include <errno.h>

static int name_device(struct daemon *d, const struct request *q, const char *text,
		       char ret[DEVICE_UUID_SIZE])
{
	int i = gpu_find(d->gpu, text);

	if (i >= 0) {
		str_copy(ret, DEVICE_UUID_SIZE, d->gpu->devices[i].uuid);
		return 0;
	}
	api_fail(q->error, API_E_NOT_FOUND,
		 i == -EEXIST ? "'%.80s' begins more than one device's UUID"
			      : "there is no device '%.80s'",
		 text);
	return api_hint(q->error, "`cotenant api devices.list` shows them");
}

static int read_key(struct daemon *d, const struct request *q, const char *key,
		    struct limit_setting *s)
{
	const char *at = strchr(key, '@');
	char reason[LIMIT_REASON_SIZE], plain[64];

	snprintf(plain, sizeof(plain), "%.*s", at ? (int)(at - key) : (int)strlen(key), key);
	if (limit_key_parse(plain, &s->id, s->device, reason) < 0)
		return api_fail(q->error, API_E_BAD_REQUEST, "%s", reason);
	if (!at)
		return 0;
	if (limit_infos[s->id].scope != LIMIT_PER_DEVICE)
		return api_fail(q->error, API_E_BAD_REQUEST,
				"%s is the same on every device: write "
				"it without '@'",
				plain);
	return name_device(d, q, at + 1, s->device);
}

static int change_one(struct daemon *d, const struct request *q, const char *key,
		      const json_t *value, struct limits *limits)
{
	struct limit_setting s = {};
	char reason[LIMIT_REASON_SIZE];

	if (read_key(d, q, key, &s) < 0)
		return -EINVAL;
	if (json_is_null(value)) {
		limits_unset(limits, s.id, s.device);
		return 0;
	}
	if (limit_value_parse(s.id, json_string_value(value), &s.value, reason) < 0)
		return api_fail(q->error, API_E_BAD_REQUEST, "%s", reason);
	if (limits_set(limits, &s) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	return 0;
}

static int change_gpus(struct daemon *d, const struct request *q, struct limits *limits)
{
	const json_t *list = json_object_get(q->args, "gpu");
	char uuid[DEVICE_UUID_SIZE], reason[LIMIT_REASON_SIZE];
	_cleanup_free_ char *text = NULL;
	struct text t = {};
	size_t i;

	if (!list)
		return 0;
	for (i = 0; i < json_array_size(list); i++) {
		if (name_device(d, q, json_string_value(json_array_get(list, i)), uuid) < 0) {
			text_done(&t);
			return -EINVAL;
		}
		text_addf(&t, "%s ", uuid);
	}
	text = text_take(&t);
	if (!text || limits_set_gpus(limits, text, reason) < 0)
		return api_fail(q->error, API_E_FAULT, "out of memory");
	return 0;
}

static int check_deny(struct daemon *d, const struct request *q, const struct limits *limits)
{
	const struct limit_setting *setting = limits_find(limits, LIMIT_ON_FAILURE, "");

	if (!setting || setting->value.number != ON_FAILURE_DENY || tenants_can_deny(&d->tenants))
		return 0;
	return api_fail(q->error, API_E_BAD_REQUEST, "%s", TENANTS_CANNOT_DENY);
}

int change_limits(struct daemon *d, const struct request *q, struct limits *limits)
{
	json_t *changes = json_object_get(q->args, "limits"), *value;
	char reason[LIMIT_REASON_SIZE];
	const char *key;

	json_object_foreach(changes, key, value) {
		if (change_one(d, q, key, value, limits) < 0)
			return -EINVAL;
	}
	if (change_gpus(d, q, limits) < 0)
		return -EINVAL;
	if (limits_check(limits, reason) < 0)
		return api_fail(q->error, API_E_BAD_REQUEST, "%s", reason);
	return check_deny(d, q, limits);
}

/* What the user is given on a device by whoever is above him; nothing where nobody is. */
static void own_limits(struct daemon *d, uid_t uid, unsigned device, struct device_limits *ret)
{
	static const struct limits none;
	const struct tenant *own = tenants_of_uid(&d->tenants, uid);

	if (own)
		tenant_limits(&d->tenants, own, device, ret);
	else
		limits_resolve(&none, d->gpu->devices[device].uuid, 0, ret);
}

int change_check_nested(struct daemon *d, const struct request *q, const struct limits *limits)
{
	struct device_limits wanted, own;
	unsigned i;

	if (q->peer.uid == 0)
		return 0;
	if (limits_find(limits, LIMIT_ON_FAILURE, ""))
		return api_fail(q->error, API_E_FORBIDDEN, "only root can set on-failure");
	if (limits_find(limits, LIMIT_MEMORY_PRIORITY, ""))
		return api_fail(q->error, API_E_FORBIDDEN, "only root can set memory.priority");
	for (i = 0; i < daemon_n_devices(d); i++) {
		limits_resolve(limits, d->gpu->devices[i].uuid, d->gpu->devices[i].total_bytes,
			       &wanted);
		own_limits(d, q->peer.uid, i, &own);
		if (wanted.memory_low > own.memory_low)
			return api_fail(q->error, API_E_FORBIDDEN,
					"memory.low: only root can guarantee you more memory than "
					"your own memory.low");
		if (wanted.compute_weight > own.compute_weight)
			return api_fail(q->error, API_E_FORBIDDEN,
					"compute.weight: yours is %u, and only root can raise it",
					own.compute_weight);
	}
	return 0;
}

int change_check_lowered(struct daemon *d, const struct request *q, const struct tenant *t,
			 const struct limits *lowered)
{
	struct device_limits given, wanted;
	char text[QUANTITY_TEXT];
	unsigned i;
	size_t j;

	for (j = 0; j < lowered->n_settings; j++) {
		if (lowered->settings[j].id != LIMIT_MEMORY_MAX &&
		    lowered->settings[j].id != LIMIT_COMPUTE_MAX)
			return api_fail(
				q->error, API_E_FORBIDDEN,
				"you may lower memory.max and compute.max; %s is root's to set",
				limit_infos[lowered->settings[j].id].name);
	}
	if (lowered->n_gpus > 0)
		return api_fail(q->error, API_E_FORBIDDEN, "the devices are root's to choose");
	for (i = 0; i < daemon_n_devices(d); i++) {
		const struct gpu_device *g = &d->gpu->devices[i];

		/* Which devices it has is not asked for, and stays as it is. */
		if (!limits_may_use(&t->spec.limits, g->uuid))
			continue;
		limits_resolve(&t->spec.limits, g->uuid, g->total_bytes, &given);
		limits_resolve(lowered, g->uuid, g->total_bytes, &wanted);
		if (limits_find(lowered, LIMIT_MEMORY_MAX, g->uuid) &&
		    wanted.memory_max > given.memory_max)
			return api_fail(q->error, API_E_FORBIDDEN,
					"memory.max: yours is %s, and only root can raise it",
					size_print(given.memory_max, text));
		if (limits_find(lowered, LIMIT_COMPUTE_MAX, g->uuid) &&
		    wanted.compute_max_permille > given.compute_max_permille)
			return api_fail(q->error, API_E_FORBIDDEN,
					"compute.max: yours is %s, and only root can raise it",
					percent_print(given.compute_max_permille, text));
	}
	return 0;
}

int change_check_depth(struct daemon *d, const struct request *q, const char *cgroup)
{
	if (tenants_around(&d->tenants, cgroup) < TENANTS_OF_CGROUPS)
		return 0;
	api_fail(q->error, API_E_CONFLICT,
		 "%d tenants are around %.200s already, one in the other: no more can be kept to",
		 TENANTS_OF_CGROUPS, cgroup);
	return api_hint(q->error, "start it from outside of some of them, or release one");
}

/* What is inside a new tenant may have been as deep as can be before. */
static void warn_pushed_out(struct daemon *d, json_t *warnings, const struct tenant *around)
{
	const struct tenant *t;

	if (around->spec.match.kind != SELECT_CGROUP)
		return;
	for (t = d->tenants.first; t; t = t->next) {
		if (t != around && t->spec.match.kind == SELECT_CGROUP && *t->problem &&
		    cgroup_is_inside(t->spec.match.name, around->spec.match.name))
			json_array_append_new(warnings, json_sprintf("%s, which is inside: %s",
								     t->spec.name, t->problem));
	}
}

/* A process is of one tree: what was a tenant before stays one, and is not charged to the new one. */
static void warn_left_out(struct daemon *d, json_t *warnings, const struct tenant *above)
{
	const struct tenant *t;

	if (above->spec.match.kind != SELECT_PID)
		return;
	for (t = d->tenants.first; t; t = t->next) {
		if (t->spec.match.kind == SELECT_PID &&
		    process_is_below(t->spec.match.pid, above->spec.match.pid))
			json_array_append_new(
				warnings,
				json_sprintf(
					"%s, which process %d has started, is not charged to %s",
					t->spec.name, above->spec.match.pid, above->spec.name));
	}
}

/* Guarantees that add up to more than there is cannot all be kept. */
static void warn_guarantees(struct daemon *d, json_t *warnings, unsigned device)
{
	const struct gpu_device *g = &d->gpu->devices[device];
	char sum_text[QUANTITY_TEXT], total_text[QUANTITY_TEXT];
	struct device_limits limits;
	const struct tenant *t;
	uint64_t sum = 0, has = g->total_bytes - daemon_reserve(d, device);

	for (t = d->tenants.first; t; t = t->next) {
		/* What runs inside a user's guarantee, and templates, add nothing themselves. */
		if (t->origin == TENANT_OF_RUN && t->uid != TENANT_NO_OWNER && t->uid != 0)
			continue;
		if (t->spec.match.kind == SELECT_GROUP || t->spec.match.kind == SELECT_DEFAULT)
			continue;
		tenant_limits(&d->tenants, t, device, &limits);
		sum += limits.memory_low;
	}
	if (sum > has)
		json_array_append_new(
			warnings,
			json_sprintf(
				"the guarantees (memory.low) on device %u add up to %s, and it "
				"has %s: they cannot all be kept",
				device, size_print_short(sum, sum_text),
				size_print_short(has, total_text)));
}

json_t *change_warnings(struct daemon *d, const struct tenant *t)
{
	json_t *warnings = json_array();
	unsigned i;

	if (d->compute_reason && tenant_sets_compute(t))
		json_array_append_new(warnings,
				      json_sprintf("compute limits are kept and shown, but not "
						   "enforced: %s",
						   d->compute_reason));
	if (!d->engine)
		json_array_append_new(warnings, json_sprintf("nothing enforces limits here: %s",
							     d->engine_reason));
	if (*t->problem)
		json_array_append_new(warnings, json_sprintf("%s: %s", t->spec.name, t->problem));
	warn_pushed_out(d, warnings, t);
	warn_left_out(d, warnings, t);
	for (i = 0; i < daemon_n_devices(d); i++)
		warn_guarantees(d, warnings, i);
	return warnings;
}
