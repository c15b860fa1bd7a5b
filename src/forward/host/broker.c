// SPDX-License-Identifier: Apache-2.0
/*
 * cotenant-vm: the broker between guests' processes and the workers that execute for them.
 *
 * The guests are processes on a unix socket, or all processes of one virtual machine, whose QEMU connects by the
 * vhost-user protocol. It sets up the memory that guest and worker share and starts and ends workers. It
 * never loads libcuda, and of that memory it reads no more than who waits for whom, so that nothing a guest
 * does can crash it: it is what a virtual machine's device depends on.
 */
#include "base/base.h"
#include "base/log.h"
#include "base/str.h"
#include "forward/host/connection.h"
#include "forward/host/monitor.h"
#include "forward/host/sandbox.h"
#include "forward/host/watcher.h"
#include "forward/vm/machine.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

/**
 * struct broker - what the command line says
 * @socket:	where processes connect; NULL: nobody may
 * @vm_socket:	where QEMU connects; NULL: there is no virtual machine
 * @nvml:	the NVML that the watcher loads
 */
struct broker {
	const char *socket;
	const char *vm_socket;
	const char *nvml;
	struct worker_program program;
	struct source listener;
};

static int listen_on(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void listener_ready(struct source *source)
{
	struct broker *broker = container_of(source, struct broker, listener);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC), r;
	struct connection *connection;

	if (fd < 0)
		return;
	r = connection_new(fd, &broker->program, &connection);
	if (r < 0)
		log_warn(r, "a process is turned away");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: cotenant-vm --socket PATH | --vm PATH --worker PROGRAM [--driver LIBCUDA] "
		"[--nvml LIBRARY] [--max-host-memory BYTES]\n");
	return 2;
}

static int parse(int argc, char **argv, struct broker *ret)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "vm", required_argument, NULL, 'v' },
		{ "worker", required_argument, NULL, 'w' },
		{ "driver", required_argument, NULL, 'd' },
		{ "nvml", required_argument, NULL, 'n' },
		{ "max-host-memory", required_argument, NULL, 'm' },
		{ 0 },
	};
	uint64_t max;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			ret->socket = optarg;
			break;
		case 'v':
			ret->vm_socket = optarg;
			break;
		case 'w':
			ret->program.worker = optarg;
			break;
		case 'd':
			ret->program.driver = optarg;
			break;
		case 'n':
			ret->nvml = optarg;
			break;
		case 'm':
			if (str_parse_u64(optarg, &max) < 0)
				return usage();
			session_limit_bytes(max);
			break;
		default:
			return usage();
		}
	}
	return optind == argc && !ret->socket != !ret->vm_socket && ret->program.worker ? 0
											: usage();
}

/* Before there are workers: their pid namespace would be its own. */
static int watch(const char *nvml)
{
	int fd, r = watcher_start(nvml, &fd);

	return r < 0 ? r : monitor_begin(fd);
}

static int listen_for_processes(struct broker *broker)
{
	int fd = listen_on(broker->socket, SOCK_SEQPACKET);

	return fd < 0 ? fd : source_add(&broker->listener, fd, listener_ready);
}

static int listen_for_qemu(struct broker *broker)
{
	int fd = listen_on(broker->vm_socket, SOCK_STREAM);

	return fd < 0 ? fd : machine_listen(fd, &broker->program);
}

int main(int argc, char **argv)
{
	struct broker broker = { .program.driver = "libcuda.so.1", .nvml = "libnvidia-ml.so.1" };
	int r;

	log_init("cotenant-vm", LOG_INFO);
	session_limit_bytes(16ULL << 30);
	r = parse(argc, argv, &broker);
	if (r)
		return r;
	signal(SIGPIPE, SIG_IGN);
	r = watch(broker.nvml);
	if (r < 0)
		log_warn(r, "guests are told nothing of devices");
	r = sandbox_pids();
	if (r < 0)
		log_warn(r, "workers see the processes of the host");
	r = broker.socket ? listen_for_processes(&broker) : listen_for_qemu(&broker);
	if (r < 0)
		return log_err(r, "cannot listen on %s",
			       broker.socket ? broker.socket : broker.vm_socket),
		       1;
	/* Whoever started it waits for this line's end. */
	if (write(STDOUT_FILENO, "ready\n", 6) < 0)
		return 1;
	while (r == 0)
		r = loop_once();
	return log_err(r, "cannot go on"), 1;
}
