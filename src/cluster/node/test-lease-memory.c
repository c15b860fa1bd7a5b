/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the lease is killed by forgetting all but the file. The clock is the test's. */
#include "cluster/node/lease-memory.h"

#include "base/check.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define BOOT	   "0b9d4a3c-8a3f-4f57-9a41-6d6d1b2f0c11/n1"
#define OTHER_NODE "0b9d4a3c-8a3f-4f57-9a41-6d6d1b2f0c11/n2"
#define OTHER	   "5f6b8c1e-2d75-4d0b-8f3e-93f2a4c7e002/n1"
#define HEARD	   "10000 12000 head:6817 3 7"
#define MAX_FILE   4096

static char folder[] = "/tmp/lease-memory-XXXXXX";
static char path[64];
static struct lease_memory memory;

static int save(void)
{
	int r = memory.is_unsaved ? lease_memory_save(&memory) : 0;

	memory.is_unsaved = false;
	return r;
}

static enum node_lease_order look(uint64_t now_ms)
{
	enum node_lease_order order;
	uint64_t wait_ms;

	order = lease_memory_look(&memory, now_ms, &wait_ms);
	save();
	return order;
}

static int hear(const char *line, uint64_t now_ms)
{
	int r = lease_memory_hear(&memory, line, now_ms);

	save();
	return r;
}

/* The one before is gone, whatever it was doing. */
static int begin(const char *boot_id, uint64_t now_ms)
{
	int r;

	memset(&memory, 0xa5, sizeof(memory));
	r = lease_memory_open(&memory, path, boot_id, now_ms);
	save();
	return r;
}

static void hear_and_die(void)
{
	unlink(path);
	begin(BOOT, 9000);
	check(lease_memory_hear(&memory, HEARD, 10100) == 0 && memory.is_unsaved && save() == 0,
	      "lease memory: a line is written down");
}

static void test_cut(void)
{
	unlink(path);
	check(begin(BOOT, 9000) == 0 && look(900000) == NODE_LEASE_GO_ON && !*memory.said,
	      "lease memory: without a file nothing is known");
	hear_and_die();
	check(begin(BOOT, 11000) == 0 && str_eq(memory.said, HEARD) &&
		      str_eq(lease_memory_kept(&memory), "3 7"),
	      "lease memory: who is started anew knows the line");
	check(look(13999) == NODE_LEASE_GO_ON && look(14000) == NODE_LEASE_TERM,
	      "lease memory: and ends all when the one before would have");
	check(begin(BOOT, 14900) == 0 && look(14999) == NODE_LEASE_TERM &&
		      look(15000) == NODE_LEASE_KILL,
	      "lease memory: so does the one that is started after SIGTERM");
	check(hear("15100 12000 head:6817", 15200) == 0 && begin(BOOT, 16000) == 0 &&
		      look(16000) == NODE_LEASE_GO_ON && !*lease_memory_kept(&memory),
	      "lease memory: when Slurm is heard again that is known, too");
}

static void test_long_away(void)
{
	hear_and_die();
	begin(BOOT, 500000);
	check(look(501999) == NODE_LEASE_GO_ON && look(502000) == NODE_LEASE_TERM,
	      "lease memory: if nobody was there for long, Slurm is asked first");
	begin(BOOT, 500000);
	begin(BOOT, 501000);
	check(look(502000) == NODE_LEASE_TERM,
	      "lease memory: also by one after the other, but not for longer");
}

static void test_other_boot(void)
{
	hear_and_die();
	check(begin(OTHER, 11000) == 0 && look(900000) == NODE_LEASE_GO_ON && !*memory.said,
	      "lease memory: of another boot nothing runs any more");
	check(begin("", 11000) == 0 && look(900000) == NODE_LEASE_GO_ON,
	      "lease memory: a boot without a name is none");
	check(begin(OTHER_NODE, 11000) == 0 && look(900000) == NODE_LEASE_GO_ON && !*memory.said,
	      "lease memory: what was heard of one node says nothing of another");
	hear_and_die();
	check(begin(BOOT, 9999) == -EBADMSG && look(900000) == NODE_LEASE_GO_ON && !*memory.said,
	      "lease memory: a time of the future is none");
}

