/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are compiled, and when: a kernel and what it calls before the first launch.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/exec/image.h"
#include "softgpu/exec/isa.h"
#include "softgpu/jit/cache.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"

/* Compilers take more than proportionally long for more. */
#define INSNS_MAX 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*log_line)(const char *format, ...);
static struct jit_counts counts;

static void refuse(const struct code *code, const char *why)
{
	counts.n_refused++;
	if (log_line)
		log_line("%s is interpreted: %s", code->name, why);
}

/* From the cache, if what is there can be loaded. */
static bool find_cached(struct code *code, const struct jit_request *request, bool rows)
{
	struct jit_reply *reply = jit_cache_get(request, jit_compiler());
	const char *why;

	if (!reply)
		return false;
	code->jit[rows] = jit_load(reply, reply->size, code, &why);
	free(reply);
	if (!code->jit[rows] && log_line)
		log_line("what is cached of %s is damaged, and made again", code->name);
	return code->jit[rows] != NULL;
}

static void compile_now(struct code *code, const struct jit_request *request, bool rows)
{
	const char *why;
	struct jit_reply *reply = jit_ask(request, &why);

	if (reply)
		code->jit[rows] = jit_load(reply, reply->size, code, &why);
	if (code->jit[rows]) {
		counts.n_compiled++;
		jit_cache_put(request, jit_compiler(), reply);
	} else {
		refuse(code, reply && reply->refusal[0] ? reply->refusal : why);
	}
	free(reply);
}

static void compile_one(struct code *code, bool rows)
{
	struct jit_request *request = NULL;

	if (!code->shapes || code->n_insns > INSNS_MAX) {
		refuse(code, "it is too large");
		return;
	}
	request = jit_flatten(code, rows);
	if (!request)
		refuse(code, "no memory");
	else if (find_cached(code, request, rows))
		counts.n_cached++;
	else
		compile_now(code, request, rows);
	free(request);
}

static void compile_with_callees(struct code *code, bool rows)
{
	if (code->jit_tried[rows])
		return;
	code->jit_tried[rows] = true;
	compile_one(code, rows);
	for (u32 i = 0; i < code->n_callees; i++)
		compile_with_callees(code->callees[i], rows);
}

static void compile(struct code *code, bool rows)
{
	pthread_mutex_lock(&lock);
	compile_with_callees(code, rows);
	pthread_mutex_unlock(&lock);
}

static const struct exec_compiler compiler = {
	.services = &jit_services,
	.compile = compile,
	.enter = jit_enter,
	.pass = jit_pass,
	.release = jit_free,
};

void jit_init(enum jit_mode mode, void (*log)(const char *format, ...))
{
	if (mode == JIT_OFF)
		return;
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
