/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu-jitc: the compiler's process. Reads a request, writes a reply, and again until the other
 * end closes. Whatever is wrong with a request is said in the reply, or ends the process: who asked
 * takes that for a refusal.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include "softgpu/jit/emit.h"
#include "softgpu/jit/limit.h"
#include "softgpu/util/whole.h"

#define REQUEST_MAX_BYTES (64u << 20)
#define IDLE_MS		  30000

/* Since LLVM 18 this pass goes over a function once, and ends the process where that leaves something to be won. */
#if LLVM_VERSION_MAJOR >= 18
#define COMBINE "instcombine<no-verify-fixpoint>"
#else
#define COMBINE "instcombine"
#endif

/* Few passes: what is not said twice is most of what there is to win. */
#define PASSES                                                                                     \
	"function(mem2reg,early-cse,simplifycfg," COMBINE ",early-cse,loop-mssa(licm),simplifycfg)"

/* Nobody asks for a while: whoever does later starts another. */
static bool wait_for_request(void)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	limit_end();
	if (poll(&fd, 1, IDLE_MS) != 1)
		return false;
	limit_begin(LIMIT_CPU_MS, LIMIT_WALL_MS);
	return true;
}

/*
 * While it works, who asked sends nothing. If he ends nobody wants the code any more, and nobody
 * should find a process that outlives him: the end of the socket is a signal, and that ends this one.
 */
static bool end_with_caller(bool on)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	if (flags < 0 || fcntl(STDIN_FILENO, F_SETOWN, getpid()) < 0 ||
	    fcntl(STDIN_FILENO, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) < 0)
		return false;
	/* He may have before. */
	return !on || poll(&fd, 1, 0) == 0;
}

/* ---- the machine -------------------------------------------------------------------------------- */

/* More of an effort in generating code takes a seventh longer and wins nothing: the kernels of bench-jit. */
static LLVMTargetMachineRef machine_new(void)
{
	char *triple, *cpu, *features, *error = NULL;
	LLVMTargetMachineRef machine = NULL;
	LLVMTargetRef target;

	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	triple = LLVMGetDefaultTargetTriple();
	cpu = LLVMGetHostCPUName();
	features = LLVMGetHostCPUFeatures();
	if (!LLVMGetTargetFromTriple(triple, &target, &error))
		machine =
			LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelLess,
						LLVMRelocPIC, LLVMCodeModelSmall);
	LLVMDisposeMessage(error);
	LLVMDisposeMessage(triple);
	LLVMDisposeMessage(cpu);
	LLVMDisposeMessage(features);
	return machine;
}

/* AVX2 has such loads and stores too, but they are slow where they are not many. */
static bool has_masks(LLVMTargetMachineRef machine)
{
	char *features = LLVMGetTargetMachineFeatureString(machine);
	bool has = strstr(features, "+avx512vl") != NULL;

	LLVMDisposeMessage(features);
	return has;
}

/* ---- a request ---------------------------------------------------------------------------------- */

static bool optimise(struct emit *e, LLVMTargetMachineRef machine)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error;

	if (getenv("SOFTGPU_JITC_VERIFY"))
		LLVMVerifyModule(e->module, LLVMAbortProcessAction, NULL);
	if (getenv("SOFTGPU_JITC_DUMP"))
		LLVMDumpModule(e->module);
	error = LLVMRunPasses(e->module, PASSES, machine, options);
	LLVMDisposePassBuilderOptions(options);
	if (!error)
		return true;
	LLVMConsumeError(error);
	return false;
}

static LLVMMemoryBufferRef compile(struct emit *e, LLVMTargetMachineRef machine)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	char *triple = LLVMGetTargetMachineTriple(machine), *error = NULL;
	LLVMMemoryBufferRef object = NULL;

	LLVMSetModuleDataLayout(e->module, layout);
	LLVMSetTarget(e->module, triple);
	LLVMDisposeTargetData(layout);
	LLVMDisposeMessage(triple);
	if (!emit_function(e) || !optimise(e, machine))
		return NULL;
	if (LLVMTargetMachineEmitToMemoryBuffer(machine, e->module, LLVMObjectFile, &error,
						&object)) {
		LLVMDisposeMessage(error);
		return NULL;
	}
	return object;
}

