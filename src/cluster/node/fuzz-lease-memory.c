/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of the lease, and as its line: what is taken reads the same when written again. */
#include "cluster/node/lease-memory.h"

#include "base/str.h"

#include <assert.h>

#define BOOT "3a5f"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *bytes = malloc(size + 1);
	const char *line = NULL;
	struct node_lease lease;

	if (!bytes)
		return;
	memcpy(bytes, data, size);
	bytes[size] = '\0';
	if (lease_memory_parse(bytes, size, BOOT, &lease, &line) == 0 && line)
		assert(strlen(line) < CONTACT_LINE_SIZE && lease.is_known);
}

static void read_line(const uint8_t *data, size_t size)
{
	static struct lease_memory m = { .where = BOOT };
	_cleanup_free_ char *bytes = NULL;
	struct contact_line said;
	struct node_lease lease;
	const char *line = NULL;

	if (size >= sizeof(m.said))
		return;
	memcpy(m.said, data, size);
	m.said[size] = '\0';
	if (contact_line_parse(m.said, &said) < 0)
		return;
	bytes = lease_memory_print(&m);
	if (!bytes)
		return;
	assert(lease_memory_parse(bytes, strlen(bytes), BOOT, &lease, &line) == 0 && line);
	assert(lease.asked_ms == said.asked_ms && str_eq(line, m.said));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	read_line(data, size);
	return 0;
}
