// SPDX-License-Identifier: Apache-2.0
#include "ctl/broker.h"

#include "ctl/child.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DIR_PREFIX "/tmp/cotenant-forward."
#define SOCKET	   "socket"

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

static int dir_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whoever made it holds its lock for as long as he lives, and removes it when he ends: of who was killed it is left. */
static void dir_remove_if_left(const char *path)
{
	_cleanup_close_ int fd = dir_open(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	unlinkat(fd, SOCKET, 0);
	rmdir(path);
}

static void dirs_remove_left(void)
{
	glob_t found;
	size_t i;

	if (glob(DIR_PREFIX "*", GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (i = 0; i < found.gl_pathc; i++)
		dir_remove_if_left(found.gl_pathv[i]);
	globfree(&found);
}

/* Return: 0, -EAGAIN where somebody took it for one that is left before it had its lock, or what the kernel said. */
static int dir_keep(struct broker *b)
{
	struct stat opened, there;

	b->dir_fd = dir_open(b->dir);
	if (b->dir_fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(b->dir_fd, LOCK_EX) < 0 || fstat(b->dir_fd, &opened) < 0)
		return -errno;
	if (lstat(b->dir, &there) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	return opened.st_dev == there.st_dev && opened.st_ino == there.st_ino ? 0 : -EAGAIN;
}

static void dir_leave(struct broker *b)
{
	if (b->dir_fd >= 0)
		close(TAKE_FD(b->dir_fd));
	b->dir[0] = '\0';
}

static int dir_new(struct broker *b)
{
	int r;

	do {
		dir_leave(b);
		strcpy(b->dir, DIR_PREFIX "XXXXXX");
		if (!mkdtemp(b->dir)) {
			r = -errno;
			b->dir[0] = '\0';
			return r;
		}
		r = dir_keep(b);
	} while (r == -EAGAIN);
	return r;
}

static int make_dir(struct broker *b)
{
	int r;

	dirs_remove_left();
	r = dir_new(b);
	if (r < 0)
		return r;
	b->socket_path = str_format("%s/" SOCKET, b->dir);
	return b->socket_path ? 0 : -ENOMEM;
}

int broker_init(const struct ctl *ctl, struct broker *b, const char *socket_path)
{
	int r;

	*b = (struct broker){ .dir_fd = -1, .ready = -1 };
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
	dir_leave(b);
	if (b->ready >= 0)
		close(b->ready);
	free(b->socket_path);
	free(b->program);
	free(b->worker);
	free(b->library_dir);
	free(b->tenant);
}
