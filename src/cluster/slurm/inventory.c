/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/slurm/inventory.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

/* Whole devices of one job on one node, at most. */
#define MAX_WHOLE 64

static struct inventory_device *find_device(const struct inventory *inventory, const char *node,
					    const char *type)
{
	size_t i;

	for (i = 0; i < inventory->n_devices; i++) {
		struct inventory_device *d = &inventory->devices[i];

		if (str_eq(d->node, node) && str_eq(d->type, type))
			return d;
	}
	return NULL;
}

static int add_device(struct inventory *inventory, const char *node, const struct gres *gres)
{
	struct inventory_device *d =
		reallocarray(inventory->devices, inventory->n_devices + 1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	inventory->devices = d;
	d += inventory->n_devices;
	*d = (struct inventory_device){ .total = gres->count };
	str_copy(d->type, sizeof(d->type), gres->type);
	/* A longer name would be another node's. */
	if (str_copy(d->node, sizeof(d->node), node))
		inventory->n_devices++;
	return 0;
}

int inventory_add_node(struct inventory *inventory, const char *node, const char *gres)
{
	struct gres item;
	int r = 0;

	while (r == 0 && gres_next(&gres, &item) > 0) {
		if (str_eq(item.name, "shard") && *item.type)
			r = add_device(inventory, node, &item);
	}
	return r;
}

void inventory_use(struct inventory *inventory, const char *node, const char *gres)
{
	struct inventory_device *d;
	struct gres item;

	while (gres_next(&gres, &item) > 0) {
		d = str_eq(item.name, "shard") ? find_device(inventory, node, item.type) : NULL;
		if (d)
			d->used += MIN(item.count, d->total - d->used);
	}
}

static uint64_t *queue_of(const struct inventory *inventory, const char *type)
{
	size_t i;

	for (i = 0; i < inventory->n_queues; i++) {
		if (str_eq(inventory->queues[i].type, type))
			return &inventory->queues[i].shards;
	}
	return NULL;
}

static int add_queue(struct inventory *inventory, const char *type)
{
	struct inventory_queue *q =
		reallocarray(inventory->queues, inventory->n_queues + 1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	inventory->queues = q;
	q += inventory->n_queues++;
	*q = (struct inventory_queue){};
	str_copy(q->type, sizeof(q->type), type);
	return 0;
}

int inventory_wait(struct inventory *inventory, const char *gres)
{
	struct gres item;
	uint64_t *shards;

	while (gres_next(&gres, &item) > 0) {
		if (!str_eq(item.name, "shard") || !*item.type)
			continue;
		if (!queue_of(inventory, item.type) && add_queue(inventory, item.type) < 0)
			return -ENOMEM;
		shards = queue_of(inventory, item.type);
		*shards += MIN(item.count, UINT64_MAX - *shards);
	}
	return 0;
}

void inventory_done(struct inventory *inventory)
{
	free(inventory->devices);
	free(inventory->queues);
	memset(inventory, 0, sizeof(*inventory));
}

/* --- choosing --- */

static bool matches(const struct inventory_device *d, const struct inventory_request *request)
{
	return (!*request->type || str_eq(d->type, request->type)) &&
	       (!request->allowed || request->allowed(d->node, request->userdata));
}

static uint64_t waiting_for(const struct inventory *inventory, const char *type)
{
	const uint64_t *shards = queue_of(inventory, type);

	return shards ? *shards : 0;
}

static uint64_t free_of(const struct inventory_device *d)
{
	return d->total - d->used;
}

/*
 * Is device a the better one? Among those with room: who is left with least; without: who is
 * waited for by least. A type that others wait for has no room, whatever is free there now.
 */
static bool is_better(const struct inventory *inventory, const struct inventory_device *a,
		      const struct inventory_device *b, uint64_t shards)
{
	uint64_t wait_a = waiting_for(inventory, a->type), wait_b = waiting_for(inventory, b->type);
	bool room_a = free_of(a) >= shards && !wait_a, room_b = free_of(b) >= shards && !wait_b;

	if (room_a != room_b)
		return room_a;
	if (room_a)
		return free_of(a) < free_of(b);
	return wait_a != wait_b ? wait_a < wait_b : free_of(a) > free_of(b);
}

static int refuse(char reason[INVENTORY_REASON], const char *fmt, ...) PRINTF(2, 3);

static int refuse(char reason[INVENTORY_REASON], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, INVENTORY_REASON, fmt, ap);
	va_end(ap);
	return -ENOSPC;
}

static int why_no_part(const struct inventory *inventory, const struct inventory_request *request,
		       char reason[INVENTORY_REASON])
{
	const struct inventory_device *largest = NULL;
	size_t i, n = 0;

	for (i = 0; i < inventory->n_devices; i++) {
		const struct inventory_device *d = &inventory->devices[i];

		if (!matches(d, request))
			continue;
		n++;
		if (!largest || d->total > largest->total)
			largest = d;
	}
	if (!largest)
		return refuse(reason, "no node that the job may use has a device%s%s",
			      *request->type ? " of type " : "", request->type);
	return refuse(reason,
		      "%" PRIu64 " MiB fit on no device: the largest of %zu, %s on %s, has %" PRIu64
		      " MiB for jobs",
		      request->shards, n, largest->type, largest->node, largest->total);
}

static int choose_part(const struct inventory *inventory, const struct inventory_request *request,
		       char **ret, char reason[INVENTORY_REASON])
{
	const struct inventory_device *best = NULL;
	size_t i;

	for (i = 0; i < inventory->n_devices; i++) {
		const struct inventory_device *d = &inventory->devices[i];

		if (!matches(d, request) || d->total < request->shards)
			continue;
		if (!best || is_better(inventory, d, best, request->shards))
			best = d;
	}
	if (!best)
		return why_no_part(inventory, request, reason);
	*ret = gres_shards(best->type, request->shards);
	return *ret ? 0 : -ENOMEM;
}

/* --- whole devices --- */

/**
 * struct whole - devices of one node that are alike
 * @n_free:	of them, how many nobody has a part of
 */
struct whole {
	const struct inventory_device *items[MAX_WHOLE];
	size_t n;
	size_t n_free;
};

/* The job's part of each is told by one number, so they have to be of one size. */
static void collect(const struct inventory *inventory, const struct inventory_request *request,
		    const struct inventory_device *like, struct whole *ret)
{
	bool want_free;
	size_t i, pass;

	*ret = (struct whole){};
	/* Those that are free come first. */
	for (pass = 0; pass < 2; pass++) {
		want_free = pass == 0;
		for (i = 0; i < inventory->n_devices && ret->n < request->n_devices; i++) {
			const struct inventory_device *d = &inventory->devices[i];

			if (!str_eq(d->node, like->node) || d->total != like->total ||
			    (d->used == 0) != want_free || !matches(d, request))
				continue;
			ret->items[ret->n++] = d;
			ret->n_free += want_free;
		}
	}
}

static char *print_whole(const struct whole *whole)
{
	struct text t = {};
	size_t i;

	for (i = 0; i < whole->n; i++)
		gres_add_shards(&t, whole->items[i]->type, whole->items[i]->total);
	return text_take(&t);
}

static int choose_whole(const struct inventory *inventory, const struct inventory_request *request,
			char **ret, char reason[INVENTORY_REASON])
{
	struct whole found, best = {};
	size_t i, most = 0;

	for (i = 0; i < inventory->n_devices && request->n_devices <= MAX_WHOLE; i++) {
		if (!matches(&inventory->devices[i], request))
			continue;
		collect(inventory, request, &inventory->devices[i], &found);
		most = MAX(most, found.n);
		if (found.n == request->n_devices && (!best.n || found.n_free > best.n_free))
			best = found;
	}
	if (!best.n)
		return refuse(reason,
			      "no node that the job may use has %" PRIu64
			      " whole devices%s%s of one size: the most is %zu",
			      request->n_devices, *request->type ? " of type " : "", request->type,
			      most);
	*ret = print_whole(&best);
	return *ret ? 0 : -ENOMEM;
}

int inventory_choose(const struct inventory *inventory, const struct inventory_request *request,
		     char **ret, char reason[INVENTORY_REASON])
{
	return request->shards ? choose_part(inventory, request, ret, reason)
			       : choose_whole(inventory, request, ret, reason);
}
