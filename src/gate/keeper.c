// SPDX-License-Identifier: Apache-2.0
/*
 * The keeper of one command's listener.
 *
 * It decides nothing and remembers nothing but what the daemon was not told yet, because it was told of
 * the same process just before or was not there to take it.
 */
#include "gate/gate.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/str.h"
#include "gate/pace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>

#define NVIDIA_MAJOR 195
/* The daemon is away; or it has as many reports as its socket takes, and is about to read them. */
#define RETRY_AWAY_MS 500
#define RETRY_FULL_MS GATE_PACE_MS

struct keeper {
	int listener;
	int socket;
	dev_t device;
	unsigned uvm_major;
	struct sockaddr_un daemon;
	struct gate_pace pace;
};

/* UVM has no number of its own: the kernel gives it one when the module is loaded. */
static unsigned find_uvm_major(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/devices", "re");
	unsigned major;
	char line[128], name[64];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%u %63s", &major, name) == 2 && str_eq(name, "nvidia-uvm"))
			return major;
	return 0;
}

static bool is_device(struct keeper *k, pid_t tid, int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	if (stat(path, &st) || !S_ISCHR(st.st_mode))
		return false;
	if (!k->uvm_major)
		k->uvm_major = find_uvm_major();
	return major(st.st_rdev) == NVIDIA_MAJOR || (k->device && st.st_rdev == k->device) ||
	       (k->uvm_major && major(st.st_rdev) == k->uvm_major);
}

static bool copy_from(void *userdata, uint64_t address, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)address, n };

	return process_vm_readv(*(pid_t *)userdata, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static pid_t process_of(pid_t tid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[128];
	pid_t pid = tid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	return pid;
}

static uint64_t now_ms(void)
{
	return clock_now_ms(CLOCK_MONOTONIC);
}

static bool send_report(struct keeper *k, const struct gate_report *report)
{
	return sendto(k->socket, report, sizeof(*report), MSG_DONTWAIT, (void *)&k->daemon,
		      sizeof(k->daemon)) >= 0;
}

static bool is_gone(uint32_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* What may be told by now. Where one report is not taken, the next would not be either. */
static void deliver(struct keeper *k)
{
	struct gate_report report;

	while (gate_pace_take(&k->pace, now_ms(), &report)) {
		if (send_report(k, &report))
			continue;
		gate_pace_return(&k->pace, &report, now_ms(),
				 errno == EAGAIN ? RETRY_FULL_MS : RETRY_AWAY_MS);
		return;
	}
}

static void note(struct keeper *k, const struct gate_report *asked)
{
	/* However long the daemon is away: there are no more than processes that live. */
	if (k->pace.n == k->pace.cap)
		gate_pace_drop_gone(&k->pace, is_gone);
	/* Without memory nothing can be added up. */
	if (gate_pace_add(&k->pace, asked, now_ms()) < 0)
		send_report(k, asked);
}

/*
 * Reported after it was let go: the memory is there when the daemon looks.
 *
 * Return: 0, or a fault if this is no listener. A thread that died before its call was fetched is none.
 */
static int on_notification(struct keeper *k)
{
	struct seccomp_notif n = {};
	struct seccomp_notif_resp go = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	uint64_t bytes = 0;
	bool takes;
	pid_t tid, pid = 0;

	if (ioctl(k->listener, SECCOMP_IOCTL_NOTIF_RECV, &n))
		return errno == ENOTTY || errno == EINVAL || errno == EBADF ? -errno : 0;
	tid = n.pid;
	takes = is_device(k, tid, n.data.args[0]) &&
		gate_decode(n.data.args[1], n.data.args[2], copy_from, &tid, &bytes);
	if (takes)
		pid = process_of(tid);
	/* A thread that died meanwhile may have left its number to another. */
	takes = takes && ioctl(k->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) == 0;
	go.id = n.id;
	ioctl(k->listener, SECCOMP_IOCTL_NOTIF_SEND, &go);
	if (!takes)
		return 0;
	note(k, &(struct gate_report){ .pid = pid, .n_asked = 1, .bytes = bytes });
	return 0;
}

bool gate_is_listener(int fd)
{
	static const char kind[] = "anon_inode:seccomp notify";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	return n == (ssize_t)strlen(kind) && memcmp(target, kind, n) == 0;
}

void gate_keep(int listener, dev_t device, const char *socket_path)
{
	struct keeper k = { .listener = listener, .device = device, .daemon.sun_family = AF_UNIX };
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };

	k.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	str_copy(k.daemon.sun_path, sizeof(k.daemon.sun_path), socket_path);
	for (;;) {
		poll_fd.revents = 0;
		if (poll(&poll_fd, 1, gate_pace_next(&k.pace, now_ms())) < 0 && errno != EINTR)
			return;
		if (poll_fd.revents & POLLIN) {
			if (on_notification(&k) < 0)
				return;
		} else if (poll_fd.revents) {
			return;
		}
		deliver(&k);
	}
}
