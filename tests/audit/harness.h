/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the engine have in common: an engine of their own, tenants as child processes, calls
 * that check that nothing of the caller's was touched.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "audit/engine.h"
#include "audit/rows.h"
#include "fake-cuda.h"

#define SKIP	      77
#define MIB	      (1ULL << 20)
#define MILLISECOND   1000000ULL
#define OUT_OF_MEMORY 2
#define HINT_NEVER    ~0U
#define PATIENCE_NS   (60000 * MILLISECOND)

/**
 * struct bench - one engine with one device and one tenant
 * @copies_grace_ns:	from bench_return() on, see struct engine_options
 * @no_thread_records:	from bench_return() on the kernel is out of memory for records of threads
 * @text:		a copy of a library
 * @n_of_text:		how often that was told to be probed
 * @engine_wait_ns:	how long threads wait for a holder or a daemon, see bench_failure_wait()
 */
struct bench {
	struct engine *engine;
	char state_dir[64];
	uint32_t tenant;
	uint64_t engine_wait_ns;
	uint64_t copies_grace_ns;
	bool no_thread_records;
	uint64_t n_events[AUDIT_EVENT_KINDS];
	const char *text;
	uint64_t n_of_text;
	uint8_t order
		[LEDGER_DEVICES]; /* the devices that numbers stand for, as the devices tell; else AUDIT_NO_DEVICE */
	uint8_t hints[LEDGER_DEVICES]; /* as processes say themselves */
	unsigned hint_late_ms;	       /* how long nobody comes to read them, or HINT_NEVER */
};

/* Fails the test with a reason, after taking every probe off again. */
#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);            \
			fprintf(stderr, " " __VA_ARGS__);                                          \
			fputc('\n', stderr);                                                       \
			bench_abort();                                                             \
		}                                                                                  \
	} while (0)

/** bench_open() - an engine on a state folder of its own, or the test is skipped with the reason */
void bench_open(struct bench *b, enum engine_rung rung, uint64_t total_bytes);
/** bench_close() - take everything off */
void bench_close(struct bench *b);
/** bench_leave(), bench_return() - let go of the engine so that another process can have it, and take it back */
void bench_leave(struct bench *b);
void bench_return(struct bench *b);
/** bench_return_slowly() - the same, while each hit of a probe takes its time until the engine is there */
void bench_return_slowly(struct bench *b, uint32_t linger_rounds);
/* Killed when the test fails: a child that has the engine. */
extern pid_t bench_child;
/** bench_abort() - the same for a test that has failed; does not return */
_Noreturn void bench_abort(void);
/** bench_fork() - a child that is nobody's and ends with the test, however that ends. Return: as fork(), never < 0 */
pid_t bench_fork(void);
/** bench_limit() - memory.max of the tenant, and how long it holds */
void bench_limit(struct bench *b, uint64_t max_bytes, uint64_t wait_ns);
/** bench_unowned() - what a daemon hears of a device now: processes that no tenant matches have so many bytes of it */
void bench_unowned(struct bench *b, unsigned device, uint64_t bytes);
/** bench_current() - bytes that the tenant is charged */
uint64_t bench_current(struct bench *b);
/** bench_failure_wait() - how long threads wait for a holder or a daemon, instead of PATIENCE_NS */
void bench_failure_wait(struct bench *b, uint64_t wait_ns);
/** bench_pump() - deliver events for some time */
void bench_pump(struct bench *b, unsigned milliseconds);

/**
 * WAIT_UNTIL() - deliver events until a condition is true
 *
 * A minute at most: what takes a moment on a quiet machine takes seconds on a busy or an emulated one.
 * Return: whether it has come to be true.
 */
#define WAIT_UNTIL(b, condition)                                                                   \
	({                                                                                         \
		uint64_t until_ = clock_ns() + PATIENCE_NS;                                        \
		bool is_true_;                                                                     \
                                                                                                   \
		while (!(is_true_ = (condition)) && clock_ns() < until_)                           \
			bench_pump((b), 1);                                                        \
		is_true_;                                                                          \
	})

/** fake_open() - load the fake libcuda into this process, and attach it */
void fake_open(struct bench *b, const char *path);
extern struct fake *fakes;
/** fake_fn() - a call of it by name */
void *fake_fn(const char *name);

/**
 * call_checked() - call with up to six arguments
 *
 * The callee-saved registers, the stack pointer and a canary above the frame are compared.
 * @ret_damage: counts differences. Return: what the call returned.
 */
long call_checked(void *fn, const unsigned long *arguments, unsigned long *ret_damage);

/** cuda() - a checked call by name; damage fails the test */
long cuda(const char *name, ...);
#define CUDA(name, ...) cuda(name, ##__VA_ARGS__, 0UL, 0UL, 0UL, 0UL, 0UL, 0UL)

/** cgroup_make() - a cgroup v2 of the test's own, which is gone at its end. Return: its id */
uint64_t cgroup_make(void);
/** cgroup_set() - write into one of its files */
void cgroup_set(const char *file, int value);

/** become() - run as a user who is not root, and still end with one's parent. Return: whether it went. */
bool become(uid_t user);

/** tenant_fork() - start a child that is bound to the tenant and runs @fn; its exit code is what @fn returns */
pid_t tenant_fork(struct bench *b, int (*fn)(void *), void *userdata);
/** tenant_wait() - its exit code, or 128 + the signal that killed it */
int tenant_wait(struct bench *b, pid_t pid);

uint64_t clock_ns(void);
void sleep_ms(unsigned milliseconds);
/** shared_page() - zeroed memory that children share */
void *shared_memory(size_t size);

#endif
