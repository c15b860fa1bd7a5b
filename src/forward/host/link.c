// SPDX-License-Identifier: Apache-2.0
/*
 * The driver keeps its options and where its texts go for as long as a link lives, so they lie in an object of ours,
 * which is what the name leads to. One lock guards all links from their names to their ends: linking is rare, and two
 * lanes may be about the same one.
 */
#include "forward/host/link.h"

#include "base/base.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/jit-options.h"

#include <pthread.h>
#include <string.h>

#define MAX_PIECE (1ULL << 30)

/**
 * struct link - a link of the driver's
 * @rooms:	bytes of each text; -1: the guest wants none
 * @image:	the driver's, once it is complete
 */
struct link {
	CUlinkState state;
	struct jit_options options;
	int rooms[JIT_TEXTS];
	char *texts[JIT_TEXTS];
	const uint8_t *image;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void link_free(struct link *link)
{
	int i;

	if (!link)
		return;
	for (i = 0; i < JIT_TEXTS; i++)
		free(link->texts[i]);
	free(link);
}

static struct link *link_new(struct reader *reader)
{
	struct link *link = calloc(1, sizeof(*link));
	unsigned i;

	if (!link || !jit_options_take(reader, &link->options)) {
		link_free(link);
		return NULL;
	}
	for (i = 0; i < JIT_TEXTS; i++) {
		link->rooms[i] = jit_options_room(&link->options, i);
		if (link->rooms[i] < 0)
			continue;
		link->texts[i] = calloc(1, (size_t)link->rooms[i] + 1);
		if (!link->texts[i]) {
			link_free(link);
			return NULL;
		}
		jit_options_place(&link->options, i, link->texts[i], link->rooms[i]);
	}
	return link;
}

CUresult link_create(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t *name = reply_bytes(command, sizeof(*name));
	struct link *link = name ? link_new(&reader) : NULL;
	CUresult r;

	if (!link)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuLinkCreate_v2, link->options.n, POINTER(link->options.names),
		   POINTER(link->options.values), POINTER(&link->state));
	if (r == CUDA_SUCCESS) {
		*name = handle_put(HANDLE_LINK, POINTER(link));
		if (*name)
			return CUDA_SUCCESS;
		DRIVER(cuLinkDestroy, POINTER(link->state));
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	link_free(link);
	return r;
}

/* The caller has the lock. */
static struct link *link_take(struct reader *reader)
{
	return (struct link *)reader_handle(reader, HANDLE_LINK);
}

static bool texts_reply(struct command *command, const struct link *link)
{
	uint8_t *at;
	int i;

	for (i = 0; i < JIT_TEXTS; i++) {
		if (link->rooms[i] < 0)
			continue;
		at = reply_bytes(command, (size_t)link->rooms[i]);
		if (!at)
			return false;
		memcpy(at, link->texts[i], (size_t)link->rooms[i]);
	}
	return true;
}

/* What the guest shares, it could change under the linker: a copy, with a zero more for texts. */
static char *piece_copy(struct reader *reader, uint64_t *ret_size)
{
	const void *from = reader_buffer(reader, ret_size);
	char *piece;

	if (!from || *ret_size == 0 || *ret_size > MAX_PIECE)
		return NULL;
	piece = malloc(*ret_size + 1);
	if (!piece)
		return NULL;
	memcpy(piece, from, *ret_size);
	piece[*ret_size] = '\0';
	return piece;
}

static CUresult add_locked(struct command *command)
{
	struct reader reader = command_reader(command);
	struct link *link = link_take(&reader);
	uint64_t size = 0, kind = reader_word(&reader);
	_cleanup_free_ char *piece = piece_copy(&reader, &size);
	struct jit_options options;
	CUresult r;

	/* Its own texts a piece cannot have: they would have to outlive the call. */
	if (!link || !piece || !jit_options_take(&reader, &options) ||
	    jit_options_room(&options, 0) >= 0 || jit_options_room(&options, 1) >= 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuLinkAddData_v2, POINTER(link->state), kind, POINTER(piece), size,
		   POINTER("piece"), options.n, POINTER(options.names), POINTER(options.values));
	return texts_reply(command, link) ? r : CUDA_ERROR_INVALID_VALUE;
}

static CUresult complete_locked(struct command *command)
{
	struct reader reader = command_reader(command);
	struct link *link = link_take(&reader);
	uint64_t *size = reply_bytes(command, sizeof(*size));
	CUresult r;

	if (!link || !size)
		return CUDA_ERROR_INVALID_VALUE;
	link->size = 0;
	r = DRIVER(cuLinkComplete, POINTER(link->state), POINTER(&link->image),
		   POINTER(&link->size));
	if (r != CUDA_SUCCESS)
		link->size = 0;
	*size = link->size;
	return texts_reply(command, link) ? r : CUDA_ERROR_INVALID_VALUE;
}

static CUresult image_locked(struct command *command)
{
	struct reader reader = command_reader(command);
	struct link *link = link_take(&reader);
	uint64_t size = 0, offset = reader_word(&reader);
	void *to = reader_buffer(&reader, &size);

	if (!link || !to || size > link->size || offset > link->size - size)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, link->image + offset, size);
	return CUDA_SUCCESS;
}

static CUresult destroy_locked(struct command *command)
{
	struct reader reader = command_reader(command);
	struct link *link = link_take(&reader);
	CUresult r;

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	r = DRIVER(cuLinkDestroy, POINTER(link->state));
	handle_drop(handle_find(HANDLE_LINK, POINTER(link)));
	link_free(link);
	return r;
}

static CUresult with_lock(struct command *command, CUresult (*run)(struct command *command))
{
	CUresult r;

	pthread_mutex_lock(&lock);
	r = run(command);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult link_add(struct command *command)
{
	return with_lock(command, add_locked);
}

CUresult link_complete(struct command *command)
{
	return with_lock(command, complete_locked);
}

CUresult link_image(struct command *command)
{
	return with_lock(command, image_locked);
}

CUresult link_destroy(struct command *command)
{
	return with_lock(command, destroy_locked);
}
