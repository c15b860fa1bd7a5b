/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are compiled, and when: a kernel and what it calls.
 *
 *	FRESH --look--> LOOKED --compile--> WAITING --reply--> OVER
 *	  `----- found in the cache, or too large -------------^
 *
 * A function has code, or never will, once it is OVER. What is WAITING stands in a list; the compiler
 * has the first of them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "softgpu/exec/image.h"
#include "softgpu/exec/isa.h"
#include "softgpu/jit/cache.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"

/* Compilers take more than proportionally long for more. */
#define INSNS_MAX 20000

/*
 * Instructions of threads for each instruction of a function before that is worth it. To look for it
 * costs what the interpreter does in the time of a few hundred; to compile it, some 0.6 ms, in which
 * the interpreter carries out 100,000 or more.
 */
#define LOOK_COST    (1u << 10)
#define COMPILE_COST (1u << 16)

/* Every so many instructions of threads, a millisecond or less, a worker looks for the reply. */
#define PUMP_BIT 18

enum stage { FRESH, LOOKED, WAITING, OVER };

/* A function that waits for the compiler. */
struct job {
	struct code *code; /* NULL: its image has gone */
	bool rows;
	struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum jit_mode mode;
static void (*log_line)(const char *format, ...);
static struct jit_counts counts;
static struct job *jobs, **jobs_end = &jobs;
static struct jit_request *asked; /* the first job's, which the compiler has */
static u32 last_walk;
static _Atomic bool pending;

/* ---- one function -------------------------------------------------------------------------------- */

static void refuse(const struct code *code, const char *why)
{
	counts.n_refused++;
	if (log_line)
		log_line("%s is interpreted: %s", code->name, why);
}

/* From now on warps go on in it. */
static bool load(struct code *code, bool rows, const struct jit_reply *reply, const char **ret_why)
{
	struct jit_code *jit = jit_load(reply, reply->size, code, ret_why);

	__atomic_store_n(&code->jit[rows], jit, __ATOMIC_RELEASE);
	return jit != NULL;
}

/* From the cache, if what is there can be loaded. */
static bool find_cached(struct code *code, const struct jit_request *request, bool rows)
{
	struct jit_reply *reply = jit_cache_get(request, jit_compiler());
	const char *why;
	bool ok;

	if (!reply)
		return false;
	ok = load(code, rows, reply, &why);
	free(reply);
	if (!ok && log_line)
		log_line("what is cached of %s is damaged, and made again", code->name);
	return ok;
}

/* The stage after a look into the cache. */
static enum stage look(struct code *code, bool rows)
{
	struct jit_request *request;
	enum stage stage = LOOKED;

	if (!code->shapes || code->n_insns > INSNS_MAX) {
		refuse(code, "it is too large");
		return OVER;
	}
	request = jit_flatten(code, rows);
	if (!request) {
		refuse(code, "no memory");
		stage = OVER;
	} else if (find_cached(code, request, rows)) {
		counts.n_cached++;
		stage = OVER;
	}
	free(request);
	return stage;
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

static enum stage job_add(struct code *code, bool rows)
{
	struct job *job = malloc(sizeof(*job));

	if (!job) {
		refuse(code, "no memory");
		return OVER;
	}
	*job = (struct job){ .code = code, .rows = rows };
	*jobs_end = job;
	jobs_end = &job->next;
	counts.n_pending++;
	atomic_store(&pending, true);
	return WAITING;
}

static void job_end(void)
{
	struct job *job = jobs;

	if (job->code)
		job->code->jit_state[job->rows].stage = OVER;
	free(asked);
	asked = NULL;
	jobs = job->next;
	if (!jobs)
		jobs_end = &jobs;
	free(job);
	counts.n_pending--;
	atomic_store(&pending, jobs != NULL);
}

/* Asks the compiler for the first job; whether it has it. */
static bool job_begin(void)
{
	const char *why = "no memory";

	asked = jobs->code ? jit_flatten(jobs->code, jobs->rows) : NULL;
	if (asked && jit_ask(asked, &why))
		return true;
	if (jobs->code)
		refuse(jobs->code, why);
	job_end();
	return false;
}

/* What the compiler has answered; NULL: nothing, for a reason. It is kept even if nobody wants it. */
static void job_finish(struct jit_reply *reply, const char *why)
{
	struct code *code = jobs->code;
	bool whole = reply && !reply->refusal[0];

	if (code && reply)
		whole = load(code, jobs->rows, reply, &why);
	if (whole) {
		counts.n_compiled++;
		jit_cache_put(asked, jit_compiler(), reply);
	} else if (code) {
		refuse(code, reply && reply->refusal[0] ? reply->refusal : why);
	}
	free(reply);
	job_end();
}

/* Takes what the compiler has ready and gives it more; @wait: until there are no jobs. */
static void pump(bool wait)
{
	struct jit_reply *reply;
	const char *why;

	while (jobs) {
		if (!asked && !job_begin())
			continue;
		if (!jit_answer(wait, &reply, &why))
			return;
		job_finish(reply, why);
	}
}

/* ---- when ---------------------------------------------------------------------------------------- */

/* How much work a function in this stage is worth; UINT64_MAX: nothing comes of more. */
static u64 price(const struct code *code, enum stage stage)
{
	u64 cost = stage == FRESH ? LOOK_COST : COMPILE_COST;

	if (stage > LOOKED)
		return UINT64_MAX;
	return mode == JIT_ON ? 0 : code->n_insns * cost;
}

/* Does what @work instructions are worth, for a function and what it calls; returns what the next step costs. */
static u64 walk(struct code *code, bool rows, u64 work)
{
	struct jit_state *state = &code->jit_state[rows];
	u64 next;

	if (state->seen == last_walk)
		return UINT64_MAX;
	state->seen = last_walk;
	while (price(code, state->stage) <= work)
		state->stage = (u8)(state->stage == FRESH ? look(code, rows) : job_add(code, rows));
	next = price(code, state->stage);
	for (u32 i = 0; i < code->n_callees; i++) {
		u64 of_callee = walk(code->callees[i], rows, work);

		next = of_callee < next ? of_callee : next;
	}
	return next;
}

static void advance(struct code *kernel, bool rows, u64 work)
{
	u64 next;

	last_walk++;
	next = walk(kernel, rows, work);
	pump(mode == JIT_ON);
	atomic_store(&kernel->jit_state[rows].next, next);
}

/* Whoever finds another at it need not wait, unless the code must be there. */
static void launched(struct code *kernel, bool rows)
{
	if (mode == JIT_ON && atomic_load(&kernel->jit_state[rows].next) != UINT64_MAX) {
		pthread_mutex_lock(&lock);
		advance(kernel, rows, 0);
		pthread_mutex_unlock(&lock);
	} else if (atomic_load(&pending) && !pthread_mutex_trylock(&lock)) {
		pump(false);
		pthread_mutex_unlock(&lock);
	}
}

static void worked(struct code *kernel, bool rows, u64 n)
{
	struct jit_state *state = &kernel->jit_state[rows];
	bool waits = atomic_load_explicit(&pending, memory_order_relaxed), enough;
	u64 next = atomic_load_explicit(&state->next, memory_order_relaxed), before;

	if (mode == JIT_ON || (next == UINT64_MAX && !waits))
		return;
	before = atomic_fetch_add_explicit(&state->work, n, memory_order_relaxed);
	enough = before + n >= next;
	if (!enough && !(waits && (before ^ (before + n)) >> PUMP_BIT))
		return;
	if (pthread_mutex_trylock(&lock))
		return;
	if (enough)
		advance(kernel, rows, before + n);
	else
		pump(false);
	pthread_mutex_unlock(&lock);
}

static void forget(struct code *code)
{
	pthread_mutex_lock(&lock);
	for (struct job *job = jobs; job; job = job->next) {
		if (job->code == code)
			job->code = NULL;
	}
	pthread_mutex_unlock(&lock);
	jit_free(code->jit[false]);
	jit_free(code->jit[true]);
}

static const struct exec_compiler compiler = {
	.services = &jit_services,
	.launched = launched,
	.worked = worked,
	.enter = jit_enter,
	.pass = jit_pass,
	.forget = forget,
};

/* ---- all ----------------------------------------------------------------------------------------- */

/* The parent's compiler is not this process's, and whoever held the lock is not here. */
static void in_forked_child(void)
{
	pthread_mutex_init(&lock, NULL);
	jit_forget_compiler();
	jobs = NULL;
	jobs_end = &jobs;
	asked = NULL;
	counts.n_pending = 0;
	pending = false;
}

void jit_init(enum jit_mode how, void (*log)(const char *format, ...))
{
	static bool watches_forks;

	if (how == JIT_OFF)
		return;
	if (!watches_forks && pthread_atfork(NULL, NULL, in_forked_child) != 0)
		return;
	watches_forks = true;
	mode = how;
	log_line = log;
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
		if (log)
			log("kernels are interpreted: this CPU has no AVX2");
		return;
	}
	if (!jit_found()) {
		if (log)
			log("kernels are interpreted: there is no softgpu-jitc");
		return;
	}
	exec_compiler = &compiler;
}

void jit_counts(struct jit_counts *ret)
{
	pthread_mutex_lock(&lock);
	*ret = counts;
	pthread_mutex_unlock(&lock);
}

void jit_settle(void)
{
	pthread_mutex_lock(&lock);
	pump(/* wait= */ true);
	pthread_mutex_unlock(&lock);
}
