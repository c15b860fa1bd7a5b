// SPDX-License-Identifier: Apache-2.0
/*
 * What this kernel takes: found by trying, never by its version. Vendors take features out and put them in.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <string.h>

#include "priv.h"

/* clang-format off */
#define MOVE(to, value)	 { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) }
#define COPY(to, from)	 { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) }
#define ADD(to, value)	 { .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value) }
#define ZERO(to, offset) { .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = (to), .off = (offset) }
#define CALL(helper)	 { .code = BPF_JMP | BPF_CALL, .imm = (helper) }
#define EXIT		 { .code = BPF_JMP | BPF_EXIT }
/* clang-format on */

#define LOG_SIZE       4096
#define YAMA_NO_ATTACH 3

/* Load a program for nothing but to see whether it may be. Return: 0, or the kernel's reason in @ret_log */
static int try_program(const struct bpf_insn *insns, size_t n, uint32_t flags, char *ret_log)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = flags, .log_buf = ret_log,
		    .log_size = LOG_SIZE, .log_level = 1);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "try", "GPL", insns, n, &options);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_registers(char *ret_log)
{
	const struct bpf_insn insns[] = {
		MOVE(BPF_REG_2, 2),
		{ .code = BPF_STX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_2,
		  .off = offsetof(struct audit_regs, ax) },
		MOVE(BPF_REG_0, 0),
		EXIT,
	};

	return try_program(insns, ARRAY_SIZE(insns), 0, ret_log);
}

/* bpf_copy_from_user_task(stack, 8, 0, current, 0), in a program that may sleep */
static int try_supervised(char *ret_log)
{
	const struct bpf_insn insns[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		COPY(BPF_REG_4, BPF_REG_0),
		ZERO(BPF_REG_10, -8),
		COPY(BPF_REG_1, BPF_REG_10),
		ADD(BPF_REG_1, -8),
		MOVE(BPF_REG_2, 8),
		MOVE(BPF_REG_3, 0),
		MOVE(BPF_REG_5, 0),
		CALL(BPF_FUNC_copy_from_user_task),
		MOVE(BPF_REG_0, 0),
		EXIT,
	};

	return try_program(insns, ARRAY_SIZE(insns), BPF_F_SLEEPABLE, ret_log);
}

/* bpf_probe_write_user(0, stack, 8) */
static int try_user_memory(char *ret_log)
{
	const struct bpf_insn insns[] = {
		ZERO(BPF_REG_10, -8),	     MOVE(BPF_REG_1, 0),
		COPY(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8),
		MOVE(BPF_REG_3, 8),	     CALL(BPF_FUNC_probe_write_user),
		MOVE(BPF_REG_0, 0),	     EXIT,
	};

	return try_program(insns, ARRAY_SIZE(insns), 0, ret_log);
}

/* A kernel that knows links of many probes looks for the file; one that does not refuses the kind. */
static int try_many_probes(_unused_ char *ret_log)
{
	const struct bpf_insn insns[] = { MOVE(BPF_REG_0, 0), EXIT };
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = ATTACH_UPROBE_MULTI);
	_cleanup_close_ int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "try", "GPL", insns,
					       ARRAY_SIZE(insns), &options);
	uint64_t offset = 0, cookie = 0;
	const struct probes probes = {
		.path = "/nonexistent/libcuda.so.1", .offsets = &offset, .cookies = &cookie, .n = 1
	};
	int r;

	if (fd < 0)
		return -errno;
	r = link_uprobes(fd, &probes);
	if (r >= 0)
		close(r);
	return r == -ENOENT ? 0 : r;
}

/* What the probe below is set on. */
static __attribute__((noinline)) void *probed_thread(void *unused)
{
	__asm__ volatile("" : : : "memory");
	return unused;
}

/* Where in this program's file the code at @address is. */
static int own_offset(uintptr_t address, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	_cleanup_free_ char *line = NULL;
	unsigned long start, end, offset;
	size_t cap = 0;

	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end) {
			*ret = address - start + offset;
			return 0;
		}
	}
	return -ENOENT;
}

