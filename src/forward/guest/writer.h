/* SPDX-License-Identifier: Apache-2.0 */
/* Records of calls by hand, which are filled piece by piece. */
#ifndef FORWARD_GUEST_WRITER_H
#define FORWARD_GUEST_WRITER_H

#include "forward/guest/call.h"

#include <string.h>

/**
 * struct writer - a record that was begun
 * @at:		where the next piece goes
 */
struct writer {
	struct guest_lane *lane;
	uint8_t *at;
};

static inline CUresult writer_begin(struct writer *w, unsigned call, size_t size)
{
	return call_begin(call, size, &w->lane, (void **)&w->at);
}

static inline void write_word(struct writer *w, uint64_t word)
{
	memcpy(w->at, &word, sizeof(word));
	w->at += sizeof(word);
}

static inline void write_bytes(struct writer *w, const void *from, size_t n)
{
	if (n)
		memcpy(w->at, from, n);
	w->at += wire_align(n);
}

#endif