static bool reply_refusal(const char *why)
{
	struct jit_reply reply = { .magic = JIT_MAGIC,
				   .version = JIT_VERSION,
				   .size = sizeof(reply) };

	reply.checksum = JIT_HASH_START;
	snprintf(reply.refusal, sizeof(reply.refusal), "%s", why);
	return end_with_caller(false) && whole_write(STDOUT_FILENO, &reply, sizeof(reply));
}

static bool reply_object(const struct emit *e, LLVMMemoryBufferRef object)
{
	struct jit_reply reply = {
		.magic = JIT_MAGIC,
		.version = JIT_VERSION,
		.n_entries = e->n_entries,
		.n_exits = e->n_exits,
		.n_values = e->n_outs,
		.object_size = (uint32_t)LLVMGetBufferSize(object),
	};
	const struct {
		const void *data;
		size_t size;
	} parts[] = {
		{ e->entries, e->n_entries * sizeof(*e->entries) },
		{ e->exits, e->n_exits * sizeof(*e->exits) },
		{ e->outs, e->n_outs * sizeof(*e->outs) },
		{ LLVMGetBufferStart(object), reply.object_size },
	};
	bool ok;

	reply.object_offset =
		(uint32_t)(sizeof(reply) + parts[0].size + parts[1].size + parts[2].size);
	reply.size = reply.object_offset + reply.object_size;
	reply.checksum = JIT_HASH_START;
	for (int i = 0; i < 4; i++)
		reply.checksum = jit_hash(reply.checksum, parts[i].data, parts[i].size);
	ok = end_with_caller(false) && whole_write(STDOUT_FILENO, &reply, sizeof(reply));
	for (int i = 0; i < 4 && ok; i++)
		ok = whole_write(STDOUT_FILENO, parts[i].data, parts[i].size);
	return ok;
}

static bool answer(struct unit *u, LLVMTargetMachineRef machine)
{
	LLVMMemoryBufferRef object;
	struct emit e = { .u = u, .can_mask = has_masks(machine) };
	bool ok;

	e.ctx = LLVMContextCreate();
	e.module = LLVMModuleCreateWithNameInContext("kernel", e.ctx);
	e.b = LLVMCreateBuilderInContext(e.ctx);
	object = compile(&e, machine);
	ok = object ? reply_object(&e, object) : reply_refusal("LLVM refuses");
	if (object)
		LLVMDisposeMemoryBuffer(object);
	LLVMDisposeBuilder(e.b);
	LLVMDisposeModule(e.module);
	LLVMContextDispose(e.ctx);
	free(e.exits);
	free(e.entries);
	free(e.outs);
	return ok;
}

static bool serve(const void *request, uint32_t size, LLVMTargetMachineRef machine)
{
	struct unit u;
	bool ok;

	if (!unit_read(&u, request, size))
		ok = reply_refusal("not a request");
	else if (!unit_plan(&u))
		ok = reply_refusal(u.refusal);
	else
		ok = answer(&u, machine);
	unit_done(&u);
	return ok;
}

int main(void)
{
	LLVMTargetMachineRef machine;
	struct jit_request head;
	uint8_t *request;
	bool ok;

	machine = machine_new();
	ok = machine != NULL;
	while (ok && wait_for_request() && whole_read(STDIN_FILENO, &head, sizeof(head))) {
		if (head.magic != JIT_MAGIC || head.size < sizeof(head) ||
		    head.size > REQUEST_MAX_BYTES)
			return 1;
		request = malloc(head.size);
		if (!request)
			return 1;
		memcpy(request, &head, sizeof(head));
		ok = whole_read(STDIN_FILENO, request + sizeof(head), head.size - sizeof(head)) &&
		     end_with_caller(true) && serve(request, head.size, machine);
		free(request);
	}
	LLVMDisposeTargetMachine(machine);
	return ok ? 0 : 1;
}
