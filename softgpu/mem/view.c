// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/view.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A new view looks at those stretches only in which there ever was anything. */
#define STRETCH_BLOCKS 512
#define N_STRETCHES    (SPACE_N_BLOCKS / STRETCH_BLOCKS)

#define FIRST_NAMED (SPACE_DEVICE(SPACE_DEVICES_MAX))
#define N_NAMED	    (UINT8_MAX + 1 - FIRST_NAMED)

struct space_view {
	unsigned device;
	uint64_t reaches;
	uint8_t *blocks;
	struct space_view *next;
};

/* Devices that are named one by one, a bit for each. */
struct named {
	uint64_t readers, writers;
};

uint8_t space_blocks[SPACE_N_BLOCKS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock; only added to: the names. */
static struct space_view *views;
static uint8_t whose_blocks[SPACE_N_BLOCKS];
static uint64_t used_stretches[N_STRETCHES / 64];
static struct named named[N_NAMED];
static unsigned n_named;

uint8_t space_named(uint64_t readers, uint64_t writers)
{
	uint8_t whose = SPACE_EVERYONE;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_named; i++)
		if (named[i].readers == readers && named[i].writers == writers)
			break;
	if (i == n_named && n_named < N_NAMED)
		named[n_named++] = (struct named){ readers, writers };
	/* More combinations than anybody has: those that come late are not told apart. */
	if (i < n_named)
		whose = (uint8_t)(FIRST_NAMED + i);
	pthread_mutex_unlock(&lock);

	return whose;
}

static uint8_t access_in(const struct space_view *view, uint8_t access, uint8_t whose)
{
	const struct named *names;

	if (whose == SPACE_EVERYONE || access == SPACE_NONE)
		return access;
	if (whose < FIRST_NAMED)
		return view->reaches >> (whose - SPACE_DEVICE(0)) & 1 ? access : SPACE_NONE;

	names = &named[whose - FIRST_NAMED];
	if (names->writers >> view->device & 1)
		return SPACE_READ_WRITE;
	return names->readers >> view->device & 1 ? SPACE_READ : SPACE_NONE;
}

static void stretches_use(uint64_t block, uint64_t n)
{
	uint64_t stretch = block / STRETCH_BLOCKS, last = (block + n - 1) / STRETCH_BLOCKS;

	for (; stretch <= last; stretch++)
		used_stretches[stretch / 64] |= 1ULL << (stretch % 64);
}

void space_blocks_set(uint64_t block, uint64_t n, uint8_t access, uint8_t whose)
{
	if (n == 0)
		return;

	pthread_mutex_lock(&lock);
	memset(&space_blocks[block], access, n);
	memset(&whose_blocks[block], whose, n);
	stretches_use(block, n);
	for (const struct space_view *view = views; view; view = view->next)
		memset(&view->blocks[block], access_in(view, access, whose), n);
	pthread_mutex_unlock(&lock);
}

static void stretch_look(struct space_view *view, uint64_t stretch)
{
	uint64_t block = stretch * STRETCH_BLOCKS, end = block + STRETCH_BLOCKS;

	for (; block < end; block++)
		view->blocks[block] = access_in(view, space_blocks[block], whose_blocks[block]);
}

/* Looks at everything anew. Under the lock. */
static void view_look(struct space_view *view)
{
	for (uint64_t word = 0; word < N_STRETCHES / 64; word++)
		for (uint64_t map = used_stretches[word]; map; map &= map - 1)
			stretch_look(view, word * 64 + (uint64_t)__builtin_ctzll(map));
}

int space_view_new(unsigned device, struct space_view **ret)
{
	struct space_view *view = calloc(1, sizeof(*view));

	if (!view)
		return -ENOMEM;
	view->device = device;
	view->reaches = 1ULL << device;
	view->blocks = mmap(NULL, SPACE_N_BLOCKS, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view->blocks == MAP_FAILED) {
		free(view);
		return -ENOMEM;
	}

	pthread_mutex_lock(&lock);
	view_look(view);
	view->next = views;
	views = view;
	pthread_mutex_unlock(&lock);
	*ret = view;
	return 0;
}

void space_view_free(struct space_view *view)
{
	struct space_view **at = &views;

	if (!view)
		return;

	pthread_mutex_lock(&lock);
	while (*at != view)
		at = &(*at)->next;
	*at = view->next;
	pthread_mutex_unlock(&lock);
	munmap(view->blocks, SPACE_N_BLOCKS);
	free(view);
}

void space_view_reach(struct space_view *view, uint64_t devices)
{
	pthread_mutex_lock(&lock);
	view->reaches = 1ULL << view->device | devices;
	view_look(view);
	pthread_mutex_unlock(&lock);
}

const uint8_t *space_view_blocks(const struct space_view *view)
{
	return view ? view->blocks : space_blocks;
}
