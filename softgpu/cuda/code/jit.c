// SPDX-License-Identifier: Apache-2.0
/*
 * The options of the just-in-time compiler, and code: parsing, linking, what is said about it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/cuda/code/jit.h"
#include "softgpu/engine/engine.h"

/* A log without a size, or a size without a log, is no log. */
static void log_begin(struct ptx_log *log)
{
	if (!log->text || !log->cap)
		*log = (struct ptx_log){ 0 };
	else
		log->text[0] = '\0';
}

void jit_begin_plain(struct jit *jit)
{
	*jit = (struct jit){ .start_ns = engine_now_ns() };
	jit->error = (struct ptx_log){ jit->own, sizeof(jit->own), 0 };
}

CUresult jit_begin(struct jit *jit, unsigned int n_options, const CUjit_option *options,
		   void **values)
{
	*jit = (struct jit){ .start_ns = engine_now_ns() };
	if (n_options > 0 && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;

	for (unsigned int i = 0; i < n_options; i++) {
		switch (options[i]) {
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->error.text = values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error.cap = (unsigned int)(uintptr_t)values[i];
			jit->error_size = &values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER:
			jit->info.text = values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			jit->info.cap = (unsigned int)(uintptr_t)values[i];
			jit->info_size = &values[i];
			break;
		case CU_JIT_WALL_TIME:
			jit->wall_time = &values[i];
			break;
		default:
			/* What the others choose makes no difference to an interpreter. */
			if ((unsigned int)options[i] >= CU_JIT_NUM_OPTIONS)
				return CUDA_ERROR_INVALID_VALUE;
		}
	}

	log_begin(&jit->error);
	log_begin(&jit->info);
	if (!jit->error.text && !jit->error_size)
		jit->error = (struct ptx_log){ jit->own, sizeof(jit->own), 0 };
	return CUDA_SUCCESS;
}

void jit_end(struct jit *jit)
{
	union {
		float ms;
		void *value;
	} wall = { .value = NULL };

	if (jit->error.len > jit->n_said)
		driver_log("code is refused: %s", jit->error.text + jit->n_said);
	jit->n_said = jit->error.len;
	if (jit->error_size)
		*jit->error_size = (void *)(uintptr_t)jit->error.len;
	if (jit->info_size)
		*jit->info_size = (void *)(uintptr_t)jit->info.len;
	if (jit->wall_time) {
		wall.ms = (float)(engine_now_ns() - jit->start_ns) / 1e6f;
		*jit->wall_time = wall.value;
	}
}

static CUresult code_error(int r)
{
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_PTX;
}

CUresult code_new(const struct fatbin_image *image, struct jit *jit, struct code **ret)
{
	struct code *code;
	int r;

	code = calloc(1, sizeof(*code));
	if (!code)
		return CUDA_ERROR_OUT_OF_MEMORY;
	code->modules = calloc(image->n_ptx, sizeof(*code->modules));
	if (!code->modules) {
		code_free(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	for (size_t i = 0; i < image->n_ptx; i++) {
		r = ptx_parse(image->ptx[i].text, image->ptx[i].len, &jit->error,
			      &code->modules[i]);
		if (r != 0) {
			code_free(code);
			return code_error(r);
		}
		code->n_modules++;
	}
	*ret = code;
	return CUDA_SUCCESS;
}

void code_free(struct code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->n_modules; i++)
		ptx_module_free(code->modules[i]);
	free(code->modules);
	free(code);
}

/* Names the architectures that the program was built for; it takes one more, with PTX. */
static void log_no_ptx(struct ptx_log *log, const struct fatbin_image *image)
{
	char archs[FATBIN_ARCHS_MAX * sizeof(" sm_4294967295")] = "";
	size_t n = 0;

	for (size_t i = 0; i < image->n_archs; i++)
		n += snprintf(archs + n, sizeof(archs) - n, " sm_%u", image->archs[i]);
	ptx_log_line(log,
		     "error   : the image has machine code only%s%s, and a software GPU runs PTX",
		     n ? ", for" : "", archs);
}

CUresult image_read(const void *image, const struct fatbin_reach *reach, struct device *device,
		    struct jit *jit, struct fatbin_image **ret)
{
	unsigned int arch = device->config.compute_major * 10 + device->config.compute_minor;
	struct fatbin_image *read;

	switch (fatbin_read(image, reach, arch, &read)) {
	case 0:
		*ret = read;
		return CUDA_SUCCESS;
	case FATBIN_E_INVALID:
		ptx_log_line(&jit->error, "error   : the image is neither PTX nor a fat binary, "
					  "or is damaged");
		return CUDA_ERROR_INVALID_IMAGE;
	case FATBIN_E_NO_PTX:
		log_no_ptx(&jit->error, read);
		fatbin_image_free(read);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	default:
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

CUresult code_read(const void *image, const struct fatbin_reach *reach, struct device *device,
		   struct jit *jit, struct code **ret)
{
	struct fatbin_image *read;
	CUresult r;

	r = image_read(image, reach, device, jit, &read);
	if (r != CUDA_SUCCESS)
		return r;
	r = code_new(read, jit, ret);
	fatbin_image_free(read);
	return r;
}

const struct ptx_var *code_variable(const struct code *code, const char *name)
{
	const struct ptx_symbol *symbol;

	for (size_t i = 0; i < code->n_modules; i++) {
		symbol = ptx_symbol_find(code->modules[i], name);
		if (symbol && symbol->var && symbol->linkage != PTX_LINK_EXTERN)
			return symbol->var;
	}
	return NULL;
}

CUresult code_place(const struct code *code, const struct exec_place *place, struct jit *jit,
		    struct exec_image **ret)
{
	char why[256];
	int r;

	r = exec_image_new(code->modules, code->n_modules, place, why, sizeof(why), ret);
	if (r == 0)
		return CUDA_SUCCESS;
	if (r == EXEC_E_LINK)
		ptx_log_line(&jit->error, "error   : %s", why);
	return code_error(r);
}

static int nowhere_alloc(_unused_ void *arg, uint64_t size, uint64_t align, uint64_t *ret_addr)
{
	void *at;

	if (posix_memalign(&at, align < 16 ? 16 : align, size ? size : 1) != 0)
		return -ENOMEM;
	*ret_addr = (uintptr_t)at;
	return 0;
}

static void nowhere_free(_unused_ void *arg, uint64_t addr)
{
	free((void *)addr);
}

CUresult code_place_nowhere(const struct code *code, struct jit *jit, struct exec_image **ret)
{
	const struct exec_place nowhere = { nowhere_alloc, nowhere_free, NULL };

	return code_place(code, &nowhere, jit, ret);
}

CUresult image_file_read(const char *path, struct fatbin_span *ret)
{
	struct stat st;
	size_t n = 0;
	ssize_t got;
	char *bytes;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return CUDA_ERROR_FILE_NOT_FOUND;
	}

	bytes = malloc(st.st_size + 1);
	while (bytes && n < (size_t)st.st_size) {
		got = read(fd, bytes + n, st.st_size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += got;
	}
	close(fd);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = (struct fatbin_span){ bytes, n };
	return CUDA_SUCCESS;
}