int own_link(int prog_fd)
{
	uint64_t offset, cookie = 0;
	const struct probes probes = { .path = "/proc/self/exe",
				       .offsets = &offset,
				       .cookies = &cookie,
				       .n = 1,
				       .pid = getpid() };
	int r = own_offset((uintptr_t)probed_thread, &offset);

	return r < 0 ? r : link_uprobes(prog_fd, &probes);
}

/* Run another thread over the probe. Does it leave its mark? */
static int thread_is_met(int map, char *ret_log)
{
	uint64_t mark = 0;
	uint32_t key = 0;
	pthread_t thread;
	int r = pthread_create(&thread, NULL, probed_thread, NULL);

	if (r)
		return -r;
	pthread_join(thread, NULL);
	if (bpf_map_lookup_elem(map, &key, &mark))
		return -errno;
	if (mark)
		return 0;
	snprintf(ret_log, LOG_SIZE, "such a link meets the first thread of a process alone");
	return -EOPNOTSUPP;
}

/*
 * From 6.6 to 6.9 a link of many probes on one process meets its first thread alone. So another thread
 * runs over such a probe, whose program leaves a mark.
 */
static int try_many_threads(char *ret_log)
{
	_cleanup_close_ int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "try", sizeof(uint32_t),
						 sizeof(uint64_t), 1, NULL);
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .imm = 1 },
		MOVE(BPF_REG_0, 0),
		EXIT,
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = ATTACH_UPROBE_MULTI);
	_cleanup_close_ int fd = map < 0 ? -1
					 : bpf_prog_load(BPF_PROG_TYPE_KPROBE, "try", "GPL", insns,
							 ARRAY_SIZE(insns), &options);
	int link, r;

	if (fd < 0)
		return -errno;
	link = own_link(fd);
	if (link < 0)
		return link;
	r = thread_is_met(map, ret_log);
	/* Calls may be held already, and wait for the engine that is about to be. */
	links_let_go(&link, 1);
	return r;
}

static int try_ptrace(char *ret_log)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (!f || fscanf(f, "%d", &scope) != 1 || scope < YAMA_NO_ATTACH)
		return 0;
	snprintf(ret_log, LOG_SIZE, "kernel.yama.ptrace_scope is %d", scope);
	return -EPERM;
}

static const struct {
	const char *name;
	const char *gives;
	int (*attempt)(char *ret_log);
} features[FEATURE_COUNT] = {
	[FEATURE_REGISTERS] = { "registers",
				"a refused call is answered in the kernel, without the daemon",
				try_registers },
	[FEATURE_SUPERVISED] = { "supervised", "a call is held or answered with the daemon's help",
				 try_supervised },
	[FEATURE_MANY_PROBES] = { "uprobe-multi", "all calls of a library are probed at once",
				  try_many_probes },
	[FEATURE_MANY_THREADS] = { "uprobe-multi-pid",
				   "all launches of a process are probed at once",
				   try_many_threads },
	[FEATURE_USER_MEMORY] = { "write-user", "memory totals are shown without the daemon's help",
				  try_user_memory },
	[FEATURE_PTRACE] = { "ptrace", "threads can be held", try_ptrace },
};

bool feature_works(enum feature feature)
{
	char log[LOG_SIZE] = "";

	return features[feature].attempt(log) == 0;
}

/* The verifier's last word before its statistics, or the error. */
static void reason_from(char *log, int error, char *ret, size_t size)
{
	char *line = log, *reason = NULL;

	while (line && *line) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = '\0';
		if (*line && strncmp(line, "processed ", 10) &&
		    strncmp(line, "verification time", 17) && strncmp(line, "stack depth", 11))
			reason = line;
		line = next;
	}
	snprintf(ret, size, "%s", reason ? reason : strerror(-error));
}

int engine_features(struct engine_feature *ret, size_t n)
{
	size_t i;

	for (i = 0; i < FEATURE_COUNT && i < n; i++) {
		char log[LOG_SIZE] = "";
		int r = features[i].attempt(log);

		ret[i] = (struct engine_feature){ features[i].name, features[i].gives, r == 0, "" };
		if (r < 0)
			reason_from(log, r, ret[i].reason, sizeof(ret[i].reason));
	}
	return i;
}
