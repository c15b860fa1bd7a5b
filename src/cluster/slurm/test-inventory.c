/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/slurm/inventory.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

static const struct {
	const char *list;
	const char *items; /* name/type/count of each, or where it ends */
} lists[] = {
	{ "", "" },
	{ "gpu", "gpu//1 " },
	{ "gres:gpu:2", "gpu//2 " },
	{ "gres/gpu:2", "gpu//2 " },
	{ "gres:shard:g1:4096,gres:nic", "shard/g1/4096 nic//1 " },
	{ "gpu:g0:1(S:0),shard:g0:143771(S:0-1,3),shard:g1:5",
	  "gpu/g0/1 shard/g0/143771 shard/g1/5 " },
	{ "shard:g1:30(IDX:0,1),nic:2", "shard/g1/30 nic//2 " },
	{ "shard:4k", "shard//4096 " },
	{ "gpu:a100", "gpu/a100/1 " },
	{ "gpu::2", "refused" },
	{ ":2", "refused" },
	{ "gpu:2x", "refused" },
	{ "gpu:a:b", "refused" },
	{ "gpu:a:-1", "refused" },
	{ "shard:99999999999999999999", "refused" },
	{ "shard:99999999999p", "refused" },
};

static void test_lists(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		const char *at = lists[i].list;
		struct text t = {};
		_cleanup_free_ char *items = NULL;
		struct gres gres;
		int r;

		while ((r = gres_next(&at, &gres)) > 0)
			text_addf(&t, "%s/%s/%llu ", gres.name, gres.type,
				  (unsigned long long)gres.count);
		if (r < 0)
			text_add(&t, "refused");
		items = text_take(&t);
		check(str_eq(items, lists[i].items), "gres_next: '%s' is %s", lists[i].list, items);
	}
}

static void fill(struct inventory *inventory)
{
	inventory_add_node(inventory, "n1", "gpu:g0:1,gpu:g1:1,shard:g0:1000,shard:g1:1000");
	inventory_add_node(inventory, "n2", "gpu:g0:1,gpu:g1:1,shard:g0:1000(S:0),shard:g1:4000");
	inventory_add_node(inventory, "n3", "nic:1");
}

static bool chooses(const struct inventory *inventory, struct inventory_request request,
		    const char *wanted)
{
	char reason[INVENTORY_REASON] = "";
	_cleanup_free_ char *list = NULL;
	int r = inventory_choose(inventory, &request, &list, reason);

	return r == 0 ? str_eq(list, wanted) : r == -ENOSPC && strstr(reason, wanted);
}

static bool only_n1(const char *node, _unused_ void *userdata)
{
	return str_eq(node, "n1");
}

/* As the Slurm of this build wants them. */
#define SHARD GRES_PREFIX "shard:"

#define PART(n, ...)  ((struct inventory_request){ .shards = (n), ##__VA_ARGS__ })
#define WHOLE(n, ...) ((struct inventory_request){ .n_devices = (n), ##__VA_ARGS__ })

static void test_parts(void)
{
	_cleanup_(inventory_done) struct inventory inventory = {};

	fill(&inventory);
	check(chooses(&inventory, PART(500), SHARD "g0:500"), "part: the first of the smallest");
	check(chooses(&inventory, PART(2000), SHARD "g1:2000"), "part: one that is large enough");
	check(chooses(&inventory, PART(500, .type = "g1"), SHARD "g1:500"),
	      "part: of the type that is asked for");
	check(chooses(&inventory, PART(4001),
		      "4001 MiB fit on no device: the largest of 4, g1 on n2, has 4000 MiB"),
	      "part: more than any device has is refused with what there is");
	check(chooses(&inventory, PART(1001, .allowed = only_n1), "the largest of 2"),
	      "part: only nodes that may be used count");
	check(chooses(&inventory, PART(1, .type = "g7"),
		      "no node that the job may use has a device of type g7"),
	      "part: a type that is nowhere is refused");
	inventory_use(&inventory, "n1", "shard:g1:300(IDX:1)");
	check(chooses(&inventory, PART(500), SHARD "g1:500"),
	      "part: what is begun is filled first");
	check(chooses(&inventory, PART(800), SHARD "g0:800"), "part: where there is room");
	inventory_use(&inventory, "n1", "shard:g0:900");
	inventory_use(&inventory, "n2", "shard:g0:900");
	inventory_use(&inventory, "n2", "shard:g1:3900");
	inventory_wait(&inventory, "gres:shard:g1:700");
	check(chooses(&inventory, PART(800), SHARD "g0:800"), "part: where least is waited for");
	inventory_wait(&inventory, "gres:shard:g0:1000");
	check(chooses(&inventory, PART(800), SHARD "g1:800"), "part: which changes as others wait");
}

static void test_whole(void)
{
	_cleanup_(inventory_done) struct inventory inventory = {};

	fill(&inventory);
	check(chooses(&inventory, WHOLE(2), SHARD "g0:1000," SHARD "g1:1000"),
	      "whole: two that are alike");
	check(chooses(&inventory, WHOLE(1, .type = "g1", .allowed = only_n1), SHARD "g1:1000"),
	      "whole: by type");
	check(chooses(&inventory, WHOLE(3), "the most is 2"),
	      "whole: more than a node has is refused");
	check(chooses(&inventory, WHOLE(1000000), "1000000 whole devices"),
	      "whole: and so is any number");
	inventory_use(&inventory, "n1", "shard:g0:1");
	check(chooses(&inventory, WHOLE(1, .allowed = only_n1), SHARD "g1:1000"),
	      "whole: one that nobody has a part of");
	check(chooses(&inventory, WHOLE(2), SHARD "g1:1000," SHARD "g0:1000"),
	      "whole: it may have to wait");
}

static void test_types(void)
{
	check(gres_types_are_told("gpu,shard") && gres_types_are_told("shard") &&
		      gres_types_are_told("gpu,mps,shard") && gres_types_are_told(""),
	      "types: without mps, and with it in the one order that does");
	check(!gres_types_are_told("gpu,shard,mps") && !gres_types_are_told("mps,gpu,shard") &&
		      !gres_types_are_told("mps"),
	      "types: mps elsewhere takes away what jobs are told of their devices");
}

int main(void)
{
	test_lists();
	test_parts();
	test_whole();
	test_types();
	return check_result();
}
