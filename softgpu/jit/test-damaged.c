/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the cache that are damaged, wherever and however: the kernel is compiled again, its
 * result is right, and a whole entry takes the place of the damaged one.
 */
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/test-kit.h"
#include "softgpu/jit/jit.h"

#define N_THREADS 64
#define N_FLIPS	  24
#define N_CUTS	  8

static char folder[] = "/tmp/test-jit-damaged.XXXXXX";
static u32 n_told; /* damaged entries that the log names */

static const char text[] =
	".visible .entry k(.param .u64 out)\n{\n"
	".reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4;\n"
	"add.s64 %d0, %d0, %d1; mad.lo.u32 %r1, %r0, %r0, 7; st.global.u32 [%d0], %r1; ret;\n}\n";

static void count_line(const char *format, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	n_told += strstr(line, "damaged") != NULL;
}

/* Compiled or from the cache, but never interpreted; and right. */
static bool run(struct jit_counts *ret)
{
	struct kit_run run = { .image = kit_image(text), .grid = 1, .block = N_THREADS };
	struct jit_counts before;
	u32 *out = kit_alloc(N_THREADS * sizeof(*out)), n_right = 0;

	jit_counts(&before);
	run.params[0] = (u64)(uintptr_t)out;
	kit_run(&run);
	jit_counts(ret);
	for (u32 i = 0; i < N_THREADS; i++)
		n_right += out[i] == i * i + 7;
	exec_image_free(run.image);
	kit_reset();
	ret->n_compiled -= before.n_compiled;
	ret->n_cached -= before.n_cached;
	ret->n_refused -= before.n_refused;
	return n_right == N_THREADS && ret->n_compiled + ret->n_cached == 1 && !ret->n_refused;
}

/* The only entry; the caller frees it. */
static u8 *read_entry(char *ret_path, size_t room, size_t *ret_size)
{
	char pattern[64];
	glob_t found;
	struct stat st;
	u8 *bytes;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "%s/softgpu/*.jit", folder);
	if (glob(pattern, 0, NULL, &found) || found.gl_pathc != 1)
		abort();
	snprintf(ret_path, room, "%s", found.gl_pathv[0]);
	globfree(&found);
	f = fopen(ret_path, "re");
	if (!f || fstat(fileno(f), &st) < 0)
		abort();
	*ret_size = (size_t)st.st_size;
	bytes = malloc(*ret_size);
	if (!bytes || fread(bytes, 1, *ret_size, f) != *ret_size)
		abort();
	fclose(f);
	return bytes;
}

static void write_entry(const char *path, const u8 *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
		abort();
}

/* Whether a run goes well with it there, and the one after that finds what it has left. */
static bool survives(const char *path, const u8 *bytes, size_t size, u32 *n_compiled)
{
	struct jit_counts counts;
	bool ok;

	write_entry(path, bytes, size);
	ok = run(&counts);
	*n_compiled += counts.n_compiled;
	return run(&counts) && counts.n_cached == 1 && ok;
}

static void test_damage(void)
{
	u32 n_flips = 0, n_cuts = 0, n_compiled = 0;
	char path[512];
	size_t size;
	u8 *bytes = read_entry(path, sizeof(path), &size);

	for (u32 i = 0; i < N_CUTS; i++)
		n_cuts += survives(path, bytes, size * i / N_CUTS, &n_compiled);
	kit_check(n_cuts == N_CUTS && n_compiled == N_CUTS,
		  "%u of %u entries that were cut off were made again", n_compiled, N_CUTS);
	n_compiled = 0;
	for (u32 i = 0; i < N_FLIPS; i++) {
		size_t at = (size - 1) * i / (N_FLIPS - 1);

		bytes[at] ^= 1 << i % 8;
		n_flips += survives(path, bytes, size, &n_compiled);
		bytes[at] ^= 1 << i % 8;
	}
	/* Not every byte of a reply's head says anything. */
	kit_check(n_flips == N_FLIPS && n_compiled >= N_FLIPS - 2,
		  "all of %u entries with a flipped bit did no harm, %u were made again", N_FLIPS,
		  n_compiled);
	kit_check(n_told > 0, "the log names those that looked whole: %u", n_told);
	free(bytes);
}

int main(void)
{
	struct jit_counts counts;
	char command[64];

	if (!mkdtemp(folder))
		return 1;
	setenv("XDG_CACHE_HOME", folder, 1);
	kit_init();
	jit_init(JIT_ON, count_line);
	if (exec_compiler) {
		kit_check(run(&counts) && counts.n_compiled == 1, "the first launch compiles");
		kit_check(run(&counts) && counts.n_cached == 1, "the second finds it");
		test_damage();
	}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		return 1;
	return exec_compiler ? kit_result() : 77;
}
