// SPDX-License-Identifier: Apache-2.0
/*
 * The linker. Its texts are written into the program's memory by any call until it ends, and its image lives as long
 * as it does: so there is an object here for each.
 */
#include "forward/guest/code.h"

#include "base/base.h"
#include "forward/guest/heap.h"
#include "forward/guest/writer.h"

#include <pthread.h>

/**
 * struct link - a link that was begun
 * @image:	once it is complete
 */
struct link {
	struct link *next;
	uint64_t name;
	struct options options;
	CUjit_option names[MAX_JIT_OPTIONS];
	void *values[MAX_JIT_OPTIONS];
	void *image;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *all;

static void link_free(struct link *link)
{
	if (!link)
		return;
	free(link->image);
	free(link);
}

static struct link *link_find(CUlinkState state)
{
	struct link *link;

	pthread_mutex_lock(&lock);
	for (link = all; link && link->name != POINTER(state); link = link->next)
		;
	pthread_mutex_unlock(&lock);
	return link;
}

static struct link *link_claim(CUlinkState state)
{
	struct link **at, *link;

	pthread_mutex_lock(&lock);
	for (at = &all; *at && (*at)->name != POINTER(state); at = &(*at)->next)
		;
	link = *at;
	if (link)
		*at = link->next;
	pthread_mutex_unlock(&lock);
	return link;
}

static struct link *link_new(unsigned n, const CUjit_option *names, void *const *values)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	if (n) {
		memcpy(link->names, names, n * sizeof(names[0]));
		memcpy(link->values, values, n * sizeof(values[0]));
	}
	link->options = (struct options){ n, link->names, link->values };
	return link;
}

static size_t options_size(unsigned n)
{
	return (1 + 2 * (size_t)n) * sizeof(uint64_t);
}

static void write_options(struct writer *w, unsigned n, const CUjit_option *names,
			  void *const *values)
{
	unsigned i;

	write_word(w, n);
	for (i = 0; i < n; i++) {
		write_word(w, names[i]);
		write_word(w, POINTER(values[i]));
	}
}