static void test_lines(void)
{
	hear_and_die();
	check(hear("11000 12000 head:6817 x", 11000) == -EINVAL && hear("", 11000) == -EINVAL &&
		      hear("9000 12000 head:6817", 11000) == -EINVAL &&
		      hear("12000 12000 head:6817", 11000) == -EINVAL,
	      "lease memory: what is no line, late, or of the future is not heard");
	check(str_eq(memory.said, HEARD) && begin(BOOT, 11000) == 0 && str_eq(memory.said, HEARD),
	      "lease memory: nor remembered");
}

/* --- damage --- */

static bool is_refused(const char *bytes, size_t len)
{
	return file_replace(path, bytes, len, 0600) == 0 && begin(BOOT, 11000) == -EBADMSG &&
	       look(900000) == NODE_LEASE_GO_ON && !*memory.said;
}

static size_t read_whole(char *bytes)
{
	_cleanup_free_ char *found = NULL;
	size_t len = 0;

	hear_and_die();
	if (file_read_at(AT_FDCWD, path, MAX_FILE, &found, &len) == 0)
		memcpy(bytes, found, len + 1);
	return len;
}

/* Without the file, as there are many. */
static bool is_damaged(const char *bytes, size_t len)
{
	_cleanup_free_ char *copy = calloc(1, len + 1);
	struct node_lease lease;
	const char *line;

	memcpy(copy, bytes, len);
	return lease_memory_parse(copy, len, BOOT, &lease, &line) == -EBADMSG;
}

static void test_damage(void)
{
	char whole[MAX_FILE + 1], bytes[MAX_FILE + 1];
	size_t len = read_whole(whole), i, n_cut = 0, n_changed = 0;
	unsigned change;

	for (i = 0; i < len; i++)
		n_cut += is_damaged(whole, i);
	for (i = 0; i < len; i++) {
		for (change = 1; change < 256; change++) {
			memcpy(bytes, whole, len);
			bytes[i] ^= change;
			n_changed += is_damaged(bytes, len);
		}
	}
	check(len > strlen(BOOT) && n_cut == len && n_changed == len * 255,
	      "lease memory: of %zu bytes each cut and each change of one is seen (%zu, %zu)", len,
	      n_cut, n_changed);
	memcpy(bytes, whole, len);
	memcpy(bytes + len, whole, len);
	check(is_refused(whole, len - 1) && is_refused(whole, 0) && is_refused(bytes, 2 * len),
	      "lease memory: who finds such a file knows nothing, and goes on");
	check(hear(HEARD, 11000) == 0 && begin(BOOT, 11000) == 0 && str_eq(memory.said, HEARD),
	      "lease memory: and puts a whole one in its place");
}

static void test_strange_files(void)
{
	unlink(path);
	check(mkdir(path, 0700) == 0 && begin(BOOT, 11000) == -EISDIR && !*memory.said,
	      "lease memory: what cannot be read says nothing");
	check(lease_memory_hear(&memory, HEARD, 11000) == 0 && save() == -EISDIR &&
		      look(14000) == NODE_LEASE_TERM,
	      "lease memory: what cannot be written is known as long as one lives");
	rmdir(path);
	check(truncate(path, 0) < 0 && file_replace(path, "", 0, 0600) == 0 &&
		      truncate(path, 1 << 30) == 0 && begin(BOOT, 11000) == -EBADMSG,
	      "lease memory: nor is a file read that is without end");
}

int main(void)
{
	if (!check(mkdtemp(folder) != NULL, "lease memory: has a folder"))
		return check_result();
	snprintf(path, sizeof(path), "%s/lease", folder);
	test_cut();
	test_long_away();
	test_other_boot();
	test_lines();
	test_damage();
	test_strange_files();
	unlink(path);
	rmdir(folder);
	return check_result();
}
