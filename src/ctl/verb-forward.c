/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant forward: a command whose CUDA calls are executed by processes beside it.
 *
 * The command gets a libcuda.so.1 that sends its calls to a broker, which starts a worker for each process
 * of the command. Broker and workers are the tenant: limits hold for what they do on the device. The
 * command itself needs no device file.
 */
#include "ctl/child.h"
#include "ctl/ctl.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/**
 * struct forward - what a run of the verb has made
 * @dir:	holds the broker's socket
 * @ready:	the broker writes a line here when it listens
 */
struct forward {
	char dir[32];
	char *socket_path;
	char *broker;
	char *worker;
	char *library_dir;
	pid_t pid;
	int ready;
	char *tenant;
};

static char *join(const char *a, const char *b)
{
	struct text t = { 0 };

	text_add(&t, a);
	text_add(&t, b);
	return text_take(&t);
}

/* Beside this program where it was built, else where it was installed to. */
static int find_parts(struct forward *f)
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
	f->broker = join(self, "/cotenant-vm");
	built = join(self, "/../forward/libcuda.so.1");
	if (built && access(built, R_OK) == 0) {
		f->worker = join(self, "/cotenant-worker");
		f->library_dir = join(self, "/../forward");
	} else {
		f->worker = strdup(FORWARD_WORKER);
		f->library_dir = strdup(FORWARD_LIBRARY_DIR);
	}
	return f->broker && f->worker && f->library_dir ? 0 : -ENOMEM;
}

static int make_dir(struct forward *f)
{
	strcpy(f->dir, "/tmp/cotenant-forward.XXXXXX");
	if (!mkdtemp(f->dir)) {
		f->dir[0] = '\0';
		return -errno;
	}
	f->socket_path = join(f->dir, "/socket");
	return f->socket_path ? 0 : -ENOMEM;
}

static _Noreturn void broker_main(const struct ctl *ctl, const struct forward *f, int door,
				  int ready, const sigset_t *mask)
{
	char *argv[] = { f->broker, "--socket", f->socket_path, "--worker", f->worker, NULL };
	char go;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (read(door, &go, 1) != 1 || dup2(ready, STDOUT_FILENO) < 0)
		_exit(EXIT_NO_TENANT);
	/* The terminal's ^C is for the command; the broker ends behind it. */
	setpgid(0, 0);
	child_exec(ctl, argv, mask);
}

static bool wants_tenant(const struct ctl *ctl)
{
	return ctl_option(ctl, "name") || json_object_size(ctl->limits) || ctl->gpus;
}

/* The broker begins only when it is a tenant, if it is to be one. */
static int broker_start(const struct ctl *ctl, struct forward *f, const sigset_t *mask)
{
	_cleanup_close_ int door_in = -1, door_out = -1, ready_in = -1, ready_out = -1;
	int door[2], ready[2], r = 0;

	if (pipe2(door, O_CLOEXEC) < 0)
		return EXIT_NO_TENANT;
	door_in = door[0];
	door_out = door[1];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return EXIT_NO_TENANT;
	ready_in = ready[0];
	ready_out = ready[1];
	f->pid = fork();
	if (f->pid < 0)
		return EXIT_NO_TENANT;
	if (f->pid == 0) {
		close(TAKE_FD(door_out));
		broker_main(ctl, f, door_in, ready_out, mask);
	}
	if (wants_tenant(ctl))
		r = child_tenant_begin(ctl, f->pid, ctl->argv[0], &f->tenant);
	if (r == 0 && write(door_out, "g", 1) == 1)
		f->ready = TAKE_FD(ready_in);
	return r;
}

/* Return: did it say that it listens? */
static bool broker_is_ready(struct forward *f)
{
	char line[16];

	return read(f->ready, line, sizeof(line)) > 0;
}

static _Noreturn void command_main(const struct ctl *ctl, const struct forward *f,
				   const sigset_t *mask)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	struct text path = { 0 };
	char *whole;

	text_add(&path, f->library_dir);
	if (old && *old)
		text_addf(&path, ":%s", old);
	whole = text_take(&path);
	if (!whole || setenv("LD_LIBRARY_PATH", whole, 1) < 0 ||
	    setenv("COTENANT_FORWARD", f->socket_path, 1) < 0)
		_exit(EXIT_NOT_RUN);
	child_exec(ctl, ctl->argv, mask);
}

static int command_run(const struct ctl *ctl, const struct forward *f, const sigset_t *set,
		       const sigset_t *mask)
{
	pid_t child = fork();

	if (child < 0)
		return EXIT_NOT_RUN;
	if (child == 0)
		command_main(ctl, f, mask);
	return child_wait(child, set, NULL, NULL);
}

static void forward_end(const struct ctl *ctl, struct forward *f)
{
	if (f->pid > 0) {
		kill(f->pid, SIGTERM);
		waitpid(f->pid, NULL, 0);
	}
	child_tenant_end(ctl, f->tenant);
	if (f->socket_path)
		unlink(f->socket_path);
	if (f->dir[0])
		rmdir(f->dir);
	if (f->ready >= 0)
		close(f->ready);
	free(f->socket_path);
	free(f->broker);
	free(f->worker);
	free(f->library_dir);
	free(f->tenant);
}

static int forward_run(const struct ctl *ctl, struct forward *f)
{
	sigset_t set, mask;
	int r;

	r = find_parts(f);
	if (r == 0)
		r = make_dir(f);
	if (r < 0) {
		fprintf(stderr, "cotenant forward: %s\n", strerrordesc_np(-r));
		return EXIT_NO_TENANT;
	}
	child_signals_block(&set, &mask);
	r = broker_start(ctl, f, &mask);
	if (r)
		return r;
	if (!broker_is_ready(f)) {
		fprintf(stderr, "cotenant forward: the broker does not start\n");
		return EXIT_NO_TENANT;
	}
	return command_run(ctl, f, &set, &mask);
}

int verb_forward(const struct ctl *ctl)
{
	struct forward f = { .ready = -1 };
	int r;

	if (ctl->argc == 0) {
		ctl_usage(ctl, "say which command, behind --");
		return EXIT_NO_TENANT;
	}
	r = forward_run(ctl, &f);
	forward_end(ctl, &f);
	return r;
}