CALL(cuLinkCreate_v2, unsigned n, CUjit_option *names, void **values, CUlinkState *ret)
{
	struct link *link;
	struct writer w;
	const uint8_t *data = NULL;
	size_t size = 0;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || n > MAX_JIT_OPTIONS || (n && (!names || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	link = link_new(n, names, values);
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = writer_begin(&w, CALL_ID_cuLinkCreate_v2, options_size(n));
	if (r == CUDA_SUCCESS) {
		write_options(&w, n, names, values);
		r = lane_ask(w.lane, &data, &size);
	}
	if (r == CUDA_SUCCESS && size < sizeof(link->name))
		r = session_lose();
	if (r != CUDA_SUCCESS) {
		link_free(link);
		return r;
	}
	memcpy(&link->name, data, sizeof(link->name));
	*ret = (CUlinkState)link->name;
	pthread_mutex_lock(&lock);
	link->next = all;
	all = link;
	pthread_mutex_unlock(&lock);
	return lane_error(w.lane, CUDA_SUCCESS);
}

CALL(cuLinkCreate, unsigned n, CUjit_option *names, void **values, CUlinkState *ret)
{
	return cuLinkCreate_v2(n, names, values, ret);
}

static CUresult send_piece(struct link *link, CUjitInputType type, const struct parcel *parcel,
			   const struct options *options)
{
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r;

	r = writer_begin(&w, CALL_ID_cuLinkAddData_v2,
			 2 * sizeof(uint64_t) + sizeof(parcel->buffer) + options_size(options->n));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, link->name);
	write_word(&w, type);
	write_bytes(&w, &parcel->buffer, sizeof(parcel->buffer));
	write_options(&w, options->n, options->names, options->values);
	r = lane_ask(w.lane, &data, &size);
	if (data)
		options_texts(&link->options, data, size);
	return lane_error(w.lane, r);
}

CALL(cuLinkAddData_v2, CUlinkState state, CUjitInputType type, void *data, size_t size,
     _unused_ const char *name, unsigned n, CUjit_option *names, void **values)
{
	struct options options = { n, names, values };
	struct link *link = link_find(state);
	struct parcel parcel;
	struct image image;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || size == 0 || n > MAX_JIT_OPTIONS || (n && (!names || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	image.n = 1;
	image.size = size;
	image.parts[0] = (struct part){ data, size };
	r = parcel_make(&image, &parcel);
	if (r != CUDA_SUCCESS)
		return r;
	r = send_piece(link, type, &parcel, &options);
	parcel_done(&parcel);
	return r;
}

CALL(cuLinkAddData, CUlinkState state, CUjitInputType type, void *data, size_t size,
     const char *name, unsigned n, CUjit_option *names, void **values)
{
	return cuLinkAddData_v2(state, type, data, size, name, n, names, values);
}

CALL(cuLinkAddFile_v2, CUlinkState state, CUjitInputType type, const char *path, unsigned n,
     CUjit_option *names, void **values)
{
	_cleanup_free_ char *text = NULL;
	CUresult r = session_check();
	size_t size;

	if (r != CUDA_SUCCESS)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	r = code_file_read(path, &text, &size);
	return r == CUDA_SUCCESS ? cuLinkAddData_v2(state, type, text, size, path, n, names, values)
				 : r;
}

CALL(cuLinkAddFile, CUlinkState state, CUjitInputType type, const char *path, unsigned n,
     CUjit_option *names, void **values)
{
	return cuLinkAddFile_v2(state, type, path, n, names, values);
}

/* A block of the image after the other. */
static CUresult fetch(uint64_t name, char *to, size_t size)
{
	unsigned block = heap_take();
	size_t done = 0, n;
	CUresult r = CUDA_SUCCESS;

	while (done < size && r == CUDA_SUCCESS) {
		struct wire_buffer buffer;
		struct writer w;

		n = MIN(size - done, (size_t)HEAP_BLOCK);
		buffer = heap_buffer(block, n);
		r = writer_begin(&w, WIRE_LINK_IMAGE, 2 * sizeof(uint64_t) + sizeof(buffer));
		if (r != CUDA_SUCCESS)
			break;
		write_word(&w, name);
		write_word(&w, done);
		write_bytes(&w, &buffer, sizeof(buffer));
		r = call_ask(w.lane, NULL, NULL);
		if (r == CUDA_SUCCESS)
			memcpy(to + done, heap_at(block), n);
		done += n;
	}
	heap_give(block);
	return r;
}

/* Links, and tells how large the image is. */
static CUresult complete(struct link *link, uint64_t *ret_size)
{
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r;

	r = writer_begin(&w, CALL_ID_cuLinkComplete, sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, link->name);
	r = lane_ask(w.lane, &data, &size);
	if (data && size >= sizeof(*ret_size)) {
		memcpy(ret_size, data, sizeof(*ret_size));
		options_texts(&link->options, data + sizeof(*ret_size), size - sizeof(*ret_size));
	}
	return lane_error(w.lane, r);
}

CALL(cuLinkComplete, CUlinkState state, void **ret, size_t *ret_size)
{
	struct link *link = link_find(state);
	_cleanup_free_ char *image = NULL;
	uint64_t size = 0;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = complete(link, &size);
	if (r != CUDA_SUCCESS)
		return r;
	/* Who loads it looks at a head, whatever it turns out to be. */
	image = calloc(1, size + 64);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = fetch(link->name, image, size);
	if (r != CUDA_SUCCESS)
		return r;
	free(link->image);
	*ret = link->image = TAKE_PTR(image);
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

CALL(cuLinkDestroy, CUlinkState state)
{
	struct link *link;
	struct writer w;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	link = link_claim(state);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	r = writer_begin(&w, CALL_ID_cuLinkDestroy, sizeof(uint64_t));
	if (r == CUDA_SUCCESS) {
		write_word(&w, link->name);
		r = call_ask(w.lane, NULL, NULL);
	}
	link_free(link);
	return r;
}
