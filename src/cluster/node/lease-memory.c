/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/lease-memory.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define SUM_LEN	   8
#define FILE_BYTES (CONTACT_LINE_SIZE + LEASE_WHERE_SIZE + 64)

/* FNV-1a: any one byte that is another one gives another sum. */
static uint32_t sum_of(const char *s)
{
	uint32_t sum = 2166136261;

	for (; *s; s++)
		sum = (sum ^ (unsigned char)*s) * 16777619;
	return sum;
}

char *lease_memory_print(const struct lease_memory *m)
{
	_cleanup_free_ char *rest =
		str_format("%s %" PRIu64 " %s\n", m->where, m->lease.resumed_ms, m->said);

	return rest ? str_format("%08" PRIx32 " %s", sum_of(rest), rest) : NULL;
}

/* The word that a space ends, which is cut off; NULL if there is none. */
static char *take_word(char **at)
{
	char *word = *at, *end = word ? strchr(word, ' ') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return word;
}

static bool is_whole(const char *bytes, size_t len)
{
	char sum[SUM_LEN + 1];

	if (len <= SUM_LEN + 1 || strlen(bytes) != len || bytes[len - 1] != '\n')
		return false;
	snprintf(sum, sizeof(sum), "%08" PRIx32, sum_of(bytes + SUM_LEN + 1));
	return memcmp(bytes, sum, SUM_LEN) == 0 && bytes[SUM_LEN] == ' ';
}

int lease_memory_parse(char *bytes, size_t len, const char *where, struct node_lease *ret,
		       const char **ret_line)
{
	char *line = bytes + SUM_LEN + 1;
	const char *place, *resumed;
	struct contact_line said;
	uint64_t resumed_ms;

	if (!is_whole(bytes, len))
		return -EBADMSG;
	bytes[len - 1] = '\0';
	place = take_word(&line);
	resumed = place ? take_word(&line) : NULL;
	if (!resumed || !*place || str_parse_u64(resumed, &resumed_ms) < 0 ||
	    contact_line_parse(line, &said) < 0)
		return -EBADMSG;
	*ret = (struct node_lease){ said.asked_ms, said.timeout_ms, resumed_ms, true };
	*ret_line = str_eq(place, where) ? line : NULL;
	return 0;
}

int lease_memory_save(const struct lease_memory *m)
{
	_cleanup_free_ char *bytes = lease_memory_print(m);

	return bytes ? file_replace(m->path, bytes, strlen(bytes), 0600) : -ENOMEM;
}

int lease_memory_open(struct lease_memory *m, const char *path, const char *where, uint64_t now_ms)
{
	_cleanup_free_ char *bytes = NULL;
	struct node_lease before;
	const char *line;
	size_t len;
	int r;

	*m = (struct lease_memory){ .path = path };
	str_copy(m->where, sizeof(m->where), where);
	r = file_read_at(AT_FDCWD, path, FILE_BYTES, &bytes, &len);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = lease_memory_parse(bytes, len, m->where, &before, &line);
	if (r < 0 || !line)
		return r == -EFBIG ? -EBADMSG : r;
	node_lease_resume(&m->lease, &before, now_ms);
	if (!m->lease.is_known)
		return -EBADMSG;
	str_copy(m->said, sizeof(m->said), line);
	m->is_unsaved = true;
	return 0;
}

int lease_memory_hear(struct lease_memory *m, const char *line, uint64_t now_ms)
{
	struct contact_line said;
	int r;

	r = contact_line_parse(line, &said);
	if (r < 0)
		return r;
	node_lease_renew(&m->lease, said.asked_ms, said.timeout_ms, now_ms);
	if (m->lease.asked_ms != said.asked_ms)
		return -EINVAL;
	str_copy(m->said, sizeof(m->said), line);
	m->is_unsaved = true;
	return 0;
}

enum node_lease_order lease_memory_look(struct lease_memory *m, uint64_t now_ms,
					uint64_t *ret_wait_ms)
{
	enum node_lease_order order = node_lease_look(&m->lease, now_ms, ret_wait_ms);

	if (order != NODE_LEASE_GO_ON && node_lease_note_term(&m->lease))
		m->is_unsaved = true;
	return order;
}

const char *lease_memory_kept(const struct lease_memory *m)
{
	struct contact_line said = { .kept = "" };

	if (*m->said)
		contact_line_parse(m->said, &said);
	return said.kept;
}
