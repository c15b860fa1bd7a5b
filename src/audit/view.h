/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared state as this process sees it: of its 26 MB those pieces that are in use.
 *
 * The kernel puts every page of a map into the memory of who maps it, touched or not, so what nobody
 * needs is left unmapped, and mapped when a record there is looked at. The address of a record never changes.
 */
#ifndef AUDIT_VIEW_H
#define AUDIT_VIEW_H

#include <stddef.h>
#include <stdint.h>

#define VIEW_PIECE 65536

/**
 * struct view - a mapped file
 * @n_mapped:	pieces
 * @pieces:	a byte for each: whether it is
 */
struct view {
	int fd;
	char *base;
	size_t size;
	size_t n_mapped;
	uint8_t pieces[];
};

/** view_new() - of a file that is mapped as a whole at @base. Return: NULL where there is no memory */
struct view *view_new(int fd, void *base, size_t size);

/** view_trim() - keep the first @kept bytes mapped, and nothing else */
void view_trim(struct view *view, size_t kept);

/** view_whole() - map all of it, for a child that will have no descriptor of it. Return: 0 or a fault */
int view_whole(struct view *view);

/** view_map() - map the pieces around @n bytes at @p */
void view_map(struct view *view, const void *p, size_t n);

/** view_reach() - see to it that @n bytes at @p can be looked at. Return: @p */
static inline void *view_reach(struct view *view, void *p, size_t n)
{
	size_t at = (char *)p - view->base;

	if (!view->pieces[at / VIEW_PIECE] || !view->pieces[(at + n - 1) / VIEW_PIECE])
		view_map(view, p, n);
	return p;
}

#endif
