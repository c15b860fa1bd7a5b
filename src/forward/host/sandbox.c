// SPDX-License-Identifier: Apache-2.0
/*
 * The order matters: namespaces need a process of one thread, and the driver makes threads; the driver's
 * files have to be there when it starts, and are gone afterwards.
 *
 * System calls are refused by name. A list of what a driver may call cannot be written for drivers that are
 * not known; what would lead out of the process is known.
 */
#include "forward/host/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

#define ROOT	 "/tmp"
#define MAX_KEPT 64

/* Without these no driver works. */
static const char *const patterns[] = { "/proc", "/dev/null", "/dev/zero", "/dev/urandom",
					"/dev/nvidia*" };

/**
 * struct kept - a file or folder that stays
 * @tree:	a copy of its mount that is nowhere yet
 */
struct kept {
	char path[PATH_MAX];
	bool is_dir;
	int tree;
};

static int write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* In a user namespace it stays who it was. */
static int keep_ids(uid_t uid, gid_t gid)
{
	char line[64];
	int r;

	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	r = write_file("/proc/self/uid_map", line);
	if (r < 0)
		return r;
	write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	return write_file("/proc/self/gid_map", line);
}

int sandbox_begin(void)
{
	int spaces = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS, r;
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(spaces) < 0) {
		if (errno != EPERM || unshare(CLONE_NEWUSER | spaces) < 0)
			return -errno;
		r = keep_ids(uid, gid);
		if (r < 0)
			return r;
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	/* Only its own namespace's processes; where that is not allowed the old one stays. */
	mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	return 0;
}

static int keep(struct kept *kept, size_t *n, const char *path)
{
	struct stat st;
	size_t i;
	int tree;

	for (i = 0; i < *n; i++)
		if (strcmp(kept[i].path, path) == 0)
			return 0;
	if (*n == MAX_KEPT || strlen(path) >= sizeof(kept->path) || stat(path, &st) < 0)
		return -ENOSPC;
	tree = syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC);
	if (tree < 0)
		return -errno;
	strcpy(kept[*n].path, path);
	kept[*n].is_dir = S_ISDIR(st.st_mode);
	kept[*n].tree = tree;
	++*n;
	return 0;
}

static int keep_patterns(struct kept *kept, size_t *n)
{
	size_t i, k;
	glob_t found;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		if (glob(patterns[i], 0, NULL, &found) != 0)
			continue;
		for (k = 0; k < found.gl_pathc && r == 0; k++)
			r = keep(kept, n, found.gl_pathv[k]);
		globfree(&found);
	}
	return r;
}

/* The folder of a file that the driver has open: it may look for its neighbours. */
static int keep_folder_of(struct kept *kept, size_t *n, const char *fd_path)
{
	char path[PATH_MAX], *slash;
	struct stat st;
	ssize_t length;

	length = readlink(fd_path, path, sizeof(path) - 1);
	if (length <= 0 || stat(fd_path, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return 0;
	path[length] = '\0';
	slash = strrchr(path, '/');
	/* Deleted files and those that never had a name need none. */
	if (path[0] != '/' || slash == path || access(path, F_OK) < 0 ||
	    strncmp(path, "/proc/", 6) == 0)
		return 0;
	if (S_ISREG(st.st_mode))
		*slash = '\0';
	return keep(kept, n, path);
}

static int keep_opened(struct kept *kept, size_t *n)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	char path[64];
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (atoi(entry->d_name) <= STDERR_FILENO)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s", entry->d_name);
		r = keep_folder_of(kept, n, path);
	}
	return r;
}

