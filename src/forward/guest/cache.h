/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are kept: devices do not change, and functions only by calls that are known. */
#ifndef FORWARD_GUEST_CACHE_H
#define FORWARD_GUEST_CACHE_H

#include "forward/wire.h"

/**
 * cache_find() - the answer to the same question
 * @body:	the record's body, which says all that the answer depends on
 * @ret:	room for @room bytes
 *
 * Return: is it there?
 */
bool cache_find(enum wire_cache what, unsigned call, const void *body, size_t size, void *ret,
		size_t room);

/** cache_add() - keep it. Answers beyond what there is room for are not kept. */
void cache_add(enum wire_cache what, unsigned call, const void *body, size_t size,
	       const void *answer, size_t answer_size);

/** cache_end() - answers of that sort are not right any more */
void cache_end(enum wire_cache what);

#endif
