// SPDX-License-Identifier: Apache-2.0
/*
 * What cotenantd asks of systemd, on a socket of its own: fake-systemd SOCKET CGROUP-ROOT
 *
 * It answers StartTransientUnit by making the scope's cgroup below its slice and moving the processes
 * there, and prints a line for each: unit, slice, process. There is no bus between: the one who
 * connects takes this for the bus.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

static const char *root;

static int on_hello(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error)
{
	return sd_bus_reply_method_return(m, "s", ":1.1");
}

/* "user-1000.slice" lies in "user.slice". */
static void slice_path(const char *slice, char *ret, size_t cap)
{
	size_t at = 0;
	const char *dash;

	for (dash = strchr(slice, '-'); dash; dash = strchr(dash + 1, '-'))
		at += snprintf(ret + at, cap - at, "/%.*s.slice", (int)(dash - slice), slice);
	snprintf(ret + at, cap - at, "/%s", slice);
}

static void make_dirs(char *path)
{
	for (char *p = strchr(path + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	mkdir(path, 0755);
}

static int move(const char *unit, const char *slice, unsigned pid)
{
	char in_slice[256], path[1024], procs[1100];
	FILE *f;

	slice_path(slice, in_slice, sizeof(in_slice));
	snprintf(path, sizeof(path), "%s%s/%s", root, in_slice, unit);
	make_dirs(path);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "we");
	if (!f)
		return -errno;
	fprintf(f, "%u", pid);
	printf("%s %s %u\n", unit, slice, pid);
	return fclose(f) == 0 ? 0 : -errno;
}

/* PIDs and Slice are what is looked at. */
static int read_properties(sd_bus_message *m, const char **ret_slice, uint32_t *ret_pid)
{
	const char *name, *contents;
	const void *pids;
	size_t n;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "(sv)");
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0)
			r = sd_bus_message_peek_type(m, NULL, &contents);
		if (r >= 0)
			r = sd_bus_message_enter_container(m, 'v', contents);
		if (r >= 0 && strcmp(name, "PIDs") == 0) {
			r = sd_bus_message_read_array(m, 'u', &pids, &n);
			if (r >= 0 && n > 0)
				memcpy(ret_pid, pids, sizeof(*ret_pid));
		} else if (r >= 0) {
			r = sd_bus_message_read(m, "s", &contents);
			if (r >= 0 && strcmp(name, "Slice") == 0)
				*ret_slice = contents;
		}
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

static int on_start_unit(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error)
{
	const char *unit, *mode, *slice = "system.slice";
	uint32_t pid = 0;
	int r;

	r = sd_bus_message_read(m, "ss", &unit, &mode);
	if (r >= 0)
		r = read_properties(m, &slice, &pid);
	if (r >= 0)
		r = move(unit, slice, pid);
	if (r < 0)
		return r;
	return sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/1");
}

static const sd_bus_vtable bus_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Hello", "", "s", on_hello, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", on_start_unit,
		      SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

/* One client, until it goes. */
static int serve(int fd)
{
	sd_bus *bus = NULL;
	sd_id128_t id;
	int r;

	r = sd_id128_randomize(&id);
	if (r >= 0)
		r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_fd(bus, fd, fd);
	if (r >= 0)
		r = sd_bus_set_server(bus, 1, id);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/DBus",
					     "org.freedesktop.DBus", bus_vtable, NULL);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
					     "org.freedesktop.systemd1.Manager", manager_vtable,
					     NULL);
	if (r >= 0)
		r = sd_bus_start(bus);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	sd_bus_unref(bus);
	return r;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	root = argv[2];
	strcpy(address.sun_path, argv[1]);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 4) < 0)
		return 1;
	printf("listening\n");
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve(fd);
	return 1;
}
