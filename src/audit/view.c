// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"

static size_t n_pieces(size_t size)
{
	return (size + VIEW_PIECE - 1) / VIEW_PIECE;
}

struct view *view_new(int fd, void *base, size_t size)
{
	struct view *view = calloc(1, sizeof(*view) + n_pieces(size));

	if (!view)
		return NULL;
	view->fd = fd;
	view->base = base;
	view->size = size;
	view->n_mapped = n_pieces(size);
	memset(view->pieces, 1, view->n_mapped);
	return view;
}

/* The addresses stay taken, so that nobody else's memory comes to lie there. */
static bool piece_unmap(struct view *view, size_t piece, size_t n)
{
	return mmap(view->base + piece * VIEW_PIECE, n, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool piece_map(struct view *view, size_t piece, size_t n)
{
	return mmap(view->base + piece * VIEW_PIECE, n, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, view->fd, piece * VIEW_PIECE) != MAP_FAILED;
}

static size_t piece_size(const struct view *view, size_t piece)
{
	return MIN((size_t)VIEW_PIECE, view->size - piece * VIEW_PIECE);
}

void view_trim(struct view *view, size_t kept)
{
	for (size_t i = n_pieces(kept); i < n_pieces(view->size); i++)
		if (view->pieces[i] && piece_unmap(view, i, piece_size(view, i))) {
			view->pieces[i] = 0;
			view->n_mapped--;
		}
}

int view_whole(struct view *view)
{
	if (mmap(view->base, view->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, view->fd,
		 0) == MAP_FAILED)
		return -errno;
	view->n_mapped = n_pieces(view->size);
	memset(view->pieces, 1, view->n_mapped);
	return 0;
}

void view_map(struct view *view, const void *p, size_t n)
{
	size_t at = (const char *)p - view->base;

	for (size_t i = at / VIEW_PIECE; i <= (at + n - 1) / VIEW_PIECE; i++) {
		if (view->pieces[i])
			continue;
		/* No record can be looked at any more. Who comes next starts with what the kernel keeps. */
		if (!piece_map(view, i, piece_size(view, i)))
			abort();
		view->pieces[i] = 1;
		view->n_mapped++;
	}
}
