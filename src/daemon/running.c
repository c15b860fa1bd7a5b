/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/running.h"

#include "daemon/daemon.h"

static int by_pid(const void *a, const void *b)
{
	const struct gpu_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int running_read(struct running *running, struct gpu *gpu, unsigned device, uint64_t oldest_us,
		 const struct running_list **ret)
{
	struct running_list *list = &running->lists[device];
	uint64_t now_us = daemon_monotonic_us();
	int r;

	if (!list->asked_us || list->asked_us < oldest_us) {
		list->knows_memory = gpu->ops->memory(gpu, device, &list->memory) == 0;
		r = gpu_processes(gpu, device, &list->items, &list->cap, &list->n);
		if (r < 0) {
			list->asked_us = 0;
			return r;
		}
		if (list->n)
			qsort(list->items, list->n, sizeof(*list->items), by_pid);
		list->asked_us = now_us;
	}
	*ret = list;
	return 0;
}

const struct gpu_process *running_find(const struct running_list *list, pid_t pid)
{
	const struct gpu_process key = { .pid = pid };

	return list->n ? bsearch(&key, list->items, list->n, sizeof(key), by_pid) : NULL;
}

const struct gpu_process *running_next(const struct running_list *list, pid_t pid, size_t *at)
{
	while (*at < list->n && list->items[*at].pid < pid)
		++*at;
	return *at < list->n && list->items[*at].pid == pid ? &list->items[*at] : NULL;
}

void running_done(struct running *running)
{
	unsigned i;

	for (i = 0; i < LEDGER_DEVICES; i++)
		free(running->lists[i].items);
}
