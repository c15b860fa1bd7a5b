// SPDX-License-Identifier: Apache-2.0
/* A list of stretches sorted by address, each a grant of its own. */
#include "forward/guest/shared.h"

#include "base/base.h"
#include "forward/guest/session.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

struct stretch {
	struct stretch *next;
	uint64_t address;
	uint64_t size;
	uint32_t grant;
	unsigned n_users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stretch *all;

static uint64_t end_of(const struct stretch *s)
{
	return s->address + s->size;
}

static bool is_mapped(uint64_t address, uint64_t size)
{
	unsigned char there;
	uint64_t at;

	for (at = address; at < address + size; at += SHARED_PAGE)
		if (mincore((void *)at, SHARED_PAGE, &there) < 0)
			return false;
	return true;
}

/* A new stretch, which goes in at @at. */
static int stretch_new(struct stretch **at, uint64_t address, uint64_t size, bool keep)
{
	struct stretch *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	if (r == 0 && keep && !is_mapped(address, size))
		r = -EFAULT;
	if (r == 0)
		r = session_grant((void *)address, size, keep, &s->grant);
	if (r < 0) {
		free(s);
		return r;
	}
	s->address = address;
	s->size = size;
	s->next = *at;
	*at = s;
	return 0;
}

static void round_out(uint64_t *address, uint64_t *end)
{
	*address &= ~(SHARED_PAGE - 1);
	*end = (*end + SHARED_PAGE - 1) & ~(SHARED_PAGE - 1);
}

/* The caller has the lock. Users of the stretches between @address and @end become fewer. */
static void put_locked(uint64_t address, uint64_t end)
{
	struct stretch **at = &all, *s;

	while ((s = *at)) {
		if (s->address >= end || end_of(s) <= address || --s->n_users > 0) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		session_revoke(s->grant);
		free(s);
	}
}

/* A new stretch of at most that size; a smaller one where the carrier cannot share so many pieces at once. */
static int stretch_fit(struct stretch **at, uint64_t address, uint64_t size, bool keep)
{
	int r = stretch_new(at, address, size, keep);

	while (r == -E2BIG && size > SHARED_PAGE) {
		size = (size / 2 + SHARED_PAGE - 1) & ~(SHARED_PAGE - 1);
		r = stretch_new(at, address, size, keep);
	}
	return r;
}

static int take_locked(uint64_t address, uint64_t end, bool keep)
{
	struct stretch **at = &all;
	uint64_t done = address, gap_end;
	int r;

	while (done < end) {
		while (*at && end_of(*at) <= done)
			at = &(*at)->next;
		if (!*at || (*at)->address > done) {
			gap_end = *at ? MIN((*at)->address, end) : end;
			r = stretch_fit(at, done, gap_end - done, keep);
			if (r < 0) {
				put_locked(address, done);
				return r;
			}
		}
		(*at)->n_users++;
		done = end_of(*at);
	}
	return 0;
}

int shared_take(uint64_t address, uint64_t size, bool keep)
{
	uint64_t end = address + size;
	int r;

	round_out(&address, &end);
	pthread_mutex_lock(&lock);
	r = take_locked(address, end, keep);
	pthread_mutex_unlock(&lock);
	return r;
}

void shared_put(uint64_t address, uint64_t size)
{
	uint64_t end = address + size;

	round_out(&address, &end);
	pthread_mutex_lock(&lock);
	put_locked(address, end);
	pthread_mutex_unlock(&lock);
}

static bool buffer_locked(uint64_t address, uint64_t end, struct wire_buffer *ret)
{
	struct stretch *s = all;
	uint64_t done = address;

	while (s && end_of(s) <= address)
		s = s->next;
	if (!s || s->address > address)
		return false;
	*ret = (struct wire_buffer){ s->grant, 0, address - s->address, end - address };
	/* Where it goes on in the next one, both sides have it at its address. */
	for (done = end_of(s); done < end; done = end_of(s)) {
		s = s->next;
		if (!s || s->address != done)
			return false;
		ret->grant = WIRE_BY_ADDRESS;
		ret->offset = address;
	}
	return true;
}

bool shared_buffer(uint64_t address, uint64_t size, struct wire_buffer *ret)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = buffer_locked(address, address + size, ret);
	pthread_mutex_unlock(&lock);
	return found;
}
