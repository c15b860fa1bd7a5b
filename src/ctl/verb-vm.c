/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant vm run, vm list: virtual machines whose CUDA calls are executed on the host.
 *
 * The broker and its workers are the tenant, QEMU is a command beside them. Limits are kept by the machine's
 * name: those of the command line are added when it starts, and what `cotenant set` changed while it ran is
 * kept when it ends.
 */
#include "ctl/broker.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "ctl/vm-qemu.h"
#include "ctl/vm-store.h"

#include "base/str.h"

#include <errno.h>
#include <sys/stat.h>

/* What the command line says goes over what is kept; a limit without a value is one no more. */
static void merge_limits(json_t *kept, const json_t *said)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)said, name, value) {
		if (*json_string_value(value))
			json_object_set(kept, name, value);
		else
			json_object_del(kept, name);
	}
}

static int complain(const struct ctl *ctl, const char *what, int error)
{
	fprintf(stderr, "cotenant %s: %s: %s\n", verbs[ctl->verb].name, what,
		strerrordesc_np(-error));
	return EXIT_NO_TENANT;
}

/* Return: 0, or EXIT_NO_TENANT; *ret is as @ctl with all limits that are to hold. */
static int take_limits(const struct ctl *ctl, const char *name, struct ctl *ret)
{
	json_t *vm = vm_store_load(name), *limits;

	if (!vm)
		return complain(ctl, "what is kept of this name cannot be read", -EBADMSG);
	limits = json_object_get(vm, "limits");
	if (!limits) {
		limits = json_object();
		json_object_set_new(vm, "limits", limits);
	}
	merge_limits(limits, ctl->limits);
	if (ctl->gpus)
		json_object_set(vm, "gpus", ctl->gpus);
	*ret = *ctl;
	ret->limits = json_incref(limits);
	ret->gpus = json_incref(json_object_get(vm, "gpus"));
	json_decref(vm);
	return 0;
}

/* Only what the daemon has taken: neither a typing error, nor what was said of a machine that runs already. */
static int keep_said(const struct ctl *ctl, const char *name)
{
	json_t *vm = json_pack("{s:O, s:O*}", "limits", ctl->limits, "gpus", ctl->gpus);
	int r = vm ? vm_store_save(name, vm) : -ENOMEM;

	json_decref(vm);
	return r < 0 ? complain(ctl, "its limits are not kept", r) : 0;
}

static void keep_limits(const struct ctl *ctl, const char *name)
{
	struct api_error error;
	json_t *tenant, *vm;

	if (api_request_json(ctl->socket, API_WITHIN_MS, API_TENANTS_SHOW,
			     json_pack("{s:s}", "tenant", name), &tenant, &error) < 0)
		return;
	vm = json_pack("{s:O, s:O}", "limits", json_object_get(tenant, "limits"), "gpus",
		       json_object_get(tenant, "gpus"));
	if (vm && vm_store_save(name, vm) < 0)
		fprintf(stderr, "cotenant: the limits of %s are not kept\n", name);
	json_decref(vm);
	json_decref(tenant);
}

/* QEMU, or where it is started by somebody else, the time until we are ended. */
static int machine_run(const struct ctl *ctl, struct broker *broker, const sigset_t *set,
		       const sigset_t *mask)
{
	char **command;
	pid_t child;
	int r;

	if (ctl->argc == 0) {
		r = child_wait(broker->pid, set, NULL, NULL);
		broker->pid = 0;
		return r;
	}
	command = vm_qemu_command(ctl->argv, broker->socket_path);
	child = command ? fork() : -1;
	if (child == 0)
		child_exec(ctl, command, mask);
	r = child < 0 ? EXIT_NOT_RUN : child_wait(child, set, NULL, NULL);
	vm_qemu_free(command);
	return r;
}

