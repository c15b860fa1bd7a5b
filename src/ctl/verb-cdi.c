/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant cdi: the devices as a CDI specification, by which container engines give them
 * to a container together with the driver's libraries and our hook.
 */
#include "ctl/ctl.h"

#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#define CDI_VERSION "0.5.0"
#define CDI_KIND    "cotenant.dev/gpu"

/* What a program needs of the driver; where a build has none of one, it is left out. */
static const char *const libraries[] = {
	"libcuda.so.1",
	"libnvidia-ml.so.1",
	"libnvidia-ptxjitcompiler.so.1",
	"libnvidia-nvvm.so.4",
};

/* Device files that belong to no device by itself. */
static const char *const common_nodes[] = {
	"/dev/nvidiactl",
	"/dev/nvidia-uvm",
	"/dev/nvidia-uvm-tools",
};

/* Where the loader looks anyway, in the containers of most distributions. */
static const char *const loader_dirs[] = { "/lib",
					   "/usr/lib",
					   "/lib64",
					   "/usr/lib64",
					   "/lib/x86_64-linux-gnu",
					   "/usr/lib/x86_64-linux-gnu" };

static void add_node(json_t *edits, const char *path)
{
	json_t *nodes = json_object_get(edits, "deviceNodes");

	if (access(path, F_OK) < 0)
		return;
	if (!nodes) {
		nodes = json_array();
		json_object_set_new(edits, "deviceNodes", nodes);
	}
	json_array_append_new(nodes, json_pack("{s:s}", "path", path));
}

/* A container is told its devices by UUID: a specification without any edit is not one. */
static void add_device_edits(json_t *edits, const json_t *device)
{
	json_int_t index = json_integer_value(json_object_get(device, "gpu"));
	json_t *env = json_object_get(edits, "env");
	char node[64];

	snprintf(node, sizeof(node), "/dev/nvidia%lld", (long long)index);
	add_node(edits, node);
	if (!env) {
		env = json_array();
		json_object_set_new(edits, "env", env);
	}
	json_array_append_new(env,
			      json_sprintf("COTENANT_DEVICE_%lld=%s", (long long)index,
					   json_string_value(json_object_get(device, "UUID"))));
}

static json_t *device_named(const char *name, json_t *edits)
{
	return json_pack("{s:s, s:O}", "name", name, "containerEdits", edits);
}

/* Each by its index and by its UUID, and all of them. */
static json_t *devices_json(const json_t *devices)
{
	json_t *list = json_array(), *all = json_object(), *edits, *device;
	char name[24];
	size_t i;

	json_array_foreach(devices, i, device) {
		edits = json_object();
		add_device_edits(edits, device);
		add_device_edits(all, device);
		snprintf(name, sizeof(name), "%zu", i);
		json_array_append_new(list, device_named(name, edits));
		json_array_append_new(
			list,
			device_named(json_string_value(json_object_get(device, "UUID")), edits));
		json_decref(edits);
	}
	if (json_array_size(devices) > 0)
		json_array_append_new(list, device_named("all", all));
	json_decref(all);
	return list;
}

/* The file that a name stands for today: a driver's update needs a new specification. */
static json_t *mounts_json(const char *dir)
{
	json_t *list = json_array();
	char real[PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(libraries); i++) {
		_cleanup_free_ char *path = str_format("%s/%s", dir, libraries[i]);

		if (path && realpath(path, real))
			json_array_append_new(list,
					      json_pack("{s:s, s:s, s:[ssss]}", "hostPath", real,
							"containerPath", path, "options", "ro",
							"nosuid", "nodev", "bind"));
	}
	return list;
}

static bool is_loader_dir(const char *dir)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(loader_dirs); i++) {
		if (str_eq(dir, loader_dirs[i]))
			return true;
	}
	return false;
}

static json_t *hook_json(const struct ctl *ctl)
{
	char self[PATH_MAX] = "/usr/bin/cotenant";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	json_t *args = json_pack("[ss]", "cotenant", "oci-hook");

	if (n > 0)
		self[n] = '\0';
	if (!str_eq(ctl->socket, API_DEFAULT_SOCKET)) {
		json_array_append_new(args, json_string("--socket"));
		json_array_append_new(args, json_string(ctl->socket));
	}
	return json_pack("{s:s, s:s, s:o}", "hookName", "createRuntime", "path", self, "args",
			 args);
}

static json_t *common_edits(const struct ctl *ctl, const char *library_dir)
{
	json_t *edits = json_pack("{s:[o]}", "hooks", hook_json(ctl));
	size_t i;

	for (i = 0; i < ARRAY_SIZE(common_nodes); i++)
		add_node(edits, common_nodes[i]);
	if (!library_dir || !*library_dir)
		return edits;
	json_object_set_new(edits, "mounts", mounts_json(library_dir));
	if (!is_loader_dir(library_dir))
		json_object_set_new(
			edits, "env",
			json_pack("[o]", json_sprintf("LD_LIBRARY_PATH=%s", library_dir)));
	return edits;
}

static int write_spec(_unused_ const struct ctl *ctl, const char *path, json_t *spec)
{
	_cleanup_free_ char *text = json_dumps(spec, JSON_INDENT(2)), *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	int r = text && dir ? 0 : -ENOMEM;

	json_decref(spec);
	if (r == 0 && slash && slash != dir) {
		*slash = '\0';
		r = fd_mkdir_parents(dir, 0755);
	}
	if (r == 0)
		r = file_replace(path, text, strlen(text), 0644);
	if (r < 0)
		fprintf(stderr, "cotenant cdi: cannot write %s: %s\n", path, strerrordesc_np(-r));
	return r < 0 ? 1 : 0;
}

int verb_cdi(const struct ctl *ctl)
{
	const char *output = ctl_option(ctl, "output");
	json_t *reply, *spec;

	if (ctl->argc > 0)
		return ctl_usage(ctl, "takes no arguments");
	if (ctl_call(ctl, API_DEVICES_LIST, NULL, &reply))
		return 1;
	spec = json_pack(
		"{s:s, s:s, s:o, s:o}", "cdiVersion", CDI_VERSION, "kind", CDI_KIND, "devices",
		devices_json(json_object_get(reply, "devices")), "containerEdits",
		common_edits(ctl, json_string_value(json_object_get(reply, "library_dir"))));
	json_decref(reply);
	return output ? write_spec(ctl, output, spec) : ctl_print_json(spec);
}
