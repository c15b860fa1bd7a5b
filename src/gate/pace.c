// SPDX-License-Identifier: Apache-2.0
#include "gate/pace.h"

#include "base/array.h"
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct gate_paced *find(struct gate_pace *pace, uint32_t pid)
{
	size_t i;

	for (i = 0; i < pace->n; i++) {
		if (pace->items[i].untold.pid == pid)
			return &pace->items[i];
	}
	return NULL;
}

static struct gate_paced *add_room(struct gate_pace *pace)
{
	void *items = array_room(pace->items, pace->n, &pace->cap, sizeof(*pace->items));

	if (!items)
		return NULL;
	pace->items = items;
	return &pace->items[pace->n++];
}

int gate_pace_add(struct gate_pace *pace, const struct gate_report *asked, uint64_t now_ms)
{
	struct gate_paced *p = find(pace, asked->pid);

	if (!p) {
		p = add_room(pace);
		if (!p)
			return -ENOMEM;
		*p = (struct gate_paced){ .untold.pid = asked->pid, .due_ms = now_ms };
	}
	p->untold.n_asked += asked->n_asked;
	p->untold.bytes += asked->bytes;
	return 0;
}

bool gate_pace_take(struct gate_pace *pace, uint64_t now_ms, struct gate_report *ret)
{
	struct gate_paced *p;
	size_t i;

	for (i = 0; i < pace->n; i++) {
		p = &pace->items[i];
		if (p->untold.n_asked == 0 || p->due_ms > now_ms)
			continue;
		*ret = p->untold;
		p->untold = (struct gate_report){ .pid = ret->pid };
		p->due_ms = now_ms + GATE_PACE_MS;
		return true;
	}
	return false;
}

void gate_pace_return(struct gate_pace *pace, const struct gate_report *report, uint64_t now_ms,
		      uint64_t after_ms)
{
	struct gate_paced *p;

	if (gate_pace_add(pace, report, now_ms) < 0)
		return;
	p = find(pace, report->pid);
	p->due_ms = now_ms + after_ms;
}

static void drop(struct gate_pace *pace, size_t at)
{
	pace->items[at] = pace->items[--pace->n];
}

int gate_pace_next(struct gate_pace *pace, uint64_t now_ms)
{
	uint64_t first_ms = UINT64_MAX;
	const struct gate_paced *p;
	size_t i = 0;

	while (i < pace->n) {
		p = &pace->items[i];
		if (p->untold.n_asked > 0)
			first_ms = MIN(first_ms, p->due_ms);
		if (p->untold.n_asked == 0 && p->due_ms <= now_ms)
			drop(pace, i);
		else
			i++;
	}
	if (first_ms == UINT64_MAX)
		return -1;
	return first_ms > now_ms ? (int)MIN(first_ms - now_ms, (uint64_t)INT_MAX) : 0;
}

void gate_pace_drop_gone(struct gate_pace *pace, bool (*is_gone)(uint32_t pid))
{
	size_t i = 0;

	while (i < pace->n) {
		if (is_gone(pace->items[i].untold.pid))
			drop(pace, i);
		else
			i++;
	}
}

void gate_pace_done(struct gate_pace *pace)
{
	free(pace->items);
	memset(pace, 0, sizeof(*pace));
}
