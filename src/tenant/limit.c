/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/limit.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>

const struct limit_info limit_infos[N_LIMITS] = {
#define LIMIT(id, name, kind, scope, metavar, help)                                                \
	[LIMIT_##id] = { name, LIMIT_##kind, LIMIT_##scope, metavar, help },
#include "tenant/limits.def"
#undef LIMIT
};

static const char *const on_failure_names[] = {
	[ON_FAILURE_KILL] = "kill",
	[ON_FAILURE_ALLOW] = "allow",
	[ON_FAILURE_DENY] = "deny",
};

static int refuse(char reason[LIMIT_REASON_SIZE], const char *fmt, ...) PRINTF(2, 3);

static int refuse(char reason[LIMIT_REASON_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, LIMIT_REASON_SIZE, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_size(const char *text, struct limit_value *ret)
{
	uint32_t permille;
	int r;

	if (!strchr(text, '%'))
		return size_parse(text, &ret->number);
	r = percent_parse(text, &permille);
	if (r < 0)
		return r;
	ret->number = permille;
	ret->is_part = true;
	return 0;
}

static int parse_weight(const char *text, uint64_t *ret)
{
	int r = str_parse_u64(text, ret);

	if (r == 0 && (*ret < 1 || *ret > 10000))
		r = -ERANGE;
	return r;
}

static int parse_share(const char *text, uint64_t *ret)
{
	uint32_t permille;
	int r;

	if (str_eq(text, "max")) {
		*ret = QUANTITY_MAX;
		return 0;
	}
	r = percent_parse(text, &permille);
	if (r == 0)
		*ret = permille;
	return r;
}

static int parse_choice(const char *text, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(on_failure_names); i++) {
		if (str_eq(text, on_failure_names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* A setting is one number: both steps are in it. */
static uint64_t ladder_number(struct ladder ladder)
{
	return ladder.from * N_LADDER_STEPS + ladder.to;
}

static struct ladder ladder_of_number(uint64_t number)
{
	return (struct ladder){ number / N_LADDER_STEPS, number % N_LADDER_STEPS };
}

static int parse_ladder(const char *text, uint64_t *ret)
{
	struct ladder ladder;
	int r = ladder_parse(text, &ladder);

	if (r == 0)
		*ret = ladder_number(ladder);
	return r;
}

/* What would have been right, by kind. */
static const char *const kind_examples[] = {
	[LIMIT_SIZE] = "a size such as 4G, 512MiB or 50%, or max",
	[LIMIT_DURATION] = "a time such as 30s, 500ms or 2m, or max",
	[LIMIT_WEIGHT] = "a number from 1 to 10000",
	[LIMIT_SHARE] = "per cent from 0 to 100, or max",
	[LIMIT_CHOICE] = "kill, allow or deny",
	[LIMIT_LADDER] = "warn, suspend, evict or kill, or from one to a later one: suspend-kill",
};

int limit_value_parse(enum limit_id id, const char *text, struct limit_value *ret,
		      char reason[LIMIT_REASON_SIZE])
{
	const struct limit_info *info = &limit_infos[id];
	struct limit_value v = {};
	int r = -EINVAL;

	switch (info->kind) {
	case LIMIT_SIZE:
		r = parse_size(text, &v);
		break;
	case LIMIT_DURATION:
		r = duration_parse(text, &v.number);
		break;
	case LIMIT_WEIGHT:
		r = parse_weight(text, &v.number);
		break;
	case LIMIT_SHARE:
		r = parse_share(text, &v.number);
		break;
	case LIMIT_CHOICE:
		r = parse_choice(text, &v.number);
		break;
	case LIMIT_LADDER:
		r = parse_ladder(text, &v.number);
		break;
	}
	if (r < 0)
		return refuse(reason, "%s: '%.60s' is not %s", info->name, text,
			      kind_examples[info->kind]);
	*ret = v;
	return 0;
}

const char *limit_value_print(enum limit_id id, const struct limit_value *value,
			      char buf[QUANTITY_TEXT])
{
	if (value->is_part)
		return percent_print(value->number, buf);
	switch (limit_infos[id].kind) {
	case LIMIT_SIZE:
		return size_print(value->number, buf);
	case LIMIT_DURATION:
		return duration_print(value->number, buf);
	case LIMIT_WEIGHT:
		snprintf(buf, QUANTITY_TEXT, "%llu", (unsigned long long)value->number);
		return buf;
	case LIMIT_SHARE:
		return value->number == QUANTITY_MAX ? "max" : percent_print(value->number, buf);
	case LIMIT_CHOICE:
		return on_failure_names[value->number];
	case LIMIT_LADDER:
		return ladder_print(ladder_of_number(value->number), buf);
	}
	return "?";
}

bool device_uuid_ok(const char *uuid)
{
	const char *s = uuid;

	if (!str_after(s, "GPU-") && !str_after(s, "MIG-"))
		return false;
	for (; *s; s++) {
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-/", *s))
			return false;
	}
	return s - uuid > 4 && s - uuid < DEVICE_UUID_SIZE;
}

int limit_key_parse(const char *key, enum limit_id *ret_id, char ret_device[DEVICE_UUID_SIZE],
		    char reason[LIMIT_REASON_SIZE])
{
	size_t i, n = strcspn(key, "@");
	const char *device = key[n] ? key + n + 1 : NULL;

	for (i = 0; i < N_LIMITS; i++) {
		if (strlen(limit_infos[i].name) == n && strncmp(limit_infos[i].name, key, n) == 0)
			break;
	}
	if (i == N_LIMITS)
		return refuse(reason, "there is no limit '%.60s'; `cotenant help set` lists them",
			      key);
	if (device && limit_infos[i].scope != LIMIT_PER_DEVICE)
		return refuse(reason, "%s is the same on every device: write it without '@'",
			      limit_infos[i].name);
	if (device && !device_uuid_ok(device))
		return refuse(reason,
			      "%s: '%.90s' is not the UUID of a device (GPU-... or MIG-...)",
			      limit_infos[i].name, device);
	*ret_id = i;
	str_copy(ret_device, DEVICE_UUID_SIZE, device ? device : "");
	return 0;
}

char *limit_key_print(const struct limit_setting *setting)
{
	return str_format("%s%s%s", limit_infos[setting->id].name, *setting->device ? "@" : "",
			  setting->device);
}

static struct limit_setting *find_exact(const struct limits *limits, enum limit_id id,
					const char *device)
{
	size_t i;

	for (i = 0; i < limits->n_settings; i++) {
		if (limits->settings[i].id == id && str_eq(limits->settings[i].device, device))
			return &limits->settings[i];
	}
	return NULL;
}

int limits_set(struct limits *limits, const struct limit_setting *setting)
{
	struct limit_setting *old = find_exact(limits, setting->id, setting->device), *p;

	if (old) {
		*old = *setting;
		return 0;
	}
	p = reallocarray(limits->settings, limits->n_settings + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	limits->settings = p;
	p[limits->n_settings++] = *setting;
	return 0;
}

void limits_unset(struct limits *limits, enum limit_id id, const char *device)
{
	struct limit_setting *old = find_exact(limits, id, device);
	struct limit_setting *end = limits->settings + limits->n_settings;

	if (!old)
		return;
	memmove(old, old + 1, (end - old - 1) * sizeof(*old));
	limits->n_settings--;
}

const struct limit_setting *limits_find(const struct limits *limits, enum limit_id id,
					const char *device)
{
	const struct limit_setting *own = find_exact(limits, id, device);

	return own ? own : find_exact(limits, id, "");
}

int limits_set_gpus(struct limits *limits, const char *text, char reason[LIMIT_REASON_SIZE])
{
	_cleanup_free_ char(*gpus)[DEVICE_UUID_SIZE] = NULL;
	_cleanup_free_ char *copy = strdup(text);
	char *uuid, *state = NULL;
	size_t n = 0;
	void *p;

	if (!copy)
		return -ENOMEM;
	for (uuid = strtok_r(copy, " ,\t", &state); uuid; uuid = strtok_r(NULL, " ,\t", &state)) {
		if (!device_uuid_ok(uuid))
			return refuse(reason, "gpu: '%.90s' is not the UUID of a device", uuid);
		p = reallocarray(gpus, n + 1, sizeof(*gpus));
		if (!p)
			return -ENOMEM;
		gpus = p;
		str_copy(gpus[n++], sizeof(*gpus), uuid);
	}
	free(limits->gpus);
	limits->gpus = TAKE_PTR(gpus);
	limits->n_gpus = n;
	return 0;
}

int limits_check(const struct limits *limits, char reason[LIMIT_REASON_SIZE])
{
	const struct limit_setting *low, *max;
	char low_text[QUANTITY_TEXT], max_text[QUANTITY_TEXT];
	size_t i;

	for (i = 0; i < limits->n_settings; i++) {
		if (limits->settings[i].id != LIMIT_MEMORY_LOW &&
		    limits->settings[i].id != LIMIT_MEMORY_MAX)
			continue;
		low = limits_find(limits, LIMIT_MEMORY_LOW, limits->settings[i].device);
		max = limits_find(limits, LIMIT_MEMORY_MAX, limits->settings[i].device);
		/* A part of a device compares with bytes only where the device is known. */
		if (!low || !max || low->value.is_part != max->value.is_part)
			continue;
		if (low->value.number > max->value.number)
			return refuse(reason,
				      "memory.low (%s) is above memory.max (%s): lower the one or "
				      "raise the other",
				      limit_value_print(LIMIT_MEMORY_LOW, &low->value, low_text),
				      limit_value_print(LIMIT_MEMORY_MAX, &max->value, max_text));
	}
	return 0;
}

static uint64_t resolve(const struct limits *limits, enum limit_id id, const char *device,
			uint64_t total_bytes, uint64_t without)
{
	const struct limit_setting *s = limits_find(limits, id, device);

	if (!s)
		return without;
	if (s->value.is_part)
		return (unsigned __int128)total_bytes * s->value.number / 1000;
	return s->value.number;
}

bool limits_may_use(const struct limits *limits, const char *device)
{
	size_t i;

	for (i = 0; i < limits->n_gpus; i++) {
		if (str_eq(limits->gpus[i], device))
			return true;
	}
	return limits->n_gpus == 0;
}

void limits_resolve(const struct limits *limits, const char *device, uint64_t total_bytes,
		    struct device_limits *ret)
{
	const struct limit_setting *wait = limits_find(limits, LIMIT_MEMORY_WAIT, device);
	uint64_t share;

	ret->has_request = limits_find(limits, LIMIT_MEMORY_LOW, device) != NULL;
	ret->memory_low = resolve(limits, LIMIT_MEMORY_LOW, device, total_bytes, 0);
	ret->memory_max = resolve(limits, LIMIT_MEMORY_MAX, device, total_bytes, QUANTITY_MAX);
	if (!limits_may_use(limits, device)) {
		ret->has_request = false;
		ret->memory_low = 0;
		ret->memory_max = 0;
	}
	ret->wait_max_ms = wait ? wait->value.number : 0;
	ret->wait_low_ms = wait ? wait->value.number : LIMIT_DEFAULT_WAIT_LOW_MS;
	ret->ladder = ladder_of_number(
		resolve(limits, LIMIT_MEMORY_POLICY, device, 0,
			ladder_number((struct ladder){ LADDER_WARN, LADDER_WARN })));
	ret->grace_ms = resolve(limits, LIMIT_MEMORY_GRACE, device, 0, LIMIT_DEFAULT_GRACE_MS);
	ret->priority = resolve(limits, LIMIT_MEMORY_PRIORITY, device, 0, LIMIT_DEFAULT_PRIORITY);
	ret->compute_weight =
		resolve(limits, LIMIT_COMPUTE_WEIGHT, device, 0, LIMIT_DEFAULT_WEIGHT);
	share = resolve(limits, LIMIT_COMPUTE_MAX, device, 0, QUANTITY_MAX);
	ret->compute_max_permille = MIN(share, (uint64_t)1000);
	ret->on_failure = resolve(limits, LIMIT_ON_FAILURE, device, 0, ON_FAILURE_KILL);
}

int limits_copy(const struct limits *from, struct limits *ret)
{
	struct limits copy = { .n_settings = from->n_settings, .n_gpus = from->n_gpus };

	copy.settings = calloc(from->n_settings + 1, sizeof(*copy.settings));
	copy.gpus = calloc(from->n_gpus + 1, sizeof(*copy.gpus));
	if (!copy.settings || !copy.gpus) {
		limits_done(&copy);
		return -ENOMEM;
	}
	if (from->n_settings)
		memcpy(copy.settings, from->settings, from->n_settings * sizeof(*copy.settings));
	if (from->n_gpus)
		memcpy(copy.gpus, from->gpus, from->n_gpus * sizeof(*copy.gpus));
	*ret = copy;
	return 0;
}

void limits_done(struct limits *limits)
{
	free(limits->settings);
	free(limits->gpus);
	memset(limits, 0, sizeof(*limits));
}
