/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant set, adopt, release: what changes tenants. */
#include "ctl/ctl.h"
#include "ctl/table.h"

/* memory.max=4G; without a value the limit goes. */
static void take_assignment(const struct ctl *ctl, const char *text)
{
	const char *equals = strchr(text, '=');
	_cleanup_free_ char *key = strndup(text, equals - text);

	json_object_set_new(ctl->limits, key, equals[1] ? json_string(equals + 1) : json_null());
}

/*
 * What stands before the first LIMIT=VALUE is the tenant.
 *
 * Return: 0, or 2.
 */
static int take_arguments(const struct ctl *ctl, const char **ret_tenant)
{
	int i;

	for (i = 0; i < ctl->argc; i++) {
		if (strchr(ctl->argv[i], '=')) {
			take_assignment(ctl, ctl->argv[i]);
			continue;
		}
		if (*ret_tenant)
			return ctl_usage(ctl, "'%s' is not LIMIT=VALUE", ctl->argv[i]);
		*ret_tenant = ctl->argv[i];
	}
	return 0;
}

static json_t *change_args(const struct ctl *ctl, const char *tenant, const char *match)
{
	json_t *args = json_pack("{s:s*, s:s*, s:O}", "tenant", tenant, "match", match, "limits",
				 ctl->limits);

	if (ctl->gpus)
		json_object_set(args, "gpu", ctl->gpus);
	return args;
}

static int finish_change(const struct ctl *ctl, json_t *reply)
{
	const json_t *tenant = json_object_get(reply, "tenant"), *limits, *adopted, *a;
	char *bytes;
	const char *key;
	json_t *value;
	size_t i;

	ctl_warn(reply);
	if (ctl->json)
		return ctl_print_json(reply);
	limits = json_object_get(tenant, "limits");
	printf("%s (%s):", json_string_value(json_object_get(tenant, "tenant")),
	       json_string_value(json_object_get(tenant, "match")));
	json_object_foreach((json_t *)limits, key, value)
		printf(" %s=%s", key, json_string_value(value));
	json_object_foreach(json_object_get(tenant, "lowered"), key, value)
		printf(" %s=%s (lowered)", key, json_string_value(value));
	printf("%s\n", json_object_size(limits) ? "" : " no limits");
	adopted = json_object_get(reply, "adopted");
	json_array_foreach(adopted, i, a) {
		bytes = cell_size(json_object_get(a, "bytes"));
		printf("  process %lld with %s\n",
		       (long long)json_integer_value(json_object_get(a, "pid")),
		       bytes ? bytes : "-");
		free(bytes);
	}
	json_decref(reply);
	return 0;
}

static int set_device(const struct ctl *ctl)
{
	const char *text = ctl->argc == 1 ? str_after(ctl->argv[0], "memory.reserve=") : NULL;
	json_t *reply;

	if (!text)
		return ctl_usage(ctl, "of a device, memory.reserve=SIZE can be set");
	if (ctl_call(ctl, API_DEVICES_SET,
		     json_pack("{s:s, s:s}", "gpu", ctl_option(ctl, "device"), "memory.reserve",
			       text),
		     &reply))
		return 1;
	if (ctl->json)
		return ctl_print_json(reply);
	printf("device %lld keeps %s back\n",
	       (long long)json_integer_value(json_object_get(reply, "gpu")), text);
	json_decref(reply);
	return 0;
}

int verb_set(const struct ctl *ctl)
{
	const char *tenant = ctl_option(ctl, "name");
	_cleanup_free_ char *match = NULL;
	json_t *reply;
	int r;

	if (ctl_option(ctl, "device"))
		return set_device(ctl);
	r = ctl_match(ctl, &match);
	if (r == 0)
		r = take_arguments(ctl, &tenant);
	if (r)
		return r;
	if (!match && !tenant)
		return ctl_usage(ctl,
				 "say whose limits: a tenant's name, --user, --group, --cgroup, "
				 "--pid or --default");
	if (json_object_size(ctl->limits) == 0 && !ctl->gpus && !match)
		return ctl_usage(ctl, "say what to set, such as memory.max=4G");
	if (ctl_call(ctl, API_TENANTS_SET, change_args(ctl, tenant, match), &reply))
		return 1;
	return finish_change(ctl, reply);
}

int verb_adopt(const struct ctl *ctl)
{
	const char *tenant = ctl_option(ctl, "name");
	_cleanup_free_ char *match = NULL;
	json_t *reply;
	int r;

	r = ctl_match(ctl, &match);
	if (r == 0)
		r = take_arguments(ctl, &tenant);
	if (r)
		return r;
	if (!match)
		return ctl_usage(ctl, "say whom: --pid, --user or --cgroup");
	if (ctl_call(ctl, API_TENANTS_ADOPT, change_args(ctl, tenant, match), &reply))
		return 1;
	return finish_change(ctl, reply);
}

int verb_release(const struct ctl *ctl)
{
	json_t *reply, *released = json_array();
	int i, r = 0;

	if (ctl->argc == 0) {
		json_decref(released);
		return ctl_usage(ctl, "say which tenant");
	}
	for (i = 0; i < ctl->argc; i++) {
		if (ctl_call(ctl, API_TENANTS_RELEASE, json_pack("{s:s}", "tenant", ctl->argv[i]),
			     &reply)) {
			r = 1;
			continue;
		}
		json_array_append(released, json_object_get(reply, "released"));
		if (!ctl->json)
			printf("released %s\n", ctl->argv[i]);
		json_decref(reply);
	}
	if (ctl->json)
		ctl_print_json(json_pack("{s:o}", "released", released));
	else
		json_decref(released);
	return r;
}
