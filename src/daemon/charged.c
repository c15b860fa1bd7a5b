/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/charged.h"

#include "base/array.h"

#include <errno.h>
#include <string.h>

static struct charged *add_room(struct charged_list *list)
{
	void *items = array_room(list->items, list->n, &list->cap, sizeof(*list->items));

	if (!items)
		return NULL;
	list->items = items;
	return &list->items[list->n++];
}

static int add(const struct audit_process *p, void *userdata)
{
	struct charged *c = add_room(userdata);

	if (!c)
		return -ENOMEM;
	/* What lies between the fields is compared, too. */
	memset(c, 0, sizeof(*c));
	c->pid = audit_process_tgid(p);
	c->serial = p->serial;
	c->seen_on = p->seen_on;
	c->is_placing = p->placing != 0;
	c->moved = p->moved;
	memcpy(c->use, p->use, sizeof(c->use));
	memcpy(c->idle, p->idle, sizeof(c->idle));
	memcpy(c->pending, p->pending, sizeof(c->pending));
	memcpy(c->overhead, p->overhead, sizeof(c->overhead));
	memcpy(c->inherited, p->inherited, sizeof(c->inherited));
	memcpy(c->n_contexts, p->n_contexts, sizeof(c->n_contexts));
	c->chain = p->chain;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct charged *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int charged_read(struct charged_list *list, const struct engine *engine)
{
	int r;

	list->n = 0;
	r = engine ? engine_each_process(engine, add, list) : 0;
	if (list->n)
		qsort(list->items, list->n, sizeof(*list->items), by_pid);
	return r;
}

bool charged_equal(const struct charged_list *a, const struct charged_list *b)
{
	return a->n == b->n &&
	       (a->n == 0 || memcmp(a->items, b->items, a->n * sizeof(*a->items)) == 0);
}

const struct charged *charged_find(const struct charged_list *list, pid_t pid)
{
	const struct charged key = { .pid = pid };

	return list->n ? bsearch(&key, list->items, list->n, sizeof(key), by_pid) : NULL;
}

const struct charged *charged_next(const struct charged_list *list, pid_t pid, size_t *at)
{
	while (*at < list->n && list->items[*at].pid < pid)
		++*at;
	return *at < list->n && list->items[*at].pid == pid ? &list->items[*at] : NULL;
}

void charged_done(struct charged_list *list)
{
	free(list->items);
	memset(list, 0, sizeof(*list));
}
