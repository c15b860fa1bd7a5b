/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/exec/test-kit.h"
#include "softgpu/mem/space.h"
#include "softgpu/ptx/ptx.h"

#define MEMORY_BYTES (64u << 20)

static u8 *memory;
static u64 used;
static int n_failed;
static char printed[65536];
static size_t n_printed;

static int place_alloc(_unused_ void *arg, u64 size, u64 align, u64 *ret_addr)
{
	u64 at = (used + align - 1) / align * align;

	if (at + size > MEMORY_BYTES)
		return -ENOMEM;
	*ret_addr = (u64)(uintptr_t)memory + at;
	used = at + size;
	return 0;
}

static void place_free(_unused_ void *arg, _unused_ u64 addr)
{
}

const struct exec_place kit_place = { .alloc = place_alloc, .free = place_free };

void kit_init(void)
{
	static struct space_range range;
	u8 *p = mmap(NULL, MEMORY_BYTES + SPACE_BLOCK_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	memory = (u8 *)(((uintptr_t)p + SPACE_BLOCK_SIZE - 1) & ~(uintptr_t)(SPACE_BLOCK_SIZE - 1));
	range.addr = (u64)(uintptr_t)memory;
	range.size = MEMORY_BYTES;
	if (space_add(&range, range.addr, MEMORY_BYTES, SPACE_READ_WRITE, SPACE_EVERYONE))
		abort();
	setvbuf(stdout, NULL, _IOLBF, 0);
}

void kit_reset(void)
{
	used = 0;
}

void *kit_alloc(u64 size)
{
	u64 addr;

	if (place_alloc(NULL, size, 256, &addr))
		abort();
	memset((void *)(uintptr_t)addr, 0, size);
	return (void *)(uintptr_t)addr;
}

static struct exec_image *image_of(const char *text, char *log, size_t log_size)
{
	static const char header[] = ".version 8.6\n.target sm_90\n.address_size 64\n";
	struct ptx_log plog = { .text = log, .cap = log_size };
	size_t len = strlen(header) + strlen(text);
	struct exec_image *image = NULL;
	struct ptx_module *module;
	char *whole = malloc(len + 1);

	if (!whole)
		abort();
	log[0] = '\0';
	sprintf(whole, "%s%s", header, text);
	if (!ptx_parse(whole, len, &plog, &module)) {
		exec_image_new(&module, 1, &kit_place, log, log_size, &image);
		ptx_module_free(module);
	}
	free(whole);
	return image;
}

const char *kit_refusal(const char *text)
{
	static char log[1024];

	exec_image_free(image_of(text, log, sizeof(log)));
	return log;
}

struct exec_image *kit_image(const char *text)
{
	char log[1024];
	struct exec_image *image = image_of(text, log, sizeof(log));

	if (!image) {
		printf("%s\n%s\n", text, log);
		abort();
	}
	return image;
}

static void print(_unused_ void *arg, const char *text, size_t len)
{
	if (len > sizeof(printed) - 1 - n_printed)
		len = sizeof(printed) - 1 - n_printed;
	memcpy(printed + n_printed, text, len);
	n_printed += len;
}

const char *kit_printed(void)
{
	printed[n_printed] = '\0';
	n_printed = 0;
	return printed;
}

struct exec_progress kit_run(const struct kit_run *run)
{
	struct exec_launch_args args = {
		.kernel = run->kernel ? exec_kernel_find(run->image, run->kernel)
				      : exec_kernel_at(run->image, 0),
		.grid = { run->grid ? run->grid : 1, 1, 1 },
		.block = { run->block ? run->block : 32, 1, 1 },
		.dynamic_shared_bytes = run->shared,
		.params = run->params,
		.cooperative = run->cooperative,
		.print = print,
	};
	struct exec_budget budget = {
		.instructions = run->budget ? run->budget : UINT64_MAX,
		.wall_ns = run->wall_ns,
	};
	u64 limit = run->limit ? run->limit : UINT64_C(1) << 32, total = 0;
	struct exec_progress p = { .fault = -1 };
	struct exec_launch *launch;

	if (run->limit && run->limit < budget.instructions)
		budget.instructions = run->limit;
	if (!args.kernel || exec_launch_new(&args, &launch))
		return p;
	do {
		exec_step(launch, &budget, &p);
		total += p.instructions;
	} while (!p.done && total < limit && !(p.stalled && p.wake_ns == UINT64_MAX));
	p.instructions = total;
	exec_launch_free(launch);
	return p;
}

bool kit_check(bool ok, const char *format, ...)
{
	va_list ap;

	printf("%s '", ok ? "ok" : "not ok");
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("'\n");
	n_failed += !ok;
	return ok;
}

int kit_result(void)
{
	return n_failed != 0;
}