static int run(const struct ctl *ctl, const char *name)
{
	const char *listen = ctl_option(ctl, "listen");
	struct broker broker;
	sigset_t set, mask;
	int r;

	r = broker_init(ctl, &broker, listen);
	if (r == 0) {
		child_signals_block(&set, &mask);
		r = broker_start(ctl, &broker, "--vm", /* as_tenant= */ true, &mask);
	}
	if (r == 0)
		r = keep_said(ctl, name);
	/* QEMU of another user connects where the folder lets it. */
	if (r == 0 && listen && chmod(listen, 0666) < 0)
		r = complain(ctl, listen, -errno);
	if (r == 0) {
		r = machine_run(ctl, &broker, &set, &mask);
		keep_limits(ctl, name);
	}
	broker_end(ctl, &broker);
	return r;
}

int verb_vm_run(const struct ctl *ctl)
{
	const char *name = ctl_option(ctl, "name");
	struct ctl whole = {};
	int r;

	if (!name || !str_is_name(name))
		r = ctl_usage(ctl, "--name: say what to call the machine");
	else if (ctl->argc == 0 && !ctl_option(ctl, "listen"))
		r = ctl_usage(
			ctl,
			"say QEMU's command behind --, or --listen where it is started elsewhere");
	else
		r = 0;
	if (r)
		return EXIT_NO_TENANT;
	r = take_limits(ctl, name, &whole);
	if (r == 0)
		r = run(&whole, name);
	json_decref(whole.limits);
	json_decref(whole.gpus);
	return r;
}

/* Those that run have a tenant, with what holds now. */
static json_t *running_tenants(const struct ctl *ctl)
{
	struct api_error error;
	json_t *reply;

	if (api_request_json(ctl->socket, API_WITHIN_MS, API_TENANTS_LIST, json_object(), &reply,
			     &error) < 0)
		return json_object();
	return reply;
}

static json_t *find_tenant(const json_t *reply, const char *name)
{
	json_t *tenant;
	size_t i;

	json_array_foreach(json_object_get(reply, "tenants"), i, tenant) {
		if (str_eq(json_string_value(json_object_get(tenant, "tenant")), name))
			return tenant;
	}
	return NULL;
}

static json_t *memory_of(const json_t *tenant)
{
	json_t *device;
	json_int_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(tenant, "devices"), i, device)
		sum += json_integer_value(json_object_get(device, "memory.current"));
	return tenant ? json_integer(sum) : json_null();
}

static json_t *machines(const struct ctl *ctl)
{
	json_t *kept = vm_store_list(), *reply = running_tenants(ctl), *list = json_array();
	json_t *vm, *tenant;
	const char *name;

	json_object_foreach(kept, name, vm) {
		tenant = find_tenant(reply, name);
		json_array_append_new(
			list, json_pack("{s:s, s:b, s:o, s:O*}", "name", name, "running",
					tenant != NULL, "memory.current", memory_of(tenant),
					"limits", json_object_get(tenant ? tenant : vm, "limits")));
	}
	json_decref(kept);
	json_decref(reply);
	return list;
}

/* "memory.max=2G compute.max=10%" */
static char *limits_text(const json_t *limits)
{
	struct text text = { 0 };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)limits, name, value)
		text_addf(&text, "%s%s=%s", text.len ? " " : "", name, json_string_value(value));
	return text_take(&text);
}

int verb_vm_list(const struct ctl *ctl)
{
	_cleanup_(table_done) struct table table = {};
	json_t *list, *vm;
	size_t i;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments");
	list = machines(ctl);
	if (ctl->json)
		return ctl_print_json(json_pack("{s:o}", "machines", list));
	table_begin(&table, "MACHINE", "STATE", "CURRENT", "LIMITS", NULL);
	json_array_foreach(list, i, vm)
		table_add(&table, cell_text(json_object_get(vm, "name")),
			  strdup(json_is_true(json_object_get(vm, "running")) ? "running" : "off"),
			  cell_size(json_object_get(vm, "memory.current")),
			  limits_text(json_object_get(vm, "limits")));
	table_print(&table);
	json_decref(list);
	return 0;
}
