// SPDX-License-Identifier: Apache-2.0
#include "bench/peers.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct peer_words {
	_Atomic uint32_t asked;
	_Atomic uint32_t answered;
};

/* Where this process may run. */
static cpu_set_t allowed;
static int cpus[2] = { -1, -1 };

static void cpus_find(void)
{
	int cpu, n = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
}

static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void word_wait(_Atomic uint32_t *word, uint32_t before)
{
	while (atomic_load(word) == before)
		syscall(SYS_futex, word, FUTEX_WAIT, before, NULL, NULL, 0);
}

static void word_next(_Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void byte_send(int fd)
{
	if (write(fd, "", 1) != 1)
		abort();
}

static void byte_wait(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
}

static _Noreturn void serve(const struct peer *peer)
{
	uint32_t n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	move_to(peer->cpu);
	for (;;) {
		if (peer->futex) {
			word_wait(&peer->words->asked, n++);
			word_next(&peer->words->answered);
		} else {
			byte_wait(peer->ask);
			byte_send(peer->answer);
		}
	}
}

bool peer_start(struct peer *peer)
{
	int ask[2], answer[2];
	struct peer child;
	pid_t pid;

	cpus_find();
	peer->cpu = cpus[peer->two_cpus];
	peer->words = mmap(NULL, sizeof(*peer->words), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (peer->cpu < 0 || peer->words == MAP_FAILED || pipe(ask) < 0 || pipe(answer) < 0)
		return false;
	child = *peer;
	child.ask = ask[0];
	child.answer = answer[1];
	pid = fork();
	if (pid == 0)
		serve(&child);
	close(ask[0]);
	close(answer[1]);
	peer->ask = ask[1];
	peer->answer = answer[0];
	return pid > 0;
}

void peer_begin(void)
{
	move_to(cpus[0]);
}

void peer_end(void)
{
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

void peer_ask(struct peer *peer)
{
	uint32_t before = atomic_load(&peer->words->answered);

	if (peer->futex) {
		word_next(&peer->words->asked);
		word_wait(&peer->words->answered, before);
	} else {
		byte_send(peer->ask);
		byte_wait(peer->answer);
	}
}
