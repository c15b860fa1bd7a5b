// SPDX-License-Identifier: Apache-2.0
#include "ctl/vm-qemu.h"

#include "base/str.h"

/* As src/forward/virtio-abi.h says; the fs device has one queue more than it is told. */
#define DEVICE                                                                                     \
	"vhost-user-fs-pci,chardev=cotenant,tag=cotenant,num-request-queues=2,queue-size=1024,page-per-vq=on"

/* QEMU's own. */
#define DEFAULT_SIZE "128M"

#define N_ADDED 8

/* The value of an option given last, or NULL. Both -m and --m are understood. */
static const char *option_of(char *const *argv, const char *name)
{
	const char *found = NULL, *dash;

	for (; argv[0] && argv[1]; argv++) {
		dash = str_after(argv[0], "-");
		if (dash && (str_eq(dash, name) || (*dash == '-' && str_eq(dash + 1, name))))
			found = argv[1];
	}
	return found;
}

static bool names_backend(char *const *argv)
{
	for (; *argv; argv++)
		if (strstr(*argv, "memory-backend=") || strstr(*argv, "memdev="))
			return true;
	return false;
}

/* "2G", "size=2G,slots=2", "2048": of what has no unit it is MiB. The caller frees it. */
static char *memory_size(char *const *argv)
{
	const char *m = option_of(argv, "m"), *size;
	size_t n;

	if (!m)
		m = DEFAULT_SIZE;
	size = strstr(m, "size=");
	size = size && (size == m || size[-1] == ',') ? size + strlen("size=") : m;
	n = strcspn(size, ",");
	return str_format("%.*s%s", (int)n, size,
			  n && size[n - 1] >= '0' && size[n - 1] <= '9' ? "M" : "");
}

static void add(char **command, size_t *n, const char *option, char *value)
{
	command[(*n)++] = strdup(option);
	command[(*n)++] = value;
}

static bool is_whole(char **command, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!command[i])
			return false;
	return true;
}

char **vm_qemu_command(char *const *argv, const char *socket)
{
	_cleanup_free_ char *size = memory_size(argv);
	char **command;
	size_t i, n = 0;

	while (argv[n])
		n++;
	command = calloc(n + N_ADDED + 1, sizeof(*command));
	if (!command || !size) {
		free(command);
		return NULL;
	}
	for (i = 0; i < n; i++)
		command[i] = strdup(argv[i]);
	if (!names_backend(argv)) {
		add(command, &n, "-object",
		    str_format("memory-backend-memfd,id=cotenant-ram,size=%s,share=on", size));
		add(command, &n, "-machine", strdup("memory-backend=cotenant-ram"));
	}
	add(command, &n, "-chardev", str_format("socket,id=cotenant,path=%s", socket));
	add(command, &n, "-device", strdup(DEVICE));
	if (is_whole(command, n))
		return command;
	for (i = 0; i < n; i++)
		free(command[i]);
	free(command);
	return NULL;
}

void vm_qemu_free(char **command)
{
	char **word;

	for (word = command; word && *word; word++)
		free(*word);
	free(command);
}
