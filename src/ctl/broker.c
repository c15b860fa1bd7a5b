// SPDX-License-Identifier: Apache-2.0
#include "ctl/broker.h"

#include "ctl/child.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int fail(const struct ctl *ctl, int error)
{
	fprintf(stderr, "cotenant %s: %s\n", verbs[ctl->verb].name, strerrordesc_np(-error));
	return EXIT_NO_TENANT;
}

/* Beside this program where it was built, else where it was installed to. */
static int find_parts(struct broker *b)
{
	_cleanup_free_ char *built = NULL;
	char self[4096], *slash;
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return -errno;
	self[n] = '\0';
	slash = strrchr(self, '/');
	*slash = '\0';
	b->program = str_format("%s/cotenant-vm", self);
	built = str_format("%s/../forward/libcuda.so.1", self);
	if (built && access(built, R_OK) == 0) {
		b->worker = str_format("%s/cotenant-worker", self);
		b->library_dir = str_format("%s/../forward", self);
	} else {
		b->worker = strdup(FORWARD_WORKER);
		b->library_dir = strdup(FORWARD_LIBRARY_DIR);
	}
	return b->program && b->worker && b->library_dir ? 0 : -ENOMEM;
}

static int make_dir(struct broker *b)
{
	strcpy(b->dir, "/tmp/cotenant-forward.XXXXXX");
	if (!mkdtemp(b->dir)) {
		b->dir[0] = '\0';
		return -errno;
	}
	b->socket_path = str_format("%s/socket", b->dir);
	return b->socket_path ? 0 : -ENOMEM;
}

int broker_init(const struct ctl *ctl, struct broker *b, const char *socket_path)
{
	int r;

	*b = (struct broker){ .ready = -1 };
	r = find_parts(b);
	if (r == 0 && socket_path) {
		b->socket_path = strdup(socket_path);
		r = b->socket_path ? 0 : -ENOMEM;
	} else if (r == 0) {
		r = make_dir(b);
	}
	return r < 0 ? fail(ctl, r) : 0;
}

static _Noreturn void broker_main(const struct ctl *ctl, const struct broker *b, const char *option,
				  int door, int ready, const sigset_t *mask)
{
	char *argv[] = { b->program, (char *)option, b->socket_path, "--worker", b->worker, NULL };
	char go;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (read(door, &go, 1) != 1 || dup2(ready, STDOUT_FILENO) < 0)
		_exit(EXIT_NO_TENANT);
	/* The terminal's ^C is for the command; the broker ends behind it. */
	setpgid(0, 0);
	child_exec(ctl, argv, mask);
}

/* Return: did it say that it listens? */
static bool is_ready(struct broker *b)
{
	char line[16];

	return read(b->ready, line, sizeof(line)) > 0;
}

/* It begins only when it is a tenant, if it is to be one. */
int broker_start(const struct ctl *ctl, struct broker *b, const char *option, bool as_tenant,
		 const sigset_t *mask)
{
	_cleanup_close_ int door_in = -1, door_out = -1, ready_in = -1, ready_out = -1;
	int door[2], ready[2], r = 0;

	if (pipe2(door, O_CLOEXEC) < 0)
		return fail(ctl, -errno);
	door_in = door[0];
	door_out = door[1];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return fail(ctl, -errno);
	ready_in = ready[0];
	ready_out = ready[1];
	b->pid = fork();
	if (b->pid < 0)
		return fail(ctl, -errno);
	if (b->pid == 0) {
		close(TAKE_FD(door_out));
		broker_main(ctl, b, option, door_in, ready_out, mask);
	}
	if (as_tenant)
		r = child_tenant_begin(ctl, b->pid, ctl->argc ? ctl->argv[0] : "vm", &b->tenant);
	if (r != 0 || write(door_out, "g", 1) != 1)
		return EXIT_NO_TENANT;
	b->ready = TAKE_FD(ready_in);
	close(TAKE_FD(ready_out));
	if (is_ready(b))
		return 0;
	fprintf(stderr, "cotenant %s: the broker does not start\n", verbs[ctl->verb].name);
	return EXIT_NO_TENANT;
}

void broker_end(const struct ctl *ctl, struct broker *b)
{
	if (b->pid > 0) {
		kill(b->pid, SIGTERM);
		waitpid(b->pid, NULL, 0);
	}
	child_tenant_forget(ctl, b->tenant);
	if (b->socket_path)
		unlink(b->socket_path);
	if (b->dir[0])
		rmdir(b->dir);
	if (b->ready >= 0)
		close(b->ready);
	free(b->socket_path);
	free(b->program);
	free(b->worker);
	free(b->library_dir);
	free(b->tenant);
}