/* Makes the folders above a path below the new root, and the place itself. */
static int make_place(const struct kept *kept)
{
	char path[PATH_MAX + sizeof(ROOT)], *at;
	int fd;

	snprintf(path, sizeof(path), "%s%s", ROOT, kept->path);
	for (at = path + sizeof(ROOT); (at = strchr(at, '/')); at++) {
		*at = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (kept->is_dir)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int place(const struct kept *kept)
{
	char path[PATH_MAX + sizeof(ROOT)];
	int r = make_place(kept);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s%s", ROOT, kept->path);
	if (syscall(SYS_move_mount, kept->tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int change_root(void)
{
	if (chdir(ROOT) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
	    0)
		return -errno;
	return 0;
}

static int leave_files(void)
{
	struct kept *kept = calloc(MAX_KEPT, sizeof(*kept));
	size_t i, n = 0;
	int r;

	if (!kept)
		return -ENOMEM;
	r = keep_patterns(kept, &n);
	if (r == 0)
		r = keep_opened(kept, &n);
	if (r == 0 && mount("cotenant", ROOT, "tmpfs", MS_NOSUID, "size=1m,mode=755") < 0)
		r = -errno;
	for (i = 0; i < n; i++) {
		if (r == 0)
			r = place(&kept[i]);
		close(kept[i].tree);
	}
	free(kept);
	return r < 0 ? r : change_root();
}

int sandbox_drop(int kept)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0 } };
	int cap;

	if (kept != SANDBOX_NO_CAP)
		sets[kept / 32].permitted = 1U << kept % 32;

	for (cap = 0; cap <= CAP_LAST_CAP; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, sets) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static const int refused[] = {
	/* other programs, other processes */
	SYS_execve,
	SYS_execveat,
	SYS_fork,
	SYS_vfork,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_kcmp,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_kill,
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_setpriority,
	SYS_prlimit64,
	/* memory of others that is mapped here must not grow into more of it, nor stay in a pipe when it is no more */
	SYS_mremap,
	SYS_remap_file_pages,
	SYS_vmsplice,
	/* the network */
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	/* the kernel's own interfaces */
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsmount,
	SYS_fsconfig,
	SYS_fspick,
	SYS_mount_setattr,
	SYS_unshare,
	SYS_setns,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_acct,
	SYS_quotactl,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
	SYS_personality,
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_fanotify_init,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_syslog,
	SYS_vhangup,
};

#define LOAD(offset)	      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define JUMP(op, value, t, f) BPF_JUMP(BPF_JMP | (op) | BPF_K, (value), (t), (f))
#define RETURN(value)	      BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSE(error)	      RETURN(SECCOMP_RET_ERRNO | (error))
#define X32		      0x40000000

static int leave_calls(void)
{
	const struct sock_filter head[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(offsetof(struct seccomp_data, nr)),
		JUMP(BPF_JGE, X32, 0, 1),
		REFUSE(EPERM),
		/* A thread, not a process; of the newer call nothing can be seen, so the older is taken. */
		JUMP(BPF_JEQ, SYS_clone3, 0, 1),
		REFUSE(ENOSYS),
		JUMP(BPF_JEQ, SYS_clone, 0, 4),
		LOAD(offsetof(struct seccomp_data, args[0])),
		JUMP(BPF_JSET, CLONE_THREAD, 1, 0),
		REFUSE(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
		/* A signal to one of its own threads. */
		JUMP(BPF_JEQ, SYS_tgkill, 0, 4),
		LOAD(offsetof(struct seccomp_data, args[0])),
		JUMP(BPF_JEQ, (uint32_t)getpid(), 1, 0),
		REFUSE(EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_filter filter[ARRAY_SIZE(head) + 2 * ARRAY_SIZE(refused) + 1];
	struct sock_fprog program = { .filter = filter };
	size_t i, n = ARRAY_SIZE(head);

	memcpy(filter, head, sizeof(head));
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		filter[n++] = (struct sock_filter)JUMP(BPF_JEQ, (uint32_t)refused[i], 0, 1);
		filter[n++] = (struct sock_filter)REFUSE(EPERM);
	}
	filter[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		return -errno;
	return 0;
}

int sandbox_finish(const char **ret_what)
{
	int r;

	*ret_what = "files";
	r = leave_files();
	if (r == 0) {
		*ret_what = "capabilities";
		r = sandbox_drop(SANDBOX_NO_CAP);
	}
	if (r == 0) {
		*ret_what = "system calls";
		r = leave_calls();
	}
	return r;
}
